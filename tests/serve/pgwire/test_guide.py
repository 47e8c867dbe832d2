"""What the page on psql says is what happens."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tacit.errors import ErrorCode, Failed, LedgerError, Refused
from tacit.serve.pgwire.settings import SessionSettings
from tacit.serve.pgwire.sqlstate import sqlstate

PAGE = (Path(__file__).parents[3] / "docs" / "guide" / "psql.md").read_text(encoding="utf-8")


def rows(heading: str) -> list[list[str]]:
    """The rows of the table with this heading."""
    table = PAGE.split(f"| {heading} |", 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table]


@pytest.mark.slow
def test_the_sql_of_the_page_runs_in_psql(psql):
    commands = [line for block in re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]
    done = psql(*commands)
    assert done.returncode == 0 and "ERROR" not in done.stderr, done.stderr
    assert "n_low" in done.stdout and "QUERY PLAN" in done.stdout and "remaining" in done.stdout


def test_every_setting_of_tacit_is_on_the_page():
    listed = {name for name, _ in SessionSettings().list_settings() if name.startswith("tacit.")}
    assert {row[0].strip("`") for row in rows("setting")} == listed


def test_every_code_is_on_the_page_with_its_sqlstate():
    shown = {code: state for codes, state in rows("code") for code in re.findall(r"`([a-z-]+)`", codes)}
    assert shown.pop("ledger") == sqlstate(LedgerError(ErrorCode.LEDGER, ""))
    assert shown.pop("failed") == sqlstate(Failed())
    # which do not come from a question, or were seen above
    elsewhere = {"policy", "data", "report", "failed", "identity-provider", "unlinked-identity"}
    expected = {str(code): sqlstate(Refused(code, "")) for code in ErrorCode if code not in elsewhere}
    assert shown == {code: state for code, state in expected.items() if not code.startswith("ledger")}
