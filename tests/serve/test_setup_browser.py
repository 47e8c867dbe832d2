"""The owner's page in a browser, from a CSV file to a private answer. Scripts on, and off."""

from __future__ import annotations

import json
import random
import re
import shlex
import subprocess
import sys
from contextlib import contextmanager

import pytest
from tests.support.browser import NARROW, WIDE, chromium, least_contrast, watch
from tests.support.command import run_command

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def browser():
    with chromium() as opened:
        yield opened


@pytest.fixture
def shop(tmp_path):
    draw = random.Random(2)
    lines = ["Bestell-Nr;Kunden-ID;E-Mail;Kanton;Betrag"]
    for number in range(2_000):
        customer = draw.randrange(500)
        canton = draw.choices(["ZH", "BE", "VD"], [5, 3, 2])[0]
        lines.append(
            f"{number};{customer};k{customer}@x.org;{canton};{draw.randrange(9000) / 100:.2f}".replace(".", ",")
        )
    (tmp_path / "bestellungen.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


@contextmanager
def setting_up(folder):
    """The command, and the address that it prints."""
    command = [sys.executable, "-u", "-m", "tacit", "init", "bestellungen.csv", "--browser"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        try:
            process.stdout.readline()
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def choose(page):
    """Epsilon 2, three public keys, and bounds that cut some amounts off."""
    page.get_by_label("Overall epsilon").fill("2")
    for canton in ("ZH", "BE", "VD"):
        page.get_by_role("checkbox", name=re.compile(f"^{canton} ")).check()
    page.locator("input[name=lower-0-4]").fill("0")
    page.locator("input[name=upper-0-4]").fill("50")


def write(page):
    page.get_by_role("checkbox", name="Everything in it may be public").check()
    page.get_by_role("button", name="Write tacit.toml").click()
    page.get_by_role("heading", name="The policy is written").wait_for()


def test_three_decisions_lead_from_a_file_to_a_private_answer(browser, shop):
    with setting_up(shop) as (process, address):
        context = browser.new_context(viewport=WIDE, reduced_motion="reduce")
        context.set_default_timeout(30_000)
        page = context.new_page()
        watch(page)
        page.goto(address)
        assert "token" not in page.url
        assert page.get_by_role("radio", name="Kunden-ID").is_checked()
        choose(page)
        page.locator("#effect-0-4", has_text="of 2,000 rows").wait_for()  # it comes by itself
        page.locator("#preview", has_text="AVG").wait_for()
        assert page.locator("#preview .bars .row").count() == 6  # three keys, rows and means
        for size in (WIDE, NARROW):
            page.set_viewport_size(size)
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
                assert least_contrast(page, "main *", skip_hidden=True) >= 4.5
        write(page)
        pasted = page.locator("pre", has_text="tacit ask").inner_text()
        assert process.wait(timeout=30) == 0
        assert "Next: tacit check" in process.stdout.read()
        assert page.complaints == []
        context.close()
    assert run_command("check", cwd=shop).returncode == 0
    asked = run_command(*shlex.split(pasted)[1:], "--json", cwd=shop)
    assert asked.returncode == 0, asked.stderr
    assert [row["Kanton"] for row in json.loads(asked.stdout)["rows"]] == ["ZH", "BE", "VD"]


def test_the_page_works_without_scripts(browser, shop):
    with setting_up(shop) as (_, address):
        context = browser.new_context(viewport=WIDE, java_script_enabled=False)
        context.set_default_timeout(30_000)
        page = context.new_page()
        page.goto(address)
        choose(page)
        page.get_by_role("button", name="Show what this means").click()
        page.locator("#effect-0-4", has_text="of 2,000 rows").wait_for()
        assert page.locator("#preview .bars .row").count() == 6
        write(page)
        context.close()
    assert 'values = ["ZH", "BE", "VD"]' in (shop / "tacit.toml").read_text()
