"""`tacit anonymity`: the measures of a file."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from pyarrow import parquet

pytestmark = pytest.mark.slow

ROWS = {"age": ["20-39"] * 3 + ["40-59"] * 2, "pain": ["low", "high", "low", "mid", "mid"]}


def test_a_csv_file_is_measured_and_drawn(tacit, tmp_path):
    lines = ["age,pain", *(f"{age},{pain}" for age, pain in zip(*ROWS.values(), strict=True))]
    (tmp_path / "wards.csv").write_text("\n".join(lines), encoding="utf-8")
    done = tacit("anonymity", "wards.csv", "--key", "age", "--sensitive", "pain", "--plot", "groups.svg", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "k = 2" in done.stdout
    assert "2 rows are in groups with one value of pain" in done.stdout
    assert "<svg" in (tmp_path / "groups.svg").read_text(encoding="utf-8")


def measured(tacit, folder, text: str, *arguments: str) -> dict:
    (folder / "t.csv").write_text(text, encoding="utf-8")
    done = tacit("anonymity", "t.csv", *arguments, "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_values_of_a_csv_file_are_what_its_readers_see(tacit, tmp_path):
    codes = "\n".join(
        ["code", "01234", "1234", "1234.0", "NA", "null", "NaN", "N/A", "true", "TRUE", "2024-1-5", "2024-01-05"]
    )
    assert measured(tacit, tmp_path, codes, "-k", "code")["k"] == 1
    found = measured(tacit, tmp_path, codes, "-k", "code")
    assert found["groups"] == found["rows"] == 11
    assert measured(tacit, tmp_path, 'code,x\n,1\n"",1\n,2\n', "-k", "code")["k"] == 3  # nothing is one value
    assert measured(tacit, tmp_path, "zip,dx\n1,01\n1,1\n", "-k", "zip", "-s", "dx")["distinct_l"] == 2


def test_sensitive_numbers_and_days_have_an_order_also_with_semicolons(tacit, tmp_path):
    pay = "zip;pay\n1;1.000,5\n1;2.000,5\n2;3.000,50\n2;3.000,5\n"
    # whole: 1/4, 1/4, 1/2 of three values; the group of two alike: cdf differences 1/4 and 1/2 over 2
    assert measured(tacit, tmp_path, pay, "-k", "zip", "-s", "pay")["t_ordered"] == 0.375
    days = "zip,day\n1,2024-02-01\n1,2023-02-01\n2,2025-02-01\n2,2025-02-01\n"
    assert measured(tacit, tmp_path, days, "-k", "zip", "-s", "day")["t_ordered"] == 0.375
    unsure = pay.replace(",50", "").replace(",5", "")  # 1.000 may be 1: text, which has no order
    assert measured(tacit, tmp_path, unsure, "-k", "zip", "-s", "pay")["t_ordered"] is None


def test_a_parquet_file_with_an_order_as_json(tacit, tmp_path):
    parquet.write_table(pa.table(ROWS), tmp_path / "wards.parquet")
    words = [word for value in ("low", "mid", "high") for word in ("--order", value)]
    done = tacit("anonymity", "wards.parquet", "-k", "age", "-s", "pain", *words, "--json", cwd=tmp_path)
    found = json.loads(done.stdout)
    # whole: 2 low, 2 mid, 1 high of 5; the group of 2 mid: cdf differences 2/5 and 1/5 over 2. The other: 4/15, 2/15
    assert (found["k"], found["distinct_l"], found["t_ordered"]) == (2, 1, 0.3)


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["wards.txt", "-k", "age"], "wards.txt is neither .csv nor .parquet"),
        (["none.csv", "-k", "age"], "there is no file none.csv"),
        (["bad.parquet", "-k", "age"], "bad.parquet cannot be read"),
        (["one.csv", "-k", "agee"], "the table has no column 'agee'"),
    ],
)
def test_mistakes_are_told(arguments, what, tacit, tmp_path):
    (tmp_path / "bad.parquet").write_bytes(b"nothing")
    (tmp_path / "one.csv").write_text("age\n1\n", encoding="utf-8")
    done = tacit("anonymity", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert what in done.stderr
