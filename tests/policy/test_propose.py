"""Whose rows a table holds, and which columns name somebody, as names and repeated values tell it."""

from __future__ import annotations

import pytest

from tacit.engines.source_columns import SourceColumn
from tacit.policy.model import Type, UnitForeignKey
from tacit.policy.propose import UnitProposal, find_what_names_somebody, propose_person, propose_units


def table(**distinct: float | None) -> list[SourceColumn]:
    return [SourceColumn(name, Type.INT, share) for name, share in distinct.items()]


@pytest.mark.parametrize(
    ("tables", "person"),
    [
        ({"orders": table(order_id=1.0, customer_id=0.2, total=0.5)}, "customer_id"),
        ({"orders": table(order_id=None, customer_id=None)}, "customer_id"),  # a database whose rows are not read
        ({"events": table(event_id=1.0, device_id=0.01)}, "device_id"),  # repeated
        ({"a": table(a_id=1.0, key_id=1.0), "b": table(b_id=1.0, key_id=1.0)}, "key_id"),  # shared
        ({"orders": table(order_id=1.0, user_id=0.1), "lines": table(line_id=1.0, order_id=0.3)}, "user_id"),
        ({"patients": table(patient_id=1.0, age=0.01)}, "patient_id"),  # each once: still the person
        ({"people": table(id=1.0, age=0.01)}, "id"),
        ({"t": table(age=0.1)}, None),
        ({}, None),
    ],
)
def test_the_person_is_who_has_several_rows_and_not_the_row(tables, person):
    assert propose_person(tables) == person


def test_a_table_without_the_person_is_reached_over_foreign_keys():
    shop = {
        "lines": table(line_id=1.0, order_id=0.3),
        "orders": table(order_id=1.0, customer_id=0.2),
        "customers": table(id=1.0, age=0.1),
        "returns": table(return_id=1.0, line_id=0.9),
        "days": table(day_id=1.0),
    }
    assert propose_units(shop, "customer_id") == {
        "orders": UnitProposal("customer_id", "customer"),
        "customers": UnitProposal("id", "customer"),
        "lines": UnitProposal(UnitForeignKey("order_id", "orders", "order_id")),
        "returns": UnitProposal(UnitForeignKey("line_id", "lines", "line_id")),
    }


def test_a_key_that_repeats_leads_nowhere():
    # two rows of orders with one order_id may be of two people
    shop = {"orders": table(order_id=0.5, customer_id=0.2), "lines": table(order_id=0.3)}
    assert propose_units(shop, "customer_id") == {"orders": UnitProposal("customer_id")}


@pytest.mark.parametrize(
    "name",
    [
        "name",
        "Name",
        "first_name",
        "lastName",
        "full_name",
        "patient_name",
        "customerName",
        "surname",
        "username",
        "email",
        "E-Mail",
        "work_email",
        "phone",
        "mobile_phone",
        "telephone",
        "fax",
        "ssn",
        "SSN",
        "iban",
        "passport_no",
        "card_number",
        "home_address",
        "street",
        "ip_address",
        "password",
        "photo_url",
        "comment",
        "notes",
        "description",
    ],
)
def test_what_names_or_describes_somebody_is_known_by_its_name(name):
    assert find_what_names_somebody(SourceColumn(name, Type.TEXT)) is not None


@pytest.mark.parametrize(
    "name",
    [
        "product_name",
        "ward_name",
        "company",
        "region",
        "city",
        "country",
        "age",
        "gender",
        "sex",
        "amount",
        "price",
        "shipping",
        "status",
        "smoker",
        "visited",
        "created_at",
        "mailing_list_size",
        "department",
        "zip",
        "postcode",
        "diagnosis",
        "channel",
        "streetcar_line",
        "textile",
    ],
)
def test_what_is_asked_about_stays(name):
    assert find_what_names_somebody(SourceColumn(name, Type.TEXT, 0.01, 8.0)) is None


def test_what_differs_in_every_row_or_is_long_is_left_out():
    assert find_what_names_somebody(SourceColumn("code", Type.TEXT, 0.99, 8.0)) == "another value in nearly every row"
    assert find_what_names_somebody(SourceColumn("said", Type.TEXT, 0.7, 90.0)) == "free text"
    assert find_what_names_somebody(SourceColumn("level", Type.TEXT, 0.001, 90.0)) is None  # long, and few of them
    assert find_what_names_somebody(SourceColumn("amount", Type.FLOAT, 0.99)) is None  # numbers mostly differ
