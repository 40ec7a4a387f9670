"""What tests of several rooms share."""

from __future__ import annotations

import os

import pytest

from tests.postgres import Server, binaries, shared

NO_POSTGRES = "PostgreSQL is not installed: see CONTRIBUTING.md"


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Server:
    """A running PostgreSQL server, one for all processes of this run of tests."""
    if binaries() is None:
        pytest.skip(NO_POSTGRES)
    base = tmp_path_factory.getbasetemp()
    return shared((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "postgres")
