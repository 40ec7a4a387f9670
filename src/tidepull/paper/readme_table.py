"""The table of results inside another Markdown file, between two marks, kept up to date by the report."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from tidepull.analysis.frame import Study
from tidepull.errors import InputError
from tidepull.files import explained, write_whole
from tidepull.paper.results_page import overview
from tidepull.report.tables import to_markdown

BEGIN, END = "<!-- results -->", "<!-- /results -->"


def update_table(file: Path, reports: Sequence[Study]) -> None:
    """Put the table between the marks; everything else in the file stays as it is."""
    with explained("read", file):
        text = file.read_text(encoding="utf-8")
    between = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.DOTALL)
    if not between.search(text):
        raise InputError(f"{file} needs the lines '{BEGIN}' and '{END}', between which the table goes")
    table = f"{BEGIN}\n{to_markdown(overview(reports))}{END}"
    write_whole(file, between.sub(lambda _: table, text, count=1).encode())
