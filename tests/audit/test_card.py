"""Audit cards: what they say is what was measured, and the power they state is there."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom
from typer.testing import CliRunner

from tacit.audit import AuditCard, Claim, audit, audit_canary_scores, make_audit_card, measure_detection
from tacit.audit.detection import CONFIDENCE, EXCESSES, FOUND_SHARE, POWER, RUNS
from tacit.cli.audit import _strip_secrets
from tacit.cli.main import app
from tacit.errors import ParameterError

pytestmark = pytest.mark.slow

SAMPLES = 4_000


def response(epsilon):
    flip = 1 / (1 + math.exp(epsilon))
    return lambda bit, size, rng: np.where(rng.random(size) < flip, 1 - bit, bit)


def test_the_stated_breach_is_found_and_a_tenth_of_it_is_not():
    claim = Claim.epsilon(1)
    detection = measure_detection(audit(response(1.0), 1, 0, claim, samples=SAMPLES))
    assert detection.is_found
    excess = detection.parameter - 1
    assert 0 < excess < 0.5
    # with other, fixed seeds: of 20 runs that are each found with probability 0.9, 13 or fewer are with 2e-3
    caught = [audit(response(1 + excess), 1, 0, claim, samples=SAMPLES, seed=100 + s).is_refuted for s in range(20)]
    assert sum(caught) >= 14
    missed = [audit(response(1 + excess / 10), 1, 0, claim, samples=SAMPLES, seed=100 + s).is_refuted for s in range(5)]
    assert sum(missed) <= 1


def test_the_stated_power_holds_for_all_multiples_together():
    # at a power of 0.8, 35 or 36 of 36 are refuted with 0.8^36 + 36 0.2 0.8^35 = 0.00325; 15 times that is 0.0487
    by_chance = binom.sf(POWER - 1, RUNS, FOUND_SHARE)
    assert by_chance == pytest.approx(0.00325, abs=1e-5)
    assert len(EXCESSES) * by_chance <= 1 - CONFIDENCE


def test_more_samples_find_less():
    claim = Claim.epsilon(1)
    few, many = (measure_detection(audit(response(1.0), 1, 0, claim, samples=n)).parameter for n in (500, 8_000))
    assert many < few


def test_too_few_canaries_find_nothing():
    coins = np.arange(20) % 2 == 0
    found = audit_canary_scores(np.zeros(20), coins, Claim.epsilon(8))
    detection = measure_detection(found)
    assert not detection.is_found
    card = make_audit_card("A model", {"a run": found}, date="2026-01-31")
    assert "no breach up to ten times the claim" in card.to_html()
    assert card.to_dict()["audits"][0]["detects"]["parameter"] is None


def test_a_card_is_one_page_without_scripts_and_says_all(tmp_path):
    rng = np.random.default_rng(1)
    coins = rng.random(300) < 0.5
    results = {
        "a sound <count>": audit(response(1.0), 1, 0, Claim.epsilon(1.2), samples=SAMPLES),
        "a broken one": audit(response(3.0), 1, 0, Claim.epsilon(1.2), samples=SAMPLES),
        "a run": audit_canary_scores(coins + rng.normal(size=300), coins, Claim.mu(1)),
    }
    card = make_audit_card("Mine & yours", results, seed=0, date="2026-01-31", note="All data is made up.")
    assert card.verdict == "refuted"
    card.save(tmp_path / "card.html")
    card.save(tmp_path / "card.json")
    page = (tmp_path / "card.html").read_text(encoding="utf-8")
    assert not re.search(r"<script|https?://|url\(|@import|src=", page)
    assert "Mine &amp; yours" in page
    assert "a sound &lt;count&gt;" in page
    for part in ("2026-01-31", "Seed: 0", "tacit ", "numpy ", "1 of 3 claims are refuted", "All data is made up."):
        assert part in page
    told = json.loads((tmp_path / "card.json").read_text(encoding="utf-8"))
    assert [each["refuted"] for each in told["audits"]] == [False, True, False]
    assert told["audits"][0]["detects"]["parameter"] > 1.2
    assert told["versions"].keys() == {"tacit", "python", "numpy"}
    assert "would have been found" in str(card)


HOSTILE = "<script>alert(1)</script>\" onload='x' &amp; </title></style>\x1b[2J\u202e detufer"


def test_no_text_of_others_becomes_markup_or_turns_around():
    found = audit(response(1.0), 1, 0, Claim.epsilon(3), samples=100)
    entry = make_audit_card("x", {"x": found}, date="2026-01-31").entries[0]
    detection = replace(entry.detection, mechanism=HOSTILE)
    # also where types do not hold: whoever makes a card may be someone else than who reads it
    card = AuditCard(
        HOSTILE, (replace(entry, what=HOSTILE, detection=detection),), HOSTILE, HOSTILE, {HOSTILE: HOSTILE}, HOSTILE
    )
    page = card.to_html()
    assert "<script" not in page
    assert page.count("</title>") == page.count("</style>") == 1
    assert "&lt;script&gt;" in page
    for text in (page, str(card)):
        assert "\x1b" not in text
        assert "\u202e" not in text
    tags = set(re.findall(r"<(/?[a-z0-9]+)", page))
    known = {"html", "head", "meta", "title", "style", "body", "p", "h1", "h2", "div", "span"}
    known |= {"table", "thead", "tbody", "tr", "th", "td"}
    assert {tag.removeprefix("/") for tag in tags} <= known
    assert not re.search(r"<[a-z0-9]+[^>]* on[a-z]+=", page)


def test_a_card_looks_no_better_than_the_audits_are():
    assert AuditCard("Nothing", (), "2026-01-31", 0, {}).verdict == "nothing audited"
    assert "Nothing was audited." in AuditCard("Nothing", (), "2026-01-31", 0, {}).to_html()
    # 100 samples show no epsilon above 4, and the card says so before anything else
    weak = make_audit_card("A count", {"x": audit(response(1.0), 1, 0, Claim.epsilon(5), samples=100)})
    assert weak.summary == "No claim is refuted. 1 of 1 audits are too small to find a breach of ten times the claim."
    assert weak.to_html().index("too small") < weak.to_html().index("<table>")
    strong = make_audit_card("A count", {"x": audit(response(1.0), 1, 0, Claim.epsilon(1), samples=SAMPLES)})
    assert strong.summary == "No claim is refuted."
    assert 'class="good"' not in strong.to_html()  # not refuted is no praise


def test_a_date_is_a_day():
    found = audit(response(1.0), 1, 0, Claim.epsilon(3), samples=100)
    for date in ("yesterday", "2026-02-30", "20260131", "2026-W05-6", 3):
        with pytest.raises(ParameterError, match="date"):
            make_audit_card("A count", {"x": found}, date=date)


def test_a_claim_of_zero_has_no_multiples():
    coins = np.arange(20) % 2 == 0
    weak = make_audit_card("Nothing", {"x": audit_canary_scores(np.zeros(20), coins, Claim.epsilon(0))})
    assert weak.entries[0].detects == "no breach up to epsilon 0.1"
    assert weak.summary == "No claim is refuted. 1 of 1 audits are too small to find a breach of epsilon 0.1."
    assert "times the claim" not in weak.to_html() + str(weak)
    both = make_audit_card(
        "Both", {**{"x": weak.entries[0].result}, "y": replace(weak.entries[0].result, claim=Claim.epsilon(8))}
    )
    assert both.summary.endswith("2 of 2 audits are too small to find a breach of epsilon 0.1 or ten times the claim.")


def run_audit(*words):
    return CliRunner().invoke(app, ["audit", *words])


def test_policies_and_the_zoo_have_cards(tmp_path):
    done = run_audit(
        "mechanisms", "scale-upside-down", "discrete-laplace", "-n", "3000", "--card", str(tmp_path / "zoo.json")
    )
    assert done.exit_code == 0, done.output
    told = json.loads((tmp_path / "zoo.json").read_text(encoding="utf-8"))
    assert len(told["audits"]) == 2
    assert [each["verdict"] for each in told["audits"]] == ["refuted", "not refuted"]
    assert "Every verdict is as expected." in told["note"]
    assert {each["confidence"] for each in told["audits"]} == {0.995}  # 99 % for both together
    assert told["seed"] == 0
    policy = tmp_path / "rows.toml"
    policy.write_text(POLICY, encoding="utf-8")
    done = run_audit("policy", "-p", str(policy), "-n", "200", "--card", str(tmp_path / "policy.html"))
    assert done.exit_code == 0, done.output
    page = (tmp_path / "policy.html").read_text(encoding="utf-8")
    assert "The answers that rows.toml allows" in page
    assert "SELECT COUNT(*)" in page


POLICY = """\
[data]
source = "nowhere.duckdb"
[privacy]
epsilon = 2
[tables.people]
unit = "row"
[tables.people.columns]
sick = { type = "bool" }
[analysts.ada]
epsilon = 1
"""


def test_a_card_that_cannot_be_saved_costs_no_audit(tmp_path):
    for name in ("card.pdf", "none/card.html"):
        done = run_audit("mechanisms", "--card", str(tmp_path / name))
        assert done.exit_code != 0
        assert "card: " in str(done.exception)


def test_secrets_of_addresses_and_commands_are_not_published(tmp_path):
    card = tmp_path / "card.html"
    words = ["--claim", "epsilon=5", "--one", "1", "--other", "2", "-n", "100", "--card", str(card)]
    run_audit("command", *words, "--", "sh", "-c", "true # hunter2")
    assert "hunter2" not in card.read_text(encoding="utf-8")
    assert _strip_secrets("https://ada:hunter2@x.org:8/a/{}?key=hunter2#hunter2") == "https://x.org:8/a/{}"


def test_mistakes_are_named(tmp_path):
    with pytest.raises(ParameterError, match="results"):
        make_audit_card("Nothing", {})
    with pytest.raises(ParameterError, match="results"):
        make_audit_card("Nothing", {"x": 3})
    found = audit(response(1.0), 1, 0, Claim.epsilon(3), samples=100)
    for title, what, note, name in ((None, "x", "", "title"), ("x", 1, "", "results"), ("x", "x", None, "note")):
        with pytest.raises(ParameterError, match=f"{name}: needs a text") as caught:
            make_audit_card(title, {what: found}, note=note)
        assert caught.value.fix
    with pytest.raises(ParameterError, match="path"):
        make_audit_card("A count", {"x": found}).save(tmp_path / "card.pdf")
