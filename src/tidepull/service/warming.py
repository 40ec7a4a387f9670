"""Compiling what an agent needs before anybody waits for it."""

from __future__ import annotations

from tidepull.agent.agent import Agent

_WARM: set[tuple[object, ...]] = set()


def warm(agent: Agent) -> None:
    """Let a twin without a file make a few decisions, once for each kind of policy and shape."""
    settings = agent.settings
    kind = (
        settings.policy,
        str(settings.parameters),
        settings.context is None,
        len(settings.arms) > 2,
        settings.time_features,
    )
    if kind in _WARM:
        return
    arms = dict(settings.arms)
    twin = Agent.memory(
        arms=list(arms) if None in arms.values() else arms,
        context=settings.context,
        policy=(settings.policy, settings.parameters),
        time_features=settings.time_features,
        seed=0,
        training="manual",
    )
    for n in range(20):
        decision = twin.choose({})
        twin.reward(decision.id, float(n % 2))
    for _ in range(50):
        if not twin.work():
            break
    _WARM.add(kind)
