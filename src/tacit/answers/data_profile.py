"""What a profile of the data released, and how it is read: noisy histograms of columns, and of rows per unit.

A profile is stored as plain values that say all that is needed to read it, so it can be shown after the policy has
changed. Everything here is computed from the noisy counts.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from tacit.accounting.receipt import Receipt
from tacit.answers.histogram_estimates import (
    FALSE_BIN,
    estimate_rank,
    find_occupied,
    half_width,
    occupied_threshold,
)
from tacit.query.types import Type
from tacit.query.value_bins import Edge, ValueBins

VERSION = 1  # of what is stored
QUANTILES = tuple(Fraction(percent, 100) for percent in (5, 25, 50, 75, 95))
_BARS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class Bin:
    """A bin of values and about how many units are in it."""

    lower: Edge
    upper: Edge
    units: int

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        return {"from": plain_edge(self.lower), "to": plain_edge(self.upper), "units": self.units}


@dataclass(frozen=True)
class ProfiledQuantile:
    """A quantile: an estimate, and the ends of the bins between which it lies, 95% of the time."""

    share: Fraction
    value: Edge
    low: Edge
    high: Edge

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        ends = {"value": self.value, "low": self.low, "high": self.high}
        return {"share": float(self.share), **{name: plain_edge(end) for name, end in ends.items()}}


@dataclass(frozen=True)
class ProfiledShare:
    """A share of the units, with the interval that holds it 95% of the time."""

    value: float
    low: float
    high: float

    def to_dict(self) -> dict[str, float]:
        """The same as plain values, in steps of a ten-thousandth."""
        return {"share": round(self.value, 4), "low": round(self.low, 4), "high": round(self.high, 4)}


@dataclass(frozen=True)
class NoisyHistogram:
    """Noisy counts of units, each unit in one bin of its type: those of a column, or of how many rows a unit has."""

    type: Type
    cells: tuple[int, ...]
    scale: Fraction

    @property
    def threshold(self) -> int:
        """The least noisy count of a bin that is shown."""
        return occupied_threshold(len(self.cells), self.scale)

    @cached_property
    def _range(self) -> tuple[int, int] | None:
        """The positions of the first and the last occupied bin."""
        occupied = find_occupied(self.cells, self.scale)
        return (occupied[0], occupied[-1]) if occupied else None

    @property
    def shown(self) -> tuple[Bin, ...]:
        """The bins from the first to the last occupied one; none where all counts may be noise."""
        if self._range is None:
            return ()
        first, last = self._range
        bins = ValueBins(self.type)
        return tuple(
            Bin(*bins.edges(code), max(0, units))
            for code, units in list(zip(bins.codes, self.cells, strict=True))[first : last + 1]
        )

    @property
    def units(self) -> int:
        """About how many units have a value in the bins that are shown."""
        return 0 if self._range is None else max(0, sum(self.cells[self._range[0] : self._range[1] + 1]))

    @property
    def outside(self) -> ProfiledShare | None:
        """The share of the units whose values may lie beyond the bins that are shown."""
        if self._range is None or self.units == 0:
            return None
        first, last = self._range
        rest = [*self.cells[:first], *self.cells[last + 1 :]]
        found, width = sum(rest), half_width(len(rest), self.scale)
        return _share(found, width, self.units + max(0, found))

    def quantile(self, share: Fraction) -> ProfiledQuantile | None:
        """A quantile of the values in the bins that are shown; None where there are none."""
        if self._range is None:
            return None
        first, last = self._range
        found = estimate_rank(self.cells[first : last + 1], self.scale, share)
        shown = self.shown
        here = shown[found.cell]
        return ProfiledQuantile(
            share,
            _between(here.lower, here.upper, found.within, self.type),
            shown[found.low].lower,
            shown[found.high].upper,
        )

    def draw(self) -> str:
        """The bins that are shown as bars, one character each."""
        units = [each.units for each in self.shown]
        most = max(units, default=0)
        return "".join(_BARS[round((len(_BARS) - 1) * count / most)] for count in units) if most else ""

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        outside = self.outside
        return {
            "bins": [each.to_dict() for each in self.shown],
            "quantiles": [found.to_dict() for share in QUANTILES if (found := self.quantile(share)) is not None],
            "outside": None if outside is None else outside.to_dict(),
            "threshold": self.threshold,
        }


@dataclass(frozen=True)
class ColumnProfile:
    """A column: how many units miss a value, and a histogram of the values, or the common keys of texts.

    Of each unit one row counts. `keys` are those of a text column with their noisy counts, the commonest first: all
    declared ones where `is_listed`, else those that enough units share. `least` is the noisy count that such a key
    needs; None where there was no delta to show any.
    """

    name: str
    type: Type
    scale: Fraction
    null: int
    histogram: NoisyHistogram | None = None
    keys: tuple[tuple[str, int], ...] = ()
    is_listed: bool = False
    others: int | None = None
    least: int | None = None

    @property
    def has_hidden_keys(self) -> bool:
        """Whether units may have keys that are not shown, and are counted nowhere."""
        return self.histogram is None and not self.is_listed and self.least is not None

    @property
    def units(self) -> int:
        """About how many units there are, with a value or without."""
        found = self.histogram.units if self.histogram is not None else sum(count for _, count in self.keys)
        return max(1, found + max(0, self.others or 0) + max(0, self.null))

    @property
    def null_share(self) -> ProfiledShare:
        """The share of the units whose row has no value here."""
        return _share(self.null, half_width(1, self.scale), self.units)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        found: dict[str, Any] = {"type": str(self.type), "units": self.units, "null": self.null_share.to_dict()}
        if self.histogram is not None:
            return found | self.histogram.to_dict()
        keys = [{"key": key, "units": count} for key, count in self.keys]
        return found | {"keys": keys, "others": self.others, "threshold": self.least}

    def describe(self) -> str:
        """What is known of the column, in a line."""
        missing = self.null_share
        null = f"{_percent(missing.value)} NULL (at most {_percent(missing.high)})"
        if self.histogram is None:
            shown = ", ".join(f"{key} {_percent(count / self.units)}" for key, count in self.keys[:5])
            more = f" and {len(self.keys) - 5} more" if len(self.keys) > 5 else ""
            return f"{shown or self._describe_no_keys()}{more}; {null}"
        middle, low, high = (self.histogram.quantile(QUANTILES[place]) for place in (2, 0, 4))
        if middle is None or low is None or high is None:
            return f"too few units to tell from noise: {self.histogram.threshold:,} in one bin would be shown"
        interval = f"({_end(middle.low)} to {_end(middle.high)})"
        ends = f"5% below {_end(low.value)}, median {_end(middle.value)} {interval}, 95% below {_end(high.value)}"
        return f"{ends}; {null}  {self.histogram.draw()}"

    def _describe_no_keys(self) -> str:
        if self.least is None:
            return "keys need a delta, which the policy has not"
        return f"no key that {self.least:,} units share"


@dataclass(frozen=True)
class TableProfile:
    """A table: whose rows they are, its columns, and how many rows a unit has where that may be several."""

    name: str
    unit: str
    columns: tuple[ColumnProfile, ...]
    sizes: NoisyHistogram | None = None

    def column(self, name: str) -> ColumnProfile | None:
        """The column of that name, or None."""
        return next((column for column in self.columns if column.name == name), None)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        sizes = {} if self.sizes is None else {"rows_per_unit": self.sizes.to_dict()}
        return {"unit": self.unit, **sizes, "columns": {column.name: column.to_dict() for column in self.columns}}

    def describe_sizes(self) -> str:
        """How many rows a unit has, in a line."""
        assert self.sizes is not None
        middle, high = self.sizes.quantile(Fraction(1, 2)), self.sizes.quantile(Fraction(95, 100))
        if middle is None or high is None:
            return f"too few units to tell from noise: {self.sizes.threshold:,} in one bin would be shown"
        return f"median {_end(middle.value)}, 95% have at most {_end(high.high)}  {self.sizes.draw()}"


@dataclass(frozen=True)
class DataProfile:
    """A profile of the tables of one epoch, released at one epsilon, and free to look at from then on."""

    epoch: int
    epsilon: str
    delta: str
    tables: tuple[TableProfile, ...]
    stored: bytes = field(compare=False, repr=False)
    receipt: Receipt | None = field(default=None, compare=False, repr=False)  # of the charge, for whoever was charged

    @classmethod
    def decode(cls, stored: bytes) -> DataProfile | None:
        """The profile that `encode_profile` wrote; None where it is something else, or of a later version."""
        found = json.loads(stored)
        if not isinstance(found, dict) or found.get("profile") != VERSION:
            return None
        scale = Fraction(found["scale"])
        tables = tuple(_decode_table(table, scale) for table in found["tables"])
        return cls(found["epoch"], found["epsilon"], found["delta"], tables, stored)

    def table(self, name: str) -> TableProfile | None:
        """The table of that name, or None."""
        return next((table for table in self.tables if table.name == name), None)

    def select_columns(self, shown: Mapping[str, Collection[str]]) -> DataProfile | None:
        """The profile of these columns of these tables alone, stored bytes and all; None where none is left of it.

        It is a function of the profile, so it tells no more of the data. Its noise is that of the whole profile.
        """
        plain = json.loads(self.stored)
        tables = []
        for table in plain["tables"]:
            columns = [column for column in table["columns"] if column["name"] in shown.get(table["name"], ())]
            if columns:
                tables.append(table | {"columns": columns})
        return DataProfile.decode(_encode(plain | {"tables": tables})) if tables else None

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        return {
            "epoch": self.epoch,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "tables": {table.name: table.to_dict() for table in self.tables},
        }

    def __str__(self) -> str:
        lines = [f"Profile of epoch {self.epoch}, released with epsilon {self.epsilon}{_delta_words(self.delta)}."]
        for table in self.tables:
            lines += ["", f"{table.name}: one row of each {table.unit} counts" if table.unit != "row" else table.name]
            parts = [(column.name, str(column.type), column.describe()) for column in table.columns]
            if table.sizes is not None:
                parts.append(("rows per unit", "", table.describe_sizes()))
            wide, types = (max(len(part[i]) for part in parts) for i in range(2))
            lines += [f"  {name.ljust(wide)}  {kind.ljust(types)}  {about}" for name, kind, about in parts]
        lines += ["", _EXPLAINED]
        return "\n".join(lines)


_EXPLAINED = (
    "Intervals hold 95% of the time. Bins are powers of two, and years for dates. An empty bin is shown with "
    f"probability below {float(FALSE_BIN):.0%} in each histogram; bins with few units are not shown."
)


def encode_profile(
    epoch: int, epsilon: Fraction, delta: Fraction, scale: Fraction, tables: list[dict[str, Any]]
) -> bytes:
    """Canonical bytes of what was released, `tables` as `_decode_table` reads them."""
    plain = {
        "profile": VERSION,
        "epoch": epoch,
        "epsilon": _decimal(epsilon),
        "delta": _decimal(delta),
        "scale": str(scale),
        "tables": tables,
    }
    return _encode(plain)


def _encode(plain: dict[str, Any]) -> bytes:
    return json.dumps(plain, separators=(",", ":"), sort_keys=True, ensure_ascii=False).encode()


def _decode_table(plain: dict[str, Any], scale: Fraction) -> TableProfile:
    sizes = NoisyHistogram(Type.INT, tuple(plain["sizes"]), scale) if "sizes" in plain else None
    columns = [_decode_column(column, scale) for column in plain["columns"]]
    known = [column.units for column in columns if not column.has_hidden_keys]
    known += [] if sizes is None else [sizes.units]
    units = sorted(known)[len(known) // 2] if known else 0
    return TableProfile(plain["name"], plain["unit"], tuple(_add_hidden_keys(each, units) for each in columns), sizes)


def _add_hidden_keys(column: ColumnProfile, units: int) -> ColumnProfile:
    """A column of private keys with an estimate of how many units have others: what is left of all units."""
    if not column.has_hidden_keys:
        return column
    return replace(column, others=max(0, units - sum(count for _, count in column.keys) - max(0, column.null)))


def _decode_column(plain: dict[str, Any], scale: Fraction) -> ColumnProfile:
    name, kind, null = plain["name"], Type(plain["type"]), plain["null"]
    if "cells" in plain:
        return ColumnProfile(name, kind, scale, null, NoisyHistogram(kind, tuple(plain["cells"]), scale))
    keys = sorted(((str(key), int(count)) for key, count in plain["keys"]), key=lambda pair: -pair[1])
    return ColumnProfile(
        name,
        kind,
        scale,
        null,
        keys=tuple(keys),
        is_listed=plain["listed"],
        others=plain.get("others"),
        least=plain.get("least"),
    )


def plain_edge(edge: Edge) -> Any:
    """An end of a bin as JSON has it: a number, the text of a day, or None."""
    if isinstance(edge, Fraction):
        return int(edge) if edge.denominator == 1 else float(edge)
    return None if edge is None else edge.isoformat()


def _between(lower: Edge, upper: Edge, share: float, kind: Type) -> Edge:
    """The value so far up in a bin; its finite end where it has one only."""
    if lower is None or upper is None:
        return upper if lower is None else lower
    if isinstance(lower, Fraction) and isinstance(upper, Fraction):
        value = lower + (upper - lower) * Fraction(share)
        return Fraction(int(value)) if kind is Type.INT else Fraction(float(f"{float(value):.3g}"))
    assert isinstance(lower, datetime.date)
    assert isinstance(upper, datetime.date)
    return lower + (upper - lower) * share


def _share(count: float, width: float, units: int) -> ProfiledShare:
    """A noisy count as a share of the units; between 0 and 1."""
    value, low, high = (min(1.0, max(0.0, number / units)) for number in (count, count - width, count + width))
    return ProfiledShare(value, low, high)


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%" if share >= 0.1 or share == 0 else f"{100 * share:.2g}%"


def _end(edge: Edge) -> str:
    """An end of a bin in words."""
    if edge is None:
        return "any"
    return f"{float(edge):,.6g}" if isinstance(edge, Fraction) else edge.isoformat()


def _delta_words(delta: str) -> str:
    return "" if delta == "0" else f" and delta {delta}"


def _decimal(number: Fraction) -> str:
    return str(int(number)) if number.denominator == 1 else repr(float(number))
