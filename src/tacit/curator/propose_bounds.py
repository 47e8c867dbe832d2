"""Policy lines from a profile: bounds rounded outward to round numbers, keys, and how many rows of a unit to allow for.

Everything is computed from released counts, so it may stand in the policy, which is public.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from tacit.answers.data_profile import ColumnProfile, DataProfile, NoisyHistogram, TableProfile
from tacit.arithmetic import format_decimal
from tacit.policy.contribution_caps import MAX_ROWS_PER_GROUP
from tacit.policy.locate import format_key, quote_string
from tacit.policy.model import Column, Policy, Table
from tacit.policy.tables import MAX_FLOAT
from tacit.query.timestamps import to_datetime, to_microseconds
from tacit.query.types import NUMERIC_TYPES, TIME_TYPES, Type
from tacit.query.value_bins import Edge

_MOST_KEYS = 50  # that are proposed as a list
_TIGHTER = 4  # times narrower than declared bounds are, before others are proposed
_NEGLIGIBLE = Fraction(1, 10)  # of the farther bound, where zero is as good as the nearer one
_MOST_OUTSIDE = 0.25  # of the units, with bounds that are proposed
_LAST_INT = 2**63 - 1


@dataclass(frozen=True)
class PolicyProposal:
    """A line for a section of the policy, and why."""

    section: str
    line: str
    reason: str

    def __str__(self) -> str:
        return f"{self.line}    # {self.reason}"


def propose_lines(policy: Policy, profile: DataProfile) -> tuple[PolicyProposal, ...]:
    """Propose lines of the policy that the profile supports: none where too few units are in a bin to tell."""
    found: list[PolicyProposal] = []
    for profiled in profile.tables:
        table = policy.table(profiled.name)
        if table is not None:
            found += [*_propose_rows(table, profiled), *_propose_columns(table, profiled)]
    return tuple(found)


def render_lines(proposals: tuple[PolicyProposal, ...]) -> str:
    """Return the proposals as TOML, each under its section."""
    lines: list[str] = []
    for section in dict.fromkeys(each.section for each in proposals):
        lines += [f"[{section}]", *(str(each) for each in proposals if each.section == section), ""]
    return "\n".join(lines).rstrip()


def _propose_rows(table: Table, profiled: TableProfile) -> Iterator[PolicyProposal]:
    """The most rows of a unit that a chosen clip may count, where the policy names none."""
    if profiled.sizes is None or not profiled.sizes.shown:
        return
    last = profiled.sizes.shown[-1].upper
    if table.auto and table.auto_up_to is None and isinstance(last, Fraction):
        most = min(max(1, int(_round_up(last))), MAX_ROWS_PER_GROUP)  # a bin may be shown by mistake, however far
        reason = f"rows of one {profiled.unit}: {profiled.describe_sizes().strip()}"
        yield PolicyProposal(f"tables.{format_key(table.name)}", f"max_rows = {{ auto_up_to = {most} }}", reason)


def _propose_columns(table: Table, profiled: TableProfile) -> Iterator[PolicyProposal]:
    section = f"tables.{format_key(table.name)}.columns"
    for found in profiled.columns:
        column = table.column(found.name)
        if column is None or column.type is not found.type:
            continue
        proposed = _propose_keys(column, found) if found.histogram is None else _propose_bounds(column, found.histogram)
        if proposed is not None:
            settings, reason = proposed
            yield PolicyProposal(section, f"{format_key(column.name)} = {{ {settings} }}", reason)


def _propose_keys(column: Column, found: ColumnProfile) -> tuple[str, str] | None:
    """The keys that enough units share, as a public list."""
    if column.type is not Type.TEXT or column.values is not None or not 1 <= len(found.keys) <= _MOST_KEYS:
        return None
    held = max(1, sum(max(0, count) for _, count in found.keys))
    values = ", ".join(quote_string(key) for key, _ in found.keys)
    reason = f"about {100 * min(1.0, held / found.units):.0f}% of the units have one of these"
    return f'type = "text", values = [{values}]', reason


def _propose_bounds(column: Column, histogram: NoisyHistogram) -> tuple[str, str] | None:
    """Bounds that hold all bins that are shown.

    None where there are none, where more than a quarter of the units may lie outside, because they are too few for this
    epsilon to tell, and where declared bounds are nearly as narrow.
    """
    shown, outside = histogram.shown, histogram.outside
    if not shown or (outside is not None and outside.high > _MOST_OUTSIDE):
        return None
    if column.type in NUMERIC_TYPES:
        lower, upper = _round_numbers(column.type, shown[0].lower, shown[-1].upper)
    else:
        lower, upper = _whole_years(column.type, shown[0].lower, shown[-1].upper)
    if column.lower is not None and column.upper is not None:
        lower, upper = max(lower, column.lower), min(upper, column.upper)
        if upper <= lower or (column.upper - column.lower) < _TIGHTER * (upper - lower):
            return None
    most = "" if outside is None else f"at most {100 * outside.high:.2g}% of the units may lie outside"
    settings = [f'type = "{column.type}"', f"lower = {_write_bound(column.type, lower)}"]
    settings.append(f"upper = {_write_bound(column.type, upper)}")
    settings += [] if column.nullable else ["nullable = false"]
    settings += [] if column.zone is None else [f"zone = {quote_string(column.zone)}"]
    return ", ".join(settings), most


def _round_numbers(kind: Type, lower: Edge, upper: Edge) -> tuple[Fraction, Fraction]:
    most = Fraction(_LAST_INT if kind is Type.INT else MAX_FLOAT)
    low = -most if lower is None else -_round_up(-Fraction(str(lower)))
    high = most if upper is None else _round_up(Fraction(str(upper)))
    low, high = max(low, -most), min(high, most)
    if 0 < low <= high * _NEGLIGIBLE:  # the noise hardly depends on it, and zero cuts nothing off
        low = Fraction(0)
    if 0 > high >= low * _NEGLIGIBLE:
        high = Fraction(0)
    return low, max(high, low + 1)


def _round_up(number: Fraction) -> Fraction:
    """The least of 1, 2 and 5 times a power of ten that is at least the number; of negative ones the same mirrored.

    >>> [str(_round_up(Fraction(n))) for n in (4096, 128, 1, -128, 0)]
    ['5000', '200', '1', '-100', '0']
    """
    if abs(number) <= Fraction(1, 2**20):  # the bin around zero
        return Fraction(0)
    digits = math.floor(math.log10(abs(number)))
    round_numbers = [Fraction(10) ** (digits + more) * first for more in (-1, 0, 1) for first in (1, 2, 5)]
    if number > 0:
        return min(each for each in round_numbers if each >= number)
    return -max(each for each in round_numbers if each <= -number)


def _whole_years(kind: Type, lower: Edge, upper: Edge) -> tuple[Fraction, Fraction]:
    """The first and the last moment of whole years, as a policy counts them."""
    first = lower if isinstance(lower, datetime.date) else datetime.date.min
    last = upper if isinstance(upper, datetime.date) else datetime.date.max
    if kind is Type.DATE:
        return Fraction(first.toordinal()), Fraction(last.toordinal())
    end = datetime.datetime.combine(last, datetime.time(23, 59, 59))
    return Fraction(to_microseconds(first)), Fraction(to_microseconds(end))


def _write_bound(kind: Type, bound: Fraction) -> str:
    if kind not in TIME_TYPES:
        return format_decimal(bound)
    if kind is Type.DATE:
        return datetime.date.fromordinal(int(bound)).isoformat()
    return to_datetime(int(bound)).isoformat()
