"""The blocks of a page as HTML."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import escape

from tidepull.paper.page import Block
from tidepull.reporting.tables import Table, to_html


def html_parts(blocks: Iterable[Block]) -> Iterator[str]:
    """Blocks as HTML for the top of a report, which has pictures of its own."""
    for block in blocks:
        if isinstance(block, Table):
            yield _cells_of_lines(block) if block.name == "paper-table" else to_html(block)
        elif heading := re.match(r"(#+) (.*)", block):
            level = max(2, len(heading[1]))
            yield f"<h{level}>{_marked(heading[2])}</h{level}>"
            yield from html_parts([rest] if (rest := block[heading.end() :].strip()) else [])
        elif block.startswith("- "):
            items = "".join(f"<li>{_marked(line[2:])}</li>" for line in block.splitlines())
            yield f"<ul>{items}</ul>"
        elif block.startswith("```"):
            yield f"<pre>{escape(block.strip('`').strip())}</pre>"
        elif not block.startswith("!["):
            yield f"<p>{_marked(block)}</p>"


def _cells_of_lines(table: Table) -> str:
    """Render a table whose cells have several lines, without sorting."""
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in table.columns)
    body = "".join(
        f'<tr><th scope="row">{_marked(row[0].text)}</th>'
        + "".join(f"<td>{_marked(cell.text)}</td>" for cell in row[1:])
        + "</tr>"
        for row in table.rows
    )
    return (
        f'<figure class="table"><figcaption>{escape(table.title)}</figcaption><div class=scroll tabindex=0>'
        f"<table id={table.name}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></figure>"
    )


def _marked(text: str) -> str:
    html = escape(text).replace("&lt;br&gt;", "<br>")
    html = re.sub(r"`(.+?)`", r"<code>\1</code>", html)
    html = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", html)
    return re.sub(r"\*(.+?)\*", r"<i>\1</i>", html)
