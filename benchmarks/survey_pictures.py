"""Takes the pictures of the survey: python benchmarks/survey_pictures.py docs/images

Serves the starter survey and answers it in Debian's chromium, wide and narrow, light and dark; and draws the report of
the guide's made-up people.
"""

from __future__ import annotations

import asyncio
import io
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright
from typer.testing import CliRunner

from tacit.cli.main import app
from tacit.local.survey.load import load_survey
from tacit.local.survey.store import ReportStore
from tacit.sampling.bits import ReplayBits
from tacit.serve.server import ServerConfig
from tacit.serve.survey import serve_survey

CHROMIUM = "/usr/bin/chromium"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
WANTED = {(1280, "light"): ("page", "drawn"), (390, "light"): ("page", "drawn"), (390, "dark"): ("page", "sent")}


def main(target: Path) -> None:
    """All pictures, into a folder."""
    target = target.absolute()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        run("survey", "init")
        report(target)
        with served() as address, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            for (width, scheme), names in WANTED.items():
                answer(browser, address, width, scheme, {name: target / name_of(name, width, scheme) for name in names})
            browser.close()


def report(target: Path) -> None:
    """The chart of 2,000 made-up people, as the guide has it."""
    survey, bits = load_survey(Path("survey.toml")), ReplayBits(b"made-up people")
    with open("sent.jsonl", "w", encoding="utf-8") as file:
        for person in range(2000):
            truths = [int(person % 10 < 3), person % 4, "100000" if person % 2 else "001000", 60 + person % 40]
            print(survey.respond(truths, bits).to_json(), file=file)
    run("survey", "collect", "survey.toml", "sent.jsonl")
    run("survey", "report", "survey.toml", "--chart", str(target / "survey-report.svg"))


def run(*words: str) -> None:
    """One command of Tacit."""
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 0, done.output


@contextmanager
def served() -> Iterator[str]:
    """The page, on a port of its own."""
    begun, told = threading.Event(), {}

    async def work(store: ReportStore) -> None:
        told["loop"], told["stop"] = asyncio.get_running_loop(), asyncio.Event()

        def ready(address: str) -> None:
            told["address"] = address
            begun.set()

        await serve_survey(store, ServerConfig(http=0, postgres=None), ready, told["stop"])

    with ReportStore(Path("served.reports"), load_survey(Path("survey.toml"))) as store:
        thread = threading.Thread(target=lambda: asyncio.run(work(store)), daemon=True)
        thread.start()
        begun.wait()
        yield told["address"]
        told["loop"].call_soon_threadsafe(told["stop"].set)
        thread.join()


def answer(browser: Browser, address: str, width: int, scheme: str, wanted: dict[str, Path]) -> None:
    """Answer once, and take the pictures that are wanted on the way."""
    context = browser.new_context(
        base_url=address,
        viewport={"width": width, "height": 860},
        color_scheme="dark" if scheme == "dark" else "light",
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.goto("/")
    page.locator('main[data-ready="yes"]').wait_for()
    take(page, wanted.get("page"))
    for label in ("Yes", "Liberals", "Painkillers"):
        page.get_by_label(label, exact=True).check()
    page.locator("input[inputmode], input[type=number]").last.fill("43.5")
    page.locator("#randomize").click()
    page.locator("#drawn").wait_for()
    take(page, wanted.get("drawn"))
    page.wait_for_timeout(800)  # the button does nothing at first
    page.locator("#send").click()
    page.get_by_text("Thank you").wait_for()
    take(page, wanted.get("sent"))
    context.close()


def take(page: Page, path: Path | None) -> None:
    """The whole page, in a few colors."""
    if path is not None:
        page.evaluate("document.activeElement.blur(); window.scrollTo(0, 0)")
        Image.open(io.BytesIO(page.screenshot(full_page=True))).convert("RGB").quantize(128).save(path, optimize=True)


def name_of(name: str, width: int, scheme: str) -> str:
    """A picture's file."""
    return f"survey-{name}-{width}{'-dark' if scheme == 'dark' else ''}.png"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
