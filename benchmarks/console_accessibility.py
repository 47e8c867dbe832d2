"""Looks for barriers on every page of the console: python benchmarks/console_accessibility.py axe.min.js [PICTURES]

Runs axe-core, which its authors publish as the npm package of that name, over the pages of the bundled clinic in
Debian's chromium: at three widths, light and dark. Prints what it finds, and how many of it are serious; with a folder,
saves a picture of each page.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

from console_pictures import COSTS, MONTHS, PRICED, UNBOUNDED, open_clinic
from playwright.sync_api import Page

WIDTHS = {390: 844, 1280: 800, 1440: 900}
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
PAIRS = "SELECT ward, sex, COUNT(DISTINCT patient_id) AS patients FROM visits GROUP BY ward, sex"
TOTAL = "SELECT COUNT(*) AS visits, AVG(age) AS mean_age FROM visits"


def main(axe: Path, pictures: Path | None) -> None:
    script, found = axe.read_text("utf-8"), Counter[str]()
    with open_clinic() as (browser, told):
        states: dict[str, Any] = {}
        for width, height in WIDTHS.items():
            for scheme in ("light", "dark"):
                for name, who in PAGES.items():
                    context = browser.new_context(
                        base_url=told["http"],
                        viewport={"width": width, "height": height},
                        color_scheme=scheme,
                        reduced_motion="reduce",
                        bypass_csp=True,  # for axe alone, which the page would not run
                        storage_state=states.get(who),
                    )
                    page = context.new_page()
                    page.goto("/")
                    if who and who not in states:
                        page.get_by_label("Name").fill(who)
                        page.get_by_label("Password").fill(told["passwords"][who])
                        page.get_by_role("button", name="Sign in").click()
                        page.get_by_role("button", name="Sign out").wait_for()
                        states[who] = context.storage_state()
                    _open(page, name)
                    page.evaluate(script)
                    result = page.evaluate("rules => axe.run({runOnly: rules})", RULES)
                    for violation in result["violations"]:
                        found[violation["impact"]] += len(violation["nodes"])
                        where = violation["nodes"][0]["target"]
                        print(f"{name} {width} {scheme}: {violation['impact']} {violation['id']} {where}")
                    found["pages"] += 1
                    if pictures is not None:
                        page.screenshot(path=pictures / f"{name}-{width}-{scheme}.png", full_page=name != "answer")
                    context.close()
    serious = found["serious"] + found["critical"]
    print(
        f"{found['pages']} pages: {serious} serious or critical, {found['moderate']} moderate, {found['minor']} minor"
    )


PAGES = {
    "sign-in": "",
    "ask": "ada",
    "price": "ada",
    "answer": "ada",
    "series": "ada",
    "groups": "ada",
    "number": "ada",
    "refusal": "ada",
    "budget": "ada",
    "learn": "ada",
    "owner": "owner",
}


def _open(page: Page, name: str) -> None:
    if name in {"budget", "learn", "owner"}:
        page.goto(f"/console/{name}")
        if name == "learn":
            page.get_by_role("button", name="Attack").click()
            page.get_by_text("of 100 right").first.wait_for()
    elif name != "sign-in":
        page.goto("/console/ask")
        page.locator(".cm-content").wait_for()
        asked = {"answer": COSTS, "series": MONTHS, "groups": PAIRS, "number": TOTAL, "refusal": UNBOUNDED}
        if name == "price":
            page.locator(".cm-content").fill(PRICED)
            page.keyboard.press("Escape")
            page.locator(".price").wait_for()
        elif name in asked:
            page.locator(".cm-content").fill(asked[name])
            page.keyboard.press("Control+Enter")
            page.locator("#result > *").first.wait_for()
            page.locator("#price > .price, #price > .doubt").wait_for()
            if name == "answer":
                page.locator(".numbers summary").click()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None)
