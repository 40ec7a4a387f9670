"""A seeded sample of all mutants that cosmic-ray can make of a module, without those that only
change words."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator

_BINARY = {
    "Add": ["Sub"],
    "Sub": ["Add"],
    "Mul": ["Div", "Add"],
    "Div": ["Mul"],
    "FloorDiv": ["Mul"],
    "Mod": ["Div"],
    "Pow": ["Mul"],
    "RShift": ["LShift"],
    "LShift": ["RShift"],
    "BitOr": ["BitAnd"],
    "BitAnd": ["BitOr"],
    "BitXor": ["BitAnd"],
}
_COMPARISONS = {
    "Eq": ["NotEq"],
    "NotEq": ["Eq"],
    "Lt": ["LtE", "GtE"],
    "LtE": ["Lt", "Gt"],
    "Gt": ["GtE", "LtE"],
    "GtE": ["Gt", "Lt"],
    "Is": ["IsNot"],
    "IsNot": ["Is"],
}
OPERATORS = (
    *(f"ReplaceBinaryOperator_{old}_{new}" for old, many in _BINARY.items() for new in many),
    *(
        f"ReplaceComparisonOperator_{old}_{new}"
        for old, many in _COMPARISONS.items()
        for new in many
    ),
    "ReplaceUnaryOperator_Delete_USub",
    "ReplaceUnaryOperator_Delete_Not",
    "ReplaceUnaryOperator_Delete_Invert",
    "AddNot",
    "ReplaceTrueWithFalse",
    "ReplaceFalseWithTrue",
    "ReplaceAndWithOr",
    "ReplaceOrWithAnd",
    "ReplaceBreakWithContinue",
    "ReplaceContinueWithBreak",
    "NumberReplacer",
    "ZeroIterationForLoop",
)
"""Faults that a person could make. Of `RemoveDecorator` those of interest die at once, and the
others do nothing."""


@dataclass(frozen=True)
class Mutant:
    """One change of one module. `place` stays the same while the line it is about does, whatever
    else is edited."""

    module: str
    operator: str
    occurrence: int
    line: int
    place: str

    def code(self, source: str) -> str:
        """The whole module with the change."""
        code = mutate_code(source, get_operator(f"core/{self.operator}")(), self.occurrence)
        assert isinstance(code, str)
        return code

    def lines(self, source: str) -> tuple[str, str]:
        """The line that changes, before and after."""
        pairs = zip(source.splitlines(), self.code(source).splitlines(), strict=False)
        return next(((one.strip(), two.strip()) for one, two in pairs if one != two), ("", ""))


def mutants_of(module: str, root: Path) -> Iterator[Mutant]:
    """All of a module's mutants."""
    source = (root / module).read_text()
    tree, words, texts = get_ast(source), _words(source), source.splitlines()
    seen: Counter[str] = Counter()
    for name in OPERATORS:
        operator = get_operator(f"core/{name}")()
        positions = (at for node in ast_nodes(tree) for at in operator.mutation_positions(node))
        for occurrence, (start, stop) in enumerate(positions):
            text = texts[start[0] - 1]
            key = f"{module} {name} {text.strip()} {start[1] - len(text) + len(text.lstrip())}"
            seen[key] += 1
            if not any(first <= start and stop <= last for first, last in words):
                place = sha256(f"{key} {seen[key]}".encode()).hexdigest()[:12]
                yield Mutant(module, name, occurrence, start[0], place)


def sample(modules: list[str], root: Path, size: int, seed: int) -> list[Mutant]:
    """Every mutant is as likely as every other, and stays in the sample while its line stays as it
    is."""
    everything = [mutant for module in modules for mutant in mutants_of(module, root)]
    everything.sort(key=lambda m: sha256(f"{seed} {m.place}".encode()).digest())
    return list(
        islice((m for m in everything if _is_python((root / m.module).read_text(), m)), size)
    )


def _is_python(source: str, mutant: Mutant) -> bool:
    """Not `def f(+, x)`: what every import refuses says nothing about tests."""
    try:
        compile(mutant.code(source), mutant.module, "exec")
    except SyntaxError:
        return False
    return True


def _words(source: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Where annotations, decorators, messages of errors and texts stand: changing those changes no
    decision."""
    places: list[ast.AST | None] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.arg | ast.AnnAssign):
            places.append(node.annotation)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            places += node.decorator_list
            places.append(getattr(node, "returns", None))
        elif isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert):
            places.append(node)
    return [
        ((n.lineno, n.col_offset), (n.end_lineno or n.lineno, n.end_col_offset or 0))
        for n in places
        if isinstance(n, ast.expr | ast.stmt)
    ]
