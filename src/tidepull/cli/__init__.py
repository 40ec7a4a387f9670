"""The command line: one file for each kind of command."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of the `tidepull` command."""
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ModuleNotFoundError:
        sys.stderr.write(
            "tidepull: the command line needs the extra 'serve', 'experiments' or 'tables': pip install "
            "'tidepull[serve]'\n"
        )
        sys.exit(2)
    from tidepull.cli.app import run_app

    run_app()
