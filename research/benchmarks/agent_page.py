"""What the agent's benchmarks measured, as tables in research/lab/agent.md.

python -m research.benchmarks.agent_page
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "research" / "lab" / "agent.md"
BEGIN, END = "<!-- measured: begin -->\n", "<!-- measured: end -->\n"
OTHERS = ("A/B test", "Thompson sampling", "best window", "clairvoyant")


def path_of(name: str) -> Path:
    """Where the results of one benchmark are."""
    return ROOT / "research" / "results" / f"{name}.csv"


def rows_of(name: str) -> list[dict[str, Any]]:
    """The rows of one benchmark."""
    with path_of(name).open(newline="") as handle:
        return list(csv.DictReader(handle))


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def speed() -> str:
    """Calls and commits."""
    rows = rows_of("agent_speed")
    calls = [row for row in rows if row["p99.9_ms"]]
    body = [
        [row["what"], *(f"{float(row[q]):.2f}" for q in ("p50_ms", "p99_ms", "p99.9_ms"))]
        for row in calls
    ]
    (raw,) = (float(row["p50_ms"]) for row in rows if row["what"].startswith("SQLite alone"))
    disk = [
        f"{row['what']}, {float(row['events_a_second']):,.0f} calls a second "
        f"({float(row['p50_ms']):.1f} ms each)"
        for row in rows
        if row["events_a_second"]
    ]
    return (
        f"**Speed** ({rows[0]['machine']}). `choose` and its `reward` together, five fields, "
        "milliseconds of the "
        "processor:\n\n"
        + table(["policy", "median", "99%", "99.9%"], body)
        + f"\nOn a disk where SQLite alone does {1e3 / raw:,.0f} commits of one row a second ({raw:.1f} ms each), "
        + f"every call safe before it returns: {'; '.join(disk)}. Threads that wait at the same time share a commit.\n"
    )


def kills() -> str:
    """How many, and what was lost."""
    rows = rows_of("agent_kills")
    twins = [row for row in rows if row["threads"] == "1"]
    alike = sum(row["like_its_twin"] == "True" for row in twins)
    return (
        f"**Kills.** {sum(int(row['kills']) for row in rows):,} processes killed (SIGKILL) at "
        "random instants, "
        f"{sum(int(row['acknowledged']) for row in rows):,} acknowledged decisions and rewards "
        "audited after them: "
        f"none lost, none doubled. {alike} of {len(twins)} agents that one thread drove decide "
        "afterwards like a twin "
        "that was never killed.\n"
    )


def further(earlier: dict[str, Any], later: dict[str, Any]) -> float:
    """Bytes for each event between two rows, so that what is there once (snapshots) does not
    count."""
    sizes = [float(row["bytes_an_event"]) * int(row["events"]) for row in (earlier, later)]
    return (sizes[1] - sizes[0]) / max(1, int(later["events"]) - int(earlier["events"]))


def million() -> str:
    """Memory, cost, bytes and restarts."""
    said = []
    rows = rows_of("agent_million")
    for policy in dict.fromkeys(row["policy"] for row in rows):
        mine = [row for row in rows if row["policy"] == policy]
        last, quarter = mine[-1], mine[max(0, len(mine) // 4 - 1)]
        said.append(
            [
                f"`{policy}`",
                f"{int(last['events']):,}",
                f"{float(quarter['ms_an_event']):.2f}, {float(last['ms_an_event']):.2f}",
                f"{float(quarter['memory_mb']):.0f}, {float(last['memory_mb']):.0f}",
                f"{further(quarter, last):.0f}",
                f"{float(last['restart_s']):.1f} s" if last["restart_s"] else "",
                f"{float(last['restart_older_s']):.1f} s ({int(last['older_records']):,})"
                if last["restart_s"]
                else "",
                f"{float(last['restart_from_nothing_s']):.0f} s"
                if last["restart_from_nothing_s"]
                else "",
            ]
        )
    columns = [
        "policy", "events", "ms an event (after a quarter, at the end)", "MB (after a quarter, at the end)",
        "bytes on disk for each further event", "restart from a fresh snapshot",
        "from an older one (records to repeat)", "without any",
    ]  # fmt: skip
    return (
        "**Many events** through one agent on disk, half decisions, half rewards, a hundred of "
        "each to a commit, with "
        "upkeep (snapshots count as bytes: the four newest are kept, and one for every doubling of "
        "their distance; "
        "those of `tide` are megabytes):\n\n"
        + table(columns, said)
        + "\n![cost and memory over events](figures/agent_million.svg)\n"
    )


def gain() -> str:
    """The agent beside the others, shop by shop."""
    rows = rows_of("agent_shops_gain")
    mine = np.array([float(row["agent"]) for row in rows])
    body = [["the agent", f"{100 * mine.mean():.1f}", "", ""]]
    for name in OTHERS:
        other = np.array([float(row[name]) for row in rows])
        gained = mine / other - 1
        error = gained.std(ddof=1) / np.sqrt(len(gained))
        body.append(
            [
                name,
                f"{100 * other.mean():.1f}",
                f"{gained.mean():+.1%} ± {1.96 * error:.1%}",
                f"{(mine > other).sum()} of {len(rows)}",
            ]
        )
    return (
        f"**{len(rows)} simulated shops** of {int(rows[0]['visits']):,} visits "
        f"(`{rows[0]['policy']}`, 5% control "
        "included): rewards minutes to days late, a tenth lost, traffic by the hour, two arms "
        "added and one retired. "
        "Clicks in 100 visits, and what the agent has more:\n\n"
        + table(["", "clicks", "the agent has (95% interval)", "the agent has more in"], body)
    )


def lift() -> str:
    """How often the intervals of `lift()` cover, at all looks and at the last one."""
    rows = rows_of("lift_coverage")
    shares = {
        name: np.mean([row[name] == "True" for row in rows])
        for name in ("always_all", "fixed_all", "fixed_last")
    }
    widths = [
        np.median([float(row[name]) for row in rows]) for name in ("always_width", "fixed_width")
    ]
    wider = np.median([float(row["always_width"]) / float(row["fixed_width"]) for row in rows])
    return (
        f"**`lift()`** in {len(rows)} other shops, looked at every day for six weeks: the confidence "
        f"sequence covers the true gain so far at all looks in {shares['always_all']:.1%} of them, "
        f"the fixed-time interval in {shares['fixed_all']:.1%}, and at the last look alone in "
        f"{shares['fixed_last']:.1%}. The sequence is {wider:.2f} times as wide at the last look "
        f"(median; {widths[0]:.3f} and {widths[1]:.3f} reward a decision).\n"
    )


def calendar() -> str:
    """Numbers of the calendar beside families of it."""
    rows = rows_of("agent_calendar")
    share: dict[str, dict[tuple[str, str], float]] = {}
    spent: dict[str, list[float]] = {}
    for row in rows:
        share.setdefault(row["variant"], {})[row["world"], row["shop"]] = float(row["share"])
        spent.setdefault(row["variant"], []).append(float(row["seconds"]))
    first, second = "calendar numbers", "time"
    shops = share[first].keys() & share[second].keys()
    gaps = np.array([share[first][shop] - share[second][shop] for shop in shops])
    means = [np.mean([share[name][shop] for shop in shops]) for name in (first, second)]
    return (
        f"**How `tide` is told the hour** was decided on {len(shops)} development shops (earlier "
        "`tide`): with the "
        f"calendar's seven numbers in its context it went {means[0]:.0%} of the way from an A/B "
        "test to knowing all, "
        f"with `Context.time` instead {means[1]:.0%} (difference {gaps.mean():+.1%} ± "
        f"{1.96 * gaps.std(ddof=1) / np.sqrt(len(gaps)):.1%}), in {np.mean(spent[first]):.1f} and "
        f"{np.mean(spent[second]):.1f} seconds a shop.\n"
    )


def measured() -> str:
    """All tables of what has been measured."""
    parts = {
        "agent_speed": speed, "agent_kills": kills, "agent_million": million, "agent_shops_gain": gain,
        "lift_coverage": lift, "agent_calendar": calendar,
    }  # fmt: skip
    return "\n".join(part() for name, part in parts.items() if path_of(name).exists())


def page(text: str) -> str:
    """The page with the tables that belong there."""
    head, rest = text.split(BEGIN)
    return head + BEGIN + "\n" + measured() + "\n" + END + rest.split(END)[1]


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
