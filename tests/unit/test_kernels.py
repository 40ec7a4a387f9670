"""Compiled kernels are kept on disk, known by all their sources, and work where nothing can be
written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tidepull._internal import kernels

PLAY = """
import pathlib, tempfile
import numba
from numba.core import caching

real = caching._CacheLocator.ensure_cache_path
def ensure(self):
    if {writable!r} is None or not self.get_cache_path().startswith({writable!r}):
        raise PermissionError(13, "Permission denied")
    real(self)
caching._CacheLocator.ensure_cache_path = ensure
before = dict(vars(numba.config)), list(caching.CacheImpl._locator_classes)

import tidepull
from tidepull.posteriors import kernels

shape = tidepull.ProblemShape(2)
for id in ("bernoulli-ts", "lin-ts"):
    policy = tidepull.build_policy(id, shape, seed=0)
    policy.learn(tidepull.Event(tidepull.Context(), policy.choose(tidepull.Context()), 1.0))
assert before == (dict(vars(numba.config)), list(caching.CacheImpl._locator_classes))
print(kernels.add_row._cache.cache_path)
"""


def play(writable: str | None, **environment: str) -> str:
    """The place of the kernels in a process that can write below one directory only."""
    given = {
        name: value
        for name, value in os.environ.items()
        if name not in ("NUMBA_CACHE_DIR", "TIDEPULL_CACHE")
    }
    code = PLAY.format(writable=writable)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=given | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_kernels_compile_without_a_cache_where_nothing_can_be_written() -> None:
    assert play(None) == "None"


@pytest.mark.parametrize("name", ["TIDEPULL_CACHE", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME"])
def test_kernels_are_kept_in_the_place_that_is_named(name: str, tmp_path: Path) -> None:
    assert play(str(tmp_path), **{name: str(tmp_path)}).startswith(str(tmp_path))
    assert list(tmp_path.rglob("*.nbi"))


def package(root: Path, helper: str) -> str:
    """The digest of a kernel's file that imports another one, which imports a third."""
    (root / "deep").mkdir(parents=True, exist_ok=True)
    kernel, middle = root / "kernels.py", root / "deep" / "middle.py"
    kernel.write_text("from tidepull.deep import middle\nimport math\n")
    middle.write_text("from tidepull.helper import twice\n")
    (root / "helper.py").write_text(helper)
    (root / "apart.py").write_text(helper)
    return kernels.source_digest(kernel, root)


def test_digest_changes_with_a_file_that_is_imported_indirectly(tmp_path: Path) -> None:
    one = package(tmp_path / "one", "twice = 2\n")
    assert package(tmp_path / "two", "twice = 2\n") == one
    assert package(tmp_path / "three", "twice = 3\n") != one


def test_digest_changes_when_a_file_has_another_name(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text("twice = 2\n")
    one, two = (kernels.source_digest(tmp_path / f"{name}.py", tmp_path) for name in ("one", "two"))
    assert one != two


def test_digest_knows_only_what_is_imported(tmp_path: Path) -> None:
    one = package(tmp_path / "one", "twice = 2\n")
    package(tmp_path / "two", "twice = 2\n")
    (tmp_path / "two" / "apart.py").write_text("something = 1\n")
    assert kernels.source_digest(tmp_path / "two" / "kernels.py", tmp_path / "two") == one


def test_kernels_of_the_encoders_know_the_file_of_their_vectors() -> None:
    root = Path(kernels.__file__).parents[1]
    assert (root / "encoders" / "simd.py").resolve() in kernels._imported(
        (root / "encoders" / "kernels.py").resolve(), root.resolve()
    )
