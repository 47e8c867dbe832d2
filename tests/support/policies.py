"""Policies as dicts: what most of them have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def caps(groups: int, rows: int, total: int | None = None) -> dict[str, int]:
    """What one unit may contribute: so many groups, rows in each, and rows in all where a total is given."""
    return {"max_groups": groups, "max_rows_per_group": rows} | ({} if total is None else {"max_rows": total})


def policy_of(
    tables: Mapping[str, Any],
    *,
    epsilon: object = 1000,
    analysts: Sequence[str] = ("ada",),
    own: Mapping[str, Any] | None = None,
    folder: Path | None = None,
    **privacy: Any,
) -> dict[str, Any]:
    """A policy over these tables: each analyst may spend `epsilon`, or their `own` budget; a ledger in `folder`."""
    return {
        "privacy": {"epsilon": epsilon, **privacy},
        "tables": dict(tables),
        "analysts": {name: dict(own or {"epsilon": epsilon}) for name in analysts},
        **({} if folder is None else {"ledger": {"store": str(folder / "x.ledger")}}),
    }
