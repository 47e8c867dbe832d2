"""Looks for barriers on the owner's page: python benchmarks/setup_accessibility.py axe.min.js [PICTURES]

As `console_accessibility.py`, over the page of `tacit init --browser` for made-up orders: as it opens, with choices
made, and with what cannot be read; at three widths, light and dark. With a folder, saves a picture of each.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from console_accessibility import RULES, WIDTHS
from console_pictures import CHROMIUM, FLAGS
from playwright.sync_api import Page, sync_playwright

STATES = ("opened", "chosen", "unreadable")


def main(axe: Path, pictures: Path | None) -> None:
    script, found = axe.read_text("utf-8"), Counter[str]()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        write_orders(Path(folder) / "orders.csv")
        command = [sys.executable, "-u", "-m", "tacit", "init", "orders.csv", "--browser"]
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            server.stdout.readline()
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            first = browser.new_context()
            page = first.new_page()
            page.goto(server.stdout.readline().strip())
            place, cookies = page.url, first.storage_state()
            for width, height in WIDTHS.items():
                for scheme in ("light", "dark"):
                    for state in STATES:
                        context = browser.new_context(
                            viewport={"width": width, "height": height},
                            color_scheme=scheme,
                            reduced_motion="reduce",
                            bypass_csp=True,  # for axe alone, which the page would not run
                            storage_state=cookies,
                        )
                        page = context.new_page()
                        page.goto(place)
                        choose(page, state)
                        page.evaluate(script)
                        result = page.evaluate("rules => axe.run({runOnly: rules})", RULES)
                        for violation in result["violations"]:
                            found[violation["impact"]] += len(violation["nodes"])
                            where = violation["nodes"][0]["target"]
                            print(f"{state} {width} {scheme}: {violation['impact']} {violation['id']} {where}")
                        found["pages"] += 1
                        if pictures is not None:
                            dark = "-dark" if scheme == "dark" else ""
                            name = "setup" if state == "chosen" else f"setup-{state}"
                            page.evaluate("scrollTo(0, 0)")
                            page.screenshot(path=pictures / f"{name}-{width}{dark}.png")
                        context.close()
            browser.close()
            server.terminate()
    serious = found["serious"] + found["critical"]
    print(
        f"{found['pages']} pages: {serious} serious or critical, {found['moderate']} moderate, {found['minor']} minor"
    )


def choose(page: Page, state: str) -> None:
    if state == "chosen":
        for number in range(3):
            page.locator("input[name=key-0-3]").nth(number).check()
        page.locator("input[name=lower-0-4]").fill("0")
        page.locator("input[name=upper-0-4]").fill("60")
        page.locator("#effect-0-4", has_text="of 5,000 rows").wait_for()
        page.locator("#preview .bars").nth(1).wait_for()
    elif state == "unreadable":
        page.get_by_label("Overall epsilon").fill("lots")
        page.locator("#preview .refusal").wait_for()


def write_orders(path: Path) -> None:
    draw = random.Random(3)
    lines = ["order_id,customer_id,email,product,amount,paid,ordered_at"]
    for number in range(5_000):
        customer = draw.randrange(1_400)
        amount, paid, day = draw.lognormvariate(3, 0.7), draw.random() < 0.9, draw.randrange(1, 29)
        product = draw.choices(["coffee", "tea", "cake"], [5, 3, 2])[0]
        lines.append(f"{number},{customer},c{customer}@example.org,{product},{amount:.2f},{paid},2025-05-{day:02d}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None)
