"""Loops that numba compiles where it is installed (`tacit-dp[fast]`), each beside a plain way with the same result."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, Generic, ParamSpec, TypeVar, cast

Implementation = TypeVar("Implementation", bound=Callable[..., Any])
P = ParamSpec("P")
R = TypeVar("R")

_WORTHWHILE = 2**26  # bytes; numpy goes through them in the time in which numba loads

_lock = threading.RLock()
_is_loaded = False


def choose_implementation(count: int, loop: Implementation, plain: Implementation) -> Implementation:
    """The better way to go through so many bytes in all: the loop, compiled, or the plain one."""
    return compile_loop(loop) if count >= _WORTHWHILE and find_spec("numba") is not None else plain


@lru_cache(maxsize=16)
def compile_loop(loop: Implementation) -> Implementation:
    """The loop, compiled when it is first called. Needs numba."""
    from numba import njit

    return cast(Implementation, njit(nogil=True, cache=True)(loop))


@lru_cache(maxsize=1)
def has_compiler() -> bool:
    """Whether numba is installed, which a process looks up once."""
    return find_spec("numba") is not None


def load_compiler() -> None:
    """Let every loop of this process be compiled from now on. Needs numba, which takes most of a second to load."""
    global _is_loaded  # noqa: PLW0603 - a compiler is loaded once for the process
    if not _is_loaded:
        import numba  # noqa: F401 - loaded here, and not while a loop waits for it

        _is_loaded = True


class CompiledLoop(Generic[P, R]):
    """A loop that is compiled when it is first called, with the options of numba's `njit`. Needs numba.

    Where it has a plain way, which has the same result, that is taken until `load_compiler` was called: a process that
    asks little spends less time so. Other loops that it calls are globals of its module.
    """

    def __init__(self, loop: Callable[P, R], plain: Callable[P, R] | None, options: dict[str, Any]) -> None:
        self.__doc__, self.__name__ = loop.__doc__, loop.__name__
        self.loop, self.plain = loop, plain
        self._options = options
        self._compiled: Callable[P, R] | None = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run it."""
        if self._compiled is not None:
            return self._compiled(*args, **kwargs)
        if self.plain is not None and not _is_loaded:
            return self.plain(*args, **kwargs)
        return self.compile()(*args, **kwargs)

    def compile(self) -> Callable[P, R]:
        """The loop as numba's function, which is made once, after those that it calls."""
        with _lock:
            if self._compiled is None:
                load_compiler()
                from numba import njit

                known = self.loop.__globals__
                for name in self.loop.__code__.co_names:
                    if isinstance(known.get(name), CompiledLoop):
                        known[name] = known[name].compile()  # numba calls nothing but its own functions
                self._compiled = cast("Callable[P, R]", njit(**self._options)(self.loop))
            return self._compiled


def compile_lazily(
    *, plain: Callable[..., Any] | None = None, **options: Any
) -> Callable[[Callable[P, R]], CompiledLoop[P, R]]:
    """Make a function a `CompiledLoop`, beside a plain way."""
    return lambda loop: CompiledLoop(loop, plain, options)
