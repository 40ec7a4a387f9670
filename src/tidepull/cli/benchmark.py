"""`tidepull benchmark`: play what is missing of Tideline, then show the leaderboard; the same
command continues."""

from __future__ import annotations

import tomllib
from dataclasses import asdict
from pathlib import Path
from typing import Any

from typer import Argument, Context, Option, Typer

from tidepull._internal.extras import needs
from tidepull.cli import options
from tidepull.cli.console import print_json, say, show_table
from tidepull.cli.sweep import sweep
from tidepull.errors import InputError, WrongStoreError
from tidepull.experiments.archive import is_archive
from tidepull.experiments.store import Store
from tidepull.experiments.suite import find_suite
from tidepull.reporting.frames import archived_frame, load_frame
from tidepull.reporting.leaderboard import write_leaderboard
from tidepull.reporting.submission import export_worlds, score_arms
from tidepull.reporting.tables import Cell, Table, number
from tidepull.reporting.tideline import Standing, Tideline, board_table, kinds_table, tideline

app = Typer(add_completion=False, invoke_without_command=True)


@app.callback()
def benchmark(
    context: Context,
    quick: bool = Option(False, "--quick", help="One small problem of every kind, two seeds."),
    edition: int = Option(
        1, min=1, max=2, help="1: every kind of drift. 2: shops and real streams with hours."
    ),
    policy: list[str] = Option(
        [], metavar="ID", help="Also play this policy, of tidepull or of --module; may be repeated."
    ),
    module: list[Path] = Option(
        [], metavar="FILE", help="Python file that registers policies; may be repeated."
    ),
    out: Path = Option(None, help="Store to write to. Default: out/tideline[-2][-quick]."),
    workers: options.Workers = None,
    play: bool = Option(
        True, "--play/--no-play", help="Play what is missing, or only report (also of an archive)."
    ),
    partial: bool = Option(True, "--partial/--complete", help=options.PARTIAL_HELP),
    on: options.On = "local",
    address: options.Address = None,
    docs: Path = Option(
        None, help="Also write the page into this folder, such as docs/tideline-2."
    ),
    json: bool = options.JSON,
) -> None:
    """Run Tideline: every kind of problem, scored between the structure oracle (0) and random arms
    (1)."""
    if context.invoked_subcommand is not None:
        return
    name = ("tideline" if edition == 1 else f"tideline-{edition}") + ("-quick" if quick else "")
    directory = out or Path("out") / name
    if play:
        suite = name
        if policy or module:
            suite = str(with_policies(name, policy, module, directory))
        sweep(suite, directory, workers, partial=partial, on=on, address=address)
    if not directory.exists():
        raise WrongStoreError(
            f"there is no store {directory}; leave out --no-play to play Tideline into it"
        )
    archived = not play and is_archive(directory)
    frame = archived_frame(directory) if archived else load_frame([Store.open(directory)])
    line = tideline(frame)
    if not line.boards:
        raise InputError(
            f"{directory} has no trials between the two lines yet: specialist and random must play"
        )
    words = [
        "tidepull benchmark",
        "" if edition == 1 else f"--edition {edition}",
        "--quick" if quick else "",
        *(f"--module {path.name}" for path in module),
    ]
    command = " ".join(word for word in [*words, *(f"--policy {id}" for id in policy)] if word)
    folder = docs if archived and docs is not None else directory / "leaderboard"
    page = write_leaderboard(frame, line, folder, command=command)
    if docs is not None and docs != folder:
        write_leaderboard(frame, line, docs, command=command)
    _show(line, json=json)
    say(f"the page: {page}")


@app.command("export")
def export(
    folder: Path = Argument(help="Folder to write to."),
    quick: bool = Option(False, "--quick", help="The worlds of the quick run."),
) -> None:
    """Write the worlds of Tideline 2 as CSV files with checksums, for programs in any language."""
    say(f"the manifest: {export_worlds(_exported(quick), folder)}")


@app.command("score")
def score(
    arms: Path = Argument(help="CSV file with the columns world, seed, round and arm."),
    quick: bool = Option(False, "--quick", help="The worlds of the quick run."),
    json: bool = options.JSON,
) -> None:
    """Score arms that another program chose in exported worlds: 0 is the oracle, 1 random arms."""
    scored = score_arms(_exported(quick), arms)
    if json:
        print_json([asdict(one) for one in scored])
        return
    rows = tuple(
        (
            Cell(f"{one.world}, seed {one.seed}"),
            number(one.rounds, 0),
            number(one.reward, 1),
            number(one.regret, 1),
            number(one.score, 3),
        )
        for one in scored
    )
    mean = sum(one.score for one in scored) / len(scored)
    columns = ("world", "rounds", "reward", "regret", "score")
    show_table(Table("submission", f"Mean score {mean:.3f}", columns, rows))


def _exported(quick: bool) -> str:
    return "tideline-2-quick" if quick else "tideline-2"


def with_policies(name: str, policies: list[str], modules: list[Path], directory: Path) -> Path:
    """The suite with more policies, written beside its results."""
    with needs("tidepull benchmark", "experiments"):
        import tomli_w
    table = tomllib.loads(find_suite(name).read_text())
    known = {one["name"] for one in table["policies"]}
    table["policies"] += [{"name": id} for id in policies if id not in known]
    table["modules"] = [*table.get("modules", []), *(str(path.resolve()) for path in modules)]
    Store.create(directory)
    path = directory / f"{name}.toml"
    path.write_text(tomli_w.dumps(table))
    return path


def _show(line: Tideline, *, json: bool) -> None:
    if json:
        rows: dict[str, dict[str, Any]] = {}
        for board in line.boards:
            for one in board.standings:
                rows.setdefault(one.policy, _row(one, worlds=len(board.problems)))
        print_json(list(rows.values()))
        return
    for board in line.boards:
        show_table(board_table(line, board))
        show_table(kinds_table(board))


def _row(one: Standing, *, worlds: int) -> dict[str, Any]:
    """A policy on the largest board that it stands on."""
    return {
        "policy": one.policy,
        "score": one.overall.iqm,
        "low": one.overall.low,
        "high": one.overall.high,
        "worlds": worlds,
        "milliseconds": one.milliseconds,
        "chosen_from": one.chosen_from,
        "library": one.library,
        "kinds": dict(one.by_kind),
    }
