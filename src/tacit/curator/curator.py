"""The curator, and an analyst's view of it.

curator = tacit.open("clinic.toml")
ada = curator.analyst("ada")
ada.ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=0.5)
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType

from tacit.analyst import Analyst, Model
from tacit.answers.analyst_budget import AnalystBudget
from tacit.answers.answer import Answer
from tacit.answers.data_profile import DataProfile
from tacit.answers.explanation import Explanation
from tacit.answers.schema import Schema
from tacit.arithmetic import Number
from tacit.curator.admission import explain_question
from tacit.curator.ask import ask, can_list
from tacit.curator.describe_schema import describe_schema
from tacit.curator.profile import find_profile, release_profile
from tacit.curator.resources import find_last_opening, open_engine, open_ledger
from tacit.curator.tables import check_join_columns, find_live_tables
from tacit.engines.base import Engine, NothingSent
from tacit.errors import ErrorCode, PolicyError, Refused
from tacit.ledger.entries import Reservation
from tacit.ledger.ledger import Ledger
from tacit.plan.planner import KEY_VERSION, Planner
from tacit.plan.question import Question
from tacit.policy.load import load
from tacit.policy.model import Policy
from tacit.query.ibis_expressions import IbisExpression
from tacit.sampling.bits import Bits, SystemBits

_log = logging.getLogger("tacit")
_log.addHandler(logging.NullHandler())  # silent unless the owner listens: its causes are not for analysts


def open(
    policy: str | os.PathLike[str] | Mapping[str, object],
    data: Mapping[str, object] | None = None,
    *,
    progress: Callable[[str, float], None] | None = None,
) -> Curator:
    """Open a curator for a policy, and read its data: once for each epoch, into a copy that all questions use.

    Parameters
    ----------
    policy : path or mapping
        A TOML file, or the same as a dict: which tables and columns may be asked about, who is protected, the budget
        and the analysts.
    data : mapping of str to table, optional
        pandas, polars, Arrow or Spark tables by name, in place of the policy's source.
    progress : callable, optional
        Called with what is being read and the share of it that is, from 0 to 1, where a large source is read into a
        file.

    Returns
    -------
    Curator
        Holds the data and the ledger until it is closed; it is a context manager.

    Raises
    ------
    PolicyError
        If the policy does not say what it must.
    DataError
        If the data is not what the policy declares.
    LedgerError
        If the ledger cannot be trusted or reached, or the epoch began with other data.

    Examples
    --------
    >>> import tempfile
    >>> import pyarrow, tacit
    >>> folder = tempfile.TemporaryDirectory()
    >>> policy = {
    ...     "privacy": {"epsilon": 3.0},
    ...     "ledger": {"store": f"{folder.name}/survey.ledger"},
    ...     "analysts": {"ada": {"epsilon": 1.0}},
    ...     "tables": {"survey": {"unit": "row", "columns": {"hours": {"type": "int", "lower": 0, "upper": 80}}}},
    ... }
    >>> survey = pyarrow.table({"hours": [38, 40, 12, 55, 41] * 400})
    >>> with tacit.open(policy, data={"survey": survey}) as curator:
    ...     answer = curator.analyst("ada").ask("SELECT COUNT(*) AS n FROM survey", epsilon=0.5)
    >>> answer.columns
    ('n',)
    >>> folder.cleanup()
    """
    loaded, known = load_current(policy)
    return open_policy(loaded, data, progress=progress, known=known)


def load_current(policy: str | os.PathLike[str] | Mapping[str, object]) -> tuple[Policy, int]:
    """The policy, and the number of the entry by which its ledger was opened last, both as they are at one moment.

    **Theorem.** No opening with another policy comes after that moment and is undone by one with this policy. Proof:
    the policy was the same before and after the ledger was looked at, and the number tells the opening which entries
    it has not seen (`ledger/consistency.py`).
    """
    loaded = load(policy)
    known = find_last_opening(loaded)
    if load(policy) != loaded:
        raise PolicyError(ErrorCode.POLICY, "the policy was edited while it was read", fix="open it again")
    return loaded, known


def open_policy(
    policy: Policy,
    data: Mapping[str, object] | None = None,
    *,
    progress: Callable[[str, float], None] | None = None,
    known: int | None = None,
) -> Curator:
    """Open a curator for a policy that is loaded. `known` is the last opening of its ledger when that was done."""
    known = find_last_opening(policy) if known is None else known
    engine = open_engine(policy, data, progress or (lambda what, share: None))
    try:
        check_join_columns(policy, engine)
        return Curator(policy, engine, open_ledger(policy, engine, known), SystemBits())
    except BaseException:
        engine.close()
        raise


class Curator:
    """Holds the data and answers for it; `tacit.open` makes one.

    **Theorem.** Whatever is asked, by whom and in what order, each question chosen after seeing all answers before it,
    the answers together are (epsilon, delta)-DP for the policy's unit and neighbors, with the policy's epsilon and
    delta. (`curator/ask.py` has the proof.)

    Parameters
    ----------
    policy : Policy
        What may be asked, who is protected, and how much may be spent.
    engine : Engine
        Computes the exact integers that noise is added to.
    ledger : Ledger
        Where every charge is written before data is read.
    bits : Bits
        Source of the random bits of the noise: `SystemBits`, except for made-up data.

    Examples
    --------
    >>> from tacit.demo.survey import open_survey
    >>> with open_survey() as curator:
    ...     ada = curator.analyst("ada")
    ...     ada.ask("SELECT COUNT(*) AS n FROM survey", epsilon=0.5).columns
    ('n',)
    """

    def __init__(self, policy: Policy, engine: Engine, ledger: Ledger, bits: Bits) -> None:
        self.policy = policy
        self.engine = engine
        self.ledger = ledger
        self.bits = bits
        self.live_tables = find_live_tables(policy, engine)
        knows_only = ledger.former_lookup(KEY_VERSION)
        self.planner = Planner(policy, knows_only=knows_only, can_list=lambda read: can_list(read, engine))
        self._is_closed = False

    def analyst(self, name: str) -> Analyst:
        """Return the view of an analyst.

        Parameters
        ----------
        name : str
            A name of the policy's [analysts].

        Returns
        -------
        Analyst
            Asks questions at the charge of that analyst's budget.

        Raises
        ------
        Refused
            If the policy names no such analyst.
        """
        if self.policy.analyst(name) is None:
            raise Refused(
                ErrorCode.UNKNOWN_ANALYST, f"there is no analyst {name!r}", fix="ask the owner to add you to the policy"
            )
        return LocalAnalyst(self, name)

    def fit(
        self,
        estimator: Model,
        sql: str | IbisExpression,
        target: str,
        analyst: str,
        epsilon: Number,
        *,
        delta: Number | None = None,
        request: str = "",
    ) -> Model:
        """Fit a model for an analyst; see `Analyst.fit`.

        Parameters
        ----------
        estimator : estimator of tacit.learn
            What to fit; it is copied, not changed.
        sql : str or ibis.Expr
            Selects the columns of rows to learn from.
        target : str
            The column to predict.
        analyst : str
            The analyst who is charged.
        epsilon : number
            Privacy loss to spend, above 0.
        delta : number, optional
            By default the policy's for one question.
        request : str, optional
            Names the fit, so that repeating it after a lost connection is charged once.

        Returns
        -------
        estimator of tacit.learn
            A fitted copy.

        Raises
        ------
        Refused
            Before any data is read; nothing is charged.
        """
        return self.analyst(analyst).fit(estimator, sql, target=target, epsilon=epsilon, delta=delta, request=request)

    def profile(
        self,
        epsilon: Number,
        *,
        tables: Iterable[str] | None = None,
        progress: Callable[[str, float], None] | None = None,
    ) -> DataProfile:
        """Release noisy histograms of all columns, for the owner to choose bounds by and for everyone to see.

        **Theorem.** It is (epsilon, delta)-DP for the policy's unit and neighbors, with delta at most the policy's for
        one question, and 0 unless texts without declared values are profiled. It counts against the overall budget.
        (`curator/profile.py` has the proof.)

        Parameters
        ----------
        epsilon : number
            Privacy loss of the whole profile, above 0; shared equally by all histograms.
        tables : iterable of str, optional
            Names of private tables; by default all of them.
        progress : callable, optional
            Called with the table that is read and the share that is done, from 0 to 1.

        Returns
        -------
        DataProfile
            Quantiles, shares of NULL, common keys and rows per unit, and the receipt. The same profile again is free
            and equal, and analysts see it in their `schema`.

        Raises
        ------
        Refused
            If the overall budget has too little left; nothing is charged.
        ParameterError
            If epsilon is out of range, or there is no such private table; nothing is charged.
        Failed
            After the charge, which stays; nothing was released.

        Examples
        --------
        >>> from tacit.demo.survey import open_survey
        >>> with open_survey() as curator:
        ...     profile = curator.profile(epsilon=0.5)
        ...     hours = profile.table("survey").column("hours")
        >>> hours.histogram.quantile(0.5).low
        Fraction(32, 1)
        """
        return release_profile(self, epsilon, tables, progress or (lambda what, share: None))

    def note_failure(self, claim: Reservation, cause: BaseException) -> bytes | None:
        """Record that a charge came to nothing. The cause goes to the owner's log, never to the analyst.

        Live tables that the question reads are locked, unless no statement was run (`ledger/table_locks.py`).

        Parameters
        ----------
        claim : Reservation
            The charge, as the ledger gave it out.
        cause : BaseException
            What went wrong, which may tell of rows.

        Returns
        -------
        bytes or None
            The answer, where the charge was answered meanwhile by whoever took it up: it stands.
        """
        _log.error("entry %d failed", claim.entry, exc_info=cause)
        kind = f"{type(cause).__module__}.{type(cause).__qualname__}"
        return self.ledger.fail(claim, cause=kind, sent=not isinstance(cause, NothingSent))

    def schema(self) -> Schema:
        """Return what may be asked about, with the profile of the data that was released last, if there is one.

        Returns
        -------
        Schema
            Tables, columns, bounds and keys, all that the policy declares: `Analyst.schema` has what one analyst may
            name. Free, and no data is read.
        """
        return describe_schema(self.policy, find_profile(self.ledger))

    def close(self) -> None:
        """Close the data and the ledger; once is enough."""
        if not self._is_closed:
            self._is_closed = True
            self.engine.close()
            self.ledger.close()

    def __enter__(self) -> Curator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class LocalAnalyst(Analyst):
    """An analyst of a curator in this process; `Curator.analyst` makes one."""

    def __init__(self, curator: Curator, name: str) -> None:
        self._curator, self._name = curator, name

    @property
    def name(self) -> str:
        """Who asks."""
        return self._name

    def _ask(self, question: Question) -> Answer:
        return ask(question, self.name, self._curator)

    def _explain(self, question: Question) -> Explanation:
        plan = self._curator.planner.plan(question, self.name)
        return explain_question(question, plan, self.name, self._curator)

    def _fit(
        self,
        estimator: Model,
        text: str,
        target: str,
        epsilon: Number,
        delta: Number | None,
        request: str,
        dialect: str | None,
    ) -> Model:
        from tacit.curator.fit import fit

        return fit(estimator, text, target, self.name, self._curator, epsilon, delta, request, dialect)

    @property
    def budget(self) -> AnalystBudget:
        """What is spent and what is left."""
        ledger = self._curator.ledger
        return AnalystBudget(self.name, ledger.standing(self.name), ledger.overall(), ledger.month(self.name))

    @property
    def schema(self) -> Schema:
        """What this analyst may ask about."""
        return describe_schema(self._curator.policy.asked_by(self.name), find_profile(self._curator.ledger))

    def __repr__(self) -> str:
        return f"<Analyst {self.name}: {self.budget}>"
