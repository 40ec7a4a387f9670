"""The example of the manual runs, and says what it is about."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture
def example() -> Any:
    spec = importlib.util.spec_from_file_location(
        "shop_by_hour", ROOT / "examples" / "shop_by_hour.py"
    )
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_shop_by_hour_runs_to_its_picture(
    example: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(
        example, "RIVALS", {**example.RIVALS, "the agent (tide)": {"policy": "lin-ts"}}
    )
    example.main(3, str(tmp_path / "shop.png"))
    said = capsys.readouterr().out
    assert said.count("clicks from 370 visitors") == 4
    assert "is best" in said
    assert (tmp_path / "shop.png").read_bytes().startswith(b"\x89PNG")


def test_best_banner_follows_hour_and_weekday(example: Any) -> None:
    hours = [
        example.best_banner(example.MONDAY + 3600 * h) for h in (9, 18, 5 * 24 + 9, 5 * 24 + 18)
    ]
    assert hours == ["coffee", "dinner", "brunch", "dinner"]
