"""What follows from a diagnosis, in plain words and with its uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tidepull.logs.diagnosis.structure import KINDS, span
from tidepull.logs.diagnosis.testing import LEVEL
from tidepull.logs.weights import FEW

if TYPE_CHECKING:
    from tidepull.logs.diagnosis.diagnose import Diagnosis

_SURE, _LIKELY = 0.95, 0.7
_DO = {
    "drift": "Let the policy forget: tide does by itself, d-ucb and sw-ucb with the memory named here.",
    "changes": "Let the policy notice changes: tide does by itself; what lies before the last change misleads.",
    "rounds": "Let the policy remember the season: tide finds it by itself; forgetting alone comes too late each time.",
    "clock": "Give the policy the time: tide reads it, and so does an agent with its calendar on.",
    "regimes": "Let the policy remember regimes and recognise them when they come back: tide does by itself.",
    "last": "Let the policy look at what was played last: tide does, rnlps too.",
}


def named(found: Diagnosis) -> str:
    """The kind of time structure that the log is said to have: nothing, unless the test says that time matters."""
    if not found.test.matters:
        return "nothing"
    return found.structure.kind_of_change if found.structure is not None else "something"


def verdict(found: Diagnosis) -> str:
    """One sentence: does time matter, how, and how sure is that."""
    p = f"p = {found.test.p:.3f}" if found.test.p >= 0.0015 else f"p = {found.test.p:.4f}"
    if not found.test.measures:
        return "Whether time matters cannot be said: rewards do not vary, or there are too few."
    if not found.test.matters:
        said = f"No sign that rewards depend on time ({p}; false alarms are held to {LEVEL:.0%})"
        if found.structure is not None and found.structure.weights["nothing"] < 0.5:
            said += (
                f"; hypotheses lean to {KINDS[found.structure.kind_of_change]} "
                f"({found.structure.weights[found.structure.kind_of_change]:.0%}), which the test does not bear out"
            )
        return said + "."
    if found.structure is None:
        return f"Rewards depend on time ({p})."
    kind = found.structure.kind_of_change
    weight = found.structure.weights[kind]
    how = "surely" if weight >= _SURE else "probably" if weight >= _LIKELY else "perhaps"
    return f"Rewards depend on time ({p}), {how} by {KINDS[kind]} ({weight:.0%} of the evidence)."


def recommendation(found: Diagnosis) -> tuple[str, ...]:
    """What to do, and how far to believe it."""
    said = [verdict(found)]
    kind = named(found)
    if kind == "nothing" and found.test.measures:
        said.append(_unnoticed(found))
        said.append(
            "A policy that forgets nothing (bernoulli-ts, ucb, or tide, which will find out) is enough for what "
            "this log shows."
        )
    elif kind in _DO:
        assert found.structure is not None
        said += _details(found, kind)
        said.append(_DO[kind])
        others = _others(found, kind)
        if others:
            said.append(f"Not ruled out: {others}.")
    said += _forgetting(found) + _worth(found) + _contexts(found)
    if found.calibration is not None and found.calibration.wrong:
        said.append("Mend the propensities before you judge other policies on this log.")
    return tuple(said)


def _details(found: Diagnosis, kind: str) -> list[str]:
    structure = found.structure
    assert structure is not None
    if kind == "changes" and structure.changes:
        told = [
            f"{one.when} ({one.chance:.0%}){': ' + one.words if one.words else ''}"
            for one in structure.changes[-3:]
        ]
        return ["It changed at " + "; ".join(told) + "."]
    if kind == "regimes" and structure.regime:
        return [f"At the end: {structure.regime}."]
    said = (
        [f"In words: {structure.leading[0][0]} ({structure.leading[0][1]:.0%})."] if structure.leading else []
    )
    if kind == "clock" and structure.hours:
        said.append("; ".join(structure.hours[:4]) + ".")
    return said


def _others(found: Diagnosis, kind: str) -> str:
    assert found.structure is not None
    rest = {k: w for k, w in found.structure.weights.items() if k not in (kind, "nothing") and w >= 0.05}
    return ", ".join(f"{KINDS[k]} ({w:.0%})" for k, w in sorted(rest.items(), key=lambda item: -item[1]))


def _unnoticed(found: Diagnosis) -> str:
    busiest = max(found.overview.arms, key=lambda arm: arm.rewards)
    half = (busiest.high - busiest.low) / 2
    # two halves of the log, each with half the rewards: the difference has twice the standard error of the mean
    change = 2 * half / 1.96 * 3.2
    return (
        f"That is no proof: if the mean of '{busiest.arm}' ({busiest.mean:.3g}), the arm known best, had moved by less "
        f"than about {change:.2g} between the halves of the log, it might well have gone unnoticed."
    )


def _forgetting(found: Diagnosis) -> list[str]:
    best = found.forgetting.best
    if best is None:
        return []
    memory = f"{best.decisions:,.0f} decisions" + (
        f" ({span(best.seconds)})" if best.seconds == best.seconds else ""
    )
    if found.forgetting.helps:
        return [
            f"Forgetting would help: with a memory of about {memory} rewards are predicted {best.gain:.1%} better "
            f"than by remembering everything ({best.low:.1%} to {best.high:.1%})."
        ]
    return [
        f"Forgetting would not help for sure: the best memory, {memory}, predicts {abs(best.gain):.2%} "
        f"{'better' if best.gain > 0 else 'worse'} than remembering everything ({best.low:+.2%} to {best.high:+.2%})."
    ]


def _worth(found: Diagnosis) -> list[str]:
    rules = [one for one in found.worth[1:] if one.gain_low > 0 and one.effective >= FEW]
    if not rules or not found.test.matters:
        return []
    best = max(rules, key=lambda one: one.gain)
    base = found.worth[0]
    return [
        f"Judged on this log, playing {best.rule} would have earned {best.value:.4g} a decision, {best.gain:+.2g} "
        f"({best.gain_low:+.2g} to {best.gain_high:+.2g}) against {base.rule} ({base.value:.4g})."
    ]


def _contexts(found: Diagnosis) -> list[str]:
    if found.beside_context is None or not found.test.matters:
        return []
    if found.beside_context.matters:
        return [f"The contexts do not explain it (p = {found.beside_context.p:.3f} once they are taken out)."]
    return [
        "The contexts may explain it: once they are taken out, nothing is left to see (p = "
        f"{found.beside_context.p:.3f})."
    ]


def listed(sentences: Sequence[str]) -> str:
    """Sentences as lines."""
    return "\n".join(f"- {sentence}" for sentence in sentences)
