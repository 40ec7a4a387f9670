"""Tutorials and how-to pages do what they say: their Python is run from top to bottom, in an empty
folder.

What they draw is what the manual shows."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from manual.notebooks import MADE_OF, notebook
from manual.pictures import DRAWN, KEPT, run
from tidepull.policies import policies
from tidepull.problems import problems

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [page for part in ("tutorials", "how-to") for page in sorted((DOCS / part).glob("*.md"))]
NEEDS = {"own": "torch"}


def test_tutorials_are_there() -> None:
    assert {page.stem for page in PAGES} >= {
        "first-agent",
        "first-experiment",
        "own",
        "my-log",
        "reproduce-the-paper",
    }


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names of an empty module, in an empty folder; what is registered there goes with it."""
    monkeypatch.chdir(tmp_path)
    for registry in (policies, problems):
        monkeypatch.setattr(registry, "_entries", dict(registry._entries))
    module = ModuleType("tutorial")
    monkeypatch.setitem(sys.modules, "tutorial", module)  # dataclasses look their module up
    return module.__dict__


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_tutorial_runs_from_top_to_bottom(page: Path, alone: dict[str, Any]) -> None:
    need(page.stem)
    drawn = run(page, alone)
    kept = json.loads(DRAWN.read_text())
    for name, picture in drawn.items():
        assert f"](../figures/tutorials/{name})" in page.read_text(), "the page shows what it draws"
        assert len((KEPT / name).read_bytes()) > 10_000
        assert _told(picture) == _told(kept[name]), (
            f"python -m manual.pictures {page.stem} draws it anew"
        )
        assert _ends(picture) == pytest.approx(
            _ends(kept[name]), rel=0.25
        )  # networks differ between processors
        assert len(Path(name).read_bytes()) > 10_000
    if page.parent.name == "tutorials":
        shown = re.findall(r"\]\(\.\./figures/tutorials/([\w-]+\.png)\)", page.read_text())
        assert list(drawn) == shown != []


def need(name: str) -> None:
    """Skip where the extra of a tutorial is not installed."""
    if name in NEEDS:
        pytest.importorskip(NEEDS[name], reason=f"the extra '{NEEDS[name]}' is not installed")


def _told(picture: dict[str, Any]) -> Any:
    """What a picture says, but for the heights of its lines."""
    charts = [
        (chart["words"], [line[:2] for line in chart["lines"]]) for chart in picture["charts"]
    ]
    return picture["size"], charts


def _ends(picture: dict[str, Any]) -> list[float]:
    return [line[2] for chart in picture["charts"] for line in chart["lines"]]


def test_every_kept_picture_is_of_a_tutorial() -> None:
    pages = "".join(page.read_text() for page in (DOCS / "tutorials").glob("*.md"))
    assert all(f"figures/tutorials/{path.name})" in pages for path in KEPT.glob("*.png"))
    assert {path.name for path in KEPT.glob("*.png")} == set(json.loads(DRAWN.read_text()))


@pytest.mark.parametrize("name", MADE_OF)
def test_notebook_is_its_tutorial_without_outputs_and_runs(
    name: str, alone: dict[str, Any]
) -> None:
    need(name)
    text = (DOCS / "notebooks" / f"{name}.ipynb").read_text()
    page = (DOCS / "tutorials" / f"{name}.md").read_text()
    assert text == notebook(page), "python -m manual.notebooks writes it anew"
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    assert len(cells) == page.count("```python\n")
    for cell in cells:
        assert cell["outputs"] == []
        exec(compile("".join(cell["source"]), name, "exec", dont_inherit=True), alone)
