"""The page that the manual's search shows first: `python -m manual.search SITE` asks the built site in
Chromium, as a reader would, and prints a table.

`tests/e2e/browser/test_manual.py` compares it with `FIRST`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

FIRST = {
    "docker": "recipes/docker",
    "fastapi": "recipes/fastapi",
    "django": "recipes/django",
    "gunicorn": "recipes/workers",
    "gdpr": "how-to/personal-data",
    "delayed rewards": "how-to/late-rewards",
    "a/b test": "how-to/try-it-safely",
    "top k": "index",
    "price": "index",
    "holidays": "agent",
    "own features": "agent",
    "backup": "operations",
    "upgrade": "compatibility",
    "tokens": "service",
    "metrics": "operations",
    "regret": "experiments",
    "lstm": "neural",
    "theorem": "theory",
    "tideline": "tideline",
    "install": "install",
}
"""Words that readers look for, and the page that answers them."""


def first(page: Any, site: Path, query: str) -> str:
    """The page of the first result, without its ending.

    Parameters
    ----------
    page : playwright page
        A page of the browser.
    site : Path
        The folder of the built site.
    query : str
        What is typed into the search box.
    """
    page.goto((site / "index.html").as_uri())
    page.locator("input.md-search__input").click()
    page.keyboard.type(query)
    page.wait_for_selector(".md-search-result__link")
    page.wait_for_timeout(300)  # the list is filled as it is typed
    link = page.locator(".md-search-result__link").first.evaluate("link => link.href")
    found = str(link).removeprefix(site.as_uri() + "/")
    return found.partition("?")[0].partition("#")[0].removesuffix(".html")


def main(site: str) -> None:
    """Print a table of all words."""
    from playwright.sync_api import sync_playwright

    from manual.dashboard import chromium_path

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium_path(), args=["--no-sandbox", "--allow-file-access-from-files"]
        )
        page = browser.new_page()
        for query, wanted in FIRST.items():
            found = first(page, Path(site).resolve(), query)
            print(f"| {query} | {found} | {'' if found == wanted else f'wanted {wanted}'} |")
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1] if sys.argv[1:] else "site")
