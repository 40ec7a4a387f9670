"""What the suites ask for and has not been played, said policy by policy instead of as one number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tidepull.reporting.frames import Frame
from tidepull.reporting.tables import Cell, Table, number, to_markdown


def played_section(frame: Frame) -> Iterator[str]:
    """How many trials there are; which ones are not, and by which commands they come."""
    gaps = frame.gaps
    if not gaps:
        return
    lost = len(gaps.missing) + len(gaps.failed) + len(gaps.damaged)
    yield "### What was played"
    yield (
        f"{frame.trials:,} trials are behind this page. The suites ask for {lost:,} more, which were not played yet "
        f"({len(gaps.failed):,} failed, {len(gaps.damaged):,} damaged); `tidepull sweep SUITE --known results/trials` "
        "plays them. Cells and claims that need them are empty, or open and say so. Settings that a search by halving "
        "left behind are not among them: they are not played on by design."
    )
    yield to_markdown(not_played(frame))


def not_played(frame: Frame) -> Table:
    """A row for each policy that lacks trials, with the problems."""
    gaps = frame.gaps
    counts: Counter[tuple[str, str, bool]] = Counter()
    for id in (*gaps.missing, *gaps.failed, *gaps.damaged):
        problem, *names = id.split("/")[:-1]
        searched = len(names) > 1 and "=" in names[-1]
        counts[names[-2] if searched else names[-1], problem, searched] += 1
    policies = dict.fromkeys((name, searched) for name, _, searched in counts)
    rows = []
    for name, searched in policies:
        at = {problem: n for (other, problem, of), n in counts.items() if (other, of) == (name, searched)}
        rows.append(
            (
                Cell(f"{name}, settings of a search that goes on" if searched else name),
                Cell(", ".join(f"{problem} ({n})" for problem, n in at.items())),
                number(sum(at.values()), 0),
            )
        )
    return Table("not-played", "Not played yet", ("policy", "problems (trials)", "trials"), tuple(rows))
