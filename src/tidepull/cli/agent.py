"""`tidepull agent FILE ...`: look at an agent from the shell, while it works or afterwards."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any

from typer import Argument, Context, Exit, Option, Typer

from tidepull.agent.agent import Agent
from tidepull.cli.console import json_object, print_json, print_table, replace_first, say
from tidepull.errors import InputError, ParameterError

agent_app = Typer(
    help="Inspect an agent: its report, gain, decisions and ledger.",
    no_args_is_help=True,
    add_completion=False,
)


def _require_yes(context: Context, yes: bool) -> None:
    if not yes:
        raise InputError(f"{context.info_name} deletes data for good: add --yes")


def _counted(count: int) -> str:
    return f"{count:,} decision{'s' * (count != 1)}"


JSON = Option(False, "--json", help="Print only JSON.")
TO = Argument(metavar="TO", help="File to write; its suffix sets the format.")
YES = Option(
    False, "--yes", callback=_require_yes, help="Skip confirmation. Deletion is permanent."
)


@agent_app.callback()
def _file(
    context: Context,
    file: str = Argument(
        metavar="FILE",
        help="File of the agent, such as shop.db, or its URL: postgresql://user@host/db?agent=shop.",
    ),
) -> None:
    log = logging.getLogger("tidepull")
    context.call_on_close(partial(log.setLevel, log.level))
    log.setLevel(logging.ERROR)
    context.obj = file


def on_agent(
    app: Typer, opened: Callable[..., AbstractContextManager[Any]]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A decorator that adds a command about an agent, its first parameter, to an app; the parameters
    of `opened` say which agent that is."""
    which = inspect.signature(opened, eval_str=True).parameters

    def register(command: Callable[..., None]) -> Callable[..., None]:
        def run(**values: Any) -> None:
            with opened(**{name: values.pop(name) for name in which}) as agent:
                command(agent, **values)

        app.command(command.__name__)(replace_first(command, which.values(), run))
        return command

    return register


def _reading(context: Context) -> Agent:
    return Agent(context.obj, read_only=True, training="manual")


def _writing(context: Context) -> Agent:
    return Agent(context.obj, training="manual")


_reads, _writes = on_agent(agent_app, _reading), on_agent(agent_app, _writing)

# ---- commands that `tidepull client` has too: there the agent is a `RemoteAgent`


@_reads
def explain(
    agent: Any,
    at: str = Option(None, "--at", help="Report what was known at this time: 2026-07-01T18:00."),
) -> None:
    """Explain what the agent has learned, in plain words."""
    print(agent.explain(at=at))


@_reads
def lift(
    agent: Any,
    since: str = Option(None, "--since", help="Only decisions since this time: 2026-07-01."),
    outcome: str = Option(None, "--outcome", help="A further outcome instead of the reward."),
    json: bool = JSON,
) -> None:
    """Estimate the gain in reward over the control group."""
    gain = agent.lift(since=since, outcome=outcome)
    if json:
        print_json(gain.data if hasattr(gain, "data") else asdict(gain))
    else:
        print(gain)


@_writes
def promote(
    agent: Any,
    policy: str = Argument(help="A candidate of the setting `shadow`, or the agent's own policy."),
    share: float = Option(
        None,
        "--share",
        help="Share of decisions: 0 withdraws the candidate, 1 makes it the policy. Default: the next safe step.",
    ),
) -> None:
    """Give a candidate a share of the decisions."""
    print(agent.promote(policy, share))


@_reads
def history(
    agent: Any,
    last: int = Option(20, "--last", min=1, help="Number of decisions."),
    json: bool = JSON,
) -> None:
    """List the latest decisions with their rewards."""
    rows = agent.history("rows")[-last:]
    if json:
        print_json(rows)
        return
    columns = ["id", "at", "arm", "group", "propensity", "reward"]
    cells = [["" if row[name] is None else f"{row[name]}" for name in columns] for row in rows]
    print_table("latest decisions", columns, cells, right=(4, 5))


@_writes
def forget(
    agent: Any,
    subject: str = Argument(help="Subject, as it was passed to `choose`."),
    _yes: bool = YES,
) -> None:
    """Delete all decisions about a subject, permanently."""
    say(f"{_counted(agent.forget(subject))} deleted")


@_writes
def compact(
    agent: Any,
    to: Path = TO,
    before: str = Option(..., "--before", help="Move decisions before this time: 2026-01-01."),
) -> None:
    """Move old decisions from the agent to a file."""
    say(f"{_counted(agent.compact(to, before))} moved to {to}")


# ---- commands for an agent that is here


@_reads
def shadow(
    agent: Agent,
    policies: list[str] = Argument(None, metavar="[POLICY]...", help="Candidates, such as lin-ts."),
) -> None:
    """Estimate what other policies would have chosen and earned.

    Without POLICY: those of the setting `shadow`.
    """
    reports = agent.shadows(policies or None)
    if not reports:
        raise ParameterError("the agent has no candidates: name one, such as lin-ts")
    for report in reports:
        print(report)


@_reads
def plot(agent: Agent, to: Path = TO) -> None:
    """Draw traffic, rewards by hour and weekday, and the gain."""
    agent.plot(to)
    say(f"{to} written")


@_reads
def export(agent: Agent, to: Path = TO) -> None:
    """Write every decision with its probabilities, as .parquet, .jsonl or .csv."""
    say(f"{_counted(agent.export(to))} written to {to}")


@agent_app.command()
def personalizer(
    context: Context,
    logs: list[Path] = Argument(
        metavar="LOG...", help="Personalizer's logs (DSJSON), oldest first."
    ),
    wait: float = Option(600.0, "--wait", min=1, help="Reward wait time in seconds."),
    default: float = Option(
        0.0, "--default-reward", help="Reward of an event without a reward in time."
    ),
    add: bool = Option(
        False, "--sum", help="Add up the rewards of an event. Default: the earliest counts."
    ),
    policy: str = Option(
        None,
        "--policy",
        help="Policy that learns from action ids alone, such as tide. Default: a linear model of action features.",
    ),
) -> None:
    """Create the agent of `tidepull serve --personalizer NAME` from Personalizer's logs (warm
    start)."""
    from tidepull.agent.personalizer import MOST_ACTIONS, PersonalizerLog, merged, settings
    from tidepull.logs import read
    from tidepull.logs.formats.decisions import dsjson_actions

    histories = [read(path, format="dsjson") for path in logs]
    actions = list(dict.fromkeys(arm for log in histories for arm in log.arms))
    if len(actions) > MOST_ACTIONS:
        raise InputError(
            f"the logs have {len(actions):,} actions; at most {MOST_ACTIONS:,} are taken"
        )
    rules = {"reward_within": wait, "default_reward": default}
    if policy is None:
        like = {action: parts for path in logs for action, parts in dsjson_actions(path).items()}
        chosen = settings({action: merged(like.get(action)) for action in actions}, **rules)
    else:
        chosen = settings(actions, policy=policy, **rules)
    chosen["on_duplicate"] = "add" if add else "refuse"
    with Agent(context.obj, training="inline", **chosen) as agent:
        learnt = sum(agent.learn_from(PersonalizerLog(log)) for log in histories)
        agent.save()
    print(f"{learnt:,} decisions learnt, {len(actions):,} actions; agent in {context.obj}")


@_writes
def upgrade(
    agent: Agent,
    policy: str = Option(
        None, "--policy", help="Another policy. Default: the agent's own, newest version."
    ),
    parameters: str = Option(
        None, "--parameters", help="""Parameters of that policy: '{"discount": 0.99}'."""
    ),
) -> None:
    """Rebuild the policy by replaying the ledger, ahead of the first call of a new release, or
    to change the policy."""
    chosen = json_object(parameters, "--parameters")
    if chosen is not None and policy is None:
        raise InputError("--parameters needs --policy: whose parameters are they?")
    done = Event()
    thread = Thread(target=_tell_progress, args=(agent, done), daemon=True)
    thread.start()
    try:
        agent.upgrade(policy if chosen is None or policy is None else (policy, chosen))
    finally:
        done.set()
        thread.join()
    print(agent.explain().changes[-1])


def _tell_progress(agent: Agent, done: Event) -> None:
    """A line every few seconds, for long ledgers."""
    while not done.wait(5.0):
        if (progress := agent.upgrading) is not None:
            say(f"{progress[0]:,} of {progress[1]:,} records")


@_reads
def check(agent: Agent, json: bool = JSON) -> None:
    """Verify the ledger: read every record and replay it from the start. Exit code 1 if anything
    differs."""
    result = agent.check()
    if json:
        print_json(asdict(result))
    else:
        print(result)
    if not result.sound:
        raise Exit(1)
