"""A service on two real Ray machines: one is killed under load, decisions go on, and nothing is
lost or doubled."""

from __future__ import annotations

import random
import signal
from contextlib import ExitStack
from pathlib import Path

import pytest

from research.benchmarks.cluster_kills import AGENTS, Callers, audit, one_kill
from tests.integration.service.on_ray import RayService
from tests.machines import Machine, two_machines
from tests.postgres import Server

pytest.importorskip("ray", reason="needs the extra 'cluster'")


def test_machine_that_owns_an_agent_is_killed_under_load_and_decisions_go_on(
    postgres: Server, tmp_path: Path
) -> None:
    with two_machines() as (address, second), RayService(postgres, address, tmp_path) as service:
        service.wait_for_shards(2)
        for agent in AGENTS:
            service.make(agent)
        assert {service.owner(agent) for agent in AGENTS} == set(service.urls)  # one each
        with ExitStack() as stack:
            callers = Callers(service.ports, service.token)
            stack.callback(callers.stop)
            assert one_kill(callers, random.Random(2), second.kill) < 15
            third = Machine(tmp_path, "third", f"--address={address}")
            stack.callback(third.kill)
            service.wait_for_word("is gone; Ray starts it again")
            service.wait_for_shards(2, heard=3)  # Ray has put the lost one there
            callers.stop()
            service.process.send_signal(signal.SIGTERM)
            assert service.process.wait(90) == 0
        assert audit(service.db, callers) == []
        assert service.urls == []  # they left, and gave their leases back
        assert [service.owner(agent) for agent in AGENTS] == [None, None]
