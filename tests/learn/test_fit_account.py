"""The account of a budget: what a fit costs the filters, and a file that many may charge at once."""

from __future__ import annotations

import ctypes
import math
import os
import stat
import threading
from fractions import Fraction
from pathlib import Path

import pytest
from tests.support.forks import in_child, outcome

from tacit.accounting.filters import GRAINS_PER_DELTA, BudgetCharge
from tacit.errors import Refused
from tacit.learn import fit_account
from tacit.learn.fit_account import (
    AccountTerms,
    close_account,
    create_account,
    find_ancestors_accounts,
    read_account,
    remove_account,
    reopen_account,
    reserve_in_all,
)
from tacit.privacy.guarantee import DpGuarantee, epsilon_from_rho
from tacit.privacy.loss import ApproximateDp, Compose, ContinuousGaussianNoise, Group, PureDp, Repeat, decode, encode
from tacit.privacy.unit import Neighbors

ADD, REPLACE = Neighbors.ADD_REMOVE, Neighbors.REPLACE
NONE = Fraction(0)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Accounts of this test in a folder of its own."""
    monkeypatch.setattr(fit_account.tempfile, "gettempdir", lambda: str(tmp_path))
    return tmp_path


def terms(epsilon, delta=0, neighbors=ADD) -> AccountTerms:
    return AccountTerms(Fraction(epsilon), Fraction(delta), neighbors)


def pure(epsilon) -> tuple[DpGuarantee, PureDp]:
    return DpGuarantee(epsilon, 0, ADD), PureDp(Fraction(epsilon))


def account(epsilon, delta=0, neighbors=ADD):
    return create_account(terms(epsilon, delta, neighbors))


def test_a_fit_is_charged_what_it_promises_and_its_rho():
    # (1, 1e-7) is 10^12 and 10^11 grains; noise of sigma 5 has a rho of 1/50, 2 * 10^13 grains
    charge, loss = terms(1).price(DpGuarantee(1, Fraction(1, 10**7), ADD), ContinuousGaussianNoise(5))
    assert charge == BudgetCharge(10**12, 10**11, 2 * 10**13, 0) and loss == ContinuousGaussianNoise(5)


def test_a_fit_for_added_rows_costs_a_replacement_two_of_them():
    # replacing is a removal and an addition: epsilon twice, rho four times
    charge, loss = terms(1, 0, REPLACE).price(DpGuarantee(1, 0, ADD), ContinuousGaussianNoise(5))
    assert (charge.epsilon, charge.rho) == (2 * 10**12, 8 * 10**13)
    assert loss == Group(ContinuousGaussianNoise(5), 2)


def test_what_strays_from_gaussian_noise_costs_a_replacement_two_of_it_too():
    # a probability that is the same for all tables: the rest is rho, four times that of sigma 5
    fit = Compose((Repeat(ContinuousGaussianNoise(5), 1), ApproximateDp(0, Fraction(1, 10**15))))
    charge, loss = terms(1, 0, REPLACE).price(DpGuarantee(1, 0, ADD), fit)
    assert (charge.rho, charge.delta_b) == (8 * 10**13, 2 * GRAINS_PER_DELTA // 10**15)
    assert decode(encode(loss)) == loss


def test_a_fit_for_replaced_rows_promises_nothing_for_added_ones():
    with pytest.raises(Refused, match="promises nothing for a row that is added") as caught:
        terms(1).price(DpGuarantee(1, 0, REPLACE), PureDp(1))
    assert caught.value.code == "budget" and 'neighbors="replace"' in caught.value.fix


def test_few_large_fits_have_all_of_delta_by_basic_composition():
    # two fits of (1, 5e-7) are (2, 1e-6), which is the budget: half of the delta for each filter would admit one
    path = account(2, Fraction(1, 10**6))
    fit = DpGuarantee(1, Fraction(5, 10**7), ADD), ApproximateDp(Fraction(1), Fraction(5, 10**7))
    reserve_in_all([path], *fit)
    reserve_in_all([path], *fit)
    with pytest.raises(Refused, match=r"3 of this budget would cost epsilon 3, delta 1\.5e-06 together"):
        reserve_in_all([path], *fit)
    assert len(read_account(path)) == 2


def test_many_small_fits_are_counted_by_rho():
    # 0.05 each: basic composition admits 40. By rho each is 0.05 tanh(0.025) = 0.0012497, and n of them are
    # (2, 1e-6/4)-DP as long as their conversion is at most 2
    path = account(2, Fraction(1, 10**6))
    with pytest.raises(Refused):
        _ = [reserve_in_all([path], *pure(Fraction(1, 20))) for _ in range(100)]
    admitted = len(read_account(path))
    each = 0.05 * math.tanh(0.025)
    assert epsilon_from_rho(admitted * each, 0.25e-6) < 2 < epsilon_from_rho((admitted + 1.01) * each, 0.25e-6)
    assert admitted > 40


def test_what_is_proposed_is_admitted():
    path = account(1, Fraction(1, 10**7))
    fit = DpGuarantee(Fraction(1, 3), Fraction(1, 10**7), ADD), ApproximateDp(Fraction(1, 3), Fraction(1, 10**7))
    reserve_in_all([path], *fit)
    with pytest.raises(Refused) as caught:
        reserve_in_all([path], *fit)
    text = caught.value.fix
    named = text[text.index("(") + 1 : text.index(")")]
    proposed = {name: Fraction(value) for name, value in (part.split("=") for part in named.split(", "))}
    other = account(proposed["epsilon"], proposed["delta"])
    reserve_in_all([other], *fit)
    reserve_in_all([other], *fit)


def test_a_fit_is_charged_to_all_accounts_or_to_none():
    wide, narrow = account(10), account(1)
    reserve_in_all([wide, narrow], *pure(1))
    with pytest.raises(Refused, match="and it is 1, delta 0"):
        reserve_in_all([wide, narrow], *pure(1))
    assert [len(read_account(path)) for path in (wide, narrow)] == [1, 1]


@pytest.mark.slow
def test_fits_side_by_side_never_overspend():
    # 40 threads want 1/10 each of a budget of 1: ten get it. Without one transaction for reading and writing more would
    path = account(1)
    start, refused = threading.Barrier(40), []

    def work():
        start.wait()
        try:
            reserve_in_all([path], *pure(Fraction(1, 10)))
        except Refused as error:
            refused.append(error)

    threads = [threading.Thread(target=work) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(read_account(path)) == 10 and len(refused) == 30


@pytest.mark.slow
def test_processes_share_an_account_and_one_that_dies_has_spent():
    path = account(1)

    def spend_and_die() -> int:
        assert path in find_ancestors_accounts()
        reserve_in_all([path], *pure(Fraction(1, 4)))
        os._exit(7)

    assert [outcome(in_child(spend_and_die)) for _ in range(4)] == [7] * 4
    assert len(read_account(path)) == 4
    assert outcome(in_child(spend_and_die)) == 255  # refused


def test_a_process_that_dies_inside_of_a_transaction_leaves_the_account_usable():
    path = account(1)

    def die() -> int:
        with fit_account._transaction(path) as inside:
            inside.reserve(*pure(1))
            os._exit(7)

    assert outcome(in_child(die)) == 7
    reserve_in_all([path], *pure(1))  # what was not committed did not happen, and no fit began


def test_an_account_that_has_ended_admits_nothing():
    path = account(1)
    waiting = fit_account.FitAccount(path)  # connected before the end
    reserve_in_all([path], *pure(1))
    assert len(close_account(path)) == 1
    with pytest.raises(Refused, match="has ended") as caught:
        waiting.reserve(*pure(1))
    waiting.disconnect()
    assert caught.value.fix
    with pytest.raises(Refused, match="has ended"):
        reserve_in_all([path], *pure(1))
    remove_account(path)
    assert not path.exists() and fit_account.has_ended(path)
    with pytest.raises(Refused, match="has ended"):
        reserve_in_all([path], *pure(1))


def test_an_account_that_is_opened_again_has_its_charges():
    path = account(2)
    reserve_in_all([path], *pure(1))
    close_account(path)
    reopen_account(path)
    reserve_in_all([path], *pure(1))
    with pytest.raises(Refused, match="3 of this budget would cost epsilon 3"):
        reserve_in_all([path], *pure(1))


def test_an_account_that_is_lost_has_not_ended():
    # its process lives and did not remove it: a fit that knows of it is refused, and not free
    path = account(1)
    path.unlink()
    assert not fit_account.has_ended(path)
    gone = path.with_name(path.name.replace(f"{os.getpid()}-", f"{os.getpid()}-1"))  # another start
    assert fit_account.has_ended(gone)


def test_a_zombie_has_ended(folder):
    # it is not running, though the system knows it until its parent has waited for it
    def lose_and_die() -> int:
        account(1).rename(folder / "lost")
        return 7

    child = in_child(lose_and_die)
    name = f"{child}-{fit_account._start_of(child)}-ab.account"
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    assert fit_account._status_of(child)[0] == "Z"
    assert fit_account.has_ended(fit_account.accounts_folder() / name)
    assert outcome(child) == 7


def test_a_note_is_removed_once_its_process_has_ended_and_not_before():
    running = account(1)
    remove_account(running)

    def die() -> int:
        remove_account(account(1))
        return 7

    folder = fit_account.accounts_folder()
    assert outcome(in_child(die)) == 7
    unseen = folder / f"{os.getpid()}1-1.removed"  # of another container
    unseen.write_text("pid:[1]\n")
    assert len(list(folder.glob("*.removed"))) == 3
    account(1)
    assert set(folder.glob("*.removed")) == {fit_account._list_of_removed(running), unseen}
    assert fit_account.has_ended(running)


def test_accounts_of_others_and_of_processes_that_are_gone_are_not_charged(folder):
    path = account(1)
    gone = path.with_name(path.name.replace(f"{os.getpid()}-", f"{os.getppid()}-1"))  # another start
    path.rename(gone)
    assert find_ancestors_accounts() == []
    gone.rename(gone.with_name(f"{os.getppid()}-{fit_account._start_of(os.getppid())}-ab.account"))
    assert len(find_ancestors_accounts()) == 1
    fit_account.accounts_folder().chmod(0o777)
    with pytest.raises(Refused, match="cannot be written") as caught:
        account(1)
    assert "TMPDIR" in caught.value.fix
    assert len(find_ancestors_accounts()) == 1  # what others could write to is charged all the same
    assert stat.S_IMODE(fit_account.accounts_folder().stat().st_mode) == 0o700


def test_the_folder_of_another_user_is_not_looked_into(monkeypatch):
    path = account(1)
    path.rename(path.with_name(f"{os.getppid()}-{fit_account._start_of(os.getppid())}-ab.account"))
    assert len(find_ancestors_accounts()) == 1
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    monkeypatch.setattr(fit_account, "accounts_folder", lambda: path.parent)
    assert find_ancestors_accounts() == []


@pytest.mark.parametrize("told", ["nonsense", "[1]", '["here.account"]', '["/tmp/1-2-ab.other"]', "{"])
def test_an_environment_that_names_no_accounts_is_refused(monkeypatch, told):
    monkeypatch.setenv(fit_account.ACCOUNTS_VARIABLE, told)
    with pytest.raises(Refused, match="names no accounts") as caught:
        find_ancestors_accounts()
    exec(caught.value.fix.split(",")[0], {"os": os})  # the fix
    assert find_ancestors_accounts() == []


def test_accounts_that_a_process_was_told_of_are_found_in_any_folder(folder, monkeypatch):
    path = account(1)
    odd = folder / 'od:d "name"'
    odd.mkdir()
    moved = path.rename(odd / path.name)
    fit_account.tell([moved, moved])
    assert find_ancestors_accounts() == [moved]
    close_account(moved)
    assert find_ancestors_accounts() == []
    fit_account.tell([])
    assert fit_account.ACCOUNTS_VARIABLE not in os.environ


def test_a_process_may_have_any_name():
    # the kernel keeps 15 bytes of a name, and may cut a letter in two
    def work() -> int:
        ctypes.CDLL(None).prctl(15, "Analysezentrum\u00fc".encode(), 0, 0, 0)
        assert b"\xc3)" in Path("/proc/self/stat").read_bytes()
        path = account(1)
        assert path.name.startswith(f"{os.getpid()}-{fit_account._start_of(os.getpid())}-")
        return 7 if outcome(in_child(lambda: 8 if path in find_ancestors_accounts() else 9)) == 8 else 6

    assert outcome(in_child(work)) == 7
