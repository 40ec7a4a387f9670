"""`tidepull report DIR` and `tidepull compare A B`: results of stores as a page, and side by
side."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from typer import Argument, Option

from tidepull.cli.console import err, print_json, print_table, say
from tidepull.cli.options import JSON
from tidepull.errors import ParameterError, WrongStoreError
from tidepull.experiments.store import Store
from tidepull.reporting.frames import load_frame
from tidepull.reporting.published import ComparisonRow, verdict, versus_paper, versus_store
from tidepull.reporting.report import FORMATS, ReportFiles, build_report
from tidepull.reporting.tables import interval, number, spread

_KNOWN = ("svg", "pdf", "png")
_PAPER = "paper"


def report(
    directories: list[Path] = Argument(metavar="DIR", help="One or more stores."),
    out: Path = Option(None, help="Folder to write to. Default: DIR/report."),
    formats: str = Option(",".join(FORMATS), help=f"Formats of the figures: {', '.join(_KNOWN)}."),
    json: bool = JSON,
) -> None:
    """Write one self-contained HTML page of a store, with its figures and tables beside it."""
    wanted = [part.strip() for part in formats.split(",") if part.strip()]
    if unknown := [part for part in wanted if part not in _KNOWN]:
        raise ParameterError(f"--formats knows {', '.join(_KNOWN)}, got '{unknown[0]}'")
    stores = [Store.open(directory) for directory in directories]
    with err.status("reading", spinner="dots") as status:
        result = build_report(
            stores,
            out or directories[0] / "report",
            formats=wanted,
            on_study=lambda study: status.update(f"reading {study.suite} {study.problem}"),
        )
    announce(result, json=json)


def announce(result: ReportFiles, *, json: bool, **more: Any) -> None:
    """Say what was found and where it is; `more` stands in the JSON too."""
    gaps = result.frame.gaps
    if json:
        files = {"page": result.page, "figures": result.figures, "tables": result.tables}
        counts = {name: len(ids) for name, ids in asdict(gaps).items()}
        verdicts = [
            {"suite": s.suite, "problem": s.title, "verdict": verdict(s)}
            for s in result.frame.studies
        ]
        trials = {"trials": result.frame.trials, **counts}
        print_json({**files, **trials, "verdicts": verdicts, **more})
        return
    if gaps:
        say(
            f"[yellow]not all trials are here[/]: {len(gaps.failed):,} failed, "
            f"{len(gaps.missing):,} missing, {len(gaps.damaged):,} damaged"
        )
    for study in result.frame.studies:
        print(f"{study.title}: {verdict(study)}")
    say(
        f"page: [bold]{result.page}[/], {len(result.figures)} figures and {len(result.tables)} "
        "tables beside it"
    )


def compare(
    a: Path = Argument(help="A store."),
    b: str = Argument(help=f"Another store, or '{_PAPER}' for the paper's table."),
    json: bool = JSON,
) -> None:
    """Compare the final regrets of two stores, with 95% intervals of the differences."""
    ours = load_frame([Store.open(a)])
    with_paper = b == _PAPER and not Path(b).is_dir()
    lines = list(
        versus_paper(ours) if with_paper else versus_store(ours, load_frame([Store.open(b)]))
    )
    if not lines:
        raise WrongStoreError(
            f"nothing in {a} has its like in {b}: the same problem, horizon and name of the policy "
            "are needed"
        )
    if json:
        print_json([_as_json(line) for line in lines])
        return
    columns = ["problem", "policy", "rounds", "A", "B", "A - B", "95% interval", "common seeds"]
    cells = [_cells(line) for line in lines]
    print_table(f"Final regret: A is {a}, B is {b}", columns, cells, right=range(2, 8))
    clear = sum(line.difference.clear for line in lines)
    say(f"{clear} of {len(lines)} differences are clear (their 95% interval leaves out zero)")
    if any(0 < line.difference.pairs < max(line.a.trials, line.b.trials) for line in lines):
        say("A - B is taken over the common seeds alone, A and B over all of theirs")
    if any(line.policy.endswith("*") for line in lines):
        say(
            "* the best setting of a grid, chosen on these very trials; it may be another one in A "
            "than in B"
        )


def _cells(line: ComparisonRow) -> list[str]:
    d = line.difference
    return [
        line.problem,
        line.policy,
        f"{line.horizon:,}",
        spread(line.a.mean, line.a.std).text,
        spread(line.b.mean, line.b.std).text,
        f"[bold]{number(d.mean).text}[/]" if d.clear else number(d.mean).text,
        interval(d.low, d.high).text,
        str(d.pairs) if d.pairs else "–",
    ]


def _as_json(line: ComparisonRow) -> dict[str, Any]:
    d = line.difference
    return {
        "problem": line.problem,
        "policy": line.policy.removesuffix("*"),
        "chosen_on_these_trials": line.policy.endswith("*"),
        "horizon": line.horizon,
        "a": {"mean": line.a.mean, "std": line.a.std, "trials": line.a.trials},
        "b": {"mean": line.b.mean, "std": line.b.std, "trials": line.b.trials},
        "difference": {"mean": d.mean, "low": d.low, "high": d.high, "clear": d.clear},
        "common_seeds": d.pairs,
        "seeds_won": d.wins,
    }
