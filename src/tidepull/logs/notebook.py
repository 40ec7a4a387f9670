"""Results as HTML for notebooks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any


def table_html(rows: Sequence[Mapping[str, Any]]) -> str:
    """Plain rows as a table.

    >>> table_html([{"arm": "a", "mean": 0.5}])
    '<table><tr><th>arm</th><th>mean</th></tr><tr><td>a</td><td>0.5</td></tr></table>'
    """
    if not rows:
        return ""
    head = "".join(f"<th>{escape(str(name))}</th>" for name in rows[0])
    lines = ("".join(f"<td>{escape(_cell(value))}</td>" for value in row.values()) for row in rows)
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def list_html(sentences: Iterable[str]) -> str:
    """Sentences as a list."""
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    return f"<ul>{items}</ul>" if items else ""


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}" if math.isfinite(value) else "not known"
    return str(value)
