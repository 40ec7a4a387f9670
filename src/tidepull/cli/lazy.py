"""Commands whose modules are imported when they are asked for: `tidepull --help` loads no numerical library."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a command lives (`module:name`, a function or a Typer of its own), what it does, and among which others."""

    place: str
    says: str
    panel: str

    def load(self, name: str) -> Any:
        """The real command."""
        module, _, attribute = self.place.partition(":")
        found: Any = getattr(import_module(f"tidepull.cli.{module}"), attribute)
        command = typer.main.get_command(found) if isinstance(found, typer.Typer) else _alone(name, found)
        command.name = name
        return command


def _alone(name: str, function: Callable[..., Any]) -> Any:
    single = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    single.command(name)(function)
    return typer.main.get_command(single)


class LazyGroup(TyperGroup):
    """A group that lists its commands from a table and imports the one that is called."""

    entries: ClassVar[dict[str, Entry]] = {}

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        for name, entry in self.entries.items():
            self.commands[name] = TyperCommand(name, help=entry.says, rich_help_panel=entry.panel)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The command that is called, itself."""
        name, command, rest = super().resolve_command(ctx, args)
        if name in self.entries:
            command = self.entries[name].load(name)
        return name, command, rest
