"""For mkdocstrings: sessions (`>>>`) and drawn trees in docstrings are shown as they stand."""

from __future__ import annotations

import re
from typing import Any

import griffe


class AsTheyStand(griffe.Extension):
    """Fences what Markdown would run together."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Every module, class, function and attribute that has been read."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """The text, its paragraphs that are a session or a tree in fences.

    >>> fenced("Adds.\\n\\n>>> 1 + 1\\n2")
    'Adds.\\n\\n```pycon\\n>>> 1 + 1\\n2\\n```'
    """
    return "\n\n".join(_fenced(paragraph) for paragraph in re.split(r"\n\n+", text))


def _fenced(paragraph: str) -> str:
    if paragraph.lstrip().startswith(">>> "):
        return f"```pycon\n{paragraph}\n```"
    if "├──" in paragraph:
        return f"```text\n{paragraph}\n```"
    return paragraph
