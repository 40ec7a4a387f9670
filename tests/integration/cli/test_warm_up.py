"""`tidepull warm-up` at the shell."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.cli.typing_it import tidepull
from tidepull._internal import compiler


def test_check_says_that_all_is_compiled() -> None:
    assert tidepull("warm-up", "--check").returncode == 0


def test_check_names_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "places", lambda: [tmp_path])
    done = tidepull("warm-up", "--check")
    assert done.returncode == 1
    assert "kernels are not compiled for this processor" in done.stderr


def test_no_folder_that_can_be_written_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "folder", lambda: None)
    done = tidepull("warm-up")
    assert done.returncode == 2
    assert "set TIDEPULL_CACHE" in done.stderr
