"""Faults that are put in on purpose: each must still have its place in the source."""

from __future__ import annotations

from pathlib import Path

import pytest

import tidepull
from research.benchmarks.mutants.known import FAULTS, Fault


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.words)
def test_known_fault_finds_its_line_and_changes_it(fault: Fault) -> None:
    text = (Path(tidepull.__file__).parent / fault.module).read_text()
    assert fault.was in text
    assert fault.now != fault.was
