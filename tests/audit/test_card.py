"""Audit cards: what they say is what was measured, and the power they state is there."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest

from tacit.audit import Claim, audit, audit_canary_scores, make_audit_card, measure_detection
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


def test_mistakes_are_named(tmp_path):
    with pytest.raises(ParameterError, match="results"):
        make_audit_card("Nothing", {})
    with pytest.raises(ParameterError, match="results"):
        make_audit_card("Nothing", {"x": 3})
    found = audit(response(1.0), 1, 0, Claim.epsilon(3), samples=100)
    with pytest.raises(ParameterError, match="path"):
        make_audit_card("A count", {"x": found}).save(tmp_path / "card.pdf")
