"""Takes the pictures of the console: python benchmarks/console_pictures.py docs/images

Serves the bundled clinic, asks as ada and looks as the owner in Debian's chromium, wide and narrow, light and dark.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from tacit.demo.clinic import build_clinic
from tacit.serve import credentials
from tacit.serve.demo import DEMO_USERS
from tacit.serve.server import ListenAddresses, ServerConfig, run_server

CHROMIUM = "/usr/bin/chromium"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
SIZES = {1280: 860, 390: 844}
QUESTIONS = {
    "SELECT COUNT(*) AS visits FROM visits WHERE age >= 65": "0.1",
    "SELECT sex, COUNT(DISTINCT patient_id) AS patients FROM visits GROUP BY sex": "0.2",
    "SELECT diagnosis, COUNT(DISTINCT patient_id) AS patients\nFROM visits\nGROUP BY diagnosis\n"
    "ORDER BY patients DESC LIMIT 6": "0.2",
}
COSTS = "SELECT ward, AVG(cost) AS mean_cost, COUNT(*) AS visits\nFROM visits\nGROUP BY ward"
PRICED = "SELECT ward, COUNT(*) AS visits, AVG(nights) AS nights\nFROM visits\nWHERE age >= 65\nGROUP BY ward"
MONTHS = (
    "SELECT DATE_TRUNC('month', visited) AS month, sex,\n       COUNT(DISTINCT patient_id) AS patients\n"
    "FROM visits\nWHERE sex <> 'X'\nGROUP BY month, sex"
)
UNBOUNDED = "SELECT ward,\n       AVG(cost / nights) AS cost_per_night\nFROM visits\nGROUP BY ward"


def main(target: Path) -> None:
    with open_clinic() as (browser, told):
        Pictures(browser, told["http"], told["passwords"], target).take()


@contextmanager
def open_clinic() -> Iterator[tuple[Browser, dict[str, Any]]]:
    """A browser, and the address and the passwords of a clinic that is served meanwhile."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--serve", folder]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                told = json.loads(server.stdout.readline())
                with sync_playwright() as playwright:
                    browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
                    yield browser, told
                    browser.close()
            finally:
                server.terminate()


def serve(folder: Path) -> None:
    """The clinic, until a signal comes; says where, and the passwords."""
    policy = build_clinic(folder)
    passwords = {
        name: credentials.add_credential(credentials.credentials_path(policy), name, role).password
        for name, role in DEMO_USERS.items()
    }

    def ready(listening: ListenAddresses) -> None:
        print(json.dumps({"http": listening.http, "passwords": passwords}), flush=True)

    run_server(policy, ServerConfig(http=0, postgres=None), ready)


class Pictures:
    """One browser before one clinic."""

    def __init__(self, browser: Browser, base: str, passwords: dict[str, str], target: Path) -> None:
        self._browser = browser
        self._base = base
        self._passwords = passwords
        self._target = target
        self._sessions: dict[str, Any] = {}

    def take(self) -> None:
        """All of them, in an order in which each page shows what was done before."""
        for width in SIZES:
            self._save(self._window("", width), "sign-in", width, whole=False)
        page = self._window("ada", 1280)
        for sql, epsilon in {**QUESTIONS, COSTS: "0.8"}.items():
            _ask(page, sql, epsilon)
        for width in SIZES:
            page = self._window("ada", width)
            _fill(page, PRICED, "0.2")
            page.locator(".price").wait_for()
            self._save(page, "price", width, whole=False)
        for width in SIZES:
            for dark in (False, True):
                page = self._window("ada", width, dark=dark)
                _ask(page, COSTS, "0.8")
                page.locator(".price").wait_for()
                self._save(page, "ask", width, dark=dark)
        for width in SIZES:
            page = self._window("ada", width)
            _ask(page, MONTHS, "0.2")
            self._save(page, "series", width, whole=False, focus=True)
        for width in SIZES:
            page = self._window("ada", width)
            _ask(page, UNBOUNDED, "0.8")
            page.locator(".doubt").wait_for()
            self._save(page, "refusal", width)
            self._save(self._window("ada", width, "/console/budget"), "budget", width)
        self._play()
        for width, dark in ((1280, False), (1280, True), (390, False)):
            page = self._window("ada", width, "/console/learn", dark=dark)
            page.get_by_role("button", name="Attack").click()
            page.get_by_text("of 100 right").first.wait_for()
            self._save(page, "learn", width, dark=dark)
        for width in SIZES:
            page = self._window("owner", width, "/console/owner")
            page.get_by_role("button", name="Verify every entry").click()
            page.get_by_text("All in order.").wait_for()
            self._save(page, "owner", width)

    def _play(self) -> None:
        """Some rounds of the game, by ada and by the best guesser."""
        page = self._window("ada", 1280, "/console/learn")
        for move in ["#move-with", "#move-without"] * 5 + ["#move-best"]:
            with page.expect_response("**/learn/game"):
                page.locator(move).click()
        page.get_by_role("cell", name="1,000").wait_for()

    def _window(self, who: str, width: int, path: str = "/console/ask", *, dark: bool = False) -> Page:
        """A window of someone, signed in; nobody is not."""
        context = self._browser.new_context(
            base_url=self._base,
            viewport={"width": width, "height": SIZES[width]},
            color_scheme="dark" if dark else "light",
            storage_state=self._sessions.get(who),
        )
        page = context.new_page()
        page.goto("/" if who not in self._sessions else path)
        if who and who not in self._sessions:
            page.get_by_label("Name").fill(who)
            page.get_by_label("Password").fill(self._passwords[who])
            page.get_by_role("button", name="Sign in").click()
            page.get_by_role("button", name="Sign out").wait_for()
            self._sessions[who] = context.storage_state()
            page.goto(path)
        return page

    def _save(
        self, page: Page, name: str, width: int, *, whole: bool = True, dark: bool = False, focus: bool = False
    ) -> None:
        """Save a picture: of the whole page or of the window, and with the focus where it is or without."""
        page.mouse.move(0, 0)
        if not focus:
            page.evaluate("document.activeElement?.blur()")
        picture = Image.open(io.BytesIO(page.screenshot(full_page=whole, animations="disabled")))
        file = self._target / f"console-{name}-{width}{'-dark' if dark else ''}.png"
        picture.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(file, optimize=True)
        page.context.close()


def _fill(page: Page, sql: str, epsilon: str) -> None:
    page.locator(".cm-content").fill(sql)
    page.keyboard.press("Escape")  # no list of completions
    page.get_by_label("Privacy loss, epsilon", exact=True).fill(epsilon)


def _ask(page: Page, sql: str, epsilon: str) -> None:
    page.goto("/console/ask")
    _fill(page, sql, epsilon)
    page.get_by_role("button", name="Ask", exact=True).click()
    page.locator("#result > *").first.wait_for()


if __name__ == "__main__":
    serve(Path(sys.argv[2])) if sys.argv[1] == "--serve" else main(Path(sys.argv[1]))
