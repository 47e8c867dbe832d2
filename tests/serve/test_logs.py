"""The log of a server: for its owner only, and no larger than its owner can read, whatever is sent."""

from __future__ import annotations

import logging
import os
import stat
import subprocess
import sys

import pytest

from tacit.serve.log_redaction import REQUEST, STRANGER, LineLimit, OwnerFile, RedactingFormatter


@pytest.fixture
def log(tmp_path):
    """A log as a server's, and its file."""
    handler = OwnerFile(tmp_path / "serve.log")
    handler.setFormatter(RedactingFormatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
    handler.addFilter(LineLimit())
    logger = logging.Logger("tacit.serve")
    logger.addHandler(handler)
    yield logger, tmp_path / "serve.log"
    handler.close()


def test_a_new_log_is_for_its_owner_only_and_an_old_one_becomes_so(tmp_path):
    for name in ("new", "old"):
        if name == "old":
            (tmp_path / name).write_text("before\n")
            (tmp_path / name).chmod(0o644)
        before = os.umask(0)
        try:
            OwnerFile(tmp_path / name).close()
        finally:
            os.umask(before)
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    assert (tmp_path / "old").read_text() == "before\n"


@pytest.mark.slow
def test_the_command_s_log_is_for_its_owner_only(tmp_path):
    code = "import os; os.umask(0); from tacit.cli.main import main; main()"
    environment = {**os.environ, "TACIT_LOG": str(tmp_path / "tacit.log")}
    subprocess.run([sys.executable, "-c", code, "--version"], env=environment, check=False, capture_output=True)
    assert stat.S_IMODE((tmp_path / "tacit.log").stat().st_mode) == 0o600


@pytest.mark.slow
def test_a_flood_of_lines_is_limited_and_counted(log):
    logger, path = log
    for n in range(5_000):
        logger.info(REQUEST, "POST", "/v1/ask", 429, "eve")
        logger.info(STRANGER, "GET", "/v1/budget", 401, "192.0.2.1")
        logger.warning("a wrong name or password from %s", f"192.0.2.{n % 200}")
        logger.error("socket.accept() out of system resource\nsocket: <%d>", n)
    assert path.stat().st_size < 100_000
    assert path.read_text().count("\n") < 1_000


def test_failures_with_their_places_are_limited_too(log):
    logger, path = log
    for n in range(5_000):
        try:
            raise ValueError("the flu")
        except ValueError as error:
            logger.error("entry %d failed", n, exc_info=error)
    assert path.stat().st_size < 200_000 and "flu" not in path.read_text()


def test_a_flood_of_one_hides_no_line_of_another(log):
    logger, path = log
    for _ in range(5_000):
        logger.info(STRANGER, "GET", "/v1/budget", 401, "192.0.2.1")
    logger.info(STRANGER, "GET", "/v1/budget", 401, "192.0.2.2")
    logger.info(REQUEST, "POST", "/v1/ask", 200, "ada")
    text = path.read_text()
    assert "401 - from 192.0.2.2" in text and "200 ada" in text


def test_the_next_line_says_how_many_were_left_out(log, monkeypatch):
    logger, path = log
    limit = logger.handlers[0].filters[0]
    for _ in range(150):
        logger.info(STRANGER, "GET", "/v1/budget", 401, "192.0.2.1")
    limit._others.per_second = 1e9  # as if much time had passed
    logger.info(STRANGER, "GET", "/v1/budget", 401, "192.0.2.1")
    assert path.read_text().splitlines()[-1].endswith("401 - from 192.0.2.1 (50 more like this were left out)")


def test_what_is_remembered_of_lines_is_bounded(log):
    logger, _ = log
    limit = logger.handlers[0].filters[0]
    limit._others.burst = 0
    for n in range(3_000):
        logger.info(STRANGER, "GET", "/v1/budget", 401, f"2001:db8::{n:x}")
    assert len(limit._left_out) == 1_000
