"""The `tidepull` command: its commands, and how errors reach people."""

from __future__ import annotations

import os
import sys

import typer

from tidepull import __version__
from tidepull.cli import (
    agent,
    backtest,
    compare,
    data,
    demo,
    listing,
    report,
    reproduce,
    run,
    search,
    select,
    store,
    sweep,
    theory,
    tune,
)
from tidepull.cli.console import INTERRUPTED
from tidepull.errors import TidepullError

app = typer.Typer(
    name="tidepull",
    help="Bandits that remember: decisions under drift and seasonality.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo")(demo.demo)
app.command("run")(run.run)
app.command("list")(listing.list_registered)
app.add_typer(data.app, name="data")
app.command("sweep")(sweep.sweep)
app.command("search")(search.search)
app.add_typer(store.store_app, name="store")
app.command("report")(report.report)
app.command("compare")(compare.compare)
app.command("reproduce")(reproduce.reproduce)
app.command("select")(select.select)
app.command("tune")(tune.tune)
app.add_typer(theory.app, name="theory")
app.add_typer(agent.agent_app, name="agent")
app.command("backtest")(backtest.backtest)


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
