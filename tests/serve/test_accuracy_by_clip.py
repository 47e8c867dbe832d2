"""A served accuracy under `max_rows = "auto"`: HTTP, the PostgreSQL wire and the console ask both steps of it once."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import httpx
import psycopg
import pytest
from tests.support.console import Page, Visitor

import tacit
from tacit.accounting.filters import GRAINS_PER_EPSILON, BudgetCharge
from tacit.answers.data_profile import DataProfile
from tacit.errors import ErrorCode, Refused
from tacit.ledger.entries import EntryKind
from tacit.plan.question import Question
from tacit.serve.console.estimate import estimate_question
from tacit.serve.service import CuratorService

BY_WARD = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"


def set_auto(clinic: Any) -> Any:
    """The clinic with a clip in place of the caps."""
    text = clinic.policy.read_text()
    clinic.policy.write_text(text.replace("max_groups = 2\nmax_rows_per_group = 2\n", 'max_rows = "auto"\n'))
    return clinic


@pytest.fixture(scope="module")
def served(tmp_path_factory, make_clinic, serving) -> Iterator[Any]:
    with serving(set_auto(make_clinic(tmp_path_factory.mktemp("auto")))) as running:
        yield running


def charges(curator: Any) -> list[str]:
    return [entry.key for entry in curator.ledger.entries() if entry.kind is EntryKind.RESERVE]


@pytest.mark.slow
def test_http_the_wire_and_the_console_ask_the_same_question(served, signed):
    entries = len(charges(served.curator))
    with tacit.connect(served.http, served.key("ada"), cafile=served.cafile) as ada:
        before = ada.explain(BY_WARD, within={"n": 40})
        assert [rows for rows, _ in before.epsilon_by_rows] == [1, 10, 100]
        assert (
            before.epsilon_by_rows == served.curator.analyst("ada").explain(BY_WARD, within={"n": 40}).epsilon_by_rows
        )
        answer = ada.ask(BY_WARD, within={"n": 40}, request="mine")
        assert len(charges(served.curator)) == entries + 2
        after = ada.explain(BY_WARD, within={"n": 40})
        assert not after.epsilon_by_rows
        assert "epsilon_by_rows" in after.to_dict()
        for _ in range(2):  # planned, and then from the cache
            again = ada.ask(BY_WARD, within={"n": 40})
            assert (again["n"], again.notes, again.receipt.repeat) == (answer["n"], answer.notes, True)
            assert again.receipt.clip == replace(answer.receipt.clip, charged=BudgetCharge.zero())
            assert again.receipt.is_free
    assert answer.receipt.to_dict()["both_charged_epsilon"] == answer.receipt.to_dict()["both_epsilon"]
    assert any("of it chose the clip" in note for note in answer.notes)
    port = served.postgres.rpartition(":")[2]
    login = {"user": "ada", "password": served.clinic.secrets["ada"].password, "dbname": "tacit"}
    with psycopg.connect(host="127.0.0.1", port=port, sslmode="require", autocommit=True, **login) as connection:
        connection.execute("SET tacit.within = 'n=40'")
        assert [n for _, n in connection.execute(BY_WARD).fetchall()] == answer["n"]
    page = signed("ada").ask(BY_WARD, within="n=40")
    assert page.status_code == 200
    assert "of it chose the clip" in Page(page.text).text
    assert len(charges(served.curator)) == entries + 2


@pytest.mark.slow
def test_the_console_says_what_each_clip_costs(served, signed):
    visitor = signed("ben")
    entries = len(charges(served.curator))
    page = Page(visitor.ask(BY_WARD, path="/price", within="n=30").text)
    assert re.search(r"That is for a clip of one row; for 10 rows it is [\d.]+; for 100 rows it is [\d.]+", page.text)
    assert "n within 30" in page.text
    assert len(charges(served.curator)) == entries
    paid = Page(visitor.ask(BY_WARD, within="n=30").text).text
    found = re.search(r"Paid epsilon ([\d.]+) ?: ([\d.]+) for the clip and ([\d.]+) for the answer\.", paid)
    assert found is not None
    whole, clip, rest = map(Decimal, found.groups())
    assert whole == clip + rest
    assert re.search(rf"Both together\s+epsilon {whole}", paid)
    assert "You paid for this before" in Page(visitor.ask(BY_WARD, path="/price", within="n=30").text).text


@pytest.mark.slow
def test_a_refusal_of_the_second_step_says_what_stays_charged(tmp_path, make_clinic, serving):
    # a clip of 2 rows needs 0.15 within 40, after about 0.16 for the clip: one row fits into 0.25, two do not
    with serving(set_auto(make_clinic(tmp_path, ada=0.25))) as served:
        with tacit.connect(served.http, served.key("ada"), cafile=served.cafile) as ada:
            with pytest.raises(Refused, match="is spent") as refusal:
                ada.ask(BY_WARD, within={"n": 40})
            assert refusal.value.code is ErrorCode.BUDGET
            assert len(charges(served.curator)) == 1
            (epsilon,) = re.findall(r"epsilon=([0-9.]+)", refusal.value.fix)
            assert float(epsilon) < 0.25
        tls = ssl.create_default_context(cafile=served.cafile)
        with httpx.Client(timeout=60, base_url=served.http, verify=tls) as client:
            visitor = Visitor(client)
            visitor.sign_in("ada", served.clinic.secrets["ada"].password)
            shown = Page(visitor.ask(BY_WARD, within="n=40").text).text
        assert "The charge for the clip stays" in shown
        assert "Nothing was charged" not in shown
        assert len(charges(served.curator)) == 1


@pytest.mark.slow
def test_the_service_keeps_the_answer_of_the_second_step(tmp_path, make_clinic):
    async def work(curator: Any) -> None:
        service = CuratorService(curator, first=0)
        question = Question(BY_WARD, within={"n": 40})
        columns = [result.name for result in (await service.plan("ada", question)).recipe.results]
        assert columns == ["ward", "n"]
        answer = await service.ask("ada", question)
        assert service.knows("ada", question)
        assert not service.knows("ben", question)
        again = await service.ask("ada", question)
        assert again["n"] == answer["n"]
        assert len(charges(curator)) == 2
        await service.close()

    with tacit.open(set_auto(make_clinic(tmp_path)).policy) as curator:
        asyncio.run(work(curator))
        none: DataProfile | None = None
        question = Question(BY_WARD, within={"n": 40})
        budget = curator.analyst("ada").budget
        assert estimate_question(question, budget, curator.planner, curator.ledger, none).free
        other = estimate_question(question, curator.analyst("ben").budget, curator.planner, curator.ledger, none)
        assert not other.free
        assert other.within == "n=40"
        assert float(other.first) < other.explanation.epsilon
        left = curator.ledger.standing("ben").remaining / GRAINS_PER_EPSILON
        assert left == 1000
