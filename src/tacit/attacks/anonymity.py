"""k-anonymity, l-diversity and t-closeness of a released table: what they say of it, and what they leave open.

>>> rows = [{"age": "20-39", "illness": "gout"}] * 5 + [{"age": "40-59", "illness": ill} for ill in "abcde"]
>>> found = measure_anonymity(rows, key=["age"], sensitive="illness")
>>> found.k, found.distinct, found.homogeneous
(5, 1, 5)
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tacit.arithmetic import Number, to_integer, to_rational
from tacit.attacks.tabular import Codes, Tabular, encode_column, encode_keys, list_columns, to_table
from tacit.errors import ParameterError

_FITS = 2**62


@dataclass(frozen=True, eq=False)
class AnonymityResult:
    """How alike the rows of a released table are to whoever knows the columns of the key.

    A *group* is the set of all rows with one key. A NULL in a key is a value like any other, as it is to a reader of
    the release. With r1 >= r2 >= ... >= rm the numbers of rows of a group's m sensitive values, n its size, p its
    distribution of sensitive values and q that of the whole table, the table is

    - k-anonymous if every group has at least `k` rows (Sweeney 2002);
    - distinct l-diverse if every group has at least `distinct` sensitive values, and entropy l-diverse if the entropy
      of every p is at least ln(`entropy`) (Machanavajjhala, Gehrke, Kifer, Venkitasubramaniam 2006);
    - recursive (c, l)-diverse if r1 < c (r_l + ... + r_m) in every group: just for the c above `recursive_ratio(l)`;
    - t-close if no p is farther from q than t: `closeness` where all pairs of values have distance 1 (this is half the
      L1 distance), `ordered_closeness` where the i-th and the j-th of d values have distance |i - j|/(d - 1), and the
      distance of distributions is the least work that turns p into q (Li, Li, Venkatasubramanian 2007).

    None of these is a statement about what an attacker can learn: each measures this table alone, under the assumption
    that the key is all that is known. `homogeneous` rows are told to whoever knows their key, whatever k is, and
    `intersect_releases` shows what two releases tell together.

    Attributes
    ----------
    key : tuple of str
        The columns that an attacker is assumed to know.
    sensitive : str or None
        The column that is to be hidden; None where only k was measured.
    rows, groups : int
        How many rows there are, and how many different keys.
    sizes : mapping of int to int
        For each k, how many rows are in groups of k.
    k : int
        The size of the smallest group.
    distinct : int or None
        The fewest sensitive values of a group.
    entropy : float or None
        The exponential of the least entropy of a group, from 1 on.
    homogeneous : int or None
        How many rows are in groups with one sensitive value only.
    largest_share : Fraction or None
        The largest share of one sensitive value in a group: how surely the best guess at it is right.
    closeness : Fraction or None
        The t of t-closeness where values are equally far apart.
    ordered_closeness : Fraction or None
        The t of t-closeness where values have an order; None where they have none.
    frequencies, starts : arrays of int
        The numbers of rows of the sensitive values of each group, the most common first, one group after the other,
        and where each group starts.

    Examples
    --------
    >>> found = measure_anonymity({"zip": [1, 1, 1, 2, 2], "pay": [3, 4, 5, 3, 3]}, key=["zip"], sensitive="pay")
    >>> found.k, found.distinct, found.closeness, found.ordered_closeness
    (2, 1, Fraction(2, 5), Fraction(3, 10))
    >>> found.recursive_ratio(1), found.is_recursive(2, 2)
    (Fraction(1, 1), False)
    """

    key: tuple[str, ...]
    sensitive: str | None
    rows: int
    groups: int
    sizes: Mapping[int, int]
    distinct: int | None
    entropy: float | None
    homogeneous: int | None
    largest_share: Fraction | None
    closeness: Fraction | None
    ordered_closeness: Fraction | None
    frequencies: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]

    @property
    def k(self) -> int:
        """The size of the smallest group."""
        return min(self.sizes)

    def recursive_ratio(self, l: int) -> Fraction | float:  # noqa: E741 - the field's name of it
        """Return the largest r1/(r_l + ... + r_m) of a group: the table is (c, l)-diverse for every c above it.

        Parameters
        ----------
        l : int
            From which sensitive value of a group on the rows are counted, the most common being the first; at least 1.

        Returns
        -------
        Fraction or float
            The ratio, exactly; infinity where a group has fewer than `l` values.

        Raises
        ------
        ParameterError
            If `l` is below 1, or no sensitive column was named.
        """
        place = to_integer("l", l, least=1)
        if self.sensitive is None:
            raise ParameterError("l", "no sensitive column was measured", fix='sensitive="diagnosis", say')
        values = np.diff(self.starts, append=len(self.frequencies))
        if int(values.min()) < place:
            return math.inf
        sums = np.concatenate([[0], np.cumsum(self.frequencies)])
        tails = sums[self.starts + values] - sums[self.starts + place - 1]
        return _largest_ratio(self.frequencies[self.starts], tails)

    def is_recursive(self, c: Number, l: int) -> bool:  # noqa: E741 - as above
        """Return whether the table is recursive (c, l)-diverse.

        Parameters
        ----------
        c : number
            How many times the rest the most common value may have, not reached; above 0.
        l : int
            From which sensitive value of a group on the rest is counted, at least 1.

        Returns
        -------
        bool
            Whether r1 < c (r_l + ... + r_m) in every group.
        """
        return self.recursive_ratio(l) < to_rational("c", c)

    @property
    def verdict(self) -> str:
        """One of "rows are unique", "values are told" and "no row is alone", in this order of severity."""
        if self.k == 1:
            return "rows are unique"
        return "values are told" if self.homogeneous else "no row is alone"

    def _measures(self) -> list[tuple[str, str, str]]:
        """Each measure: its name, its value, and what it says."""
        found = [("k-anonymity", f"k = {self.k:,}", "rows of the smallest group")]
        if self.sensitive is None:
            return found
        assert self.largest_share is not None
        assert self.closeness is not None
        ratio = self.recursive_ratio(2)
        found += [
            ("distinct l-diversity", f"l = {self.distinct:,}", "fewest values of a group"),
            ("entropy l-diversity", f"l = {self.entropy:.4g}", "exp of the least entropy of a group"),
            (
                "recursive (c, 2)-diversity",
                "for no c" if ratio == math.inf else f"c > {float(ratio):.4g}",
                "most common value against the rest",
            ),
            ("t-closeness, equal distance", f"t = {float(self.closeness):.4g}", "farthest group from the whole table"),
        ]
        if self.ordered_closeness is not None:
            far = f"t = {float(self.ordered_closeness):.4g}"
            found.append(("t-closeness, ordered distance", far, "farthest group from the whole table"))
        found.append(("largest share of a value", f"{float(self.largest_share):.1%}", "best guess in the worst group"))
        return found

    def _summary(self) -> str:
        of = "" if self.sensitive is None else f"; {self.sensitive} is sensitive"
        return f"{self.rows:,} rows in {self.groups:,} groups by {', '.join(self.key)}{of}"

    def _warning(self) -> str:
        if self.homogeneous:
            told = f"{self.homogeneous:,} rows are in groups with one value of {self.sensitive}: their key tells it."
        elif self.k == 1:
            told = f"{self.sizes[1]:,} rows are alone with their key."
        else:
            told = "No row is alone."
        return f"{told} None of these measures bounds what this release tells together with others."

    def __str__(self) -> str:
        table = self._measures()
        width, middle = max(len(row[0]) for row in table), max(len(row[1]) for row in table)
        lines = [f"  {name:<{width}}  {value:<{middle}}  {says}" for name, value, says in table]
        return "\n".join([self._summary(), *lines, self._warning()])

    def __repr__(self) -> str:
        return f"<AnonymityResult: {self._summary()}; k = {self.k:,}; {self.verdict}>"

    def _repr_html_(self) -> str:
        from tacit.notebook_html import render_list, render_paragraph, render_table

        table = render_table(["measure", "value", "what it is"], self._measures(), [True] * 3)
        return render_paragraph(self._summary(), strong=True) + table + render_list([self._warning()])

    def to_dict(self) -> dict[str, object]:
        """Return the measures as plain values, for JSON.

        Returns
        -------
        dict
            The verdict, the counts, and each measure that was taken; None for those that were not.
        """

        def plain(value: Fraction | float | None) -> float | str | None:
            return None if value is None else float(value) if math.isfinite(value) else "infinite"

        return {
            "attack": "anonymity",
            "verdict": self.verdict,
            "key": list(self.key),
            "sensitive": self.sensitive,
            "rows": self.rows,
            "groups": self.groups,
            "k": self.k,
            "distinct_l": self.distinct,
            "entropy_l": self.entropy,
            "recursive_c_of_2": None if self.sensitive is None else plain(self.recursive_ratio(2)),
            "t_equal": plain(self.closeness),
            "t_ordered": plain(self.ordered_closeness),
            "homogeneous": self.homogeneous,
            "largest_share": plain(self.largest_share),
            "sizes": {str(size): rows for size, rows in self.sizes.items()},
        }

    def plot(self, path: str | os.PathLike[str] | None = None) -> None:
        """Plot each group by its size and, where a column is sensitive, by the share of its most common value.

        Parameters
        ----------
        path : path, optional
            The picture to write; its ending chooses the format (.png, .svg, .pdf). Without it matplotlib shows the
            figure.
        """
        from tacit.pictures import COLORS, open_figure

        if self.sensitive is None:
            with open_figure(path, "Rows by the size of their group", "rows of the group", "rows") as axes:
                axes.bar(list(self.sizes), list(self.sizes.values()))
            return
        sizes = np.add.reduceat(self.frequencies, self.starts)
        first = self.frequencies[self.starts]
        title = f"The most common {self.sensitive} of each group"
        with open_figure(path, title, "rows of the group", "share of the most common value") as axes:
            told = first == sizes
            for mask, label, color in ((~told, "groups", COLORS[0]), (told, "one value only: told", COLORS[1])):
                if mask.any():
                    points, times = np.unique(np.column_stack([sizes[mask], first[mask]]), axis=0, return_counts=True)
                    area = 14 + 10 * np.sqrt(times)
                    axes.scatter(points[:, 0], points[:, 1] / points[:, 0], s=area, color=color, label=label, alpha=0.7)
            axes.axvline(self.k, color=COLORS[5], linestyle="--", label=f"k = {self.k}")
            axes.set_ylim(0, 1.05)
            if sizes.max() > 20 * self.k:
                axes.set_xscale("log")


def measure_anonymity(
    released: Tabular, key: Sequence[str], sensitive: str | None = None, *, order: Sequence[Any] | None = None
) -> AnonymityResult:
    """Measure k-anonymity, l-diversity and t-closeness of a released table.

    Shares and distances are exact: they are made of integers. A million rows take seconds.

    Parameters
    ----------
    released : table
        The rows as they are released: an Arrow table, a data frame, a list of dicts or a dict of lists.
    key : sequence of str
        The columns that an attacker is assumed to know (the quasi-identifier). A NULL is a value like any other.
    sensitive : str, optional
        The column that is to be hidden, not one of the key. A NULL is a value like any other.
    order : sequence, optional
        The sensitive values from the first to the last, for the ordered distance, where their own order does not do.
        By default numbers, dates and times have an order, and text has none.

    Returns
    -------
    AnonymityResult
        The measures.

    Raises
    ------
    ParameterError
        If the table has no rows or lacks a column, the sensitive column is in the key, or `order` lacks a value.

    See Also
    --------
    link_tables : Joins a release to a public table with names.
    intersect_releases : What several releases tell together about the same people.

    Examples
    --------
    >>> ages = {"age": ["20-39"] * 3 + ["40-59"] * 3, "pain": ["low", "high", "low", "mid", "high", "high"]}
    >>> found = measure_anonymity(ages, key=["age"], sensitive="pain", order=["low", "mid", "high"])
    >>> found.k, found.distinct, found.closeness, found.ordered_closeness
    (3, 2, Fraction(1, 3), Fraction(1, 4))
    """
    table = to_table("released", released)
    names = [key] if isinstance(key, str) else list(key)
    if not names:
        raise ParameterError("key", "does not name a column", fix='key=["postcode", "born", "sex"], say')
    for name in [*names, *([] if sensitive is None else [sensitive])]:
        if table.column_names.count(name) != 1:
            where = "sensitive" if name == sensitive else "key"
            raise ParameterError(where, f"the table has no column {name!r}", fix=list_columns(table))
    if sensitive in names:
        raise ParameterError("sensitive", f"{sensitive!r} is in the key", fix="leave it out of the key")
    if order is not None and sensitive is None:
        raise ParameterError("order", "there is no sensitive column to order", fix='sensitive="diagnosis", say')
    codes = encode_keys([table], names, null_is_value=True, parameter="key")
    sizes = np.bincount(codes)
    counted = np.bincount(sizes)
    shared: dict[str, Any] = {
        "key": tuple(names),
        "sensitive": sensitive,
        "rows": len(table),
        "groups": len(sizes),
        "sizes": MappingProxyType({int(k): int(k * counted[k]) for k in np.flatnonzero(counted)}),
    }
    if sensitive is None:
        nothing = np.zeros(0, dtype=np.int64)
        measures = ("distinct", "entropy", "homogeneous", "largest_share", "closeness", "ordered_closeness")
        unmeasured: dict[str, Any] = dict.fromkeys(measures)
        return AnonymityResult(**shared, **unmeasured, frequencies=nothing, starts=nothing)
    values, kinds = encode_column(sensitive, [table[sensitive]], "sensitive")
    cells, times = np.unique(codes * (kinds + 1) + values + 1, return_counts=True)
    group, value = np.divmod(cells, kinds + 1)
    by_size = np.lexsort((-times, group))
    frequencies, starts = times[by_size].astype(np.int64), np.flatnonzero(np.diff(group, prepend=-1))
    firsts, several = frequencies[starts], np.diff(starts, append=len(cells))
    logs = np.add.reduceat(frequencies * np.log(frequencies), starts)
    ranks = _rank_values(table[sensitive], values, kinds, order)
    return AnonymityResult(
        **shared,
        distinct=int(several.min()),
        entropy=math.exp(max(0.0, float((np.log(sizes) - logs / sizes).min()))),
        homogeneous=int(sizes[several == 1].sum()),
        largest_share=_largest_ratio(firsts, sizes),
        closeness=_closeness(group, value, times, sizes, starts),
        ordered_closeness=None if ranks is None else _ordered_closeness(group, *ranks, value, times, sizes),
        frequencies=frequencies,
        starts=starts,
    )


def _largest_ratio(over: Codes, under: Codes) -> Fraction:
    """The largest over[i]/under[i], exactly."""
    return max(Fraction(a, b) for a, b in set(zip(over.tolist(), under.tolist(), strict=True)))


def _closeness(group: Codes, value: Codes, times: Codes, sizes: Codes, starts: Codes) -> Fraction:
    """The largest half L1 distance of a group from the table: cells that a group lacks add what the table has there."""
    rows = int(sizes.sum())
    kind = np.int64 if 2 * rows * int(sizes.max()) < _FITS else object
    whole = np.bincount(value, weights=times).astype(np.int64)[value].astype(kind)
    size = sizes.astype(kind)
    present = np.add.reduceat(np.abs(times.astype(kind) * rows - whole * size[group]), starts)
    absent = (rows - np.add.reduceat(whole, starts)) * size
    return _largest_ratio(present + absent, 2 * rows * size)


def _ordered_closeness(group: Codes, ranks: Codes, domain: int, value: Codes, times: Codes, sizes: Codes) -> Fraction:
    """The largest distance of a group from the table where values are ordered: sum of |cdf difference| over d - 1.

    Between two values of a group its cdf is a constant a, and that of the table grows: the places where it is below a
    come first. So each gap is two differences of prefix sums.
    """
    if domain == 1:
        return Fraction(0)
    rows = int(sizes.sum())
    kind = np.int64 if rows * int(sizes.max()) * domain < _FITS else object
    rank = ranks[value]
    in_order = np.lexsort((rank, group))
    group, rank, times = group[in_order], rank[in_order], times[in_order]
    totals = np.bincount(rank, weights=times, minlength=domain).astype(np.int64)
    below = np.cumsum(totals)  # of the table: rows at or below each place
    prefix = np.concatenate([[0], np.cumsum(below.astype(kind))]).astype(kind)
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    running = np.cumsum(times)
    own = running - np.repeat((running - times)[starts], np.diff(starts, append=len(group)))  # the group's, likewise
    end = np.append(rank[1:], domain)
    last = np.append(starts[1:] - 1, len(group) - 1)
    end[last] = domain
    # before a group's first value its cdf is 0
    begin = np.concatenate([np.zeros(len(starts), dtype=np.int64), rank])
    stop = np.concatenate([rank[starts], end])
    owner = np.concatenate([np.arange(len(starts)), group])
    level = np.concatenate([np.zeros(len(starts), dtype=np.int64), own]).astype(kind) * rows
    size = sizes.astype(kind)[owner]
    # the first place where below/rows is not less than own/size
    crossing = np.searchsorted(below, np.asarray(-(-level // size), dtype=np.int64))
    middle = np.clip(crossing, begin, stop)
    work = level * (middle - begin) - size * (prefix[middle] - prefix[begin])
    work = work + size * (prefix[stop] - prefix[middle]) - level * (stop - middle)
    total = np.zeros(len(starts), dtype=kind)
    np.add.at(total, owner, work)
    return _largest_ratio(total, rows * sizes.astype(kind)) / (domain - 1)


def _rank_values(
    column: pa.ChunkedArray, codes: Codes, kinds: int, order: Sequence[Any] | None
) -> tuple[Codes, int] | None:
    """The place of each code (shifted by one, 0 for NULL) in the order of values, and how many places there are."""
    _, where = np.unique(codes, return_index=True)
    found = [(int(codes[place]) + 1, column[int(place)].as_py()) for place in where]
    ranks = np.zeros(kinds + 1, dtype=np.int64)
    if order is not None:
        try:
            places = {value: place for place, value in enumerate(order)}
        except TypeError as problem:
            fix = 'order=["low", "mid", "high"], say'
            raise ParameterError("order", "is no list of values", fix=fix) from problem
        if len(places) != len(order):
            raise ParameterError("order", "has a value twice", fix="name each value once")
        for code, value in found:
            if value not in places:
                fix = "name every value, from the first to the last"
                raise ParameterError("order", f"lacks the value {value!r:.60}", fix=fix)
            ranks[code] = places[value]
        return ranks, len(places)
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    has_order = pa.types.is_primitive(kind) or pa.types.is_decimal(kind)
    if not has_order or found[0][0] == 0:  # a NULL has no place
        return None
    in_order = pc.sort_indices(pa.array([value for _, value in found], type=kind)).to_pylist()
    for rank, index in enumerate(in_order):
        ranks[found[index][0]] = rank
    return ranks, len(found)
