"""From a CSV file to a first private answer: what an owner decides, and nothing else is asked of them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tacit.cli.guided_init import _read_columns

pytestmark = pytest.mark.slow
SQL = "SELECT region, COUNT(*) AS orders FROM orders GROUP BY region"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    draw = random.Random(1)
    lines = ["order_id,customer_id,name,email,region,amount,ordered_at"]
    for number in range(3_000):
        customer = draw.randrange(600)
        region, amount = draw.choice(["north", "south"]), draw.random() * 90
        lines.append(
            f"{number},{customer},P{customer},p{customer}@x.org,{region},{amount:.2f},2025-01-0{number % 9 + 1}"
        )
    (tmp_path / "orders.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_with_the_unit_given_nothing_is_left_to_fill_in(tacit, shop):
    made = tacit("init", "orders.csv", "--unit", "CUSTOMER_ID", "--epsilon", "4", "--analyst", "bob", cwd=shop)
    assert made.returncode == 0, made.stderr
    assert "Left out of orders: order_id (a key), customer_id (a key), name (the name of somebody)" in made.stdout
    assert "?" not in made.stdout
    checked = tacit("check", cwd=shop)
    assert checked.returncode == 0, checked.stderr
    asked = tacit("ask", "--as", "bob", SQL, "--epsilon", "2", cwd=shop)
    assert asked.returncode == 0, asked.stderr
    assert "north" in asked.stdout and "south" in asked.stdout


def test_what_is_not_given_is_proposed_and_left_to_the_owner(tacit, shop):
    made = tacit("init", "orders.csv", cwd=shop)
    assert "customer_id seems to say whose row it is, with about 5 rows for each value" in made.stdout
    text = (shop / "tacit.toml").read_text()
    assert 'unit = "?"    # "customer_id", perhaps' in text
    assert "600" not in text and "3,000" not in text  # the policy is public: nothing of the data is in it


def test_enter_takes_every_proposal(tacit, shop):
    made = tacit("init", "orders.csv", "--guided", cwd=shop, stdin="\n" * 5)
    assert made.returncode == 0, made.stderr
    assert [f"{number}. " in made.stdout for number in range(1, 6)] == [True] * 5
    assert 'unit = "customer_id"' in (shop / "tacit.toml").read_text()
    assert tacit("check", cwd=shop).returncode == 0


def test_answers_are_asked_for_until_they_can_be_read(tacit, shop):
    answers = ("who", "customer_id", "nothing", "email", "9 1", "0 100", "lots", "2.5", "bo b", "bob")
    made = tacit("init", "orders.csv", "--guided", cwd=shop, stdin="\n".join(answers) + "\n")
    assert made.returncode == 0, made.stderr
    assert "there is no column who" in made.stdout and "write two numbers" in made.stdout
    text = (shop / "tacit.toml").read_text()
    assert "\nemail       = {" in text and "lower = 0, upper = 100" in text
    assert "[analysts.bob]\nepsilon = 1.25" in text and "\nepsilon = 2.5\n" in text
    assert tacit("check", cwd=shop).returncode == 0


@pytest.mark.parametrize(
    ("given", "what"),
    [
        (["--unit", "who"], "there is no column who"),
        (["--epsilon", "0"], "must be a number above 0"),
        (["--epsilon", "much"], "must be a number above 0"),
        (["--analyst", "a b"], "an analyst's name has no spaces"),
        (["--analyst", "a\nb"], "an analyst's name has no spaces"),
        (["--analyst", "(owner)"], "a name that begins with ( is one of Tacit's own"),
        (["--analyst", "a" * 129], "a name has at most 128 characters"),
    ],
)
def test_a_choice_that_cannot_be_read_writes_nothing(tacit, shop, given, what):
    made = tacit("init", "orders.csv", *given, cwd=shop)
    assert made.returncode == 2
    assert what in made.stderr
    assert not (shop / "tacit.toml").exists()
    assert "is needed" in tacit("init", "--unit", "x", cwd=shop).stderr


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Two tables with columns of the same names."""
    (tmp_path / "store").mkdir()
    for name in ("orders", "returns"):
        lines = ["customer_id,note," + ",".join(f"a{number}" for number in range(6))]
        lines += [f"{number % 20},x,1,1,1,1,1,1" for number in range(100)]
        (tmp_path / "store" / f"{name}.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_a_column_that_two_tables_have_is_named_with_its_table(tacit, store):
    # note and a0 alone could be either table's: both are asked for again
    answers = ("customer_id", "note", "Orders.Note", "a0, a1", "returns.a0, orders.a1", "0 100", "0 9", "1", "ada")
    made = tacit("init", "store", "--guided", cwd=store, stdin="\n".join(answers) + "\n")
    assert made.returncode == 0, made.stderr
    assert "note may be orders.note or returns.note: write which" in made.stdout
    assert "a0 may be orders.a0 or returns.a0: write which" in made.stdout
    assert "12 columns are numbers: orders.a0, orders.a1" in made.stdout
    orders, returns = (store / "tacit.toml").read_text().split("[tables.returns]")
    assert "\nnote        = {" in orders and "\n# note" in returns
    assert "lower = 0, upper = 100 }" not in orders and "lower = 0, upper = 100 }" in returns
    assert "lower = 0, upper = 9 }" in orders and "lower = 0, upper = 9 }" not in returns


def test_a_column_that_one_table_has_needs_no_table():
    offered = [("orders", "note"), ("returns", "Reason"), ("b", "c"), ("a", "b.c")]
    assert _read_columns(offered, "reason, note, orders.note") == [("returns", "Reason"), ("orders", "note")]
    assert _read_columns(offered, "b.c, a.b.c") == [("b", "c"), ("a", "b.c")]
    assert _read_columns(offered, " , ") == []
