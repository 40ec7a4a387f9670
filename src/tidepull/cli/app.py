"""The `tidepull` command: its commands, and how errors reach people."""

from __future__ import annotations

import os
import sys
from typing import ClassVar

import typer

from tidepull import __version__
from tidepull.cli.console import INTERRUPTED
from tidepull.cli.lazy import Entry, LazyGroup
from tidepull.errors import TidepullError

_TRY, _DECIDE, _LOGS = "Experiments", "Decisions of your own", "Logs"
_CARE, _PAPER = "Stores and data", "The paper"


class Commands(LazyGroup):
    """Every command, where it lives and what it does."""

    entries: ClassVar = {
        "demo": Entry("demo:demo", "Five arms whose click rates follow the tide: who keeps up?", _TRY),
        "list": Entry("listing:list_registered", "Every problem, policy and suite that there is.", _TRY),
        "run": Entry("run:run", "Run one policy on one problem and show its regret.", _TRY),
        "sweep": Entry("sweep:sweep", "Run a suite's missing trials; the same command continues.", _TRY),
        "search": Entry("search:search", "Search a suite's grids by successive halving.", _TRY),
        "tune": Entry("tune:tune", "Search a policy's settings with Optuna.", _TRY),
        "select": Entry("select:select", "Choose the best setting for each problem and a default.", _TRY),
        "compare": Entry("compare:compare", "The regrets of A beside those of B, with intervals.", _TRY),
        "report": Entry("report:report", "One HTML page of a store, with figures and tables.", _TRY),
        "benchmark": Entry("benchmark:benchmark", "Tideline: every kind of world, with a leaderboard.", _TRY),
        "agent": Entry("agent:agent_app", "Look at an agent: what it believes, gained and did.", _DECIDE),
        "serve": Entry("serve:serve", "Serve decisions over HTTP: many agents, tokens, metrics.", _DECIDE),
        "token": Entry("serve:token_app", "Tokens for the service: make, list, revoke.", _DECIDE),
        "client": Entry("client:client_app", "Ask a running service from a shell.", _DECIDE),
        "diagnose": Entry(
            "diagnose:diagnose", "Whether time matters in a log, how, and what follows.", _LOGS
        ),
        "backtest": Entry("backtest:backtest", "What other policies would have earned on a log.", _LOGS),
        "model": Entry("model:model", "Fit a world to a log, to play policies in it.", _LOGS),
        "store": Entry("store:store_app", "Look after a directory of results.", _CARE),
        "data": Entry("data:app", "Prepare data for the problems that need it.", _CARE),
        "reproduce": Entry("reproduce:reproduce", "Play and report the paper's experiments.", _PAPER),
        "theory": Entry("theory:app", "The regret bound, computed and put to the test.", _PAPER),
    }


app = typer.Typer(
    name="tidepull",
    cls=Commands,
    help="Bandits that remember: decisions under drift and seasonality.",
    epilog="See it: tidepull demo. Learn a command: tidepull COMMAND --help.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"tidepull {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version."
    ),
) -> None:
    pass


def run_app() -> None:
    """Run; a mistake becomes one sentence on stderr and exit code 2, never a traceback."""
    try:
        app()
    except SystemExit as end:
        if end.code == INTERRUPTED:
            _leave_at_once()
        raise
    except TidepullError as error:
        _fail(str(error), error.exit_code)
    except MemoryError as error:
        _fail(f"this needs more memory than there is ({error}): make it smaller", 1)
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        _fail(f"{error.strerror or error}{where}", 1)


def _leave_at_once() -> None:
    """After Ctrl-C everything is stored; unloading the libraries would take seconds on a busy machine."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(INTERRUPTED)


def _fail(sentence: str, code: int) -> None:
    sys.stderr.write(f"tidepull: {sentence}\n")
    sys.exit(code)
