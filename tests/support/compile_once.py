"""Workers of pytest that run side by side compile each of numba's loops once, and not once in each worker.

In a fresh clone every worker would compile the same loops, for half a minute. One does, and the others wait for it and
read the loop from numba's cache, beside which the locks lie.
"""

from __future__ import annotations

import fcntl
import sys
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any


def let_workers_take_turns() -> None:
    """Let this process take turns with others that call this, from when it imports numba on."""
    sys.meta_path.insert(0, _DispatcherFinder())


class _DispatcherFinder:
    """Finds the module of numba that compiles loops."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """How to import it, with a lock around what compiles; None for any other module."""
        if name != "numba.core.dispatcher":
            return None
        spec = PathFinder.find_spec(name, path, target)
        execute = spec.loader.exec_module
        spec.loader.exec_module = lambda module: (execute(module), _lock_compiling(module))
        return spec


def _lock_compiling(numba: Any) -> None:
    """Let numba hold a lock while it compiles a loop that it keeps in a file, or reads it from there."""
    compile_or_read = numba.Dispatcher.compile

    def hold_lock(loop: Any, signature: Any) -> Any:
        if loop._cache.cache_path is None:
            return compile_or_read(loop, signature)
        lock = Path(loop._cache.cache_path, f"{loop.__module__}.{loop.__name__}.lock")
        with numba.global_compiler_lock, lock.open("w") as file:  # this process's own first, as numba takes it
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                return compile_or_read(loop, signature)
            finally:
                fcntl.flock(file, fcntl.LOCK_UN)  # also where a fork has it open

    numba.Dispatcher.compile = hold_lock
