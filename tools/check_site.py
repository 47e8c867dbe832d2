"""Check a built site: each link inside it leads to a page and a place that exist, and nothing is fetched elsewhere.

python tools/check_site.py build/docs
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

FETCHED = {
    ("script", "src"),
    ("link", "href"),
    ("img", "src"),
    ("source", "src"),
    ("iframe", "src"),
    ("object", "data"),
}
NOT_FETCHED = {"canonical", "author", "license", "next", "prev", "search", "index", "help"}
FETCHED_BY_STYLE = re.compile(r"(?:url\(|@import\s+)[\"']?(?:https?:)?//")


class PageReader(HTMLParser):
    """The names, the links and what the browser fetches, of one page."""

    def __init__(self) -> None:
        super().__init__()
        self.places: set[str] = {"", "top"}
        self.links: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect what one tag names."""
        values = {name: value or "" for name, value in attrs}
        self.places |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        for name, value in values.items():
            if (tag, name) in FETCHED and not (tag == "link" and values.get("rel") in NOT_FETCHED):
                self.fetched.append(value)


def read_page(page: Path) -> PageReader:
    """Return what a page has."""
    reader = PageReader()
    reader.feed(page.read_text(encoding="utf-8"))
    return reader


def find_problems(site: Path) -> Iterator[str]:
    """Yield a line for each link that leads nowhere and each thing that is fetched from another host."""
    files = [page for page in sorted(site.rglob("*.html")) if "_static" not in page.parts]  # the theme's templates
    pages = {page.resolve(): read_page(page) for page in files}
    if not pages:
        yield f"{site}: there are no pages; run make docs"
    for page, found in pages.items():
        for link in found.links + found.fetched:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in found.fetched and parts.scheme != "data":
                    yield f"{page.relative_to(site.resolve())}: fetches {link}"
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                yield f"{page.relative_to(site.resolve())}: there is no {link}"
            elif target in pages and unquote(parts.fragment) not in pages[target].places:
                yield f"{page.relative_to(site.resolve())}: {link} has no such place"
    for style in sorted(site.rglob("*.css")):
        if FETCHED_BY_STYLE.search(style.read_text(encoding="utf-8")):
            yield f"{style.relative_to(site)}: fetches from another host"


def main(site: str) -> int:
    """Print the problems, and return how the program ends."""
    problems = list(find_problems(Path(site)))
    print("\n".join(problems) or f"{site}: every link leads somewhere, and nothing is fetched from elsewhere")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
