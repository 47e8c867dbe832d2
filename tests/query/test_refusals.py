"""Refusals, one file each: the question, a line of dashes, and exactly what the analyst reads.

Set TACIT_WRITE=1 to write what is printed now into the files, and review the difference.
"""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from tacit.aggregates.registry import read_question as parse
from tacit.errors import ErrorCode, Refused
from tacit.query.refusals import (
    CAST_SUGGESTIONS,
    FUNCTION_SUGGESTIONS,
    OPERATOR_SUGGESTIONS,
    UNSUPPORTED_CLAUSES,
    UNSUPPORTED_JOINS,
)

FILES = sorted((Path(__file__).parent / "refusals").glob("*.txt"))
ABOUT_THE_TEXT = list(ErrorCode)[: list(ErrorCode).index(ErrorCode.RAW_COLUMN)]
NOWHERE = {"empty", "comment_only"}  # there is no text to point at


def read(file: Path) -> tuple[str, str]:
    """The question, which may hold any line end, and what is printed."""
    sql, _, printed = file.read_bytes().decode().partition("\n---\n")
    return sql, printed


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_refusal_reads_as_in_its_file(file: Path) -> None:
    sql, expected = read(file)
    with pytest.raises(Refused) as caught:
        parse(sql)
    if os.environ.get("TACIT_WRITE") == "1":
        file.write_bytes(f"{sql}\n---\n{caught.value}\n".encode())
        return
    assert f"{caught.value}\n" == expected
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_refusal_says_what_to_do_and_marks_text_of_the_question(file: Path) -> None:
    sql, printed = read(file)
    lines = printed.splitlines()
    assert lines[-1].startswith("  fix: ")
    assert all(len(line) <= 140 for line in lines)
    if file.stem in NOWHERE:
        assert len(lines) == 2
        return
    excerpt, marks = lines[2][4:], lines[3][4:]
    shown = "".join(c if c.isprintable() or c == "\n" else " " for c in sql)
    assert any(excerpt in line for line in shown.split("\n"))
    assert set(marks.strip()) == {"^"}
    # a mark is as long as what it marks; a space that is none is marked too
    assert excerpt[marks.index("^") : len(marks)].strip() or file.stem == "character_space"


def test_every_code_about_the_text_has_a_file() -> None:
    shown = {read(file)[1].split("]")[0] for file in FILES}
    assert shown >= {f"refused [{code}" for code in ABOUT_THE_TEXT}
    assert len(FILES) >= 270


def test_every_part_of_sql_that_is_named_in_a_table_has_a_fix() -> None:
    fixes = [
        *(fix for _, fix in (*UNSUPPORTED_CLAUSES.values(), *OPERATOR_SUGGESTIONS.values())),
        *UNSUPPORTED_JOINS.values(),
        *FUNCTION_SUGGESTIONS.values(),
    ]
    assert all(fixes) and all(CAST_SUGGESTIONS.values())


@pytest.mark.parametrize("sign", OPERATOR_SUGGESTIONS)
def test_a_sign_of_other_sql_is_refused_by_name(sign: str) -> None:
    with pytest.raises(Refused) as caught:
        parse(f"SELECT COUNT(*) FROM visits WHERE age {sign} 3")
    assert caught.value.code is ErrorCode.UNSUPPORTED
    assert caught.value.fix == OPERATOR_SUGGESTIONS[sign][1]
    assert caught.value.at is not None and caught.value.at.words == sign


@pytest.mark.parametrize("name", sorted(FUNCTION_SUGGESTIONS))
def test_a_function_that_is_not_answered_says_what_is(name: str) -> None:
    with pytest.raises(Refused) as caught:
        parse(f"SELECT 1 + {name}(age) FROM visits")
    assert caught.value.code in {ErrorCode.UNKNOWN_FUNCTION, ErrorCode.UNSUPPORTED}
    assert caught.value.at is not None and caught.value.at.words.startswith(name)


def test_what_a_question_quotes_cannot_move_the_cursor_of_who_reads_it() -> None:
    # \x1b[2J empties a terminal
    for sql in (
        "SELECT COUNT(*) FROM visits WHERE visited = DATE '\x1b[2J'",
        'SELECT COUNT(*) AS "\x1b[2J", 1 AS "\x1b[2J" FROM visits',
        "SELECT COUNT(*) AS '\x1b[2J' FROM visits",
        "SELECT DATE_TRUNC('\x1b[2J', visited) FROM visits",
        "SELECT COUNT(*) FROM visits WHERE diagnosis = '\x1b[2J' AND SIN(age)",
        "\x1b[2J",
    ):
        with pytest.raises(Refused) as caught:
            parse(sql)
        assert all(c.isprintable() or c == "\n" for c in str(caught.value))
