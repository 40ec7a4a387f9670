"""Tutorials as notebooks: `python -m manual.notebooks` writes them from the same Markdown, without
outputs.

Python becomes cells of code, everything else cells of text; commands for the shell stay text.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"
MADE_OF = ("first-experiment", "own", "my-log")
POINTER = "As a notebook: "
"""Begins the line of a tutorial that points to its notebook, which does not point to itself."""


def notebook(markdown: str) -> str:
    """The notebook of a page, as JSON that is the same for the same page."""
    cells = [_cell(n, kind, text) for n, (kind, text) in enumerate(_parts(markdown))]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    made = {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


def _parts(markdown: str) -> list[tuple[str, str]]:
    kept = "".join(
        line for line in markdown.splitlines(keepends=True) if not line.startswith(POINTER)
    )
    pieces = re.split(r"```python\n(.*?)```\n?", kept, flags=re.S)  # text and code in turn
    named = [("code" if n % 2 else "markdown", piece.strip("\n")) for n, piece in enumerate(pieces)]
    return [(kind, text) for kind, text in named if text]


def _cell(n: int, kind: str, text: str) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": kind, "id": f"cell-{n}", "metadata": {}}
    if kind == "code":
        cell |= {"execution_count": None, "outputs": []}
    return cell | {"source": text.splitlines(keepends=True)}


def main() -> None:
    for name in MADE_OF:
        page = (DOCS / "tutorials" / f"{name}.md").read_text()
        (DOCS / "notebooks" / f"{name}.ipynb").write_text(notebook(page))


if __name__ == "__main__":
    main()
