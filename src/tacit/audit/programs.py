"""Audits of programs and of addresses: what they print, how they end and how long they take are outcomes.

>>> found = audit_command(["echo", "{}"], [1, 0], [1, 1], Claim.epsilon(1), samples=100, uses_time=False)
>>> found.verdict  # it prints its input
'refuted'
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.arithmetic import Number, to_integer, to_rational
from tacit.audit.claim import Claim
from tacit.audit.fetch import fetch
from tacit.audit.inputs import check_inputs_differ
from tacit.audit.outputs import Progress
from tacit.audit.program_run import run_program
from tacit.audit.statistical import MIN_SAMPLES, AuditResult, audit
from tacit.errors import ParameterError

_STEPS = 4  # of the time, to a doubling
_LEAST_SECONDS = 1e-4  # below, times are alike
_CALLED = 0.9  # the share of the work that calls are
_LONGEST = 86_400  # seconds of one call
_TRIES = 20  # runs that all time out, or requests without any connection, after which nothing is there
_FIRST_ERROR = 400  # of the statuses
_DEEPEST = 50  # lists within lists that are read as such
_LONGEST_LAYOUT = 40
_HELD = "{}"  # where the input stands in arguments and addresses

Outcome = tuple[Any, ...]


def audit_command(
    command: Sequence[str],
    one: object,
    other: object,
    claim: Claim,
    *,
    samples: int = 500,
    confidence: Number = 0.99,
    seed: int = 0,
    uses_time: bool = True,
    timeout: Number = 60,
    progress: Progress | None = None,
) -> AuditResult:
    """Look for an event that proves the claim wrong of a program: its output, exit status, errors or time.

    **Theorem.** As for `audit`, if runs are independent. Runs on the two inputs take turns, in random order, so that
    what slows the machine down slows both. The output of a run is (time, exit status, whether anything was written to
    standard error, a fingerprint of the bytes on standard output, a hash of those on standard error, what was written
    to standard output), the latter as JSON where it is and as text else. Times are taken in steps of a quarter of a
    doubling. Files that the program writes, and what it sends elsewhere, are not seen. A program that writes more than
    16 MiB to either output is ended there, which is an outcome too. Where no run ends with status 0, and nothing
    refutes the claim, there is no result: what was run is not the program that the claim is about.

    Parameters
    ----------
    command : sequence of str
        The program and its arguments, which no shell reads. Where an argument has {} the input stands there as JSON;
        where none has, the program reads it from standard input.
    one, other : object
        Two neighboring inputs, as JSON can write them. A text is given as it is.
    claim : Claim
        The guarantee to refute.
    samples : int
        How often the program runs on each input, 100 or more.
    confidence : number
        The probability, in (0, 1), with which the bound holds.
    seed : int
        Seed of the order of runs and of what is learned, 0 or more.
    uses_time : bool
        Whether the time of a run is part of its output.
    timeout : number
        Seconds, 86,400 at most, after which a run is ended with all that it started in its process group, which is an
        outcome too.
    progress : callable, optional
        Called with the share of the work that is done, from 0 to 1.

    Returns
    -------
    AuditResult
        The largest lower bound of all events that were tried. Place 0 of an output is the time, 1 the exit status,
        2 whether errors were written, 3 the fingerprint of what was printed, 4 the hash of the errors, and what was
        printed follows.

    Raises
    ------
    ParameterError
        If an argument is out of range, both inputs are written alike, there is no such program, its first 20 runs all
        time out, or it fails in every run with nothing that refutes the claim.

    Examples
    --------
    >>> found = audit_command(["cat"], 1, 2, Claim.epsilon(1), samples=100, uses_time=False)
    >>> found.verdict  # it prints its input
    'refuted'
    """
    words = [command] if isinstance(command, str) else list(command)
    if not words or not all(isinstance(word, str) for word in words):
        raise ParameterError("command", "needs a program and its arguments", fix='command=["./mechanism", "{}"]')
    limit = _check_timeout(timeout)
    held = any(_HELD in word for word in words)
    for name, data in (("one", one), ("other", other)):
        if held and "\0" in _write(name, data):
            what = "has a character NUL, which no argument of a program can hold"
            raise ParameterError(name, what, fix="leave {} out of the command: standard input then has the input")

    runs, is_ended = 0, False

    def run(data: object) -> Outcome:
        nonlocal runs, is_ended
        text = _write("one", data)
        try:
            status, out, err = run_program(
                [word.replace(_HELD, text) for word in words], None if held else text.encode(), limit
            )
        except OSError as problem:
            what = f"{words[0]} cannot be run: {problem.strerror}"
            raise ParameterError("command", what, fix="name a program that can be run: ./mechanism") from problem
        except ValueError as problem:  # NUL, or what no file name can hold
            what = "has a character that no argument of a program can hold"
            raise ParameterError("command", what, fix='command=["./mechanism", "{}"]') from problem
        runs, is_ended = runs + 1, is_ended or status != "timeout"
        if runs >= _TRIES and not is_ended:
            what = f"{words[0]} has not ended within {limit:g} seconds in any of {runs} runs"
            raise ParameterError("command", what, fix=f"take a longer timeout: timeout={min(10 * limit, _LONGEST):g}")
        if status == "timeout":
            return status, False, "nothing", "nothing", "nothing"
        return status, bool(err), _fingerprint(out), _digest(err), _read(out)

    found, statuses = _audit_calls(run, one, other, claim, samples, confidence, seed, uses_time, progress)
    if 0 not in statuses and not found.is_refuted:
        shown = ", ".join(sorted(map(str, statuses)))
        what = f"{words[0]} failed in every run on both inputs, with status {shown:.60}, so nothing was tested"
        raise ParameterError("command", what, fix="run it once yourself, and let it end with status 0 where it answers")
    return found


def audit_url(
    url: str,
    one: object,
    other: object,
    claim: Claim,
    *,
    samples: int = 500,
    confidence: Number = 0.99,
    seed: int = 0,
    uses_time: bool = True,
    timeout: Number = 60,
    progress: Progress | None = None,
) -> AuditResult:
    """Look for an event that proves the claim wrong of an address: its response, status or time.

    **Theorem.** As for `audit_command`, if responses are independent. An output is (time, status, whether the status is
    an error, a fingerprint of the body, the body), the body as JSON where it is and as text else. A connection that is
    refused or dropped, a body that ends too early and a response that is not HTTP are outcomes in place of a status.
    Of a body of more than 16 MiB the beginning is read, and "too long" stands for it. Headers are not seen. Where every
    response is an error, and nothing refutes the claim, there is no result.

    Parameters
    ----------
    url : str
        An http or https address. Where it has {} the input stands there, quoted, and the request is GET; else the
        input is posted as JSON.
    one, other : object
        Two neighboring inputs, as JSON can write them. A text is given as it is.
    claim : Claim
        The guarantee to refute.
    samples : int
        How many requests are made for each input, 100 or more.
    confidence : number
        The probability, in (0, 1), with which the bound holds.
    seed : int
        Seed of the order of requests and of what is learned, 0 or more.
    uses_time : bool
        Whether the time of a response is part of the output.
    timeout : number
        Seconds, 86,400 at most, that a request may take in all; one that takes longer is given up, which is an outcome
        too.
    progress : callable, optional
        Called with the share of the work that is done, from 0 to 1.

    Returns
    -------
    AuditResult
        The largest lower bound of all events that were tried. Place 0 of an output is the time, 1 the status,
        2 whether it is an error, 3 the fingerprint of the body, and the body follows.

    Raises
    ------
    ParameterError
        If an argument is out of range, both inputs are written alike, no connection is made in the first 20 requests,
        or every response is an error with nothing that refutes the claim.

    Examples
    --------
    >>> audit_url("ftp://example.org", 1, 2, Claim.epsilon(1))
    Traceback (most recent call last):
    tacit.errors.ParameterError: error [parameter]: url: needs an http or https address
      fix: url="http://localhost:8000/mean"
    """
    if not isinstance(url, str) or not _is_address(url):
        raise ParameterError("url", "needs an http or https address", fix='url="http://localhost:8000/mean"')
    limit = _check_timeout(timeout)
    for name, data in (("one", one), ("other", other)):
        _write(name, data)
    calls, is_reached = 0, False

    def request(data: object) -> Outcome:
        nonlocal calls, is_reached
        text = _write("one", data)
        asked = urllib.request.Request(url.replace(_HELD, urllib.parse.quote(text, safe="")))  # noqa: S310 - checked
        if _HELD not in url:
            asked.data = text.encode()
            asked.add_header("Content-Type", "application/json")
        found = fetch(asked, limit)
        calls, is_reached = calls + 1, is_reached or found.is_reached
        if calls >= _TRIES and not is_reached:
            fix = 'name an address that answers: url="http://localhost:8000/mean"'
            raise ParameterError("url", "cannot be reached", fix=fix)
        if isinstance(found.status, str):
            return found.status, True, _digest(found.body), "nothing"
        is_error = found.status >= _FIRST_ERROR
        if found.is_long:
            return found.status, is_error, _digest(found.body), "too long"
        return found.status, is_error, _fingerprint(found.body), _read(found.body)

    result, statuses = _audit_calls(request, one, other, claim, samples, confidence, seed, uses_time, progress)
    if not result.is_refuted and all(isinstance(each, str) or each >= _FIRST_ERROR for each in statuses):
        shown = ", ".join(sorted(map(str, statuses)))
        what = f"every response on both inputs is an error: {shown:.60}, so nothing was tested"
        raise ParameterError("url", what, fix="request it once yourself, and name an address that answers with 200")
    return result


def _audit_calls(
    call: Callable[[object], Outcome],
    one: object,
    other: object,
    claim: Claim,
    samples: int,
    confidence: Number,
    seed: int,
    uses_time: bool,
    progress: Progress | None,
) -> tuple[AuditResult, set[int | str]]:
    """Call for both inputs in turns, in random order, and audit what was recorded. Return all statuses too."""
    check_inputs_differ(_write("one", one), _write("other", other))
    count, say = to_integer("samples", samples, least=MIN_SAMPLES), progress or (lambda share: None)
    order = np.random.default_rng([to_integer("seed", seed, least=0), 2]).integers(0, 2, count)
    recorded: tuple[list[Outcome], list[Outcome]] = ([], [])
    for number, first in enumerate(order.tolist()):
        for side in (first, 1 - first):
            begin = time.perf_counter()
            outcome = call((one, other)[side])
            seconds = time.perf_counter() - begin
            recorded[side].append((_step(seconds), *outcome) if uses_time else (0, *outcome))
        say(_CALLED * (number + 1) / count)
    replayed: tuple[Iterator[Outcome], ...] = tuple(map(iter, recorded))
    found = audit(
        lambda side: next(replayed[side]),
        0,
        1,
        claim,
        samples=count,
        confidence=confidence,
        seed=seed,
        progress=lambda share: say(_CALLED + (1 - _CALLED) * share),
    )
    return replace(found, one=one, other=other), {outcome[1] for side in recorded for outcome in side}


def _step(seconds: float) -> int:
    """The time as a number of steps, each a quarter of a doubling."""
    return round(_STEPS * math.log2(max(seconds, _LEAST_SECONDS) / _LEAST_SECONDS))


def _is_address(url: str) -> bool:
    """Whether it is an http or https address with a host, in printable ASCII."""
    try:
        parts = urllib.parse.urlsplit(url)
        is_whole = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False
    return is_whole and parts.scheme in {"http", "https"} and all("!" <= letter <= "~" for letter in url)


def _write(name: str, data: object) -> str:
    try:
        text = data if isinstance(data, str) else json.dumps(data)
    except (TypeError, ValueError, RecursionError) as problem:
        what = f"a {type(data).__name__} cannot be written as JSON"
        raise ParameterError(name, what, fix="one=[1, 0], other=[1, 1]") from problem
    try:
        text.encode()
    except UnicodeEncodeError as problem:
        what = "has half of a surrogate pair, which UTF-8 cannot write"
        raise ParameterError(name, what, fix=f'{name}="a text without it"') from problem
    return text


def _read(text: bytes) -> Any:
    """What a program said: the number or the list of JSON, else its text."""
    plain = text.decode("utf-8", "replace").strip()
    try:
        value = json.loads(plain)
        return value if _is_list_of_values(value) else json.dumps(value, sort_keys=True)
    except (ValueError, RecursionError):
        return plain


def _is_list_of_values(value: Any) -> bool:
    """Whether it is a value or a list, nested no deeper than _DEEPEST, and without objects."""
    level = [value]
    for _ in range(_DEEPEST):
        if any(isinstance(each, dict) for each in level):
            return False
        lists = [each for each in level if isinstance(each, list)]
        if not lists:
            return True
        level = [inner for each in lists for inner in each]
    return False


def _fingerprint(text: bytes) -> str:
    """What tells apart outputs that `_read` reads alike.

    Of numbers alone, in no more digits than a double keeps, the digits are read, so their layout tells the rest: the
    output with 0 for each digit. Of all else, a hash of the bytes. So two outputs with equal readings and fingerprints
    are the same bytes, but for collisions of the hash.
    """
    layout = re.sub(rb"[0-9]", b"0", text)
    is_plain = re.fullmatch(rb"[\[\], \n\t\r.0-]*", layout) is not None and isinstance(_read(text), int | float | list)
    tokens = re.findall(rb"[0-9.]+", text)
    if not is_plain or not all(map(_is_kept_by_double, tokens)):
        return _digest(text)
    return layout.decode() if len(layout) <= _LONGEST_LAYOUT else f"layout {_digest(layout)}"


def _is_kept_by_double(token: bytes) -> bool:
    """Whether a decimal number is the shortest that its double is written as, but for zeros at the end."""
    return len(token) <= _LONGEST_LAYOUT and Fraction(token.decode()) == Fraction(repr(float(token)))


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:16] if text else "nothing"


def _check_timeout(timeout: Number) -> float:
    limit = to_rational("timeout", timeout)
    if not 0 < limit <= _LONGEST:
        what = f"must be positive and at most {_LONGEST:,} seconds"
        raise ParameterError("timeout", what, fix="timeout=60")
    return float(limit)
