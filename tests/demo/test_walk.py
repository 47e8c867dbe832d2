"""The walk says what it shows."""

from __future__ import annotations

from tacit.demo.walk import walk


def test_the_walk_shows_what_its_titles_say(tmp_path):
    shown = {step.title: step for step in walk(tmp_path)}
    assert "from 0 to 110" in shown["What there is to ask about"].shows
    assert "scale 120" in shown["Look before you ask"].shows  # 12 rows a patient at epsilon 0.1
    assert "ada has 1.9 of 2 left" in shown["A private count"].shows
    assert shown["An average for each ward"].shows.count("●") == 6
    assert "a repeat, free" in shown["The same question again"].shows
    assert "[raw-column]" in shown["Two questions that are refused"].shows
    # 2 - 0.1 - 1.0 leaves three questions at 0.3
    assert shown["The budget runs out"].shows.count(" left") == 4
    assert "all in order" in shown["What the owner keeps"].shows
