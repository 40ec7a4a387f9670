"""Suites written by programs: the TOML of chosen settings, which `tidepull sweep` runs next."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tidepull.bench.suites.seeds_text import seeds_text


@dataclass(frozen=True, slots=True)
class Table:
    """One `[[problems]]` or `[[policies]]` entry."""

    kind: str
    values: Mapping[str, Any] = field(default_factory=dict)


def suite_text(
    name: str,
    description: str,
    *,
    seeds: Sequence[int],
    tables: Iterable[Table],
    modules: Sequence[str] = (),
    problem_seed: int | None = None,
    remark: str = "",
) -> str:
    """The file's text; values that are None or empty are left out."""
    head: dict[str, Any] = {"name": name, "description": description, "seeds": seeds_text(seeds)}
    head |= {"problem_seed": problem_seed, "modules": list(modules)}
    parts = ["".join(f"# {line}\n" for line in remark.splitlines()) + _lines(head)]
    parts += [f"[[{table.kind}]]\n{_lines(table.values)}" for table in tables]
    return "\n".join(parts)


def _lines(values: Mapping[str, Any]) -> str:
    return "".join(
        f"{key} = {_toml(value)}\n" for key, value in values.items() if value not in (None, "", [], {})
    )


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        inner = ", ".join(f"{key} = {_toml(item)}" for key, item in value.items() if item is not None)
        return f"{{ {inner} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_toml(item) for item in value)}]"
    return json.dumps(value, ensure_ascii=False)
