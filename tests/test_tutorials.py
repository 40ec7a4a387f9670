"""Tutorials and how-to pages do what they say: their Python is run from top to bottom, in an empty folder."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tidepull.policies import policies
from tidepull.problems import problems

DOCS = Path(__file__).parents[1] / "docs"
PAGES = [page for part in ("tutorials", "how-to") for page in sorted((DOCS / part).glob("*.md"))]
NEEDS = {"own-network": "torch"}


def test_tutorials_are_there() -> None:
    assert {page.stem for page in PAGES} >= {
        "first-agent",
        "first-experiment",
        "own-problem",
        "own-policy",
        "own-network",
        "my-log",
        "reproduce-the-paper",
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_tutorial_runs_from_top_to_bottom(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if page.stem in NEEDS:
        pytest.importorskip(NEEDS[page.stem], reason=f"the extra '{NEEDS[page.stem]}' is not installed")
    monkeypatch.chdir(tmp_path)
    for registry in (policies, problems):
        monkeypatch.setattr(registry, "_entries", dict(registry._entries))
    module = ModuleType("tutorial")
    monkeypatch.setitem(sys.modules, "tutorial", module)  # dataclasses look their module up
    names: dict[str, Any] = module.__dict__
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.S):
        exec(compile(block, str(page), "exec", dont_inherit=True), names)
