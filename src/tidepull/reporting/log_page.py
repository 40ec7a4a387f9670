"""One self-contained HTML page about a log: what happened, whether time matters, how, and what follows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files
from string import Template

from tidepull import __version__
from tidepull.logs import Diagnosis
from tidepull.logs.diagnosis.structure import KINDS
from tidepull.logs.diagnosis.testing import LEVEL
from tidepull.reporting import log_figures
from tidepull.reporting.tables import Cell, Table, number, to_html

_MOST_ARMS = 100


def render(found: Diagnosis) -> str:
    """The page as text."""
    title = f"Diagnosis of {found.log.reading.source}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="dim">{escape(_size(found))}</p>',
        "<h2>In short</h2>",
        f'<p class="verdict"><b>{escape(found.verdict)}</b></p>',
        _list(found.recommendation[1:]),
        *_warned(found),
        *_happened(found),
        *_rewards(found),
        *_matters(found),
        *_forgetting(found),
        *_propensities(found),
        *_mixups(found),
        *_made(found),
    ]
    room = files("tidepull.reporting")
    page = Template(room.joinpath("report.html").read_text(encoding="utf-8"))
    return page.substitute(
        title=escape(title),
        style=room.joinpath("report.css").read_text(encoding="utf-8"),
        body="\n".join(parts),
        data="{}",
        script=room.joinpath("report.js").read_text(encoding="utf-8"),
    )


def _size(found: Diagnosis) -> str:
    return ". ".join(line.strip().rstrip(".") for line in found.log.preview(rows=0).splitlines()[:4]) + "."


def _list(sentences: Sequence[str]) -> str:
    return '<ul class="short">' + "".join(f"<li>{escape(one)}</li>" for one in sentences) + "</ul>"


def _figure(svg: str, caption: str, note: str = "") -> str:
    told = f'<p class="note">{escape(note)}</p>' if note else ""
    return (
        f"<figure><figcaption>{escape(caption)}</figcaption><div class='picture'>{svg}</div>{told}</figure>"
    )


def _warned(found: Diagnosis) -> Iterator[str]:
    if found.warnings:
        yield f'<div class="notice" role="note"><b>Mind</b>{_list(found.warnings)}</div>'


def _happened(found: Diagnosis) -> Iterator[str]:
    yield "<h2>What happened</h2>"
    yield _figure(log_figures.shares(found), "Arms over time")
    lines = sorted(found.overview.arms, key=lambda arm: -arm.decisions)
    rows = tuple(
        (
            Cell(arm.arm), number(arm.decisions, 0), number(100 * arm.share, 1), number(arm.rewards, 0),
            number(arm.mean, 4), Cell(_between(arm.low, arm.high)), number(arm.least_propensity, 4),
            number(arm.mean_propensity, 4), number(arm.balance, 3),
        )
        for arm in lines[:_MOST_ARMS]
    )  # fmt: skip
    columns = (
        "arm", "decisions", "share, %", "rewards", "mean reward", "95% interval", "least propensity",
        "mean propensity", "sum of 1/p, of what it should be",
    )  # fmt: skip
    more = f"{len(lines) - _MOST_ARMS:,} more arms are not shown. " if len(lines) > _MOST_ARMS else ""
    yield to_html(Table("arms", "Arms", columns, rows, f"{more}{_copies(found)}{_gaps(found)}"))


def _copies(found: Diagnosis) -> str:
    if found.overview.copies is None:
        return "The log has no ids of decisions, so copies cannot be told. "
    return f"{found.overview.copies:,} rows have the id of an earlier one. "


def _gaps(found: Diagnosis) -> str:
    if not found.overview.gaps:
        return "There are no long gaps." if found.log.time is not None else ""
    told = "; ".join(f"after {gap.when}: {gap.times_usual:,.0f} usual steps" for gap in found.overview.gaps)
    return f"Long gaps: {told}."


def _rewards(found: Diagnosis) -> Iterator[str]:
    yield "<h2>Rewards over time</h2>"
    note = "Bands are 95% intervals of each stretch by itself."
    if found.structure is not None and any(change.chance >= 0.5 for change in found.structure.changes):
        note += " Dashed: changes that are likelier than not."
    yield _figure(log_figures.rewards(found), "Mean reward of each arm over time", note)
    if found.hours is None:
        return
    yield _figure(
        log_figures.by_hour(found), "Mean reward of each arm by hour of the day", "Bars are 95% intervals."
    )
    yield _figure(log_figures.heat(found, "mean"), "Mean reward of all arms by hour and weekday")
    yield _figure(log_figures.heat(found, "decisions"), "Decisions by hour and weekday")
    if found.log.propensity is not None:
        yield _figure(
            log_figures.heat(found, "effective"), "Effective rows by hour and weekday",
            "(sum 1/p)² / sum 1/p²: how many rows count for judging a policy that plays every arm alike.",
        )  # fmt: skip


def _matters(found: Diagnosis) -> Iterator[str]:
    yield "<h2>Does time matter, and how?</h2>"
    yield (
        f"<p>If nothing changes, the rewards of an arm may stand in any order. They were shuffled within arms "
        f"{found.test.shuffles:,} times: a log without time structure looks as orderly as this one with p = "
        f"{found.test.p:.4g}. Time matters here if p is at most {LEVEL:g}, which holds false alarms to {LEVEL:.0%}.</p>"
    )
    if found.beside_context is not None:
        yield f"<p>Once the contexts are taken out of the rewards, p = {found.beside_context.p:.4g}.</p>"
    rows = tuple(
        (Cell(name), number(p, 3)) for name, p in sorted(found.test.measures.items(), key=lambda i: i[1])
    )
    yield to_html(
        Table("measures", "Measures of order", ("measure", "p by itself"), rows,
              "The least of so many is expected to be small; p above counts that in.")
    )  # fmt: skip
    structure = found.structure
    if structure is None:
        return
    yield (
        "<p>Which kind it is, hypotheses about time were weighed on: all of them predicted each reward before "
        "they saw it. "
        "What they say counts where the test says that time matters; they have no such guarantee.</p>"
    )
    shares = sorted(structure.weights.items(), key=lambda item: -item[1])
    kinds = tuple((Cell(KINDS[kind]), number(100 * weight, 1)) for kind, weight in shares)
    yield to_html(
        Table(
            "kinds", "Evidence for each kind", ("kind of time structure", "share of the evidence, %"), kinds
        )
    )
    yield _figure(log_figures.weights(found), "Evidence over time")
    leading = tuple((Cell(words), number(100 * weight, 1)) for words, weight in structure.leading)
    yield to_html(Table("leading", "Leading hypotheses", ("in words", "share, %"), leading))
    if structure.changes:
        changes = tuple(
            (Cell(c.when), number(100 * c.chance, 0), Cell(c.words or "–")) for c in structure.changes
        )
        yield to_html(
            Table("changes", "Change points", ("when", "chance, %", "what moved"), changes,
                  "The chance is that of a change about then or since, if change points are the right kind.")
        )  # fmt: skip
    if structure.regime:
        yield f"<p>Regimes, if they are the right kind: {escape(structure.regime)}.</p>"


def _forgetting(found: Diagnosis) -> Iterator[str]:
    if not found.forgetting.memories:
        return
    yield "<h2>Would forgetting help?</h2>"
    yield _figure(
        log_figures.memories(found), "Predicting each reward from its arm's past, with memories of some length",
        "Against remembering everything; the band holds for all lengths together with 95%.",
    )  # fmt: skip
    if found.worth:
        rows = tuple(
            (
                Cell(one.rule), number(one.value, 4), Cell(_between(one.low, one.high)), number(one.gain, 4),
                Cell("–" if not n else _between(one.gain_low, one.gain_high)), number(one.effective, 0),
            )
            for n, one in enumerate(found.worth)
        )  # fmt: skip
        columns = (
            "playing",
            "mean reward",
            "95% interval",
            "gain over the first",
            "95% interval",
            "effective rows",
        )
        yield to_html(
            Table("worth", "What remembering would have been worth", columns, rows,
                  "By self-normalised inverse propensities; each rule looks at earlier decisions only.")
        )  # fmt: skip


def _propensities(found: Diagnosis) -> Iterator[str]:
    if found.calibration is None or not found.calibration.checks:
        return
    yield "<h2>Are the propensities right?</h2>"
    wrong = found.calibration.wrong
    said = f"{len(wrong)} of {len(found.calibration.checks)} checks fail" if wrong else "No check fails"
    yield _figure(
        log_figures.calibration(found), f"{said}: 1/p must add up to the number of decisions",
        "Bars are 95% intervals; right propensities fail once in a hundred logs.",
    )  # fmt: skip


def _mixups(found: Diagnosis) -> Iterator[str]:
    if not found.mixups:
        return
    yield "<h2>Where means mislead</h2>"
    for one in found.mixups:
        rows = tuple(
            (Cell(name), number(n, 0), number(mean, 4), number(other_n, 0), number(other, 4))
            for name, n, mean, other_n, other in one.slices
        )
        columns = (
            one.by,
            f"{one.better}: decisions",
            "mean reward",
            f"{one.other}: decisions",
            "mean reward ",
        )
        title = f"'{one.better}' is ahead over the whole log, '{one.other}' within each {one.by} on average"
        note = (
            f"Over the whole log {one.better} is ahead by {one.apart:.3g} (± {1.96 * one.apart_error:.2g}), "
            f"within a {one.by} {one.other} is, by {one.within:.3g} (± {1.96 * one.within_error:.2g}): shares moved "
            f"with the {one.by}."
        )
        yield to_html(Table(f"mixup-{one.by}", title, columns, rows, note))


def _made(found: Diagnosis) -> Iterator[str]:
    yield "<h2>How this was made</h2>"
    yield f"<p>tidepull {__version__}; {escape(found.used)}. Times are those of {escape(found.log.zone)}.</p>"
    told = escape(found.log.preview())
    yield f"<details><summary>What was understood of the log</summary><pre>{told}</pre></details>"


def _between(low: float, high: float) -> str:
    return f"{low:.4g} to {high:.4g}" if low == low else "–"
