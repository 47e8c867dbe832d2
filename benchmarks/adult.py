"""The Adult census data (Becker and Kohavi 1996, UCI; CC BY 4.0), and what is public about it.

Rows come from OpenML by scikit-learn's loader, or from the file that TACIT_ADULT names. Bounds and categories are those
of the data's public description, written down here; none is read from the rows.
"""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass
from math import log1p
from pathlib import Path
from typing import Any

import numpy as np

NUMBERS = {
    "age": (17, 90),
    "education_num": (1, 16),
    "capital_gain": (0, 99_999),
    "capital_loss": (0, 4_356),
    "hours": (1, 99),
}
MONEY = ("capital_gain", "capital_loss")  # heavy-tailed, as money is: taken as log(1 + x)
CATEGORIES = {
    "employer": "Federal-gov Local-gov Private Self-emp-inc Self-emp-not-inc State-gov Without-pay",
    "education": "10th 11th 12th 1st-4th 5th-6th 7th-8th 9th Assoc-acdm Assoc-voc Bachelors Doctorate HS-grad Masters "
    "Preschool Prof-school Some-college",
    "marital": "Divorced Married-AF-spouse Married-civ-spouse Married-spouse-absent Never-married Separated Widowed",
    "occupation": "Adm-clerical Armed-Forces Craft-repair Exec-managerial Farming-fishing Handlers-cleaners "
    "Machine-op-inspct Other-service Priv-house-serv Prof-specialty Protective-serv Sales Tech-support "
    "Transport-moving",
    "relationship": "Husband Not-in-family Other-relative Own-child Unmarried Wife",
    "race": "Amer-Indian-Eskimo Asian-Pac-Islander Black Other White",
    "sex": "Female Male",
    "country": "Cambodia Canada China Columbia Cuba Dominican-Republic Ecuador El-Salvador England France Germany "
    "Greece Guatemala Haiti Holand-Netherlands Honduras Hong Hungary India Iran Ireland Italy Jamaica Japan Laos "
    "Mexico Nicaragua Outlying-US(Guam-USVI-etc) Peru Philippines Poland Portugal Puerto-Rico Scotland South Taiwan "
    "Thailand Trinadad&Tobago United-States Vietnam Yugoslavia",
}
LISTS = {name: tuple(text.split()) for name, text in CATEGORIES.items()}
INCOME = ("<=50K", ">50K")

# The names of the columns in the two places, as they are called here. `fnlwgt` is a weight of the census, no feature.
_NAMES = {
    "type_employer": "employer",
    "workclass": "employer",
    "education-num": "education_num",
    "marital-status": "marital",
    "capital-gain": "capital_gain",
    "capital-loss": "capital_loss",
    "hr_per_week": "hours",
    "hours-per-week": "hours",
    "native-country": "country",
    "class": "income",
}


@dataclass(frozen=True)
class Adult:
    """The columns as they are, and as numbers between 0 and 1: a column a number, a column a category."""

    columns: dict[str, list[Any]]
    features: Any
    labels: Any  # whether the income is above 50,000

    @property
    def rows(self) -> int:
        return len(self.labels)


def load() -> Adult:
    """The complete rows."""
    columns = _from_file(Path(os.environ["TACIT_ADULT"])) if os.environ.get("TACIT_ADULT") else _from_openml()
    numbers = [_scaled(name, columns[name]) for name in NUMBERS]
    marks = [np.array(columns[name]) == value for name, values in LISTS.items() for value in values]
    labels = np.array([value.startswith(">50K") for value in columns["income"]])
    return Adult(columns, np.column_stack([*numbers, *marks]).astype(np.float64), labels)


def names() -> list[str]:
    """The names of the features, in their order."""
    return [*NUMBERS, *(f"{name}={value}" for name, values in LISTS.items() for value in values)]


def split(rows: int, seed: int) -> tuple[Any, Any]:
    """The places of four fifths of the rows, and of the rest."""
    order = np.random.default_rng([2_026, seed]).permutation(rows)
    return order[: rows * 4 // 5], order[rows * 4 // 5 :]


def _scaled(name: str, values: list[Any]) -> Any:
    low, high = NUMBERS[name]
    found = np.clip(np.array(values, dtype=np.float64), low, high)
    if name in MONEY:
        return np.log1p(found - low) / log1p(high - low)
    return (found - low) / (high - low)


def _from_file(path: Path) -> dict[str, list[Any]]:
    with path.open(newline="", encoding="utf-8") as file:
        return _complete(list(csv.DictReader(file)))


def _from_openml() -> dict[str, list[Any]]:
    from sklearn.datasets import fetch_openml

    frame = fetch_openml("adult", version=2, as_frame=True).frame
    return _complete(frame.astype(object).where(frame.notna(), "?").to_dict("records"))


def _complete(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """The columns of the rows that have a value in each."""
    known = [{_NAMES.get(name, name): value for name, value in row.items()} for row in rows]
    wanted = [*NUMBERS, *LISTS, "income"]
    full = [row for row in known if all(str(row[name]).strip() not in {"?", ""} for name in wanted)]
    return {name: [float(row[name]) if name in NUMBERS else str(row[name]).strip() for row in full] for name in wanted}
