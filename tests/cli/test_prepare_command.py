"""`tacit prepare` makes the copy that the policy names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tacit.demo.clinic import build_clinic

pytestmark = pytest.mark.slow


def test_a_copy_is_made_once_and_asked(tacit, tmp_path: Path):
    policy = build_clinic(tmp_path)
    text = policy.read_text(encoding="utf-8")
    question = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
    policy.write_text(text.replace("epoch = 1", 'copy = "clinic.copy"\nepoch = 1'), encoding="utf-8")
    made = tacit("prepare", "-p", policy)
    assert made.stdout.startswith("clinic.copy holds the data of epoch 1")
    before = (tmp_path / "clinic.copy").stat().st_mtime_ns
    asked = tacit("ask", "-p", policy, "--as", "ada", "--epsilon", "1", question)
    assert "Surgery" in asked.stdout
    tacit("prepare", "-p", policy)
    assert (tmp_path / "clinic.copy").stat().st_mtime_ns == before


def test_a_policy_that_names_no_copy_is_told_how(tacit, tmp_path: Path):
    made = tacit("prepare", "-p", build_clinic(tmp_path))
    assert made.returncode == 4
    assert "copy =" in made.stderr
