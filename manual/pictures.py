"""Pictures of tutorials, made by running them: `python -m manual.pictures` keeps what each of them
draws.

A tutorial saves `its-name.png` where it runs. What it drew is kept beside the pictures as words and
numbers, which the tests compare with a run of their own: pixels differ between versions of
matplotlib, labels and curves do not.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

DOCS = Path(__file__).parents[1] / "docs"
KEPT = DOCS / "figures" / "tutorials"
DRAWN = KEPT / "drawn.json"


def run(page: Path, names: dict[str, Any]) -> dict[str, Any]:
    """Run a page's Python from top to bottom in the present folder; what it drew, by file."""
    with watched() as drawn:
        for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.S):
            exec(compile(block, str(page), "exec", dont_inherit=True), names)
    return drawn


@contextmanager
def watched() -> Iterator[dict[str, Any]]:
    """What figures show when they are saved, by file."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:  # nothing can be drawn then
        yield {}
        return
    drawn: dict[str, Any] = {}
    save = Figure.savefig

    def noted(figure: Any, path: Any, **options: Any) -> None:
        save(figure, path, **options)
        width, height = figure.get_size_inches() * options.get("dpi", figure.dpi)
        drawn[Path(path).name] = {"size": [round(width), round(height)], "charts": _charts(figure)}

    with patch.object(Figure, "savefig", noted), mpl.rc_context():
        mpl.rcdefaults()  # whatever others in this process have set
        yield drawn


def _charts(figure: Any) -> list[dict[str, Any]]:
    """Every chart's words, and its lines by their number of points and their last height."""
    return [
        {
            "words": [w for w in (axes.get_title(), axes.get_xlabel(), axes.get_ylabel()) if w],
            "lines": [
                [line.get_label(), len(line.get_ydata()), round(float(line.get_ydata()[-1]), 4)]
                for line in axes.get_lines()
                if not line.get_label().startswith("_")
            ],
        }
        for axes in figure.axes
    ]


def main(*stems: str) -> None:
    """Run all tutorials, or those named, each in an empty folder, and keep their pictures."""
    kept = json.loads(DRAWN.read_text()) if DRAWN.exists() else {}
    for page in sorted((DOCS / "tutorials").glob("*.md")):
        if stems and page.stem not in stems:
            continue
        module = sys.modules["tutorial"] = ModuleType("tutorial")
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            drawn = run(page, module.__dict__)
            for name in drawn:
                KEPT.mkdir(exist_ok=True)
                (KEPT / name).write_bytes(Path(name).read_bytes())
            os.chdir(DOCS)
        kept |= drawn
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(kept[name])}" for name in sorted(kept))
    DRAWN.write_text(f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
