"""What tests of several rooms share."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

import tidepull
from tests.postgres import Server, binaries, shared

SLOW = (
    "e2e",
    "golden",
    "integration/research",
    "property/conformance",
    "property/simulation",
    "unit/agent/test_failed_commits.py",
    "unit/agent/test_kills.py",
    "unit/tide",
)
"""Folders and files whose tests take many seconds."""

MEMORY = Path("/dev/shm")
MEMORY_NEEDED = 4 * 2**30
"""Bytes that must be free in memory for temporary files to be put there."""


@pytest.fixture(scope="session", autouse=True)
def kernels() -> None:
    """Kernels are compiled before the first test: agents whose kernels are not would leave work for
    later."""
    tidepull.warm_up()


def pytest_configure() -> None:
    """Put temporary files into memory where there is room: a sync costs nothing there, and many
    tests wait for thousands of syncs."""
    writable = MEMORY.is_dir() and os.access(MEMORY, os.W_OK)
    if writable and shutil.disk_usage(MEMORY).free > MEMORY_NEEDED:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
        tempfile.tempdir = str(MEMORY)


NO_POSTGRES = "PostgreSQL is not installed: see CONTRIBUTING.md"


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Server:
    """A running PostgreSQL server, one for all processes of this run of tests."""
    if binaries() is None:
        pytest.skip(NO_POSTGRES)
    base = tmp_path_factory.getbasetemp()
    return shared((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "postgres")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by where they are and what they need, so that `-m "not slow"` and the like choose
    among them."""
    root = Path(__file__).parent
    for item in items:
        place = item.path.relative_to(root).as_posix() if item.path.is_relative_to(root) else ""
        needs = {*getattr(item, "fixturenames", ()), *place.removesuffix(".py").split("/")}
        if place.startswith(SLOW):
            item.add_marker("slow")
        if needs & {"postgres", "database", "place", "test_postgres", "test_shards"}:
            item.add_marker("postgres")
        if "browser" in needs:
            item.add_marker("browser")
        if any("ray" in part.split("_") for part in needs):
            item.add_marker("ray")
