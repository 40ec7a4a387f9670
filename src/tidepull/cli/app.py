"""The `tidepull` command: its commands, imported when they are called, and how errors are
reported."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup

from tidepull import __version__
from tidepull.cli.console import INTERRUPTED
from tidepull.errors import MissingExtraError, TidepullError

_TABLE = {
    "Experiments": {
        "demo": ("run:demo", "Compare seven policies on a seasonal problem."),
        "list": ("listing:list_registered", "List problems, policies and suites."),
        "run": ("run:run", "Run one policy on one problem and show its regret."),
        "sweep": ("sweep:sweep", "Run a suite's missing trials, or resume."),
        "search": ("sweep:search", "Search a suite's grids by successive halving."),
        "tune": ("tune:tune", "Search a policy's settings with Optuna."),
        "select": ("select:select", "Choose the best setting of each problem, and a default."),
        "compare": ("report:compare", "Compare the regrets of two stores, with intervals."),
        "report": ("report:report", "Write an HTML report of a store."),
        "benchmark": ("benchmark:app", "Run the Tideline benchmark and its leaderboard."),
    },
    "Decisions of your own": {
        "agent": ("agent:agent_app", "Inspect an agent: its report, gain, decisions and ledger."),
        "serve": ("serve:serve", "Serve decisions over HTTP: many agents, tokens, metrics."),
        "token": ("serve:token_app", "Tokens for the service: make, list, revoke."),
        "client": ("client:client_app", "Call a running service."),
        "apply": ("apply:apply", "Make and change agents as a file says."),
    },
    "Logs": {
        "diagnose": ("logs:diagnose", "Test whether rewards in a log depend on time."),
        "backtest": ("logs:backtest", "Estimate what other policies would have earned."),
        "model": ("logs:model", "Fit a simulated problem to a log."),
    },
    "Stores and data": {
        "store": ("store:store_app", "Check, export and merge stores of results."),
        "data": ("data:app", "Prepare data for the problems that need it."),
        "warm-up": ("data:warm_up", "Compile all kernels ahead of time."),
    },
    "The paper": {
        "reproduce": ("reproduce:reproduce", "Run and report the paper's experiments."),
        "theory": ("theory:app", "Compute the regret bound and test it by simulation."),
    },
}
"""Panels of the help; commands, their places (`module:name`, a function or a Typer) and helps."""


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """A command's place (`module:name`, a function or a Typer), its help, and its panel."""

    place: str
    says: str
    panel: str

    def load(self, name: str) -> Any:
        """The real command."""
        module, _, attribute = self.place.partition(":")
        try:
            target: Any = getattr(import_module(f"tidepull.cli.{module}"), attribute)
        except MissingExtraError as error:
            raise MissingExtraError(f"tidepull {name}", error.extra) from None
        except ModuleNotFoundError as error:
            if error.name != "scipy":
                raise
            raise MissingExtraError(f"tidepull {name}", "experiments") from None
        if not isinstance(target, typer.Typer):
            function, target = target, typer.Typer(add_completion=False)
            target.command(name)(function)
        command = typer.main.get_command(target)
        command.name = name
        return command


class Commands(TyperGroup):
    """Every command from the table; the one that is called is imported."""

    entries: ClassVar = {
        name: LazyCommand(place, says, panel)
        for panel, commands in _TABLE.items()
        for name, (place, says) in commands.items()
    }

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for name, entry in self.entries.items():
            self.commands[name] = TyperCommand(name, help=entry.says, rich_help_panel=entry.panel)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The command that is called, itself."""
        name, command, rest = super().resolve_command(ctx, args)
        if name in self.entries:
            command = self.entries[name].load(name)
        return name, command, rest


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
    """After Ctrl-C everything is stored; unloading the libraries would take seconds on a busy
    machine."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(INTERRUPTED)


def _fail(sentence: str, code: int) -> None:
    sys.stderr.write(f"tidepull: {sentence}\n")
    sys.exit(code)
