"""The collector's state: how many reports were received, and how many support each value. Its size is constant.

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
import numpy.typing as npt

from tacit.arithmetic import Number
from tacit.errors import ErrorCode, ParameterError, Refused
from tacit.local.estimates import FrequencyEstimates, estimate_frequencies
from tacit.local.frequency_oracle import Counts, FrequencyOracle
from tacit.local.strict_json import parse

_MAGIC = b"tacit local 1\n"
_DIGEST = 16
_LONGEST = 4000  # bytes of a header
_NUMBER = re.compile(r"[0-9]{1,400}(/[0-9]{1,400})?")  # no exponent: a short text must not make a huge number
MAX_REPORTS = 2**62  # of one summary
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
    """The reports of one survey, summarized as the number of users and the support of each value.

    **Theorem.** Summaries of one survey are a commutative monoid under `merge`: however reports are split over machines
    and whatever the order, the sum is the same, and so are the estimates. A summary is a function of the reports, so it
    has no privacy loss of its own.

    Parameters
    ----------
    protocol : FrequencyOracle
        The protocol, with its parameters, that all reports were made with.
    users : int
        The number of reports, from 0 to 2^62.
    support : ndarray of int64, shape (domain,)
        The number of reports that support each value.
    survey : str, default ""
        A name of at most 200 characters. Summaries of two names do not merge.

    See Also
    --------
    FrequencySummary.empty : The usual way to make one.

    Examples
    --------
    >>> from tacit.local import FrequencySummary, KAryRandomizedResponse
    >>> from tacit.sampling.bits import ReplayBits
    >>> votes = FrequencySummary.empty(KAryRandomizedResponse(3, 2), survey="lunch")
    >>> north = votes.add(votes.protocol.encode([0] * 700 + [2] * 300, ReplayBits(b"north")))
    >>> south = votes.add(votes.protocol.encode([0] * 300 + [1] * 600 + [2] * 100, ReplayBits(b"south")))
    >>> both = FrequencySummary.from_bytes(north.merge(south).to_bytes())
    >>> both.users, [round(share, 1) for share in both.estimate().frequencies.tolist()]
    (2000, [0.5, 0.3, 0.2])
    """

    protocol: FrequencyOracle
    users: int
    support: Counts
    survey: str = ""

    @classmethod
    def empty(cls, protocol: FrequencyOracle, survey: str = "") -> FrequencySummary:
        """Make the summary of no reports.

        Parameters
        ----------
        protocol : FrequencyOracle
            The protocol, with its parameters, that all reports will be made with.
        survey : str, default ""
            A name of at most 200 characters. Summaries of two names do not merge.

        Returns
        -------
        FrequencySummary
            With zero users, to which reports can be added.

        Raises
        ------
        ParameterError
            Where the name is not a text, or is too long.
        """
        return cls(protocol, 0, np.zeros(protocol.domain, dtype=np.int64), check_survey_name(survey))

    @property
    def mark(self) -> str:
        """A digest of the survey's name, the protocol and its parameters, in 16 hexadecimal digits.

        Let clients send it with each report, and refuse reports that were made for another survey.
        """
        return hashlib.blake2b(self._header(users=0), digest_size=8).hexdigest()

    def add(self, reports: npt.ArrayLike) -> FrequencySummary:
        """Return the summary with more reports.

        Parameters
        ----------
        reports : array_like
            Received reports, as the protocol's `encode` returns them.

        Returns
        -------
        FrequencySummary
            A new summary; this one does not change.

        Raises
        ------
        Refused
            With the code `report`, where a report is not one that the protocol sends; then none is added.
        """
        array = self.protocol.to_array(reports)
        found = self.protocol.support(array)
        return FrequencySummary(self.protocol, self.users + len(array), self.support + found, self.survey)

    def add_counts(self, rows: Iterable[tuple[int, int]]) -> FrequencySummary:
        """Return the summary with reports that a GROUP BY has counted.

        It is exactly what adding all those reports gives. Reports must be integers: k-ary randomized response, Hadamard
        response, projective geometry response.

        Parameters
        ----------
        rows : iterable of (report, count)
            Each report, from 0 to the protocol's `report_limit` - 1, with how often it was received.

        Returns
        -------
        FrequencySummary
            A new summary; this one does not change.

        Raises
        ------
        Refused
            With the code `report`, where a report is not one that the protocol sends, or a count is not one.
        ParameterError
            Where the rows are not pairs, or the protocol's reports are not integers.
        """
        counts = count_reports(self.protocol.kind, self.protocol.report_limit, rows)
        users = check_report_count(self.users + int(counts.sum()))
        return FrequencySummary(
            self.protocol, users, self.support + self.protocol.support_from_counts(counts), self.survey
        )

    def merge(self, other: FrequencySummary) -> FrequencySummary:
        """Return the summary of the reports of two collectors.

        Parameters
        ----------
        other : FrequencySummary
            A summary of other reports of the same survey, with the same protocol and parameters.

        Returns
        -------
        FrequencySummary
            A new summary of both; it does not depend on the order.

        Raises
        ------
        Refused
            With the code `report`, where the other summary is of another survey, protocol or parameter.
        """
        if not isinstance(other, FrequencySummary):
            what = f"needs a FrequencySummary, got {type(other).__name__}"
            raise ParameterError("other", what, fix="merge two summaries")
        if self.mark != other.mark:
            raise different_surveys_error(self._words(), other._words())
        users = check_report_count(self.users + other.users)
        return FrequencySummary(self.protocol, users, self.support + other.support, self.survey)

    def estimate(self, confidence: Number = 0.95, together: bool = False) -> FrequencyEstimates:
        """Estimate the frequency of each value, without bias, with confidence intervals.

        Parameters
        ----------
        confidence : number, default 0.95
            The probability, between 0 and 1, with which an interval covers the true frequency.
        together : bool, default False
            Whether all intervals hold at once with this confidence. They are wider then.

        Returns
        -------
        FrequencyEstimates
            The frequencies with their standard deviations and intervals.

        Raises
        ------
        Refused
            With the code `report`, where there are no reports.
        """
        return estimate_frequencies(self.protocol, self.users, self.support, confidence, together)

    def to_bytes(self) -> bytes:
        """Serialize the summary, with a version and a checksum.

        Returns
        -------
        bytes
            8 bytes for each value and a header of at most 4,000, whatever the number of reports.
        """
        header = self._header(self.users)
        body = _MAGIC + len(header).to_bytes(2, "little") + header + self.support.astype("<i8").tobytes()
        return body + hashlib.blake2b(body, digest_size=_DIGEST).digest()

    @classmethod
    def from_bytes(cls, data: bytes) -> FrequencySummary:
        """Read what `to_bytes` wrote.

        Parameters
        ----------
        data : bytes
            A serialized summary. Its checksum detects accidental changes, not forgeries.

        Returns
        -------
        FrequencySummary
            The same summary.

        Raises
        ------
        Refused
            With the code `report`, where the data is truncated, changed, or not possible as a summary.
        """
        if not isinstance(data, bytes | bytearray | memoryview):
            raise _not_a_summary("it is not bytes")
        data = bytes(data)
        body, digest = data[:-_DIGEST], data[-_DIGEST:]
        if not body.startswith(_MAGIC) or hashlib.blake2b(body, digest_size=_DIGEST).digest() != digest:
            raise _not_a_summary("it is truncated, changed, or of another version")
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
            raise _not_a_summary("its header names no known protocol, or has bad parameters") from problem
        if len(body) - end != 8 * protocol.domain:
            raise _not_a_summary("it does not have one count for each value")
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


def check_survey_name(survey: str) -> str:
    """Return the name of a survey, if it is a text of at most 200 characters."""
    if not isinstance(survey, str) or len(survey) > 200:
        raise ParameterError("survey", "needs a name of at most 200 characters", fix='survey="lunch", say')
    return survey


def check_report_count(users: int) -> int:
    """Return a number of reports, if it is at most 2^62."""
    if users > MAX_REPORTS:
        raise Refused(ErrorCode.REPORT, "these are more than 2^62 reports", fix="check the counts")
    return users


def count_reports(kind: str, limit: int, rows: Iterable[tuple[int, int]]) -> Counts:
    """Return how often each report below the limit was received, from pairs of a report and a count."""
    counts, users = np.zeros(limit, dtype=np.int64), 0
    for report, times in _pairs(rows):
        if report is None or not 0 <= report < limit:
            what = f"there are reports that {kind} does not send"
            raise Refused(ErrorCode.REPORT, what, fix=f"keep those from 0 to {limit - 1}")
        if times is None or times < 0:
            what = "the second number of a row is not a count"
            raise Refused(ErrorCode.REPORT, what, fix="SELECT report, COUNT(*) FROM reports GROUP BY report")
        users += times
        if users >= MAX_REPORTS:  # the transforms double it
            raise Refused(ErrorCode.REPORT, "these are 2^62 reports or more", fix="check the counts")
        counts[report] += times
    return counts


def _pairs(rows: Iterable[tuple[object, object]]) -> Iterator[tuple[int | None, int | None]]:
    """Yield each report and its count as integers; None stands for what is not an integer."""
    try:
        for report, times in rows:
            yield _integer(report), _integer(times)
    except (TypeError, ValueError):
        what = "needs pairs of a report and its count"
        raise ParameterError("rows", what, fix="rows=[(0, 12), (1, 5)]") from None


def _integer(given: Any) -> int | None:
    """Return an integer of Python or of another library; None for a boolean, and for a float even where it is whole."""
    try:
        return None if isinstance(given, bool) else operator.index(given)
    except TypeError:
        return None


def different_surveys_error(one: str, other: str) -> Refused:
    """Return the refusal to merge summaries of two surveys, each described in words."""
    return Refused(
        ErrorCode.REPORT,
        f"these summaries are of two surveys: {one} and {other}",
        fix="merge summaries of one survey, with one protocol and the same parameters",
    )


def _number(text: str) -> Fraction:
    if _NUMBER.fullmatch(text) is None:
        raise ValueError(text)
    return Fraction(text)


def _protocol(kind: str, domain: int, epsilon: Fraction) -> FrequencyOracle:
    key, *rest = str(kind).split(" ")
    home, name = _KINDS[key]
    probabilities = [_number(text) for text in rest]
    found: FrequencyOracle = getattr(import_module(f"tacit.local.{home}"), name)(domain, epsilon, *probabilities)
    return found


def _is_possible(users: int, support: Counts) -> bool:
    return 0 <= users <= MAX_REPORTS and bool(((support >= 0) & (support <= users)).all())


def _not_a_summary(reason: str) -> Refused:
    return Refused(
        ErrorCode.REPORT, f"this is not a summary: {reason}", fix="read what FrequencySummary.to_bytes wrote"
    )
