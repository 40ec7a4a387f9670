"""One history: a service on simulated ground, its callers, faults as planned, and the audit at the
end."""

from __future__ import annotations

import json
import math
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from tests.property.simulation import paths, vfs
from tests.property.simulation.audit import audit
from tests.property.simulation.callers import Call, Caller, Town
from tests.property.simulation.clock import Clocks, Time
from tests.property.simulation.disk import Disk
from tests.property.simulation.image import Image
from tests.property.simulation.installed import Installed, installed
from tests.property.simulation.ledger import Shelf
from tests.property.simulation.loop import Loop
from tests.property.simulation.plan import Plan, plan
from tests.property.simulation.process import Killed, Process
from tests.property.simulation.serving import METRICS, Current, app
from tests.property.simulation.stores import SimulatedDirectory, SimulatedShelf
from tests.property.simulation.threads import DeadlockError, Threading, Threads
from tidepull.agent.clock import PROVED
from tidepull.errors import TidepullError
from tidepull.service.auth import Limits, Tokens
from tidepull.service.logs import RequestLog
from tidepull.service.service import Service
from tidepull.service.stores import AgentStore

HUNG = 120.0
"""Simulated seconds without an answer, after which a call counts as one that never gets one."""


@dataclass
class Outcome:
    """What came of a history. `violations` say what callers were told and what is true instead."""

    plan: Plan
    violations: list[str]
    counts: Counter[str] = field(default_factory=Counter)


class History:
    """Plays one plan."""

    def __init__(
        self, plan: Plan, parts: Installed, machine: vfs.Machine, say: Callable[[str], None]
    ) -> None:
        self.plan, self._parts, self._machine, self._say = plan, parts, machine, say
        self._rng = plan.rng("schedule")
        self.disk = machine.disk
        self.shelf = Shelf(plan.rng("shelf"))
        self.clocks = Clocks(plan.rng("clock"))
        self.town = Town(plan.rng("callers"), plan.again)
        self.callers = [Caller(number, self.town) for number in range(plan.callers)]
        self.counts: Counter[str] = Counter()
        self.violations: list[str] = []
        self._steps = 0
        self._waited = 0.0
        self._open: dict[int, Call] = {}
        self._lives = 0
        parts.shorten_log(plan.checkpoint)
        self._boot(None)

    # ---- lives

    def _boot(self, lifetime: int | None) -> None:
        self._lives += 1
        self.process = Process(self._lives, lifetime)
        self.threads = Threads(self.process, self.plan.rng(f"threads {self._lives}"))
        self.loop = Loop(self.process, self.threads, self.clocks)
        self._machine.boot(self.process, self.threads)
        self._parts.put(Time(self.clocks), Threading(self.threads))
        self.store: AgentStore = (
            SimulatedDirectory(self.plan)
            if self.plan.ledger == "sqlite"
            else SimulatedShelf(self.shelf, self.plan, self.clocks, self.process, self.threads)
        )
        Current.service = Service(
            self.store, Tokens(None), Limits(), RequestLog(None, None), METRICS
        )
        self.loop.create_task(Current.service.start())

    def drop(self) -> None:
        """All that the process had in memory is gone."""
        self.process.alive = False
        self.threads.end()
        self.loop.end()
        self._machine.drop()
        self._parts.watch.opened.clear()
        paths.release_all()

    def _die(self, *, power: bool) -> None:
        self._say(f"step {self._steps}: the {'power is cut' if power else 'process dies'}")
        self.drop()
        if power:
            self.disk.power_cut()
        for call in list(self._open.values()):
            self._heard(call, None, None)

    def _lifetime(self) -> int | None:
        return self._rng.randrange(1, self.plan.dies) if self.plan.dies else None

    # ---- calls

    def _send(self, call: Call) -> None:
        call.started, call.begun = self._steps, self.clocks.elapsed
        self._open[call.number] = call
        headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
        if call.key is not None:
            headers.append((b"idempotency-key", call.key.encode()))
        body = b"" if call.body is None else json.dumps(call.body).encode()
        status = 0

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            elif call.number in self._open:
                self._heard(call, status, json.loads(message["body"]))

        scope = {
            "type": "http", "method": call.method, "path": call.path, "raw_path": call.path.encode(),
            "query_string": b"", "headers": headers, "client": ("127.0.0.1", 1), "root_path": "",
        }  # fmt: skip
        self.loop.create_task(app()(scope, receive, send))

    def _heard(self, call: Call, status: int | None, answer: Any) -> None:
        self._waited = 0.0
        del self._open[call.number]
        call.finished, call.ended = self._steps, self.clocks.elapsed
        call.status, call.answer = status, answer
        if isinstance(answer, dict):
            answer.pop("request", None)  # drawn anew each time
        self._say(f"step {call.started} to {call.finished}: {call}")
        self.counts[
            "acknowledged" if call.told else "unanswered" if status is None else "refused"
        ] += 1
        if call.caller >= 0:
            self.callers[call.caller].hears(call)

    # ---- turns

    def _turn(self) -> None:
        """One step of somebody: the loop, a thread, a caller, the clock."""
        self._steps += 1
        loop, rng = self.loop, self._rng
        loop.due()
        free = [caller for caller in self.callers if not caller.waiting]
        weights = {
            "loop": 8 if loop.ready else 0,
            "thread": 4 if self.threads.busy else 0,
            "caller": 1 if free and len(self.town.calls) < self.plan.calls else 0,
        }
        total = sum(weights.values())
        if not total:
            self._let_time_pass()
            return
        chance = rng.random() * total
        if chance < weights["loop"]:
            loop.step()
        elif chance < weights["loop"] + weights["thread"]:
            self.threads.turn()
        else:
            self._around()
            self._send(rng.choice(free).next())

    def _around(self) -> None:
        """Between two calls: time passes, and the clock may be set."""
        if self._rng.random() < 0.2:
            self.clocks.pass_by(self._rng.choice((0.01, 0.5, 1.5, 25.0)))
        if self._rng.random() < 0.1:
            self.threads.start(self._inspect)
        if self.plan.jumps and self._rng.random() < 0.1:
            self._say(f"step {self._steps}: the wall clock jumps by {self.clocks.jump():g} seconds")

    def _inspect(self) -> None:
        """What a thread of its own does twice a second."""
        for one in list(self._parts.watch.opened):
            with suppress(TidepullError, sqlite3.Error, OSError, Killed):
                one.inspect()

    def _let_time_pass(self) -> None:
        self._waited += self.loop.wait()
        if self._waited > HUNG:
            hung = ", ".join(map(str, self._open.values()))
            self.violations.append(f"never answered: {hung}")
            raise Killed

    def play(self, image: Image) -> None:
        """All of it, from the moment when the agent has been made."""
        image.put_on(self.disk, self.shelf)
        self._begin_faults()
        while len(self.town.calls) < self.plan.calls or self._open:
            try:
                self._turn()
            except Killed:
                self.counts["crashes"] += 1
                if self.violations:
                    break
                self._die(power=self.plan.power and self._rng.random() < 0.7)
                self._boot(self._lifetime())
        self._end()

    def make(self) -> Image:
        """Only the agent, before anything fails."""
        call = Call(-1, -1, "make", "POST", "/v1/agents", self.plan.given)
        self._send(call)
        while self._open:
            self._turn_quietly()
        assert call.told, call
        self._die(power=False)
        return Image.of(self.disk, self.shelf)

    def _turn_quietly(self) -> None:
        if self.loop.ready:
            self.loop.step()
        elif self.threads.busy:
            self.threads.turn()
        else:
            self.loop.wait()

    def _begin_faults(self) -> None:
        faults = self.plan.faults
        self.disk.faults = faults
        self.shelf.refuses, self.shelf.doubts = faults.write * 2 + faults.full * 2, faults.sync
        self.shelf.unreadable = faults.read
        lifetime = self._lifetime()
        if lifetime is not None:
            self.process.limit(lifetime)

    def _end(self) -> None:
        """The last life ends, nothing fails any more, and everything is compared with what callers
        were told."""
        self.violations += [f"unhandled: {context}" for context in self.loop.errors]
        self.counts["failed syncs"] = self.disk.failed["syncs"] + self.shelf.doubted
        self.counts["failed writes"] = self.disk.failed["writes"] + self.shelf.refused
        self.counts["clock jumps"] = self.clocks.jumps
        self.counts["calls"] = len(self.town.calls)
        self.counts["steps"] = self._steps
        # Nobody knows how long a process was dead, and a jump that lasts is believed.
        known = not self.counts["crashes"] and self.clocks.elapsed < PROVED
        slack = self.clocks.followed if known else math.inf
        self.disk.heal()
        self.shelf.heal()
        self._die(power=self.plan.power)
        self._boot(None)
        try:
            agent = self.store.open("shop")
        except Exception as error:
            self.violations.append(f"cannot be opened: {error!r}")
            return
        try:
            self.violations += audit(self.town.calls, agent, self.plan, slack=slack)
        except Exception as error:
            self.violations.append(f"cannot be audited: {error!r}")
        finally:
            agent.close()


@contextmanager
def _ground(planned: Plan, say: Callable[[str], None] | None) -> Iterator[History]:
    """Everything under a history."""
    with ExitStack() as stack:
        parts = stack.enter_context(installed(quiet=say is None))
        disk = Disk(planned.rng("disk"))
        machine = stack.enter_context(vfs.machine(disk))
        paths.mount(disk)
        stack.callback(paths.mount, None)
        history = History(planned, parts, machine, say or (lambda _: None))
        stack.callback(history.drop)
        yield history


_IMAGES: dict[str, Image] = {}


def _image(planned: Plan) -> Image:
    """The agent of a plan as it was made; many histories begin with the same one."""
    key = f"{planned.ledger} {planned.given}"
    if key not in _IMAGES:
        with _ground(planned, None) as history:
            _IMAGES[key] = history.make()
    return _IMAGES[key]


def play(seed: int, say: Callable[[str], None] | None = None) -> Outcome:
    """The history of a seed."""
    planned = plan(seed)
    image = _image(planned)
    with _ground(planned, say) as history:
        try:
            history.play(image)
        except DeadlockError as error:
            history.violations.append(f"deadlock: {error}")
        return Outcome(planned, history.violations, history.counts)
