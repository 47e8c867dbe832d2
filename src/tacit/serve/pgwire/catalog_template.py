"""The files of a PostgreSQL that holds the policy's tables empty, made once and kept for the next start.

They are kept by what they are made from: the version of PostgreSQL, its settings, and the SQL of the schema. So a
folder that is found holds what would be made anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tacit.policy.model import Policy
from tacit.serve.pgwire.catalog_programs import Programs
from tacit.serve.pgwire.catalog_schema import DATABASE, OWNER, cluster_statements, database_statements
from tacit.serve.pgwire.settings import TACIT_SETTINGS

_log = logging.getLogger("tacit.serve")

_RECIPE = 2  # raised whenever `_build` does something else
_KEPT = 8  # templates of different policies, restrictions or versions
_FIRST_OID = "16384"  # PostgreSQL takes what has a smaller number for its own, and then guards no rows of it
_PATIENCE = 120.0  # seconds for each program
# What a statement writes is refused to its role; nothing here is worth a write that survives a crash.
_SETTINGS = """\
listen_addresses = ''
unix_socket_permissions = 0700
max_connections = 10
superuser_reserved_connections = 2
shared_buffers = 1MB
work_mem = 4MB
max_worker_processes = 0
max_wal_senders = 0
wal_level = minimal
min_wal_size = 2MB
max_wal_size = 8MB
fsync = off
full_page_writes = off
synchronous_commit = off
dynamic_shared_memory_type = mmap
huge_pages = off
autovacuum = off
track_activities = off
track_counts = off
jit = off
temp_file_limit = 64MB
log_destination = stderr
log_min_messages = panic
search_path = 'public'
timezone = 'UTC'
log_timezone = 'UTC'
lc_messages = 'C'
default_transaction_read_only = on
default_transaction_isolation = 'serializable'
"""
_SETTINGS += "".join(f"{name} = '{value}'\n" for name, value in TACIT_SETTINGS.items())
_LOCAL_ONLY = "local all all trust\n"  # whoever can open the socket, which is in a folder of the account's own


class TemplateError(Exception):
    """PostgreSQL's programs do not do what they should."""


def make_template(programs: Programs, policy: Policy, place: Path, kept: Path | None) -> Path:
    """The folder of a template: one that was kept, or a new one at `place`, which is then kept for later.

    The folder above `place` belongs to the account of the programs. One that cannot be read or written is done without.
    """
    statements = (cluster_statements(), database_statements(policy))
    made_from = [_RECIPE, programs.version, _SETTINGS, statements]
    known = hashlib.sha256(json.dumps(made_from).encode()).hexdigest()[:32]
    found = None if kept is None else kept / known
    if found is not None and _is_own(found):
        with contextlib.suppress(OSError):
            os.utime(found)
        return found
    _build(programs, place, *statements)
    if kept is not None and found is not None:
        with contextlib.suppress(OSError):
            _keep(place, found)
    return place


def cache_folder() -> Path | None:
    """Where templates are kept: the account's cache, which is private; None where there is none."""
    named = os.environ.get("CACHE_DIRECTORY") or os.environ.get("XDG_CACHE_HOME")
    try:
        folder = (Path(named) if named else Path.home() / ".cache") / "tacit" / "catalog"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return None
    return folder if _is_own(folder) else None


def _is_own(folder: Path) -> bool:
    """Whether a folder is there, and nobody else may write in it."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    return folder.is_dir() and not folder.is_symlink() and found.st_uid == os.geteuid() and not found.st_mode & 0o022


def _keep(made: Path, target: Path) -> None:
    """Keep a copy under its name, all at once, and remove those that were not used for longest."""
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".new-") as folder:
        copied = Path(folder) / "template"
        shutil.copytree(made, copied)
        copied.chmod(0o700)
        with contextlib.suppress(OSError):  # another server has just kept the same
            copied.rename(target)
    others = sorted((each for each in target.parent.iterdir() if _is_own(each)), key=lambda each: each.stat().st_mtime)
    for each in [each for each in others if not each.name.startswith(".")][:-_KEPT]:
        shutil.rmtree(each, ignore_errors=True)


def _build(programs: Programs, target: Path, cluster: list[str], database: list[str]) -> None:
    """Make the first files, and run the statements in PostgreSQL alone, without a server."""
    _run(
        [
            str(programs.initdb),
            *("-D", str(target), "-U", OWNER, "-A", "trust", "-E", "UTF8", "--locale=C", "--wal-segsize=1"),
            *("--no-sync", "--no-instructions"),
        ],
        programs,
    )
    reset = [str(programs.resetwal), "-D", str(target)]
    _run([*reset, "-o", _FIRST_OID], programs)
    (target / "postgresql.conf").write_text(_SETTINGS)
    (target / "pg_hba.conf").write_text(_LOCAL_ONLY)
    options = ["-D", str(target), "-c", "exit_on_error=true", "-c", "default_transaction_read_only=off"]
    for name, statements in (("template1", cluster), (DATABASE, database)):
        text = "".join(f"{each}\n" for each in statements)
        _run([str(programs.postgres), "--single", *options, name], programs, text)
    _run(reset, programs)  # its log is most of what would be copied


def _run(command: list[str], programs: Programs, text: str = "") -> None:
    done = subprocess.run(  # noqa: S603 - PostgreSQL's own programs
        command,
        input=text,
        capture_output=True,
        text=True,
        check=False,
        timeout=_PATIENCE,
        **programs.account.options,
    )
    if done.returncode:
        _log.error("%s: %s", Path(command[0]).name, done.stderr[-500:])
        raise TemplateError(Path(command[0]).name)
