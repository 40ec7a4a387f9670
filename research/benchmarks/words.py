"""How long the README and the manual are: pages, words, and lengths of sentences.

python -m research.benchmarks.words [REVISION]   # of this folder, or of a commit
"""

from __future__ import annotations

import re
import subprocess
import sys
from typing import NamedTuple

import numpy as np

from manual.prose import GENERATED, LONGEST_SENTENCE, ROOT, sentences


class Length(NamedTuple):
    """Counts of several pages."""

    pages: int
    words: int
    sentences: int
    median: float
    p95: float
    long: int
    mean: float


def length(pages: list[str]) -> Length:
    """Counts of pages; words in code blocks do not count."""
    words = sum(len(re.sub(r"```.*?```", "", page, flags=re.S).split()) for page in pages)
    each = np.array([len(one.split()) for page in pages for one in sentences(page)] or [0])
    return Length(
        len(pages),
        words,
        len(each),
        float(np.median(each)),
        float(np.quantile(each, 0.95)),
        int((each > LONGEST_SENTENCE).sum()),
        float(each.mean()),
    )


def pages_of(revision: str | None) -> dict[str, str]:
    """Text of the README and of every page of the manual, by path."""
    if revision is None:
        paths = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
        return {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in paths}
    listed = _git("ls-tree", "-r", "--name-only", revision, "README.md", "docs").split("\n")
    return {name: _git("show", f"{revision}:{name}") for name in listed if name.endswith(".md")}


def _git(*arguments: str) -> str:
    ran = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return ran.stdout


def main() -> None:
    """Print a table: the README, pages that were written, pages that commands generate."""
    pages = pages_of(sys.argv[1] if len(sys.argv) > 1 else None)
    groups = {
        "README": [text for name, text in pages.items() if name == "README.md"],
        "manual": [
            text for name, text in pages.items() if not name.startswith(("README", *GENERATED))
        ],
        "generated": [text for name, text in pages.items() if name.startswith(GENERATED)],
    }
    print(f"|  | pages | words | sentences | mean words | median | 95% | over {LONGEST_SENTENCE} |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for name, texts in groups.items():
        one = length(texts)
        print(
            f"| {name} | {one.pages} | {one.words:,} | {one.sentences:,} | {one.mean:.1f} | {one.median:.0f} "
            f"| {one.p95:.0f} | {one.long} |"
        )


if __name__ == "__main__":
    main()
