"""What both sides are asked. Imports the standard library only: each side runs in its own environment."""

from __future__ import annotations

from dataclasses import dataclass

EPSILON = 0.5
ROWS = 32_000
AGES = (17, 90)
HOURS = (1, 99)
GAINS = (0, 99_999)
ROWS_PER_PERSON = 2  # in each group
GROUPS_PER_PERSON = 2
SEXES = ("Female", "Male")
EDUCATION = (
    "Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th", "HS-grad", "Some-college",
    "Assoc-voc", "Assoc-acdm", "Bachelors", "Masters", "Prof-school", "Doctorate",
)  # fmt: skip
UNITS = ("row", "person")


@dataclass(frozen=True)
class Question:
    """A question in SQL. `{fresh}` is a literal that no earlier call used; every row passes its condition.

    `vectors` is how many noisy vectors share epsilon: a mean is made of a sum and a count.
    """

    name: str
    title: str
    sql: str
    columns: tuple[str, ...]
    vectors: int


QUESTIONS = (
    Question(
        "count",
        "count of people of 40 or more",
        "SELECT COUNT(*) AS n FROM people WHERE capital_gain >= {fresh} AND age >= 40",
        ("n",),
        vectors=1,
    ),
    Question(
        "mean",
        "sum and mean of hours",
        "SELECT SUM(hours) AS total, AVG(hours) AS mean FROM people WHERE capital_gain >= {fresh}",
        ("total", "mean"),
        vectors=3,
    ),
    Question(
        "groups",
        "count by education, 16 keys",
        "SELECT education, COUNT(*) AS n FROM people WHERE capital_gain >= {fresh} GROUP BY education",
        ("n",),
        vectors=1,
    ),
)
