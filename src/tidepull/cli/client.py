"""`tidepull client ...`: call a running service."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from typer import Argument, Context, Option, Typer

from tidepull.cli.console import json_object, print_json, say, show_history
from tidepull.errors import InputError

if TYPE_CHECKING:
    from tidepull.agent.client import Client, RemoteAgent

client_app = Typer(help="Call a running service (tidepull serve).", no_args_is_help=True)
_AGENT = Argument(metavar="AGENT", help="The agent's name.")
_LABEL = Argument(help="The arm.")


@client_app.callback()
def _service(
    context: Context,
    url: str = Option(
        "http://127.0.0.1:8000",
        "--url",
        envvar="TIDEPULL_URL",
        help="Address of the service; several are separated by commas.",
    ),
    token_file: Path = Option(
        None, "--token-file", help="File with the token. Default: the variable TIDEPULL_TOKEN."
    ),
) -> None:
    from os import environ

    token = environ.get("TIDEPULL_TOKEN")
    if token_file is not None:
        if not token_file.is_file():
            raise InputError(f"--token-file: there is no file {token_file}")
        token = token_file.read_text().strip()
    context.obj = url, token


def _client(context: Context) -> Client:
    from tidepull.agent.client import Client

    url, token = context.obj
    client = Client(url.split(","), token=token, timeout=30.0, long_timeout=600.0)
    context.call_on_close(client.close)
    return client


def _agent(context: Context, name: str) -> RemoteAgent:
    return _client(context).agent(name)


@client_app.command()
def agents(context: Context) -> None:
    """List the agents that the token gives access to."""
    for name in _client(context).agents():
        print(name)


@client_app.command()
def create(
    context: Context,
    agent: str = _AGENT,
    arm: list[str] = Option(..., "--arm", help="Label of an arm; may be repeated."),
    fields: str = Option(
        None,
        "--fields",
        help="""The context's fields, as '{"age": "number", "device": ["phone", "desktop"]}'.""",
    ),
    policy: str = Option(None, "--policy", help="The policy (default: tide)."),
    settings: str = Option(None, "--settings", help="""Other settings, as '{"control": 0.1}'."""),
) -> None:
    """Create an agent."""
    more = json_object(settings, "--settings")
    _client(context).create(
        agent, arms=arm, context=json_object(fields, "--fields"), policy=policy, **(more or {})
    )
    say(f"agent {agent} made")


@client_app.command()
def choose(
    context: Context,
    agent: str = _AGENT,
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
    decision = _agent(context, agent).choose(
        json_object(about, "--context"), arms=arm or None, subject=subject, id=id, baseline=baseline
    )
    fields = asdict(decision)
    at = fields.pop("timestamp")
    print_json({**fields, "at": at})


@client_app.command()
def reward(
    context: Context,
    agent: str = _AGENT,
    id: str = Argument(help="The decision's id."),
    value: float = Argument(help="Its reward."),
    also: str = Option(None, "--also", help="""Further outcomes, as '{"cost": 0.2}'."""),
) -> None:
    """Report the reward of a decision."""
    news = _agent(context, agent).reward(id, value, also=json_object(also, "--also"))
    say("taken" if news else "known already")


@client_app.command()
def explain(context: Context, agent: str = _AGENT) -> None:
    """Explain what the agent has learned, in plain words."""
    print(_agent(context, agent).explain())


@client_app.command()
def lift(
    context: Context,
    agent: str = _AGENT,
    since: str = Option(None, "--since", help="Only decisions since this time."),
    outcome: str = Option(None, "--outcome", help="A further outcome instead of the reward."),
) -> None:
    """Estimate the gain in reward over the control group."""
    print(_agent(context, agent).lift(since=since, outcome=outcome))


@client_app.command()
def state(context: Context, agent: str = _AGENT) -> None:
    """Print the agent's state as JSON."""
    print_json(_agent(context, agent).state())


@client_app.command()
def history(
    context: Context,
    agent: str = _AGENT,
    last: int = Option(20, "--last", min=1, help="How many of the latest decisions."),
    json: bool = Option(False, "--json", help="Only JSON on stdout."),
) -> None:
    """The latest decisions and what they were worth."""
    show_history("latest decisions", _agent(context, agent).history("rows")[-last:], json)


@client_app.command()
def chart(
    context: Context,
    agent: str = _AGENT,
    since: str = Option(None, "--since", help="Start of the range."),
    until: str = Option(None, "--until", help="End of the range."),
    bins: int = Option(24, "--bins", min=1, max=1000, help="Number of intervals."),
) -> None:
    """Print decisions and rewards over time as JSON."""
    print_json(_agent(context, agent).chart(since=since, until=until, bins=bins))


@client_app.command()
def add(context: Context, agent: str = _AGENT, label: str = _LABEL) -> None:
    """Add an arm, or bring back a retired one."""
    say("arms: " + ", ".join(_agent(context, agent).add(label)))


@client_app.command()
def retire(context: Context, agent: str = _AGENT, label: str = _LABEL) -> None:
    """Retire an arm: it is not chosen any more."""
    say("arms: " + ", ".join(_agent(context, agent).retire(label)))


@client_app.command()
def rename(
    context: Context,
    agent: str = _AGENT,
    label: str = _LABEL,
    to: str = Argument(help="Its new name."),
) -> None:
    """Rename an arm."""
    say("arms: " + ", ".join(_agent(context, agent).rename(label, to)))


@client_app.command()
def change(
    context: Context,
    agent: str = _AGENT,
    settings: str = Argument(help="""The settings, as '{"control": 0.1}'."""),
) -> None:
    """Change settings: control, control_arm, min_share, reward_within, context and others."""
    changes = _agent(context, agent).change(**(json_object(settings, "SETTINGS") or {}))
    for name, (before, after) in changes.items():
        say(f"{name}: {before} -> {after}")


@client_app.command()
def shadows(context: Context, agent: str = _AGENT) -> None:
    """Report what the candidates of the setting `shadow` would have chosen and earned."""
    for report in _agent(context, agent).shadows():
        print(report)


@client_app.command()
def promote(
    context: Context,
    agent: str = _AGENT,
    policy: str = Argument(help="A candidate of the setting `shadow`, or the agent's own policy."),
    share: float = Option(
        None,
        "--share",
        help="0 takes all back, 1 changes the policy (default: the next safe step).",
    ),
) -> None:
    """Give a candidate a share of the decisions."""
    print(_agent(context, agent).promote(policy, share))


@client_app.command()
def replace(
    context: Context,
    agent: str = _AGENT,
    label: str = _LABEL,
    to: str = Argument(help="The arm that takes its place."),
) -> None:
    """Give the place of an arm to a new one."""
    say("arms: " + ", ".join(_agent(context, agent).replace(label, to)))


@client_app.command()
def freeze(context: Context, agent: str = _AGENT) -> None:
    """Stop learning; decisions go on."""
    _agent(context, agent).freeze()
    say(f"agent {agent} is frozen")


@client_app.command()
def unfreeze(context: Context, agent: str = _AGENT) -> None:
    """Resume learning."""
    _agent(context, agent).unfreeze()
    say(f"agent {agent} learns")


@client_app.command()
def rollback(
    context: Context, agent: str = _AGENT, to: str = Argument(help="A time, or a decision's id.")
) -> None:
    """Undo what was learned since a time or a decision."""
    _agent(context, agent).rollback(to)
    say(f"agent {agent} is back at {to}")


@client_app.command()
def export(
    context: Context,
    agent: str = _AGENT,
    to: Path = Argument(help="A .jsonl, .csv or .parquet file."),
) -> None:
    """Write every decision to a file."""
    _agent(context, agent).export(to)
    say(f"{to} written")


@client_app.command()
def forget(
    context: Context,
    agent: str = _AGENT,
    subject: str = Argument(help="The subject, as decisions were asked for."),
    yes: bool = Option(False, "--yes", help="Skip confirmation. Deletion is permanent."),
) -> None:
    """Delete all decisions about a subject, for good."""
    if not yes:
        raise InputError(f"this deletes all decisions about {subject!r}, for good: say --yes")
    say(f"{_agent(context, agent).forget(subject):,} decisions deleted")


@client_app.command()
def compact(
    context: Context,
    agent: str = _AGENT,
    to: Path = Argument(help="A .jsonl, .csv or .parquet file."),
    before: str = Option(..., "--before", help="Move decisions before then: 2026-01-01."),
) -> None:
    """Move old decisions from the service to a file."""
    say(f"{_agent(context, agent).compact(to, before):,} decisions moved to {to}")


@client_app.command()
def delete(
    context: Context,
    agent: str = _AGENT,
    yes: bool = Option(False, "--yes", help="Skip confirmation. Deletion is permanent."),
) -> None:
    """Delete an agent and its ledger."""
    if not yes:
        raise InputError(f"this deletes {agent} and all it knows, for good: say --yes")
    _agent(context, agent).delete()
    say(f"agent {agent} is gone")
