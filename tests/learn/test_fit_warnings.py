"""Warnings of fits have codes that the reference explains."""

from __future__ import annotations

import re
from pathlib import Path

from tacit.learn import fit_warnings

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")


def test_every_code_is_explained_and_no_other():
    kinds = [kind for kind in vars(fit_warnings).values() if isinstance(kind, type)]
    codes = {kind.code for kind in kinds if issubclass(kind, fit_warnings.FitWarning)} - {"fit"}
    section = PAGE.partition("## Warnings of a fit")[2]
    assert set(re.findall(r"^\| `([\w-]+)` \|", section, re.MULTILINE)) == codes
