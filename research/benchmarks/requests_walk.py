"""How many files of tidepull one decision enters, by a profile hook: of an agent, and over HTTP.

python -m research.benchmarks.requests_walk [--names]
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import httpx

from tidepull import Agent
from tidepull.service.app import App
from tidepull.service.auth import Limits, Tokens
from tidepull.service.handlers import OPERATIONS
from tidepull.service.logs import RequestLog
from tidepull.service.service import Service
from tidepull.service.stores import Directory

SOURCE = "/src/tidepull/"
WARM_UP = 40
"""Decisions with a reward before the one that is watched."""

CONTEXT = {"x": 1.0}


class Watch:
    """Files whose functions are called while `on`; of threads that begin after it was made too."""

    def __init__(self) -> None:
        self.on, self.files = False, set[str]()
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_code.co_filename
        if self.on and event == "call" and SOURCE in name:
            self.files.add(name.partition(SOURCE)[2])

    def walked(self, call: Callable[[], Any]) -> Any:
        """What a call returns; `files` are those that it enters."""
        self.files.clear()
        self.on = True
        try:
            return call()
        finally:
            self.on = False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--names", action="store_true", help="name the files")
    names = parser.parse_args().names
    watch = Watch()

    def show(what: str) -> None:
        print(f"{what}: {len(watch.files)} files")
        if names:
            print("".join(f"  {name}\n" for name in sorted(watch.files)), end="")

    with tempfile.TemporaryDirectory() as folder:
        with Agent(Path(folder) / "a.db", arms=["a", "b"], context={"x": float},
                   policy="bernoulli-ts", seed=0) as agent:  # fmt: skip
            for _ in range(WARM_UP):
                agent.reward(agent.choose(CONTEXT), 1.0)
            decision = watch.walked(lambda: agent.choose(CONTEXT))
            show("Agent.choose")
            watch.walked(lambda: agent.reward(decision, 1.0))
            show("Agent.reward")
        with asyncio.Runner() as runner:
            service = _service(Path(folder))
            runner.run(service.start())
            transport = httpx.ASGITransport(App(service, OPERATIONS))
            client = httpx.AsyncClient(transport=transport, base_url="http://localhost")

            def ask(path: str, body: dict[str, Any]) -> dict[str, Any]:
                answer = runner.run(client.post(f"/v1/agents{path}", json=body))
                return dict(answer.raise_for_status().json())

            ask("", {"name": "b", "arms": ["a", "b"], "context": {"x": "number"},
                     "policy": "bernoulli-ts", "seed": 0})  # fmt: skip
            for _ in range(WARM_UP):
                made = ask("/b/choose", {"context": CONTEXT})
                ask("/b/reward", {"id": made["id"], "reward": 1.0})
            made = watch.walked(lambda: ask("/b/choose", {"context": CONTEXT}))
            show("HTTP choose")
            watch.walked(lambda: ask("/b/reward", {"id": made["id"], "reward": 1.0}))
            show("HTTP reward")
            runner.run(service.stop())


def _service(folder: Path) -> Service:
    log = RequestLog((folder / "access.jsonl").open("a"), folder / "audit.jsonl")
    return Service(Directory(folder), Tokens(None), Limits(), log)


if __name__ == "__main__":
    main()
