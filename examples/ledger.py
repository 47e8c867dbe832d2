"""The ledger on its own
=====================

Budget, receipts and proofs for a mechanism of one's own: reserve, touch the data, commit; a name for a request, a
repeat that is free, a limit that holds, and a check of the whole chain.
"""

import tempfile
from fractions import Fraction
from pathlib import Path

from tacit.errors import Refused
from tacit.ledger.budget import BudgetLimits
from tacit.ledger.ledger import Ledger
from tacit.ledger.signing import SigningKey
from tacit.ledger.verify import check_receipt, verify
from tacit.ledger.witness import Witness
from tacit.mechanisms import Laplace
from tacit.sampling.bits import SystemBits

steps = [4_000, 12_000, 7_500] * 100  # the private data: one person each
folder = Path(tempfile.mkdtemp())
budget = (Fraction(1), Fraction(1, 10**9))  # epsilon and delta
key, witness = SigningKey.at(folder / "steps.key", create=True), Witness(folder / "steps.witness")
noise = Laplace.calibrated(Fraction(1, 4), sensitivity=1)

with Ledger(folder / "steps.ledger", BudgetLimits.of(*budget, {"ada": budget}), key=key, witness=witness) as ledger:

    def ask(least: int, request: str = ""):
        claim = ledger.reserve("ada", noise.loss(1), f"steps >= {least}", request=request)  # charged, on disk
        if claim.stored is None:
            with ledger.hold(claim):  # interrupted here, the charge is taken up again for nothing
                (released,) = noise.release([sum(one >= least for one in steps)], SystemBits())
                claim = ledger.commit(claim, str(released).encode())  # on disk before it is shown
        return claim

    monday = ask(5_000, request="monday")
    print(monday.stored.decode(), "people ·", monday.receipt)
    assert ask(5_000, request="monday").receipt == monday.receipt  # the same question: one charge, one answer
    assert "a repeat, free" in str(ask(5_000).receipt)

    asked = 1
    try:
        while asked := asked + 1:
            ask(1_000 * asked + 1)
    except Refused as refusal:
        print(f"question {asked}: {refusal}")  # four questions of 1/4 fit into 1

    report = verify(ledger, witness)
    print(f"{report.entries} entries, {'all in order' if report.ok else report.problems}")
    assert check_receipt(ledger, monday.receipt.to_dict()) == []
