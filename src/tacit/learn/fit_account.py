"""The account of a budget for fits: a file that all threads and processes of one machine charge, one at a time.

An account is an SQLite file in a folder of the user's own. A charge is one transaction that reads all charges before
it, so that fits that run side by side cannot overspend together. It is committed before a fit begins: a process that
dies has spent it.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import sqlite3
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from pathlib import Path
from uuid import uuid4

from tacit.accounting.filters import (
    GRAINS_PER_DELTA,
    GRAINS_PER_EPSILON,
    LARGEST,
    READABLE,
    BudgetCharge,
    DeltaSplit,
    FilterLimits,
    compute_charge,
    compute_limits,
    format_epsilon,
    is_admitted,
)
from tacit.accounting.rounding import digits_above
from tacit.errors import ErrorCode, Refused
from tacit.privacy.guarantee import DpGuarantee
from tacit.privacy.loss import Compose, Group, Loss, Repeat, decode, encode
from tacit.privacy.unit import Neighbors

_WAIT = 60.0  # seconds for the transactions of others
_MOST_ANCESTORS = 64
_ENDING = ".account"
_REMOVED = ".removed"
_NAME = re.compile(r"-?[0-9]+-[0-9]+-[0-9a-f]+" + re.escape(_ENDING))  # process, its start, a random part
ACCOUNTS_VARIABLE = "TACIT_LEARN_ACCOUNTS"  # where a process tells those that it starts of its accounts
_TABLES = """
CREATE TABLE terms (epsilon TEXT, delta TEXT, neighbors TEXT, open INTEGER);
CREATE TABLE limits (epsilon INTEGER, delta_a INTEGER, rho INTEGER, delta_b INTEGER);
CREATE TABLE charges (epsilon INTEGER, delta_a INTEGER, rho INTEGER, delta_b INTEGER, loss TEXT);
"""
_BASIC_ONLY = DeltaSplit(basic=Fraction(1), keys=Fraction(0), conversion=Fraction(0))


@dataclass(frozen=True)
class AccountTerms:
    """The (epsilon, delta) that the fits of an account may cost together, and the neighbor relation that it is for."""

    epsilon: Fraction
    delta: Fraction
    neighbors: Neighbors

    def price(self, guarantee: DpGuarantee, loss: Loss) -> tuple[BudgetCharge, Loss]:
        """What a fit costs the filters, and its loss, under the relation of the account.

        **Theorem.** A fit that is (e, d)-DP and loses `loss` may be charged (e, d) by basic composition and the rho of
        `loss` by zCDP: both hold of it. A fit for add-remove costs replacing what it costs a group of two
        (`DpGuarantee.for_replace`, `_for_pair`). Under replace the number of rows is public, so a fit for it says
        nothing of a row that is added: it is refused.
        """
        if guarantee.neighbors is not self.neighbors:
            if self.neighbors is Neighbors.ADD_REMOVE:
                what = "a fit under replace promises nothing for a row that is added or removed, as the budget does"
                fix = f'tacit.learn.budget({self.text}, neighbors="replace")'
                raise Refused(ErrorCode.BUDGET, what, fix=fix)
            guarantee, loss = guarantee.for_replace(), _for_pair(loss)
        concentrated = compute_charge(loss)
        return BudgetCharge(
            min(LARGEST, ceil(guarantee.epsilon * GRAINS_PER_EPSILON)),
            min(LARGEST, ceil(guarantee.delta * GRAINS_PER_DELTA)),
            concentrated.rho,
            concentrated.delta_b,
        ), loss

    def choose_limits(self, first: BudgetCharge) -> FilterLimits:
        """The limits of the filters, chosen by what the first fit costs, which is known before any data is used.

        **Theorem.** Whatever is chosen, all fits together are (epsilon, delta)-DP (`is_admitted`): either all of delta
        is for basic composition, or it is divided between basic composition and zCDP. Proof: the choice is made once,
        before the first release, from public facts. The second is taken where it admits more fits like the first.
        """
        alone = compute_limits(self.epsilon, self.delta, _BASIC_ONLY)
        both = compute_limits(self.epsilon, self.delta)
        return both if _count_fits(first, both) > _count_fits(first, alone) else alone

    @property
    def text(self) -> str:
        """The same as arguments of `budget`."""
        return f"epsilon={float(self.epsilon):g}, delta={float(self.delta):g}"


def _count_fits(charge: BudgetCharge, limits: FilterLimits) -> int:
    """How many fits of this cost one of the filters admits."""
    pairs = zip(charge.grains, limits.grains, strict=True)
    rooms = [limit // cost if cost else LARGEST for cost, limit in pairs]
    return max(min(rooms[:2]), min(rooms[2:]))


class FitAccount:
    """An account that is open, inside of a transaction."""

    def __init__(self, path: Path) -> None:
        try:
            self._file = sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=_WAIT, isolation_level=None)
        except sqlite3.Error:
            raise refuse_unreachable() from None

    @property
    def terms(self) -> AccountTerms:
        """What was declared; Refused where the block of the budget has ended."""
        epsilon, delta, neighbors, is_open = self._file.execute("SELECT * FROM terms").fetchone()
        if not is_open:
            raise refuse_unreachable()
        return AccountTerms(Fraction(epsilon), Fraction(delta), Neighbors(neighbors))

    @property
    def charges(self) -> list[tuple[BudgetCharge, Loss]]:
        """All charges so far, the first one first."""
        rows = self._file.execute("SELECT * FROM charges ORDER BY rowid").fetchall()
        return [(BudgetCharge(*row[:4]), decode(row[4])) for row in rows]

    @property
    def limits(self) -> FilterLimits | None:
        """The limits that were chosen at the first charge."""
        row = self._file.execute("SELECT * FROM limits").fetchone()
        return None if row is None else FilterLimits(*row)

    def reserve(self, guarantee: DpGuarantee, loss: Loss) -> None:
        """Charge a fit, or refuse it. What is written holds once the transaction is committed."""
        terms = self.terms
        price, lost = terms.price(guarantee, loss)
        rows = self._file.execute("SELECT epsilon, delta_a, rho, delta_b FROM charges ORDER BY rowid").fetchall()
        before = [BudgetCharge(*row) for row in rows]
        limits = self.limits
        if limits is None:
            limits = terms.choose_limits(price)
            self._file.execute("INSERT INTO limits VALUES (?, ?, ?, ?)", limits.grains)
        spent = sum(before, BudgetCharge.zero())
        if not is_admitted(spent, price, limits):
            raise _refuse_overspending(terms, [*before, price])
        self._file.execute("INSERT INTO charges VALUES (?, ?, ?, ?, ?)", (*price.grains, encode(lost)))

    @property
    def is_open(self) -> bool:
        """Whether fits are charged to it."""
        return bool(self._file.execute("SELECT open FROM terms").fetchone()[0])

    def set_open(self, is_open: bool) -> None:
        """Let fits be charged from now on, or none."""
        self._file.execute("UPDATE terms SET open = ?", (int(is_open),))

    def execute(self, statement: str) -> None:
        """Begin, commit or undo the transaction."""
        self._file.execute(statement)

    def disconnect(self) -> None:
        """Give the file back; what is not committed is undone."""
        self._file.close()


def _refuse_overspending(terms: AccountTerms, charges: list[BudgetCharge]) -> Refused:
    """The refusal of the last charge, with a budget that admits all of them."""
    total = sum(charges, BudgetCharge.zero())
    epsilon = Fraction(-(-total.epsilon // READABLE) * READABLE, GRAINS_PER_EPSILON)
    needed = Fraction(total.delta_a, GRAINS_PER_DELTA)
    delta = terms.delta
    larger = AccountTerms(max(epsilon, terms.epsilon), delta, terms.neighbors)
    if not _admits(larger, charges):
        delta = Fraction(digits_above(2 * needed))
    what = (
        f"with this fit, {len(charges)} of this budget would cost epsilon {total.text} together, and it is "
        f"{format_epsilon(ceil(terms.epsilon * GRAINS_PER_EPSILON))}, delta {digits_above(terms.delta)}"
    )
    fix = f"tacit.learn.budget(epsilon={float(larger.epsilon):.12g}, delta={float(delta):g}), or fits of less epsilon"
    return Refused(ErrorCode.BUDGET, what, fix=fix)


def _admits(terms: AccountTerms, charges: list[BudgetCharge]) -> bool:
    """Whether a budget of these terms would admit all charges, in this order."""
    limits = terms.choose_limits(charges[0])
    return is_admitted(BudgetCharge.zero(), sum(charges, BudgetCharge.zero()), limits)


def refuse_unreachable() -> Refused:
    """The refusal of a fit whose account is closed, lost, or on another machine."""
    what = "a budget that this fit belongs to has ended, or cannot be reached from this process"
    fix = "make the estimator anew: type(model)(**model.get_params()), inside of a budget of this process"
    return Refused(ErrorCode.BUDGET, what, fix=fix)


def create_account(terms: AccountTerms) -> Path:
    """A new file with what was declared. Its name tells the process that holds it.

    Notes of processes that have ended are removed.
    """
    folder = accounts_folder()
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        if not _is_own(folder):
            raise PermissionError
        _clear_notes(folder)
        path = folder / f"{os.getpid()}-{_start_of(os.getpid())}-{uuid4().hex}{_ENDING}"
        draft = path.with_suffix(".draft")
        draft.touch(mode=0o600, exist_ok=False)
        with _connect(draft) as account:
            account._file.executescript(_TABLES)
            account._file.execute(
                "INSERT INTO terms VALUES (?, ?, ?, 1)", (str(terms.epsilon), str(terms.delta), str(terms.neighbors))
            )
        draft.rename(path)  # other processes see a whole one or none
    except OSError:
        what = f"the account of the budget cannot be written to {folder}"
        fix = "set TMPDIR to a folder that only you can write to"
        raise Refused(ErrorCode.BUDGET, what, fix=fix) from None
    return path


def reserve_in_all(paths: Iterable[Path], guarantee: DpGuarantee, loss: Loss) -> None:
    """Charge a fit to all accounts, or refuse it and charge none.

    Accounts are locked in the order of their names, so that two fits never wait for each other.
    """
    with ExitStack() as stack:
        accounts = [stack.enter_context(_transaction(path)) for path in sorted(paths)]
        for account in accounts:
            account.reserve(guarantee, loss)


@contextmanager
def _connect(path: Path) -> Iterator[FitAccount]:
    account = FitAccount(path)
    try:
        account.execute("PRAGMA synchronous = OFF")  # an account ends with its process
        yield account
    finally:
        account.disconnect()


@contextmanager
def _transaction(path: Path) -> Iterator[FitAccount]:
    """The account with nobody else in it; committed at the end, undone where an error leaves the block."""
    try:
        with _connect(path) as account:
            account.execute("BEGIN IMMEDIATE")
            yield account
            account.execute("COMMIT")
    except sqlite3.Error:
        raise refuse_unreachable() from None


def read_account(path: Path) -> list[tuple[BudgetCharge, Loss]]:
    """All charges."""
    with _transaction(path) as account:
        return account.charges


def close_account(path: Path) -> list[tuple[BudgetCharge, Loss]]:
    """Close an account, which keeps what was charged; all charges. A fit that waits for it finds it closed."""
    with _transaction(path) as account:
        account.set_open(False)
        return account.charges


def reopen_account(path: Path) -> None:
    """Let fits be charged to an account again, beside those that were; Refused where it cannot be reached."""
    with _transaction(path) as account:
        account.set_open(True)


def has_ended(path: Path) -> bool:
    """Whether an account of another process is closed, or gone with that process.

    A file that is lost while its process lives has not ended: fits that are charged to it are refused.
    """
    try:
        if path.exists():
            with _transaction(path) as account:
                return not account.is_open
    except Refused:
        if path.exists():
            raise
    process, start, _ = path.name.rsplit("-", 2)
    return path.name in _read_lines(_list_of_removed(path)) or _has_process_ended(int(process), start)


def remove_account(path: Path) -> None:
    """Remove the file of a closed account, and note for processes that know of it that it was not lost."""
    with suppress(OSError):
        with _list_of_removed(path).open("a", encoding="ascii") as noted:
            noted.write(f"{_process_namespace()}\n{path.name}\n")
        path.unlink()


def clear_removed(path: Path) -> None:
    """Remove the note of what the process of an account has removed, where nobody can see later that it has ended."""
    if _status_of(os.getpid()) is None:
        with suppress(OSError):
            _list_of_removed(path).unlink()


def _clear_notes(folder: Path) -> None:
    """Remove the notes of processes that have ended, of which the system tells that instead."""
    for noted in folder.glob(f"*{_REMOVED}"):
        process, _, start = noted.stem.rpartition("-")
        if _process_namespace() in _read_lines(noted) and _has_process_ended(int(process), start):
            with suppress(OSError):
                noted.unlink()


def _process_namespace() -> str:
    """Which processes this one sees by their numbers: those of another container are running unseen."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _list_of_removed(path: Path) -> Path:
    """The file that names the removed accounts of an account's process, which needs it until it has ended."""
    return path.with_name(f"{path.name.rpartition('-')[0]}{_REMOVED}")


def _read_lines(noted: Path) -> list[str]:
    try:
        return noted.read_text(encoding="ascii").splitlines()
    except OSError:
        return []


def accounts_folder() -> Path:
    """Where the accounts of this user's processes are."""
    user = os.getuid() if hasattr(os, "getuid") else "user"
    return Path(tempfile.gettempdir()) / f"tacit-learn-{user}"


def find_ancestors_accounts() -> list[Path]:
    """The open accounts of the processes that started this one: those that they told it of, or left to be found."""
    found, folder = set(read_told()), accounts_folder()
    if folder.is_dir():
        _take_away_from_others(folder)
        if _is_own(folder):
            found |= {
                path
                for process in list_ancestors()
                for path in folder.glob(f"{process}-*{_ENDING}")
                if path.name.split("-")[1] == _start_of(process)
            }
    return sorted(path for path in found if not has_ended(path))


def read_told() -> list[Path]:
    """The accounts that the environment names; Refused where it names anything else."""
    try:
        told = [Path(path) for path in json.loads(os.environ.get(ACCOUNTS_VARIABLE) or "[]")]
    except (TypeError, ValueError):
        told = [Path()]
    if not all(path.is_absolute() and _NAME.fullmatch(path.name) for path in told):
        what = f"the variable {ACCOUNTS_VARIABLE}, which Tacit sets for the processes that it starts, names no accounts"
        raise Refused(ErrorCode.BUDGET, what, fix=f"os.environ.pop({ACCOUNTS_VARIABLE!r}), where no budget is open")
    return told


def tell(paths: Iterable[Path]) -> None:
    """Name accounts in the environment, for the processes that are started from now on."""
    known = [str(path) for path in dict.fromkeys(paths)]
    if known:
        os.environ[ACCOUNTS_VARIABLE] = json.dumps(known)
    else:
        os.environ.pop(ACCOUNTS_VARIABLE, None)


def list_ancestors() -> list[int]:
    """The processes that this one comes from, without itself, as far as the system tells of them."""
    found = [os.getppid()]
    parent = multiprocessing.parent_process()
    if parent is not None and parent.pid is not None:
        found.append(parent.pid)
    while len(found) < _MOST_ANCESTORS and (fields := _status_of(found[-1])) is not None and int(fields[1]) > 0:
        found.append(int(fields[1]))
    return [process for process in dict.fromkeys(found) if process != os.getpid()]


def _status_of(process: int) -> list[str] | None:
    """The state, the parent and so on of a process, where there is /proc."""
    try:
        found = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2]  # the name before it may be anything
        return found.decode("ascii").split()
    except OSError:
        return None


def _start_of(process: int) -> str:
    """When a process began, in ticks: the same number may be another process later. 0 where it is not told."""
    fields = _status_of(process)
    return "0" if fields is None else fields[19]


def _has_process_ended(process: int, start: str) -> bool:
    """Whether a process is gone, or a zombie; False where it is not told."""
    fields = _status_of(process)
    if fields is None:
        return start != "0"
    return fields[0] in {"Z", "X"} or fields[19] != start


def _take_away_from_others(folder: Path) -> None:
    """Make a folder of this user's private again, which accounts are looked for in no other."""
    with suppress(OSError):
        found = folder.lstat()
        if stat.S_ISDIR(found.st_mode) and found.st_mode & 0o077 and found.st_uid == os.getuid():
            folder.chmod(0o700)


def _is_own(folder: Path) -> bool:
    """Whether only this user can write to a folder, where there are users."""
    found = folder.lstat()
    if not hasattr(os, "getuid"):
        return stat.S_ISDIR(found.st_mode)
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077


def _for_pair(loss: Loss) -> Loss:
    """The loss of a fit for two rows that change together, part by part.

    **Theorem.** The group of a composition is at most the composition of the groups of its parts, where each holds of
    any two tables. So it is in a fit: an `ApproximateDp(0, delta)` is the probability that noise is not a rounded
    Gaussian, which is the same whatever the table is (`learn.noise`), and not of a pair of neighbors alone.
    """
    match loss:
        case Compose(parts):
            return Compose(tuple(map(_for_pair, parts)))
        case Repeat(inner, times):
            return Repeat(_for_pair(inner), times)
    return Group(loss, 2)
