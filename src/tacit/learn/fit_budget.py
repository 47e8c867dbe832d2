"""A budget for all fits of a block of code, whoever calls them: cross-validation, searches, ensembles, other processes.

A fit is charged where it happens, before a value of the data is used. It is charged to every budget that is open in its
process, in the processes that this one comes from, and where its estimator was sent from.

>>> from sklearn.model_selection import cross_val_score
>>> from tacit.learn import LogisticRegression, budget
>>> ages, sick = [[float(age)] for age in range(20, 80)] * 50, ([0] * 30 + [1] * 30) * 50
>>> model = LogisticRegression(epsilon=0.5, delta=1e-7, classes=[0, 1], bounds=(18, 90), rows=2400)
>>> with budget(epsilon=3, delta=1e-6) as spending:
...     scores = cross_val_score(model, ages, sick, cv=5)
>>> print(spending.fits_, spending.spent_.epsilon <= 2.5, spending.guarantee_.epsilon)
5 True 3
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import warnings
import weakref
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sklearn.base import BaseEstimator

from tacit.accounting.filters import (
    GRAINS_PER_DELTA,
    GRAINS_PER_EPSILON,
    GRAINS_PER_RHO,
    BudgetCharge,
)
from tacit.accounting.rounding import digits_above, double_above, double_below
from tacit.arithmetic import Number, to_rational, to_rational_between
from tacit.errors import ErrorCode, ParameterError, Refused
from tacit.learn.facts import read_relation
from tacit.learn.fit_account import (
    ACCOUNTS_VARIABLE,
    AccountTerms,
    accounts_folder,
    clear_removed,
    close_account,
    create_account,
    find_ancestors_accounts,
    has_ended,
    read_account,
    read_told,
    refuse_unreachable,
    remove_account,
    reopen_account,
    reserve_in_all,
    tell,
)
from tacit.learn.fit_warnings import RepeatedFitWarning
from tacit.privacy.guarantee import DpGuarantee, epsilon_from_rho
from tacit.privacy.loss import Compose, Loss

_MOST = Fraction(9000)  # what grains of epsilon hold
_CARRIED = "_carried_accounts"
_MOMENT = 10**9  # nanoseconds: longer ago, changes of a file system are told apart by their times


class FitBudget:
    """The most that the fits of a block may cost together. `budget` makes one.

    **Theorem.** What all fits inside of the block release is `guarantee_`-DP, where one row is one unit and is in each
    fit at most once, whatever number and settings of fits were chosen after the results of others. Proof: every fit is
    charged before it uses a value of the data, to one account, one fit at a time; a fit that no privacy filter of the
    account admits is refused (`FitAccount.reserve`, `is_admitted`). Folds overlap, so fits of different folds are
    composed, and never taken for parallel.

    It covers what the fits release and nothing else: scores on private rows, and what is chosen or computed from these,
    are for whoever holds the rows.

    While the block is open, every fit of the process is charged, in all its threads, and every fit of processes that it
    started; so is a training (`tacit.learn.torch.Private`) that began before and takes a step inside. An estimator that
    is pickled inside of the block is charged to it wherever it is fitted, or refused where the account cannot be
    reached. Inside of several budgets, a fit is charged to each, or refused by one and charged to none. A fit that
    begins after the end of the block is not inside of it. The same budget may be entered again, also inside of itself:
    what was spent stays spent.

    Parameters
    ----------
    epsilon : number
        Privacy loss of all fits together, from 1e-9 to 9000.
    delta : number
        Failure probability of all fits together, in [0, 1).
    neighbors : {"add-remove", "replace"}
        The neighbor relation that the budget is for.

    Attributes
    ----------
    guarantee_ : DpGuarantee
        The (epsilon, delta) of all fits inside, with the neighbor relation.
    spent_ : DpGuarantee
        What the fits so far cost, by the better of basic composition and zCDP. It is a guarantee by itself only if
        results did not decide how many fits there were, and with which settings.
    loss_ : Loss
        The privacy loss of the fits so far, as the accountants read it.
    fits_ : int
        How many fits were charged so far.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> from tacit.learn import budget
    >>> with budget(epsilon=3, delta=1e-6) as spending:
    ...     pass
    >>> spending.fits_
    0
    """

    def __init__(self, epsilon: Number, delta: Number, neighbors: str) -> None:
        limit = to_rational_between("epsilon", epsilon, Fraction(1, 10**9), _MOST)
        lost = to_rational("delta", delta)
        if not 0 <= lost < 1:
            raise ParameterError("delta", f"must be in [0, 1), got {delta!s:.40}", fix="delta=1e-6, say")
        self._terms = AccountTerms(limit, lost, read_relation(neighbors))
        self._charges: list[tuple[BudgetCharge, Loss]] | None = []  # None where the account has more or may have
        self._path: Path | None = None  # from the first block on
        self._is_lost = False
        self._owner = os.getpid()
        self._depth = 0

    def __enter__(self) -> Self:
        with _registry.lock:
            if self._owner != os.getpid():
                what = "a budget is opened in the process that made it"
                raise Refused(
                    ErrorCode.BUDGET, what, fix="call tacit.learn.budget(epsilon=1, delta=1e-6) in this process"
                )
            self._refuse_if_lost()
            if self._path is None:
                self._path = create_account(self._terms)
                _registry.made.add(self._path)
                weakref.finalize(self, _remove_unused, self._path, self._owner).atexit = False
            elif self._depth == 0:
                reopen_account(self._path)
            self._charges = None
            _registry.register(self._path)
            self._depth += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with _registry.lock:
            if self._owner != os.getpid() or self._path is None:  # a fork leaves the block too
                return
            if self._depth > 1:
                self._depth -= 1
                return
            try:
                self._charges = close_account(self._path)
            except Refused:
                if kind is None:
                    self._refuse_if_lost()
                    raise
            finally:  # the charges are in the account, whatever interrupts this
                self._depth = 0
                _registry.unregister(self._path)

    @property
    def guarantee_(self) -> DpGuarantee:
        """The guarantee for all fits inside."""
        return DpGuarantee(self._terms.epsilon, self._terms.delta, self._terms.neighbors)

    @property
    def spent_(self) -> DpGuarantee:
        """What the fits so far cost together; all of the budget where its account was lost."""
        if self._has_lost_account():
            return self.guarantee_
        total = sum((charge for charge, _ in self._read()), BudgetCharge.zero())
        epsilon, lost = Fraction(total.epsilon, GRAINS_PER_EPSILON), Fraction(total.delta_a, GRAINS_PER_DELTA)
        room = self._terms.delta - Fraction(total.delta_b, GRAINS_PER_DELTA)
        if room > 0:
            found = epsilon_from_rho(double_above(Fraction(total.rho, GRAINS_PER_RHO)), double_below(room))
            if found < epsilon:
                return DpGuarantee(Fraction(found), self._terms.delta, self._terms.neighbors)
        return DpGuarantee(epsilon, min(Fraction(1), lost), self._terms.neighbors)

    @property
    def loss_(self) -> Loss:
        """The privacy loss of the fits so far."""
        return Compose(tuple(loss for _, loss in self._read()))

    @property
    def fits_(self) -> int:
        """How many fits were charged."""
        return len(self._read())

    def _read(self) -> list[tuple[BudgetCharge, Loss]]:
        charges = self._charges
        if charges is None:
            self._refuse_if_lost()
            assert self._path is not None
            return read_account(self._path)
        return charges

    def _has_lost_account(self) -> bool:
        """Whether the file of the account is gone. What was charged to it is unknown then, and stays so."""
        self._is_lost = self._is_lost or (self._path is not None and not self._path.exists())
        return self._is_lost

    def _refuse_if_lost(self) -> None:
        if self._has_lost_account():
            what = "the account of this budget was lost, so all of the budget counts as spent"
            raise Refused(ErrorCode.BUDGET, what, fix=f"tacit.learn.budget({self._terms.text}), for other data")


def budget(epsilon: Number, delta: Number = 0, *, neighbors: str = "add-remove") -> FitBudget:
    """Bound what all fits of a `with` block cost together.

    Parameters
    ----------
    epsilon : number
        Privacy loss of all fits together, from 1e-9 to 9000.
    delta : number
        Failure probability of all fits together, in [0, 1). Most fits have a delta of their own, so it is above 0.
    neighbors : {"add-remove", "replace"}
        The neighbor relation. Fits under "add-remove" may be in a budget for "replace", where each costs what it does
        for two rows; not the other way round.

    Returns
    -------
    FitBudget
        A context manager. Fits inside of its block that would overspend are refused before they use the data.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> from tacit.learn import StandardScaler, budget
    >>> scaler = StandardScaler(epsilon=1, delta=0, bounds=(0, 100), rows=100)
    >>> with budget(epsilon=1.5) as spending:
    ...     fitted = scaler.fit([[float(age)] for age in range(100)])
    >>> spending.spent_.epsilon
    Fraction(1, 1)
    """
    return FitBudget(epsilon, delta, neighbors)


class _OpenBudgets:
    """The accounts that are open in this process, and the fits that were in none."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.open: tuple[Path, ...] = ()
        self.made: set[Path] = set()  # by this process
        self.outside: list[DpGuarantee] = []  # the first two fits that were in none

    def register(self, path: Path) -> None:
        """Charge fits to an account from now on, and those of processes that are started."""
        if path not in self.open:
            self.open = (*self.open, path)
        tell([*read_told(), path])  # beside those that this process was told of

    def unregister(self, path: Path) -> None:
        """Charge fits to an account no longer."""
        self.open = tuple(known for known in self.open if known != path)
        tell(known for known in read_told() if known != path)

    def begin_in_fork(self) -> None:
        """Forget who held the lock: in a fork that thread does not exist. What is open stays so, made by another."""
        self.lock = threading.RLock()
        self.made = set()


_registry = _OpenBudgets()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_registry.begin_in_fork)


def _remove_unused(path: Path, owner: int) -> None:
    """Remove the file of a budget that nobody can enter again; not inside of its block, and not in a fork."""
    if os.getpid() == owner and path not in _registry.open:
        remove_account(path)


@atexit.register
def _remove_all() -> None:
    """Remove the accounts of this process at its end. One whose block has not ended stays, for processes that go on."""
    for path in _registry.made - set(_registry.open):
        remove_account(path)
        clear_removed(path)


class BudgetedEstimator(BaseEstimator):
    """An estimator that takes the budgets of its process along when it is pickled or cloned."""

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in super().__getstate__().items() if name != _CARRIED}
        carried = _own_and_carried(self)
        return {**state, _CARRIED: carried} if carried else state

    def __sklearn_clone__(self) -> Any:
        copy = super().__sklearn_clone__()
        if hasattr(self, _CARRIED):
            setattr(copy, _CARRIED, getattr(self, _CARRIED))
        return copy


def _own_and_carried(estimator: object) -> tuple[str, ...]:
    """The file of each account that a fit of this estimator is charged to, but for ancestors'."""
    # Those that this process made are charged while their block is open, and no longer.
    carried = [path for path in getattr(estimator, _CARRIED, ()) if Path(path) not in _registry.made]
    return tuple(dict.fromkeys([*carried, *map(str, _list_open())]))


def _list_open() -> list[Path]:
    """The accounts that are open in this process; those that a fork inherited may have ended."""
    return [path for path in _registry.open if path in _registry.made or not has_ended(path)]


def check_public(public: bool) -> bool:
    """Whether rows are said to be public; an error where something else is said."""
    if not isinstance(public, bool):
        raise ParameterError("public", "must be True or False", fix="public=True, for rows that are no secret")
    return public


def charge_fit(estimator: object, guarantee: DpGuarantee, loss: Loss, *, public: bool = False) -> None:
    """Charge a fit to all budgets that it is inside of, before it uses data; Refused where one does not admit it.

    A fit of public rows is free. The second fit of a process that is in no budget warns, once, of what they cost
    together.
    """
    if not check_public(public):
        FitCharge().update(estimator, lambda: (guarantee, loss))


class FitCharge:
    """The charge of one fit, which may go on in steps while budgets are opened.

    **Theorem.** A fit whose every step begins with `update` is charged, as a whole, to every budget that a step is
    inside of: once in each process that takes steps. So what it releases inside of the block of a budget is among what
    the budget bounds, whether or not the fit began there. Proof: what is left of a fit loses at most what all of it
    does. Accounts are looked for anew after whatever a new one changes: the budgets of this process, what it was told
    of, or the folder of accounts. A file system may give changes of the same moment the same time, so a folder is
    looked through as long as its last change is less than a second old.
    """

    def __init__(self) -> None:
        self._charged: set[Path] = set()
        self._process = 0  # that began it, or goes on with it
        self._seen: object = None

    def update(self, estimator: object, price: Callable[[], tuple[DpGuarantee, Loss]]) -> None:
        """Charge the fit to the budgets that it is inside of now and was not; Refused where one does not admit it."""
        seen = _observe_accounts()
        if seen == self._seen:
            return
        is_new = self._process != os.getpid()
        charged = set() if is_new else self._charged
        ancestors = {path for path in find_ancestors_accounts() if path not in _registry.made}
        paths = ({Path(path) for path in _own_and_carried(estimator)} | ancestors) - charged
        if paths:
            reserve_in_all(paths, *price())
        elif is_new and _registry.open:  # the block that this fork was made in has ended, and it is in no other
            raise refuse_unreachable()
        elif is_new:
            _count_outside(price()[0])
        self._charged, self._process, self._seen = charged | paths, os.getpid(), seen


def _observe_accounts() -> object:
    """What is another thing whenever a budget may have been opened for this process."""
    try:
        changed = accounts_folder().stat().st_mtime_ns
    except OSError:
        changed = 0
    if abs(time.time_ns() - changed) < _MOMENT:
        return object()
    return os.getpid(), _registry.open, os.environ.get(ACCOUNTS_VARIABLE), changed


def _count_outside(guarantee: DpGuarantee) -> None:
    with _registry.lock:
        if len(_registry.outside) == 2:
            return
        _registry.outside.append(guarantee)
        fits = list(_registry.outside)
    if len(fits) == 2:
        epsilon = sum((fit.epsilon for fit in fits), Fraction(0))
        delta = sum((fit.delta for fit in fits), Fraction(0))
        what = (
            f"two fits of this process were in no budget: together they cost epsilon {float(epsilon):.6g}, "
            f"delta {float(delta):.3g} if they learned from the same people, and every other fit adds to that"
        )
        fix = f"with tacit.learn.budget(epsilon={digits_above(epsilon)}, delta={digits_above(2 * delta)}): ..."
        warnings.warn(RepeatedFitWarning(what, fix=fix), stacklevel=5)
