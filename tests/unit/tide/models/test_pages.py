"""Large arrays on small pages of memory."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tidepull.tide.models import pages
from tidepull.tide.models.bank import ModelBank
from tidepull.tide.models.family import Layout
from tidepull.tide.models.linear import fourier
from tidepull.tide.models.noise import NoisePrior
from tidepull.types import FloatArray

LARGE = 1 << 20
"""Numbers: eight megabytes."""

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such pages")


def flags(array: FloatArray) -> list[str]:
    """What the kernel says of the memory in which an array begins."""
    place, found = array.ctypes.data, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if span := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
            found = int(span[1], 16) <= place < int(span[2], 16)
        elif found and line.startswith("VmFlags:"):
            return line.split()[1:]
    raise AssertionError("memory that the process does not have")


@pytest.mark.parametrize("shape", [10, (3, 5), LARGE, (1024, 1024)])
def test_zeros_have_shape_and_kind_and_can_be_written_whatever_their_size(
    shape: int | tuple[int, ...],
) -> None:
    made = pages.zeros(shape, np.int64)
    assert (made.shape, made.dtype) == (np.zeros(shape).shape, np.int64)
    assert not made.any()
    made[...] = 3
    assert (made == 3).all()


@on_linux
def test_zeros_lie_on_small_pages_when_they_are_large() -> None:
    assert "nh" in flags(pages.zeros(LARGE))


FORKS = """
import os
from tidepull.tide.models import pages
made = pages.zeros(1 << 20)
child = os.fork()
if child == 0:
    made[0] = 1.0
    os._exit(int(made[0]))
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
assert made[0] == 0.0
"""


@on_linux
def test_forked_process_does_not_write_into_large_zeros_of_its_parent() -> None:
    """In a process of its own: other tests may have left threads in this one, which must not be
    forked."""
    subprocess.run([sys.executable, "-c", FORKS], check=True, timeout=120)


@on_linux
def test_bank_has_its_blocks_on_small_pages_also_when_it_is_made_anew() -> None:
    layout = Layout(10_000, 1, False)
    bank = ModelBank(layout, [[fourier(9.0)]] * 8, NoisePrior())
    assert "nh" in flags(bank.arrays.mat)
    assert "nh" in flags(bank.reset_copy(None).arrays.mat)
