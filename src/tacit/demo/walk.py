"""The walk through Tacit that a newcomer takes: a handful of steps on the bundled clinic, every answer a real one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tacit.accounting.filters import format_epsilon
from tacit.analyst import Analyst
from tacit.curator import curator as curators
from tacit.demo.clinic import build_clinic
from tacit.errors import Refused
from tacit.ledger.verify import verify

COUNT = "SELECT COUNT(*) AS visits FROM visits WHERE age >= 65"
MEANS = "SELECT ward, AVG(cost) AS mean_cost FROM visits GROUP BY ward"
SINGLE_ROW = "SELECT cost FROM visits WHERE diagnosis = 'P11 Asthma' AND age = 9"
UNBOUNDED = "SELECT AVG(cost / nights) FROM visits"
DIAGNOSES = (
    "SELECT diagnosis, COUNT(DISTINCT patient_id) AS patients "
    "FROM visits GROUP BY diagnosis ORDER BY patients DESC LIMIT 6"
)
PER_PATIENT = (
    "SELECT AVG(LEAST(total, 20000)) AS per_patient "
    "FROM (SELECT patient_id, SUM(COALESCE(cost, 0)) AS total FROM visits GROUP BY patient_id)"
)


@dataclass(frozen=True)
class TourStep:
    """One step: what it is about, what Ada types, and what she sees."""

    title: str
    says: str
    typed: str
    shows: str


def run_tour(folder: Path) -> Iterator[TourStep]:
    """The steps, in a folder that will hold the clinic's data, policy and ledger."""
    with curators.open(build_clinic(folder)) as curator:
        ada = curator.analyst("ada")
        yield TourStep(
            "What there is to ask about",
            "A clinic: 20,000 patients, 100,000 visits. Ada sees names, types and bounds. She never sees a row.",
            "ada.schema",
            str(ada.schema),
        )
        yield TourStep(
            "Look before you ask",
            "Explaining is free and touches no data: the error is known before anything is spent.",
            f'ada.explain("{COUNT}", epsilon=0.1)',
            str(ada.explain(COUNT, epsilon=0.1)),
        )
        yield TourStep(
            "A private count",
            "The answer is the count with a little noise, and the interval says how little.",
            f'ada.ask("{COUNT}", epsilon=0.1)',
            str(ada.ask(COUNT, epsilon=0.1)),
        )
        means = ada.ask(MEANS, epsilon=1.0)
        yield TourStep(
            "An average for each ward",
            "More epsilon buys shorter error bars.",
            f'print(ada.ask("{MEANS}", epsilon=1.0).chart())',
            means.chart(width=86),
        )
        again = ada.ask(MEANS, epsilon=1.0)
        yield TourStep(
            "The same question again",
            "It gets the same answer and costs nothing, so asking again cannot average the noise away.",
            f'ada.ask("{MEANS}", epsilon=1.0).receipt',
            str(again.receipt),
        )
        yield TourStep(
            "Keys that nobody listed",
            "Which diagnoses occur is private: one is shown only where enough patients have it.",
            f'ada.ask("{DIAGNOSES}", epsilon=0.2)',
            str(ada.ask(DIAGNOSES, epsilon=0.2)),
        )
        yield TourStep(
            "A question about each patient",
            "A patient's own total needs no noise. Only the average over patients gets some.",
            f'ada.ask("{PER_PATIENT}", epsilon=0.1)',
            str(ada.ask(PER_PATIENT, epsilon=0.1)),
        )
        yield TourStep(
            "Two questions that are refused",
            "A refusal says where, why and what to ask instead. It costs nothing.",
            f'ada.ask("{SINGLE_ROW}", epsilon=0.1)\nada.ask("{UNBOUNDED}", epsilon=0.1)',
            f"{_format_refusal(ada, SINGLE_ROW)}\n\n{_format_refusal(ada, UNBOUNDED)}",
        )
        yield TourStep(
            "The budget runs out",
            "Whatever Ada asks, and however cleverly, all her answers together stay within epsilon 2.",
            'for age in range(20, 90, 10):\n    ada.ask(f"SELECT COUNT(*) FROM visits WHERE age < {age}", epsilon=0.2)',
            "\n".join(_ask_until_refused(ada)),
        )
        report = verify(curator.ledger)
        order = "all in order" if report.ok else "NOT in order"
        yield TourStep(
            "What the owner keeps",
            "Each charge was written down before the data was touched, in a chain of hashes that anyone can check.",
            "verify(curator.ledger)",
            f"{report.entries} entries, {order}, head {report.head[:16]}\n{ada.budget}",
        )


def _format_refusal(ada: Analyst, question: str) -> str:
    try:
        ada.ask(question, epsilon=0.1)
    except Refused as refusal:
        return str(refusal)
    raise AssertionError("the walk expects a refusal here")


def _ask_until_refused(ada: Analyst) -> Iterator[str]:
    """Ask until the ledger says no."""
    for age in range(20, 90, 10):
        try:
            answer = ada.ask(f"SELECT COUNT(*) AS n FROM visits WHERE age < {age}", epsilon=0.2)
        except Refused as refusal:
            yield f"age < {age}: {refusal}"
            return
        low, high = answer.interval("n")[0]
        left = format_epsilon(answer.receipt.analyst_budget.remaining)
        yield f"age < {age}: {answer.value:,} ({low:,} to {high:,}); {left} left"
