"""`tidepull.__all__` is the stable surface: it exists, it is documented, and what users are shown
needs no more."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import tidepull
from tidepull.agent.served import ServedAgent

ROOT = Path(__file__).parents[2]
REFERENCE = "\n".join(
    page.read_text() for page in sorted((ROOT / "docs" / "reference").glob("*.md"))
)
NAMES = sorted(set(tidepull.__all__) - {"__version__"})
INTEGRATIONS = ("gymnasium", "river", "mabwiser")
OF_CLIENTS = {
    "tidepull.agent.client.RemoteAgent",
    "tidepull.agent.client.AsyncRemoteAgent",
    "tidepull.agent.requests.AgentRequests",
}
"""What clients return, and the class that documents its methods."""
SHOWN = [
    ROOT / "README.md",
    *sorted((ROOT / "docs" / "tutorials").glob("*.md")),
    *sorted((ROOT / "docs" / "how-to").glob("*.md")),
    *(
        ROOT / "examples" / f"{name}.py"
        for name in ("own_network", "own_policy", "own_problem", "shop_by_hour")
    ),
]


def test_public_names_are_sorted_each_there_once_and_have_one_home() -> None:
    assert tidepull.__all__ == sorted(set(tidepull.__all__))
    assert set(NAMES) == {*tidepull._HOME_OF, *tidepull._MODULES}
    assert len(tidepull._HOME_OF) == sum(map(len, tidepull._HOMES.values()))


@pytest.mark.parametrize("name", NAMES)
def test_public_name_exists_and_says_what_it_is(name: str) -> None:
    value = getattr(tidepull, name)
    if name == "Snapshot":  # an alias has no docstring of its own
        return
    assert inspect.getdoc(value)


def test_types_are_declared_for_every_public_name() -> None:
    """What is imported for type checkers is what is found at run time."""
    tree = ast.parse(Path(inspect.getfile(tidepull)).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    declared = {
        alias.name
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert declared == set(NAMES)


def test_importing_tidepull_loads_none_of_its_rooms() -> None:
    code = "import sys, tidepull; print(*(m for m in sys.modules if m.startswith(('tidepull.', 'numpy'))))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []


def test_unknown_name_is_refused_as_python_does() -> None:
    with pytest.raises(AttributeError, match="module 'tidepull' has no attribute 'no_such_name'"):
        _ = tidepull.no_such_name


@pytest.mark.parametrize("name", NAMES)
def test_public_name_has_its_place_in_the_reference(name: str) -> None:
    home = tidepull._MODULES.get(name) or f"{tidepull._HOME_OF[name]}.{name}"
    assert re.search(rf"(?m)^::: tidepull\.{re.escape(home)}$", REFERENCE), (
        f"no '::: tidepull.{home}'"
    )


@pytest.mark.parametrize("path", sorted(OF_CLIENTS))
def test_what_clients_return_has_its_place_in_the_reference(path: str) -> None:
    assert path in _described()


def _described() -> list[str]:
    return re.findall(r"(?m)^::: (tidepull[\w.]*)$", REFERENCE)


@pytest.mark.parametrize("path", _described())
def test_what_the_reference_describes_is_public_and_exists(path: str) -> None:
    module, _, name = path.rpartition(".")
    homes = {f"tidepull.{home}.{name}" for name, home in tidepull._HOME_OF.items()}
    modules = {f"tidepull.{home}" for home in tidepull._MODULES.values()}
    if path in homes | modules | OF_CLIENTS:
        return
    owner = importlib.import_module(module)
    if owner.__name__ == "tidepull.integrations":
        assert name in INTEGRATIONS
    else:
        assert name in owner.__all__, f"{path} is not public"


@pytest.mark.parametrize("path", SHOWN, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_users_are_shown_needs_public_names_alone(path: Path) -> None:
    text = path.read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.S) if path.suffix == ".md" else [text]
    private = [
        name for block in blocks for name in _asked_of_tidepull(block) if not _is_public(name)
    ]
    assert not private


def _asked_of_tidepull(code: str) -> Iterator[str]:
    """Dotted names of what a piece of code takes from tidepull."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from (
                alias.name for alias in node.names if alias.name.split(".")[0] == "tidepull"
            )
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "tidepull":
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "tidepull"
        ):
            yield f"tidepull.{node.attr}"


def _is_public(dotted: str) -> bool:
    _, *rest = dotted.split(".")
    if not rest:
        return True
    if rest[0] == "integrations" and len(rest) > 1:
        return rest[1] in INTEGRATIONS
    if rest[0] not in tidepull.__all__:
        return False
    owner = getattr(tidepull, rest[0])
    return len(rest) == 1 or (isinstance(owner, ModuleType) and rest[1] in public_in(owner))


def public_in(module: ModuleType) -> set[str]:
    """The names of a public module: its `__all__`, or in `errors` all of them."""
    return set(
        getattr(module, "__all__", None)
        or (name for name in vars(module) if name.endswith("Error"))
    )


def test_private_names_are_told_from_public_ones() -> None:
    code = (
        "import tidepull.experiments\nfrom tidepull import logs, random\nfrom tidepull.logs import "
        "read\n"
        "tidepull.Agent"
    )
    assert {name: _is_public(name) for name in _asked_of_tidepull(code)} == {
        "tidepull.experiments": False,
        "tidepull.logs": True,
        "tidepull.random": False,
        "tidepull.logs.read": True,
        "tidepull.Agent": True,
    }


def test_agent_has_no_machinery_of_servers() -> None:
    """What only servers need is on `ServedAgent`, so that completion shows what users call."""
    public = {name for name in dir(tidepull.Agent) if not name.startswith("_")}
    machinery = {name for name in vars(ServedAgent) if not name.startswith("_")}
    assert not public & machinery
    assert not {name for name in public if name.endswith(("_ahead", "aside"))}
    assert len(public) <= 36


def test_dir_shows_public_names_before_their_first_use() -> None:
    words = "import tidepull; print(sorted(set(tidepull.__all__) - set(dir(tidepull))))"
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_messages_about_extras_have_a_singular_subject() -> None:
    """ "Parquet needs the extra", "reading logs needs the extra", not "Parquet files needs"."""
    features = [
        node.args[0].value
        for path in (ROOT / "src").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("MissingExtraError", "needs")
        and isinstance(node.args[0], ast.Constant)
    ]
    assert len(features) > 10
    plural = [
        words
        for words in map(str, features)
        if " " in words and not re.match(r"(a|an|the|tidepull|\w+ing) ", words)
    ]
    assert not plural
