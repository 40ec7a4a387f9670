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
OTHER_SIZES: dict[str, str] = {
    "__main__.py": "the entry point of python -m tidepull",
    "agent/agent.py": "the public face of an agent: half of its lines document its methods",
    "agent/client.py": "two clients with the same documented methods, one of them asynchronous",
    "agent/commands.py": "every step that changes an agent, each a method on the same five "
    "attributes",
    "agent/fields.py": "seven kinds of fields, half of the lines document their parameters",
    "agent/requests.py": "every request of the clients, with its documentation",
    "tide/models/kernels.py": "the kernels of linear models, which numba inlines into each other",
    "tide/models/pages.py": "the pages of memory that a bank may never touch, and nothing else",
    "tide/patterns.py": "the order of steps of one round, each of which is a file of its own",
}
"""Files with too few or too many lines, each with the reason."""


@lru_cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _files() -> list[tuple[str, Path]]:
    """Relative name and path of every file."""
    return [(path.relative_to(SOURCE).as_posix(), path) for path in sorted(SOURCE.rglob("*.py"))]


def shared_class_names() -> dict[str, list[str]]:
    """Class names that two packages or more define, with the packages."""
    packages: defaultdict[str, set[str]] = defaultdict(set)
    for name, path in _files():
        package = name.split("/")[0] if "/" in name else "root"
        for node in _tree(path).body:
            if isinstance(node, ast.ClassDef):
                packages[node.name].add(package)
    return {name: sorted(where) for name, where in packages.items() if len(where) > 1}


def other_sizes() -> dict[str, int]:
    """Files, but for `__init__`, with too few or too many lines, and their lines."""
    lines = {
        name: len(path.read_text(encoding="utf-8").splitlines())
        for name, path in _files()
        if path.name != "__init__.py"
    }
    return {name: count for name, count in lines.items() if not FEWEST_LINES <= count <= MOST_LINES}


def test_no_class_name_stands_for_two_ideas() -> None:
    shared = shared_class_names()
    assert not shared, f"rename all but one of each: {shared}"


def test_files_have_a_readable_size() -> None:
    new = {name: count for name, count in other_sizes().items() if name not in OTHER_SIZES}
    assert not new, f"files have {FEWEST_LINES} to {MOST_LINES} lines: {new}"


TESTS = Path(__file__).parents[1]
PRIVATE_OUTSIDE_UNIT: dict[str, str] = {
    "commands.py": "click's arguments, for the page of commands",
    "e2e/test_doctests.py": "restores the registries after examples that register something",
    "e2e/test_tutorials.py": "restores the registries after tutorials that register something",
    "golden/records.py": "the weights of tide's mixture, which no public call shows",
    "integration/cli/test_reproduce.py": "runs one part of `tidepull reproduce`",
    "integration/experiments/test_ray_flow.py": "sets the clock of the flow control",
    "integration/service/neighbourhood.py": "lets two processes look like two machines",
    "integration/service/test_personalizer.py": "lets actions be described again at once",
    "integration/service/test_server.py": "reads the ledger that a killed server left",
    "integration/service/test_service.py": "counts open agents",
    "integration/service/test_tokens.py": "lets a snapshot be due soon",
    "property/simulation/audit.py": "compares records and states, which no public call shows",
    "property/simulation/loop.py": "asyncio's own hooks for an event loop",
}
"""Files of tests beside `unit` that use private attributes, each with the reason."""


def private_attributes(path: Path) -> list[str]:
    """Attributes with a leading underscore of anything but the object itself or a named tuple."""
    return [
        node.attr
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
        and node.attr not in ("_replace", "_file")
        and not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"))
    ]


def test_private_attributes_are_left_to_unit_tests() -> None:
    files = [path for path in TESTS.rglob("*.py") if "unit" not in path.relative_to(TESTS).parts]
    users = {path.relative_to(TESTS).as_posix() for path in files if private_attributes(path)}
    assert users == set(PRIVATE_OUTSIDE_UNIT)


def test_docstrings_can_be_written_as_utf_8() -> None:
    """Half a pair of surrogates in a docstring stops the import on Python 3.13."""
    for name, path in _files():
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node) or ""
                assert text.encode(errors="replace").decode() == text, name
