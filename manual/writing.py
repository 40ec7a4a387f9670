"""Text that a command puts into a page, between two comments that name it."""

from __future__ import annotations

from pathlib import Path


def between(page: Path, name: str, text: str) -> None:
    """Replace what stands between `<!-- name -->` and `<!-- end of name -->`."""
    start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    before, _, rest = page.read_text().partition(start)
    _, found, after = rest.partition(end)
    if not found:
        raise SystemExit(f"{page} has no '{start.strip()}' and '{end}'")
    page.write_text(f"{before}{start}{text.strip()}\n{found}{after}")
