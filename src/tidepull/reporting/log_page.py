"""One self-contained HTML page about a log: what happened, whether time matters, how, and what
follows."""

from __future__ import annotations

from typing import Any

from tidepull import __version__
from tidepull.logs import Diagnosis
from tidepull.logs.diagnosis.confounding import Mixup
from tidepull.logs.diagnosis.structure import KINDS
from tidepull.logs.diagnosis.testing import LEVEL
from tidepull.reporting import log_figures
from tidepull.reporting.tables import Cell, Table, number, render_page

_MOST_ARMS = 100


def render(found: Diagnosis) -> str:
    """The page as text.

    Parameters
    ----------
    found
        What `tidepull.logs.diagnose` says of a log.

    Returns
    -------
    str
        One HTML document with its style, script and pictures inside.
    """
    size = (
        ". ".join(line.strip().rstrip(".") for line in found.log.preview(rows=0).splitlines()[:4])
        + "."
    )
    changes = () if found.structure is None else found.structure.changes
    title = f"Diagnosis of {found.log.reading.source}"
    likely = any(change.chance >= 0.5 for change in changes)
    constants: Any = {"draw": log_figures, "level": LEVEL, "version": __version__}
    content: Any = {"found": found, "size": size, "tables": _tables(found), "likely_change": likely}
    return render_page("log.html", title=title, **content, **constants)


def _tables(found: Diagnosis) -> dict[str, Any]:
    measures = sorted(found.test.measures.items(), key=lambda item: item[1])
    tables: dict[str, Any] = {
        "arms": _arms_table(found),
        "measures": Table(
            "measures",
            "Measures of order",
            ("measure", "p by itself"),
            tuple((Cell(name), number(p, 3)) for name, p in measures),
            "The least of so many is expected to be small; p above counts that in.",
        ),
        "worth": _worth_table(found),
        "mixups": [mixup_table(mixup) for mixup in found.mixups],
    }
    structure = found.structure
    if structure is not None:
        shares = sorted(structure.weights.items(), key=lambda item: -item[1])
        tables["kinds"] = Table(
            "kinds",
            "Evidence for each kind",
            ("kind of time structure", "share of the evidence, %"),
            tuple((Cell(KINDS[kind]), number(100 * weight, 1)) for kind, weight in shares),
        )
        tables["leading"] = Table(
            "leading",
            "Leading hypotheses",
            ("in words", "share, %"),
            tuple((Cell(words), number(100 * weight, 1)) for words, weight in structure.leading),
        )
        tables["changes"] = Table(
            "changes",
            "Change points",
            ("when", "chance, %", "what moved"),
            tuple(
                (Cell(c.when), number(100 * c.chance, 0), Cell(c.words or "–"))
                for c in structure.changes
            ),
            "The chance is that of a change about then or since, if change points are the right "
            "kind.",
        )
    return tables


def _arms_table(found: Diagnosis) -> Table:
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
    more = (
        f"{len(lines) - _MOST_ARMS:,} more arms are not shown. " if len(lines) > _MOST_ARMS else ""
    )
    copies = "The log has no ids of decisions, so copies cannot be told. "
    if found.overview.copies is not None:
        copies = f"{found.overview.copies:,} rows have the id of an earlier one. "
    return Table("arms", "Arms", columns, rows, f"{more}{copies}{_gaps(found)}")


def _gaps(found: Diagnosis) -> str:
    if not found.overview.gaps:
        return "There are no long gaps." if found.log.time is not None else ""
    gaps = "; ".join(
        f"after {gap.when}: {gap.times_usual:,.0f} usual steps" for gap in found.overview.gaps
    )
    return f"Long gaps: {gaps}."


def _worth_table(found: Diagnosis) -> Table:
    rows = tuple(
        (
            Cell(one.rule), number(one.value, 4), Cell(_between(one.low, one.high)), number(one.gain, 4),
            Cell("–" if not n else _between(one.gain_low, one.gain_high)), number(one.effective, 0),
        )
        for n, one in enumerate(found.worth)
    )  # fmt: skip
    columns = (
        "playing", "mean reward", "95% interval", "gain over the first", "95% interval", "effective rows",
    )  # fmt: skip
    note = "By self-normalised inverse propensities; each rule looks at earlier decisions only."
    return Table("worth", "What remembering would have been worth", columns, rows, note)


def mixup_table(mixup: Mixup) -> Table:
    """An arm that is ahead over the whole log and behind within slices of it (Simpson's
    paradox)."""
    rows = tuple(
        (Cell(name), number(n, 0), number(mean, 4), number(other_n, 0), number(other, 4))
        for name, n, mean, other_n, other in mixup.slices
    )
    better, other, by = mixup.better, mixup.other, mixup.by
    columns = (by, f"{better}: decisions", "mean reward", f"{other}: decisions", "mean reward ")
    note = (
        f"Over the whole log {better} is ahead by {mixup.apart:.3g} (± "
        f"{1.96 * mixup.apart_error:.2g}), within a {by} {other} is, by {mixup.within:.3g} (± "
        f"{1.96 * mixup.within_error:.2g}): shares moved with the {by}."
    )
    title = f"'{better}' is ahead over the whole log, '{other}' within each {by} on average"
    return Table(f"mixup-{by}", title, columns, rows, note)


def _between(low: float, high: float) -> str:
    return f"{low:.4g} to {high:.4g}" if low == low else "–"
