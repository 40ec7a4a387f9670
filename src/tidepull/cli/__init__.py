"""The command line: one file for each family of commands."""

from __future__ import annotations


def main() -> None:
    """Entry point of the `tidepull` command."""
    from tidepull.cli.app import run_app

    run_app()
