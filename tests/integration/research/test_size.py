"""Lines of code are counted without blanks, comments and docstrings."""

from __future__ import annotations

from pathlib import Path

from research.benchmarks.size import Size, measure, measure_packages

SAMPLE = '''"""A module.

With two paragraphs.
"""

X = 1  # beside code
"""What X is."""


def f() -> str:
    """One line."""
    # alone
    return """a string
of two lines"""
'''


def test_code_is_what_is_neither_blank_nor_comment_nor_docstring(tmp_path: Path) -> None:
    path = tmp_path / "sample.py"
    path.write_text(SAMPLE)
    assert measure(path) == Size(files=1, lines=14, code=5, doc=5)


def test_modules_beside_packages_are_a_row_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    for name in ("a.py", "inner/b.py", "inner/c.py"):
        (tmp_path / name).write_text("x = 1\n")
    assert measure_packages(tmp_path) == {"(root)": Size(1, 1, 1, 0), "inner": Size(2, 2, 2, 0)}
