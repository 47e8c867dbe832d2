"""Linkage: a table without names, joined to a public one with names by what both know.

>>> hospital = [{"postcode": "4051", "born": "1961-03-07", "sex": "f", "diagnosis": "asthma"},
...             {"postcode": "4051", "born": "1975-11-30", "sex": "m", "diagnosis": "gout"}]
>>> voters = [{"name": "ben", "postcode": "4051", "born": "1975-11-30", "sex": "m"},
...           {"name": "ada", "postcode": "4051", "born": "1961-03-07", "sex": "f"}]
>>> found = link_tables(hospital, voters, on=["postcode", "born", "sex"])
>>> [(hospital[row]["diagnosis"], voters[person]["name"]) for row, person in found.pairs]
[('asthma', 'ada'), ('gout', 'ben')]
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from tacit.accounting.interval import clopper_pearson_interval
from tacit.arithmetic import to_integer
from tacit.attacks.tabular import NONE, Tabular, encode_keys, list_columns, to_table
from tacit.errors import ParameterError


@dataclass(frozen=True, eq=False)
class LinkageResult:
    """Links between the rows of a released table and the people of a public one.

    A row is *re-identified* if its key is on no other row of its table and on just one row of the public one.

    **Theorem.** If everyone in the table is in the public one, once in each, and both have their keys right, then each
    re-identified row is the person it is linked to: that person's row has that key, and only one row has. Where the
    public table has gaps or errors, a link may be wrong; `right` says how many are true where the truth was given.

    A NULL matches nothing, not even another NULL.

    Attributes
    ----------
    on : tuple of str
        The columns of the key, which both tables have.
    rows, people : int
        How many rows the released table has, and how many the public one.
    pairs : array of int
        A row for each link: the row of the released table, and the row of the public one.
    ambiguous : int
        How many rows have a key that matches, but not one to one.
    unmatched : int
        How many rows have a key that no one has in public.
    missing : int
        How many rows have a NULL in their key.
    sizes : mapping of int to int
        For each k, how many rows share their key with k - 1 others.
    right : int or None
        How many links are true, where the truth was given.

    Examples
    --------
    >>> found = link_tables({"born": [1961, 1975, 1975]}, {"born": [1961, 1975]}, on=["born"])
    >>> found.link_count, found.ambiguous, found.anonymity
    (1, 2, 1)
    """

    on: tuple[str, ...]
    rows: int
    people: int
    pairs: npt.NDArray[np.int64]  # (row of the table, row of the public one), in the table's order
    ambiguous: int  # rows whose key matches, but not one to one
    unmatched: int  # rows whose key no one has in public
    missing: int  # rows with a NULL in their key
    sizes: Mapping[int, int]  # k -> how many rows share their key with k - 1 others
    right: int | None = None

    @property
    def link_count(self) -> int:
        """How many rows are re-identified."""
        return len(self.pairs)

    @property
    def share(self) -> float:
        """The share of the rows that are re-identified."""
        return self.link_count / self.rows

    @property
    def interval(self) -> tuple[float, float]:
        """Clopper and Pearson's 99 % interval for the probability that a row of such a table is re-identified."""
        return clopper_pearson_interval(self.link_count, self.rows)

    @property
    def anonymity(self) -> int:
        """The k of k-anonymity: the fewest rows that share a key; 0 where no row has one."""
        return min(self.sizes, default=0)

    @property
    def unique(self) -> float:
        """The share of the rows whose key is on no other row."""
        return self.sizes.get(1, 0) / self.rows

    @property
    def verdict(self) -> str:
        """One of "re-identified" and "nothing linked"."""
        return "re-identified" if self.link_count else "nothing linked"

    def __str__(self) -> str:
        low, high = self.interval
        true = "" if self.right is None else f", {self.right:,} of them rightly"
        return (
            f"{self.link_count:,} of {self.rows:,} rows re-identified by {', '.join(self.on)}{true}: {self.share:.1%} "
            f"({low:.1%} to {high:.1%} at 99 % confidence); {self.ambiguous:,} ambiguous, {self.unmatched:,} unmatched,"
            f" {self.missing:,} with a NULL. {self.unique:.1%} of the rows are alone with their key: the table is "
            f"{self.anonymity}-anonymous"
        )

    def to_dict(self) -> dict[str, object]:
        """Return the counts as plain values, for JSON, without the pairs.

        Returns
        -------
        dict
            The verdict, the counts, and the share of re-identified rows with its interval.
        """
        return {
            "attack": "linkage",
            "verdict": self.verdict,
            "on": list(self.on),
            "rows": self.rows,
            "people": self.people,
            "identified": self.link_count,
            "share": self.share,
            "interval": list(self.interval),
            "ambiguous": self.ambiguous,
            "unmatched": self.unmatched,
            "missing": self.missing,
            "anonymity": self.anonymity,
            "sizes": {str(size): rows for size, rows in self.sizes.items()},
            "right": self.right,
        }

    def plot(self, path: str | os.PathLike[str] | None = None, most: int = 12) -> None:
        """Plot how many rows share their key with how many others.

        Parameters
        ----------
        path : path, optional
            The picture to write; its ending chooses the format (.png, .svg, .pdf). Without it matplotlib shows the
            figure.
        most : int
            The group size from which on all groups are one bar, 2 or more.
        """
        from tacit.pictures import open_figure

        shown = {size: rows for size, rows in self.sizes.items() if size < most}
        more = sum(self.sizes.values()) - sum(shown.values())
        with open_figure(path, "Rows by how many share their key", "rows with the same key", "rows") as axes:
            axes.bar(list(shown), list(shown.values()))
            if more:
                axes.bar([most], [more])
            ticks = [*range(1, most), most] if more else list(range(1, max(shown, default=1) + 1))
            axes.set_xticks(ticks, [f"{tick}+" if more and tick == most else str(tick) for tick in ticks])


def link_tables(
    released: Tabular, public: Tabular, on: Sequence[str], *, truth: Sequence[int] | None = None
) -> LinkageResult:
    """Join a table without names to a public one by columns that both have.

    Time is that of a few sorts: a million rows take seconds.

    Parameters
    ----------
    released, public : table
        The table without names, and the one with names: Arrow tables, data frames, lists of dicts or dicts of lists.
    on : sequence of str
        The columns of the key. Both tables have them, with values of the same type.
    truth : sequence of int, optional
        For each row of the released table the row of its person in the public one, negative where there is none; used
        only to count how many links are right.

    Returns
    -------
    LinkageResult
        The links, and how many rows are ambiguous, unmatched or without a key.

    Raises
    ------
    ParameterError
        If a table has no rows or lacks a column, or the types of a column differ.

    Examples
    --------
    >>> hospital = [{"born": 1961, "sex": "f", "diagnosis": "asthma"}, {"born": 1975, "sex": "m", "diagnosis": "gout"}]
    >>> voters = [{"name": "ben", "born": 1975, "sex": "m"}, {"name": "ada", "born": 1961, "sex": "f"}]
    >>> link_tables(hospital, voters, on=["born", "sex"]).pairs.tolist()
    [[0, 1], [1, 0]]
    """
    ours, theirs = to_table("released", released), to_table("public", public)
    names = [on] if isinstance(on, str) else list(on)
    if not names:
        raise ParameterError("on", "does not name a column", fix='on=["postcode", "born", "sex"], say')
    for table, what in ((ours, "released"), (theirs, "public")):
        for name in names:
            if table.column_names.count(name) != 1:
                raise ParameterError("on", f"the {what} table has no column {name!r}", fix=list_columns(table))
    keys = encode_keys([ours, theirs], names)
    mine, known = keys[: len(ours)], keys[len(ours) :]
    kinds = int(keys.max(initial=NONE)) + 1
    times, persons = (np.bincount(part[part != NONE], minlength=kinds) for part in (mine, known))
    present = mine != NONE
    here = np.flatnonzero(present)
    size, matches = times[mine[here]], persons[mine[here]]
    single = here[(size == 1) & (matches == 1)]
    place = np.full(kinds, -1, dtype=np.int64)
    place[known[known != NONE]] = np.flatnonzero(known != NONE)
    pairs = np.column_stack([single, place[mine[single]]])
    counted = np.bincount(size)
    return LinkageResult(
        on=tuple(names),
        rows=len(ours),
        people=len(theirs),
        pairs=pairs,
        ambiguous=int(np.count_nonzero(matches)) - len(single),
        unmatched=int(np.count_nonzero(matches == 0)),
        missing=len(ours) - len(here),
        sizes=MappingProxyType({int(k): int(counted[k]) for k in np.flatnonzero(counted)}),
        right=None if truth is None else _right(pairs, truth, len(ours)),
    )


def expected_uniqueness(people: int, keys: int) -> float:
    """Return the expected share of people who are alone with their key, if keys are uniform: (1 - 1/keys)^(people - 1).

    Proof: each of the others misses a person's key with probability 1 - 1/keys. Uneven keys make it smaller.

    Parameters
    ----------
    people : int
        How many people there are, 1 or more.
    keys : int
        How many different keys are possible, 1 or more.

    Returns
    -------
    float
        The expected share, in [0, 1].

    Examples
    --------
    >>> round(expected_uniqueness(30_000, 365 * 80 * 2), 3)  # a town of one postcode: birth date and sex do for 60 %
    0.598
    """
    return float((1 - 1 / to_integer("keys", keys, least=1)) ** (to_integer("people", people, least=1) - 1))


def _right(pairs: npt.NDArray[np.int64], truth: Sequence[int], rows: int) -> int:
    persons = np.asarray(truth)
    if persons.shape != (rows,) or persons.dtype.kind not in "iu":
        raise ParameterError("truth", f"needs {rows:,} row numbers", fix="give each row its person's row, or -1")
    return int(np.count_nonzero(persons[pairs[:, 0]] == pairs[:, 1]))
