"""Tideline's leaderboard, as a page of Markdown with its picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tidepull.analysis.frame import Frame
from tidepull.analysis.tideline import KINDS, Standing, Tideline
from tidepull.report.duration import duration
from tidepull.report.panel_plots import profile_figure
from tidepull.report.tables import Cell, Table, number, to_markdown


def overall_table(line: Tideline) -> Table:
    """One row for each policy."""
    rows = tuple(
        (
            Cell(_name(one)),
            number(one.overall.iqm, 3, best=place == 0),
            Cell(f"{one.overall.low:.3f} to {one.overall.high:.3f}"),
            number(one.leader, 3),
            number(one.overall.mean, 3),
            Cell(f"{one.worlds} of {line.worlds}", one.worlds),
            number(one.milliseconds, 3),
        )
        for place, one in enumerate(line.standings)
    )
    columns = ("policy", "score", "95% interval", "leader there", "mean", "worlds", "ms a round")
    return Table("tideline", "Leaderboard", columns, rows, _note(line.standings))


def kinds_table(line: Tideline) -> Table:
    """One row for each kind of world, one column for each policy that played all worlds."""
    whole = [one for one in line.standings if one.worlds == line.worlds]
    rows = []
    for kind in KINDS:
        values = [one.by_kind[kind] for one in whole]
        known = [value for value in values if value is not None]
        if known:
            rows.append(
                (
                    Cell(kind),
                    *(Cell("–") if v is None else number(v, 2, best=v == min(known)) for v in values),
                )
            )
    columns = ("kind", *(_name(one) for one in whole))
    return Table("tideline-kinds", "Mean score by kind of world", columns, tuple(rows))


def write_leaderboard(frame: Frame, line: Tideline, folder: Path, *, command: str) -> Path:
    """`leaderboard.md` and `profiles.svg` in the folder; returns the page."""
    folder.mkdir(parents=True, exist_ok=True)
    picture = ""
    if line.profiles is not None:
        profile_figure(
            line.profiles,
            title="Tideline: share of trials up to a score",
            paths=[folder / "profiles.svg"],
            scale="score (0 the specialist who knows the structure, 1 random arms)",
        )
        picture = "\n![share of trials whose score is at most x](profiles.svg)\n"
    versions = "; ".join(", ".join(f"{n} {v}" for n, v in found.items()) for found in frame.versions)
    page = f"""# Tideline: leaderboard

0 is the specialist who knows how each world changes and has only its values to learn, 1 is random arms.
Lower is better.
{line.trials:,} trials in {line.worlds} kinds of worlds, {duration(frame.cpu_seconds)} of processor time, by

```
{command}
```

{to_markdown(overall_table(line))}
{picture}
## By kind of world

{to_markdown(kinds_table(line))}
Versions: {versions}. Hardware: {"; ".join(frame.machines or frame.hardware)}.
"""
    (folder / "leaderboard.md").write_text(page)
    return folder / "leaderboard.md"


def _name(one: Standing) -> str:
    return f"{one.policy}*" if one.chosen_from > 1 else one.policy


def _note(standings: Sequence[Standing]) -> str:
    said = [
        "The score is an interquartile mean over all trials; its interval resamples trials within each problem."
    ]
    if any(one.chosen_from > 1 for one in standings):
        said.append(
            "A star: the best setting of a grid for each problem, chosen in hindsight on these very trials."
        )
    if len({one.worlds for one in standings}) > 1:
        said.append(
            "Policies that did not play all worlds stand last: compare them with the leader in the same worlds."
        )
    return " ".join(said)
