"""The table of results inside another Markdown file, between two marks, kept up to date by the report."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from tidepull._internal.files import explained, write_whole
from tidepull.errors import InputError
from tidepull.paper.averages import Average
from tidepull.paper.chosen import chosen_lines
from tidepull.paper.paper_table import overview
from tidepull.reporting.frames import Study
from tidepull.reporting.tables import to_markdown

BEGIN, END = "<!-- results -->", "<!-- /results -->"


def update_table(
    file: Path,
    reports: Sequence[Study],
    suites: Mapping[str, str],
    averages: Sequence[Average] = (),
) -> None:
    """Put the table and how its settings were chosen between the marks; everything else in the file stays as it is."""
    with explained("read", file):
        text = file.read_text(encoding="utf-8")
    between = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.DOTALL)
    if not between.search(text):
        raise InputError(f"{file} needs the lines '{BEGIN}' and '{END}', between which the table goes")
    lines = "\n".join(chosen_lines(suites))
    chosen = f"\nHow the settings were chosen:\n\n{lines}\n" if lines else ""
    table = f"{BEGIN}\n{to_markdown(overview(reports, averages))}{chosen}{END}"
    write_whole(file, between.sub(lambda _: table, text, count=1).encode())
