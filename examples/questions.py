"""What can be asked
=================

Questions over two tables about the same people and one about nobody.
"""

import datetime
import random
import tempfile
from pathlib import Path

import pyarrow as pa

import tacit

rng = random.Random(7)
members = pa.table({"member": range(4000), "age": [rng.randint(18, 90) for _ in range(4000)]})
loans = pa.table({
    "who": [rng.randrange(4000) for _ in range(20000)],
    "branch": [rng.choice(["north", "south", "harbor"]) for _ in range(20000)],
    "title": [f"book {int(rng.paretovariate(0.7))}" for _ in range(20000)],
    "day": [datetime.date(2025, 1, 1) + datetime.timedelta(rng.randrange(365)) for _ in range(20000)],
})  # fmt: skip
branches = pa.table({"branch": ["north", "south", "harbor"], "shelves": [120, 80, 40]})

folder = Path(tempfile.mkdtemp())
caps = {"people": "members", "max_groups": 4, "max_rows_per_group": 5}
policy = {
    "ledger": {"store": folder / "library.ledger"},
    "privacy": {"epsilon": 10.0, "delta": 1e-6},
    "tables": {
        "members": {"unit": "member", **caps, "columns": {"age": {"type": "int", "lower": 0, "upper": 110}}},
        "loans": {
            "unit": "who",
            **caps,
            "columns": {
                "branch": {"type": "text", "values": ["north", "south", "harbor"]},
                "title": {"type": "text"},  # which titles occur is private
                "day": {"type": "date", "lower": "2025-01-01", "upper": "2025-12-31"},
            },
        },
        "branches": {
            "public": True,
            "columns": {
                "branch": {"type": "text", "unique": True},
                "shelves": {"type": "int", "lower": 0, "upper": 200},
            },
        },
    },
    "analysts": {"ada": {"epsilon": 10.0, "delta": 1e-6}},
}
QUESTIONS = {
    "titles that enough members have read": "SELECT title, COUNT(DISTINCT who) AS readers FROM loans GROUP BY title",
    "by month": "SELECT MONTH(day) AS month, COUNT(*) AS loans FROM loans GROUP BY MONTH(day)",
    "loans of each member": """
        SELECT AVG(LEAST(n, 20)) AS loans, MEDIAN(LEAST(n, 20)) AS median
        FROM (SELECT who, COUNT(*) AS n FROM loans GROUP BY who)""",
    "with a public table": "SELECT COUNT(*) AS loans FROM loans JOIN branches USING (branch) WHERE shelves > 100",
    "of two tables about the same people": """
        SELECT AVG(age) AS age FROM loans JOIN members ON loans.who = members.member WHERE branch = 'harbor'""",
}

with tacit.open(policy, data={"members": members, "loans": loans, "branches": branches}) as curator:
    ada = curator.analyst("ada")
    for title, sql in QUESTIONS.items():
        print(f"{title}\n{ada.ask(sql, epsilon=1.0)}\n")
    print(f"within 100\n{ada.ask('SELECT COUNT(*) AS n FROM loans', within={'n': 100})}")
