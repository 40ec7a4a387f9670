"""`tidepull store`: check, compact, export and merge directories of results."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from typer import Argument, Exit, Option, Typer

from tidepull._internal.files import abandoned
from tidepull.cli.console import print_json, print_table, say
from tidepull.cli.options import JSON
from tidepull.experiments import maintenance
from tidepull.experiments.archive import export as write_export
from tidepull.experiments.rows import Rows, load_rows, read_plans
from tidepull.experiments.rows import compact as write_index
from tidepull.experiments.store import Store

store_app = Typer(
    help="Check, export and merge stores of results.", no_args_is_help=True, add_completion=False
)
_DIRECTORY = Argument(metavar="DIR", help="The store.")


@store_app.command()
def check(
    directory: Path = _DIRECTORY,
    remove: bool = Option(
        False, "--remove", help="Delete damaged trials and what crashes left behind."
    ),
    json: bool = JSON,
) -> None:
    """Read every byte and verify every checksum; exit code 1 when something is damaged."""
    condition = maintenance.check(Store.open(directory), remove=remove)
    if json:
        print_json(asdict(condition))
    else:
        say(
            f"{condition.sound:,} trials sound, {len(condition.damaged)} damaged, "
            f"{condition.failed} failed"
        )
        for hash, fault in condition.damaged.items():
            say(f"[red]damaged[/] {hash}: {fault}")
        for path in condition.unreadable:
            say(f"[red]unreadable[/] {path}")
        for path in (*condition.orphans, *condition.leftovers):
            say(f"[yellow]left behind[/] {path}")
        if not condition.good and not remove:
            say("the next sweep of the suite runs damaged trials again and rewrites its plan")
    if not condition.good:
        raise Exit(1)


@store_app.command()
def info(directory: Path = _DIRECTORY, json: bool = JSON) -> None:
    """Count the trials of each suite and policy, and their CPU hours."""
    store = Store.open(directory)
    lines = []
    for plan in read_plans(store):
        loaded = load_rows(store, plan.suite)
        for name in dict.fromkeys(trial.name for trial in plan.trials):
            rows = [row for row in loaded.rows if row.name == name]
            lines.append(
                {
                    "suite": plan.suite,
                    "name": name,
                    "settings": len({row.setting for row in rows}),
                    "trials": len(rows),
                    "of": sum(trial.name == name for trial in plan.trials),
                    "cpu_hours": round(sum(row.cpu_seconds for row in rows) / 3600, 4),
                    "machines": sorted({row.machine for row in rows}),
                }
            )
    if json:
        print_json(lines)
        return
    columns = ["suite", "name", "settings", "trials", "of", "cpu_hours"]
    table = [[str(line[column]) for column in columns] for line in lines]
    print_table(str(directory), columns, table, right=(2, 3, 4, 5))


@store_app.command()
def compact(directory: Path = _DIRECTORY, json: bool = JSON) -> None:
    """Rewrite the index, which makes reading all summaries fast."""
    store = Store.open(directory)
    for path in abandoned(store.directory):
        path.unlink(missing_ok=True)
    census = write_index(store)
    if json:
        print_json({"indexed": len(census.sound), "damaged": census.damaged})
    else:
        say(f"{len(census.sound):,} trials indexed, {len(census.damaged)} damaged ones left out")


@store_app.command()
def export(
    directory: Path = _DIRECTORY,
    out: Path = Option(..., help="A .csv, .jsonl or .parquet file."),
    suite: str = Option(None, help="Only this suite's trials."),
    by_setting: bool = Option(
        False, "--by-setting", help="Averages of each setting instead of trials."
    ),
    columns: str = Option(
        None, help="Columns to write, such as problem,setting,regret_mean. Default: all."
    ),
) -> None:
    """Write all trials, or the averages of all settings, as one flat table."""
    loaded = load_rows(Store.open(directory), suite)
    chosen = [name.strip() for name in columns.split(",")] if columns else None
    lines = write_export(loaded.rows, out, by_setting=by_setting, columns=chosen)
    say(f"{lines:,} lines in {out}")
    say_gaps(loaded)


@store_app.command()
def archive(
    directory: Path = _DIRECTORY,
    out: Path = Option(..., help="Folder to write to; its trials of earlier stores are kept."),
) -> None:
    """Write every trial's totals, and thinned curves of those that are reported, as CSV to keep
    with the source."""
    from tidepull.paper.studies import keep

    trials, curves = keep(Store.open(directory), out)
    say(
        f"{trials:,} trials in {out}, {curves:,} with curves; `tidepull select` and `--known` read "
        "them"
    )


@store_app.command()
def merge(
    into: Path = Argument(help="The store that receives."),
    others: list[Path] = Argument(help="Stores to take trials from."),
    json: bool = JSON,
) -> None:
    """Copy trials of other stores into the first; trials that differ are named and not copied."""
    merged = maintenance.merge(Store.create(into), [Store.open(other) for other in others])
    write_index(Store.open(into))
    if json:
        print_json(asdict(merged))
    else:
        say(f"{merged.added:,} trials added, {merged.present:,} were there already")
        for hash, fault in merged.damaged.items():
            say(f"[yellow]damaged, not copied[/] {hash}: {fault}")
        for id in merged.conflicts:
            say(f"[red]differs between the stores, the first is kept[/] {id}")
        if merged.renamed:
            say(
                f"[yellow]{len(merged.renamed):,} trials[/] (such as {merged.renamed[0]}) are of "
                "another version of their suite; they were copied and belong to no suite here"
            )
    if merged.conflicts:
        raise Exit(1)


@store_app.command()
def diff(a: Path = Argument(help="A store."), b: Path = Argument(help="Another one.")) -> None:
    """Compare two stores byte by byte, apart from times and machines; exit code 1 when they
    differ."""
    differences = maintenance.differences(Store.open(a), Store.open(b))
    for difference in differences[:20]:
        say(difference)
    say(f"{len(differences):,} differences" if differences else "the same results")
    if differences:
        raise Exit(1)


def say_gaps(loaded: Rows, most: int = 10) -> None:
    """Name what a suite asked for and the store does not have."""
    for what, ids in (
        ("missing", loaded.missing),
        ("damaged", tuple(loaded.damaged)),
        ("failed", tuple(loaded.failed)),
    ):
        if ids:
            say(
                f"[yellow]{len(ids):,} {what}[/]: "
                f"{', '.join(ids[:most])}{' ...' if len(ids) > most else ''}"
            )
