"""How large tidepull is: files, lines, code and documentation of each package.

Code is every line with a token that is neither a comment nor part of a docstring; documentation is
every line of a docstring.

python -m research.benchmarks.size [FOLDER]
"""

from __future__ import annotations

import argparse
import ast
import tokenize
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parents[2] / "src" / "tidepull"
_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
_NO_CODE.add(tokenize.ENDMARKER)


class Size(NamedTuple):
    """Counts of one file, or of several."""

    files: int
    lines: int
    code: int
    doc: int


def docstring_lines(tree: ast.Module) -> set[int]:
    """Numbers of the lines that docstrings fill."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            match node.body:
                case [ast.Expr(value=ast.Constant(value=str())) as docstring, *_]:
                    lines.update(range(docstring.lineno, (docstring.end_lineno or 0) + 1))
    return lines


def measure(path: Path) -> Size:
    """Counts of one file."""
    docstrings = docstring_lines(ast.parse(path.read_bytes()))
    code: set[int] = set()
    with tokenize.open(path) as file:
        for token in tokenize.generate_tokens(file.readline):
            if token.type not in _NO_CODE:
                code.update(range(token.start[0], token.end[0] + 1))
    lines = len(path.read_text(encoding="utf-8").splitlines())
    return Size(1, lines, len(code - docstrings), len(docstrings))


def measure_packages(folder: Path) -> dict[str, Size]:
    """Counts of each package in a folder; modules beside the packages count as `(root)`."""
    sizes: defaultdict[str, list[Size]] = defaultdict(list)
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).parts
        sizes[parts[0] if len(parts) > 1 else "(root)"].append(measure(path))
    return {name: Size(*map(sum, zip(*sizes[name], strict=True))) for name in sorted(sizes)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=SOURCE)
    packages = measure_packages(parser.parse_args().folder)
    total = Size(*map(sum, zip(*packages.values(), strict=True)))
    print(f"| {'package':14} | files |  lines |   code |    doc |\n|---|---:|---:|---:|---:|")
    for name, size in {**packages, "**sum**": total}.items():
        print(f"| {name:14} | {size.files:5} | {size.lines:6,} | {size.code:6,} | {size.doc:6,} |")


if __name__ == "__main__":
    main()
