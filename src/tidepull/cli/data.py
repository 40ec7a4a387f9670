"""What is prepared ahead of time: `tidepull data` real streams and the Criteo dataset, or a synthetic
one, and `tidepull warm-up` compiled kernels."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from rich.progress import DownloadColumn
from typer import Argument, Exit, Option, Typer

from tidepull._internal import compiler
from tidepull._internal.warm_up import missing_kernels
from tidepull._internal.warm_up import warm_up as compile_and_load
from tidepull.cli.console import out, print_json, progress, say, show_table
from tidepull.cli.options import JSON
from tidepull.errors import DataError, InputError, ParameterError
from tidepull.problems.criteo.banners import Prepared, prepared_name, save
from tidepull.problems.criteo.dataset import DIM, PUBLISHED_NAME, PUBLISHED_ROWS, SAMPLE
from tidepull.problems.datasets import cache_directory
from tidepull.reporting.tables import Cell, Table, number

app = Typer(
    help="Prepare data for problems that need it.", no_args_is_help=True, add_completion=False
)


@app.command("prepare-criteo")
def prepare_criteo(
    file: Annotated[Path, Argument(help=f"The dataset as published: {PUBLISHED_NAME}.")],
    out_file: Annotated[
        Path | None,
        Option("--out", help="File to write. Default: the cache, where the problems find it."),
    ] = None,
    dim: Annotated[int, Option(help="Length of the vectors.")] = DIM,
    sample: Annotated[int, Option(help="Rows to sample, uniformly.")] = SAMPLE,
    seed: Annotated[int, Option(help="Seed of the sample.")] = 0,
) -> None:
    """Turn the Criteo attribution dataset into the compact file that both Criteo problems play
    on."""
    from tidepull.problems.criteo.prepare import prepare_file

    size = file.stat().st_size if file.is_file() else 0
    with progress("reading", size, DownloadColumn()) as bar:

        def on_bytes(count: int) -> None:
            bar.update(bar.task_ids[0], completed=count)
            if count == size:
                bar.update(bar.task_ids[0], description="decomposing")

        prepared = prepare_file(file, dim=dim, sample=sample, seed=seed, on_bytes=on_bytes)
    target = out_file or cache_directory() / prepared_name(dim)
    save(prepared, target)
    _show(prepared, target)


@app.command("synthesize-criteo")
def synthesize_criteo(
    rows: Annotated[int, Option(help="Impressions to generate.")] = PUBLISHED_ROWS,
    out_file: Annotated[Path, Option("--out", help="File to write.")] = Path(
        "criteo_synthetic_dataset.tsv.gz"
    ),
    seed: Annotated[int, Option(help="Seed of everything in the file.")] = 0,
) -> None:
    """Generate a synthetic file with the columns, cardinalities and click rate of the Criteo
    dataset."""
    from tidepull.problems.criteo.prepare import write_synthetic

    with progress("writing", rows) as bar:
        write_synthetic(
            out_file,
            rows=rows,
            seed=seed,
            on_rows=lambda n: bar.update(bar.task_ids[0], completed=n),
        )
    out.print(f"{rows:,} synthetic impressions in {out_file}", soft_wrap=True)


@app.command("prepare-streams")
def prepare_streams(
    only: Annotated[
        list[str] | None, Option(metavar="NAME", help="This stream alone; may be repeated.")
    ] = None,
    packages: Annotated[
        Path | None, Option(help="Folder of downloaded packages. Default: packages in the cache.")
    ] = None,
) -> None:
    """Download the packages whose data are real streams, and write their arrays into the cache."""
    from tidepull.problems.datasets import find
    from tidepull.problems.prepare_streams import PREPARED, prepare
    from tidepull.problems.streams import ELECTRICITY

    if strange := sorted(set(only or []) - set(PREPARED)):
        raise ParameterError(f"there is no stream '{strange[0]}' to prepare: {', '.join(PREPARED)}")
    failed = []
    for name in only or PREPARED:
        ready = find(ELECTRICITY.name) if name == "electricity" else None
        try:
            out.print(f"{name}: {ready or prepare(name, packages=packages)}", soft_wrap=True)
        except DataError as error:
            failed.append(f"{name}: {error}")
    if failed:
        raise DataError("\n".join(failed))


@app.command("value-of-time")
def show_value_of_time(json: bool = JSON) -> None:
    """Show the mean reward of random arms, the best fixed arm, the best table of hour x weekend and
    the oracle on every real stream that is prepared."""
    from tidepull.problems import build_problem
    from tidepull.problems.streams import STREAMS
    from tidepull.problems.tables import TableWorld, value_of_time

    streams = {}
    for name in STREAMS:
        try:
            world = build_problem(("stream", {"name": name}), seed=0)
        except DataError as error:
            say(f"left out: {error}")
            continue
        if isinstance(world, TableWorld):
            streams[name] = world.n_arms, value_of_time(world.table)
    if json:
        print_json([{"stream": name, "arms": k, **asdict(v)} for name, (k, v) in streams.items()])
        return
    columns = ("stream", "arms", "rounds", "random", "best fixed arm", "best table", "oracle")
    rows = tuple(
        (
            Cell(name),
            number(k, 0),
            number(v.rounds, 0),
            *(number(x, 3) for x in (v.random, v.fixed, v.table, v.oracle)),
        )
        for name, (k, v) in streams.items()
    )
    show_table(Table("value-of-time", "Mean reward a round, in hindsight", columns, rows))


def _show(prepared: Prepared, target: Path) -> None:
    about, clicked, others = prepared.about, len(prepared.clicked), len(prepared.not_clicked)
    if prepared.synthetic:
        say("The impressions are synthetic: results on this file are labelled 'synthetic Criteo'.")
    out.print(
        f"{about['rows_seen']:,} rows read, {about['rows_sampled']:,} sampled, "
        f"{about['categories']:,} categories in {prepared.dim} dimensions\n"
        f"click rate {about['click_rate']:.3f}, of which the vectors explain "
        f"{about['r_squared']:.1%}\n"
        f"{clicked:,} clicked and {others:,} not-clicked banners in {target}",
        soft_wrap=True,
    )


def warm_up(
    check: bool = Option(
        False, "--check", help="Show which kernels are missing, with exit code 1; compile nothing."
    ),
    levels: bool = Option(
        False,
        "--levels",
        help="Compile for every x86-64 level that this processor has, for an image.",
    ),
) -> None:
    """Compile all kernels for this processor, once for all processes (about a minute)."""
    if check:
        _check()
        return
    if compiler.folder() is None:
        tried = ", ".join(map(str, compiler.places()))
        raise InputError(f"no folder can be written: {tried}; set TIDEPULL_CACHE to one that can")
    if not levels:
        compiled = compile_and_load()
        say("kernels are compiled" if compiled else "all kernels were compiled before")
        return
    if not compiler.levels():
        raise InputError("--levels is for x86-64 processors on Linux")
    for level in compiler.levels():
        say(f"compiling for {level}")
        target = {"NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": ""}
        again = [sys.executable, "-m", "tidepull", "warm-up"]
        subprocess.run(again, env=os.environ | target, check=True)


def _check() -> None:
    if compiler.is_warm():
        say("all kernels are compiled")
        return
    missing = missing_kernels()
    say(f"{len(missing)} kernels are not compiled for this processor: {', '.join(missing)}")
    raise Exit(1)
