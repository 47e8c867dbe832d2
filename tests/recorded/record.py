"""How the recorded ledgers were made: python tests/recorded/record.py FOLDER, with the release that is to be recorded.

Data, policy, ledger, key and witness of each policy, and what each question was answered. Later releases must answer
the same questions for free, byte for byte (test_recorded.py).
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

import tacit
from tacit import learn

POLICIES = {
    "clinic": """\
[data]
source = "clinic.parquet.d"
epoch = 3

[ledger]
store = "clinic.sqlite"
key = "clinic.key"
witness = "clinic.witness"

[privacy]
neighbors = "add-remove"
epsilon = 40.0
delta = 1e-3
delta_per_question = 1e-5

[tables.visits]
unit = "patient_id"
people = "patients"
max_groups = 3
max_rows_per_group = 2

[tables.visits.columns]
age = { type = "int", lower = 0, upper = 110 }
sex = { type = "text", values = ["F", "M", "X"] }
ward = { type = "text", values = ["Cardiology", "Emergency", "Surgery"], other = "elsewhere" }
visited = { type = "date", lower = 2025-01-01, upper = 2025-12-31 }
cost = { type = "float", lower = 0, upper = 2000, step = 0.01 }
nights = { type = "int", lower = 0, upper = 60, nullable = false }
insured = { type = "bool" }
diagnosis = { type = "text" }

[tables.people]
unit = "patient_id"
people = "patients"
max_groups = 1
max_rows_per_group = 1

[tables.people.columns]
smoker = { type = "bool" }

[tables.bills]
unit = { through = "visit_id", to = "visits.id" }
max_groups = 2
max_rows_per_group = 3

[tables.bills.columns]
amount = { type = "float", lower = 0, upper = 500, step = 0.5 }

[tables.wards]
public = true

[tables.wards.columns]
ward = { type = "text", unique = true }
floor = { type = "int", lower = 0, upper = 3 }

[analysts.ada]
epsilon = 30.0
delta = 9e-4

[analysts.ben]
epsilon = 5.0
delta = 1e-4
""",
    "survey": """\
[data]
source = "answers.csv"
epoch = 1

[ledger]
store = "survey.sqlite"
key = "survey.key"
witness = "survey.witness"

[privacy]
neighbors = "replace"
epsilon = 10.0
delta = 1e-6

[tables.answers]
unit = "row"

[tables.answers.columns]
hours = { type = "int", lower = 0, upper = 80 }
pay = { type = "float", lower = 0, upper = 9000, step = 1 }
region = { type = "text", values = ["north", "south"] }
job = { type = "text", values = ["cook", "clerk", "nurse", "pilot"] }

[analysts.ada]
epsilon = 8.0
delta = 1e-7
""",
}


def write_data(folder: Path) -> None:
    """Write small tables that are the same for everybody."""
    draw = random.Random(17)
    database = duckdb.connect()
    codes = ("C10 Pressure", "C20 Rhythm", "E01 Sprain", "S02 Appendix")
    visits = [
        (
            number,
            draw.randrange(400),
            draw.choice([None, *range(1, 100)]),
            draw.choice("FFMMX"),
            draw.choice(["Cardiology", "Emergency", "Surgery", "Attic"]),
            f"2025-{draw.randrange(1, 13):02}-{draw.randrange(1, 29):02}",
            draw.choice([None, round(draw.uniform(0, 2500), 2)]),
            draw.randrange(20),
            draw.choice([True, False, None]),
            draw.choice(codes) if draw.random() < 0.9 else f"X{draw.randrange(99):02} Rare",
        )
        for number in range(1200)
    ]
    database.execute(
        "CREATE TABLE visits (id BIGINT, patient_id BIGINT, age INTEGER, sex VARCHAR, ward VARCHAR, visited DATE,"
        " cost DOUBLE, nights INTEGER, insured BOOLEAN, diagnosis VARCHAR)"
    )
    database.executemany(f"INSERT INTO visits VALUES ({', '.join('?' * 10)})", visits)
    database.execute("CREATE TABLE people AS SELECT i AS patient_id, i % 3 = 0 AS smoker FROM range(400) r(i)")
    database.execute("CREATE TABLE bills AS SELECT i AS visit_id, (i * 7) % 600 / 2 AS amount FROM range(1200) r(i)")
    database.execute("CREATE TABLE wards (ward VARCHAR, floor INTEGER)")
    database.execute("INSERT INTO wards VALUES ('Cardiology', 1), ('Emergency', 0), ('Surgery', 2)")
    source = folder / "clinic.parquet.d"
    source.mkdir(parents=True)
    for table in ("visits", "people", "bills", "wards"):
        database.execute(f"COPY {table} TO '{source / table}.parquet' (FORMAT parquet)")
    answers = ["hours,pay,region,job"]
    answers += [
        f"{draw.randrange(80)},{draw.randrange(9000)},{draw.choice(['north', 'south'])},"
        f"{draw.choice(['cook', 'clerk', 'nurse', 'pilot'])}"
        for _ in range(600)
    ]
    (folder / "answers.csv").write_text("\n".join(answers) + "\n")


def weights_of(model: Any) -> list[str]:
    """Return the weights of a fitted linear model, to the last bit."""
    return [float(x).hex() for x in np.append(model.coef_, model.intercept_)]


def record(folder: Path) -> None:
    """Ask every question once, and write down what was answered."""
    asked = json.loads((Path(__file__).parent / "questions.json").read_text())
    write_data(folder)
    for name, text in POLICIES.items():
        (folder / f"{name}.toml").write_text(text)
        answers, fits = [], []
        with tacit.open(folder / f"{name}.toml") as curator:
            for question in asked["questions"][name]:
                answer = curator.analyst(question["who"]).ask(question["sql"], **question["how"])
                answers.append(answer.to_dict())
            for fit in asked["fits"] if name == "clinic" else []:
                estimator = getattr(learn, fit["estimator"])(**fit["parameters"])
                model = curator.analyst("ada").fit(estimator, fit["sql"], target=fit["target"], epsilon=fit["epsilon"])
                fits.append({"weights": weights_of(model), "receipt": model.receipt_.to_dict()})
        told = {"release": tacit.__version__, "answers": answers, "fits": fits}
        (folder / f"{name}.json").write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    record(Path(sys.argv[1]))
