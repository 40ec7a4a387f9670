"""The restore drill of docs/operations.md, word for word."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from research.benchmarks.regret_rows import ROOT
from tests.integration.service.houses import SHOP
from tests.integration.service.neighbourhood import new_database
from tests.integration.service.running import Running, running
from tests.postgres import Server, binaries
from tidepull.agent.agent import Agent

PAGE = (ROOT / "docs" / "operations.md").read_text()


def drill(part: str, **places: str) -> None:
    """Execute a part of the drill; every line must succeed."""
    found = re.search(rf"<!-- drill: {part} -->\n```bash\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    programs = [str(Path(sys.executable).parent), str(binaries() or ""), os.environ["PATH"]]
    environment = {**os.environ, **places, "PATH": ":".join(programs)}
    said = subprocess.run(
        ["bash", "-euc", found[1]], env=environment, capture_output=True, text=True, timeout=120
    )
    assert said.returncode == 0, said.stdout + said.stderr


def choose(service: Running, n: int) -> tuple[int, dict[str, object]]:
    return service.ask("POST", "/v1/agents/shop/choose", {"id": f"visit {n}"})


def test_copy_of_a_running_agent_is_restored(tmp_path: Path) -> None:
    agents, backup = tmp_path / "agents", tmp_path / "backup"
    for folder in (agents, backup):
        folder.mkdir()
    with running(agents) as service:
        assert service.ask("POST", "/v1/agents", SHOP)[0] == 201
        made = [choose(service, n) for n in range(20)]
        drill("backup", AGENTS=str(agents), BACKUP=str(backup))
        assert choose(service, 20)[0] == 200
        assert service.end(signal.SIGTERM) == 0
    drill("restore", AGENTS=str(agents), BACKUP=str(backup))
    with running(agents) as service:
        assert [choose(service, n) for n in range(20)] == made
        late = service.ask("POST", "/v1/agents/shop/reward", {"id": "visit 20", "reward": 1})
        assert late[0] == 404


def test_copy_that_is_damaged_fails_the_drill(tmp_path: Path) -> None:
    with Agent(tmp_path / "shop.db", arms=["a", "b"], policy="random", context={}) as agent:
        for n in range(300):
            agent.choose(id=f"visit {n}")
    data = bytearray((tmp_path / "shop.db").read_bytes())
    data[len(data) // 2 : len(data) // 2 + 4096] = os.urandom(4096)
    (tmp_path / "shop.db").write_bytes(data)
    (tmp_path / "agents").mkdir()
    with pytest.raises(AssertionError, match=r"damaged|malformed|wrong"):
        drill("restore", AGENTS=str(tmp_path / "agents"), BACKUP=str(tmp_path))


@pytest.mark.postgres
def test_dump_of_a_database_is_restored(postgres: Server, tmp_path: Path) -> None:
    db, restored = new_database(postgres), new_database(postgres)
    with Agent(f"{db}&agent=shop", arms=["a", "b"], policy="bernoulli-ts", context={}) as agent:
        made = [agent.choose(id=f"visit {n}").arm for n in range(20)]
        drill("postgres", DB=db, RESTORED=restored, BACKUP=str(tmp_path))
    with psycopg.connect(restored, autocommit=True) as database:
        database.execute("UPDATE tidepull_agents SET expires = '-infinity'")
    with Agent(f"{restored}&agent=shop") as agent:
        assert [agent.choose(id=f"visit {n}").arm for n in range(20)] == made
