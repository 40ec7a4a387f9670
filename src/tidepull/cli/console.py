"""What people see: colour and tables in a terminal, plain lines in a pipe, JSON for machines."""

from __future__ import annotations

import inspect
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from tidepull.errors import InputError

if TYPE_CHECKING:
    from tidepull.reporting.tables import Table as Data

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


def say(text: str) -> None:
    """One line of remark, on stderr so that pipes stay clean."""
    err.print(text, soft_wrap=True)


def print_json(value: Any) -> None:
    """Only JSON on stdout; paths are texts, and what is not finite is null."""
    sys.stdout.write(json.dumps(_plain(value), indent=2, default=str) + "\n")


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: Iterable[int] = ()
) -> None:
    """A coloured table in a terminal, aligned columns without wrapping in a pipe."""
    numeric = set(right)
    if not out.is_terminal:
        _print_plain(title, columns, rows, numeric)
        return
    table = Table(title=title, title_justify="left", title_style="bold", header_style="bold cyan")
    for index, column in enumerate(columns):
        side: Literal["left", "right"] = "right" if index in numeric else "left"
        table.add_column(column, justify=side, no_wrap=index == 0)
    for row in rows:
        table.add_row(*row)
    out.print(table)


def show_table(table: Data) -> None:
    """Print a table of results, numbers on the right and the best in bold."""
    right = [i for i in range(len(table.columns)) if table.numeric(i)]
    rows = [[f"[bold]{one.text}[/]" if one.best else one.text for one in row] for row in table.rows]
    print_table(table.title, table.columns, rows, right=right)


def _print_plain(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], numeric: set[int]
) -> None:
    lines = [list(columns), *[[_strip(cell) for cell in row] for row in rows]]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    print(title)
    for line in lines:
        cells = [
            c.rjust(w) if i in numeric else c.ljust(w)
            for i, (c, w) in enumerate(zip(line, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())


def _strip(markup: str) -> str:
    from rich.text import Text

    return Text.from_markup(markup).plain


@contextmanager
def progress(
    description: str, total: int, amount: ProgressColumn | None = None
) -> Iterator[Progress]:
    """A bar with the time left, on stderr; `advance` the only task by its id 0."""
    bar = Progress(
        TextColumn("[bold]{task.description}"),
        BarColumn(),
        amount or MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=err,
        transient=True,
        disable=not err.is_terminal,
    )
    with bar:
        bar.add_task(description, total=total)
        yield bar


def replace_first(
    command: Callable[..., None], parameters: Iterable[inspect.Parameter], run: Callable[..., None]
) -> Callable[..., None]:
    """`run` as a command with some parameters in place of the first one of another command."""
    _, *own = inspect.signature(command, eval_str=True).parameters.values()
    keyword = inspect.Parameter.KEYWORD_ONLY
    shown = [parameter.replace(kind=keyword) for parameter in (*parameters, *own)]
    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    run.__doc__ = command.__doc__
    return run


def json_object(text: str | None, option: str) -> dict[str, Any] | None:
    """The JSON object that an option has; None where it was not given."""
    if text is None:
        return None
    try:
        value = json.loads(text)
    except ValueError as error:
        raise InputError(f"{option} must be JSON ({error})") from None
    if not isinstance(value, dict):
        raise InputError(f"{option} must be a JSON object, got {text!r}")
    return value
