"""Audits of programs and of addresses: what they print, how they end and how long they take are outcomes.

>>> found = audit_command(["echo", "{}"], [1, 0], [1, 1], Claim.epsilon(1), samples=100, uses_time=False)
>>> found.verdict  # it prints its input
'refuted'
"""

from __future__ import annotations

import json
import math
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tacit.arithmetic import Number, to_integer, to_rational
from tacit.audit.claim import Claim
from tacit.audit.outputs import Progress
from tacit.audit.statistical import MIN_SAMPLES, AuditResult, audit
from tacit.errors import ParameterError

_STEPS = 4  # of the time, to a doubling
_LEAST_SECONDS = 1e-4  # below, times are alike
_CALLED = 0.9  # the share of the work that calls are
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
    standard error, what was written to standard output), the latter as JSON where it is and as text else. Times are
    taken in steps of a quarter of a doubling.

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
        Seconds after which a run is ended, which is an outcome too.
    progress : callable, optional
        Called with the share of the work that is done, from 0 to 1.

    Returns
    -------
    AuditResult
        The largest lower bound of all events that were tried. Place 0 of an output is the time, 1 the exit status,
        2 whether errors were written, and what was printed follows.

    Raises
    ------
    ParameterError
        If an argument is out of range, or there is no such program.

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

    def run(data: object) -> Outcome:
        text = _write(data)
        held = any(_HELD in word for word in words)
        try:
            done = subprocess.run(  # noqa: S603 - the caller names the program, and no shell reads it
                [word.replace(_HELD, text) for word in words],
                input=None if held else text.encode(),
                stdin=subprocess.DEVNULL if held else None,
                capture_output=True,
                timeout=limit,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return "timeout", False, "nothing"
        except OSError as problem:
            what = f"{words[0]} cannot be run: {problem.strerror}"
            raise ParameterError("command", what, fix="name a program that can be run: ./mechanism") from problem
        return done.returncode, bool(done.stderr), _read(done.stdout)

    return _audit_calls(run, one, other, claim, samples, confidence, seed, uses_time, progress)


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
    an error, the body), the body as JSON where it is and as text else.

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
        Seconds after which a request is given up, which is an outcome too.
    progress : callable, optional
        Called with the share of the work that is done, from 0 to 1.

    Returns
    -------
    AuditResult
        The largest lower bound of all events that were tried. Place 0 of an output is the time, 1 the status,
        2 whether it is an error, and the body follows.

    Raises
    ------
    ParameterError
        If an argument is out of range, or nothing answers at the address.

    Examples
    --------
    >>> audit_url("ftp://example.org", 1, 2, Claim.epsilon(1))
    Traceback (most recent call last):
    tacit.errors.ParameterError: error [parameter]: url: needs an http or https address
      fix: url="http://localhost:8000/mean"
    """
    if not isinstance(url, str) or urllib.parse.urlsplit(url).scheme not in {"http", "https"}:
        raise ParameterError("url", "needs an http or https address", fix='url="http://localhost:8000/mean"')
    limit = _check_timeout(timeout)

    def request(data: object) -> Outcome:
        text = _write(data)
        asked = urllib.request.Request(url.replace(_HELD, urllib.parse.quote(text, safe="")))  # noqa: S310 - checked
        if _HELD not in url:
            asked.data = text.encode()
            asked.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(asked, timeout=limit) as response:  # noqa: S310 - http or https, checked above
                return response.status, False, _read(response.read())
        except urllib.error.HTTPError as problem:
            with problem:
                return problem.code, True, _read(problem.read())
        except TimeoutError:
            return "timeout", True, "nothing"
        except OSError as problem:
            if isinstance(getattr(problem, "reason", None), TimeoutError):
                return "timeout", True, "nothing"
            fix = 'name an address that answers: url="http://localhost:8000/mean"'
            raise ParameterError("url", "cannot be reached", fix=fix) from problem

    return _audit_calls(request, one, other, claim, samples, confidence, seed, uses_time, progress)


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
) -> AuditResult:
    """Call for both inputs in turns, in random order, and audit what was recorded."""
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
    return replace(found, one=one, other=other)


def _step(seconds: float) -> int:
    """The time as a number of steps, each a quarter of a doubling."""
    return round(_STEPS * math.log2(max(seconds, _LEAST_SECONDS) / _LEAST_SECONDS))


def _write(data: object) -> str:
    if isinstance(data, str):
        return data
    try:
        return json.dumps(data)
    except (TypeError, ValueError) as problem:
        what = f"a {type(data).__name__} cannot be written as JSON"
        raise ParameterError("one", what, fix="one=[1, 0], other=[1, 1]") from problem


def _read(text: bytes) -> Any:
    """What a program said: the number or the list of JSON, else its text."""
    plain = text.decode("utf-8", "replace").strip()
    try:
        value = json.loads(plain)
    except ValueError:
        return plain
    return value if _is_list_of_values(value) else json.dumps(value, sort_keys=True)


def _is_list_of_values(value: Any) -> bool:
    return all(map(_is_list_of_values, value)) if isinstance(value, list) else not isinstance(value, dict)


def _check_timeout(timeout: Number) -> float:
    limit = float(to_rational("timeout", timeout))
    if limit <= 0:
        raise ParameterError("timeout", f"must be positive, got {timeout}", fix="timeout=60")
    return limit
