"""Rules of the source tree: one class name for one idea, and files of a readable size.

Each table lists what does not follow a rule yet. A table may lose entries; a new entry needs a
reason.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import lru_cache
from pathlib import Path

import tidepull

SOURCE = Path(tidepull.__file__).parent
FEWEST_LINES, MOST_LINES = 40, 450
EXEMPT = ("tide/",)
"""Folders that no rule applies to, because they are being rebuilt."""

OTHER_SIZES: dict[str, str] = {
    "__main__.py": "the entry point of python -m tidepull",
    "agent/agent.py": "the public face of an agent: half of its lines document its methods",
    "agent/client.py": "two clients with the same documented methods, one of them asynchronous",
    "agent/commands.py": "every step that changes an agent, each a method on the same five "
    "attributes",
    "agent/fields.py": "seven kinds of fields, half of the lines document their parameters",
    "agent/ledger/sqlite.py": "one ledger: its statements, its connections and its faults",
    "agent/requests.py": "every request of the clients, with its documentation",
}
"""Files with too few or too many lines, each with the reason."""


@lru_cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _sources() -> list[tuple[str, Path]]:
    """Relative name and path of every file that the rules apply to."""
    files = [(path.relative_to(SOURCE).as_posix(), path) for path in sorted(SOURCE.rglob("*.py"))]
    return [(name, path) for name, path in files if not name.startswith(EXEMPT)]


def shared_class_names() -> dict[str, list[str]]:
    """Class names that two packages or more define, with the packages."""
    packages: defaultdict[str, set[str]] = defaultdict(set)
    for name, path in _sources():
        package = name.split("/")[0] if "/" in name else "root"
        for node in _tree(path).body:
            if isinstance(node, ast.ClassDef):
                packages[node.name].add(package)
    return {name: sorted(where) for name, where in packages.items() if len(where) > 1}


def other_sizes() -> dict[str, int]:
    """Files, but for `__init__`, with too few or too many lines, and their lines."""
    lines = {
        name: len(path.read_text(encoding="utf-8").splitlines())
        for name, path in _sources()
        if path.name != "__init__.py"
    }
    return {name: count for name, count in lines.items() if not FEWEST_LINES <= count <= MOST_LINES}


def test_no_class_name_stands_for_two_ideas() -> None:
    shared = shared_class_names()
    assert not shared, f"rename all but one of each: {shared}"


def test_files_have_a_readable_size() -> None:
    new = {name: count for name, count in other_sizes().items() if name not in OTHER_SIZES}
    assert not new, f"files have {FEWEST_LINES} to {MOST_LINES} lines: {new}"
