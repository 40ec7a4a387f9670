"""`tidepull client ...`: call a running service."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from os import environ
from pathlib import Path

from typer import Argument, Context, Option, Typer

from tidepull.agent.client import Client, RemoteAgent
from tidepull.cli import agent as commands
from tidepull.cli.console import json_object, print_json, say
from tidepull.errors import InputError

client_app = Typer(
    help="Call a running service (tidepull serve).", no_args_is_help=True, add_completion=False
)
URL = Option(
    "http://127.0.0.1:8000",
    "--url",
    envvar="TIDEPULL_URL",
    help="Address of the service; several are separated by commas.",
)
TOKEN_FILE = Option(
    None, "--token-file", help="File with the token. Default: the variable TIDEPULL_TOKEN."
)
_LABEL = Argument(help="The arm.")


@client_app.callback()
def _service(context: Context, url: str = URL, token_file: Path = TOKEN_FILE) -> None:
    context.obj = url, token_file


def client_of(url: str, token_file: Path | None) -> Client:
    """A client of the service at an address, with the token of a file or of the environment."""
    token = environ.get("TIDEPULL_TOKEN")
    if token_file is not None:
        if not token_file.is_file():
            raise InputError(f"--token-file: there is no file {token_file}")
        token = token_file.read_text().strip()
    return Client(url.split(","), token=token, timeout=30.0, long_timeout=600.0)


@contextmanager
def _remote(
    context: Context, agent: str = Argument(metavar="AGENT", help="The agent's name.")
) -> Iterator[RemoteAgent]:
    with client_of(*context.obj) as client:
        yield client.agent(agent)


_asks = commands.on_agent(client_app, _remote)


@client_app.command()
def agents(context: Context) -> None:
    """List the agents that the token gives access to."""
    with client_of(*context.obj) as client:
        for name in client.agents():
            print(name)


@_asks
def create(
    agent: RemoteAgent,
    arm: list[str] = Option(..., "--arm", help="Label of an arm; may be repeated."),
    fields: str = Option(
        None,
        "--fields",
        help="""The context's fields, as '{"age": "number", "device": ["phone", "desktop"]}'.""",
    ),
    policy: str = Option(None, "--policy", help="Policy. Default: tide."),
    settings: str = Option(None, "--settings", help="""Other settings, as '{"control": 0.1}'."""),
) -> None:
    """Create an agent."""
    more = json_object(settings, "--settings") or {}
    context = json_object(fields, "--fields")
    agent.client.create(agent.name, arms=arm, context=context, policy=policy, **more)
    say(f"agent {agent.name} created")


@_asks
def choose(
    agent: RemoteAgent,
    about: str = Option(None, "--context", help="""The context, as '{"age": 31}'."""),
    arm: list[str] = Option(None, "--arm", help="Choose among these only."),
    subject: str = Option(None, "--subject", help="Id of the subject, such as a user."),
    id: str = Option(
        None, "--id", help="Id of the decision; repeating it returns the same decision."
    ),
    baseline: str = Option(
        None, "--baseline", help="The arm of your present rule; the control group gets it."
    ),
) -> None:
    """Make a decision, as JSON."""
    decision = agent.choose(
        json_object(about, "--context"), arms=arm or None, subject=subject, id=id, baseline=baseline
    )
    fields = asdict(decision)
    at = fields.pop("timestamp")
    print_json({**fields, "at": at})


@_asks
def reward(
    agent: RemoteAgent,
    id: str = Argument(help="The decision's id."),
    value: float = Argument(help="Its reward."),
    also: str = Option(None, "--also", help="""Further outcomes, as '{"cost": 0.2}'."""),
) -> None:
    """Report the reward of a decision."""
    news = agent.reward(id, value, also=json_object(also, "--also"))
    say("reward accepted" if news else "already known")


for _command in (
    commands.explain,
    commands.lift,
    commands.history,
    commands.promote,
    commands.forget,
    commands.compact,
):
    _asks(_command)


@_asks
def state(agent: RemoteAgent) -> None:
    """Print the agent's state as JSON."""
    print_json(agent.state())


@_asks
def chart(
    agent: RemoteAgent,
    since: str = Option(None, "--since", help="Start of the range."),
    until: str = Option(None, "--until", help="End of the range."),
    bins: int = Option(24, "--bins", min=1, max=1000, help="Number of intervals."),
) -> None:
    """Print decisions and rewards over time as JSON."""
    print_json(agent.chart(since=since, until=until, bins=bins))


@_asks
def add(agent: RemoteAgent, label: str = _LABEL) -> None:
    """Add an arm, or bring back a retired one."""
    _say_arms(agent.add(label))


@_asks
def retire(agent: RemoteAgent, label: str = _LABEL) -> None:
    """Retire an arm: it is not chosen any more."""
    _say_arms(agent.retire(label))


@_asks
def rename(
    agent: RemoteAgent, label: str = _LABEL, to: str = Argument(help="Its new name.")
) -> None:
    """Rename an arm."""
    _say_arms(agent.rename(label, to))


@_asks
def replace(
    agent: RemoteAgent, label: str = _LABEL, to: str = Argument(help="The new arm.")
) -> None:
    """Replace an arm by a new one."""
    _say_arms(agent.replace(label, to))


def _say_arms(labels: list[str]) -> None:
    say("arms: " + ", ".join(labels))


@_asks
def change(
    agent: RemoteAgent, settings: str = Argument(help="""The settings, as '{"control": 0.1}'.""")
) -> None:
    """Change settings: control, control_arm, min_share, reward_within, context and others."""
    changes = agent.change(**(json_object(settings, "SETTINGS") or {}))
    for name, (before, after) in changes.items():
        say(f"{name}: {before} -> {after}")


@_asks
def shadows(agent: RemoteAgent) -> None:
    """Report what the candidates of the setting `shadow` would have chosen and earned."""
    for report in agent.shadows():
        print(report)


@_asks
def freeze(agent: RemoteAgent) -> None:
    """Stop learning; decisions go on."""
    agent.freeze()
    say(f"agent {agent.name} is frozen")


@_asks
def unfreeze(agent: RemoteAgent) -> None:
    """Resume learning."""
    agent.unfreeze()
    say(f"agent {agent.name} learns")


@_asks
def rollback(agent: RemoteAgent, to: str = Argument(help="A time, or a decision's id.")) -> None:
    """Undo what was learned since a time or a decision."""
    agent.rollback(to)
    say(f"agent {agent.name} is back at {to}")


@_asks
def export(agent: RemoteAgent, to: Path = commands.TO) -> None:
    """Write every decision to a file."""
    agent.export(to)
    say(f"{to} written")


@_asks
def delete(agent: RemoteAgent, _yes: bool = commands.YES) -> None:
    """Delete an agent and its ledger."""
    agent.delete()
    say(f"agent {agent.name} is gone")
