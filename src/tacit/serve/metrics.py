"""Counts for the owner's monitoring, in the text format of Prometheus. No value of a question or an answer is in it.

>>> metrics = Metrics()
>>> metrics.count("/v1/ask", 200, 0.04)
>>> metrics.text().splitlines()[2]
'tacit_requests_total{route="/v1/ask",status="200"} 1'
"""

from __future__ import annotations

import threading
from collections import Counter

from tacit.serve.timing import round_up_to_bucket

_LAST = 20.48  # seconds: the largest step that has a line of its own


class Metrics:
    """How many requests, with which outcome, in which step of time.

    Times are counted in steps, and no response tells of a run over data before the edge of one (`timing.py`), so these
    counts tell no more than callers could measure.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._errors: Counter[str] = Counter()
        self._steps: Counter[float] = Counter()

    def count(self, route: str, status: int, seconds: float) -> None:
        """Count a response. A route is a name from the table of routes, never what a caller wrote."""
        with self._lock:
            self._requests[route, status] += 1
            self._steps[round_up_to_bucket(seconds)] += 1

    def error(self, code: str) -> None:
        """Count an error by its code."""
        with self._lock:
            self._errors[code] += 1

    def text(self, **gauges: float) -> str:
        """All counts, and the gauges of this moment."""
        with self._lock:
            requests, errors, steps = sorted(self._requests.items()), sorted(self._errors.items()), dict(self._steps)
        lines = ["# HELP tacit_requests_total Responses by route and status.", "# TYPE tacit_requests_total counter"]
        lines += [
            f'tacit_requests_total{{route="{route}",status="{status}"}} {count}' for (route, status), count in requests
        ]
        lines += ["# HELP tacit_errors_total Errors by code.", "# TYPE tacit_errors_total counter"]
        lines += [f'tacit_errors_total{{code="{code}"}} {count}' for code, count in errors]
        lines += ["# HELP tacit_response_seconds Response times in steps.", "# TYPE tacit_response_seconds histogram"]
        step, below = round_up_to_bucket(0), 0
        while step <= _LAST:
            below += steps.pop(step, 0)
            lines.append(f'tacit_response_seconds_bucket{{le="{step:g}"}} {below}')
            step *= 2
        below += sum(steps.values())
        lines += [f'tacit_response_seconds_bucket{{le="+Inf"}} {below}', f"tacit_response_seconds_count {below}"]
        for name, value in gauges.items():
            lines += [f"# TYPE tacit_{name} gauge", f"tacit_{name} {value:g}"]
        return "\n".join(lines) + "\n"
