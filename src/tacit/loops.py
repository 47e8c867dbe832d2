"""Loops that numba compiles where it is installed (`tacit-dp[fast]`), each beside a plain way with the same result."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, TypeVar, cast

Way = TypeVar("Way", bound=Callable[..., Any])

_WORTHWHILE = 2**26  # bytes; numpy goes through them in the time in which numba loads


def better(count: int, loop: Way, plain: Way) -> Way:
    """The better way to go through so many bytes in all: the loop, compiled, or the plain one."""
    return compiled(loop) if count >= _WORTHWHILE and find_spec("numba") is not None else plain


@lru_cache(maxsize=16)
def compiled(loop: Way) -> Way:
    """The loop, compiled when it is first called. Needs numba."""
    from numba import njit

    return cast(Way, njit(nogil=True, cache=True)(loop))
