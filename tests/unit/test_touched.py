"""`make check` runs the tests that a change touches."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.touched import touched


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in {
        "tests/unit/test_top.py": "import tidepull._internal.files\n",
        "tests/unit/experiments/test_loop.py": "",
        "tests/unit/experiments/test_store.py": "from tidepull.experiments import loop\n",
        "tests/unit/experiments/test_other.py": "from tidepull.experiments.loop import run_trial\n",
        "tests/unit/experiments/test_else.py": "from tidepull import random\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_touched_finds_mirrors_importers_and_the_tests_themselves(tree: Path) -> None:
    found = touched(
        [Path("src/tidepull/experiments/loop.py"), Path("tests/unit/experiments/test_else.py")],
        tree,
    )
    names = ["test_else", "test_loop", "test_other", "test_store"]
    assert found == [Path("tests/unit/experiments") / f"{name}.py" for name in names]


def test_touched_is_empty_when_only_pages_change(tree: Path) -> None:
    assert touched([Path("README.md"), Path("docs/agent.md")], tree) == []
