"""`tacit prepare` makes the copy that the policy names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tacit.demo.clinic import build_clinic

pytestmark = pytest.mark.slow


def test_a_copy_is_made_and_asked(tacit, process, tmp_path: Path):
    policy = build_clinic(tmp_path)
    text = policy.read_text(encoding="utf-8")
    question = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
    policy.write_text(text.replace("epoch = 1", 'prepared = "clinic.prepared"\nepoch = 1'), encoding="utf-8")
    asked = tacit("ask", "-p", policy, "--as", "ada", "--epsilon", "1", question)
    assert asked.returncode == 5
    assert "tacit prepare" in asked.stderr
    made = process("prepare", "-p", policy)
    assert made.stdout.startswith("Wrote clinic.prepared")
    asked = tacit("ask", "-p", policy, "--as", "ada", "--epsilon", "1", question)
    assert "Surgery" in asked.stdout


def test_a_policy_that_names_no_copy_is_told_how(tacit, tmp_path: Path):
    made = tacit("prepare", "-p", build_clinic(tmp_path))
    assert made.returncode == 4
    assert "prepared =" in made.stderr
