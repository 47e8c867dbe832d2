"""Everything of the local model that is read from bytes: what was forged is refused with a code, never a bare error."""

from __future__ import annotations

import contextlib
import hashlib
import json
import zlib
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.counts import FULL

from tacit.errors import ErrorCode, ParameterError, Refused, TacitError
from tacit.local import FrequencySummary, KAryRandomizedResponse, MeanSummary, PiecewiseMechanism, Rappor, UniformGrid
from tacit.local.survey.load import load_public_form, load_survey, parse_survey
from tacit.local.survey.reports import parse_report
from tacit.local.survey.store import ReportStore, is_report_store, parse_store, read_store
from tacit.sampling.bits import ReplayBits

EXAMPLES = 400 if FULL else 40
HUGE = ["1e999", "-1e999", "NaN", "Infinity", "-Infinity", "1" * 400, "-" + "1" * 400, "1" * 5000, "1.5", "-0.0"]
HUGE += [
    "[" * 2000,
    "[]",
    "{}",
    "null",
    "true",
    '""',
    '"\\ud800"',
    '"1e999"',
    '"inf"',
    '"nan"',
    '"9/0"',
    '"' + "9" * 399 + '"',
]
SURVEY = parse_survey(
    {
        "id": "lunch",
        "questions": [
            {"name": "soup", "text": "?", "kind": "yes-no", "epsilon": 1},
            {"name": "dish", "text": "?", "kind": "several", "options": ["a", "b"], "epsilon": 1},
            {"name": "size", "text": "?", "kind": "number", "lower": 0, "upper": 1, "epsilon": 1},
        ],
    }
)
REPORT = SURVEY.respond([1, "10", 7], ReplayBits(b"one"))


def signed_summary(header: bytes, counts: bytes) -> bytes:
    body = b"tacit local 1\n" + (len(header) % 65536).to_bytes(2, "little") + header + counts
    return body + hashlib.blake2b(body, digest_size=16).digest()


def signed_mean_summary(body: bytes) -> bytes:
    return hashlib.sha256(body).digest() + body


def outcome(loader, *arguments):
    """The code with which a loader refuses; None where it does not. Any other error ends the test."""
    try:
        loader(*arguments)
    except Refused as error:
        return error.code
    return None


def line(text: bytes) -> bytes:
    return b"%08x %s\n" % (zlib.crc32(text), text)


def mutated(value, forged):
    """JSON text of a value with each place in it, in turn, replaced by each forged text."""

    def places(node):
        if isinstance(node, dict):
            for key in node:
                yield from (
                    (lambda new, inner=change, at=key: {**node, at: inner(new)}) for change in places(node[key])
                )
            yield lambda new: {**node, "more": new}
        elif isinstance(node, list | tuple):
            for at, each in enumerate(node):
                yield from (
                    (lambda new, inner=change, at=at: [*node[:at], inner(new), *node[at + 1 :]])
                    for change in places(each)
                )
        yield lambda new: new

    marker = "\u0001"
    for change in places(value):
        for text in forged:
            yield json.dumps(change(marker), separators=(",", ":")).replace(json.dumps(marker), text).encode()


SUMMARIES = [
    {"protocol": "k-ary", "domain": 2, "epsilon": "1", "survey": "", "users": 3},
    {
        "protocol": Rappor(2, 2, Fraction(1, 4), Fraction(3, 4)).kind,
        "domain": 2,
        "epsilon": "2",
        "survey": "",
        "users": 3,
    },
]


@pytest.mark.parametrize("header", SUMMARIES, ids=["k-ary", "rappor"])
def test_a_forged_summary_is_refused(header):
    counts = np.array([1, 2], dtype="<i8").tobytes()
    assert (
        FrequencySummary.from_bytes(signed_summary(json.dumps(header, separators=(",", ":")).encode(), counts)).users
        == 3
    )
    chances = [
        "rappor 1e999/1 1/2",
        "rappor NaN 1/2",
        "rappor " + "9" * 400 + "/1 1/2",
        "rappor 1/0 1/2",
        "rappor",
        " ",
    ]
    forged = [*HUGE, *(json.dumps(text) for text in chances)]
    for text in mutated(header, forged):
        data = signed_summary(text, counts)
        assert outcome(FrequencySummary.from_bytes, data) in {None, ErrorCode.REPORT}


def test_a_forged_mean_summary_is_refused():
    good = MeanSummary.empty(PiecewiseMechanism(UniformGrid(0, 1, steps=4), 1), "s").add([0, 1]).to_bytes()[32:]
    name = json.loads(good)[1]
    forged = [*HUGE]
    for place in range(1, 5):
        parts = name.split(" ")
        for number in ("1e999", "nan", "9" * 399, "-" + "9" * 399, "1/0", "0", "", "1/" + "9" * 399, "1" * 9):
            forged.append(json.dumps(" ".join([*parts[:place], number, *parts[place + 1 :]])))
    for text in mutated(json.loads(good), forged):
        assert outcome(MeanSummary.from_bytes, signed_mean_summary(text)) in {None, ErrorCode.REPORT}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.slow
@settings(max_examples=EXAMPLES, deadline=None)
@given(st.binary(max_size=200), JSON)
def test_anything_at_all_is_refused_by_every_loader(data, value):
    texts = [data, json.dumps(value).encode()]
    for text in texts:
        loaders = [
            lambda text=text: FrequencySummary.from_bytes(signed_summary(text, data)),
            lambda text=text: MeanSummary.from_bytes(signed_mean_summary(text)),
            lambda text=text: parse_report(text),
            lambda text=text: SURVEY.accept(text),
            lambda text=text: load_public_form(text.decode("utf-8", "replace")),
            lambda text=text: parse_store(line(text) + line(text), Path("x"), SURVEY),
            lambda text=text: parse_store(HEAD + line(text), Path("x"), SURVEY),
        ]
        for loader in loaders:
            with pytest.raises(TacitError):
                loader()
        is_report_store(line(text))
    with pytest.raises(ParameterError):
        parse_survey(value if isinstance(value, dict) else {"questions": value})


HEAD = line(json.dumps({"survey": SURVEY.digest, "id": "lunch"}, separators=(",", ":")).encode())


@pytest.mark.slow
def test_a_forged_form_is_refused_or_is_the_survey():
    form = json.loads(SURVEY.to_json())
    for text in mutated(form, HUGE):
        with contextlib.suppress(ParameterError):
            assert load_public_form(text.decode()) == SURVEY  # where the forged text is the one that was there


def test_a_forged_report_is_refused():
    refused = 0
    for text in mutated(json.loads(REPORT.to_json()), HUGE):
        try:
            SURVEY.accept(text)
        except Refused:
            refused += 1
    assert refused > 100


def test_a_forged_store_is_refused(tmp_path):
    entry = {"id": REPORT.id, "answers": list(REPORT.answers)}
    path = tmp_path / "forged.reports"
    for text in [*mutated(entry, HUGE), b"[]", b"3", b'"survey"', b"[" * 5000]:
        data = HEAD + line(text)
        path.write_bytes(data)
        found = {
            outcome(read_store, path, SURVEY),
            outcome(parse_store, data, path, SURVEY),
            outcome(opened, path, SURVEY),
        }
        assert found in ({None}, {ErrorCode.REPORT})
    for text in mutated({"survey": SURVEY.digest, "id": "lunch"}, HUGE):
        is_report_store(line(text))
        path.write_bytes(line(text))
        assert outcome(read_store, path, SURVEY) in {None, ErrorCode.REPORT}


def opened(path, survey):
    with ReportStore(path, survey):
        pass


@pytest.mark.parametrize(
    "value",
    [
        *("1e999", "nan", "-inf", "1" * 400, "1" * 5000, "1e99999999999999999999", "[" * 3000),
        *("0x" + "f" * 5000, "'''", "1979-05-27", "[]", "{}"),
    ],
    ids=range(12),
)
def test_a_file_with_numbers_beyond_reason_is_told(tmp_path, value):
    path = tmp_path / "survey.toml"
    question = 'name = "a"\ntext = "?"\nkind = "number"\nlower = 0\nupper = 1\nstep = 1\nepsilon = 1\n'
    for key in ("name", "text", "kind", "lower", "upper", "step", "unit", "epsilon", "options", "most"):
        lines = [part for part in question.splitlines() if not part.startswith(f"{key} ")]
        path.write_text('id = "x"\n[[questions]]\n' + "\n".join([*lines, f"{key} = {value}"]) + "\n")
        with pytest.raises(ParameterError):
            load_survey(path)
    for key in ("id", "title", "about", "epsilon", "questions"):
        head = "" if key == "id" else 'id = "x"\n'
        tail = "" if key == "questions" else "[[questions]]\n" + question
        path.write_text(f"{head}{key} = {value}\n{tail}")
        with pytest.raises(ParameterError):
            load_survey(path)


def test_ends_of_a_range_that_no_double_holds_are_refused():
    for lower, upper in ((0, 10**400), (-(10**400), 0), (10**31, 10**31 + 1)):
        asked = {"name": "a", "text": "?", "kind": "number", "lower": lower, "upper": upper, "epsilon": 1}
        with pytest.raises(ParameterError, match=r"upper|lower"):
            parse_survey({"id": "x", "questions": [asked]})


def test_a_summary_of_a_huge_domain_costs_nothing_to_refuse():
    for kind in ("k-ary", "symmetric-unary", "optimized-unary", "hashing", "hadamard", "subset", "projective"):
        header = {"protocol": kind, "domain": 2**30, "epsilon": "1", "survey": "", "users": 3}
        with pytest.raises(Refused):
            FrequencySummary.from_bytes(signed_summary(json.dumps(header, separators=(",", ":")).encode(), b""))


def test_what_is_written_is_read():
    summary = FrequencySummary.empty(KAryRandomizedResponse(3, 2), survey="lunch").add([0, 1, 2])
    assert FrequencySummary.from_bytes(summary.to_bytes()).users == 3
