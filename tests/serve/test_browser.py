"""The console in a browser: Debian's chromium, without a window. Scripts on, and off.

A machine without chromium skips these and says so; where TACIT_NOTHING_SKIPPED=1 that is a failure.
"""

from __future__ import annotations

import re

import pytest
from tests.support.browser import NARROW, WIDE, chromium, least_contrast, watch
from tests.support.counts import some

pytestmark = pytest.mark.slow

WARDS = "SELECT ward, COUNT(*) AS n, AVG(cost) AS mean FROM visits GROUP BY ward"
UNBOUNDED = "SELECT AVG(cost / age) AS x FROM visits"
BEN = "[analysts.ben]\nepsilon = 0.7"


@pytest.fixture(scope="module")
def browser():
    # Certificates are ignored for downloads too, whose connections no page's own setting covers.
    with chromium("--ignore-certificate-errors") as opened:
        yield opened


@pytest.fixture(scope="module")
def served(serving, make_clinic, tmp_path_factory):
    """A clinic in which ben has little budget."""
    clinic = make_clinic(tmp_path_factory.mktemp("served"))
    clinic.policy.write_text(clinic.policy.read_text().replace("[analysts.ben]\nepsilon = 1000", BEN))
    with serving(clinic, postgres=None) as running:
        yield running


@pytest.fixture(scope="module")
def signed(browser, served):
    """Shows the page of someone, who signs in by the form the first time; with options, one of a browser of its own.

    Whatever a page runs or complains of is kept. To start a browser anew is what takes longest.
    """
    contexts, pages = [], {}

    def open_page(**options):
        context = browser.new_context(base_url=served.http, ignore_https_errors=True, viewport=WIDE, **options)
        context.set_default_timeout(60_000)
        contexts.append(context)
        page = context.new_page()
        watch(page)
        page.goto("/")
        return page

    def sign_in(name):
        page = open_page()
        page.get_by_label("Name").fill(name)
        page.get_by_label("Password").fill(served.clinic.secrets[name].password)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("button", name="Sign out").wait_for()
        return page

    def make(name="ada", *, viewport=WIDE, **options):
        if name not in pages:
            pages[name] = sign_in(name)
        page = pages[name]
        if options:
            page = open_page(storage_state=page.context.storage_state(), **options)
        page.complaints.clear()
        page.set_viewport_size(viewport)
        page.goto("/")
        page.get_by_role("button", name="Sign out").wait_for()
        return page

    yield make
    for context in contexts:
        context.close()


def write(page, sql):
    page.locator(".cm-content").fill(sql)  # the editor, which takes the place of the text area


def ask(page, sql, epsilon="0.5"):
    write(page, sql)
    page.get_by_label("Privacy loss, epsilon", exact=True).fill(epsilon)
    page.get_by_role("button", name="Ask", exact=True).click()
    page.locator("#result > *").first.wait_for()


def test_asking_shows_the_price_and_then_an_answer_with_error_bars(signed, served):
    page = signed()
    head = served.curator.ledger.head()
    write(page, WARDS)
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
    write(page, "SELECT COUNT(*) AS n FROM visits")
    page.get_by_role("button", name="Ask", exact=True).click()
    page.locator(".answer").wait_for()
    assert page.locator(".refusal").count() == 0


def test_what_is_beyond_the_budget_is_refused(signed):
    page = signed()
    ask(page, "SELECT COUNT(*) AS n FROM visits")
    page.goto("/console/ask")
    ask(page, "SELECT COUNT(*) AS beyond FROM visits", "1000")
    assert "budget" in page.locator(".refusal .code").inner_text()
    page.locator("#price .warn").wait_for()
    assert "does not fit" in page.locator("#price .warn").inner_text()


SHOWN = "SELECT ward, COUNT(*) AS shown FROM visits GROUP BY ward"
ARRIVING = [(SHOWN, ".answer h2", "Answered, with 3 rows."), (UNBOUNDED, ".refusal", "")]


@pytest.mark.parametrize(  # by default each in one of two windows
    ("size", "arriving"), [({"width": 1280, "height": 800}, some(ARRIVING, 2, first=1)), (NARROW, some(ARRIVING, 2))]
)
def test_what_arrives_comes_into_view_has_the_focus_and_is_told(signed, size, arriving):
    page = signed(viewport=size)
    for sql, part, told in arriving:
        page.goto("/console/ask")
        write(page, sql)
        page.locator("#price > .price, #price > .doubt").wait_for()
        page.locator(".cm-content").press("Control+Enter")
        page.locator(f"#result {part}").wait_for()
        page.wait_for_function("document.querySelector('#result').contains(document.activeElement)")
        assert page.evaluate(f"document.activeElement.matches('#result {part}')")
        place = page.locator(f"#result {part}").bounding_box()
        assert 0 <= place["y"] < size["height"] / 4
        page.wait_for_timeout(700)  # the price that follows does not speak over it
        if told:
            assert page.locator("#announced").text_content() == told
        else:
            assert page.locator("#result .refusal").get_attribute("role") == "alert"
        page.get_by_role("link", name="Edit the question").click()
        assert page.evaluate("document.activeElement.id") == "sql"
    assert page.complaints == []


def test_the_price_is_told_while_one_types(signed):
    page = signed()
    write(page, "SELECT COUNT(*) AS told FROM visits")
    page.locator("#announced", has_text="Costs epsilon 0.1. told within").wait_for(state="attached")


def test_the_editor_has_colors_and_completes_names_without_leaving_the_policy(signed, served):
    page = signed()
    editor = page.get_by_role("textbox", name="Question, in SQL")
    editor.and_(page.locator(".cm-content")).wait_for()
    editor.click()
    page.keyboard.type("select war")
    first = page.locator("[role=option]:first-child")  # for all letters: it has offered others for the first ones
    first.and_(page.get_by_role("option", name="ward")).wait_for()
    page.wait_for_timeout(100)  # a completion is not taken by a key that was meant for the text
    page.keyboard.press("Enter")
    page.keyboard.type(", cou")
    page.get_by_role("option", name="COUNT", exact=True).wait_for()
    page.wait_for_timeout(100)
    page.keyboard.press("Enter")
    page.keyboard.type("*")
    page.keyboard.press("End")
    page.keyboard.type(" from vis")
    page.get_by_role("option", name="visits").wait_for()
    page.wait_for_timeout(100)
    page.keyboard.press("Enter")
    page.keyboard.type(" group by ")
    page.keyboard.press("Escape")
    page.locator("aside").get_by_role("button", name="ward").click()  # a click on the schema inserts the name
    written = "select ward, COUNT(*) from visits group by ward"
    assert page.locator("textarea").input_value() == written and editor.inner_text() == written
    assert page.locator(".cm-line .tok-keyword").all_inner_texts() == ["select", "from", "group", "by"]
    keyword, plain = (
        page.locator(where).first.evaluate("element => getComputedStyle(element).color")
        for where in (".cm-line .tok-keyword", ".cm-line")
    )
    assert keyword != plain
    page.keyboard.press("Control+Enter")
    page.locator(".answer").wait_for()
    assert page.complaints == [] and page.locator("style").count() == 0


def test_slider_epsilon_and_accuracy_agree_and_the_slider_ends_at_what_is_left(signed):
    page = signed("ben")
    write(page, "SELECT COUNT(*) AS n FROM visits WHERE age > 1")
    slider, epsilon, within = (page.locator(f"#{name}") for name in ("slider", "epsilon", "within"))
    slider.press("End")
    assert epsilon.input_value() == "0.7"
    page.locator("#price", has_text="Costs epsilon 0.7").wait_for()
    # Discrete Laplace with q = e^-0.35: more than 8 off with 2 q^9/(1 + q) = 5.03%, more than 9 with 3.5%.
    assert within.get_attribute("placeholder") == "n=9"
    within.fill("n=24")
    page.locator("#price", has_text="n within 24").wait_for()
    page.wait_for_function("Number(document.getElementById('epsilon').value) < 0.251")
    assert 0 < int(slider.input_value()) < 100
    slider.press("Home")
    assert within.input_value() == "" and float(epsilon.input_value()) <= 0.01
    epsilon.fill("5")
    page.locator("#price .warn", has_text="at most epsilon 0.7 does").wait_for()
    page.get_by_role("button", name="Use epsilon 0.7").click()
    page.locator("#price", has_text="0 of epsilon 0.7 is left after it").wait_for()
    assert epsilon.input_value() == "0.7" and slider.input_value() == "100"
    page.get_by_role("button", name="Ask", exact=True).click()
    page.locator("#left", has_text="0 of epsilon 0.7 left").wait_for()
    page.wait_for_function("document.getElementById('slider').disabled")


def test_names_and_keys_run_nothing(signed):
    page = signed()
    hostile = '<img src=x onerror="alert(1)">'
    alias = hostile.replace('"', '""')
    ask(
        page,
        f"SELECT CASE WHEN age > 50 THEN '{hostile}' ELSE 'b' END AS \"{alias}\", COUNT(*) AS n FROM visits GROUP BY 1",
    )
    page.locator(".answer").wait_for()
    page.locator(".numbers summary").click()
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


def test_an_owner_ends_a_session_in_place(signed):
    page = signed("olga")
    other = signed("otto")
    page.goto("/console/owner")
    rows = page.locator("#sessions tbody tr")
    before = rows.count()
    page.get_by_role("button", name="End the session of otto").click()
    page.get_by_text("1 session was ended.").wait_for()
    assert rows.count() == before - 1 and page.evaluate("document.activeElement.id") == "sessions-head"
    other.goto("/console/budget")
    assert other.url.endswith("/console/sign-in") and page.complaints == []


def test_the_game_and_the_attack_are_played_in_place(signed):
    page = signed()
    page.goto("/console/learn")
    page.get_by_role("button", name="You are out").click()
    page.locator("#game .verdict", has_text=re.compile("Right|Wrong")).wait_for()
    page.get_by_role("button", name="New game").click()
    page.locator("#game .verdict", has_text="Guess where").wait_for()  # it was gone: the new game is there
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
    assert page.locator(".answer h2").bounding_box()["y"] < WIDE["height"] / 3  # the page begins there
    page.get_by_role("link", name="Budget").click()
    page.get_by_role("heading", name="Your budget").wait_for()
    assert page.locator("svg .curve").count() > 2
    page.get_by_role("link", name="Learn").click()
    page.get_by_role("button", name="You are out").click()
    page.locator(".verdict", has_text=re.compile("Right|Wrong")).wait_for()


def test_nothing_sticks_out_and_nothing_is_too_pale_to_read(signed):
    page = signed().context.new_page()  # whose media are set
    page.goto("/console/ask")
    ask(page, WARDS)
    for place in ("", "/console/budget", "/console/learn", "/console/owner"):  # the answer first
        if place == "/console/owner":
            page = signed("olga").context.new_page()
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
