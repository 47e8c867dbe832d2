"""Randomness is drawn in one room."""

from __future__ import annotations

import re
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "tacit"
GENERATORS = re.compile(
    r"\b(np|numpy)\.random\b|\bdefault_rng\b|^[ \t]*(import|from) (random|secrets)\b|\burandom\b", re.MULTILINE
)


def test_no_other_generator_is_used():
    # the demo's clinic is made up; attacks and audits play with numbers, and protect nobody; serving makes passwords
    apart = {"demo", "attacks", "audit", "serve"}
    sources = {SOURCE / "sampling" / "bits.py", SOURCE / "sampling" / "seed.py"}
    # models and datasets draw from the generators of others, whose states are set aside during a pass
    sources.add(SOURCE / "learn" / "torch" / "fresh_randomness.py")
    files = [f for f in SOURCE.rglob("*.py") if not apart & set(f.parts) and f not in sources]
    assert len(files) > 90
    assert [f.name for f in files if GENERATORS.search(f.read_text(encoding="utf-8"))] == []


def test_bits_are_read_only_where_a_law_is_drawn():
    readers = {
        f.relative_to(SOURCE).as_posix() for f in SOURCE.rglob("*.py") if ".words(" in f.read_text(encoding="utf-8")
    }
    # in audit/ what has words is an event
    assert {name for name in readers if not name.startswith(("sampling/", "audit/"))} <= {"mechanisms/partition.py"}
