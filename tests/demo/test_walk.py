"""The walk says what it shows."""

from __future__ import annotations

import re

import pytest

from tacit.demo.walk import run_tour

pytestmark = pytest.mark.slow


def test_the_walk_shows_what_its_titles_say(tmp_path):
    shown = {step.title: step for step in run_tour(tmp_path)}
    assert "from 0 to 110" in shown["What there is to ask about"].shows
    assert "scale 120" in shown["Look before you ask"].shows  # 12 rows a patient at epsilon 0.1
    assert "ada has 1.9 of 2 left" in shown["A private count"].shows
    assert shown["An average for each ward"].shows.count("●") == 6
    assert "a repeat, free" in shown["The same question again"].shows
    diagnoses = shown["Keys that nobody listed"].shows
    assert "Groups are shown only where enough units hold them" in diagnoses
    assert "E01 Sprain or bruise" in diagnoses  # 5,800 patients have it: far beyond any threshold
    assert "epsilon 0.2, delta 1e-09" in diagnoses  # a thousandth of the policy's delta
    # The total of a patient is clamped to 20,000, so a mean over 20,000 patients is about 7,700, within some tens.
    found = re.search(r"^ +([\d,]+)  [\d,]+ to [\d,]+$", shown["A question about each patient"].shows, re.MULTILINE)
    assert found is not None
    assert 7_000 < int(found[1].replace(",", "")) < 8_500
    refused = shown["Two questions that are refused"].shows
    assert "[raw-column]" in refused
    assert "[unbounded]" in refused
    # 2 - 0.1 - 1.0 - 0.2 - 0.1 leaves three questions at 0.2
    assert shown["The budget runs out"].shows.count(" left") == 4
    assert "all in order" in shown["What the owner keeps"].shows
