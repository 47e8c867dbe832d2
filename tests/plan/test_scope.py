"""Relations: whose rows they are, and that a unit moves what is measured over them by no more than is said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.counts import FULL

from tacit.aggregates.registry import read_question as parse
from tacit.engines.reference import ReferenceEngine
from tacit.errors import ErrorCode, Refused
from tacit.plan.bind_question import bind_question, plan_for
from tacit.plan.contribution import vector_l2_sensitivity
from tacit.plan.join_pairs import JoinPair
from tacit.plan.noise import Part
from tacit.plan.plan import Plan
from tacit.policy.load import load
from tacit.policy.model import Policy
from tacit.privacy.sensitivity import ContributionBounds
from tacit.query.nodes import EquiJoin, PerUnitAggregation, Projection, RelationalNode, RowUnion, Scan

MakePlan = Callable[..., Plan]
EXAMPLES = 500 if FULL else 4


def clinic(neighbors: str) -> Policy:
    """Bounds that the data will not keep to: of the unit, and of the unique column of a public table."""
    unit = {"type": "int", "lower": 0, "upper": 2}
    ward = {"type": "int", "lower": 0, "upper": 2}
    return load({
        "privacy": {"neighbors": neighbors, "epsilon": 10},
        "tables": {
            "visits": {
                "unit": "patient", "people": "patients", "max_groups": 2, "max_rows_per_group": 2,
                "columns": {"patient": unit, "ward": ward, "age": {"type": "int", "lower": -3, "upper": 5}},
            },
            "labs": {
                "unit": "patient", "people": "patients", "max_groups": 1, "max_rows_per_group": 2,
                "columns": {"patient": unit, "ward": ward, "level": {"type": "int", "lower": 0, "upper": 4}},
            },
            "items": {
                "unit": {"through": "visit", "to": "visits.visit"}, "max_groups": 2, "max_rows_per_group": 3,
                "columns": {"price": {"type": "int", "lower": 0, "upper": 9}},
            },
            "beds": {"unit": "row", "columns": {"ward": ward, "size": {"type": "int", "lower": 1, "upper": 3}}},
            "wards": {"public": True, "columns": {"ward": ward | {"unique": True}, "region": ward, "floor": ward}},
            "regions": {"public": True, "columns": {"region": ward | {"unique": True}}},
        },
        "analysts": {"ada": {"epsilon": 5}},
    })  # fmt: skip


POLICIES = {name: clinic(name) for name in ("add-remove", "replace")}
# Wards 2, 3 and 4 are all read as ward 2; three of them lie in region 0.
PUBLIC = {
    "wards": [
        {"ward": w, "region": r, "floor": f} for w, r, f in [(0, 0, 1), (1, 0, 2), (2, 0, 0), (3, 1, 1), (4, 1, 2)]
    ],
    "regions": [{"region": 0}, {"region": 1}, {"region": 7}, {"region": 8}],
}
OF_PATIENTS = [
    "SELECT COUNT(*), SUM(age), AVG(age), COUNT(DISTINCT patient), COUNT(DISTINCT age), VAR_POP(age) FROM visits",
    "SELECT ward, COUNT(*), SUM(age), COUNT(DISTINCT patient) FROM visits GROUP BY ward",
    "SELECT floor, COUNT(*), SUM(age + floor) FROM visits JOIN wards USING (ward) GROUP BY floor",
    "SELECT COUNT(*), COUNT(floor), SUM(age) FROM visits LEFT JOIN wards ON visits.ward = wards.ward",
    "SELECT COUNT(*) FROM wards JOIN visits ON visits.ward = wards.ward",
    "SELECT COUNT(*), SUM(age * level) FROM visits JOIN labs USING (patient)",
    "SELECT visits.ward, COUNT(*), SUM(level) FROM visits JOIN labs ON visits.patient = labs.patient "
    "GROUP BY visits.ward",
    "SELECT COUNT(*), SUM(level) FROM visits LEFT JOIN labs "
    "ON visits.patient = labs.patient AND visits.ward = labs.ward",
    "SELECT COUNT(*), SUM(LEAST(n, 5)), SUM(GREATEST(-9, LEAST(s, 9))), AVG(m) FROM "
    "(SELECT patient, COUNT(*) AS n, SUM(age) AS s, MAX(age) AS m FROM visits GROUP BY patient) AS t",
    "SELECT w, COUNT(*), SUM(LEAST(n, 3)) FROM "
    "(SELECT patient, ward AS w, COUNT(*) AS n FROM visits GROUP BY patient, ward) AS t GROUP BY w",
    "SELECT COUNT(*), SUM(patient) FROM (SELECT patient, MAX(age) AS m FROM visits GROUP BY patient) AS t",
    "SELECT SUM(LEAST(a.n, 4) * LEAST(b.n, 4)) FROM (SELECT patient, COUNT(*) AS n FROM visits GROUP BY patient) AS a "
    "JOIN (SELECT patient, COUNT(*) AS n FROM labs GROUP BY patient) AS b USING (patient)",
    "SELECT w, COUNT(*), SUM(x) FROM "
    "(SELECT ward AS w, age AS x FROM visits UNION ALL SELECT ward, level FROM labs) AS s GROUP BY w",
    "SELECT COUNT(*), SUM(price) FROM items",
    "SELECT COUNT(*), SUM(GREATEST(0, LEAST(total, 20))) FROM (SELECT patient, SUM(age) AS total FROM "
    "(SELECT patient, age FROM visits UNION ALL SELECT patient, level FROM labs) AS u GROUP BY patient) AS t "
    "WHERE total > 0",
]
LAST_FIRST = "PARTITION BY patient ORDER BY age DESC"
OF_PATIENTS += [
    "SELECT COUNT(*), SUM(n), AVG(n), SUM(s), AVG(d) FROM (SELECT patient, COUNT(*) AS n, SUM(age) AS s, "
    "COUNT(DISTINCT ward) AS d FROM visits GROUP BY patient) AS t",
    "SELECT SUM(a.n * b.n) FROM (SELECT patient, COUNT(*) AS n FROM visits GROUP BY patient) AS a "
    "JOIN (SELECT patient, COUNT(*) AS n FROM labs GROUP BY patient) AS b USING (patient)",
    "SELECT w, SUM(n) FROM (SELECT patient, ward AS w, COUNT(age) AS n FROM visits GROUP BY patient, ward) AS t "
    "GROUP BY w",
    f"SELECT ward, COUNT(*), SUM(age) FROM (SELECT ward, age, ROW_NUMBER() OVER ({LAST_FIRST}) AS n FROM visits) AS t "
    "WHERE n = 1 GROUP BY ward",
    f"SELECT ward, COUNT(*), SUM(age) FROM (SELECT ward, age FROM visits QUALIFY ROW_NUMBER() OVER ({LAST_FIRST}) < 3) "
    "AS t GROUP BY ward",
    f"SELECT SUM(n), SUM(r), SUM(age - before) FROM (SELECT age, ROW_NUMBER() OVER ({LAST_FIRST}) AS n, "
    f"RANK() OVER ({LAST_FIRST}) AS r, LAG(age) OVER ({LAST_FIRST}) AS before FROM visits) AS t",
    "SELECT SUM(running), SUM(total), AVG(mean) FROM (SELECT SUM(age) OVER (PARTITION BY patient ORDER BY ward) AS "
    "running, SUM(age) OVER (PARTITION BY patient, ward) AS total, AVG(age) OVER (PARTITION BY patient ORDER BY age "
    "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS mean FROM visits) AS t",
    f"SELECT w, COUNT(*) FROM (SELECT LEAD(ward) OVER ({LAST_FIRST}) AS w FROM visits) AS t GROUP BY w",
    f"SELECT COUNT(*), SUM(level) FROM (SELECT patient, ROW_NUMBER() OVER ({LAST_FIRST}) AS n FROM visits) AS t "
    "JOIN labs USING (patient) WHERE n = 1",
    "SELECT ward, COUNT(DISTINCT CASE WHEN age > 0 THEN patient END) FROM visits GROUP BY ward",
]

# Forms that are rewritten: plan/rewrite.py.
OF_PATIENTS += [
    "SELECT COUNT(*) FILTER (WHERE age > 0), SUM(age) FILTER (WHERE age > 0) FROM visits",
    "SELECT COUNT(DISTINCT patient) FILTER (WHERE age > 0) FROM visits WHERE ward < 2",
    "SELECT w, COUNT(*), SUM(a) FROM (SELECT ward AS w, age + 1 AS a FROM visits WHERE age > 0) AS t WHERE a > 1 "
    "GROUP BY w",
    "SELECT COUNT(*) FROM (SELECT patient FROM visits GROUP BY patient) AS t",
    "SELECT COUNT(*) FROM (SELECT DISTINCT ward FROM visits WHERE ward IS NOT NULL) AS t",
    "SELECT visits.ward, COUNT(*), SUM(level) FROM visits LEFT JOIN labs ON labs.patient = visits.patient "
    "WHERE labs.level > 0 GROUP BY visits.ward",
    "SELECT COUNT(*), SUM(age), SUM(level) FROM visits JOIN labs USING (patient) WHERE level > 0",
    "SELECT COUNT(*), SUM(floor) FROM wards w JOIN visits v ON v.ward = w.ward AND v.age > 0",
    "SELECT COUNT(*) FROM visits JOIN wards USING (ward) JOIN labs USING (patient) WHERE floor > 0 AND level > 0",
    "SELECT SUM(CASE WHEN age IS NULL THEN 3 ELSE age END), COUNT(*) FROM visits WHERE (age > 0) IS NOT TRUE",
]

# Joins along the foreign key of items, conditions of LEFT JOIN, commas, IN and EXISTS.
MATCHED = [
    "SELECT COUNT(*), SUM(age), SUM(price), COUNT(DISTINCT patient) FROM visits JOIN items "
    "ON visits.visit = items.visit",
    "SELECT ward, COUNT(*), SUM(price) FROM items JOIN visits USING (visit) GROUP BY ward",
    "SELECT ward, COUNT(*), COUNT(price), SUM(age) FROM visits v LEFT JOIN items i ON i.visit = v.visit GROUP BY ward",
    "SELECT COUNT(*), SUM(price) FROM items i LEFT JOIN visits v ON i.visit = v.visit AND v.age > 0",
    "SELECT COUNT(*), SUM(a.price * b.price) FROM items a JOIN items b ON a.visit = b.visit",
    "SELECT COUNT(*), SUM(price), SUM(level) FROM items JOIN labs ON items.patient = labs.patient",
    "SELECT COUNT(*), COUNT(DISTINCT patient) FROM items WHERE price > 0",
    "SELECT COUNT(*), SUM(LEAST(p, 20)) FROM (SELECT patient, SUM(price) AS p FROM items GROUP BY patient) AS t",
    "SELECT COUNT(*), SUM(LEAST(p, 20)) FROM (SELECT visit, SUM(price) AS p FROM items GROUP BY visit) AS t",
    "SELECT ward, COUNT(*), SUM(LEAST(p, 20)) FROM visits JOIN "
    "(SELECT visit, SUM(price) AS p FROM items GROUP BY visit) AS t ON t.visit = visits.visit GROUP BY ward",
    "SELECT ward, COUNT(*), SUM(age * price) FROM (SELECT visit, ward, age FROM visits WHERE age > 0) AS v, items i "
    "WHERE i.visit = v.visit GROUP BY ward",
    "SELECT COUNT(*), SUM(age + floor) FROM wards, visits, regions "
    "WHERE visits.ward = wards.ward AND wards.region = regions.region",
    "SELECT COUNT(*), COUNT(floor) FROM visits LEFT JOIN wards "
    "ON visits.ward = wards.ward AND floor > 0 AND age > floor",
    "SELECT COUNT(*), SUM(level) FROM labs RIGHT JOIN visits "
    "ON visits.patient = labs.patient AND visits.age > 0 AND labs.level < 4",
    "SELECT COUNT(*), SUM(age) FROM visits WHERE ward IN (SELECT floor FROM wards) "
    "AND patient NOT IN (SELECT patient FROM labs WHERE level > 0)",
    "SELECT COUNT(*), SUM(age) FROM visits WHERE ward NOT IN (SELECT floor FROM wards WHERE region = 1)",
    "SELECT ward, COUNT(*), SUM(age) FROM visits v WHERE EXISTS "
    "(SELECT 1 FROM labs l WHERE l.patient = v.patient AND l.ward = v.ward) GROUP BY ward",
    "SELECT COUNT(*), SUM(age) FROM visits v WHERE NOT EXISTS (SELECT 1 FROM items i WHERE i.visit = v.visit)",
    "SELECT COUNT(*), SUM(age) FROM visits v WHERE visit IN "
    "(SELECT visit FROM items GROUP BY visit HAVING COUNT(*) > 1)",
    "SELECT COUNT(*), SUM(age) FROM visits v WHERE age NOT IN (SELECT level FROM labs l WHERE l.patient = v.patient)",
    "SELECT COUNT(*), SUM(age) FROM visits JOIN (SELECT floor, ward FROM wards WHERE floor > 0) AS w USING (ward)",
    "SELECT COUNT(*), SUM(age) FROM visits v WHERE NOT EXISTS "
    "(SELECT 1 FROM labs l WHERE l.patient = v.patient AND l.level > v.age)",
    "SELECT COUNT(*), SUM(age) FROM visits WHERE visit NOT IN (SELECT visit FROM items WHERE price > 0)",
    "SELECT COUNT(*), SUM(age), SUM(level) FROM visits v FULL JOIN labs l ON l.patient = v.patient AND l.ward = v.ward",
    "SELECT COUNT(*), SUM(LEAST(a.n, 3)), COUNT(b.n) FROM "
    "(SELECT patient, COUNT(*) AS n FROM visits GROUP BY patient) AS a FULL JOIN "
    "(SELECT patient, COUNT(*) AS n FROM items GROUP BY patient) AS b USING (patient)",
    "SELECT COUNT(*), SUM(LEAST(m, 9)) FROM visits v JOIN "
    "(SELECT region, floor AS f, COUNT(*) AS m FROM wards GROUP BY region, floor) AS r "
    "ON v.ward = r.region AND v.age = r.f",
]
# Subqueries as values of a row.
MATCHED += [
    "SELECT COUNT(*), SUM(n), SUM(age) FROM "
    "(SELECT age, (SELECT COUNT(*) FROM labs l WHERE l.patient = v.patient) AS n "
    "FROM visits v) AS t",
    "SELECT ward, COUNT(*), SUM(age) FROM visits v WHERE (SELECT SUM(price) FROM items i WHERE i.visit = v.visit) > 9 "
    "GROUP BY ward",
    "SELECT COUNT(*), SUM((SELECT MAX(age) FROM visits v WHERE v.visit = i.visit)), "
    "SUM((SELECT age FROM visits v WHERE v.visit = i.visit AND i.price > 0)) FROM items i",
    "SELECT COUNT(*), SUM(age) FROM visits v WHERE "
    "age < (SELECT AVG(level) FROM labs l WHERE l.patient = v.patient AND l.ward = v.ward AND v.age > 0)",
    "SELECT SUM((SELECT floor FROM wards w WHERE w.ward = v.ward)), "
    "SUM(LEAST((SELECT COUNT(*) FROM wards w WHERE w.region = v.ward), 3)) FROM visits v",
]
# SEMI and ANTI JOIN, and set operations of rows.
MATCHED += [
    "SELECT ward, COUNT(*), SUM(age) FROM visits v SEMI JOIN labs l ON l.patient = v.patient AND l.level < v.age "
    "GROUP BY ward",
    "SELECT COUNT(*), SUM(age) FROM visits v ANTI JOIN items i ON i.visit = v.visit "
    "SEMI JOIN wards w ON w.region = v.ward",
    "SELECT ward, COUNT(*), SUM(age), SUM(level) FROM visits v LEFT JOIN (SELECT patient, level FROM labs) AS l "
    "ON l.patient = v.patient AND l.level < v.age GROUP BY ward",
    "SELECT COUNT(*), SUM(price), COUNT(DISTINCT v.patient) FROM visits v LEFT JOIN items i "
    "ON i.visit = v.visit AND i.price > v.age AND v.ward > 0",
    "SELECT COUNT(*) FROM (SELECT patient FROM visits INTERSECT SELECT patient FROM labs WHERE level > 0) AS t",
    "SELECT w, COUNT(*), SUM(x) FROM (SELECT patient, ward AS w, age AS x FROM visits EXCEPT "
    "SELECT patient, ward, level FROM labs) AS t GROUP BY w",
    "SELECT w, COUNT(*), SUM(x) FROM (SELECT patient, ward AS w, age AS x FROM visits UNION "
    "SELECT patient, ward, level FROM labs) AS t GROUP BY w",
    "SELECT COUNT(*), SUM(age) FROM visits v JOIN (SELECT visit FROM items WHERE price > 0 UNION "
    "SELECT visit FROM visits WHERE age > 0) AS t ON t.visit = v.visit",
    "SELECT COUNT(*) FROM visits WHERE ward IN (SELECT ward FROM wards EXCEPT SELECT floor FROM wards)",
]
OF_ROWS = [
    "SELECT COUNT(*), SUM(size) FROM beds",
    "SELECT floor, COUNT(*) FROM beds JOIN wards USING (ward) GROUP BY floor",
    "SELECT COUNT(*) FROM beds JOIN wards USING (ward) JOIN regions ON wards.region = regions.region",
    "SELECT COUNT(*), SUM(size) FROM wards JOIN beds ON wards.ward = beds.ward",
    "SELECT COUNT(*), SUM(size) FROM beds LEFT JOIN wards ON beds.ward = wards.ward",
    "SELECT COUNT(*), SUM(size), COUNT(floor) FROM beds LEFT JOIN wards ON beds.ward = wards.ward AND floor > size",
    "SELECT COUNT(*), SUM(size) FROM beds WHERE ward IN (SELECT floor FROM wards) "
    "OR size NOT IN (SELECT region FROM wards)",
    "SELECT COUNT(*), SUM(size) FROM beds WHERE EXISTS (SELECT 1 FROM regions WHERE region = beds.ward)",
    "SELECT COUNT(*), SUM((SELECT floor FROM wards w WHERE w.ward = b.ward)) FROM beds b "
    "WHERE size > (SELECT COUNT(*) FROM wards w WHERE w.region = b.ward)",
    "SELECT w, COUNT(*), SUM(s) FROM "
    "(SELECT ward AS w, size AS s FROM beds UNION ALL SELECT size, ward FROM beds) AS u GROUP BY w",
]

wards = st.sampled_from([0, 1, 2, 3, 4, 9, None])
visit = st.fixed_dictionaries({"ward": wards, "age": st.sampled_from([-9, -3, 0, 5, 9, None])})
lab = st.fixed_dictionaries({"ward": wards, "level": st.sampled_from([0, 4, 9, None])})
item = st.fixed_dictionaries({"price": st.sampled_from([0, 9, 20, None]), "of": st.integers(0, 3)})
person = st.fixed_dictionaries({
    "visits": st.lists(visit, max_size=4), "labs": st.lists(lab, max_size=3), "items": st.lists(item, max_size=4),
})  # fmt: skip
people = st.dictionaries(st.sampled_from([0, 1, 2, 3, 50, None]), person, max_size=3)
bed = st.fixed_dictionaries({"ward": wards, "size": st.sampled_from([0, 1, 3, 7, None])})


def database(people: dict[Any, dict[str, list[dict[str, Any]]]]) -> ReferenceEngine:
    """The tables that the rows of these people make."""
    tables: dict[str, list[dict[str, Any]]] = {"visits": [], "labs": [], "items": []}
    for patient, held in people.items():
        for number, row in enumerate(held["visits"]):
            tables["visits"].append(row | {"patient": patient, "visit": f"{patient} {number}"})
        tables["labs"] += [row | {"patient": patient} for row in held["labs"]]
        tables["items"] += [{"price": i["price"], "visit": f"{patient} {i['of']}"} for i in held["items"]]
    return ReferenceEngine(tables | PUBLIC)


def exact(plan: Plan, engine: ReferenceEngine) -> list[list[tuple[Any, int]]]:
    """What each part is before noise, group by group."""
    found = engine.run(plan.exact)
    groups = sorted({*found}, key=repr)
    return [
        [(group, sum(f * found[group][plan.exact.measures.index(m)] for f, m in part.need.terms)) for group in groups]
        for part in plan.parts
        if isinstance(part, Part)
    ]


def check(sql: str, neighbors: str, one: ReferenceEngine, other: ReferenceEngine) -> None:
    """Both databases differ by no more than is charged for, in L1 and in L2."""
    check_plan(planned(sql, neighbors), neighbors, one, other)


def check_plan(plan: Plan, neighbors: str, one: ReferenceEngine, other: ReferenceEngine) -> None:
    parts = [part for part in plan.parts if isinstance(part, Part)]
    for part, before, after in zip(parts, exact(plan, one), exact(plan, other), strict=True):
        held, holds = dict(before), dict(after)
        moves = [abs(held.get(g, 0) - holds.get(g, 0)) for g in held | holds]
        assert sum(moves) <= part.sensitivity
        at = POLICIES[neighbors].neighbors
        shift, coordinates = vector_l2_sensitivity(part.need, plan.exact.keep, at, plan.recipe.groups)
        assert sum(move**2 for move in moves) <= shift**2 * coordinates


@cache
def planned(sql: str, neighbors: str) -> Plan:
    return plan_for(parse(sql), POLICIES[neighbors], 1)


@pytest.mark.slow
@pytest.mark.parametrize("sql", OF_PATIENTS)
@settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
@given(others=people, one=person, two=person)
def test_a_patient_moves_no_more_than_is_charged_for(sql: str, others: Any, one: Any, two: Any) -> None:
    check_patient(sql, others, one, two)


@pytest.mark.slow
@pytest.mark.parametrize("sql", MATCHED)
@settings(max_examples=EXAMPLES if FULL else 2, deadline=None, derandomize=True)
@given(others=people, one=person, two=person)
def test_a_patient_moves_matched_rows_no_more_than_is_charged_for(sql: str, others: Any, one: Any, two: Any) -> None:
    check_patient(sql, others, one, two)


def check_patient(sql: str, others: Any, one: Any, two: Any) -> None:
    # patients 2, 3, 50, 77 and 78 all lie at or beyond the upper bound of their own number
    without, before, after = database(others), database(others | {77: one}), database(others | {78: two})
    check(sql, "add-remove", without, before)
    check(sql, "replace", before, after)


@pytest.mark.slow
@pytest.mark.parametrize("sql", OF_ROWS)
@settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
@given(others=st.lists(bed, max_size=4), one=bed, two=bed)
def test_a_row_moves_no_more_than_is_charged_for(sql: str, others: Any, one: Any, two: Any) -> None:
    def tables(*beds: Any) -> ReferenceEngine:
        return ReferenceEngine({"beds": list(beds)} | PUBLIC)

    check(sql, "add-remove", tables(*others), tables(*others, one))
    check(sql, "replace", tables(*others, one), tables(*others, two))


def neighbors_of_many() -> tuple[ReferenceEngine, ReferenceEngine]:
    """With and without a patient who has more rows than any cap keeps, beside another like that."""
    visits = [{"ward": ward, "age": 5} for ward in (0, 0, 0, 1, 1, 1, 2, 2, 2)]
    items = [{"price": 9, "of": number % 9} for number in range(36)]
    labs = [{"ward": ward, "level": 4} for ward in (0, 0, 0, 1, 1, 1)]
    full = {"visits": visits, "labs": labs, "items": items}
    return database({0: full}), database({0: full, 77: full})


@pytest.mark.parametrize(
    "sql", [sql for sql in MATCHED if " JOIN items" in sql.replace("ANTI JOIN", "") or "GROUP BY ward" in sql]
)
def test_one_row_more_than_is_kept_is_seen(sql: str) -> None:
    # the caps of these joins are reached, so keeping one row more in each group moves more than is charged for
    plan = planned(sql, "add-remove")
    keep = replace(plan.exact.keep, rows=plan.exact.keep.rows + 1, total=None)
    wrong = replace(plan, exact=replace(plan.exact, keep=keep))
    with pytest.raises(AssertionError):
        check_plan(wrong, "add-remove", *neighbors_of_many())


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*), SUM(age) FROM visits v WHERE EXISTS (SELECT 1 FROM labs l WHERE l.ward = v.ward)",
        "SELECT COUNT(*), SUM(age) FROM visits v WHERE ward IN (SELECT ward FROM labs)",
        "SELECT COUNT(*), SUM(age) FROM visits v JOIN labs l ON l.ward = v.ward",
        "SELECT COUNT(*), SUM(age) FROM visits v WHERE (SELECT COUNT(*) FROM labs l WHERE l.ward = v.ward) > 0",
        "SELECT COUNT(*), SUM(age) FROM visits v SEMI JOIN labs l ON l.ward = v.ward",
    ],
)
def test_rows_of_other_people_are_refused_and_would_be_seen(sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Refused) as caught:
        plan_for(parse(sql), POLICIES["add-remove"], 1)
    assert caught.value.code is ErrorCode.UNSUPPORTED
    # with the rule switched off, many patients' visits come with the labs of one
    monkeypatch.setattr(JoinPair, "is_of_units", property(lambda _: True))
    wrong = plan_for(parse(sql), POLICIES["add-remove"], 1)
    visit, lab = {"ward": 0, "age": 5}, {"ward": 0, "level": 4}
    others = {n: {"visits": [visit] * 2, "labs": [], "items": []} for n in range(20)}
    one, other = database(others), database(others | {77: {"visits": [], "labs": [lab], "items": []}})
    turned = {n: {"visits": [], "labs": [lab] * 2, "items": []} for n in range(20)}
    third, fourth = database(turned), database(turned | {77: {"visits": [visit], "labs": [], "items": []}})

    def check_both() -> None:  # whichever table's unit the joined rows have
        check_plan(wrong, "add-remove", one, other)
        check_plan(wrong, "add-remove", third, fourth)

    with pytest.raises(AssertionError):
        check_both()


# The traps by hand.


def counted(sql: str, engine: ReferenceEngine) -> int:
    found = exact(plan_for(parse(sql), POLICIES["add-remove"], 1), engine)
    return dict(found[0])[()]


def test_two_units_beyond_their_bound_stay_two():
    # 50 and 77 are both read as 2 where they are values; as units they are who they are
    one = {"visits": [{"ward": 0, "age": 1}], "labs": [{"ward": 0, "level": 1}], "items": []}
    both = database({50: one, 77: one})
    assert counted("SELECT COUNT(*) FROM (SELECT patient, MAX(age) AS m FROM visits GROUP BY patient) AS t", both) == 2
    assert counted("SELECT COUNT(*) FROM visits JOIN labs USING (patient)", both) == 2
    assert counted("SELECT COUNT(*) FROM visits AS a JOIN visits AS b ON a.patient = b.patient", both) == 2
    assert counted("SELECT COUNT(DISTINCT patient) FROM visits", both) == 2
    assert counted("SELECT SUM(patient) FROM visits", both) == 4


def test_a_unique_column_is_matched_as_it_lies():
    # ward 9 is read as 2, which one ward is; wards 3 and 4 are not read as 2 when they are looked for
    engine = ReferenceEngine({"beds": [{"ward": 9, "size": 1}]} | PUBLIC)
    assert counted("SELECT COUNT(*) FROM beds JOIN wards USING (ward)", engine) == 1
    assert counted("SELECT COUNT(*) FROM wards JOIN beds USING (ward)", engine) == 1
    named = "(SELECT ward AS w FROM (SELECT * FROM wards WHERE floor >= 0) AS s) AS t"
    assert counted(f"SELECT COUNT(*) FROM beds JOIN {named} ON w = ward", engine) == 1
    assert counted("SELECT COUNT(*) FROM beds WHERE ward IN (SELECT ward FROM wards)", engine) == 1


def test_listed_keys_are_matched_as_they_lie():
    # orders 5 and 7 are both read as 2; their lines find their own order, and are not those of one
    number = {"type": "int", "lower": 0, "upper": 2}
    many = {"max_groups": 3, "max_rows_per_group": 9}
    policy = load({
        "privacy": {"epsilon": 10},
        "tables": {
            "orders": {"unit": "buyer", **many, "columns": {"id": number, "size": number}},
            "lines": {"unit": {"through": "order_id", "to": "orders.id"}, **many, "columns": {"order_id": number}},
        },
        "analysts": {"ada": {"epsilon": 5}},
    })  # fmt: skip
    orders = [{"id": 5, "buyer": "a", "size": 1}, {"id": 7, "buyer": "b", "size": 2}]
    engine = ReferenceEngine({"orders": orders, "lines": [{"order_id": 5}, {"order_id": 7}, {"order_id": 9}]})

    def count(sql: str) -> int:
        return dict(exact(plan_for(parse(sql), policy, 1), engine)[0])[()]

    assert count("SELECT COUNT(*) FROM orders JOIN lines ON orders.id = lines.order_id") == 2
    assert count("SELECT COUNT(*) FROM orders o WHERE EXISTS (SELECT 1 FROM lines l WHERE l.order_id = o.id)") == 2
    assert count("SELECT COUNT(*) FROM orders WHERE id IN (SELECT order_id FROM lines)") == 2
    assert count("SELECT COUNT(*) FROM lines AS a JOIN lines AS b ON a.order_id = b.order_id") == 2
    assert count("SELECT COUNT(*) FROM lines JOIN orders ON orders.buyer = lines.buyer AND orders.id = order_id") == 2
    # what is computed of a key names no row
    for sql in (
        "SELECT COUNT(*) FROM orders JOIN (SELECT order_id + 0 AS k FROM lines) AS l ON orders.id = l.k",
        "SELECT COUNT(*) FROM orders JOIN (SELECT order_id AS k FROM lines) AS l ON orders.id = l.k",
        "SELECT COUNT(*) FROM orders JOIN lines ON orders.size = lines.order_id",
        "SELECT COUNT(*) FROM (SELECT order_id, COUNT(*) AS n FROM lines GROUP BY order_id) AS t",
    ):
        with pytest.raises(Refused):
            plan_for(parse(sql), policy, 1)


def test_what_was_unique_is_not_after_a_join():
    # three wards lie in region 0: a bed that is matched with the region would count three times
    both = "wards JOIN regions ON wards.region = regions.region"
    with pytest.raises(Refused) as caught:
        plan_for(
            parse(f"SELECT COUNT(*) FROM {both} JOIN beds ON regions.region = beds.ward"), POLICIES["add-remove"], 1
        )
    assert caught.value.code is ErrorCode.UNSUPPORTED
    # the column of the left side still is
    other = (
        "SELECT COUNT(*) FROM wards JOIN regions ON wards.region = regions.region JOIN beds ON wards.ward = beds.ward"
    )
    engine = ReferenceEngine({"beds": [{"ward": 0, "size": 1}]} | PUBLIC)
    assert counted(other, engine) == 1


# What is kept of a unit.


def kept(plan: Plan) -> tuple[int, int]:
    return plan.exact.keep.groups, plan.exact.keep.rows


def test_what_is_kept_of_a_unit(plan: MakePlan):
    # visits keep 2 groups and 3 rows in each, labs 3 and 2, items 2 and 5
    both = "visits JOIN labs USING (patient_id)"
    assert kept(plan(f"SELECT ward, COUNT(*) FROM {both} GROUP BY ward")) == (3, 6)
    union = "(SELECT age FROM visits UNION ALL SELECT age FROM labs) AS s"
    assert kept(plan(f"SELECT FLOOR(age / 10), COUNT(*) FROM {union} GROUP BY FLOOR(age / 10)")) == (3, 5)
    assert kept(plan("SELECT drug, COUNT(*) FROM items GROUP BY drug", delta=1e-6)) == (2, 5)
    assert kept(plan("SELECT COUNT(*) FROM items")) == (1, 5)


def test_what_is_kept_where_rows_share_a_key_by_the_caps(policy: Policy):
    # on the unit a visit is joined with the 6 labs that are kept, so 6 rows share it, and each item finds these
    source = "labs JOIN visits ON labs.patient_id = visits.patient_id JOIN items ON visits.visit_id = items.visit_id"
    found = bind_question(parse(f"SELECT ward, COUNT(*) FROM {source} GROUP BY ward"), policy, canonical=False)
    assert (found.each.groups, found.each.rows, found.each.most) == (2, 30, 60)


def test_what_is_kept_of_a_unit_along_a_foreign_key(plan: MakePlan):
    # visits keep 2 groups and 3 rows in each, items 2 and 5, labs 3 and 2
    def keep(source: str) -> tuple[int, int]:
        return kept(plan(f"SELECT ward, COUNT(*) FROM {source} GROUP BY ward"))

    on = "ON visits.visit_id = items.visit_id"
    assert keep(f"visits JOIN items {on}") == keep(f"items JOIN visits {on}") == (2, 5)
    assert keep(f"items LEFT JOIN visits {on}") == (2, 5)
    assert keep(f"visits LEFT JOIN items {on}") == (2, 8)
    assert keep("visits JOIN items ON visits.patient_id = items.patient_id") == (2, 15)
    assert keep("visits JOIN items AS a USING (visit_id) JOIN items AS b USING (visit_id)") == (2, 25)
    assert keep(f"visits JOIN items {on} JOIN labs ON labs.patient_id = visits.patient_id") == (3, 10)
    each = "(SELECT visit_id, COUNT(*) AS n FROM items GROUP BY visit_id) AS each"
    assert keep(f"visits JOIN {each} ON each.visit_id = visits.visit_id") == (2, 3)
    # a match adds a column to each row, and no rows
    assert keep("visits v WHERE EXISTS (SELECT 1 FROM items i WHERE i.visit_id = v.visit_id)") == (2, 3)
    assert keep("visits v WHERE patient_id NOT IN (SELECT patient_id FROM labs)") == (2, 3)
    # those of the LEFT JOIN, 6, and those of labs that find nothing
    assert keep("visits v FULL JOIN labs l ON v.patient_id = l.patient_id") == (3, 8)


def test_what_is_kept_of_a_unit_with_a_cap_on_all_its_rows(plan: MakePlan):
    # visits keep 6 groups, 6 rows in each and 6 in all; labs keep 3 groups and 2 rows in each, which are 6 in all
    caps = {"max_groups": 6, "max_rows_per_group": 6, "max_rows": 6}

    def keep(text: str) -> ContributionBounds:
        return plan(text, delta=1e-6, **caps).exact.keep

    both = "visits JOIN labs USING (patient_id)"
    assert keep(f"SELECT diagnosis, COUNT(*) FROM {both} GROUP BY diagnosis") == ContributionBounds(6, 12, 36)
    union = "(SELECT age FROM visits UNION ALL SELECT age FROM labs) AS s"
    assert keep(f"SELECT FLOOR(age / 10), COUNT(*) FROM {union} GROUP BY FLOOR(age / 10)") == ContributionBounds(
        6, 8, 12
    )
    public = "visits JOIN wards USING (ward)"
    assert keep(f"SELECT region, COUNT(*) FROM {public} GROUP BY region") == ContributionBounds(6, 6, 6)
    # three wards, and of one ward no more than in all; the rows of a subquery are capped as rows of a table are
    assert keep("SELECT ward, COUNT(*) FROM visits GROUP BY ward") == ContributionBounds(3, 6, 6)
    assert keep("SELECT COUNT(*) FROM visits") == ContributionBounds(1, 6)
    each = "(SELECT patient_id, age, COUNT(*) AS n FROM visits GROUP BY patient_id, age) AS t"
    assert keep(f"SELECT age, COUNT(*) FROM {each} GROUP BY age") == ContributionBounds(6, 6, 6)
    one = "(SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) AS t"
    assert keep(f"SELECT COUNT(*) FROM {one}") == ContributionBounds(1, 1)


def test_a_unit_with_one_row_needs_no_bounding(plan: MakePlan):
    totals = "(SELECT patient_id, SUM(cost) AS total FROM visits GROUP BY patient_id) AS t"
    made = plan(f"SELECT COUNT(*) FROM {totals}")
    assert (made.exact.unit, made.exact.keep) == (None, ContributionBounds(1, 1))
    assert made.exact.where is not None  # rows of nobody are left out all the same
    joined = plan(f"SELECT ward, COUNT(*) FROM {totals} JOIN visits USING (patient_id) GROUP BY ward")
    assert joined.exact.unit is not None


def tables_of(rows: RelationalNode) -> list[str]:
    return [scan.table for scan in scans(rows)]


def test_a_table_that_reaches_its_unit_scans_the_other(plan: MakePlan):
    made = plan("SELECT COUNT(*) FROM items")
    assert tables_of(made.exact.source) == ["items", "visits"]
    assert made.unit == "patient_id"


# Names.


def moves(plan: Plan) -> list[Fraction]:
    return [part.sensitivity * part.need.unit for part in plan.parts if isinstance(part, Part)]


def test_a_name_that_is_given_anew_has_the_bounds_of_what_it_names(plan: MakePlan):
    # three rows of at most 5000, 5,000,000, 110 and 10
    assert moves(plan("SELECT SUM(cost) FROM (SELECT cost FROM visits) AS s")) == [15_000]
    assert moves(plan("SELECT SUM(cost) FROM (SELECT cost * 1000 AS cost FROM visits) AS s")) == [15_000_000]
    assert moves(plan("SELECT SUM(cost) FROM (SELECT age AS cost FROM visits) AS s")) == [330]
    assert moves(plan("SELECT SUM(cost) FROM (SELECT LEAST(cost, 10) AS cost FROM visits) AS s")) == [30]
    assert moves(plan("WITH visits AS (SELECT age + 890 AS age FROM visits) SELECT SUM(age) FROM visits")) == [3000]


def test_the_keys_of_a_name_go_with_what_it_names(plan: MakePlan):
    def keys(inner: str) -> Any:
        return plan(
            f"SELECT w, COUNT(*) FROM (SELECT {inner} AS w FROM visits) AS s GROUP BY w", delta=1e-6
        ).recipe.keys

    assert keys("ward")[0].values == ("A", "B", "C")
    assert keys("CONCAT(ward, age)")[0].values is None
    assert keys("sex")[0].values == ("F", "M")


def test_questions_in_other_words_have_the_same_key(plan: MakePlan):
    plain = plan("SELECT ward, COUNT(*) AS n, AVG(age) AS a FROM visits GROUP BY ward")
    for sql in (
        "SELECT AVG(age), COUNT(*) FROM visits GROUP BY ward",
        "SELECT ward AS w, AVG(v.age) AS x, COUNT(*) + 1 AS y FROM visits AS v GROUP BY 1 HAVING y > 3 ORDER BY y",
        "SELECT ward, COUNT(*) AS n, AVG(age) AS a FROM visits GROUP BY ward HAVING n > 3 AND a > 4 LIMIT 1",
    ):
        assert plan(sql).key == plain.key
    by_name = (
        "WITH t AS (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) SELECT AVG(LEAST(n, 9)) FROM t"
    )
    inline = (
        "SELECT AVG(LEAST(s.k, 9)) AS m FROM (SELECT patient_id, COUNT(*) AS k FROM visits GROUP BY patient_id) AS s"
    )
    assert plan(by_name).key == plan(inline).key
    assert plan(by_name).key != plan(by_name.replace("9", "8")).key


@pytest.mark.parametrize(
    ("plain", "others"),
    [
        (
            "SELECT SUM(cost) FROM visits",
            [
                "SELECT SUM(cost) FROM public.visits",
                'SELECT SUM("visits"."cost") FROM "clinic"."public"."visits"',
                "SELECT SUM(public.visits.cost) FROM public.visits",
                "SELECT SUM(`cost`) FROM `clinic.visits`",
            ],
        ),
        (
            "SELECT COUNT(*) FROM visits v JOIN wards w ON v.ward = w.ward WHERE v.age > 3",
            [
                "SELECT COUNT(*) FROM visits v, wards w WHERE v.ward = w.ward AND v.age > 3",
                "SELECT COUNT(*) FROM visits v CROSS JOIN wards w WHERE v.age > 3 AND v.ward = w.ward",
                "SELECT COUNT(*) FROM visits NATURAL JOIN wards WHERE age > 3",
                "SELECT COUNT(*) FROM (visits v JOIN wards w USING (ward)) WHERE age > 3",
            ],
        ),
        (
            "SELECT COUNT(w.floor) FROM visits v LEFT JOIN wards w ON v.ward = w.ward",
            ["SELECT COUNT(w.floor) FROM wards w RIGHT JOIN visits v ON v.ward = w.ward"],
        ),
        (
            "SELECT AVG(LEAST(n, 9)) FROM (SELECT patient_id AS p, COUNT(*) AS n FROM visits GROUP BY patient_id) AS t",
            [
                "WITH t(p, n) AS (SELECT patient_id, COUNT(*) FROM visits GROUP BY patient_id) "
                "SELECT AVG(LEAST(n, 9)) FROM t",
                "SELECT AVG(LEAST(n, 9)) FROM (SELECT patient_id, COUNT(*) FROM visits GROUP BY patient_id) AS t(p, n)",
                "WITH t AS MATERIALIZED (SELECT patient_id AS p, COUNT(*) AS n FROM visits GROUP BY patient_id) "
                "SELECT AVG(LEAST(n, 9)) FROM t",
            ],
        ),
    ],
)
def test_joins_and_names_in_other_words_are_the_same_question(plan: MakePlan, plain: str, others: list[str]):
    assert {plan(sql).key for sql in others} == {plan(plain).key}


def test_names_for_columns_do_not_change_what_clauses_mean(plan: MakePlan):
    inner = "SELECT ward, COUNT(*) AS k FROM visits GROUP BY ward HAVING k > 3 ORDER BY k"
    made = plan(f"SELECT n FROM ({inner}) AS t(w, n) WHERE w = 'A'")
    assert [column.name for column in made.recipe.results] == ["n"]
    assert made.key == plan("SELECT ward, COUNT(*) AS k FROM visits GROUP BY ward").key


def test_a_key_that_is_not_listed_is_read_where_it_is_named_only(plan: MakePlan):
    def scanned(sql: str) -> list[str]:
        return [there for there, _ in scans(plan(sql).exact.source)[0].columns]

    assert "visit_id" not in scanned("SELECT COUNT(*) FROM visits")
    assert "visit_id" not in scanned("SELECT COUNT(*) FROM visits JOIN labs USING (patient_id)")
    assert "visit_id" in scanned("SELECT COUNT(*) FROM visits JOIN items USING (visit_id)")


def scans(rows: RelationalNode) -> list[Scan]:
    match rows:
        case Scan():
            return [rows]
        case Projection(source) | PerUnitAggregation(source):
            return scans(source)
        case EquiJoin(left, right):
            return [*scans(left), *scans(right)]
        case RowUnion(parts):
            return [scan for part in parts for scan in scans(part)]


def test_a_union_of_parts_in_another_order_is_another_question(plan: MakePlan):
    one = "SELECT COUNT(*) FROM (SELECT age FROM visits UNION ALL SELECT age FROM labs) AS s"
    other = "SELECT COUNT(*) FROM (SELECT age FROM labs UNION ALL SELECT age FROM visits) AS s"
    assert plan(one).key != plan(other).key


def test_names_of_outputs_may_stand_in_having_and_order(plan: MakePlan):
    made = plan("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING n > 3 AND ABS(n - 2) < 9 ORDER BY n * 2")
    assert len(made.parts) == 1
