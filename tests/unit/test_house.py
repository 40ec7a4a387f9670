"""Rules of the source tree: one class name for one idea, and files of a readable size.

Each table lists what does not follow a rule yet. A table may lose entries; a new entry needs a reason.
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

SHARED_CLASS_NAMES: frozenset[str] = frozenset(
    [
        "Agent",
        "Asked",
        "Change",
        "Condition",
        "Entry",
        "Group",
        "Learner",
        "Line",
        "Log",
        "Report",
        "Setting",
        "Settings",
        "Standing",
        "Store",
        "Structure",
        "Target",
        "Told",
        "Trace",
        "_Reader",
    ]
)
"""Class names that stand for several ideas in several packages."""

OTHER_SIZES: dict[str, str] = {
    "__main__.py": "the entry point of python -m tidepull",
    "_internal/deprecation.py": "to be merged",
    "_internal/memory.py": "to be merged",
    "_internal/threads.py": "to be merged",
    "agent/agent.py": "to be cut",
    "agent/commands.py": "to be cut",
    "agent/fields.py": "half of its lines are docstrings",
    "cli/executor.py": "to be merged",
    "cli/readiness.py": "to be merged",
    "encoders/memory.py": "to be merged",
    "encoders/settings.py": "to be merged",
    "experiments/suites/data_files.py": "to be merged",
    "experiments/suites/rungs.py": "to be merged",
    "paper/readme_table.py": "to be merged",
    "paper/theory/promise.py": "to be merged",
    "policies/decided.py": "to be merged",
    "policies/linear_inputs.py": "to be merged",
    "problems/criteo/writing.py": "to be merged",
    "problems/gaussian.py": "to be merged",
    "problems/one_best.py": "to be merged",
    "problems/order_statistics.py": "to be merged",
    "random.py": "to be merged",
    "reporting/belief_table.py": "to be merged",
    "reporting/bootstrap.py": "to be merged",
    "reporting/duration.py": "to be merged",
    "reporting/normalise.py": "to be merged",
    "reporting/summary.py": "to be merged",
    "service/books.py": "to be merged",
    "service/warming.py": "to be merged",
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
    new = {name: where for name, where in shared_class_names().items() if name not in SHARED_CLASS_NAMES}
    assert not new, f"rename all but one of each: {new}"


def test_files_have_a_readable_size() -> None:
    new = {name: count for name, count in other_sizes().items() if name not in OTHER_SIZES}
    assert not new, f"files have {FEWEST_LINES} to {MOST_LINES} lines: {new}"
