"""The site: what its checks find, how links leave docs/, and that every public name has a page."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path

import pytest
from tools.check_site import find_problems

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


@pytest.fixture
def extensions(monkeypatch):
    """The modules that conf.py adds to Sphinx."""
    monkeypatch.syspath_prepend(DOCS / "extensions")
    yield import_module
    for name in ("repository_pages", "public_names"):
        sys.modules.pop(name, None)


PAGE = '<html><body><a href="{link}">there</a><p id="here"></p>{more}</body></html>'


@pytest.mark.parametrize(
    ("link", "more", "problem"),
    [
        ("other.html#here", "", ""),
        ("#here", "", ""),
        ("https://example.org/", "", ""),  # a link may leave; what is fetched may not
        ("gone.html", "", "page.html: there is no gone.html"),
        ("other.html#gone", "", "page.html: other.html#gone has no such place"),
        ("#here", '<script src="https://example.org/a.js"></script>', "page.html: fetches https://example.org/a.js"),
        ("#here", '<link rel="stylesheet" href="//example.org/a.css">', "page.html: fetches //example.org/a.css"),
        ("#here", '<img src="gone.png">', "page.html: there is no gone.png"),
    ],
)
def test_what_is_wrong_with_a_site_is_found(tmp_path, link, more, problem):
    (tmp_path / "page.html").write_text(PAGE.format(link=link, more=more))
    (tmp_path / "other.html").write_text(PAGE.format(link="page.html", more=""))
    assert list(find_problems(tmp_path)) == ([problem] if problem else [])


def test_a_style_that_fetches_and_an_empty_site_are_found(tmp_path):
    (tmp_path / "a.css").write_text("@font-face { src: url('https://example.org/a.woff2') }")
    assert list(find_problems(tmp_path)) == [
        f"{tmp_path}: there are no pages; run make docs",
        "a.css: fetches from another host",
    ]


@pytest.mark.parametrize(
    ("link", "turned"),
    [
        ("sql.md#joins", "sql.md#joins"),
        ("https://example.org/a.md", "https://example.org/a.md"),
        ("../../SECURITY.md", "../project/security.md"),
        ("../../benchmarks/keys.md", "../project/measured/keys.md"),
        ("../../examples/coins.py", "../gallery/coins.rst"),
        ("../../examples/README.rst", "../gallery/index.rst"),
        ("../../src/tacit/errors.py", "../../src/tacit/errors.py"),
    ],
)
def test_links_that_leave_the_pages_are_turned(extensions, link, turned):
    pages = extensions("repository_pages")
    page = DOCS / "guide" / "policy.md"
    found = pages.turn_links(f"[a]({link})", page, page, pages.find_outside_pages())
    assert found == f"[a]({turned})"


def test_links_of_a_page_that_moves_are_turned(extensions):
    pages = extensions("repository_pages")
    page, target = ROOT / "CHANGELOG.md", DOCS / "project" / "changelog.md"
    found = pages.turn_links("[a](docs/guide/sql.md)", page, target, pages.find_outside_pages())
    assert found == "[a](../guide/sql.md)"


@pytest.mark.slow
def test_every_public_name_is_in_the_reference(extensions):
    names = extensions("public_names")
    for package in ("tacit", "tacit.mechanisms", "tacit.privacy"):
        listed = re.findall(r"^   (\w+)$", names.render_package(package), re.MULTILINE)
        assert sorted(listed) == sorted(import_module(package).__all__)
    homes = {file.parent for file in (ROOT / "src" / "tacit").rglob("__init__.pyi")}  # packages that have `__all__`
    assert {".".join(home.relative_to(ROOT / "src").parts) for home in homes} == set(names.PACKAGES)


def test_bars_in_docstrings_are_escaped_outside_of_code(extensions):
    lines = ["noise |k| and `a | b`", "", ">>> 1 | 2", "3 | 4", "", "after |z|"]
    extensions("public_names").escape_bars(lines)
    assert lines == [r"noise \|k\| and `a | b`", "", ">>> 1 | 2", "3 | 4", "", r"after \|z\|"]


def test_pages_of_the_guide_are_listed_once():
    indexes = [DOCS / folder / "index.md" for folder in ("tutorials", "how-to", "reference", "explanation")]
    named = [name for page in indexes for name in re.findall(r"^\.\./guide/([\w-]+)$", page.read_text(), re.MULTILINE)]
    assert len(named) == len(set(named)) >= 20
    assert set(named) <= {page.stem for page in (DOCS / "guide").glob("*.md")}


def test_the_build_stays_offline():
    text = (DOCS / "conf.py").read_text()
    assert "intersphinx" not in text and "mathjax" not in text


def test_the_page_of_expectations_has_reasons():
    page = (DOCS / "explanation" / "expectations.md").read_text(encoding="utf-8")
    rows = [line.strip("|").split(" | ") for line in page.splitlines() if line.startswith("| ") and "---" not in line]
    rows = [row for row in rows if row[0].strip() != "what people expect"]
    assert len(rows) >= 40 and all(len(row) == 3 for row in rows)
    refused = [row[2] for row in rows if row[2].startswith("no")]
    assert len(refused) >= 5 and all(answer.startswith("no: ") and len(answer) > 30 for answer in refused)
