"""Looking into an agent while it decides: what was read once is kept, and only what is new is read."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from tidepull.agent.agent import Agent
from tidepull.agent.insight import Insight

T = TypeVar("T")


class Books:
    """An agent's log in columns; one thread at a time looks into it, and the agent goes on meanwhile."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._reader = agent.reader()
        self._lock = threading.Lock()

    def ask(self, question: Callable[[Insight], T]) -> T:
        """Let a view answer."""
        with self._lock:
            return question(self._agent.aside(self._reader))
