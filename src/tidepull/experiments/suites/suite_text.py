"""Suites written by programs: the TOML of chosen settings, which `tidepull sweep` runs next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tidepull.errors import MissingExtraError
from tidepull.experiments.suites.seeds_text import seeds_text


def suite_text(
    name: str,
    description: str,
    *,
    seeds: Sequence[int],
    problems: Iterable[Mapping[str, Any]],
    policies: Iterable[Mapping[str, Any]],
    modules: Sequence[str] = (),
    problem_seed: int | None = None,
) -> str:
    """The file's text, with a `[[problems]]` or `[[policies]]` table for each mapping; what is None or empty
    is left out."""
    try:
        import tomli_w
    except ImportError:
        raise MissingExtraError("writing a suite", "bench") from None
    content: dict[str, Any] = {"name": name, "description": description, "seeds": _seeds(seeds)}
    content |= {"problem_seed": problem_seed, "modules": list(modules)}
    content |= {
        "problems": [_filled(one) for one in problems],
        "policies": [_filled(one) for one in policies],
    }
    return tomli_w.dumps(_filled(content))


def _seeds(seeds: Sequence[int]) -> str:
    return seeds_text(seeds) if len(seeds) > 1 else f"{seeds[0]}-{seeds[0]}"


def _filled(table: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in table.items() if value not in (None, "", [], {})}
    if "parameters" in kept:
        kept["parameters"] = {key: value for key, value in kept["parameters"].items() if value is not None}
    return kept
