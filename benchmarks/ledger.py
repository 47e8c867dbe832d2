"""Speed of the ledger: durable charges by several processes, and the cost of a charge as the ledger grows.

    make bench
    python benchmarks/ledger.py --entries 1000000

Every charge is on disk, in the ledger and with its witness, before it counts. Writes benchmarks/ledger.md.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import tempfile
import time
from fractions import Fraction
from pathlib import Path

from environment import HERE, say
from measures import fsync
from report import seconds, table

from tacit.accounting.filters import BudgetCharge, compute_charge
from tacit.ledger.budget import BudgetLimits
from tacit.ledger.entries import COLUMNS, Entry, EntryKind, add_hash, to_row
from tacit.ledger.ledger import Ledger
from tacit.ledger.signing import SigningKey
from tacit.ledger.transaction import LedgerTransaction, hash_answer
from tacit.ledger.verify import verify
from tacit.ledger.witness import Witness, WitnessedHead
from tacit.privacy.loss import LaplaceNoise, encode

PRICE = LaplaceNoise(Fraction(10**6), 1)
ANALYSTS = [f"analyst{number}" for number in range(10)]
LIMITS = BudgetLimits.of(Fraction(1000), Fraction(0), dict.fromkeys(ANALYSTS, (Fraction(1000), Fraction(0))))
ANSWER = bytes(400)


def main() -> None:
    """Measure, then tell."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--entries", type=int, default=1_000_000, help="how far the ledger grows")
    options.add_argument("--seconds", type=float, default=10.0, help="how long each race runs")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(dir=HERE, prefix=".work-") as name:
        folder = Path(name)
        disk = fsync(folder)
        races = {count: race(folder / f"race{count}", count, chosen.seconds) for count in (1, 4)}
        sizes = grow(folder, sorted({1_000, min(100_000, chosen.entries), chosen.entries}))
    page = markdown(disk, races, sizes)
    (HERE / "ledger.md").write_text(page, encoding="utf-8")
    print(page)


def opened(folder: Path) -> Ledger:
    """A ledger as the curator opens it: signed and witnessed."""
    folder.mkdir(exist_ok=True)
    key = SigningKey.at(folder / "key", create=True)
    return Ledger(folder / "ledger", LIMITS, key=key, witness=Witness(folder / "witness"))


def race(folder: Path, count: int, duration: float) -> float:
    """Charges a second, by so many processes at once on one ledger."""
    say(f"{count} processes charge for {duration:g} s...")
    opened(folder).close()
    context = multiprocessing.get_context("spawn")
    with context.Pool(count) as pool:
        pool.starmap(charges, [(folder, name, 0.2) for name in range(count)])  # warm up
        total = sum(pool.starmap(charges, [(folder, name, duration) for name in range(count)], chunksize=1))
    with opened(folder) as ledger:
        report = verify(ledger, Witness(folder / "witness"))
        assert report.ok, report.problems
    return total / duration


def charges(folder: Path, name: int, duration: float) -> int:
    """How many questions one process charges in a time."""
    with opened(folder) as ledger:
        end, number = time.perf_counter() + duration, 0
        while time.perf_counter() < end:
            ledger.reserve(ANALYSTS[name % 10], PRICE, f"{name} {duration} {number}")
            number += 1
    return number


def grow(folder: Path, sizes: list[int]) -> dict[int, tuple[float, float]]:
    """The median seconds of a charge, and of a charge with its answer, for ledgers of so many entries.

    The ledgers take turns, so that a busy moment of the machine falls on all of them.
    """
    ledgers = {}
    for size in sizes:
        say(f"a ledger of {size:,} entries...")
        ledgers[size] = opened(folder / f"size{size}")
        fill(ledgers[size], folder / f"size{size}" / "witness", size)
    found: dict[int, tuple[list[float], list[float]]] = {size: ([], []) for size in sizes}
    for number in range(600):
        for size, ledger in ledgers.items():
            start = time.perf_counter()
            claim = ledger.reserve(ANALYSTS[number % 10], PRICE, f"new {number}")
            charged = time.perf_counter()
            ledger.commit(claim, ANSWER)
            found[size][0].append(charged - start)
            found[size][1].append(time.perf_counter() - start)
    for ledger in ledgers.values():
        ledger.close()
    return {size: (statistics.median(one), statistics.median(both)) for size, (one, both) in found.items()}


def fill(ledger: Ledger, witness: Path, size: int) -> None:
    """Write charges and answers in one transaction: the rows that asking would leave, without a sync for each."""
    price, loss, digest = compute_charge(PRICE), encode(PRICE), hash_answer(ANSWER)
    insert = f"INSERT INTO entries ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"
    with ledger.store.write() as session:
        book = LedgerTransaction(session)
        last = book.last
        assert last is not None
        spent = dict.fromkeys(ANALYSTS, BudgetCharge.zero())
        while last.sequence < size:
            analyst = ANALYSTS[last.sequence // 2 % 10]
            key = f"{last.sequence:064x}" if last.kind is not EntryKind.RESERVE else last.key
            answers = last.kind is EntryKind.RESERVE
            analyst = last.analyst if answers else analyst
            charge = BudgetCharge.zero() if answers else price
            spent[analyst] += charge
            last = add_hash(
                Entry(
                    sequence=last.sequence + 1,
                    time=last.time,
                    kind=EntryKind.COMMIT if answers else EntryKind.RESERVE,
                    analyst=analyst,
                    key=key,
                    loss="" if answers else loss,
                    claim=last.sequence if answers else 0,
                    shared=0 if answers else 1,
                    charge=charge,
                    spent=spent[analyst],
                    overall=last.overall + charge,
                    everyone=last.everyone + charge,
                    answer_digest=digest if answers else "",
                    previous=last.hash,
                )
            )
            session.run(insert, to_row(last))
            if answers:
                session.run("INSERT INTO answers VALUES (?, ?, ?, ?)", (last.sequence, key, loss, ANSWER))
        session.run("UPDATE head SET sequence = ?, hash = ?", (last.sequence, last.hash))
        for analyst, sum_of in [*spent.items(), ("", last.overall)]:
            numbers = ", ".join(f"{name} = ?" for name in ("epsilon", "delta_a", "rho", "delta_b"))
            session.run(f"UPDATE totals SET {numbers} WHERE who = ?", (*sum_of.grains, analyst))
    Witness(witness).note(WitnessedHead(last.sequence, last.hash, last.everyone))


def markdown(disk: float, races: dict[int, float], sizes: dict[int, tuple[float, float]]) -> str:
    """The page."""
    first = next(iter(sizes.values()))
    rows = [["entries", "a charge", "ratio", "a charge and its answer", "ratio"]]
    for size, (one, both) in sizes.items():
        cells = [seconds(one), f"{one / first[0]:.2f}", seconds(both), f"{both / first[1]:.2f}"]
        rows.append([f"{size:,}", *cells])
    rates = [["processes on one ledger", "durable charges a second"]]
    rates += [[str(count), f"{rate:,.0f}"] for count, rate in races.items()]
    return "\n".join(
        [
            "# Speed of the ledger",
            "",
            "One run of `make bench`. Every charge is on disk twice before it counts: in the SQLite file and with its "
            f"witness. A write of 4 KiB to that disk takes {seconds(disk)}.",
            "",
            *table(rates),
            "",
            "The cost of a charge as the ledger grows: medians of 600, the ledgers taking turns.",
            "",
            *table(rows),
            "",
        ]
    )


if __name__ == "__main__":
    main()
