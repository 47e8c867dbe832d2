"""Five alike, and told all the same
=================================

A table that is 5-anonymous, and three ways in which it tells a person's illness; then two tables, both 5-anonymous and
diverse, that tell it together. All people are made up.

Without a path the picture is shown, where there is a screen::

    python examples/anonymity.py
    python examples/anonymity.py docs/images/anonymity.svg
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pyarrow as pa

from tacit.attacks import intersect_releases, measure_anonymity

ILLNESSES = [
    "anemia",
    "arthritis",
    "asthma",
    "bronchitis",
    "burnout",
    "cataract",
    "diabetes",
    "eczema",
    "flu",
    "gastritis",
    "gout",
    "hepatitis",
    "HIV",
    "migraine",
    "psoriasis",
    "sciatica",
]
LEAST = 5


def in_fives(values: Any) -> list[str]:
    """Each value as the range of a group: from the lowest on, values join a group until it has five people."""
    ranges: dict[int, str] = {}
    group: list[int] = []
    several, counts = np.unique(values, return_counts=True)
    left = len(values)
    people = 0
    for value, count in zip(several.tolist(), counts.tolist(), strict=True):
        group.append(value)
        people, left = people + count, left - count
        if people >= LEAST and (left >= LEAST or left == 0):
            ranges |= dict.fromkeys(group, f"{group[0]}-{group[-1]}")
            group, people = [], 0
    return [ranges[value] for value in values.tolist()]


def show_single_releases() -> None:
    """Homogeneity, background knowledge and skewness: one release each, all of them 5-anonymous."""
    homogeneous = {
        "age": ["20-39"] * 5 + ["40-59"] * 5,
        "illness": ["HIV"] * 5 + ["flu", "gout", "flu", "asthma", "migraine"],
    }
    found = measure_anonymity(homogeneous, key=["age"], sensitive="illness")
    print(f"homogeneity: k = {found.k}, and the illness of {found.homogeneous} people is told by their age alone")

    background = {"age": ["20-39"] * 6, "illness": ["flu", "flu", "HIV", "HIV", "HIV", "HIV"]}
    found = measure_anonymity(background, key=["age"], sensitive="illness")
    left = {"age": ["20-39"] * 4, "illness": ["HIV"] * 4}
    after = measure_anonymity(left, key=["age"], sensitive="illness")
    print(
        f"background: k = {found.k}, l = {found.distinct}; whoever knows that Ada has no flu is left with "
        f"l = {after.distinct}"
    )

    skewed = {"age": ["20-39"] * 10 + ["40-59"] * 990, "hiv": [1] * 5 + [0] * 5 + [1] * 5 + [0] * 985}
    found = measure_anonymity(skewed, key=["age"], sensitive="hiv")
    print(
        f"skewness: k = {found.k}, l = {found.distinct}, and the risk of the young is 5/10 in place of "
        f"{sum(skewed['hiv'])}/1000: t = {float(found.closeness or 0):.2f}"
    )


def main(target: str | None = None) -> None:
    show_single_releases()

    draw = np.random.default_rng(11)
    people = 400
    months, income = draw.integers(18 * 12, 90 * 12, people), draw.integers(20_000, 200_000, people)
    illness = draw.choice(ILLNESSES, people)
    first = pa.table({"months": in_fives(months), "illness": illness})
    second = pa.table({"income": in_fives(income), "illness": illness})
    for table, key in ((first, "months"), (second, "income")):
        found = measure_anonymity(table, key=[key], sensitive="illness")
        print(f"released by {key}: k = {found.k}, l = {found.distinct}, {found.homogeneous} people told")
    known = pa.table({"months": first["months"], "income": second["income"]})
    both = intersect_releases([(first, ["months"]), (second, ["income"])], known, "illness", truth=illness.tolist())
    print(both)
    both.plot(target)


if __name__ == "__main__":
    main(*sys.argv[1:2])
