"""CONTRIBUTING.md says what the import contract says."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_layers_are_those_of_the_import_contract() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (contract,) = project["tool"]["importlinter"]["contracts"]
    layers = [line.replace("(", "").replace(")", "") for line in contract["layers"]]  # brackets: may be absent
    text = (ROOT / "CONTRIBUTING.md").read_text()
    said = text[text.index("## Layers") : text.index("## Style")]
    assert [line.strip() for line in said.splitlines() if line.startswith("    ")] == layers
