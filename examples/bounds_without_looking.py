"""Bounds without looking
======================

A profile of a data frame, and the lines of a policy that it proposes: the owner chooses bounds and caps from noisy
histograms, and pays for them once.
"""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

import tacit
from tacit.curator.propose_bounds import propose_lines, render_lines

rng = np.random.default_rng(1)
patients = 20_000
visits = pa.table(
    {
        "patient_id": rng.integers(0, patients, 4 * patients),
        "cost": rng.lognormal(6, 1, 4 * patients),
        "ward": rng.choice(["Cardiology", "Surgery", "Maternity"], 4 * patients),
    }
)
folder = Path(tempfile.mkdtemp())
policy = {
    "ledger": {"store": folder / "clinic.ledger"},
    "privacy": {"epsilon": 3.0, "delta": 1e-6},
    "tables": {
        "visits": {
            "unit": "patient_id",
            "max_rows": "auto",
            "columns": {"cost": {"type": "float"}, "ward": {"type": "text"}},  # neither bounds nor keys are known yet
        }
    },
    "analysts": {"ada": {"epsilon": 1.0}},
}

with tacit.open(policy, data={"visits": visits}) as curator:
    profile = curator.profile(epsilon=0.1)
    print(profile)
    print(render_lines(propose_lines(curator.policy, profile)))
