"""How many connections this process can hold: the descriptors that it may open, less what everything else needs."""

from __future__ import annotations

import contextlib
import os
import resource

from tacit.errors import ParameterError

_WANTED = 65_536  # descriptors; more serve nobody
_MOST = 4_000  # connections: each takes some tens of kilobytes
_LEAST = 16
_RESERVE = 96  # the ledger, data files, spilled data, catalog processes, name lookups


def connections_allowed() -> int:
    """Raise the limit of descriptors as far as the system lets us, and return how many connections fit below it.

    A quarter of the descriptors, and no fewer than 96, stay for the ledger, data files and catalog processes. What is
    open at the moment is subtracted too.
    """
    limit = _raise_limit()
    most = min(_MOST, limit - _open_now() - max(_RESERVE, limit // 4))
    if most < _LEAST:
        what = f"{limit} open files are too few for a server: the data, the ledger and connections share them"
        raise ParameterError("descriptors", what, fix="ulimit -n 1024, or LimitNOFILE=1024 in the systemd unit")
    return most


def _raise_limit() -> int:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _WANTED if hard == resource.RLIM_INFINITY else min(hard, _WANTED)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(ValueError, OSError):  # some systems have a lower limit of their own
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _WANTED if soft == resource.RLIM_INFINITY else soft


def _open_now() -> int:
    for place in ("/proc/self/fd", "/dev/fd"):
        with contextlib.suppress(OSError):
            return len(os.listdir(place))
    return _RESERVE
