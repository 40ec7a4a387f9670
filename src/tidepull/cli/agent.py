"""`tidepull agent FILE ...`: look at an agent from the shell, while it works or afterwards."""

from __future__ import annotations

import logging
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from typer import Argument, Context, Exit, Option, Typer

from tidepull.cli.console import json_object, print_json, say, show_history

if TYPE_CHECKING:
    import threading

    from tidepull.agent.agent import Agent

agent_app = Typer(
    help="Look at an agent: what it believes, gained and did.",
    no_args_is_help=True,
    add_completion=False,
)
_JSON = Option(False, "--json", help="Only JSON on stdout.")
_TO = Argument(metavar="TO", help="The file to write; its ending says the format.")


@agent_app.callback()
def _file(
    context: Context,
    file: str = Argument(
        metavar="FILE",
        help="The agent's file, as shop.db, or its URL, as postgresql://user@host/db?agent=shop.",
    ),
) -> None:
    log = logging.getLogger("tidepull")
    context.call_on_close(partial(log.setLevel, log.level))
    log.setLevel(logging.ERROR)
    context.obj = file


def _opened(context: Context) -> Agent:
    from tidepull.agent.agent import Agent

    return Agent(context.obj, read_only=True, training="manual")


@agent_app.command()
def explain(
    context: Context,
    at: str = Option(None, "--at", help="What was known then, as 2026-07-01T18:00."),
) -> None:
    """What it believes, in plain words."""
    with _opened(context) as agent:
        print(agent.explain(at=at))


@agent_app.command()
def lift(
    context: Context,
    since: str = Option(None, "--since", help="Only decisions since then, as 2026-07-01."),
    outcome: str = Option(None, "--outcome", help="A further outcome instead of the reward."),
    json: bool = _JSON,
) -> None:
    """The gain in reward over the control group."""
    with _opened(context) as agent:
        found = agent.lift(since=since, outcome=outcome)
    if json:
        print_json(
            {name: None if value != value else value for name, value in asdict(found).items()}
        )
    else:
        print(found)


@agent_app.command()
def shadow(
    context: Context,
    policies: list[str] = Argument(None, metavar="[POLICY]...", help="Candidates, such as lin-ts."),
) -> None:
    """What other policies would have chosen and earned (default: those of the setting `shadow`)."""
    with _opened(context) as agent:
        for report in agent.shadows(policies or None):
            print(report)


@agent_app.command()
def promote(
    context: Context,
    policy: str = Argument(help="A candidate of the setting `shadow`, or the agent's own policy."),
    share: float = Option(
        None,
        "--share",
        help="0 takes all back, 1 changes the policy (default: the next safe step).",
    ),
) -> None:
    """Give a candidate a share of the decisions."""
    from tidepull.agent.agent import Agent

    with Agent(context.obj, training="manual") as agent:
        print(agent.promote(policy, share))


@agent_app.command()
def history(
    context: Context,
    last: int = Option(20, "--last", min=1, help="How many of the latest decisions."),
    json: bool = _JSON,
) -> None:
    """The latest decisions and what they were worth."""
    with _opened(context) as agent:
        show_history("latest decisions", agent.history("rows")[-last:], json)


@agent_app.command()
def plot(context: Context, to: Path = _TO) -> None:
    """Traffic, rewards by hour and weekday, and the gain, as a picture."""
    with _opened(context) as agent:
        agent.plot(to)
    say(f"{to} written")


@agent_app.command()
def export(context: Context, to: Path = _TO) -> None:
    """Every decision with its chances, as .parquet, .jsonl or .csv."""
    with _opened(context) as agent:
        count = agent.export(to)
    say(f"{count:,} decisions written to {to}")


@agent_app.command()
def personalizer(
    context: Context,
    logs: list[Path] = Argument(
        metavar="LOG...", help="Personalizer's logs (DSJSON), oldest first."
    ),
    wait: float = Option(600.0, "--wait", min=1, help="The reward wait time, in seconds."),
    default: float = Option(
        0.0, "--default-reward", help="What counts where no reward comes in time."
    ),
    add: bool = Option(
        False, "--sum", help="Rewards of one event add up (else the earliest counts)."
    ),
    policy: str = Option(
        None,
        "--policy",
        help="Policy that learns from ids of actions alone, such as tide (default: a linear model of their features).",
    ),
) -> None:
    """Make the agent of `tidepull serve --personalizer NAME` from Personalizer's logs: a warm
    start."""
    from tidepull.agent.agent import Agent
    from tidepull.agent.personalizer import MOST_ACTIONS, PersonalizerLog, merged, settings
    from tidepull.errors import InputError
    from tidepull.logs import read
    from tidepull.logs.formats.decisions import dsjson_actions

    found = [read(path, format="dsjson") for path in logs]
    actions = list(dict.fromkeys(arm for log in found for arm in log.arms))
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
        learnt = sum(agent.learn_from(PersonalizerLog(log)) for log in found)
        agent.save()
    print(f"{learnt:,} decisions learnt, {len(actions):,} actions; agent in {context.obj}")


@agent_app.command()
def upgrade(
    context: Context,
    policy: str = Option(
        None, "--policy", help="Another policy (default: the newest form of the agent's own)."
    ),
    parameters: str = Option(
        None, "--parameters", help="""Parameters of that policy, as '{"discount": 0.99}'."""
    ),
) -> None:
    """Rebuild the policy by replaying the ledger, ahead of the first call of a new release, or
    to change the policy."""
    from threading import Event, Thread

    from tidepull.agent.agent import Agent
    from tidepull.errors import InputError

    chosen = json_object(parameters, "--parameters")
    if chosen is not None and policy is None:
        raise InputError("--parameters needs --policy: whose parameters are they?")
    with Agent(context.obj, training="manual") as agent:
        done = Event()
        thread = Thread(target=_tell_progress, args=(agent, done), daemon=True)
        thread.start()
        try:
            agent.upgrade(policy if chosen is None or policy is None else (policy, chosen))
        finally:
            done.set()
            thread.join()
        print(agent.explain().changes[-1])


def _tell_progress(agent: Agent, done: threading.Event) -> None:
    """A line every few seconds, for long ledgers."""
    while not done.wait(5.0):
        if (progress := agent.upgrading) is not None:
            say(f"{progress[0]:,} of {progress[1]:,} records")


@agent_app.command()
def forget(
    context: Context,
    subject: str = Argument(help="The subject, as `choose` got it."),
    yes: bool = Option(False, "--yes", help="Skip confirmation. Deletion is permanent."),
) -> None:
    """Delete all decisions about a subject, for good."""
    from tidepull.agent.agent import Agent
    from tidepull.errors import InputError

    if not yes:
        raise InputError(f"this deletes all decisions about {subject!r}, for good: say --yes")
    with Agent(context.obj, training="manual") as agent:
        say(f"{agent.forget(subject):,} decisions deleted")


@agent_app.command()
def compact(
    context: Context,
    to: Path = _TO,
    before: str = Option(..., "--before", help="Move decisions before then: 2026-01-01."),
) -> None:
    """Move old decisions from the ledger to a file."""
    from tidepull.agent.agent import Agent

    with Agent(context.obj, training="manual") as agent:
        say(f"{agent.compact(to, before):,} decisions moved to {to}")


@agent_app.command()
def check(context: Context, json: bool = _JSON) -> None:
    """Read the whole ledger and repeat it from the start; exit code 1 when something is not as it
    was."""
    with _opened(context) as agent:
        found = agent.check()
    if json:
        print_json(asdict(found))
    else:
        print(found)
    if not found.sound:
        raise Exit(1)
