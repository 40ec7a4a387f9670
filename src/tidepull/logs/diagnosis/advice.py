"""What follows from a diagnosis, and warnings about a log: plain sentences with their
uncertainty."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tidepull.logs.diagnosis.confounding import Calibration, Mixup, Shift
from tidepull.logs.diagnosis.memory import BY_HOUR
from tidepull.logs.diagnosis.overview import HourTable, Overview, blind_spots, hiding
from tidepull.logs.diagnosis.structure import FEW_PLAYS, KINDS, span
from tidepull.logs.diagnosis.testing import LEVEL
from tidepull.logs.estimators import FEW
from tidepull.logs.log import Log

if TYPE_CHECKING:
    from tidepull.logs.diagnosis import Diagnosis


_SURE, _LIKELY, _LEADS = 0.95, 0.7, 0.5
_CHOSEN = 0.5
"""Cramer's V of arms and hours from which on arms were chosen by the hour."""
_MOST_NAMED = 5
_MOST_ARMS = 20
"""Arms that a command names."""
_DO = {
    "drift": "Let the policy forget: tide does by itself, d-ucb and sw-ucb with the memory named "
    "here.",
    "changes": "Let the policy notice changes: tide does by itself; what lies before the last "
    "change misleads.",
    "rounds": "Let the policy remember the season: tide finds it by itself; forgetting alone comes "
    "too late each time.",
    "clock": "Use a policy that knows the time: tide reads it, and an agent gives hour and weekday to "
    "the others.",
    "regimes": "Let the policy remember regimes and recognise them when they come back: tide does "
    "by itself.",
    "last": "Let the policy look at what was played last: tide does, rnlps too.",
}


def kind_of(diagnosis: Diagnosis) -> str:
    """The kind of time structure that the log is said to have: nothing, unless the test says that
    time matters."""
    if not diagnosis.test.matters:
        return "nothing"
    if diagnosis.structure is None:
        return "something"
    kind = diagnosis.structure.kind_of_change
    undecided = diagnosis.structure.weights[kind] < _LEADS
    return "clock" if undecided and _clock_pays(diagnosis) else kind


def _clock_pays(diagnosis: Diagnosis) -> bool:
    """Whether the test of the hour stands out, and a rule by the hour earns clearly more.
    Models that learn a few thousand of many decisions may be too short of data to see it."""
    return diagnosis.test.measures.get("hour of the day", 1.0) <= LEVEL and any(
        rule.rule == BY_HOUR and rule.gain_low > 0 and rule.effective >= FEW
        for rule in diagnosis.worth
    )


def verdict(diagnosis: Diagnosis) -> str:
    """One sentence: does time matter, how, and how sure is that."""
    p = f"p = {diagnosis.test.p:.{3 if diagnosis.test.p >= 0.0015 else 4}f}"
    if not diagnosis.test.measures:
        return "Whether time matters cannot be said: rewards do not vary, or there are too few."
    if not diagnosis.test.matters:
        text = f"No sign that rewards depend on time ({p}; false alarms are held to {LEVEL:.0%})"
        if diagnosis.structure is not None and diagnosis.structure.weights["nothing"] < 0.5:
            kind = diagnosis.structure.kind_of_change
            share = f"{diagnosis.structure.weights[kind]:.0%}"
            text += f"; models lean to {KINDS[kind]} ({share}), which the test does not confirm"
        return text + "."
    if diagnosis.structure is None:
        return f"Rewards depend on time ({p})."
    kind = kind_of(diagnosis)
    weight = diagnosis.structure.weights[kind]
    if kind == "clock" and weight < _LEADS:
        return (
            f"Rewards depend on time ({p}): they follow the hour of the day, by the test and by what "
            f"a rule by the hour earns; the models see too little to tell ({weight:.0%} of the "
            "evidence)."
        )
    how = "almost certainly" if weight >= _SURE else "probably" if weight >= _LIKELY else "perhaps"
    how = "perhaps" if _chosen_by(diagnosis) else how
    kind = f"{how} through {KINDS[kind]} ({weight:.0%} of the evidence)"
    return f"Rewards depend on time ({p}), {kind}."


def _chosen_by(diagnosis: Diagnosis) -> list[Shift]:
    """What decided on the arms of the log so far that it may be taken for their effect."""
    return [shift for shift in diagnosis.shifts if shift.moves > _CHOSEN and shift.p < 0.001][:1]


def action(diagnosis: Diagnosis) -> str:
    """What to do, in one sentence."""
    kind = kind_of(diagnosis)
    if kind == "nothing":
        return (
            "A policy that forgets nothing (bernoulli-ts or ucb) is enough for what this log shows; "
            "tide finds that out by itself."
        )
    return _DO.get(kind, "Let the policy follow time: tide does by itself.")


def worth(diagnosis: Diagnosis) -> str:
    """What that would bring, with its interval, or why it cannot be said."""
    sentences = _worth(diagnosis)
    if sentences:
        return sentences[0]
    if not diagnosis.worth:
        if diagnosis.log.propensity is None:
            return (
                "Without propensities the log cannot say what it would bring. If all arms had equal "
                "probability, add --uniform."
            )
        return (
            "The log cannot say what it would bring: it has one arm, its rewards do not vary, or "
            "not every arm was on offer."
        )
    return "No rule that follows time earns clearly more on this log than the best arm so far."


def commands(diagnosis: Diagnosis) -> list[str]:
    """What starts a service and an agent with the arms of the log."""
    rewards = diagnosis.log.reward[~np.isnan(diagnosis.log.reward)]
    policy = "tide"
    if not diagnosis.test.matters and not diagnosis.log.context:
        policy = "bernoulli-ts" if np.isin(rewards, (0.0, 1.0)).all() else "ucb"
    arms = [f"--arm {shlex.quote(str(arm))}" for arm in diagnosis.log.arms[:_MOST_ARMS]]
    more = [] if diagnosis.log.n_arms <= _MOST_ARMS else ["..."]
    create = " ".join(["tidepull client create shop", f"--policy {policy}", *arms, *more])
    return ["tidepull serve --db agents --insecure", create]


def recommendation(diagnosis: Diagnosis) -> tuple[str, ...]:
    """What to do, and how far to believe it."""
    sentences = [verdict(diagnosis)]
    kind = kind_of(diagnosis)
    if kind == "nothing" and diagnosis.test.measures:
        sentences.append(_unnoticed(diagnosis))
        sentences.append(action(diagnosis))
    elif kind in _DO:
        assert diagnosis.structure is not None
        sentences += _details(diagnosis, kind)
        sentences.append(_DO[kind])
        sentences += [
            f"Arms were chosen by the {shift.by} (Cramer's V {shift.moves:.2f}): this log cannot tell "
            f"what the {shift.by} does from what an arm does. Let some decisions be random."
            for shift in _chosen_by(diagnosis)
        ]
        others = _others(diagnosis, kind)
        if others:
            sentences.append(f"Not ruled out: {others}.")
    sentences += _forgetting(diagnosis) + _worth(diagnosis) + _contexts(diagnosis)
    if diagnosis.calibration is not None and diagnosis.calibration.wrong:
        sentences.append("Mend the propensities before you judge other policies on this log.")
    return tuple(sentences)


def _details(diagnosis: Diagnosis, kind: str) -> list[str]:
    structure = diagnosis.structure
    assert structure is not None
    if kind == "changes" and structure.changes:
        moments = [
            f"{one.when} ({one.chance:.0%}){': ' + one.words if one.words else ''}"
            for one in structure.changes[-3:]
        ]
        return ["It changed at " + "; ".join(moments) + "."]
    if kind == "regimes" and structure.regime:
        return [f"At the end: {structure.regime}."]
    leads = structure.weights[kind] >= _LEADS
    sentences = [
        f"In words: {words} ({weight:.0%})." for words, weight in structure.leading[:1] if leads
    ]
    if kind == "clock" and structure.hours:
        sentences.append("; ".join(structure.hours[:4]) + ".")
    return sentences


def _others(diagnosis: Diagnosis, kind: str) -> str:
    assert diagnosis.structure is not None
    ranked = sorted(diagnosis.structure.weights.items(), key=lambda item: -item[1])
    rest = [(k, w) for k, w in ranked if k not in (kind, "nothing") and w >= 0.05]
    return ", ".join(f"{KINDS[k]} ({w:.0%})" for k, w in rest)


def _unnoticed(diagnosis: Diagnosis) -> str:
    busiest = max(diagnosis.overview.arms, key=lambda arm: arm.rewards)
    half = (busiest.high - busiest.low) / 2
    # two halves of the log, each with half the rewards: the difference has twice the standard error
    # of the mean
    change = 2 * half / 1.96 * 3.2
    return (
        f"That is no proof: if the mean of '{busiest.arm}' ({busiest.mean:.3g}), the arm with the "
        "most rewards, had moved by less "
        f"than about {change:.2g} between the halves of the log, it might well have gone unnoticed."
    )


def _forgetting(diagnosis: Diagnosis) -> list[str]:
    best = diagnosis.forgetting.best
    if best is None:
        return []
    memory = f"{best.decisions:,.0f} decisions" + (
        f" ({span(best.seconds)})" if best.seconds == best.seconds else ""
    )
    if diagnosis.forgetting.helps:
        return [
            f"Forgetting would help: with a memory of about {memory} rewards are predicted "
            f"{best.gain:.1%} better "
            f"than by remembering everything ({best.low:.1%} to {best.high:.1%})."
        ]
    return [
        f"No evidence that forgetting would help: the best memory, {memory}, predicts "
        f"{abs(best.gain):.2%} {'better' if best.gain > 0 else 'worse'} than remembering "
        f"everything ({best.low:+.2%} to {best.high:+.2%})."
    ]


def _worth(diagnosis: Diagnosis) -> list[str]:
    rules = [one for one in diagnosis.worth[1:] if one.gain_low > 0 and one.effective >= FEW]
    if not rules or not diagnosis.test.matters:
        return []
    best = max(rules, key=lambda one: one.gain)
    base = diagnosis.worth[0]
    return [
        f"Judged on this log, playing {best.rule} would have earned {best.value:.4g} a decision, "
        f"{best.gain:+.2g} "
        f"({best.gain_low:+.2g} to {best.gain_high:+.2g}) against {base.rule} ({base.value:.4g})."
    ]


def _contexts(diagnosis: Diagnosis) -> list[str]:
    if diagnosis.beside_context is None or not diagnosis.test.matters:
        return []
    if diagnosis.beside_context.matters:
        return [
            f"The contexts do not explain it (p = {diagnosis.beside_context.p:.3f} once they are "
            "taken out)."
        ]
    return [
        "The contexts may explain it: once they are taken out, nothing is left to see (p = "
        f"{diagnosis.beside_context.p:.3f})."
    ]


def bullets(sentences: Sequence[str]) -> str:
    """Sentences as lines."""
    return "\n".join(f"- {sentence}" for sentence in sentences)


def warnings_of(
    log: Log,
    overview: Overview,
    hours: HourTable | None,
    shifts: tuple[Shift, ...],
    mixups: tuple[Mixup, ...],
    calibration: Calibration | None,
) -> list[str]:
    """Warnings about a log, in sentences."""
    sentences = list(log.reading.notes)
    if log.reading.bad.count:
        sentences.append(f"{log.reading.bad.count:,} rows could not be read and are left out")
    if overview.copies:
        sentences.append(
            f"{overview.copies:,} rows have the id of an earlier one: the same decision seems to "
            "be logged twice"
        )
    if overview.alike > 0.01 * len(log):
        sentences.append(f"{overview.alike:,} rows equal an earlier one in every column")
    sentences += [
        f"after {gap.when} there is nothing for {_length(gap.length, log.dated)}"
        for gap in overview.gaps[:3]
    ]
    sentences += _rare(log) + _small_arms(overview)
    if hours is not None:
        sentences += hiding(log, hours)
    sentences += [_shift_sentence(one) for one in shifts if one.moves > 0.1 and one.p < 0.001]
    sentences += [_mixup_sentence(one) for one in mixups]
    if calibration is None:
        sentences.append(
            "there are no propensities: what other policies would have earned cannot be judged"
        )
    elif calibration.wrong:
        worst = calibration.wrong[0]
        sentences.append(
            f"the propensities look wrong, or not every arm was on offer: for {worst.what} "
            f"{worst.slice} 1/p adds up to {worst.value:.2f} of what it should, {worst.off:.1f} "
            f"standard errors off; {len(calibration.wrong)} of {len(calibration.checks)} checks "
            "fail"
        )
    if hours is not None:
        sentences += blind_spots(hours)
    return sentences


def _small_arms(overview: Overview) -> list[str]:
    small = [arm for arm in overview.arms if 0 < arm.decisions < FEW_PLAYS]
    if not small or len(small) == len(overview.arms):
        return []
    named = ", ".join(f"'{arm.arm}' ({arm.decisions})" for arm in small[:_MOST_NAMED])
    more = f" and {len(small) - _MOST_NAMED:,} more" if len(small) > _MOST_NAMED else ""
    return [f"fewer than {FEW_PLAYS} decisions, too few to speak of: {named}{more}"]


def _rare(log: Log) -> list[str]:
    paid = log.reward[~np.isnan(log.reward)]
    if ((paid == 0) | (paid == 1)).all() and paid.min() < paid.max():
        fewer = int(min(paid.sum(), len(paid) - paid.sum()))
        if fewer < 10 * log.n_arms:
            what = "rewards of 1" if paid.mean() < 0.5 else "rewards of 0"
            return [
                f"only {fewer:,} {what} for {log.n_arms} arms: hardly anything can be told apart"
            ]
    return []


def _shift_sentence(shift: Shift) -> str:
    return (
        f"shares of arms move with the {shift.by} (Cramer's V {shift.moves:.2f}): means over the "
        "whole log compare different times"
    )


def _mixup_sentence(one: Mixup) -> str:
    within = f"{'an' if one.by == 'hour' else 'a'} {one.by}"
    return (
        f"Simpson's paradox: over the whole log '{one.better}' earns {one.apart:.3g} (± "
        f"{1.96 * one.apart_error:.2g}) more than '{one.other}', but within {within} '{one.other}' "
        f"earns {one.within:.3g} (± {1.96 * one.within_error:.2g}) more"
    )


def _length(length: float, dated: bool) -> str:
    if not dated:
        return f"{length:g} units of time"
    return f"{length / 86_400:,.1f} days" if length >= 2 * 86_400 else f"{length / 3600:,.1f} hours"
