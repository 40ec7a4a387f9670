"""`tidepull data`: prepare the Criteo dataset, or generate a synthetic one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from tidepull.cli.console import err, out, say
from tidepull.problems.criteo.banners import Prepared, prepared_name, save
from tidepull.problems.criteo.dataset import DIM, PUBLISHED_NAME, PUBLISHED_ROWS, SAMPLE
from tidepull.problems.datasets import cache_directory

app = typer.Typer(
    help="Prepare data for problems that need it.", no_args_is_help=True, add_completion=False
)


@app.command("prepare-criteo")
def prepare_criteo(
    file: Annotated[Path, typer.Argument(help=f"The dataset as published: {PUBLISHED_NAME}.")],
    out_file: Annotated[
        Path | None,
        typer.Option(
            "--out", help="File to write. Default: the cache, where the problems find it."
        ),
    ] = None,
    dim: Annotated[int, typer.Option(help="Length of the vectors.")] = DIM,
    sample: Annotated[int, typer.Option(help="Rows to sample, uniformly.")] = SAMPLE,
    seed: Annotated[int, typer.Option(help="Seed of the sample.")] = 0,
) -> None:
    """Turn the Criteo attribution dataset into the compact file that both Criteo problems play
    on."""
    from tidepull.problems.criteo.prepare import prepare_file

    size = file.stat().st_size if file.is_file() else 0
    with _bar("reading", size, DownloadColumn()) as bar:

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
    rows: Annotated[int, typer.Option(help="Impressions to generate.")] = PUBLISHED_ROWS,
    out_file: Annotated[Path, typer.Option("--out", help="File to write.")] = Path(
        "criteo_synthetic_dataset.tsv.gz"
    ),
    seed: Annotated[int, typer.Option(help="Seed of everything in the file.")] = 0,
) -> None:
    """Generate a synthetic file with the columns, cardinalities and click rate of the Criteo
    dataset."""
    from tidepull.problems.criteo.prepare import write_synthetic

    with _bar("writing", rows, MofNCompleteColumn()) as bar:
        write_synthetic(
            out_file,
            rows=rows,
            seed=seed,
            on_rows=lambda n: bar.update(bar.task_ids[0], completed=n),
        )
    out.print(f"{rows:,} synthetic impressions in {out_file}", soft_wrap=True)


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


@contextmanager
def _bar(description: str, total: int, amount: ProgressColumn) -> Iterator[Progress]:
    columns = TextColumn("[bold]{task.description}"), BarColumn(), amount, TimeElapsedColumn()
    left = TextColumn("left"), TimeRemainingColumn()
    with Progress(*columns, *left, console=err, transient=True, disable=not err.is_terminal) as bar:
        bar.add_task(description, total=total)
        yield bar
