"""The survey's page in a browser: it randomizes by the same law as Python, and no true answer leaves it.

A machine without chromium skips these and says so; where TACIT_NOTHING_SKIPPED=1 that is a failure.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2
from tests.support.browser import NARROW, WIDE, chromium, least_contrast, watch
from tests.support.counts import FULL, OFF, enough, some

from tacit.local.survey.load import parse_survey
from tacit.local.survey.store import ReportStore, read_store
from tacit.sampling.bits import SystemBits
from tacit.serve.server import ServerConfig
from tacit.serve.survey import serve_survey

pytestmark = pytest.mark.slow

SCRIPTS = [f"static/{name}.js" for name in ("survey", "survey_encoder", "survey_memory", "survey_bounds")]
BOUNDS = json.loads((Path(__file__).parents[1] / "local" / "survey_bounds.json").read_text(encoding="utf-8"))
VECTORS = json.loads((Path(__file__).parents[1] / "local" / "survey_vectors.json").read_text(encoding="utf-8"))
HOSTILE = '<img src=x onerror="alert(1)">'
TIMES = 5 if FULL else 1

SURVEY = parse_survey(
    {
        "id": "page",
        "title": f"A page {HOSTILE}",
        "about": "Two lines,\nthe second one.",
        "questions": [
            {"name": "cheated", "text": "Have you cheated?", "kind": "yes-no", "epsilon": "ln 3"},
            {
                "name": "dish",
                "text": "Your dish?",
                "kind": "choice",
                "options": ["Fish", "Rice", HOSTILE],
                "epsilon": 1,
            },
            {
                "name": "taken",
                "text": "What did you take?",
                "kind": "several",
                "options": ["Tea", "Coffee", "Wine", "None of a very long list of things that nobody takes"],
                "most": 2,
                "epsilon": 2,
            },
            {
                "name": "hours",
                "text": "How long did you sleep?",
                "kind": "number",
                "lower": 0,
                "upper": 12,
                "step": "1/4",
                "unit": "hours",
                "epsilon": 1,
            },
        ],
    }
)


@pytest.fixture(scope="module")
def browser():
    with chromium() as opened:
        yield opened


@contextlib.contextmanager
def running(survey, path, port=0):
    """A survey on a port, in a thread of its own: its address."""
    begun, places, stops = threading.Event(), [], []

    async def main(store):
        stops.append((asyncio.get_running_loop(), asyncio.Event()))
        settings = ServerConfig(http=port, postgres=None)
        await serve_survey(store, settings, lambda place: (places.append(place), begun.set()), stops[0][1])

    with ReportStore(path, survey) as store:
        thread = threading.Thread(target=lambda: asyncio.run(main(store)))
        thread.start()
        try:
            assert begun.wait(20)
            yield places[0]
        finally:
            loop, stop = stops[0]
            loop.call_soon_threadsafe(stop.set)
            thread.join(20)
        assert not thread.is_alive()


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The survey of most tests: its address, and the file of reports."""
    path = tmp_path_factory.mktemp("survey") / "page.reports"
    with running(SURVEY, path) as address:
        yield address, path


@pytest.fixture(scope="module")
def window(browser, served):
    """The page of those who come one after the other."""
    context = browser.new_context(base_url=served[0], viewport=WIDE)
    yield _watched(context)
    context.close()


def _watched(context):
    """A page; whatever it runs, sends or complains of is kept. Its clock goes by itself, and can be put forward."""
    context.set_default_timeout(60_000)
    context.clock.install()
    page = context.new_page()
    watch(page)
    page.requests = []
    page.on("request", lambda request: page.requests.append((request.method, request.url, request.post_data)))
    return page


@pytest.fixture
def visit(browser, served, window):
    """Makes a page of someone new: the one of all, with nothing stored, or one of a browser's own with these options.

    To start a browser anew is what takes longest. One of its own is for what is set for a whole browser, and so stays.
    """
    contexts = []

    def make(address=served[0], *, viewport=WIDE, own=False, **options):
        if own or options:
            contexts.append(browser.new_context(base_url=address, viewport=viewport, **options))
            page = _watched(contexts[-1])
        else:
            page = window
            page.set_viewport_size(viewport)
        page.complaints.clear()
        page.requests.clear()
        page.goto(address)
        return page

    yield make
    for context in contexts:
        context.close()
    for other in window.context.pages:
        if other is not window:
            other.close()
    if window.url != "about:blank":
        window.evaluate("localStorage.clear()")  # of the address where the page is
        window.goto("about:blank")


@pytest.fixture(scope="module")
def lab(browser, served):
    """A page of the survey's own origin, in which its encoder is called."""
    context = browser.new_context(base_url=served[0])
    page = context.new_page()
    page.goto("/")
    yield page
    context.close()


def read(page):
    """Let the time pass in which what is drawn can be read, and is not sent."""
    page.clock.fast_forward(1_000)


def settled(page):
    """Wait until nothing waits for another window."""
    page.locator("main:not([data-busy])").wait_for()


def answer(page, hours="7.25", *, by_hand=False):
    page.locator('main[data-ready="yes"]').wait_for()
    if by_hand:
        page.get_by_label("Yes").check()
        page.get_by_label("Rice").check()
        page.get_by_label("Coffee").check()
        page.get_by_role("spinbutton").fill(hours)
    else:
        page.evaluate(ANSWER, [["Yes", "Rice", "Coffee"], hours])
    page.get_by_role("button", name="Toss the coins").click()
    settled(page)


ANSWER = """([chosen, hours]) => {
  for (const label of document.querySelectorAll(".question label")) {
    const input = label.querySelector("input");
    if (chosen.includes(label.textContent.trim()) && !input.checked) input.click();
  }
  for (const number of document.querySelectorAll("input[type=number]")) {
    number.value = hours;
    number.dispatchEvent(new Event("change", { bubbles: true }));
  }
}"""


def test_the_page_draws_the_shared_vectors(lab):
    found = lab.evaluate(
        """async (surveys) => {
          const { respond, replay } = await import("/static/survey_encoder.js");
          const bytes = (hex) => Uint8Array.from(hex.match(/../g), (pair) => parseInt(pair, 16));
          return surveys.map(({ form, vectors }) =>
            vectors.map((each) => JSON.stringify(respond(form, each.truths, replay(bytes(each.bytes))))));
        }""",
        VECTORS["surveys"],
    )
    for survey, reports in zip(VECTORS["surveys"], found, strict=True):
        for vector, report in zip(survey["vectors"], reports, strict=True):
            expected = {"survey": survey["form"]["digest"], "id": vector["id"], "answers": vector["answers"]}
            assert report == json.dumps(expected, separators=(",", ":"))


def test_what_the_browser_draws_has_the_exact_law(lab):
    # The browser's own randomness, so no seed. Each test raises a false alarm with probability 1e-9, at 6.1 deviations.
    # Were the chance of a lie off by a tenth, 60,000 draws of the yes-no question would be off by 0.025/0.00177 = 14
    # deviations, and a test would miss that with probability Phi(-8) < 1e-14. So would 60,000 numbers (0.0269/0.0018 =
    # 15), 30,000 choices (0.0424/0.00285 = 15) and 20,000 answers of four bits (0.0378/0.0017 = 22). By default it is
    # off by a fifth, and a quarter of the draws give as many deviations.
    truths, draws = [1, 2, "0110", 48], [TIMES * enough(count) for count in (60_000, 30_000, 20_000, 60_000)]
    form = json.loads(SURVEY.to_json())
    tallies = lab.evaluate(
        """async ([form, truths, draws]) => {
          const { encode, system } = await import("/static/survey_encoder.js");
          return form.questions.map((question, place) => {
            const tally = {};
            for (let draw = 0; draw < draws[place]; draw += 1) {
              const sent = encode(question, truths[place], system);
              tally[sent] = (tally[sent] || 0) + 1;
            }
            return tally;
          });
        }""",
        [form, truths, draws],
    )
    rows = {"0110": 0b0110}  # answers of at most two of four, in order: 0000, 0001, 0010, 0011, 0100, 0101, 0110
    for question, truth, tally, count in zip(SURVEY.questions, truths, tallies, draws, strict=True):
        law = [float(chance) for chance in question.matrix().rows[rows.get(truth, truth)]]
        width = len(question.cells)
        names = [f"{n:0{width}b}" for n in range(len(law))] if question.kind == "several" else map(str, range(len(law)))
        seen = np.array([tally.get(name, 0) for name in names])
        assert seen.sum() == count
        assert _p_value(seen, law) >= 1e-9
        assert _p_value(seen, _off(question, law)) < 1e-9


def _p_value(seen, law):
    expected = np.array(law) * seen.sum()
    return chi2.sf(((seen - expected) ** 2 / expected).sum(), len(law) - 1)


def _off(question, law):
    """The law where a coin turns an answer more often, by `OFF`."""
    lie = float(1 + OFF) * (1 - float(question.own))
    if question.kind == "several":
        kept = [4 - bin(n ^ 0b0110).count("1") for n in range(len(law))]
        return [(1 - lie) ** k * lie ** (4 - k) for k in kept]
    likeliest = max(law)
    return [1 - lie if chance == likeliest else lie / (len(law) - 1) for chance in law]


def test_only_the_randomized_report_leaves_the_page(visit, served):
    page = visit(own=True)
    answer(page, by_hand=True)
    page.get_by_role("heading", name="This is what would be sent").wait_for()
    assert [method for method, *_ in page.requests if method != "GET"] == []  # nothing was sent yet
    shown = page.locator("#sent-json").text_content()
    assert page.locator("#sent-list dd").count() == 4
    send(page)
    posts = [(url, body) for method, url, body in page.requests if method == "POST"]
    assert posts == [(served[0] + "reports", shown)]  # what was shown, to the byte, and once
    report = json.loads(shown)
    assert set(report) == {"survey", "id", "answers"} and report["survey"] == SURVEY.digest
    SURVEY.accept(shown)  # an answer to each question that the protocol sends, and nothing else
    assert {url.split("?")[0] for method, url, _ in page.requests if method == "GET"} <= {
        served[0] + name for name in ("", "static/survey.css", "static/console.css", "static/mark.svg", *SCRIPTS)
    }
    assert page.evaluate("document.cookie") == "" and page.complaints == []
    assert bytes.fromhex(report["id"]) in read_store(served[1], SURVEY).ids


def test_the_same_answers_are_not_sent_alike(lab):
    # Power of the test above: the true answers are the same and the sent ones differ. All 40 agree in the yes-no answer
    # with probability 0.75^40 + 0.25^40 = 1e-5, in all four questions at once with less than 1e-9.
    sent = lab.evaluate(
        """async (form) => {
          const { respond } = await import("/static/survey_encoder.js");
          return Array.from({ length: 40 }, () => respond(form, [1, 1, "0100", 29]));
        }""",
        json.loads(SURVEY.to_json()),
    )
    assert len({report["id"] for report in sent}) == 40
    assert len({json.dumps(report["answers"]) for report in sent}) > 1


def test_coins_are_tossed_once_and_a_second_visit_sends_the_same(visit, served):
    page = visit()
    answer(page)
    drawn = page.locator("#sent-json").text_content()
    about = {"id": "page", "title": SURVEY.title, "epsilons": ["ln 3", "1", "2", "1"]}
    (entry, answered), (name, state) = stored(page)  # randomized answers, and no true one
    assert entry.startswith(f"tacit-answer-{SURVEY.digest}-") and answered == about
    assert json.loads(drawn)["id"] not in entry  # the entry outlives the report, and says nothing of it
    report = {"report": json.loads(drawn), "sent": False}
    assert name == f"tacit-survey-{SURVEY.digest}" and state == {**about, "before": 0, **report, "counted": True}
    assert page.locator(".question :checked").count() == 0 and page.get_by_role("spinbutton").count() == 0
    page.reload()  # before it was sent
    page.get_by_role("heading", name="This is what would be sent").wait_for()
    assert page.locator("#sent-json").text_content() == drawn and page.locator("#answering").is_hidden()
    send(page)
    before = read_store(served[1], SURVEY).counts
    page.reload()  # another day
    page.get_by_role("heading", name="This is what was sent").wait_for()
    read(page)
    page.get_by_role("button", name="Send the same again").click()
    page.get_by_text("It is there already, and counts once.").wait_for()
    assert [body for method, _, body in page.requests if method == "POST"] == [drawn, drawn]
    assert read_store(served[1], SURVEY).counts == before


@pytest.mark.parametrize(
    ("word", "answers"),
    [
        (0, [0, 0, "1011", 0]),  # every coin turns: the upper end too, for 0 of 48 is below the place 29
        (2**63, [1, 1, "0100", 0]),  # no coin turns: 2^63 is above every threshold, and 32 of 48 is not below 29
    ],
)
def test_the_page_sends_what_the_browsers_coins_gave(visit, word, answers):
    # yes, Rice, Coffee and 7.25 hours, with a source of known words in place of the cryptographic one
    page = visit()
    page.evaluate(f"Object.defineProperty(crypto, 'getRandomValues', {{ value: (words) => words.fill({word}n) }})")
    answer(page)
    sent = json.loads(page.locator("#sent-json").text_content())
    assert sent == {"survey": SURVEY.digest, "id": f"{word:016x}" * 2, "answers": answers}


def test_what_another_window_drew_meanwhile_is_not_drawn_again(visit):
    page, drawn = visit(), SURVEY.respond([0, 0, "0000", 0], SystemBits()).to_json()
    state = f'{{"report":{drawn},"sent":false}}'
    page.evaluate("([name, state]) => localStorage.setItem(name, state)", [f"tacit-survey-{SURVEY.digest}", state])
    answer(page)
    assert page.locator("#sent-json").text_content() == drawn


def test_an_answer_that_is_missing_or_too_much_is_asked_for(visit):
    page = visit()
    answer(page, hours="25", by_hand=True)
    assert page.get_by_text("Please give a number from 0 to 12, in plain digits.").is_visible()
    page.get_by_role("spinbutton").fill("")
    for label in ("Tea", "Wine"):
        page.get_by_label(label).check()
    page.get_by_role("button", name="Toss the coins").click()
    assert page.get_by_text("Please choose at most 2.").is_visible()
    assert page.locator("#drawn").is_hidden() and page.evaluate("localStorage.length") == 0
    assert [method for method, *_ in page.requests if method != "GET"] == []


def test_the_chances_and_what_a_report_tells_stand_on_the_page(visit):
    page = visit()
    words = page.locator("main").inner_text()
    assert "With probability 3/4 your true answer is sent, with probability 1/4 the opposite." in words
    assert "at most 3 times surer" in words
    # e^(ln 3 + 1 + 2 + 1) = 3 e^4 = 163.8
    assert "at most 164 times surer of anything you answered" in words
    assert HOSTILE in words and page.locator("main img").count() == 0 and page.complaints == []


GRIDS = [(0, 1, "1/10"), (0, 10, "1/5"), (0, 2, "1/100"), (-3, 3, "1/2"), ("-1/3", "5/3", "1/3"), (0, 12, "1/4")]


@pytest.mark.parametrize(("lower", "upper", "step"), GRIDS)
def test_the_nearest_place_is_that_of_python(lab, lower, upper, step):
    # every step, the middle of every two, and what lies just beside: doubles fail 3 of 10 middles at a step of 0.1
    asked = {"name": "n", "text": "?", "kind": "number", "lower": lower, "upper": upper, "step": step, "epsilon": 1}
    question = parse_survey({"id": "grid", "questions": [asked]}).questions[0]
    middles = [question.lower + question.step * Fraction(n, 2) for n in range(2 * question.steps + 1)]
    beside = (0, Fraction(1, 10**8), -Fraction(1, 10**8))
    values = [f"{float(middle + nudge):.9f}" for middle in middles for nudge in beside]
    values += [f"{float(middle):.{digits}f}" for middle in middles for digits in (1, 2, 3)]
    values = [value for value in values if question.lower <= Fraction(value) <= question.upper]
    found = lab.evaluate(
        """async ([question, values]) => {
          const { placeOf } = await import("/static/survey_encoder.js");
          return values.map((value) => placeOf(question, value));
        }""",
        [question.public(), values],
    )
    assert found == [question.read(value) for value in values] and len(set(found)) == question.steps + 1


def test_what_is_no_number_of_the_range_has_no_place(lab):
    values = ["", "-", ".", "1e1", "12.01", "-0.01", "0x1", "1,5", "Infinity", "1/2", "9" * 31, "0." + "0" * 31]
    found = lab.evaluate(
        """async ([question, values]) => {
          const { placeOf } = await import("/static/survey_encoder.js");
          return values.map((value) => placeOf(question, value) ?? null);
        }""",
        [SURVEY.questions[3].public(), values],
    )
    assert found == [None] * len(values)


def test_a_number_between_two_steps_is_said_to_count_as_the_nearest(visit):
    page = visit()
    hours = page.get_by_role("spinbutton")
    counts = "This counts as 7.25, the nearest step."
    for typed, note in (("7.3", counts), ("7.50", ""), ("7.125", counts)):
        hours.fill(typed)
        hours.blur()
        assert page.locator(".rounded").text_content() == note
    for typed in ("12.5", "-1", "1e1"):
        hours.fill(typed)
        hours.blur()
        assert page.get_by_text("Please give a number from 0 to 12, in plain digits.").is_visible()
    hours.fill("12")
    hours.blur()
    assert page.get_by_text("Please give a number from 0 to 12").is_hidden()


def stored(page):
    """All that the browser keeps: names and values, in the order of the names."""
    found = page.evaluate("Object.entries({ ...localStorage })")
    return sorted([name, json.loads(state)] for name, state in found)


def short(title="T", name="short", epsilon="1", count=2):
    """A survey of yes-no questions."""
    asked = [{"name": f"q{n}", "text": f"Q{n}?", "kind": "yes-no", "epsilon": epsilon} for n in range(count)]
    return parse_survey({"id": name, "title": title, "questions": asked})


def say_yes(page):
    page.locator('main[data-ready="yes"]').wait_for()
    page.evaluate(ANSWER, [["Yes"], ""])
    page.get_by_role("button", name="Toss the coins").click()
    settled(page)


def forget(page):
    """Make place for another person."""
    page.get_by_role("button", name="I am another person").click()
    page.get_by_role("button", name="Forget it: I have not answered yet").click()
    settled(page)


def send(page):
    read(page)
    page.get_by_role("button", name="Send this").click()
    page.get_by_text("Thank you. It is counted.").wait_for()


@pytest.mark.parametrize("size", some([WIDE, NARROW], 2, first=1))
def test_a_double_click_on_the_coins_sends_nothing(visit, tmp_path, size):
    with running(short(), tmp_path / "short.reports") as address:
        page = visit(address, viewport=size)
        page.locator('main[data-ready="yes"]').wait_for()
        for box in page.get_by_label("Yes").all():
            box.check()
        toss = page.get_by_role("button", name="Toss the coins")
        toss.scroll_into_view_if_needed()
        place = toss.bounding_box()
        x, y = place["x"] + place["width"] / 2, place["y"] + place["height"] / 2
        page.evaluate(  # in some windows the button that sends comes to lie just there; here it always does
            """([x, y]) => Object.assign(document.getElementById("send").style,
                 { position: "fixed", left: x - 50 + "px", top: y - 20 + "px", width: "100px", height: "40px" })""",
            [x, y],
        )
        page.mouse.dblclick(x, y)
        page.get_by_role("heading", name="This is what would be sent").wait_for()
        assert page.evaluate("([x, y]) => document.elementFromPoint(x, y).id", [x, y]) == "send"
        page.reload()  # whatever was sent has been seen by now
        page.get_by_role("heading", name="This is what would be sent").wait_for()
        assert [method for method, *_ in page.requests if method == "POST"] == []


def test_a_report_is_not_sent_before_it_can_be_read(visit):
    page = visit(own=True)  # whose clock stands still from now on
    page.clock.pause_at(page.evaluate("Date.now() + 60000"))
    answer(page)
    button = page.get_by_role("button", name="Send this")
    button.scroll_into_view_if_needed()
    place = button.bounding_box()
    page.mouse.move(place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
    for milliseconds in (0, 600):
        page.clock.run_for(milliseconds)
        page.mouse.down()
        page.mouse.up()
        assert button.is_disabled()
    page.clock.run_for(200)
    page.mouse.down(click_count=2)  # the second click of two is not meant for this either
    page.mouse.up(click_count=2)
    assert button.is_enabled() and page.locator("#outcome").text_content() == ""
    button.click()
    page.get_by_text("Thank you. It is counted.").wait_for()
    assert len([method for method, *_ in page.requests if method == "POST"]) == 1


def test_a_changed_survey_is_told_with_its_price_and_needs_a_tick(visit, tmp_path):
    # the same people, tossed for again: 2 ln 3 each time, e^(4 ln 3) = 81
    with running(short("T", epsilon="ln 3"), tmp_path / "one") as address:
        page = visit(address)
        assert page.locator("#earlier").is_hidden()
        say_yes(page)
        send(page)
    with running(short("T.", epsilon="ln 3"), tmp_path / "two", port=int(address.split(":")[2].strip("/"))):
        page.goto(address)
        page.get_by_text("1 survey was answered from this browser at this address, named “T”.").wait_for()
        words = page.locator("#earlier").inner_text()
        assert "a changed version of it" in words
        assert "costs epsilon 2.198 more, together 4.395: whoever sees all of it can become at most 81 times" in words
        say_yes(page)
        assert page.get_by_text("Please tick this first").is_visible() and page.locator("#drawn").is_hidden()
        assert page.evaluate("localStorage.length") == 2  # nothing was tossed
        page.get_by_label("I have read this").check()
        page.get_by_role("button", name="Toss the coins").click()
        send(page)
        assert page.locator("#earlier").is_hidden() and page.evaluate("localStorage.length") == 4


def test_another_survey_at_the_same_address_is_told_without_a_tick(visit, tmp_path):
    with running(short("First"), tmp_path / "one") as address:
        page = visit(address)
        say_yes(page)
        send(page)
    port = int(address.split(":")[2].strip("/"))
    with running(short("Second", name="other"), tmp_path / "two", port):
        page.goto(address)
        page.get_by_text("named “First”. This one is another.").wait_for()  # e^4 = 54.6
        assert "epsilon 2 more, together 4: " in page.locator("#earlier").inner_text()
        assert "at most 54.6 times surer" in page.locator("#earlier").inner_text()
        assert page.get_by_label("I have read this").is_hidden()
        say_yes(page)
        send(page)
    with running(short("Third", name="third"), tmp_path / "three", port):
        page.goto(address)
        page.get_by_text("2 surveys were answered from this browser at this address, one of them named").wait_for()
        assert "together 6: " in page.locator("#earlier").inner_text()


def test_what_another_window_answered_meanwhile_is_told_before_tossing(visit):
    page = visit()
    other = {"id": "page", "title": "Before", "epsilons": ["3"], "before": 0, "report": {}, "sent": True}
    page.evaluate("(state) => localStorage.setItem('tacit-survey-00', JSON.stringify(state))", other)
    answer(page)
    page.get_by_text("named “Before”. This one is a changed version of it").wait_for()
    assert page.locator("#drawn").is_hidden()
    page.evaluate("localStorage.setItem('tacit-survey-00', '{\"report\":{},\"sent\":true}')")  # by an older page
    page.reload()
    page.get_by_text("can become more than").wait_for()
    assert page.get_by_label("I have read this").is_visible()


def test_every_answer_to_an_earlier_survey_counts(visit, tmp_path):
    # epsilon 1 answered four times, and now 1 once: 5 together, e^5 = 148.4; answered twice, 3 and e^3 = 20.09
    people, together, surer = (4, 5, "149") if FULL else (2, 3, "20.1")
    with running(short("First", epsilon="1", count=1), tmp_path / "one") as address:
        page = visit(address)
        for person in range(people):
            if person:
                forget(page)  # and the tick of the person before is taken away
                page.get_by_label("I have read this").check()
            say_yes(page)
            send(page)
    port = int(address.split(":")[2].strip("/"))
    with running(short("Second", name="other", count=1), tmp_path / "two", port):
        page.goto(address)
        words = f"1 survey was answered from this browser at this address, {people} times in all, named “First”."
        page.get_by_text(words).wait_for()
        said = page.locator("#earlier").inner_text()
        assert f"costs epsilon 1 more, together {together}: whoever sees all of it" in said
        assert f"can become at most {surer} times surer" in said
        assert page.complaints == []


def test_what_an_older_page_counted_counts_too(visit):
    page = visit()
    older = {"id": "older", "title": "Older", "epsilons": ["ln 3"], "before": 3, "report": {"id": "0"}, "sent": True}
    page.evaluate("(state) => localStorage.setItem('tacit-survey-00', JSON.stringify(state))", older)
    page.reload()
    page.get_by_text("1 survey was answered from this browser at this address, 4 times in all").wait_for()
    # ln 3 + 4 once, and ln 3 four times: 4 + 5 ln 3 = 9.4931, and 3^5 e^4 = 13267.4
    said = page.locator("#earlier").inner_text()
    assert "costs epsilon 5.099 more, together 9.494:" in said and "at most 13,268 times surer" in said


@pytest.mark.parametrize("told", [True, False], ids=["told", "not told"])
def test_a_second_window_wipes_nothing_of_what_was_answered(visit, tmp_path, told):
    with running(short(count=1), tmp_path / "one") as address:
        first = visit(address, own=not told)
        if not told:  # a window that learns nothing of the other one
            first.add_init_script("addEventListener('storage', (event) => event.stopImmediatePropagation(), true)")
            first.reload()
        say_yes(first)
        send(first)
        second = first.context.new_page()
        second.goto(address)
        for _ in range(2):  # two more people answer there, and the second one's report is forgotten as well
            forget(second)
            second.get_by_label("I have read this").check()
            say_yes(second)
            send(second)
        forget(second)
        if told:
            first.get_by_text("Somebody has answered this very survey here.").wait_for()
            assert first.locator("#drawn").is_hidden()
        else:
            read(first)
            first.get_by_role("button", name="Send the same again").click()
            first.get_by_text("It is there already, and counts once.").wait_for()
        third = first.context.new_page()
        third.goto(address)
        third.get_by_text("1 survey was answered from this browser at this address, 3 times in all").wait_for()
        said = third.locator("#earlier").inner_text()
        assert "together 4: whoever sees all of it can become at most 54.6 times surer" in said
        assert third.locator("#drawn").is_hidden() and first.complaints == []


def test_a_window_that_reads_what_is_no_longer_there_adds_to_what_is(visit, tmp_path):
    # the storage of a window may lag behind another's: it sees nothing, draws, and still wipes no entry
    with running(short(count=1), tmp_path / "one") as address:
        first = visit(address)
        blind = first.context.new_page()
        blind.goto(address)
        blind.locator('main[data-ready="yes"]').wait_for()
        blind.evaluate("Storage.prototype.getItem = () => null")
        say_yes(first)
        send(first)
        blind.get_by_label("I have read this").check()  # there is an entry, though nothing can be read of it
        say_yes(blind)
        third = first.context.new_page()
        third.goto(address)
        entries = third.evaluate("Object.keys(localStorage).filter((key) => key.startsWith('tacit-answer-')).length")
        assert entries == 2


def test_what_a_window_tossed_is_shown_in_the_other_one(visit):
    first = visit()
    second = first.context.new_page()
    second.goto("/")
    second.locator('main[data-ready="yes"]').wait_for()
    second.get_by_label("Yes").check()
    answer(first)
    second.get_by_role("heading", name="This is what would be sent").wait_for()
    assert second.locator("#sent-json").text_content() == first.locator("#sent-json").text_content()
    assert second.locator(".question :checked").count() == 0
    assert second.evaluate("Object.keys(localStorage).length") == 2


def test_the_page_rounds_bounds_up_as_the_command_does(lab):
    found = lab.evaluate(
        """async (vectors) => {
          const { epsilonText, timesText, total } = await import("/static/survey_bounds.js");
          return vectors.map(({ epsilons }) => {
            const sum = total([{ epsilons, times: 1 }]);
            return { epsilons, epsilon: epsilonText(sum), times: timesText(sum) };
          });
        }""",
        BOUNDS,
    )
    assert found == BOUNDS and len(found) > 30


def test_what_is_not_an_epsilon_has_no_sum(lab):
    wrong = [None, 3, "1", ["x"], ["ln -1"], ["1/0"], ["-1"], ["1e999"], [""], ["Infinity"], [None], ["0"], ["ln 0"]]
    found = lab.evaluate(
        """async (all) => {
          const { total } = await import("/static/survey_bounds.js");
          return all.map((epsilons) => total([{ epsilons, times: 1 }]) ?? null);
        }""",
        wrong,
    )
    assert found == [None] * len(wrong)


def test_another_person_can_answer_and_sees_only_that_somebody_did(visit, served):
    page = visit()
    answer(page)
    first = json.loads(page.locator("#sent-json").text_content())
    assert page.get_by_role("button", name="I am another person").is_hidden()  # no toss until the coins please
    send(page)
    page.reload()
    page.get_by_role("button", name="I am another person").click()
    page.get_by_role("button", name="Keep it").click()
    assert page.locator("#sure").is_hidden() and json.loads(page.locator("#sent-json").text_content()) == first
    forget(page)
    assert page.locator("#drawn").is_hidden() and page.locator("#sent-json").text_content() == ""
    assert page.locator("#sent-list dd").count() == 0
    about = {"id": "page", "title": SURVEY.title, "epsilons": ["ln 3", "1", "2", "1"]}
    assert [state for _, state in stored(page)] == [about, {**about, "before": 0}]  # somebody answered; not what
    page.reload()
    page.get_by_text("Somebody has answered this very survey here.").wait_for()
    answer(page)
    assert page.get_by_text("Please tick this first").is_visible()
    page.get_by_label("I have read this").check()
    page.get_by_role("button", name="Toss the coins").click()
    send(page)
    second = json.loads(page.locator("#sent-json").text_content())
    ids = read_store(served[1], SURVEY).ids
    assert first["id"] != second["id"] and {bytes.fromhex(each["id"]) for each in (first, second)} <= set(ids)
    assert page.complaints == []


def test_a_browser_that_keeps_nothing_says_so(visit):
    page = visit(own=True)
    page.add_init_script("Object.defineProperty(window, 'localStorage', { get() { throw new Error('none'); } })")
    page.reload()
    answer(page)
    assert page.get_by_text("This browser keeps nothing, so please answer only once").is_visible()
    send(page)
    assert page.complaints == []


def test_the_page_promises_what_its_numbers_bear_out(visit, tmp_path):
    page = visit()
    words = page.locator(".promise").inner_text()
    # e^2 = 7.39 for the strongest answer: 7.39/8.39 = 88.1 %; 163.8/164.8 = 99.39 % for all
    assert "no answer that is sent proves anything about you, but all together tell much" in words
    assert "50\u00a0% likely becomes 89\u00a0% at most by one of them, 99.4\u00a0% at most by all" in words
    assert "in this browser, at this address, the same" in words and "On another device" in words
    assert "please do not answer again" in words
    with running(short(epsilon="10", count=1), tmp_path / "large") as address:
        page = visit(address)
        words = page.locator("main").inner_text()  # 22026/22027 = 99.9955 %
        assert page.get_by_role("heading", name="This survey hides little").is_visible()
        assert "99.996\u00a0% by one answer, nearly a proof" in words and "proves anything" not in words
        assert "stay here" not in words
        say_yes(page)
        assert "likely to be just what you said" in page.locator("#drawn").inner_text()


def test_nothing_can_be_sent_without_scripts(visit):
    page = visit(java_script_enabled=False)
    assert page.get_by_text("This page needs scripts").is_visible()
    assert page.get_by_role("button", name="Toss the coins").is_disabled() and page.locator("form").count() == 0


def test_a_collector_that_is_gone_is_said_and_the_draw_is_kept(visit):
    page = visit(viewport=NARROW, has_touch=True)  # on a phone
    answer(page)
    drawn = page.locator("#sent-json").text_content()
    page.context.set_offline(True)
    read(page)
    page.get_by_role("button", name="Send this").click()
    page.get_by_text("The server did not answer. Try again in a moment.").wait_for()
    page.context.set_offline(False)
    page.get_by_role("button", name="Send this").click()
    page.get_by_text("Thank you. It is counted.").wait_for()
    assert page.locator("#sent-json").text_content() == drawn


def test_nothing_sticks_out_and_nothing_is_too_pale_to_read(visit):
    page = visit(own=True)

    def forgotten():
        page.get_by_role("button", name="Forget it: I have not answered yet").click()
        settled(page)
        answer(page)  # asks for the tick

    another = page.get_by_role("button", name="I am another person")
    steps = [lambda: None, lambda: answer(page), lambda: (send(page), another.click()), forgotten]
    for step in steps:
        step()
        for size in (WIDE, NARROW):
            page.set_viewport_size(size)
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            assert least_contrast(page, "main *", skip_hidden=True) >= 4.5  # WCAG AA
