"""How much of one unit counts: fixed caps, or a clip that is chosen privately for each question (`max_rows = "auto"`).

Under `"auto"` there may be caps as well. They hold for questions that cannot use a clip: medians, COUNT(DISTINCT x),
top-k and learning.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tacit.policy.check import describe_value
from tacit.policy.model import ROW_UNIT, UnitForeignKey
from tacit.policy.section import Section

AUTO = "auto"
MAX_GROUPS = 10_000
MAX_ROWS_PER_GROUP = 1_000_000
KEYS_PER_UNIT = 10
"""Under `max_rows = "auto"` without caps: what stands for `max_groups`. Questions of earlier versions look at so many
private keys of a unit when deciding which keys are shown; later ones select keys by weight (`plan/key_selection.py`).
What the unit adds to the groups that are shown is bounded by the clip instead."""

_MEANING = {
    "max_groups": "the most groups of one answer that one unit may touch; more of its groups are left out",
    "max_rows_per_group": "the most rows of one unit that count in one group; more of its rows are left out",
    "max_rows": "the most rows of one unit that count in one answer; more of its rows are left out",
}
_MOST = {"max_groups": MAX_GROUPS, "max_rows_per_group": MAX_ROWS_PER_GROUP, "max_rows": MAX_ROWS_PER_GROUP}
_IN_GROUPS = ("max_groups", "max_rows_per_group")


class ContributionCaps(NamedTuple):
    """What a table declares of how much of one unit counts, by the names of `Table`."""

    max_groups: int
    max_rows_per_group: int
    max_rows: int | None
    auto: bool = False
    auto_up_to: int | None = None
    has_caps: bool = True


def load_caps(at: Section, unit: str | UnitForeignKey) -> ContributionCaps:
    """The fixed caps of a table, or the choice for each question with the caps that are declared beside it."""
    declared = at.entries.get("max_rows")
    if isinstance(declared, str | Mapping):
        return _load_auto(at, unit, declared)
    total = _load_cap(at, unit, "max_rows") if "max_rows" in at.entries else None
    groups, rows = (_load_cap(at, unit, name) for name in _IN_GROUPS)
    if total is None:
        return ContributionCaps(groups, rows, None)
    _check_total(at, {"max_groups": groups, "max_rows_per_group": rows}, "max_rows", total)
    return ContributionCaps(groups, rows, None if unit == ROW_UNIT else total)


def _load_cap(at: Section, unit: str | UnitForeignKey, name: str) -> int:
    """A fixed cap. No default for a unit of many rows: it decides both noise and bias."""
    most = _MOST[name]
    fix = f'give {_MEANING[name]}; or write unit = "{ROW_UNIT}" where each row is one person'
    if not any(cap in at.entries for cap in _MOST):
        fix = f'write max_rows = "{AUTO}", to have it chosen for each question; or {fix}'
    if unit != ROW_UNIT:
        return at.whole(name, 1, most, fix)
    if name in at.entries and at.whole(name, 1, most, fix) != 1:
        at.fail(
            f'must be 1 or left out where unit = "{ROW_UNIT}"', name, fix="leave it out, or name a column as the unit"
        )
    return 1


def _check_total(at: Section, caps: Mapping[str, int], name: str, total: int) -> None:
    """Refuse a cap above that on all rows of a unit."""
    for cap, value in caps.items():
        if value > total:
            at.fail(f"{value} is more than {name}, which is {total}", cap, fix=f"write {cap} = {total}, or less")


def _load_auto(at: Section, unit: str | UnitForeignKey, declared: str | Mapping[str, object]) -> ContributionCaps:
    if unit == ROW_UNIT:
        what = f'must be 1 or left out where unit = "{ROW_UNIT}", not {describe_value(declared)}'
        at.fail(what, "max_rows", fix="leave it out: each row is a unit, so no cap is needed")
    most = _load_maximum(at, declared)
    caps = {
        name: at.whole(name, 1, _MOST[name], f"give {_MEANING[name]}; or leave it out")
        for name in _IN_GROUPS
        if name in at.entries
    }
    if most is not None:
        _check_total(at, caps, "auto_up_to", most)
        groups, rows = (caps.get(name, min(most, _MOST[name])) for name in _IN_GROUPS)
        return ContributionCaps(groups, rows, most, auto=True, auto_up_to=most)
    if len(caps) == 1:
        [name] = caps
        [other] = set(_IN_GROUPS) - set(caps)
        what = f'stands without {other}; beside max_rows = "{AUTO}" declare both or none'
        at.fail(what, name, fix=f"leave {name} out; or add {other} = 10, say: {_MEANING[other]}")
    groups, rows = (caps[name] for name in _IN_GROUPS) if caps else (KEYS_PER_UNIT, MAX_ROWS_PER_GROUP)
    return ContributionCaps(groups, rows, None, auto=True, has_caps=bool(caps))


def _load_maximum(at: Section, declared: str | Mapping[str, object]) -> int | None:
    """The declared maximum of the clip, in rows; None for "auto" alone."""
    if isinstance(declared, str):
        if declared != AUTO:
            what = f'must be "{AUTO}" or a whole number from 1 to {_MOST["max_rows"]}, not {describe_value(declared)}'
            at.fail(what, "max_rows", fix=f'write max_rows = "{AUTO}"')
        return None
    inside = at.section("max_rows")
    inside.only("auto_up_to")
    fix = f'write max_rows = {{ auto_up_to = 500 }}, or max_rows = "{AUTO}" for no maximum'
    return inside.whole("auto_up_to", 1, _MOST["max_rows"], fix)
