"""Which data an epoch is: checked against a plain statement of the rule, on every short history."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tacit.errors import ErrorCode, LedgerError
from tacit.ledger.budget import BudgetLimits, Terms
from tacit.ledger.epochs import EpochSource, check_epoch
from tacit.ledger.ledger import Ledger
from tacit.ledger.signing import SigningKey

ONE = (Fraction(1), Fraction(0))
LIMITS = BudgetLimits.of(*ONE, {"ada": ONE})
MACS = ("", "a", "b")


def is_allowed(history: list[tuple[int, str]], epoch: int, mac: str) -> bool:
    """The rule for one table, said again: no earlier epoch is higher, and none equal has other data."""
    if any(was > epoch for was, _ in history):
        return False
    same = {found for was, found in history if was == epoch and found}
    return not (mac and same and same != {mac})


@pytest.mark.parametrize("length", [0, 1, 2, 3])
def test_an_opening_is_of_the_latest_epoch_and_of_its_data(length):
    steps = list(product((1, 2, 3), MACS))
    for history in product(steps, repeat=length):
        if not all(is_allowed(list(history[:at]), *step) for at, step in enumerate(history)):
            continue  # such a history cannot be
        known = [EpochSource(epoch, {"Visits": mac}) for epoch, mac in history]
        for epoch, mac in steps:
            now = EpochSource(epoch, {"visits": mac, "other": "x"})
            if is_allowed(list(history), epoch, mac):
                check_epoch(known, now)
                continue
            with pytest.raises(LedgerError) as caught:
                check_epoch(known, now)
            assert caught.value.code is ErrorCode.LEDGER_EPOCH
            # The fix works: what it says to write is accepted.
            told = int(caught.value.fix.partition("epoch = ")[2].split()[0].rstrip(","))
            is_over = any(was > epoch for was, _ in history)
            check_epoch(known, EpochSource(told, {"visits": "" if is_over else mac}))


def test_a_table_that_the_policy_leaves_out_for_a_while_is_still_known(tmp_path: Path):
    key = SigningKey(Ed25519PrivateKey.generate())

    def opened(epoch: int, **macs: str) -> None:
        Ledger(tmp_path / "ledger", LIMITS, key=key, source=EpochSource(epoch, macs)).close()

    opened(1, visits="a")
    opened(1, other="b")
    opened(1)
    with pytest.raises(LedgerError, match="the data of visits is not the data with which epoch 1 began"):
        opened(1, visits="c")
    opened(2, visits="c")
    opened(1, other="b")  # epochs are those of a table
    with pytest.raises(LedgerError, match="epoch 1 of visits is over: it was opened with epoch 2"):
        opened(1, visits="a")


def test_a_mac_needs_the_key_and_one_of_another_key_says_nothing(tmp_path: Path):
    one, other = (SigningKey(Ed25519PrivateKey.generate()) for _ in range(2))
    assert one.compute_mac("digest") == one.compute_mac("digest") != other.compute_mac("digest")
    assert one.compute_mac("digest") != one.compute_mac("digest2")
    assert one.compute_mac("digest") not in (one.sign("digest"), one.public)
    with Ledger(tmp_path / "ledger", LIMITS, key=one, source=EpochSource(3, {"visits": "x"})) as ledger:
        assert ledger.sources(one.public) == [EpochSource(3, {"visits": "x"})]
        assert ledger.sources(other.public) == [EpochSource(3, {"visits": ""})]


def test_terms_from_before_sources_were_remembered_are_read(tmp_path: Path):
    terms = Terms(LIMITS)
    assert "sources" not in terms.encode() and Terms.decode(terms.encode()) == terms
    with_source = Terms(LIMITS, source=EpochSource(2, {"visits": "a"}))
    assert Terms.decode(with_source.encode()) == with_source != terms
