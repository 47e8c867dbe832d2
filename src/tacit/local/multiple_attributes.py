"""Several questions to each person: one of them at the full price, or all of them at a share of it.

>>> from tacit.local.k_ary import KAryRandomizedResponse
>>> compared = compare_strategies(KAryRandomizedResponse, domains=(2, 5, 10), epsilon=1, users=30_000)
>>> compared.better
<BudgetStrategy.ONE: 'one'>
>>> [round(all_ / one, 1) for one, all_ in zip(compared.one, compared.all, strict=True)]
[3.2, 4.8, 5.5]
>>> poisoned_share(0.01, 5)  # one percent of all, gathered on one of five questions: 4.8 percent of its answers
0.04807692307692308

Where each person is drawn for one of several parts (questions, levels of a tree, rounds), each part is a survey of its
own, and those who lie choose theirs.

**Theorem** (poisoning). Let a honest people and L liars answer in a part, whose protocol has the probabilities p and q,
and let b of the liars have been drawn there. The estimates then move by at most max(L/(a + L), b/(a + b))/(p - q) from
what the same people's honest reports would have given. If a share m of all people lie and the honest ones are spread
evenly over d parts, this is at most (d m/(1 + (d - 1) m))/(p - q), and liars who all gather in one part reach it.

**Proof.** An estimate is an average over those who answer, of numbers in a range of 1/(p - q). Two averages that have a
of their terms in common differ by at most the share of the others, the larger of both: where it is L/(a + L), take the
common terms at one end and the liars' at the other. Of n people, a = (1 - m) n/d, and both b and L are at most m n.
The number a is binomial: it is below its mean by a share t with a probability of at most exp(-t^2 (1 - m) n/(2 d)).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.arithmetic import to_integer, to_integers, to_rational_between
from tacit.errors import ErrorCode, ParameterError, Refused
from tacit.local.frequency_oracle import FrequencyOracle, Reports, as_array
from tacit.local.summary import FrequencySummary
from tacit.mechanisms.validation import check_epsilon
from tacit.privacy.loss import Compose, Loss, PureDp
from tacit.sampling.bits import Bits
from tacit.sampling.uniform import draw_array_below

OracleFactory = Callable[[int, Fraction], FrequencyOracle]


class BudgetStrategy(StrEnum):
    """How a person's epsilon is spent on several questions."""

    ONE = "one"
    ALL = "all"


@dataclass(frozen=True)
class MultiAttributeProtocol:
    """Questions with so many values each. By `EPSILON_ONE`, a person draws one question, says which, and answers it at
    epsilon; by `ALL_ANALYSTS`, every question is answered at epsilon divided by their number.

    **Theorem.** Both are epsilon-LDP for all of a person's answers together: by ONE the question drawn says nothing of
    the answers, and given it one report is sent; by ALL the epsilons add up.

    **Theorem** (one is better for rare values). With d questions, n times the variance at f = 0 is d V(epsilon) by ONE
    and V(epsilon/d) by ALL, and V(epsilon/d) >= d^2 V(epsilon) for k-ary answers and both unary encodings: ONE has at
    most a d-th of the variance. Proof: V is (E + k - 2)/(E - 1)^2, 4 E/(E - 1)^2, or the latter's quarter with the root
    of E. Put x = E^(1/d) and S = (x^d - 1)/(x - 1) = 1 + x + ... + x^(d-1). S^2 >= d^2, and S^2 x >= d^2 x^d, as the
    mean of the powers is at least their geometric mean x^((d-1)/2).

    **Theorem** (the people drawn). By ONE the intervals of a question, which are for those who were asked it, hold for
    everyone with the same confidence. Proof: given how many were asked, they are a random subset; the generating
    function of its support count is an elementary symmetric polynomial in factors 1 - c + c z, which has real roots
    only, so the count is a sum of independent coins, with the mean of everyone's. `estimates.py` asks for no more.

    **Theorem** (poisoning). By ALL, a share m of liars moves an estimate by at most m/(p - q). By ONE they choose their
    question: all on one of d, they move it by up to (d m/(1 + (d - 1) m))/(p - q), as the module's docstring proves.
    """

    make: OracleFactory
    domains: tuple[int, ...]
    epsilon: Fraction
    way: BudgetStrategy = BudgetStrategy.ONE

    def __post_init__(self) -> None:
        domains = tuple(to_integer("domains", domain, least=2) for domain in to_integers("domains", self.domains))
        if not domains:
            raise ParameterError("domains", "there are no questions", fix="domains=(2, 5), say")
        object.__setattr__(self, "domains", domains)
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        if self.way not in list(BudgetStrategy):
            raise ParameterError("way", "is neither one nor all", fix="way=Way.ONE, say")
        object.__setattr__(self, "way", BudgetStrategy(self.way))

    @property
    def protocols(self) -> tuple[FrequencyOracle, ...]:
        """The protocol of each question."""
        each = self.epsilon if self.way is BudgetStrategy.ONE else self.epsilon / len(self.domains)
        return tuple(self.make(domain, each) for domain in self.domains)

    def loss(self) -> Loss:
        """What one person's answers cost together."""
        if self.way is BudgetStrategy.ONE:
            return PureDp(self.epsilon)
        return Compose(tuple(protocol.loss() for protocol in self.protocols))

    def encode(self, rows: Any, bits: Bits) -> list[Reports]:
        """The reports on each question, from a row of answers for each person."""
        table = as_array(rows)
        if table.shape == (0,):  # nobody: a list without rows does not say how long they are
            table = np.zeros((0, len(self.domains)), dtype=np.int64)
        if table.ndim != 2 or table.dtype.kind not in "iu" or table.shape[1] != len(self.domains):
            raise ParameterError("rows", "needs a row of integers for each person", fix="one column a question")
        columns = list(table.T)
        if self.way is BudgetStrategy.ONE:
            asked = draw_array_below(len(self.domains), len(table), bits)
            columns = [column[asked == number] for number, column in enumerate(columns)]
        return [protocol.encode(column, bits) for protocol, column in zip(self.protocols, columns, strict=True)]

    def collect(self, reports: Sequence[Any], survey: str = "") -> list[FrequencySummary]:
        """A summary for each question."""
        if len(reports) != len(self.domains):
            raise Refused(ErrorCode.REPORT, "there is not one list of reports a question", fix="send what encode made")
        empty = [FrequencySummary.empty(each, f"{survey} {number}") for number, each in enumerate(self.protocols)]
        return [summary.add(part) for summary, part in zip(empty, reports, strict=True)]

    def variance(self, users: int, question: int, frequency: float = 0.0) -> float:
        """The variance of the estimate of a value's share. By ONE it has the draw of people in it, as from many."""
        protocol, count = self.protocols[self._number(question)], to_integer("users", users, least=1)
        found = protocol.variance(count, frequency)
        if self.way is BudgetStrategy.ALL:
            return found
        return len(self.domains) * (found + frequency * (1 - frequency) / count)

    def influence(self, lying: Any, question: int | None = None) -> float:
        """The most by which a share of `lying` people move an estimate of this question, or of any of them.

        By ONE that is where those who tell the truth are spread evenly over the questions, as they are in the mean.
        """
        if question is None:
            return max(self.influence(lying, number) for number in range(len(self.domains)))
        share = poisoned_share(lying, len(self.domains) if self.way is BudgetStrategy.ONE else 1)
        return self.protocols[self._number(question)].influence(share)

    def _number(self, question: int) -> int:
        number = to_integer("question", question, least=0)
        if number >= len(self.domains):
            raise ParameterError("question", f"must be from 0 to {len(self.domains) - 1}", fix="question=0, say")
        return number


@dataclass(frozen=True)
class StrategyComparison:
    """The variance of each question's estimates by ONE and by ALL, and which way has the smaller sum."""

    one: tuple[float, ...]
    all: tuple[float, ...]
    better: BudgetStrategy


def compare_strategies(
    make: OracleFactory, domains: Sequence[int], epsilon: Any, users: int, frequency: float = 0.0
) -> StrategyComparison:
    """Both ways at this frequency. At a large epsilon ALL wins for common values: only the draw of people errs then."""
    one, every = (
        tuple(ways.variance(users, number, frequency) for number in range(len(ways.domains)))
        for ways in (
            MultiAttributeProtocol(make, tuple(domains), epsilon, way)
            for way in (BudgetStrategy.ONE, BudgetStrategy.ALL)
        )
    )
    return StrategyComparison(one, every, BudgetStrategy.ONE if sum(one) <= sum(every) else BudgetStrategy.ALL)


def poisoned_share(lying: Any, parts: int) -> float:
    """Which share of a part's reports are lies, where a share `lying` of all people gather in one of so many parts."""
    share = to_rational_between("lying", lying, Fraction(0), Fraction(1))
    return float(parts * share / (1 + (parts - 1) * share))


def one_survey(
    summaries: Sequence[FrequencySummary], protocols: Sequence[FrequencyOracle], parts: Sequence[str], what: str
) -> None:
    """Refuses summaries that are not one for each part, in order, all of one survey."""
    fix = "give what collect made, all of it and in order"
    if [summary.protocol for summary in summaries] != list(protocols):
        raise Refused(ErrorCode.REPORT, f"these are not the {len(parts)} {what}", fix=fix)
    ends = [(summary.survey, f" {part}") for summary, part in zip(summaries, parts, strict=True)]
    if not all(name.endswith(end) for name, end in ends):
        raise Refused(ErrorCode.REPORT, f"these are not the {what}: they are in another order, or not of it", fix=fix)
    if len({name.removesuffix(end) for name, end in ends}) > 1:
        raise Refused(ErrorCode.REPORT, f"these {what} are of two surveys", fix="give those of one survey")
