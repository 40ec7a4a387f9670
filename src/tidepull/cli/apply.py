"""`tidepull apply agents.toml`: agents as code."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from typer import Argument, Option

from tidepull._internal.extras import needs
from tidepull.agent.agent import Agent
from tidepull.agent.client import Client, RemoteAgent
from tidepull.agent.settings import CHANGEABLE, plain_settings
from tidepull.cli.client import TOKEN_FILE, URL, client_of
from tidepull.cli.console import say
from tidepull.errors import InputError

with needs("tidepull apply", "serve"):
    import msgspec

    from tidepull.service.handlers.agents import agent_arguments
    from tidepull.service.messages import NewAgent

FIXED = ("policy", "timezone", "on_duplicate")
"""Settings of the file that are compared, and cannot change this way."""


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """A change in words, and the call that makes it."""

    words: str
    make: Callable[[], Any]


def apply(
    file: Path = Argument(
        metavar="FILE", help="TOML with a table for each agent: arms, context and other settings."
    ),
    db: Path = Option(
        None, "--db", metavar="DIR", help="A directory of agents, instead of a running service."
    ),
    url: str = URL,
    token_file: Path = TOKEN_FILE,
    dry_run: bool = Option(False, "--dry-run", help="Show what would change; change nothing."),
) -> None:
    """Create missing agents, and change the others to match a file.

    Arms that the file does not list are retired, retired ones that it lists come back, and fields
    of contexts that it does not list are dropped. Settings that it leaves out stay as they are.
    """
    wanted = read_agents(file)
    with ExitStack() as opened:
        target = (
            _Service(opened.enter_context(client_of(url, token_file)))
            if db is None
            else _Directory(db, opened)
        )
        plans = {name: planned(target, body) for name, body in wanted.items()}
        for name, changes in plans.items():
            for change in changes:
                say(f"{name}: {change.words}")
                if not dry_run:
                    change.make()
        if not any(plans.values()):
            say("nothing to change")


def read_agents(file: Path) -> dict[str, NewAgent]:
    """The agents of a file, checked."""
    try:
        tables = tomllib.loads(file.read_text())
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: {error}") from None
    agents = {}
    for name, table in tables.items():
        try:
            fields = table if isinstance(table, dict) else {}
            agents[name] = msgspec.convert({**fields, "name": name}, NewAgent)
        except msgspec.ValidationError as error:
            raise InputError(f"{file}: agent '{name}': {error}") from None
    return agents


def planned(target: _Directory | _Service, body: NewAgent) -> list[PlannedChange]:
    """What must change so that an agent is as the file says."""
    arguments = agent_arguments(body)
    state = target.state(body.name)
    if state is None:
        words = f"make it, with arms {', '.join(body.arms)}"
        return [PlannedChange(words, lambda: target.create(body, arguments))]
    plain = json.loads(json.dumps(plain_settings(arguments)))
    for name in FIXED:
        if name in plain and plain[name] != state[name]:
            raise InputError(
                f"agent '{body.name}': {name} is {state[name]!r} and cannot become {plain[name]!r} "
                "by apply" + ("; see tidepull agent FILE upgrade" if name == "policy" else "")
            )
    agent = target.agent(body.name)
    changes = list(_arm_changes(agent, dict(plain["arms"]), state["arms"]))
    settings = {
        name: plain[name] for name in CHANGEABLE if name in plain and plain[name] != state[name]
    }
    for name, value in settings.items():
        changes.append(
            PlannedChange(
                f"{name}: {json.dumps(state[name])} -> {json.dumps(value)}",
                partial(agent.change, **{name: value}),
            )
        )
    return changes


def _arm_changes(agent: Any, wanted: dict[str, Any], arms: list[Any]) -> Iterator[PlannedChange]:
    """Arms to add first, so that one is always left."""
    present = {arm["label"] for arm in arms if not arm["retired"]}
    for label, features in wanted.items():
        if label not in present:
            yield PlannedChange(f"add arm '{label}'", partial(agent.add, label, features))
    for label in sorted(present - wanted.keys()):
        yield PlannedChange(f"retire arm '{label}'", partial(agent.retire, label))


class _Directory:
    """Agents as files, which stay open for as long as `opened` does."""

    def __init__(self, root: Path, opened: ExitStack) -> None:
        self._root, self._opened = root, opened
        self._agents: dict[str, Agent] = {}

    def agent(self, name: str, **arguments: Any) -> Agent:
        """The agent of that name."""
        if name not in self._agents:
            agent = Agent(self._root / f"{name}.db", training="manual", **arguments)
            self._agents[name] = self._opened.enter_context(agent)
        return self._agents[name]

    def state(self, name: str) -> dict[str, Any] | None:
        """Where it stands; None: there is no such agent."""
        if not (self._root / f"{name}.db").is_file():
            return None
        agent = self.agent(name)
        state = json.loads(json.dumps({**asdict(agent.settings), **asdict(agent.state())}))
        state["arms"] = [{"label": label, "retired": retired} for label, retired in state["arms"]]
        return dict(state)

    def create(self, body: NewAgent, arguments: dict[str, Any]) -> None:
        """Make an agent."""
        self._root.mkdir(parents=True, exist_ok=True)
        self.agent(body.name, **arguments)


class _Service:
    """Agents of a running service."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._names = client.agents()

    def agent(self, name: str) -> RemoteAgent:
        """The agent of that name."""
        return self._client.agent(name)

    def state(self, name: str) -> dict[str, Any] | None:
        """Where it stands; None: there is no such agent."""
        return self.agent(name).state() if name in self._names else None

    def create(self, body: NewAgent, _: dict[str, Any]) -> None:
        """Make an agent."""
        settings = msgspec.to_builtins(body)
        self._client.create(settings.pop("name"), **settings)
