"""Text that others wrote, on a terminal."""

from __future__ import annotations

import json
import sys
import unicodedata
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.counts import FULL

from tacit.answers.answer import Answer
from tacit.client.arrow_stream import receipt_from_dict, receipt_to_dict
from tacit.client.views import error_from_json, read_budget, read_explanation, read_schema
from tacit.demo.survey import open_survey
from tacit.errors import ErrorCode, TacitError
from tacit.terminal import escaped_json, one_line, several_lines

TEXT = st.text(st.characters(), max_size=80)  # surrogates too


def is_safe(text, breaks=""):
    return all(character in breaks or unicodedata.category(character)[0] != "C" for character in text)


@pytest.mark.slow
def test_every_character_is_shown_or_replaced():
    rest = range(0x3000, sys.maxunicode + 1, 1 if FULL else 13)  # of one kind in long runs
    for code in (*range(0x3000), *rest):
        shown = one_line(chr(code))
        assert shown == chr(code) if chr(code).isprintable() else shown in {" ", "\ufffd"}
    for (
        hostile
    ) in "\x00\x07\x08\x1b\x7f\x80\x9b\x9d\xad\u061c\u200b\u200e\u202a\u202e\u2066\u2069\ufeff\U000e0041\ud800":
        assert one_line(hostile) == "\ufffd"
    assert one_line("Grüße, 東京, कि, 👍") == "Grüße, 東京, कि, 👍"


@given(TEXT, st.integers(0, 40))
def test_a_text_is_safe_and_of_limited_length(text, longest):
    assert is_safe(one_line(text)) and len(one_line(text, longest)) <= longest + 1
    assert is_safe(several_lines(text), "\n") and several_lines(text).count("\n") == text.count("\n")


@given(st.recursive(TEXT, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3)))
def test_json_that_is_escaped_means_the_same(value):
    found = escaped_json(json.dumps(value, indent=2, ensure_ascii=False))
    assert is_safe(found, "\n") and json.loads(found) == value


HOSTILE = "\x1b]0;owned\x07\x9b2J\u202e\nfix: rm -rf ~" + "x" * 100_000


def test_a_servers_errors_are_text_of_limited_length():
    for kind in ("", "ledger", "parameter", "failed"):
        place = {"line": 1, "column": 1, "excerpt": HOSTILE, "source": HOSTILE}
        error = error_from_json(
            {
                "error": {
                    "code": "syntax",
                    "what": HOSTILE,
                    "fix": HOSTILE,
                    "kind": kind,
                    "at": place,
                    "suggestion": HOSTILE,
                }
            }
        )
        assert is_safe(error.suggestion or "", "\n") and len(error.suggestion or "") <= 100_100
        assert isinstance(error, TacitError)
        assert is_safe(str(error), "\n") and len(str(error)) < 12_000
        assert str(error).count("\n") <= 4  # what, the place in three lines, and the fix


def test_a_servers_error_of_another_shape_is_none():
    strange = [None, [], {"error": []}, {"error": {"code": "x"}}, {"error": {"code": [], "what": 1, "fix": 1}}]
    about = {"code": "syntax", "what": "", "fix": ""}
    places = [
        3,
        {},
        {"line": "1", "column": 1, "excerpt": ""},
        {"line": 1, "column": 10**9, "excerpt": "", "length": 10**9},
    ]
    strange += [{"error": {**about, "at": place}} for place in places]
    for found in strange:
        error = error_from_json(found)
        assert error.code is ErrorCode.PROTOCOL and len(str(error)) < 3000


@pytest.mark.slow
def test_an_answer_of_a_server_is_printed_without_escapes():
    with open_survey() as curator:
        answer = curator.analyst("ada").ask("SELECT COUNT(*) AS n FROM survey", epsilon=0.5)
    plain = {**receipt_to_dict(answer.receipt), **dict.fromkeys(("who", "head", "key", "time", "request"), HOSTILE)}
    receipt = receipt_from_dict(plain)
    assert is_safe(str(receipt)) and is_safe(repr(receipt))
    (heading,) = answer.headings
    shown = Answer(answer._table, (replace(heading, name=HOSTILE),), Fraction(95, 100), (), receipt)
    assert is_safe(repr(shown)) and is_safe(str(shown), "\n")
    with pytest.raises(ValueError, match="invalid literal"):
        receipt_from_dict({**plain, "entry": HOSTILE})


@pytest.mark.slow
def test_what_a_server_tells_is_printed_without_escapes():
    grains = {"own": [[0] * 4, [10**12] * 4], "overall": [[0] * 4, [10**12] * 4]}
    assert is_safe(str(read_budget({"who": HOSTILE, "own": {"month": HOSTILE}, "grains": grains})), "\n")
    columns = {HOSTILE: {"type": HOSTILE, "values": [HOSTILE]}}
    told = {"neighbors": HOSTILE, "tables": {HOSTILE: {"unit": HOSTILE, "max_rows": "auto", "columns": columns}}}
    assert is_safe(str(read_schema(told)), "\n") and is_safe(repr(read_schema(told)), "\n")
    with open_survey() as curator:
        plain = curator.analyst("ada").explain("SELECT COUNT(*) AS n FROM survey", epsilon=0.5).to_dict()
    names = ("unit", "neighbors", "keys")
    assert is_safe(str(read_explanation({**plain, **dict.fromkeys(names, HOSTILE), "notes": [HOSTILE]})), "\n")
