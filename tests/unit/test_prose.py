"""Sentences that users read follow the style of CONTRIBUTING.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from manual.prose import ROOT, WORDS, allowed, counts, findings, page_findings, strings
from research.benchmarks.words import length


def test_no_page_or_string_has_more_findings_than_the_allow_list() -> None:
    found = findings()
    over = {key: n for key, n in counts(found).items() if n > allowed().get(key, 0)}
    shown = [
        f"{one.path}: {one.text} -> {one.advice}"
        for one in found
        if f"{one.path}: {one.rule}" in over
    ]
    assert not over, "python -m manual.prose shows these:\n" + "\n".join(shown)


def test_allow_list_names_no_file_that_is_gone() -> None:
    gone = [key for key in allowed() if not (ROOT / key.partition(":")[0]).exists()]
    assert not gone, f"run python -m manual.prose --write: {gone}"


@pytest.mark.parametrize(
    ("page", "rules"),
    [
        ("A short sentence about an arm.", []),
        ("Users who open the page see a table.", []),
        ("A policy who forgets.", ["word"]),
        ("Nobody waits.\n\nRewards of late.", ["word", "word"]),
        ("The same as JSON.", ["word"]),
        ("Code may say so: `who`.\n\n```\nnobody\n```", []),
        ("## What it keeps", ["heading"]),
        ("## Privacy and retention", []),
        ("word " * 35 + "end.", ["length"]),
        ("word " * 34 + "end. Another one.", []),
        ("word " * 20 + "\n\n" + "word " * 20, []),
        ("| " + "word " * 40 + " |", []),
        ("`a b c`, [some words](x.md#y) " + "word " * 31 + "end.", []),
        ("- " + "word " * 30 + "\n- " + "word " * 30, []),
    ],
)
def test_rules_find_what_they_name(page: str, rules: list[str]) -> None:
    assert [one.rule for one in page_findings("page.md", page)] == rules


def test_strings_are_found_without_docstrings_and_code() -> None:
    source = '"""A module."""\nx = f"arm {y} of {len(z)}"\nz = "one_word"\nraise E("no " "arm")\n'
    assert list(strings(source, docstrings=False)) == ["arm X of X", "no arm"]
    assert "A module." in list(strings(source, docstrings=True))


def test_findings_cover_pages_help_errors_and_api_descriptions(tmp_path: Path) -> None:
    files = {
        "README.md": "Whoever reads.",
        "CONTRIBUTING.md": "Fine.",
        "docs/deep/page.md": "Nobody.",
        "src/tidepull/cli/run.py": '"""Run so many trials."""',
        "src/tidepull/agent/x.py": '"""So many."""\nraise E("so many arms")',
        "src/tidepull/service/handlers/y.py": 'def f():\n    """Arms of late."""',
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert set(counts(findings(tmp_path))) == {
        f"{name}: word" for name in files if name != "CONTRIBUTING.md"
    }
    assert sum(counts(findings(tmp_path)).values()) == 5


def test_every_expression_of_the_word_list_has_advice() -> None:
    assert all(WORDS.values())
    assert len(WORDS) >= 15


def test_length_of_pages_counts_words_sentences_and_long_ones() -> None:
    pages = ["One two three. Four five.\n\n```\nnot counted\n```", "word " * 36 + "end."]
    found = length(pages)
    assert (found.pages, found.words, found.sentences, found.long) == (2, 42, 3, 1)
    assert found.median == 3
