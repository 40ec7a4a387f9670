"""Decisions go on while a policy is made anew beside them, and a restart leads to the same state."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.agent.worlds import SHOP, START, serve
from tidepull import Agent
from tidepull.agent.commands import CommandHandler
from tidepull.agent.rebuild import Rebuild

CHANGES: dict[str, tuple[type, str, Callable[[Agent], None]]] = {
    "growth": (Rebuild, "catch_up", lambda agent: agent.add("pink", at=START + 300 * 70)),
    "upgrade": (Rebuild, "catch_up", lambda agent: agent.upgrade("lin-ts")),
    "rollback": (
        CommandHandler,
        "replay_rollback",
        lambda agent: agent.rollback(START + 300 * 30),
    ),
}


@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.parametrize("policy", ["bernoulli-ts", "tide"])
def test_agent_decides_while_its_policy_is_made_anew(
    place: str, what: str, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, name, change = CHANGES[what]
    begun, go_on, real = threading.Event(), threading.Event(), getattr(kind, name)

    def held(*given: Any) -> Any:
        made = real(*given)
        begun.set()
        assert go_on.wait(20)
        return made

    with Agent(place, **{**SHOP, "policy": policy}, capacity=3, training="manual") as agent:
        serve(agent, 0, 60)
        monkeypatch.setattr(kind, name, held)
        changing = threading.Thread(target=change, args=(agent,))
        changing.start()
        assert begun.wait(20)
        during = serve(agent, 60, 70)
        go_on.set()
        changing.join(20)
        after = serve(agent, 70, 80)
        monkeypatch.undo()
    with Agent(place, training="manual") as agent:
        assert agent._commands.state.differences == 0
        rows = agent.history("rows")
        made = [(row["arm"], row["propensity"], row["group"]) for row in rows]
        assert made[60:] == [*during, *after]
        assert agent.check().sound
        rounds = agent._commands.state.learning.policy
    assert rounds is not None
    assert rounds.rounds == {"rollback": 31 + 10}.get(what, 80)


def test_second_change_waits_for_the_first_one(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on, real = threading.Event(), threading.Event(), Rebuild.catch_up

    def held(self: Rebuild, ledger: Any) -> None:
        begun.set()
        assert go_on.wait(20)
        real(self, ledger)

    with Agent(place, **SHOP, capacity=3, training="manual") as agent:
        serve(agent, 0, 20)
        monkeypatch.setattr(Rebuild, "catch_up", held)
        first = threading.Thread(target=agent.add, args=("pink",))
        first.start()
        assert begun.wait(20)
        second = threading.Thread(target=agent.retire, args=("pink",))
        second.start()
        second.join(0.1)
        assert second.is_alive()
        go_on.set()
        first.join(20)
        second.join(20)
        assert "pink" not in agent.arms
        assert [label for label, _ in agent.state().arms][-1] == "pink"
