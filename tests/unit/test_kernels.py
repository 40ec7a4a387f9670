"""Compiled kernels are kept on disk, known by all their sources, and work where nothing can be
written."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import numba
import pytest

from tidepull._internal import compiler
from tidepull._internal import kernel_cache as kernels

PLAY = """
import numpy as np

from tidepull._internal import compiler
from tidepull.posteriors.kernels import solve

with compiler.allowed():
    solve(np.eye(2), np.ones(2))
cache = solve.dispatcher
print("compiled" if cache.stats.cache_misses else "found", cache._cache.cache_path)
"""

OBEY_PERMISSIONS = """
import ctypes, os, sys

PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 24, 1, 2
if os.geteuid() == 0:
    for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
        assert ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0
os.execv(sys.executable, [sys.executable, "-c", sys.argv[1]])
"""
"""Runs a program that obeys the permissions of files even if root starts it. A process of its own
does this: `preexec_fn` would fork the test process, in which JAX may have threads."""

SOURCES = Path(kernels.__file__).parents[2]


def play(sources: Path, **environment: str) -> list[str]:
    """Whether a process of its own had to compile a kernel, and the last place that it tried."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in ("NUMBA_CACHE_DIR", "TIDEPULL_CACHE", "XDG_CACHE_HOME")
    }
    process = subprocess.run(
        [sys.executable, "-c", OBEY_PERMISSIONS, PLAY],
        env=inherited | {"PYTHONPATH": str(sources)} | environment,
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return process.stdout.split(maxsplit=1)


@pytest.fixture
def installation(tmp_path: Path) -> Path:
    """A copy of the package without kernels."""
    copy = tmp_path / "installation"
    shutil.copytree(
        SOURCES / "tidepull", copy / "tidepull", ignore=shutil.ignore_patterns("__pycache__")
    )
    return copy


@pytest.fixture
def lock() -> Iterator[Callable[[Path], str]]:
    """Takes away the right to write below a directory, until the test is over."""
    locked: list[Path] = []

    def take(place: Path) -> str:
        place.mkdir(exist_ok=True)
        folders = [place, *(path for path in place.rglob("*") if path.is_dir())]
        locked.extend(folders)
        for folder in folders:
            folder.chmod(0o555)
        return str(place)

    yield take
    for folder in locked:
        folder.chmod(0o755)


def test_read_only_installation_without_a_writable_home_compiles_in_every_process(
    installation: Path, tmp_path: Path, lock: Callable[[Path], str]
) -> None:
    lock(installation)
    home = lock(tmp_path / "home")
    assert [play(installation, HOME=home)[0] for _ in range(2)] == ["compiled", "compiled"]
    assert not list(tmp_path.rglob("*.nbi"))


def test_read_only_installation_uses_the_kernels_that_lie_in_it(
    installation: Path, tmp_path: Path, lock: Callable[[Path], str]
) -> None:
    assert play(installation)[0] == "compiled"
    lock(installation)
    assert play(installation, HOME=lock(tmp_path / "home"))[0] == "found"
    assert play(installation, HOME=str(tmp_path))[0] == "found"


@pytest.mark.parametrize("name", ["TIDEPULL_CACHE", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME"])
def test_kernels_are_kept_in_the_place_that_is_named(
    name: str, installation: Path, tmp_path: Path, lock: Callable[[Path], str]
) -> None:
    lock(installation)
    named = {name: str(tmp_path / "cache")}
    compiled, place = play(installation, **named)
    assert (compiled, place.startswith(named[name])) == ("compiled", True)
    assert play(installation, **named)[0] == "found"


def package(root: Path, helper: str) -> str:
    """The digest of a kernel's file that imports another one, which imports a third."""
    (root / "deep").mkdir(parents=True, exist_ok=True)
    kernel, middle = root / "kernels.py", root / "deep" / "middle.py"
    kernel.write_text("from tidepull.deep import middle\nimport math\n")
    middle.write_text("from tidepull.helper import twice\n")
    (root / "helper.py").write_text(helper)
    (root / "apart.py").write_text(helper)
    return compiler.source_digest(kernel, root)


def test_digest_changes_with_a_file_that_is_imported_indirectly(tmp_path: Path) -> None:
    one = package(tmp_path / "one", "twice = 2\n")
    assert package(tmp_path / "two", "twice = 2\n") == one
    assert package(tmp_path / "three", "twice = 3\n") != one


def test_digest_changes_when_a_file_has_another_name(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text("twice = 2\n")
    one, two = (
        compiler.source_digest(tmp_path / f"{name}.py", tmp_path) for name in ("one", "two")
    )
    assert one != two


def test_digest_knows_only_what_is_imported(tmp_path: Path) -> None:
    one = package(tmp_path / "one", "twice = 2\n")
    package(tmp_path / "two", "twice = 2\n")
    (tmp_path / "two" / "apart.py").write_text("something = 1\n")
    assert compiler.source_digest(tmp_path / "two" / "kernels.py", tmp_path / "two") == one


def test_kernels_of_the_encoders_know_the_file_of_their_vectors() -> None:
    root = Path(kernels.__file__).parents[1]
    files = [(root / "encoders" / f"{name}.py").resolve() for name in ("kernels", "simd")]
    for file, imported in pairwise(files):
        assert imported in compiler._imported(file, root.resolve())


@pytest.mark.parametrize("rest", [b"ctidepull.types\nThereWasOnce\n.", b"", b"nonsense"])
def test_index_that_cannot_be_read_is_empty_and_written_anew(tmp_path: Path, rest: bytes) -> None:
    index = kernels.KernelIndex(str(tmp_path), "kernel", "stamp")
    index.save("key", "compiled")
    assert index.load("key") == "compiled"
    path = next(tmp_path.glob("*.nbi"))
    path.write_bytes(pickle.dumps(numba.__version__, protocol=-1) + rest)
    assert index.load("key") is None
    index.save("key", "compiled again")
    assert index.load("key") == "compiled again"
