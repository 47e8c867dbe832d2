"""SmartNoise's side: absolute errors of the same questions at the same epsilon. Runs in its own environment."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import pandas
from questions import AGES, EDUCATION, EPSILON, GAINS, GROUPS_PER_PERSON, HOURS, QUESTIONS, ROWS_PER_PERSON, UNITS

warnings.simplefilter("ignore")
from snsql import Privacy, from_df  # noqa: E402 - it warns on import


def metadata(unit: str) -> dict[str, Any]:
    """The same bounds. A person's rows are capped in all, not in each group."""
    table: dict[str, Any] = {
        "censor_dims": False,
        "clamp_counts": False,
        "clamp_columns": True,
        "age": {"type": "int", "lower": AGES[0], "upper": AGES[1]},
        "hours": {"type": "int", "lower": HOURS[0], "upper": HOURS[1]},
        "education": {"type": "string"},
        "sex": {"type": "string"},
        "capital_gain": {"type": "int", "lower": GAINS[0], "upper": GAINS[1]},
    }
    if unit == "row":
        table["row_privacy"] = True
    else:
        table["person"] = {"type": "int", "private_id": True}
        table["max_ids"] = GROUPS_PER_PERSON * ROWS_PER_PERSON
    return {"": {"": {"people": table}}}


def main() -> None:
    """The error of each try, by question, unit and column, as JSON."""
    folder, tries = Path(sys.argv[1]), int(sys.argv[2])
    truths = json.loads((folder / "truths.json").read_text())
    frame = pandas.read_parquet(folder / "people.parquet")
    found: dict[str, Any] = {}
    for unit in UNITS:
        for question in QUESTIONS:
            sql = question.sql.format(fresh=0)
            whole = from_df(frame, privacy=Privacy(epsilon=1.0, delta=1e-9), metadata=metadata(unit))
            cost = whole.get_privacy_cost(sql)[0]  # its epsilon is for each column that it measures
            reader = from_df(frame, privacy=Privacy(epsilon=EPSILON / cost, delta=1e-9), metadata=metadata(unit))
            errors: dict[str, list[float]] = {column: [] for column in question.columns}
            for _ in range(tries):
                head, *rows = reader.execute(sql)
                if question.name == "groups":
                    rows.sort(key=lambda row: EDUCATION.index(row[0]))
                for column in question.columns:
                    at = head.index(column)
                    values = [float(row[at]) for row in rows]
                    pairs = zip(values, truths[question.name][column], strict=True)
                    errors[column].append(sum(abs(value - true) for value, true in pairs) / len(values))
            for column, some in errors.items():
                found[f"{question.name} {unit} {column}"] = some
    print(json.dumps(found))


if __name__ == "__main__":
    main()
