"""Several questions to each user: one of them at the full epsilon, or all of them at a part of it.

>>> from tacit.local.k_ary import KAryRandomizedResponse
>>> compared = compare_strategies(KAryRandomizedResponse, domains=(2, 5, 10), epsilon=1, users=30_000)
>>> compared.better
<BudgetStrategy.ONE: 'one'>
>>> [round(all_ / one, 1) for one, all_ in zip(compared.one, compared.all, strict=True)]
[3.2, 4.8, 5.5]
>>> poisoned_share(0.01, 5)  # one percent of all users, all on one of five questions: 4.8 percent of its reports
0.04807692307692308

Where each user is assigned at random to one of several parts (questions, levels of a tree, rounds), each part is a
survey of its own, and malicious users choose theirs.

**Theorem** (poisoning). Let a honest and L malicious users report in a part, whose protocol has the probabilities p and
q, and let b of the malicious ones have been assigned there. The estimates then move by at most
max(L/(a + L), b/(a + b))/(p - q) from what the same users' honest reports would have given. If a share m of all users
is malicious and the honest ones are spread evenly over d parts, this is at most (d m/(1 + (d - 1) m))/(p - q), and
malicious users who all choose one part reach it.

**Proof.** An estimate is an average over the reports of numbers in a range of 1/(p - q). Two averages that have a of
their terms in common differ by at most the share of the others, the larger of both: where it is L/(a + L), take the
common terms at one end and the malicious ones at the other. Of n users, a = (1 - m) n/d, and both b and L are at most
m n. The number a is binomial: it is below its mean by a share t with a probability of at most
exp(-t^2 (1 - m) n/(2 d)).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tacit.arithmetic import Number, to_integer, to_integers, to_rational_between
from tacit.errors import ErrorCode, ParameterError, Refused
from tacit.local.frequency_oracle import FrequencyOracle, Reports, as_array
from tacit.local.summary import FrequencySummary
from tacit.mechanisms.validation import check_epsilon
from tacit.privacy.loss import Compose, Loss, PureDp
from tacit.sampling.bits import Bits
from tacit.sampling.uniform import draw_array_below

OracleFactory = Callable[[int, Fraction], FrequencyOracle]


class BudgetStrategy(StrEnum):
    """How a user's epsilon is spent on several questions: all of it on ONE drawn at random, or a part of it on ALL."""

    ONE = "one"
    ALL = "all"


@dataclass(frozen=True)
class MultiAttributeProtocol:
    """Several questions to each user, with one privacy loss for all answers together.

    By `BudgetStrategy.ONE`, a user draws one question at random, says which, and answers it at epsilon; by `ALL`, every
    question is answered at epsilon divided by their number.

    **Theorem.** Both are epsilon-LDP for all of a user's answers together: by ONE the question drawn is independent of
    the answers, and given it one report is sent; by ALL the epsilons add up.

    **Theorem** (ONE is better for rare values). With d questions, n times the variance at f = 0 is d V(epsilon) by ONE
    and V(epsilon/d) by ALL, and V(epsilon/d) >= d^2 V(epsilon) for k-ary answers and both unary encodings: ONE has at
    most a d-th of the variance. Proof: V is (E + k - 2)/(E - 1)^2, 4 E/(E - 1)^2, or the latter's quarter with the root
    of E. Put x = E^(1/d) and S = (x^d - 1)/(x - 1) = 1 + x + ... + x^(d-1). S^2 >= d^2, and S^2 x >= d^2 x^d, as the
    mean of the powers is at least their geometric mean x^((d-1)/2).

    **Theorem** (the users drawn). By ONE the intervals of a question, which are for those who were asked it, hold for
    all users with the same confidence. Proof: given how many were asked, they are a random subset; the generating
    function of its support count is an elementary symmetric polynomial in factors 1 - c + c z, which has real roots
    only, so the count is a sum of independent Bernoulli variables, with the mean of all users. `estimates.py` needs no
    more.

    **Theorem** (poisoning). By ALL, a share m of malicious users moves an estimate by at most m/(p - q). By ONE they
    choose their question: all on one of d, they move it by up to (d m/(1 + (d - 1) m))/(p - q), as the module's
    docstring proves.

    Parameters
    ----------
    make : callable (domain, epsilon) -> FrequencyOracle
        Makes the protocol of a question, usually a class such as `KAryRandomizedResponse`.
    domains : sequence of int
        The number of values of each question, at least 2 each.
    epsilon : number
        The privacy loss of all of a user's answers together, above 0.
    strategy : BudgetStrategy or {"one", "all"}, default "one"
        How epsilon is spent: all of it on one question drawn at random, or an equal part on every question.

    Raises
    ------
    ParameterError
        Where there are no questions, or a parameter is outside its range.

    Examples
    --------
    >>> from tacit.local import KAryRandomizedResponse, MultiAttributeProtocol
    >>> from tacit.sampling.bits import ReplayBits
    >>> protocol = MultiAttributeProtocol(KAryRandomizedResponse, domains=(2, 5, 10), epsilon=2)
    >>> rows = [(1, 4, 9)] * 6_000 + [(0, 4, 2)] * 3_000  # one row of answers for each user
    >>> summaries = protocol.collect(protocol.encode(rows, ReplayBits(b"example")))
    >>> [round(float(summary.estimate().frequencies.max()), 1) for summary in summaries]
    [0.7, 1.0, 0.7]
    """

    make: OracleFactory
    domains: tuple[int, ...]
    epsilon: Fraction
    strategy: BudgetStrategy = BudgetStrategy.ONE

    if TYPE_CHECKING:  # sequences, numbers and names are converted below

        def __init__(
            self,
            make: OracleFactory,
            domains: Sequence[int],
            epsilon: Number,
            strategy: BudgetStrategy | str = BudgetStrategy.ONE,
        ) -> None: ...

    def __post_init__(self) -> None:
        domains = tuple(to_integer("domains", domain, least=2) for domain in to_integers("domains", self.domains))
        if not domains:
            raise ParameterError("domains", "has no questions", fix="domains=(2, 5)")
        object.__setattr__(self, "domains", domains)
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        if self.strategy not in list(BudgetStrategy):
            raise ParameterError("strategy", 'must be "one" or "all"', fix='strategy="one"')
        object.__setattr__(self, "strategy", BudgetStrategy(self.strategy))

    @property
    def protocols(self) -> tuple[FrequencyOracle, ...]:
        """The protocol of each question, at the epsilon that the strategy leaves it."""
        each = self.epsilon if self.strategy is BudgetStrategy.ONE else self.epsilon / len(self.domains)
        return tuple(self.make(domain, each) for domain in self.domains)

    def loss(self) -> Loss:
        """Return the privacy loss of all of a user's answers together, for the accountant.

        Returns
        -------
        Loss
            `PureDp(epsilon)` by ONE; by ALL the composition of the questions' losses, which add up to it.
        """
        if self.strategy is BudgetStrategy.ONE:
            return PureDp(self.epsilon)
        return Compose(tuple(protocol.loss() for protocol in self.protocols))

    def encode(self, rows: npt.ArrayLike, bits: Bits) -> list[Reports]:
        """Randomize the answers of many users.

        Parameters
        ----------
        rows : array_like of int, shape (users, questions)
            One row for each user, with the value of each question, from 0 to its domain - 1.
        bits : Bits
            Source of randomness: `SystemBits()` in production, `ReplayBits(seed)` for a reproducible simulation.

        Returns
        -------
        list of ndarray
            The reports on each question: of the users who drew it by ONE, of all users by ALL.

        Raises
        ------
        ParameterError
            Where the rows are not integers of the domains, one column for each question.
        """
        table = as_array(rows)
        if table.shape == (0,):  # no users: a list without rows does not say how long they are
            table = np.zeros((0, len(self.domains)), dtype=np.int64)
        if table.ndim != 2 or table.dtype.kind not in "iu" or table.shape[1] != len(self.domains):
            what = f"needs a row of {len(self.domains)} integers for each user"
            raise ParameterError("rows", what, fix="one column for each question")
        columns = list(table.T)
        if self.strategy is BudgetStrategy.ONE:
            asked = draw_array_below(len(self.domains), len(table), bits)
            columns = [column[asked == number] for number, column in enumerate(columns)]
        return [protocol.encode(column, bits) for protocol, column in zip(self.protocols, columns, strict=True)]

    def collect(self, reports: Sequence[npt.ArrayLike], survey: str = "") -> list[FrequencySummary]:
        """Summarize the reports on each question.

        Parameters
        ----------
        reports : sequence of array_like
            The reports on each question, as `encode` returns them.
        survey : str, default ""
            A name, to which the question's number is appended. Summaries of two names do not merge.

        Returns
        -------
        list of FrequencySummary
            One for each question, in order.

        Raises
        ------
        Refused
            With the code `report`, where a report is not one that its question's protocol sends.
        """
        if len(reports) != len(self.domains):
            what = f"needs {len(self.domains)} lists of reports, one for each question, got {len(reports)}"
            raise Refused(ErrorCode.REPORT, what, fix="give what encode returned")
        empty = [FrequencySummary.empty(each, f"{survey} {number}") for number, each in enumerate(self.protocols)]
        return [summary.add(part) for summary, part in zip(empty, reports, strict=True)]

    def variance(self, users: int, question: int, frequency: float = 0.0) -> float:
        """Compute the variance of the estimate of a value's frequency.

        By ONE it includes the variance of drawing the users of a question from a large population.

        Parameters
        ----------
        users : int
            The number of users over all questions, at least 1. The variance is in proportion to 1/users.
        question : int
            The number of the question, from 0 on.
        frequency : float, default 0
            The share of users who truly have the value, from 0 to 1.

        Returns
        -------
        float
            The variance in squared shares.
        """
        protocol, count = self.protocols[self._number(question)], to_integer("users", users, least=1)
        found = protocol.variance(count, frequency)
        if self.strategy is BudgetStrategy.ALL:
            return found
        return len(self.domains) * (found + frequency * (1 - frequency) / count)

    def influence(self, malicious: Number, question: int | None = None) -> float:
        """Bound how far malicious users can move an estimate.

        By ONE the bound is for honest users who are spread evenly over the questions, as they are in expectation.

        Parameters
        ----------
        malicious : number
            The share of users, from 0 to 1, who choose their question and send any well-formed report.
        question : int, optional
            The number of the question, from 0 on. The largest bound of all questions by default.

        Returns
        -------
        float
            The largest change of a value's estimated share.
        """
        if question is None:
            return max(self.influence(malicious, number) for number in range(len(self.domains)))
        share = poisoned_share(malicious, len(self.domains) if self.strategy is BudgetStrategy.ONE else 1)
        return self.protocols[self._number(question)].influence(share)

    def _number(self, question: int) -> int:
        number = to_integer("question", question, least=0)
        if number >= len(self.domains):
            raise ParameterError("question", f"must be from 0 to {len(self.domains) - 1}", fix="question=0")
        return number


@dataclass(frozen=True)
class StrategyComparison:
    """The variances of the two strategies for several questions.

    Attributes
    ----------
    one, all : tuple of float
        The variance of each question's estimates, by ONE and by ALL.
    better : BudgetStrategy
        The strategy with the smaller sum of variances.
    """

    one: tuple[float, ...]
    all: tuple[float, ...]
    better: BudgetStrategy


def compare_strategies(
    make: OracleFactory, domains: Sequence[int], epsilon: Number, users: int, frequency: float = 0.0
) -> StrategyComparison:
    """Compare the variances of both strategies at one frequency.

    At a large epsilon ALL is better for common values: the variance of drawing users exceeds that of the noise.

    Parameters
    ----------
    make : callable (domain, epsilon) -> FrequencyOracle
        Makes the protocol of a question, usually a class such as `KAryRandomizedResponse`.
    domains : sequence of int
        The number of values of each question, at least 2 each.
    epsilon : number
        The privacy loss of all of a user's answers together, above 0.
    users : int
        The number of users over all questions, at least 1. It scales all variances alike.
    frequency : float, default 0
        The share of users who truly have the value, from 0 to 1. 0 compares the strategies for rare values.

    Returns
    -------
    StrategyComparison
        The variances of each question by both strategies, and the `better` strategy.

    Examples
    --------
    >>> from tacit.local import KAryRandomizedResponse, compare_strategies
    >>> compare_strategies(KAryRandomizedResponse, domains=(2, 5, 10), epsilon=1, users=30_000).better
    <BudgetStrategy.ONE: 'one'>
    >>> compare_strategies(KAryRandomizedResponse, domains=(2, 2), epsilon=3, users=30_000, frequency=0.5).better
    <BudgetStrategy.ALL: 'all'>
    """
    one, every = (
        tuple(protocol.variance(users, number, frequency) for number in range(len(protocol.domains)))
        for protocol in (
            MultiAttributeProtocol(make, domains, epsilon, strategy)
            for strategy in (BudgetStrategy.ONE, BudgetStrategy.ALL)
        )
    )
    return StrategyComparison(one, every, BudgetStrategy.ONE if sum(one) <= sum(every) else BudgetStrategy.ALL)


def poisoned_share(malicious: Number, parts: int) -> float:
    """Return the share of malicious reports in a part, where all malicious users choose the same of so many parts."""
    share = to_rational_between("malicious", malicious, Fraction(0), Fraction(1))
    return float(parts * share / (1 + (parts - 1) * share))


def check_one_survey(
    summaries: Sequence[FrequencySummary], protocols: Sequence[FrequencyOracle], parts: Sequence[str], what: str
) -> None:
    """Refuse summaries that are not one for each part, in order, all of one survey."""
    fix = "give all that collect returned, in its order"
    if [summary.protocol for summary in summaries] != list(protocols):
        raise Refused(
            ErrorCode.REPORT, f"these are not the {len(parts)} {what}: one is missing, or of another protocol", fix=fix
        )
    ends = [(summary.survey, f" {part}") for summary, part in zip(summaries, parts, strict=True)]
    if not all(name.endswith(end) for name, end in ends):
        raise Refused(
            ErrorCode.REPORT, f"these are not the {what}: they are in another order, or not from collect", fix=fix
        )
    if len({name.removesuffix(end) for name, end in ends}) > 1:
        raise Refused(ErrorCode.REPORT, f"these {what} are of two surveys", fix="give those of one survey")
