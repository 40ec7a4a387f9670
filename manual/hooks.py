"""For mkdocs: the page of all commands, made from what `--help` would say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from typer.main import get_command

from tidepull.cli.app import Commands, app

PAGE = "reference/commands.md"
START = """# Commands

`tidepull` alone lists them, `tidepull COMMAND --help` says the same as this page, which is made from it.
`tidepull --install-completion` completes words in your shell. A mistake is one sentence and exit code 2.
"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page of commands."""
    files.append(File.generated(config, PAGE, content=page()))
    return files


def page() -> str:
    """Every command with its arguments and options."""
    return "\n".join([START, *(line for name in Commands.entries for line in _section(name))])


def _section(name: str) -> Iterator[str]:
    root = click.Context(get_command(app), info_name="tidepull")
    yield from _command(Commands.entries[name].load(name), root, level=2)


def _command(command: Any, parent: Any, *, level: int) -> Iterator[str]:
    context = click.Context(command, info_name=command.name, parent=parent)
    yield f"\n{'#' * level} `{context.command_path}`\n"
    yield f"```\n{context.command_path} {' '.join(command.collect_usage_pieces(context))}\n```\n"
    yield f"{(command.help or command.short_help or '').strip()}\n"
    options = [p.get_help_record(context) for p in command.params if p.name not in SHELL]
    yield from (f"- `{_line(names)}`: {_line(text)}" for names, text in filter(None, options))
    for inner in getattr(command, "commands", {}).values():
        yield from _command(inner, context, level=level + 1)


def _line(text: str) -> str:
    return " ".join(text.split())


SHELL = {"help", "install_completion", "show_completion"}
