"""A process that serves a shop until it is killed. It says what it was told, line by line, before
it goes on.

With one thread all work is done in line, so that what comes out does not hang on when it was
killed.
"""

from __future__ import annotations

import os
import threading

from tests.unit.agent.worlds import SHOP, START, visit, worth
from tidepull.agent.agent import Agent


def main(place: str, said_in: str, policy: str, first: int, last: int, n_threads: int) -> None:
    mode = "inline" if n_threads == 1 else "background"
    agent = Agent(place, **{**SHOP, "policy": policy}, training=mode, snapshot_every=60)  # type: ignore[arg-type]
    said = os.open(said_in, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def tell(*words: object) -> None:
        os.write(said, (" ".join(map(str, words)) + "\n").encode())

    def serve(mine: range) -> None:
        for n in mine:
            decision = agent.choose(visit(n), at=START + 300.0 * n, id=f"visit {n}")
            assert decision.id == f"visit {n}"
            tell("decided", n, decision.arm, repr(decision.propensity))
            if n % 7:
                agent.reward(decision.id, worth(n, decision.arm), at=START + 300.0 * n + 10)
                tell("paid", n, worth(n, decision.arm))

    tell("up", agent._commands.state.decisions, agent._commands.state.differences)
    threads = [
        threading.Thread(target=serve, args=(range(first + k, last, n_threads),))
        for k in range(n_threads)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tell("done")
    agent.close()
