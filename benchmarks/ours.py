"""Tacit's side: whole asks, each a question never asked before, charged to a ledger on disk."""

from __future__ import annotations

import time
from itertools import count
from pathlib import Path
from typing import Any

from questions import AGES, EDUCATION, EPSILON, GAINS, GROUPS_PER_PERSON, HOURS, ROWS_PER_PERSON, SEXES, Question

import tacit

Measured = tuple[float, dict[str, list[float]]]


class Ours:
    """A curator for each unit, open over the same file."""

    def __init__(self, folder: Path, units: tuple[str, ...]) -> None:
        self._folder = folder
        self._fresh = count()
        self._curators = {unit: tacit.open(self._policy(unit, f"open-{unit}")) for unit in units}

    def ask(self, question: Question, unit: str) -> Measured:
        """One question to the open curator: seconds and values."""
        return self._ask(self._curators[unit], question)

    def ask_with_setup(self, question: Question, unit: str) -> Measured:
        """The same with opening and closing a curator, whose ledger is new."""
        policy = self._policy(unit, f"setup-{next(self._fresh)}")
        start = time.perf_counter()
        with tacit.open(policy) as curator:
            _, values = self._ask(curator, question)
        return time.perf_counter() - start, values

    def close(self) -> None:
        """Let go of the curators."""
        for curator in self._curators.values():
            curator.close()

    def _ask(self, curator: tacit.Curator, question: Question) -> Measured:
        sql = question.sql.format(fresh=-next(self._fresh))
        start = time.perf_counter()
        answer = curator.analyst("ada").ask(sql, epsilon=EPSILON)
        rows = list(answer)
        seconds = time.perf_counter() - start
        if answer.receipt.repeat:
            raise AssertionError("a stored answer was measured")
        if question.name == "groups":
            rows.sort(key=lambda row: EDUCATION.index(row["education"]))
        return seconds, {column: [float(row[column]) for row in rows] for column in question.columns}

    def _policy(self, unit: str, ledger: str) -> dict[str, Any]:
        people: dict[str, Any] = {"unit": unit}
        if unit != "row":
            people |= {"max_groups": GROUPS_PER_PERSON, "max_rows_per_group": ROWS_PER_PERSON}
        people["columns"] = {
            "age": {"type": "int", "lower": AGES[0], "upper": AGES[1]},
            "hours": {"type": "int", "lower": HOURS[0], "upper": HOURS[1]},
            "sex": {"type": "text", "values": list(SEXES)},
            "education": {"type": "text", "values": list(EDUCATION)},
            "capital_gain": {"type": "int", "lower": GAINS[0], "upper": GAINS[1]},
        }
        return {
            "data": {"engine": "duckdb", "source": str(self._folder / "people.duckdb")},
            "ledger": {"store": str(self._folder / f"{ledger}.ledger")},
            "privacy": {"neighbors": "add-remove", "epsilon": 1000},
            "tables": {"people": people},
            "analysts": {"ada": {"epsilon": 1000}},
        }
