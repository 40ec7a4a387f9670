"""A linter for the sentences that users read, with a word list of this project.

It reads the README, CONTRIBUTING, the manual, and the strings of the package that reach a user: help
texts, error messages, reports, API descriptions and the dashboard. CONTRIBUTING.md, "Style", explains the rules.

`python -m manual.prose` prints every finding; `python -m manual.prose --write` lowers the numbers
of `allowed.json`, and never raises one.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
ALLOWED = ROOT / "manual" / "allowed.json"
LONGEST_SENTENCE = 35
"""Words of a sentence in a page."""

GENERATED = ("docs/results", "docs/tideline-2/")
"""How names of pages begin that commands write from results; their sentences are strings of code."""

API = ("service/handlers/", "service/messages.py", "cli/")
"""Modules of the package whose docstrings users read: OpenAPI descriptions and help texts."""

PEOPLE = re.compile(r"\b(?:people|person|user|customer|visitor|author|reader)s? who\b", re.I)
WORDS = {
    r"\b[Ww]hom?\b": "name the thing (`which`, `that`); people may be `who`",
    r"\b[Ww]hoever\b": "name the thing, or `any caller that`",
    r"\b(?:[Nn]o|[Ee]very|[Ss]ome|[Aa]ny)body\b": "nothing, every policy, a process, any client",
    r"\bof late\b": "recently",
    r"\bso many\b": "give the number a name: n, at most N",
    r"(?:^|[.:;] )The same(?= (?:as|of|for|with|in|by|but|again)\b|[.,:])": "name the thing that is alike",
    r"\bput right\b": "correct, recalibrate",
    r"\ba text\b": "a string",
    r"\bfor long(?=[.,;:)]|$)": "for a long time, or the time itself",
    r"\banew\b": "again",
    r"\blives? through\b|\bliving through\b": "replay",
    r"\bnewborns?\b|\bbirths\b": "candidate models, structure search",
    r"\bthe house\b|\brooms\b": "the package, the packages",
    r"\bno way back\b": "permanent",
    r"\bMind\b(?!set)|\bmind:": "Caveats, warning",
    r"\bas likely\b": "with probability p",
    r"\bsurely\b|\bfor sure\b": "with probability p, no evidence that",
    r"\bthe least (?:share|of)\b": "the minimum",
    r"\bhe\b|\bhis\b|\bhim\b": "it",
}
"""Expressions of the project that readers stumble over, and what to write."""

HIDING = re.compile(
    r"\b(?:it|its|they|them|their|he|here|there|this|that|these|those|ones|everything)\b"
    r"|^(?:who|whose|for long|at once|beside|against|mind|in full|so far|what (?:is|was|has|can))\b",
    re.IGNORECASE,
)
"""Headings that name no subject."""


class Finding(NamedTuple):
    """One sentence, heading or string against a rule."""

    path: str
    rule: str
    text: str
    advice: str


def sentences(page: str) -> list[str]:
    """Sentences of a page's prose: without code, tables, headings, formulas and comments."""
    page = re.sub(r"```.*?```|\$\$.*?\$\$|<!--.*?-->|^---\n.*?\n---\n", "\n\n", page, flags=re.S)
    lines = [
        "\n\n" if re.match(r"\s*(?:\||#|!\[|:::|<)", line) else line for line in page.splitlines()
    ]
    lines = [re.sub(r"^\s*(?:[-*+]|\d+\.) ", "\n\n", line) for line in lines]
    text = re.sub(r"`[^`]*`|\$[^$\n]+\$", "CODE", "\n".join(lines))
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n\s*\n", text)]
    return [
        one
        for paragraph in paragraphs
        for one in re.split(r"(?<=[.!?])[)*\"]* +(?=[A-Z*\"(`])", paragraph)
        if one.strip("*-_ ")
    ]


def word_findings(path: str, text: str) -> Iterator[Finding]:
    """Expressions of the word list in a text."""
    text = PEOPLE.sub("people", text)
    for pattern, advice in WORDS.items():
        for match in re.finditer(pattern, text):
            around = text[max(0, match.start() - 50) : match.end() + 50].replace("\n", " ")
            yield Finding(path, "word", f"...{around}...", advice)


def page_findings(path: str, page: str) -> Iterator[Finding]:
    """Findings in one page of Markdown."""
    prose = re.sub(r"```.*?```|`[^`\n]*`", "CODE", page, flags=re.S)
    yield from word_findings(path, prose)
    for heading in re.findall(r"(?m)^#+ (.*)$", prose):
        if HIDING.search(heading):
            yield Finding(path, "heading", heading, "name the subject with a noun")
    for one in sentences(page):
        if len(one.split()) > LONGEST_SENTENCE:
            yield Finding(path, "length", one, f"at most {LONGEST_SENTENCE} words: split it")


def strings(source: str, *, docstrings: bool) -> Iterator[str]:
    """Strings of a module that read as words; the values in an f-string become `X`."""
    tree = ast.parse(source)
    documented = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    inside = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in ast.walk(node)
        if part is not node
    }
    for node in ast.walk(tree):
        if id(node) in inside or (id(node) in documented and not docstrings):
            continue
        if isinstance(node, ast.JoinedStr):
            parts = [
                str(one.value) if isinstance(one, ast.Constant) else "X" for one in node.values
            ]
            text = "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        if " " in text.strip():
            yield text


def findings(root: Path = ROOT) -> list[Finding]:
    """Everything that the rules find in a repository."""
    found: list[Finding] = []
    pages = [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").rglob("*.md"))]
    for page in pages:
        name = page.relative_to(root).as_posix()
        if not name.startswith(GENERATED):
            text = page.read_text(encoding="utf-8")
            rest = re.sub(r"<!-- style -->.*?<!-- end of style -->", "", text, flags=re.S)
            found += page_findings(name, rest)
    package = root / "src" / "tidepull"
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).as_posix()
        for text in strings(path.read_text(encoding="utf-8"), docstrings=name.startswith(API)):
            found += word_findings(f"src/tidepull/{name}", text)
    service = package / "service"
    for path in sorted([*service.glob("*.json"), *service.glob("dashboard/[!u]*.js")]):
        for text in re.findall(r'"[^"\n]* [^"\n]*"|`[^`\n]* [^`\n]*`', path.read_text("utf-8")):
            found += word_findings(path.relative_to(root).as_posix(), text)
    return found


def counts(found: list[Finding]) -> dict[str, int]:
    """Findings by path and rule."""
    return dict(sorted(Counter(f"{one.path}: {one.rule}" for one in found).items()))


def allowed() -> dict[str, int]:
    """Findings that were there before the linter, by path and rule."""
    loaded: dict[str, int] = json.loads(ALLOWED.read_text(encoding="utf-8"))
    return loaded


def main() -> None:
    """Print what is found, or lower the numbers of the allow-list."""
    found = findings()
    if "--write" in sys.argv:
        now, before = counts(found), allowed()
        kept = {key: min(n, before.get(key, 0)) for key, n in now.items()}
        lines = {key: n for key, n in kept.items() if n}
        ALLOWED.write_text(json.dumps(lines, indent=1) + "\n", encoding="utf-8")
        return
    wanted = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    for one in found:
        if not wanted or any(one.path.startswith(part) for part in wanted):
            print(f"{one.path}: {one.rule}: {one.text}\n    {one.advice}")


if __name__ == "__main__":
    main()
