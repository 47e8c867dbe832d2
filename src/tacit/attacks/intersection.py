"""Intersection: several releases, each k-anonymous, about the same people.

>>> spring = [{"age": "20-39", "illness": ill} for ill in ("gout", "flu")]
>>> autumn = [{"born": "1990-99", "illness": ill} for ill in ("gout", "asthma")]
>>> ada = [{"age": "20-39", "born": "1990-99"}]
>>> intersect_releases([(spring, ["age"]), (autumn, ["born"])], ada, sensitive="illness").values
('gout',)
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.accounting.interval import clopper_pearson_interval
from tacit.attacks.tabular import Tabular, encode_column, encode_keys, list_columns, to_table
from tacit.errors import ParameterError


@dataclass(frozen=True, eq=False)
class IntersectionResult:
    """What several releases leave possible for each of the people that an attacker knows.

    In each release the *candidates* of a person are the sensitive values on rows with the person's key.

    **Theorem.** If a person's row is in every release, with the right key and with the same sensitive value, that value
    is a candidate in all of them. So where the candidates of all releases have one value in common, it is the person's.
    (Ganta, Kasiviswanathan and Smith 2008 call it the intersection attack.) Where they have none in common, the person
    is not in all of them, or the value has changed.

    Attributes
    ----------
    sensitive : str
        The column that was to be hidden.
    keys : tuple of tuples of str
        The key of each release.
    alone : array of int
        A row for each person and a column for each release: how many candidates that release leaves by itself; 0 where
        nobody in it has the person's key.
    together : array of int
        How many candidates all releases leave together.
    values : tuple
        For each person the value that is left, None where there is not just one.
    right : int or None
        How many of these are true, where the truth was given.

    Examples
    --------
    >>> found = intersect_releases([({"a": [1, 1], "s": "xy"}, ["a"]), ({"b": [1, 1], "s": "yz"}, ["b"])],
    ...                            {"a": [1], "b": [1]}, sensitive="s")
    >>> found.alone.tolist(), found.together.tolist(), found.values
    ([[2, 2]], [1], ('y',))
    """

    sensitive: str
    keys: tuple[tuple[str, ...], ...]
    alone: npt.NDArray[np.int64]
    together: npt.NDArray[np.int64]
    values: tuple[Any, ...]
    right: int | None = None

    @property
    def people(self) -> int:
        """How many people were looked up."""
        return len(self.together)

    @property
    def told_alone(self) -> int:
        """How many people have one candidate in some release by itself."""
        return int(np.count_nonzero((self.alone == 1).any(axis=1)))

    @property
    def told(self) -> int:
        """How many people have one candidate in all releases together."""
        return int(np.count_nonzero(self.together == 1))

    @property
    def share(self) -> float:
        """The share of the people whose value is told."""
        return self.told / self.people

    @property
    def interval(self) -> tuple[float, float]:
        """Clopper and Pearson's 99 % interval for the probability that such a person's value is told."""
        return clopper_pearson_interval(self.told, self.people)

    @property
    def verdict(self) -> str:
        """One of "values are told" and "nothing is told"."""
        return "values are told" if self.told else "nothing is told"

    def __str__(self) -> str:
        low, high = self.interval
        true = "" if self.right is None else f", {self.right:,} of them rightly"
        return (
            f"{self.sensitive} of {self.told:,} of {self.people:,} people is told by {len(self.keys)} releases "
            f"together{true}: {self.share:.1%} ({low:.1%} to {high:.1%} at 99 % confidence); {self.told_alone:,} by "
            f"one release alone; {int(np.count_nonzero(self.together == 0)):,} have no value in common"
        )

    def __repr__(self) -> str:
        return f"<IntersectionResult: {self}>"

    def _repr_html_(self) -> str:
        from tacit.notebook_html import render_list, render_paragraph, render_table

        rows = [
            [", ".join(key), f"{int(np.count_nonzero(self.alone[:, place] == 1)):,}", f"{self._mean(place):.2f}"]
            for place, key in enumerate(self.keys)
        ]
        rows.append(["all releases together", f"{self.told:,}", f"{float(self.together.mean()):.2f}"])
        table = render_table(["key", "people with one candidate", "mean candidates"], rows)
        return render_paragraph(self.verdict, strong=True) + table + render_list([str(self)])

    def _mean(self, place: int) -> float:
        return float(self.alone[:, place].mean())

    def to_dict(self) -> dict[str, object]:
        """Return the counts as plain values, for JSON, without the people's values.

        Returns
        -------
        dict
            The verdict, the counts, and the share of people whose value is told with its interval.
        """
        return {
            "attack": "intersection",
            "verdict": self.verdict,
            "sensitive": self.sensitive,
            "keys": [list(key) for key in self.keys],
            "people": self.people,
            "told_alone": self.told_alone,
            "told": self.told,
            "share": self.share,
            "interval": list(self.interval),
            "right": self.right,
        }

    def plot(self, path: str | os.PathLike[str] | None = None) -> None:
        """Plot how many people have how many candidates, in each release and in all together.

        Parameters
        ----------
        path : path, optional
            The picture to write; its ending chooses the format (.png, .svg, .pdf). Without it matplotlib shows the
            figure.
        """
        from tacit.pictures import open_figure

        series = [(", ".join(key), self.alone[:, place]) for place, key in enumerate(self.keys)]
        series.append(("together", self.together))
        most = max(int(counts.max()) for _, counts in series)
        width = 0.8 / len(series)
        title = f"Values of {self.sensitive} that are possible for a person"
        with open_figure(path, title, "candidates", "people") as axes:
            for place, (label, counts) in enumerate(series):
                people = np.bincount(counts, minlength=most + 1)
                axes.bar(np.arange(most + 1) + (place - (len(series) - 1) / 2) * width, people, width, label=label)
            if most <= 20:
                axes.set_xticks(range(most + 1))


def intersect_releases(
    releases: Sequence[tuple[Tabular, Sequence[str]]],
    people: Tabular,
    sensitive: str,
    *,
    truth: Sequence[Any] | None = None,
) -> IntersectionResult:
    """Intersect what several releases say about the same people.

    Parameters
    ----------
    releases : sequence of pairs
        Each release, as a table, with the columns of its key.
    people : table
        Whom the attacker knows: a row each, with the key columns of all releases, generalized as each release does.
    sensitive : str
        The column that every release has and that is to be hidden.
    truth : sequence, optional
        The sensitive value of each person; used only to count how many are told rightly.

    Returns
    -------
    IntersectionResult
        How many candidates each release leaves alone, and all of them together.

    Raises
    ------
    ParameterError
        If there is no release, a table has no rows or lacks a column, or the types of a column differ.

    See Also
    --------
    measure_anonymity : What one release is by itself.

    Examples
    --------
    >>> one = {"age": ["20-39"] * 2, "illness": ["gout", "flu"]}
    >>> other = {"town": ["Bern"] * 2, "illness": ["flu", "asthma"]}
    >>> found = intersect_releases([(one, ["age"]), (other, ["town"])], {"age": ["20-39"], "town": ["Bern"]}, "illness")
    >>> found.told_alone, found.told, found.values
    (0, 1, ('flu',))
    """
    known = to_table("people", people)
    pairs = [(to_table("releases", table), [key] if isinstance(key, str) else list(key)) for table, key in releases]
    if not pairs or not all(key for _, key in pairs):
        fix = 'releases=[(table, ["age"]), (other, ["postcode"])], say'
        raise ParameterError("releases", "needs tables, each with the columns of its key", fix=fix)
    for table, key in pairs:
        for name in (*key, sensitive):
            if table.column_names.count(name) != 1:
                raise ParameterError("releases", f"a release has no column {name!r}", fix=list_columns(table))
        for name in key:
            if known.column_names.count(name) != 1:
                raise ParameterError("people", f"has no column {name!r}", fix=list_columns(known))
    if truth is not None and len(truth) != len(known):
        raise ParameterError("truth", f"needs {len(known):,} values", fix="give each person's value, in order")
    codes, _ = encode_column(sensitive, [table[sensitive] for table, _ in pairs], "sensitive")
    meanings: dict[int, Any] = {}
    candidates: list[list[frozenset[int]]] = []
    begin = 0
    for table, key in pairs:
        mine = codes[begin : begin + len(table)]
        begin += len(table)
        keys = encode_keys([table, known], key, null_is_value=True, parameter="people")
        there: dict[int, set[int]] = {}
        for group, value in set(zip(keys[: len(table)].tolist(), mine.tolist(), strict=True)):
            there.setdefault(group, set()).add(value)
        fixed = {group: frozenset(values) for group, values in there.items()}
        candidates.append([fixed.get(group, frozenset()) for group in keys[len(table) :].tolist()])
        for value, place in zip(*np.unique(mine, return_index=True), strict=True):
            meanings.setdefault(int(value), table[sensitive][int(place)].as_py())
    common = [frozenset.intersection(*each) for each in zip(*candidates, strict=True)]
    values = tuple(meanings[next(iter(left))] if len(left) == 1 else None for left in common)
    told = [len(left) == 1 for left in common]
    return IntersectionResult(
        sensitive=sensitive,
        keys=tuple(tuple(key) for _, key in pairs),
        alone=np.array([[len(left) for left in each] for each in candidates], dtype=np.int64).T,
        together=np.array([len(left) for left in common], dtype=np.int64),
        values=values,
        right=None
        if truth is None
        else sum(one and value == true for one, value, true in zip(told, values, truth, strict=True)),
    )
