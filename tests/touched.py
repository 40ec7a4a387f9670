"""Which test files a change touches: `python -m tests.touched [BASE]` prints them, for `make
check`.

A test file is touched when it changed itself, when it imports a changed module of tidepull, or when
its folder below `tests/KIND` mirrors the changed module's and its name has the module's name.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = Path("src/tidepull")


def changed(base: str) -> list[Path]:
    """Files that differ from where this branch left `base`, committed or not, new ones included."""
    fork = _git("merge-base", "HEAD", base)[0]
    return [Path(name) for name in {*_git("diff", "--name-only", fork), *_git(*UNTRACKED)}]


def touched(files: Iterable[Path], root: Path = ROOT) -> list[Path]:
    """The test files under `root` that these changes concern, in order."""
    modules = {
        _module(file): file
        for file in files
        if file.is_relative_to(PACKAGE) and file.suffix == ".py"
    }
    own = {file for file in files if file.parts[0] == "tests"}
    found = set()
    for path in sorted((root / "tests").rglob("test_*.py")):
        place = path.relative_to(root)
        if place in own or _mirrors(place, modules.values()) or modules.keys() & set(imports(path)):
            found.add(place)
    return sorted(found)


def imports(path: Path) -> Iterator[str]:
    """Names of modules that a file imports; of `from a import b` both `a` and `a.b`, since `b` may
    be one."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _mirrors(test: Path, modules: Iterable[Path]) -> bool:
    return any(
        test.parts[2:-1] == module.relative_to(PACKAGE).parts[:-1] and module.stem in test.stem
        for module in modules
    )


def _module(file: Path) -> str:
    return ".".join(file.relative_to("src").with_suffix("").parts).removesuffix(".__init__")


UNTRACKED = ("ls-files", "--others", "--exclude-standard")


def _git(*words: str) -> list[str]:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.split("\n")[:-1]


if __name__ == "__main__":
    base = sys.argv[1] if sys.argv[1:] else "main"
    print("\n".join(str(path) for path in touched(changed(base)) if (ROOT / path).exists()))
