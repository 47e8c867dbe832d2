"""A crowd in parts: each person stands in one of them, drawn at random, and each part is a survey of its own.

>>> gathered(0.01, 5)  # one percent of all people, gathered on one of five questions, are 4.8 percent of its answers
0.04807692307692308

**Theorem** (poisoning). Let a honest people and L liars answer in a part, whose protocol has the chances p and q, and
let b of the liars have been drawn there. The estimates then move by at most max(L/(a + L), b/(a + b))/(p - q) from what
the same people's honest reports would have given. If a share m of all people lie and the honest ones are spread evenly
over d parts, this is at most (d m/(1 + (d - 1) m))/(p - q), and liars who all gather in one part reach it.

**Proof.** An estimate is an average over those who answer, of numbers in a range of 1/(p - q). Two averages that have a
of their terms in common differ by at most the share of the others, the larger of both: where it is L/(a + L), take the
common terms at one end and the liars' at the other. Of n people, a = (1 - m) n/d, and both b and L are at most m n.
The number a is binomial: it is below its mean by a share t with a probability of at most exp(-t^2 (1 - m) n/(2 d)).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from tacit.arithmetic import within
from tacit.errors import Code, Refused
from tacit.local.frequency import Frequency
from tacit.local.summary import Summary


def gathered(lying: Any, parts: int) -> float:
    """Which share of a part's reports are lies, where a share `lying` of all people gather in one of so many parts."""
    share = within("lying", lying, Fraction(0), Fraction(1))
    return float(parts * share / (1 + (parts - 1) * share))


def one_survey(summaries: Sequence[Summary], protocols: Sequence[Frequency], parts: Sequence[str], what: str) -> None:
    """Refuses summaries that are not one for each part, in order, all of one survey."""
    fix = "give what collect made, all of it and in order"
    if [summary.protocol for summary in summaries] != list(protocols):
        raise Refused(Code.REPORT, f"these are not the {len(parts)} {what}", fix=fix)
    ends = [(summary.survey, f" {part}") for summary, part in zip(summaries, parts, strict=True)]
    if not all(name.endswith(end) for name, end in ends):
        raise Refused(Code.REPORT, f"these are not the {what}: they are in another order, or not of it", fix=fix)
    if len({name.removesuffix(end) for name, end in ends}) > 1:
        raise Refused(Code.REPORT, f"these {what} are of two surveys", fix="give those of one survey")
