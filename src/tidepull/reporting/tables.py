"""A table as data and its rendering as Markdown, CSV, LaTeX and HTML; durations and provenance in
words."""

from __future__ import annotations

import csv
import io
import json
import math
import platform
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from tidepull._internal.extras import needs
from tidepull.experiments.executors import usable_cpus
from tidepull.experiments.grid import seeds_text
from tidepull.reporting.frames import Frame

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Cell:
    """What is shown, the number behind it (for sorting), and whether it is the best of its kind."""

    text: str
    value: float | None = None
    best: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """`name` becomes a file's name; rows have one cell for each column; the first column names the
    row."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"table {self.name}: every row needs {len(self.columns)} cells")

    def numeric(self, column: int) -> bool:
        """Whether any cell of that column has a number behind it."""
        return any(row[column].value is not None for row in self.rows)


def table_of(
    name: str,
    title: str,
    items: Iterable[T],
    columns: Mapping[str, Callable[[T], Cell]],
    note: str = "",
) -> Table:
    """A table with a row for each item; a column is its heading and the cell that it makes of an
    item."""
    rows = tuple(tuple(cell(item) for cell in columns.values()) for item in items)
    return Table(name, title, tuple(columns), rows, note)


def number(value: float, digits: int = 1, *, best: bool = False, unit: str = "") -> Cell:
    """A figure with thousands separators; a dash where it is not known."""
    if not math.isfinite(value):
        return Cell("–")
    return Cell(f"{value:,.{digits}f}{unit}", value, best)


def spread(mean: float, std: float, *, best: bool = False) -> Cell:
    """`mean ± standard deviation`, sorted by its mean; the mean alone where there was one trial."""
    text = f"{mean:,.1f} ± {std:,.1f}" if math.isfinite(std) else f"{mean:,.1f}"
    return Cell(text, mean, best)


def share(value: float) -> Cell:
    """A share as a whole percentage."""
    return number(100 * value, 0, unit="%")


def interval(low: float, high: float, digits: int = 1) -> Cell:
    """`low to high`."""
    return Cell(f"{low:,.{digits}f} to {high:,.{digits}f}" if math.isfinite(low) else "–")


def to_markdown(table: Table) -> str:
    """A pipe table, the best in bold."""
    marks = ["---:" if table.numeric(i) else ":---" for i in range(len(table.columns))]
    lines = [_piped(table.columns), _piped(marks)]
    lines += [
        _piped([f"**{cell.text}**" if cell.best else cell.text for cell in row])
        for row in table.rows
    ]
    return "\n".join(lines) + ("\n\n" + table.note if table.note else "") + "\n"


def to_csv(table: Table) -> str:
    """What is shown, as shown; the results behind it are in the store's own export."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows([cell.text for cell in row] for row in table.rows)
    return text.getvalue()


def to_latex(table: Table) -> str:
    """A tabular for the booktabs package."""
    shape = "".join("r" if table.numeric(i) else "l" for i in range(len(table.columns)))
    lines = [
        f"% {table.title}",
        rf"\begin{{tabular}}{{{shape}}}",
        r"\toprule",
        " & ".join(map(_tex, table.columns)) + r" \\",
        r"\midrule",
    ]
    for row in table.rows:
        cells = [rf"\textbf{{{_tex(cell.text)}}}" if cell.best else _tex(cell.text) for cell in row]
        lines.append(" & ".join(cells) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    return "\n".join(lines) + "\n"


def to_html(table: Table) -> str:
    """A table whose headings sort it (the page's script makes them do so)."""
    return str(_templates().get_template("macros.html").module.table(table))


def render_page(
    template: str, *, data: Mapping[str, Any] = MappingProxyType({}), **values: Any
) -> str:
    """A page from a template of `templates/`, with its style and script inside; `data` is read by
    the script."""
    package = files("tidepull.reporting")
    style, script = (
        package.joinpath(name).read_text(encoding="utf-8") for name in ("report.css", "report.js")
    )
    # "</script" would end the element and "<!--" begin a comment: no "<" may stand in it as it is.
    numbers = json.dumps(dict(data), separators=(",", ":")).replace("<", "\\u003c")
    page = _templates().get_template(template)
    return str(page.render(values, style=style, data=numbers, script=script))


@lru_cache(maxsize=1)
def _templates() -> Any:
    """The environment of all templates, which escapes whatever is not marked as safe."""
    with needs("writing pages", "experiments"):
        from jinja2 import Environment, PackageLoader, StrictUndefined
    return Environment(
        loader=PackageLoader("tidepull.reporting"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )


def _piped(cells: list[str] | tuple[str, ...]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _tex(text: str) -> str:
    return text.translate(_TEX)


_TEX = {
    ord("\\"): r"\textbackslash{}",
    **{ord(sign): "\\" + sign for sign in "&%_#"},
    ord("±"): r"$\pm$",
    ord("–"): "--",
    ord("−"): "$-$",
}


def duration(seconds: float) -> str:
    """`45 s`, `12 min`, `3.4 hours`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:,.1f} hours"


def provenance(frame: Frame, *, names: bool = True) -> Iterator[str]:
    """Versions, hardware, seeds and time; `names` of machines can be left out."""
    for versions in frame.versions:
        yield "Versions: " + ", ".join(f"{name} {version}" for name, version in versions.items())
    here = socket.gethostname()
    for kind in frame.hardware:
        yield f"Hardware: {kind}"
    if frame.machines == (here,):
        yield f"Hardware: {hardware()}"
    elif frame.machines:
        which = ", ".join(frame.machines) if names else f"{len(frame.machines)}"
        yield f"Machines: {which} (this page was made on {hardware()})"
    for suite in dict.fromkeys(study.suite for study in frame.studies):
        groups = [g for study in frame.studies if study.suite == suite for g in study.groups]
        seeds = seeds_text(row.seed for group in groups for row in group.rows)
        yield f"Seeds of {suite or 'trials outside any suite'}: {seeds}"
    yield f"CPU time: {duration(frame.cpu_seconds)} for {frame.trials:,} trials"


def hardware() -> str:
    """The processor of this machine and how much of it may be used."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(
            (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")),
            model,
        )
    except OSError:
        pass
    return f"{model}, {usable_cpus()} cores"
