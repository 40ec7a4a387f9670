"""Rules of the source tree: one class name for one idea, files of a readable size, and documented parameters.

Each table lists what does not follow a rule yet. A table may lose entries; a new entry needs a reason.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import lru_cache
from pathlib import Path

import pytest

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

WITHOUT_PARAMETERS_SECTION: frozenset[str] = frozenset(
    [
        "Agent",
        "AsyncClient",
        "Client",
        "Context",
        "Decision",
        "Entry",
        "Event",
        "LinearGaussian",
        "NeuralLinear",
        "ProblemShape",
        "Streams",
        "Structure",
        "TorchEncoder",
        "Trial",
        "add_policy",
        "add_problem",
        "build_policy",
        "build_problem",
        "generator_state",
        "input_width",
        "parameter",
        "play",
        "restore_generator",
        "run_trial",
        "shape_of",
        "warm_up",
    ]
)
"""Public callables whose docstring has no section `Parameters`."""


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


def takes_parameters(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    """Whether a call of it takes anything; fields of a dataclass count."""
    if isinstance(node, ast.ClassDef):
        makers = [one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"]
        if makers:
            return takes_parameters(makers[0])
        is_dataclass = any("dataclass" in ast.unparse(one) for one in node.decorator_list)
        return is_dataclass and any(isinstance(one, ast.AnnAssign) for one in node.body)
    arguments = node.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return any(one.arg not in ("self", "cls") for one in named) or arguments.kwarg is not None


def has_parameters_section(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    """Whether the docstring, or that of `__init__`, has numpydoc's section `Parameters`."""
    docs = [ast.get_docstring(node) or ""]
    if isinstance(node, ast.ClassDef):
        docs += [
            ast.get_docstring(one) or ""
            for one in node.body
            if isinstance(one, ast.FunctionDef) and one.name == "__init__"
        ]
    return any("Parameters\n----------" in doc for doc in docs)


def without_parameters_section() -> set[str]:
    """Public callables that take parameters and do not document them."""
    missing = set()
    for name, home in tidepull._HOME_OF.items():
        path = SOURCE / Path(*home.split("."))
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        for node in _tree(path).body:
            if (
                not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
                or node.name != name
            ):
                continue
            if takes_parameters(node) and not has_parameters_section(node):
                missing.add(name)
    return missing


def test_no_class_name_stands_for_two_ideas() -> None:
    new = {name: where for name, where in shared_class_names().items() if name not in SHARED_CLASS_NAMES}
    assert not new, f"rename all but one of each: {new}"


def test_files_have_a_readable_size() -> None:
    new = {name: count for name, count in other_sizes().items() if name not in OTHER_SIZES}
    assert not new, f"files have {FEWEST_LINES} to {MOST_LINES} lines: {new}"


def test_public_callables_document_their_parameters() -> None:
    new = without_parameters_section() - WITHOUT_PARAMETERS_SECTION
    assert not new, f"without a numpydoc section 'Parameters': {sorted(new)}"


@pytest.mark.parametrize(
    ("code", "takes", "documents"),
    [
        ("def f(): 'Does.'", False, False),
        ("def f(x): 'Does.'", True, False),
        (
            "def f(*, x):\n    '''Does.\n\n    Parameters\n    ----------\n    x\n        It.\n    '''",
            True,
            True,
        ),
        ("class A:\n    'An A.'\n    def __init__(self): ...", False, False),
        ("class A:\n    'An A.'\n    def __init__(self, x): ...", True, False),
        ("@dataclass\nclass A:\n    'An A.'\n    x: int", True, False),
    ],
)
def test_callables_are_read_as_they_are(code: str, takes: bool, documents: bool) -> None:
    node = ast.parse(code).body[0]
    assert isinstance(node, ast.FunctionDef | ast.ClassDef)
    assert takes_parameters(node) is takes
    assert has_parameters_section(node) is documents
