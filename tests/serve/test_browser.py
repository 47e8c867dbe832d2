"""The console in a browser: Debian's chromium, without a window. Scripts on, and off.

A machine without chromium skips these and says so; where TACIT_NOTHING_SKIPPED=1 that is a failure.
"""

from __future__ import annotations

import re

import pytest
from tests.support.browser import NARROW, WIDE, chromium, least_contrast, watch

pytestmark = pytest.mark.slow

WARDS = "SELECT ward, COUNT(*) AS n, AVG(cost) AS mean FROM visits GROUP BY ward"
UNBOUNDED = "SELECT AVG(cost / age) AS x FROM visits"


@pytest.fixture(scope="module")
def browser():
    # Certificates are ignored for downloads too, whose connections no page's own setting covers.
    with chromium("--ignore-certificate-errors") as opened:
        yield opened


@pytest.fixture(scope="module")
def signed(browser, served):
    """Makes a page of someone: the first of each signs in by the form, the others are more windows of that session.

    Whatever a page runs or complains of is kept.
    """
    contexts, sessions = [], {}

    def make(name="ada", **options):
        context = browser.new_context(
            base_url=served.http,
            ignore_https_errors=True,
            storage_state=sessions.get(name),
            **({"viewport": WIDE} | options),
        )
        context.set_default_timeout(20_000)
        contexts.append(context)
        page = context.new_page()
        watch(page)
        page.goto("/")
        if name not in sessions:
            page.get_by_label("Name").fill(name)
            page.get_by_label("Password").fill(served.clinic.secrets[name].password)
            page.get_by_role("button", name="Sign in").click()
        page.get_by_role("button", name="Sign out").wait_for()
        sessions[name] = context.storage_state()
        return page

    yield make
    for context in contexts:
        context.close()


def ask(page, sql, epsilon="0.5"):
    page.goto("/console/ask")
    page.get_by_label("Question, in SQL").fill(sql)
    page.get_by_label("Privacy loss, epsilon", exact=True).fill(epsilon)
    page.get_by_role("button", name="Ask", exact=True).click()
    page.locator("#result > *").first.wait_for()


def test_asking_shows_the_price_and_then_an_answer_with_error_bars(signed, served):
    page = signed()
    head = served.curator.ledger.head()
    page.get_by_label("Question, in SQL").fill(WARDS)
    page.locator(".price").wait_for()  # it comes by itself
    assert "Costs epsilon 0.1" in page.locator("#price").inner_text()
    assert page.locator("#price svg .curve").count() >= 6
    slider = page.locator("#slider")
    slider.focus()
    slider.press("End")
    page.locator("#price", has_text="Costs epsilon 10").wait_for()
    assert page.locator("#epsilon").input_value() == "10"
    assert served.curator.ledger.head() == head  # all of that was free
    page.locator("#epsilon").fill("0.5")
    page.locator("#sql").press("Control+Enter")
    page.locator(".answer").wait_for()
    assert page.url.endswith("/console/ask") and page.locator(".answer tbody tr").count() == 3
    bars = page.locator(".bars .row:first-child .error-bar").first.bounding_box()
    dot = page.locator(".bars .row:first-child .dot").first.bounding_box()
    assert bars["x"] < dot["x"] + dot["width"] / 2 < bars["x"] + bars["width"]  # the estimate is inside its interval
    page.locator("#history a", has_text="mean").first.wait_for()  # it is in the history at once
    assert page.complaints == []


def test_a_refusal_is_underlined_and_the_next_question_takes_its_place(signed):
    page = signed()
    ask(page, UNBOUNDED)
    assert page.locator(".refusal mark").inner_text() == "AVG(cost / age)"
    assert "Fix" in page.locator(".refusal").inner_text()
    page.get_by_label("Question, in SQL").fill("SELECT COUNT(*) AS n FROM visits")
    page.get_by_role("button", name="Ask", exact=True).click()
    page.locator(".answer").wait_for()
    assert page.locator(".refusal").count() == 0


def test_what_is_beyond_the_budget_is_refused(signed):
    page = signed()
    ask(page, "SELECT COUNT(*) AS n FROM visits")
    ask(page, "SELECT COUNT(*) AS beyond FROM visits", "1000")
    assert "budget" in page.locator(".refusal .code").inner_text()
    page.locator("#price .warn").wait_for()
    assert "does not fit" in page.locator("#price .warn").inner_text()


def test_names_and_keys_run_nothing(signed):
    page = signed()
    hostile = '<img src=x onerror="alert(1)">'
    alias = hostile.replace('"', '""')
    ask(
        page,
        f"SELECT CASE WHEN age > 50 THEN '{hostile}' ELSE 'b' END AS \"{alias}\", COUNT(*) AS n FROM visits GROUP BY 1",
    )
    page.locator(".answer").wait_for()
    assert page.locator(".answer thead").inner_text().startswith(hostile) and page.locator("#main img").count() == 0
    assert page.complaints == []


def test_a_download_is_a_file(signed, tmp_path):
    page = signed()
    ask(page, WARDS)
    with page.expect_download() as waiting:
        page.get_by_role("link", name="CSV").click()
    waiting.value.save_as(tmp_path / "answer.csv")
    assert (tmp_path / "answer.csv").read_text().startswith("ward,n,n_low,n_high,mean")


def test_the_owner_verifies_the_ledger(signed):
    page = signed("olga")
    assert page.url.endswith("/console/owner") and page.get_by_role("link", name="Ask").count() == 0
    page.get_by_role("button", name="Verify every entry").click()
    page.get_by_text("All in order.").wait_for()
    assert "Newest entries" in page.locator("main").inner_text() and page.complaints == []


def test_the_game_and_the_attack_are_played_in_place(signed):
    page = signed()
    page.goto("/console/learn")
    page.get_by_role("button", name="New game").click()
    page.locator("#game .verdict", has_text="Guess where").wait_for()
    for rounds in range(1, 4):
        page.get_by_role("button", name="You are in").click()
        page.locator("#game tbody tr:first-child td:last-child", has_text=re.compile(f"^{rounds}$")).wait_for()
    page.get_by_role("button", name="Let the best guesser").click()
    page.locator("#game tbody tr:nth-child(2) td:last-child", has_text="1,000").wait_for()
    assert page.locator("#game svg .dot").count() == 2
    page.get_by_role("button", name="Attack").click()
    page.locator("#attack .people").first.wait_for()
    assert page.locator("#attack .people").count() == 3 and page.complaints == []


def test_all_of_it_works_without_scripts(signed):
    page = signed(java_script_enabled=False)
    page.get_by_label("Question, in SQL").fill(WARDS)
    assert page.locator("#slider").is_hidden()
    page.get_by_role("button", name="Show the cost").click()
    page.locator("#price", has_text="Costs epsilon 0.1").wait_for()
    page.get_by_role("button", name="Ask", exact=True).click()
    page.locator(".answer").wait_for()
    assert page.locator(".answer .error-bar").count() >= 9  # a line and two ends for each of three counts
    page.get_by_role("link", name="Budget").click()
    page.get_by_role("heading", name="Your budget").wait_for()
    assert page.locator("svg .curve").count() > 2
    page.get_by_role("link", name="Learn").click()
    page.get_by_role("button", name="You are out").click()
    page.locator(".verdict", has_text=re.compile("Right|Wrong")).wait_for()


def test_nothing_sticks_out_and_nothing_is_too_pale_to_read(signed):
    page = signed()
    ask(page, WARDS)
    for place in ("", "/console/budget", "/console/learn"):  # the answer first
        if place:
            page.goto(place)
        for size in (WIDE, NARROW):
            page.set_viewport_size(size)
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # no color on its way to another
            assert least_contrast(page, "main *, header *", skip_hidden=False) >= 4.5  # WCAG AA


def test_signing_out_leads_back_to_the_form(signed):
    page = signed("ben")
    page.get_by_role("button", name="Sign out").click()
    page.get_by_label("Password").wait_for()
    page.goto("/console/ask")
    assert page.url.endswith("/console/sign-in")
