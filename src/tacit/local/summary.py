"""What a collector keeps: how many reports came, and how many support each value. Its size does not grow.

>>> from tacit.local import KAryRandomizedResponse
>>> from tacit.sampling.bits import ReplayBits
>>> votes = FrequencySummary.empty(KAryRandomizedResponse(3, 2), survey="lunch")
>>> north = votes.add(votes.protocol.encode([0] * 700 + [2] * 300, ReplayBits(b"north")))
>>> south = votes.add(votes.protocol.encode([0] * 300 + [1] * 600 + [2] * 100, ReplayBits(b"south")))
>>> both = FrequencySummary.from_bytes(north.merge(south).to_bytes())
>>> both.users, [round(share, 1) for share in both.estimate().frequencies.tolist()]
(2000, [0.5, 0.3, 0.2])
"""

from __future__ import annotations

import hashlib
import json
import operator
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np

from tacit.errors import ErrorCode, ParameterError, Refused
from tacit.local.estimates import FrequencyEstimates, estimate_frequencies
from tacit.local.frequency_oracle import Counts, FrequencyOracle
from tacit.local.strict_json import parse

_MAGIC = b"tacit local 1\n"
_DIGEST = 16
_LONGEST = 4000  # bytes of a header
_NUMBER = re.compile(r"[0-9]{1,400}(/[0-9]{1,400})?")  # no exponent: a short text must not make a huge number
MAX_REPORTS = 2**62  # of one summary or tally
# The closed table of kinds. A name is never given a new meaning.
_KINDS = {
    "k-ary": ("k_ary", "KAryRandomizedResponse"),
    "symmetric-unary": ("unary_encoding", "SymmetricUnaryEncoding"),
    "optimized-unary": ("unary_encoding", "OptimizedUnaryEncoding"),
    "hashing": ("local_hashing", "OptimizedLocalHashing"),
    "hadamard": ("hadamard_response", "HadamardResponse"),
    "subset": ("subset", "SubsetSelection"),
    "projective": ("projective_geometry", "ProjectiveGeometryResponse"),
    "rappor": ("rappor", "Rappor"),  # followed by its two probabilities
}


@dataclass(frozen=True, eq=False)
class FrequencySummary:
    """The reports of one survey, as `users` and their `support` of each value.

    **Theorem.** Summaries of one survey are a commutative monoid under `merge`: however reports are split over machines
    and whatever the order, the sum is the same, and so are the estimates. It shows nothing that the reports do not, so
    it costs nothing.
    """

    protocol: FrequencyOracle
    users: int
    support: Counts
    survey: str = ""

    @classmethod
    def empty(cls, protocol: FrequencyOracle, survey: str = "") -> FrequencySummary:
        """Before the first report."""
        return cls(protocol, 0, np.zeros(protocol.domain, dtype=np.int64), check_survey_name(survey))

    @property
    def mark(self) -> str:
        """A short name of the survey, the protocol and its parameters. A report sent with another one is refused."""
        return hashlib.blake2b(self._header(users=0), digest_size=8).hexdigest()

    def add(self, reports: Any) -> FrequencySummary:
        """With these reports too. If one of them is bad, all are refused and nothing changes."""
        shaped = self.protocol.shaped(reports)
        found = self.protocol.support(shaped)
        return FrequencySummary(self.protocol, self.users + len(shaped), self.support + found, self.survey)

    def add_counts(self, rows: Iterable[tuple[Any, Any]]) -> FrequencySummary:
        """With reports too that were counted elsewhere: pairs of a report and how often it came, as GROUP BY has them.

        It is exactly what adding all those reports gives. Reports must be numbers: k-ary, Hadamard, projective.
        """
        counts = count_reports(self.protocol.kind, self.protocol.report_limit, rows)
        users = check_report_count(self.users + int(counts.sum()))
        return FrequencySummary(
            self.protocol, users, self.support + self.protocol.support_of_counts(counts), self.survey
        )

    def merge(self, other: FrequencySummary) -> FrequencySummary:
        """The reports of both. Summaries of another protocol or survey are refused."""
        if not isinstance(other, FrequencySummary):
            raise ParameterError("other", f"needs a summary, got {type(other).__name__}", fix="merge two summaries")
        if self.mark != other.mark:
            raise different_surveys_error(self._words(), other._words())
        users = check_report_count(self.users + other.users)
        return FrequencySummary(self.protocol, users, self.support + other.support, self.survey)

    def estimate(self, confidence: Any = 0.95, together: bool = False) -> FrequencyEstimates:
        """The share of each value, unbiased, with intervals; all of them at once with `together`."""
        return estimate_frequencies(self.protocol, self.users, self.support, confidence, together)

    def to_bytes(self) -> bytes:
        """All of it, with a version and a checksum."""
        header = self._header(self.users)
        body = _MAGIC + len(header).to_bytes(2, "little") + header + self.support.astype("<i8").tobytes()
        return body + hashlib.blake2b(body, digest_size=_DIGEST).digest()

    @classmethod
    def from_bytes(cls, data: bytes) -> FrequencySummary:
        """What `to_bytes` wrote; anything else is refused. The checksum finds accidents, not forgeries."""
        if not isinstance(data, bytes | bytearray | memoryview):
            raise _not_a_summary("it is not bytes")
        data = bytes(data)
        body, digest = data[:-_DIGEST], data[-_DIGEST:]
        if not body.startswith(_MAGIC) or hashlib.blake2b(body, digest_size=_DIGEST).digest() != digest:
            raise _not_a_summary("it is cut short, changed, or of another version")
        start = len(_MAGIC) + 2
        end = start + int.from_bytes(body[len(_MAGIC) : start], "little")
        if end - start > _LONGEST:
            raise _not_a_summary("its header is too long")
        try:
            header = parse(body[start:end])
            kind, domain, epsilon = header["protocol"], header["domain"], _number(header["epsilon"])
            users, survey = int(header["users"]), str(header["survey"])
            protocol = _protocol(kind, domain, epsilon)
        except (KeyError, TypeError, ValueError, ArithmeticError) as problem:
            raise _not_a_summary("its header says nothing that is known") from problem
        if len(body) - end != 8 * protocol.domain:
            raise _not_a_summary("it has not one count for each value")
        support = np.frombuffer(body[end:], dtype="<i8").astype(np.int64)
        found = cls(protocol, users, support, survey)
        if found._header(users) != body[start:end] or not _is_possible(users, support):
            raise _not_a_summary("its counts are impossible")
        return found

    def _header(self, users: int) -> bytes:
        about = {
            "protocol": self.protocol.kind,
            "domain": self.protocol.domain,
            "epsilon": str(self.protocol.epsilon),
            "survey": self.survey,
            "users": users,
        }
        return json.dumps(about, separators=(",", ":")).encode()

    def _words(self) -> str:
        name = f"{self.survey!r}, " if self.survey else ""
        return (
            f"{name}{self.protocol.kind} over {self.protocol.domain} values at epsilon {float(self.protocol.epsilon):g}"
        )


def check_survey_name(survey: Any) -> str:
    """The name of a survey, checked."""
    if not isinstance(survey, str) or len(survey) > 200:
        raise ParameterError("survey", "needs a name of at most 200 characters", fix='survey="lunch", say')
    return survey


def check_report_count(users: int) -> int:
    """So many people, if they can be counted."""
    if users > MAX_REPORTS:
        raise Refused(ErrorCode.REPORT, "these are more than 2^62 reports", fix="check how often each report came")
    return users


def count_reports(kind: str, limit: int, rows: Iterable[tuple[Any, Any]]) -> Counts:
    """How often each report below the limit came, from pairs of a report and a count; bad ones are refused."""
    counts, users = np.zeros(limit, dtype=np.int64), 0
    for report, times in _pairs(rows):
        if report is None or not 0 <= report < limit:
            what = f"there are reports that {kind} does not send"
            raise Refused(ErrorCode.REPORT, what, fix=f"keep those from 0 to {limit - 1}")
        if times is None or times < 0:
            raise Refused(
                ErrorCode.REPORT, "how often a report came is no count", fix="give each report with its COUNT(*)"
            )
        users += times
        if users >= MAX_REPORTS:  # the transforms double it
            raise Refused(ErrorCode.REPORT, "these are 2^62 reports or more", fix="check how often each report came")
        counts[report] += times
    return counts


def _pairs(rows: Iterable[tuple[Any, Any]]) -> Iterator[tuple[int | None, int | None]]:
    """Each report and how often it came, as integers; None is what is no integer."""
    try:
        for report, times in rows:
            yield _integer(report), _integer(times)
    except (TypeError, ValueError):
        what = "needs pairs of a report and how often it came"
        raise ParameterError("rows", what, fix="rows=[(0, 12), (1, 5)], or frame.values") from None


def _integer(given: Any) -> int | None:
    """Python's integers and other libraries'; no boolean, and no float even where it has no fraction."""
    try:
        return None if isinstance(given, bool) else operator.index(given)
    except TypeError:
        return None


def different_surveys_error(one: str, other: str) -> Refused:
    """The refusal to merge what belongs to two surveys, each in words."""
    return Refused(
        ErrorCode.REPORT,
        f"these are two surveys: {one} and {other}",
        fix="merge what was collected for one survey, with one protocol and the same parameters",
    )


def _number(text: str) -> Fraction:
    if _NUMBER.fullmatch(text) is None:
        raise ValueError(text)
    return Fraction(text)


def _protocol(kind: str, domain: int, epsilon: Fraction) -> FrequencyOracle:
    key, *rest = str(kind).split(" ")
    home, name = _KINDS[key]
    chances = [_number(chance) for chance in rest]
    found: FrequencyOracle = getattr(import_module(f"tacit.local.{home}"), name)(domain, epsilon, *chances)
    return found


def _is_possible(users: int, support: Counts) -> bool:
    return 0 <= users <= MAX_REPORTS and bool(((support >= 0) & (support <= users)).all())


def _not_a_summary(reason: str) -> Refused:
    return Refused(ErrorCode.REPORT, f"this is no summary: {reason}", fix="read what Summary.to_bytes wrote")
