"""A made-up census in the shape of the Adult data: 32,000 records of 20,000 people, from a fixed seed."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet
from questions import AGES, EDUCATION, GAINS, HOURS, ROWS, SEXES

SEED = 1994
PEOPLE = 20_000


def records() -> pa.Table:
    """Everyone has one record or two, so the bounds on a person's part cut nothing off."""
    rng = np.random.default_rng(SEED)
    person = np.concatenate([np.arange(PEOPLE), rng.permutation(PEOPLE)[: ROWS - PEOPLE]])
    rng.shuffle(person)
    age = np.clip(AGES[0] + rng.gamma(2.6, 8.5, ROWS), *AGES).astype(np.int64)
    hours = np.clip(np.where(rng.random(ROWS) < 0.47, 40, rng.normal(40, 14, ROWS)), *HOURS).astype(np.int64)
    gain = np.where(rng.random(ROWS) < 0.083, np.clip(rng.lognormal(8.7, 1, ROWS), *GAINS), 0).astype(np.int64)
    share = np.array([1, 5, 10, 20, 16, 29, 36, 13, 322, 224, 42, 33, 164, 53, 18, 13], dtype=float)
    education = rng.choice(len(EDUCATION), ROWS, p=share / share.sum())
    sex = (rng.random(PEOPLE) < 0.67).astype(np.int64)[person]
    return pa.table({
        "person": pa.array(person, pa.int64()),
        "age": pa.array(age),
        "hours": pa.array(hours),
        "sex": pa.array(SEXES).take(pa.array(sex)),
        "education": pa.array(EDUCATION).take(pa.array(education)),
        "capital_gain": pa.array(gain),
    })  # fmt: skip


def write(table: pa.Table, folder: Path) -> None:
    """The same rows for each side: a DuckDB file for Tacit, a Parquet file for the peer to load into memory."""
    pyarrow.parquet.write_table(table, folder / "people.parquet")
    with duckdb.connect(str(folder / "people.duckdb")) as connection:
        connection.register("drawn", table)
        connection.execute("CREATE TABLE people AS SELECT * FROM drawn")


def truths(table: pa.Table) -> dict[str, dict[str, list[float]]]:
    """The true values of each question's columns, groups in the order of EDUCATION."""
    hours = table["hours"].to_numpy()
    education = table["education"].to_pylist()
    return {
        "count": {"n": [int((table["age"].to_numpy() >= 40).sum())]},
        "mean": {"total": [int(hours.sum())], "mean": [float(hours.mean())]},
        "groups": {"n": [education.count(key) for key in EDUCATION]},
    }
