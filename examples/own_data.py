"""Ten lines on your own data
==========================

A table, a policy as a dict, and a private answer.
"""

import tempfile
from pathlib import Path

import pyarrow as pa

import tacit

survey = pa.table({"hours": [38, 40, 12, 55, 41] * 400, "region": ["north", "south"] * 1000})
folder = Path(tempfile.mkdtemp())
policy = {
    "ledger": {"store": folder / "survey.ledger"},
    "privacy": {"epsilon": 3.0},
    "tables": {
        "survey": {
            "unit": "row",  # each row is one person
            "columns": {
                "hours": {"type": "int", "lower": 0, "upper": 80},
                "region": {"type": "text", "values": ["north", "south"]},
            },
        }
    },
    "analysts": {"ada": {"epsilon": 1.0}},
}

with tacit.open(policy, data={"survey": survey}) as curator:
    ada = curator.analyst("ada")
    print(ada.ask("SELECT region, COUNT(*) AS people, AVG(hours) AS hours FROM survey GROUP BY region", epsilon=0.5))
