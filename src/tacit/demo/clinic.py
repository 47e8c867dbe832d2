"""A clinic that never was: 20,000 patients, 100,000 visits in 2025, six wards, and a policy to ask under.

Every row is drawn from a fixed seed: nobody is in it, and every build with one numpy holds the same table.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.durable_files import link_draft, make_file

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

SEED = 2025
PATIENTS = 20_000
VISITS = 100_000
DATABASE = "clinic.duckdb"
POLICY = "clinic.toml"

# For each ward: the median cost at age 40, the nights (a scale), and seven diagnoses, commonest first.
WARDS: dict[str, tuple[float, float, tuple[str, ...]]] = {
    "Cardiology": (900, 1.2, ("C10 High blood pressure", "C20 Irregular heartbeat", "C21 Chest pain on effort",
        "C30 Heart failure", "C31 Heart attack", "C40 Leaking valve", "C52 Inflamed heart muscle")),
    "Emergency": (380, 0.4, ("E01 Sprain or bruise", "E02 Cut or open wound", "E10 Abdominal pain",
        "E11 Fever of unknown cause", "E20 Broken wrist", "E31 Allergic reaction", "E44 Poisoning")),
    "Maternity": (1400, 1.6, ("M01 Routine check", "M10 Birth without complication", "M11 Birth by section",
        "M20 Diabetes in pregnancy", "M21 Early labor", "M32 Twins", "M33 Severe high blood pressure")),
    "Oncology": (2700, 1.9, ("O10 Bowel tumor", "O11 Lung tumor", "O12 Skin tumor", "O20 Lymphoma",
        "O31 Kidney tumor", "O32 Leukemia", "O58 Tumor of the thymus")),
    "Pediatrics": (210, 0.3, ("P01 Cold or cough", "P02 Ear infection", "P10 Vaccination", "P11 Asthma",
        "P20 Stomach flu", "P32 Slow growth", "P47 Whooping cough")),
    "Surgery": (1900, 2.1, ("S01 Inguinal hernia", "S02 Appendicitis", "S10 Gallstones", "S11 Torn ligament",
        "S20 Broken leg", "S31 Slipped disk", "S42 Twisted bowel")),
}  # fmt: skip
BEDS = (40, 24, 36, 52, 20, 64)  # of each ward
CARDIOLOGY, EMERGENCY, MATERNITY, ONCOLOGY, PEDIATRICS, SURGERY = range(len(WARDS))

POLICY_TEXT = """\
# The clinic: what analysts may ask, and how much of it.

[data]
engine = "duckdb"
source = "clinic.duckdb"
epoch = 1                      # raise it when the data has changed

[ledger]
store = "clinic.ledger"        # every charge and every answer

[privacy]
neighbors = "add-remove"       # with or without one patient
epsilon = 5.0                  # over all analysts together
delta = 1e-6                   # the chance that this fails; keys that are not declared need one

[tables.visits]
unit = "patient_id"            # all visits of a patient are protected together
max_groups = 2                 # groups of one answer that a patient may touch
max_rows_per_group = 12        # visits of a patient counted in each

[tables.visits.columns]        # what is not listed cannot be named
age       = { type = "int", lower = 0, upper = 110 }
sex       = { type = "text", values = ["F", "M", "X"] }
ward      = { type = "text", values = ["Cardiology", "Emergency", "Maternity", "Oncology", "Pediatrics", "Surgery"] }
visited   = { type = "date", lower = 2025-01-01, upper = 2025-12-31 }
cost      = { type = "float", lower = 0, upper = 20000, step = 0.01 }   # a costlier visit counts as 20000
nights    = { type = "int", lower = 0, upper = 60 }
insured   = { type = "bool" }
diagnosis = { type = "text" }  # no list of values: one is shown where enough patients have it

[tables.wards]
public = true                  # about nobody: may be joined to visits

[tables.wards.columns]
ward      = { type = "text", unique = true }
beds      = { type = "int", lower = 0, upper = 100, nullable = false }

[analysts.ada]
epsilon = 2.0
delta = 1e-7

[analysts.ben]
epsilon = 1.0
delta = 1e-7
"""


def build_clinic(folder: Path) -> Path:
    """Write the clinic's database and policy into the folder, keep what is already there, return the policy's path.

    Each file is made aside and linked into place, so an interrupted build leaves no half of a file. Of two builds at
    once, the second keeps what the first has made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    database, policy = folder / DATABASE, folder / POLICY
    with tempfile.TemporaryDirectory(dir=folder, prefix=".clinic-") as aside:
        if not database.exists():
            _write_database(Path(aside) / DATABASE)
            link_draft(Path(aside) / DATABASE, database)
    make_file(policy, POLICY_TEXT.encode())
    return policy


def _write_database(path: Path) -> None:
    """Write the tables to a new DuckDB file."""
    import duckdb
    import pyarrow as pa

    with duckdb.connect(str(path)) as connection:
        connection.register("drawn", _visits())
        connection.execute("CREATE TABLE visits AS SELECT * FROM drawn")
        connection.register("listed", pa.table({"ward": list(WARDS), "beds": pa.array(BEDS, pa.int32())}))
        connection.execute("CREATE TABLE wards AS SELECT * FROM listed")


def _visits() -> pa.Table:
    """Draw every visit, in order of date."""
    import numpy as np
    import pyarrow as pa

    rng = np.random.default_rng(SEED)
    medians, stays, diagnoses = zip(*WARDS.values(), strict=True)

    # The patients. Most come one to four times; one in four hundred is in and out all year.
    adult = 18 + 87 * rng.beta(1.7, 2.5, PATIENTS)
    age_of = np.where(rng.random(PATIENTS) < 0.2, 18 * rng.random(PATIENTS), adult).astype(np.int64)
    sex_of = rng.choice(3, PATIENTS, p=[0.515, 0.478, 0.007])
    insured_of = rng.random(PATIENTS) < 0.91
    home_of = _home_wards(rng, age_of, sex_of)
    complaint_of = rng.random(PATIENTS)
    appetite = rng.lognormal(0, 0.7, PATIENTS) * np.where(rng.random(PATIENTS) < 1 / 400, 12, 1)
    visits_of = 1 + rng.multinomial(VISITS - PATIENTS, appetite / appetite.sum())

    # The visits. Most are to the home ward, some to Emergency (the very young and the old), a few to Surgery.
    patient = rng.permutation(np.repeat(np.arange(PATIENTS), visits_of))
    age = age_of[patient]
    chance = rng.random(VISITS)
    urgent = chance < 0.08 + 0.22 * ((age - 40) / 60) ** 2
    ward = np.where(urgent, EMERGENCY, np.where(chance > 0.995, SURGERY, home_of[patient]))
    season = 1 + 0.2 * np.cos(2 * np.pi * np.arange(365) / 365)
    day = np.sort(rng.choice(365, VISITS, p=season / season.sum()))
    cost = np.array(medians)[ward] * np.exp(0.008 * (age - 40) + rng.normal(0, 0.92, VISITS))
    nights = rng.geometric(1 / (1 + np.array(stays)[ward] * (0.5 + age / 80))) - 1

    # Diagnoses follow a power distribution in each ward. Two visits in three are for the patient's old complaint.
    luck = np.where(rng.random(VISITS) < 2 / 3, complaint_of[patient], rng.random(VISITS))
    commonness = np.cumsum(1 / np.arange(1, 8) ** 2)
    which = np.searchsorted(commonness / commonness[-1], luck, side="right")

    return pa.table({
        "patient_id": pa.array(patient + 1, pa.int64()),
        "age": pa.array(age, pa.int32()),
        "sex": pa.array(["F", "M", "X"]).take(pa.array(sex_of[patient])),
        "ward": pa.array(list(WARDS)).take(pa.array(ward)),
        "visited": pa.array(np.datetime64("2025-01-01") + day, pa.date32()),
        "cost": pa.array(cost.round(2), pa.float64(), mask=rng.random(VISITS) < 0.01),
        "nights": pa.array(nights, pa.int32()),
        "insured": pa.array(insured_of[patient], pa.bool_(), mask=rng.random(VISITS) < 0.03),
        "diagnosis": pa.array([name for names in diagnoses for name in names]).take(pa.array(7 * ward + which)),
    })  # fmt: skip


def _home_wards(rng: np.random.Generator, age: NDArray[np.int64], sex: NDArray[np.int64]) -> NDArray[np.int64]:
    """The ward each patient mostly goes to, by age and sex."""
    import numpy as np

    weights = np.zeros((PATIENTS, len(WARDS)))
    weights[:, CARDIOLOGY] = 0.05 + (age / 100) ** 2
    weights[:, EMERGENCY] = 0.1
    weights[:, MATERNITY] = np.where((age >= 16) & (age <= 48) & (sex != 1), 0.6, 0)
    weights[:, ONCOLOGY] = 0.02 + 1.2 * (age / 100) ** 3
    weights[:, PEDIATRICS] = np.where(age < 18, 1.5, 0)
    weights[:, SURGERY] = 0.1 + 0.3 * (age / 100)
    edges = weights.cumsum(axis=1)
    home: NDArray[np.int64] = (rng.random((PATIENTS, 1)) * edges[:, -1:] >= edges).sum(axis=1)
    return home
