"""Loops that numba compiles where it is installed (`tacit-dp[fast]`), each beside a plain way with the same result."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, TypeVar, cast

Implementation = TypeVar("Implementation", bound=Callable[..., Any])

_WORTHWHILE = 2**26  # bytes; numpy goes through them in the time in which numba loads


def choose_implementation(count: int, loop: Implementation, plain: Implementation) -> Implementation:
    """The better way to go through so many bytes in all: the loop, compiled, or the plain one."""
    return compile_loop(loop) if count >= _WORTHWHILE and find_spec("numba") is not None else plain


@lru_cache(maxsize=16)
def compile_loop(loop: Implementation) -> Implementation:
    """The loop, compiled when it is first called. Needs numba."""
    from numba import njit

    return cast(Implementation, njit(nogil=True, cache=True)(loop))
