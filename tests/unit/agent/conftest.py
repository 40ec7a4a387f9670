"""Places where agents are kept, so that the same tests run on all of them."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from tests.postgres import Server


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an agent can be kept: a file, or a name in a database that all tests share."""
    if request.param == "sqlite":
        return str(tmp_path / "shop.db")
    server: Server = request.getfixturevalue("postgres")
    return server.url(f"shop-{uuid4().hex[:12]}")


@pytest.fixture
def database(postgres: Server) -> str:
    """An agent's place in a database."""
    return postgres.url(f"shop-{uuid4().hex[:12]}")
