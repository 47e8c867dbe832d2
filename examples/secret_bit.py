"""Counts that name a secret
=========================

A table of names, postcodes, birth dates and a secret bit: counts over conditions name everybody's secret. Names,
postcodes and birth dates are in a public register. The analyst sees the register, and may ask how many people who
satisfy a condition have the bit.
"""

from __future__ import annotations

import duckdb
import numpy as np

from tacit.attacks import ExactOracle, FunctionOracle, ask_oracle, reconstruct_exhaustively

PEOPLE = [
    ("Ada", "1012", "1961-03-02", 1),
    ("Ben", "1017", "1984-11-23", 0),
    ("Cleo", "1012", "1979-07-14", 1),
    ("Dov", "1017", "1961-12-30", 0),
    ("Eve", "1018", "1990-01-09", 1),
]
CONDITIONS = [
    "postcode = '1012'",
    "postcode <> '1012'",
    "postcode = '1017'",
    "born < DATE '1970-01-01'",
    "born < DATE '1980-01-01'",
    "born < DATE '1985-01-01'",
    "postcode >= '1017' AND born >= DATE '1970-01-01'",
]


def main() -> None:
    table = duckdb.connect()
    table.execute("CREATE TABLE people (name TEXT, postcode TEXT, born DATE, secret INTEGER)")
    table.executemany("INSERT INTO people VALUES (?, ?, ?, ?)", PEOPLE)

    # Which people a condition picks is known from the register alone: no secret is read for it.
    columns = ", ".join(f"CAST({condition} AS INTEGER)" for condition in CONDITIONS)
    picked = table.execute(f"SELECT {columns} FROM people").fetchall()
    subsets = np.array(picked, dtype=bool).T
    texts = {row.tobytes(): condition for row, condition in zip(subsets, CONDITIONS, strict=True)}

    def count(subset: np.ndarray) -> int:
        where = texts[subset.tobytes()]
        return int(table.execute(f"SELECT COALESCE(SUM(secret), 0) FROM people WHERE {where}").fetchone()[0])

    secret = [bit for *_, bit in PEOPLE]
    counts = ask_oracle(FunctionOracle(count), subsets)
    assert (counts == ask_oracle(ExactOracle(secret), subsets)).all()
    for condition, subset, number in zip(CONDITIONS, subsets, counts, strict=True):
        print(f"{''.join(map(str, subset.astype(int)))} has {number:.0f}   {condition}")

    for error, words in ((0, "true counts"), (1, "the same counts, were they known only to within 1")):
        left = reconstruct_exhaustively(FunctionOracle(count), len(PEOPLE), error, subsets=subsets)
        print(f"\n{words}: {left}")
        for number, (name, *_) in enumerate(PEOPLE):
            votes = set(left.candidates[:, number].tolist())
            print(f"  {name}: {'still hidden' if len(votes) == 2 else int(votes.pop())}")


if __name__ == "__main__":
    main()
