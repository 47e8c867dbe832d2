"""A small survey to try questions on, in memory: 2,000 people, their region and their working hours.

>>> with open_survey() as curator:
...     print(curator.analyst("ada").schema)
survey: each row is protected
  hours   int    from 0 to 80
  region  text   keys north, south
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Any

from tacit.curator.curator import Curator
from tacit.curator.resources import open_engine, open_ledger
from tacit.policy.load import load
from tacit.sampling.bits import ReplayBits


def survey_policy(store: str | Path) -> dict[str, Any]:
    """Return the survey's policy, with its ledger at a path."""
    columns = {
        "hours": {"type": "int", "lower": 0, "upper": 80},
        "region": {"type": "text", "values": ["north", "south"]},
    }
    return {
        "privacy": {"epsilon": 3.0},
        "ledger": {"store": str(store)},
        "analysts": {"ada": {"epsilon": 1.0}},
        "tables": {"survey": {"unit": "row", "columns": columns}},
    }


def open_survey(seed: bytes = b"made up") -> Curator:
    """Open a curator of the survey, with one analyst, ada, and a ledger in a temporary folder.

    The people are made up, so its noise may be the same in every run: it protects nobody.
    """
    import pyarrow as pa

    people = pa.table({"hours": [38, 40, 12, 55, 41] * 400, "region": ["north", "south"] * 1000})
    folder = tempfile.mkdtemp(prefix="tacit-survey-")
    policy = load(survey_policy(Path(folder) / "survey.ledger"))
    engine = open_engine(policy, {"survey": people})
    curator = Curator(policy, engine, open_ledger(policy, engine), ReplayBits(seed))
    weakref.finalize(curator, shutil.rmtree, folder, ignore_errors=True)
    return curator
