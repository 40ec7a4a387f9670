"""Commands that a text shows, and whether the command line understands them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from typing import Any

from typer.main import get_command

from tidepull.cli.app import app

_SYNOPSIS = re.compile(r"\[|\.\.\.|…|<|\bCOMMAND\b|\|")
"""What stands for something else: it describes commands instead of being one."""


def shown(text: str) -> list[str]:
    """Lines of code blocks that begin with `tidepull`, without synopses."""
    blocks = re.findall(r"```\w*\n(.*?)```", text.replace("\\\n", " "), re.S)
    return _whole(
        line for block in blocks for line in re.findall(r"(?m)^(?:\w*\$ +)?(tidepull .*)$", block)
    )


def mentioned(text: str) -> list[str]:
    """Commands within sentences; they may leave out what they need."""
    prose = re.sub(r"```\w*\n.*?```", "", text, flags=re.S)
    return _whole(re.findall(r"`(tidepull [a-z][^`]*)`", prose))


def _whole(lines: Iterable[str]) -> list[str]:
    said = (" ".join(re.sub(r"\s+#.*$", "", line).split()) for line in lines)
    return sorted({line for line in said if not _SYNOPSIS.search(line)})


def understand(line: str) -> None:
    """Parse it as the command line does, and do not run it."""
    words = shlex.split(line)[1:]
    command: Any = get_command(app)
    context = command.make_context("tidepull", list(words), resilient_parsing=False)
    while hasattr(command, "resolve_command"):
        rest = [*context._protected_args, *context.args]
        if not rest and command.invoke_without_command:
            return
        name, command, rest = command.resolve_command(context, rest)
        assert command is not None
        context = command.make_context(name, rest, parent=context)
