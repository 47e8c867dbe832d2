"""Small made-up data for each world of the collection, the same at every run.

>>> connection = connect("shop")
>>> connection.execute("SELECT COUNT(*) FROM customers").fetchone()
(500,)
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import pyarrow as pa

FOLDER = Path(__file__).parent / "worlds"
FIRST, LAST = date(2024, 1, 1), date(2025, 6, 30)
TODAY = LAST  # what CURRENT_DATE means in the collection: the owner's declared day

T = TypeVar("T")
Rows = list[tuple[Any, ...]]
World = dict[str, tuple[str, Rows]]  # table name -> column definitions, rows

_ARROW = {
    "BIGINT": pa.int64(),
    "INTEGER": pa.int32(),
    "DOUBLE": pa.float64(),
    "VARCHAR": pa.string(),
    "BOOLEAN": pa.bool_(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
}


class Draw(random.Random):
    """Random values as the worlds need them; only `random()` decides, which Python keeps the same."""

    def whole(self, low: int, high: int) -> int:
        return low + int(self.random() * (high - low + 1))

    def one(self, values: Sequence[T]) -> T:
        return values[int(self.random() * len(values))]

    def skewed(self, values: Sequence[T]) -> T:
        """Prefer the first values, so that groups have unlike sizes."""
        return values[int(self.random() ** 2 * len(values))]

    def maybe(self, value: T, missing: float) -> T | None:
        return None if self.random() < missing else value

    def cents(self, low: float, high: float) -> float:
        return self.whole(round(low * 100), round(high * 100)) / 100

    def yes(self, share: float) -> bool:
        return self.random() < share

    def day(self, first: date = FIRST, last: date = LAST) -> date:
        """Return a day of the range; one in forty is its first or last, where mistakes of bounds show."""
        if self.yes(0.025):
            return self.one((first, last))
        return first + timedelta(days=self.whole(0, (last - first).days))

    def moment(self, first: date = FIRST, last: date = LAST) -> datetime:
        """Return a time of the range; some are midnights and last seconds."""
        day = self.day(first, last)
        second = self.one((0, 86399)) if self.yes(0.03) else self.whole(0, 86399)
        return datetime(day.year, day.month, day.day) + timedelta(seconds=second)


def _later(draw: Draw, moment: datetime, seconds: int) -> datetime:
    """Return a time up to `seconds` after `moment`, within the bounds of the policies."""
    return min(moment + timedelta(seconds=draw.whole(0, seconds)), datetime(2025, 6, 30, 23, 59, 59))


def _after(draw: Draw, day: date, days: int) -> date:
    return min(day + timedelta(days=draw.whole(0, days)), LAST)


def _days(first: date, last: date) -> Iterable[date]:
    return (first + timedelta(days=n) for n in range((last - first).days + 1))


def shop() -> World:
    draw = Draw(1)
    categories = [("Books", "Media"), ("Music", "Media"), ("Garden", "Home"), ("Kitchen", "Home"), ("Toys", "Family")]
    categories += [("Shoes", "Fashion"), ("Shirts", "Fashion"), ("Antiques", "Home")]  # no product is an antique
    countries: Rows = [
        ("US", "United States", "Americas", "USD", 0.0),
        ("DE", "Germany", "Europe", "EUR", 0.19),
        ("FR", "France", "Europe", "EUR", 0.2),
        ("GB", "United Kingdom", "Europe", "GBP", 0.2),
        ("CH", "Switzerland", "Europe", "CHF", 0.08),
    ]
    products: Rows = []
    for n in range(1, 61):
        price = draw.cents(2, 300)
        cost = round(price * 0.6, 2)
        category, brand = draw.one(categories[:7])[0], draw.one(("Acme", "Borealis", "Cirrus", "Dune"))
        launched = draw.day(date(2018, 1, 1), date(2025, 1, 1))
        products.append((n, f"{brand} {category} {n}", category, brand, price, cost, launched, draw.yes(0.15)))
    cities = ["Zurich", "Berlin", "Paris", "London", "New York", "Austin", "Lyon", "Hamburg"]
    pages = ["/home", "/search", "/product", "/cart", "/checkout", "/help"]
    customers: Rows = []
    orders: Rows = []
    lines: Rows = []
    events: Rows = []
    for n in range(1, 501):
        signup = draw.day()
        mail = f"c{n}@{draw.skewed(('gmail.com', 'outlook.com', 'example.org', 'Example.org'))}"
        segment = draw.maybe(draw.skewed(("consumer", "business", "public")), 0.1)
        age = draw.maybe(draw.whole(18, 95), 0.12)
        points = draw.whole(0, 80) * 100
        country, city = draw.skewed(countries)[0], draw.maybe(draw.skewed(cities), 0.08)
        customers.append((n, mail, country, city, signup, segment, age, draw.yes(0.4), points))
        for _ in range(int(draw.random() ** 2 * 9)):
            at = draw.moment(signup, LAST)
            status = draw.skewed(("delivered", "shipped", "paid", "pending", "cancelled", "refunded"))
            coupon = draw.maybe(draw.skewed(("WELCOME", "SPRING10", "VIP")), 0.7)
            shipped = _later(draw, at, 9 * 86400) if status in {"delivered", "shipped", "refunded"} else None
            key, total = len(orders) + 1, 0.0
            for _ in range(draw.whole(1, 4)):
                product = draw.skewed(products)
                quantity, discount = int(1 + draw.random() ** 3 * 9), draw.one((0.0, 0.0, 0.0, 0.1, 0.25))
                lines.append((len(lines) + 1, key, product[0], quantity, product[4], discount))
                total += quantity * product[4] * (1 - discount)
            amount = min(round(total, 2), 5000.0)
            channel, freight = draw.skewed(("web", "app", "store", "phone")), draw.one((0.0, 4.9, 4.9, 12.5))
            orders.append((key, n, at, at.date(), status, channel, coupon, amount, freight, shipped))
        for session in range(draw.whole(0, 4)):
            at, device = draw.moment(signup, LAST), draw.skewed(("desktop", "mobile", "tablet"))
            for kind in ("visit", "view", "search", "cart", "checkout", "purchase")[: draw.whole(1, 6)]:
                page, spent = draw.maybe(draw.skewed(pages), 0.1), draw.maybe(draw.whole(0, 600) * 1000, 0.15)
                events.append((len(events) + 1, n, at, kind, page, f"s{n}-{session}", device, spent))
                at = _later(draw, at, 2400)
    holidays = {(1, 1): "New Year", (5, 1): "Labor Day", (12, 25): "Christmas"}
    calendar: Rows = [(d, d.month, d.weekday() >= 5, holidays.get((d.month, d.day))) for d in _days(FIRST, LAST)]
    return {
        "customers": (
            "customer_id BIGINT, email VARCHAR, country VARCHAR, city VARCHAR, signup_date DATE, segment VARCHAR,"
            " age INTEGER, newsletter BOOLEAN, loyalty_points INTEGER",
            customers,
        ),
        "orders": (
            "order_id BIGINT, customer_id BIGINT, ordered_at TIMESTAMP, order_date DATE, status VARCHAR,"
            " channel VARCHAR, coupon VARCHAR, total DOUBLE, shipping DOUBLE, shipped_at TIMESTAMP",
            orders,
        ),
        "lines": (
            "line_id BIGINT, order_id BIGINT, product_id INTEGER, quantity INTEGER, unit_price DOUBLE, discount DOUBLE",
            lines,
        ),
        "events": (
            "event_id BIGINT, customer_id BIGINT, event_time TIMESTAMP, event_type VARCHAR, page VARCHAR,"
            " session_id VARCHAR, device VARCHAR, duration_ms INTEGER",
            events,
        ),
        "products": (
            "product_id INTEGER, name VARCHAR, category VARCHAR, brand VARCHAR, price DOUBLE, cost DOUBLE,"
            " launched DATE, discontinued BOOLEAN",
            products,
        ),
        "categories": ("category VARCHAR, department VARCHAR", list(categories)),
        "countries": ("country VARCHAR, country_name VARCHAR, region VARCHAR, currency VARCHAR, vat DOUBLE", countries),
        "calendar": ("day DATE, month INTEGER, is_weekend BOOLEAN, holiday VARCHAR", calendar),
    }


def hospital() -> World:
    draw = Draw(2)
    wards: Rows = [
        ("Cardiology", 2, 40, "heart"),
        ("Oncology", 3, 30, "cancer"),
        ("Surgery", 1, 50, "operations"),
        ("Pediatrics", 4, 25, "children"),
        ("Emergency", 0, 20, "acute"),
        ("Neurology", 3, 15, "brain"),
    ]
    icd: Rows = [
        ("I10", "Circulatory", "Hypertension"),
        ("I21", "Circulatory", "Myocardial infarction"),
        ("E11", "Endocrine", "Type 2 diabetes"),
        ("J18", "Respiratory", "Pneumonia"),
        ("J45", "Respiratory", "Asthma"),
        ("C50", "Neoplasms", "Breast cancer"),
        ("S72", "Injury", "Fracture of femur"),
        ("Z99", "Factors", "Dependence on machines"),  # nobody has it
    ]
    drugs: Rows = [
        ("aspirin", "analgesic", True, 0.1),
        ("metformin", "antidiabetic", True, 0.4),
        ("lisinopril", "antihypertensive", True, 0.6),
        ("atorvastatin", "statin", True, 0.9),
        ("insulin", "antidiabetic", False, 12.5),
        ("pembrolizumab", "oncology", False, 900.0),
    ]
    patients: Rows = []
    visits: Rows = []
    labs: Rows = []
    prescriptions: Rows = []
    scale = {"glucose": 200, "hba1c": 12, "ldl": 220, "creatinine": 3, "hemoglobin": 18}
    for n in range(1, 601):
        born = draw.day(date(1930, 1, 1), date(2020, 12, 31))
        zipcode = draw.maybe(draw.skewed(("8001", "8002", "8003", "8050", "8400", "9000")), 0.05)
        insurance = draw.skewed(("public", "private", "none"))
        blood, smoker = draw.maybe(draw.skewed(("O", "A", "B", "AB")), 0.2), draw.maybe(draw.yes(0.25), 0.15)
        height, weight = draw.maybe(draw.whole(140, 200), 0.1), draw.maybe(draw.whole(400, 1300) / 10, 0.1)
        sex = draw.one(("F", "M", "F", "M", "F", "M", "F", "M", "X"))
        patients.append((n, sex, born, zipcode, insurance, blood, smoker, height, weight))
        for _ in range(int(draw.random() ** 2 * 7)):
            at, ward = draw.moment(), draw.skewed(wards)[0]
            left = None if at > datetime(2025, 6, 20) else _later(draw, at, 12 * 86400)
            cost, severity = draw.cents(50, 20000), draw.whole(1, 5)
            again, key, age = draw.maybe(draw.yes(0.2), 0.1), len(visits) + 1, at.year - born.year
            code = draw.skewed(icd[:7])[0]
            visits.append((key, n, ward, at, left, code, severity, cost, draw.yes(0.3), again, age))
            for _ in range(draw.whole(0, 4)):
                test = draw.one(tuple(scale))
                value = draw.maybe(round(draw.random() * scale[test], 2), 0.08)
                labs.append((len(labs) + 1, key, test, value, draw.yes(0.2), _later(draw, at, 86400)))
        for _ in range(int(draw.random() ** 2 * 5)):
            drug, dose, days = draw.skewed(drugs)[0], float(draw.one((5, 10, 20, 50, 100, 500))), draw.whole(1, 90)
            refills = draw.maybe(draw.whole(0, 6), 0.25)
            prescriptions.append((len(prescriptions) + 1, n, drug, dose, days, draw.day(), refills))
    return {
        "patients": (
            "patient_id BIGINT, sex VARCHAR, birth_date DATE, zip VARCHAR, insurance VARCHAR, blood_type VARCHAR,"
            " smoker BOOLEAN, height_cm INTEGER, weight_kg DOUBLE",
            patients,
        ),
        "visits": (
            "visit_id BIGINT, patient_id BIGINT, ward VARCHAR, admitted TIMESTAMP, discharged TIMESTAMP,"
            " diagnosis_code VARCHAR, severity INTEGER, cost DOUBLE, emergency BOOLEAN, readmitted BOOLEAN,"
            " age INTEGER",
            visits,
        ),
        "lab_results": (
            "lab_id BIGINT, visit_id BIGINT, test_name VARCHAR, value DOUBLE, abnormal BOOLEAN, taken_at TIMESTAMP",
            labs,
        ),
        "prescriptions": (
            "prescription_id BIGINT, patient_id BIGINT, drug VARCHAR, dose_mg DOUBLE, days INTEGER,"
            " prescribed_on DATE, refills INTEGER",
            prescriptions,
        ),
        "wards": ("ward VARCHAR, floor INTEGER, beds INTEGER, specialty VARCHAR", wards),
        "icd": ("code VARCHAR, chapter VARCHAR, description VARCHAR", icd),
        "drugs": ("drug VARCHAR, class VARCHAR, generic BOOLEAN, unit_cost DOUBLE", drugs),
    }


def saas() -> World:
    draw = Draw(3)
    plans: Rows = [
        ("free", 0, 0.0, False),
        ("starter", 1, 19.0, False),
        ("team", 2, 99.0, False),
        ("business", 3, 299.0, True),
        ("enterprise", 4, 900.0, True),
    ]
    industries = ("Software", "Retail", "Finance", "Health", "Education")
    accounts: Rows = []
    for n in range(1, 81):
        founded = draw.day(date(1990, 1, 1), date(2023, 12, 31))
        accounts.append((n, f"Company {n:02d}", draw.skewed(industries), draw.whole(1, 5000), founded))
    features = ("search", "dashboard", "api", "comments", "reports")
    users: Rows = []
    events: Rows = []
    subscriptions: Rows = []
    invoices: Rows = []
    assignments: Rows = []
    for n in range(1, 601):
        created = draw.moment()
        source = draw.maybe(draw.skewed(("organic", "ads", "referral", "partner")), 0.1)
        country, role = draw.skewed(("US", "GB", "DE", "IN", "BR")), draw.skewed(("member", "viewer", "admin"))
        active, nps = draw.yes(0.7), draw.maybe(draw.whole(0, 10), 0.4)
        users.append((n, draw.whole(1, 80), role, country, created, source, active, nps))
        for _ in range(int(draw.random() ** 2 * 14)):
            name = draw.skewed(("login", "create_project", "invite", "export", "upgrade_click", "logout"))
            platform, feature = draw.skewed(("web", "ios", "android")), draw.maybe(draw.skewed(features), 0.3)
            load = draw.maybe(float(draw.whole(20, 9000)), 0.1)
            at = draw.moment(created.date(), LAST)
            events.append((len(events) + 1, n, name, max(at, created), platform, feature, load))
        start = created.date()
        for _ in range(draw.whole(0, 3)):
            plan = draw.skewed(plans)
            key, end = len(subscriptions) + 1, draw.maybe(_after(draw, start, 300), 0.5)
            subscriptions.append((key, n, plan[0], start, end, plan[2], draw.whole(1, 60), draw.yes(0.2)))
            issued = start
            for _ in range(draw.whole(0, 5)):
                status = draw.skewed(("paid", "open", "void", "draft"))
                moment = datetime(issued.year, issued.month, issued.day)
                paid = _later(draw, moment, 40 * 86400) if status == "paid" else None
                amount, currency = plan[2] + draw.cents(0, 20), draw.skewed(("USD", "EUR", "GBP"))
                invoices.append((len(invoices) + 1, key, issued, paid, round(amount, 2), currency, status))
                issued = min(issued + timedelta(days=30), LAST)
            start = _after(draw, start, 200)
        if draw.yes(0.8):
            for experiment in ("onboarding", "pricing")[: draw.whole(1, 2)]:
                variant = draw.one(("control", "treatment"))
                assignments.append((n, experiment, variant, _later(draw, created, 86400)))
    return {
        "users": (
            "user_id BIGINT, account_id INTEGER, role VARCHAR, country VARCHAR, created_at TIMESTAMP, source VARCHAR,"
            " is_active BOOLEAN, nps INTEGER",
            users,
        ),
        "events": (
            "event_id BIGINT, user_id BIGINT, name VARCHAR, occurred_at TIMESTAMP, platform VARCHAR, feature VARCHAR,"
            " load_ms DOUBLE",
            events,
        ),
        "subscriptions": (
            "subscription_id BIGINT, user_id BIGINT, plan VARCHAR, started_on DATE, ended_on DATE, mrr DOUBLE,"
            " seats INTEGER, trial BOOLEAN",
            subscriptions,
        ),
        "invoices": (
            "invoice_id BIGINT, subscription_id BIGINT, issued_on DATE, paid_at TIMESTAMP, amount DOUBLE,"
            " currency VARCHAR, status VARCHAR",
            invoices,
        ),
        "assignments": ("user_id BIGINT, experiment VARCHAR, variant VARCHAR, assigned_at TIMESTAMP", assignments),
        "accounts": (
            "account_id INTEGER, company VARCHAR, industry VARCHAR, employees INTEGER, founded DATE",
            accounts,
        ),
        "plans": ("plan VARCHAR, tier INTEGER, list_price DOUBLE, annual BOOLEAN", plans),
    }


def tpch() -> World:
    draw = Draw(4)
    regions: Rows = list(enumerate(("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")))
    names = "ALGERIA ARGENTINA BRAZIL CANADA EGYPT ETHIOPIA FRANCE GERMANY INDIA INDONESIA IRAN IRAQ JAPAN JORDAN"
    names += " KENYA MOROCCO MOZAMBIQUE PERU CHINA ROMANIA SAUDI_ARABIA VIETNAM RUSSIA UNITED_KINGDOM UNITED_STATES"
    of_region = (0, 1, 1, 1, 4, 0, 3, 3, 2, 2, 4, 4, 2, 4, 0, 0, 0, 1, 2, 3, 4, 2, 3, 3, 1)
    nations: Rows = [(n, name.replace("_", " "), of_region[n]) for n, name in enumerate(names.split())]
    colors = ("almond", "forest", "green", "ivory", "lemon", "navy", "plum", "rose")
    first = ("STANDARD", "SMALL", "MEDIUM", "PROMO", "ECONOMY")
    finish, metal = ("ANODIZED", "BURNISHED", "POLISHED"), ("TIN", "NICKEL", "BRASS", "STEEL")
    parts: Rows = []
    supplied: Rows = []
    for n in range(1, 201):
        kind = f"{draw.one(first)} {draw.one(finish)} {draw.one(metal)}"
        maker = draw.whole(1, 5)
        box = f"{draw.one(('SM', 'MED', 'LG', 'JUMBO'))} {draw.one(('CASE', 'BOX', 'BAG', 'PKG'))}"
        name, brand, price = f"{draw.one(colors)} {draw.one(colors)}", f"Brand#{maker}{draw.whole(1, 5)}", 900.0 + n
        parts.append((n, name, f"Manufacturer#{maker}", brand, kind, draw.whole(1, 50), box, price))
        for step in range(4):
            supplied.append((n, (n + step * 5) % 20 + 1, draw.whole(1, 9999), draw.cents(1, 1000)))
    suppliers: Rows = []
    for n in range(1, 21):
        nation = (n * 7) % 25
        phone, balance = f"{nation + 10}-555-{n:04d}", draw.cents(-900, 9900)
        remark = "Customer Complaints" if n % 9 == 0 else "quiet deposits"
        suppliers.append((n, f"Supplier#{n:09d}", f"Street {n}", nation, phone, balance, remark))
    ships = ("AIR", "REG AIR", "MAIL", "SHIP", "TRUCK", "RAIL", "FOB")
    hands = ("DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN")
    priorities = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
    segments = ("AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD")
    customers: Rows = []
    orders: Rows = []
    items: Rows = []
    for n in range(1, 301):
        nation = draw.whole(0, 24)
        phone, balance = f"{nation + 10}-{draw.whole(100, 999)}-{n:04d}", draw.cents(-999, 9999)
        segment = draw.one(segments)
        customers.append((n, f"Customer#{n:09d}", f"Road {n}", nation, phone, balance, segment, "final packages"))
        if n % 3 == 0:
            continue  # as in TPC-H, a third of the customers have never ordered
        for _ in range(draw.whole(1, 10)):
            key, day = len(orders) + 1, draw.day(date(1992, 1, 1), date(1998, 8, 2))
            total, open_lines, size = 0.0, 0, draw.whole(1, 7)
            for number in range(1, size + 1):
                part = draw.whole(1, 200)
                quantity, discount, tax = draw.whole(1, 50), draw.whole(0, 10) / 100, draw.whole(0, 8) / 100
                price = round(quantity * parts[part - 1][7], 2)
                shipped = day + timedelta(days=draw.whole(1, 121))
                commit, receipt = day + timedelta(days=draw.whole(30, 90)), shipped + timedelta(days=draw.whole(1, 30))
                flag = "N" if receipt > date(1995, 6, 17) else draw.one(("R", "A"))
                status = "O" if shipped > date(1995, 6, 17) else "F"
                open_lines += status == "O"
                total += price * (1 + tax) * (1 - discount)
                supplier = supplied[(part - 1) * 4 + draw.whole(0, 3)][1]
                values = (quantity, price, discount, tax, flag, status, shipped, commit, receipt)
                items.append((key, part, supplier, number, *values, draw.one(hands), draw.one(ships), "carefully"))
            state = "O" if open_lines == size else "P" if open_lines else "F"
            remark = "special handling requests" if draw.yes(0.05) else "pending deposits"
            clerk = f"Clerk#{draw.whole(1, 9):09d}"
            price, urgency = min(round(total, 2), 600000.0), draw.one(priorities)
            orders.append((key, n, state, price, day, urgency, clerk, 0, remark))
    return {
        "customer": (
            "c_custkey BIGINT, c_name VARCHAR, c_address VARCHAR, c_nationkey INTEGER, c_phone VARCHAR,"
            " c_acctbal DOUBLE, c_mktsegment VARCHAR, c_comment VARCHAR",
            customers,
        ),
        "orders": (
            "o_orderkey BIGINT, o_custkey BIGINT, o_orderstatus VARCHAR, o_totalprice DOUBLE, o_orderdate DATE,"
            " o_orderpriority VARCHAR, o_clerk VARCHAR, o_shippriority INTEGER, o_comment VARCHAR",
            orders,
        ),
        "lineitem": (
            "l_orderkey BIGINT, l_partkey INTEGER, l_suppkey INTEGER, l_linenumber INTEGER, l_quantity INTEGER,"
            " l_extendedprice DOUBLE, l_discount DOUBLE, l_tax DOUBLE, l_returnflag VARCHAR, l_linestatus VARCHAR,"
            " l_shipdate DATE, l_commitdate DATE, l_receiptdate DATE, l_shipinstruct VARCHAR, l_shipmode VARCHAR,"
            " l_comment VARCHAR",
            items,
        ),
        "part": (
            "p_partkey INTEGER, p_name VARCHAR, p_mfgr VARCHAR, p_brand VARCHAR, p_type VARCHAR, p_size INTEGER,"
            " p_container VARCHAR, p_retailprice DOUBLE",
            parts,
        ),
        "supplier": (
            "s_suppkey INTEGER, s_name VARCHAR, s_address VARCHAR, s_nationkey INTEGER, s_phone VARCHAR,"
            " s_acctbal DOUBLE, s_comment VARCHAR",
            suppliers,
        ),
        "partsupp": ("ps_partkey INTEGER, ps_suppkey INTEGER, ps_availqty INTEGER, ps_supplycost DOUBLE", supplied),
        "nation": ("n_nationkey INTEGER, n_name VARCHAR, n_regionkey INTEGER", nations),
        "region": ("r_regionkey INTEGER, r_name VARCHAR", regions),
    }


def rides() -> World:
    draw = Draw(5)
    districts = ("Center", "North", "South", "Harbor", "Airport")
    stations: Rows = []
    for n in range(1, 31):
        lat, lon = 47 + draw.whole(0, 999) / 1000, 8 + draw.whole(0, 999) / 1000
        opened = draw.day(date(2015, 1, 1), date(2023, 12, 31))
        stations.append((n, f"Station {n}", districts[n % 5], draw.whole(5, 40), lat, lon, opened))
    weather: Rows = []
    for d in _days(FIRST, LAST):
        rain = draw.one((0.0, 0.0, 0.0, 0.5, 2.5, 11.0))
        sky = "rain" if rain > 1 else draw.one(("sun", "clouds"))
        weather.append((d, float(draw.whole(-8, 33)), rain, sky))
    riders: Rows = []
    trips: Rows = []
    payments: Rows = []
    for n in range(1, 501):
        born, gender = (
            draw.maybe(draw.whole(1945, 2008), 0.1),
            draw.maybe(draw.skewed(("male", "female", "other")), 0.08),
        )
        joined, home = draw.day(), draw.maybe(draw.skewed(districts), 0.15)
        riders.append((n, born, gender, draw.skewed(("casual", "monthly", "annual")), joined, home))
        for _ in range(int(draw.random() ** 2 * 14)):
            at, minutes = draw.moment(joined, LAST), draw.maybe(int(2 + draw.random() ** 3 * 110), 0.03)
            ended = None
            if minutes is not None:
                ended = min(at + timedelta(minutes=minutes), datetime(2025, 6, 30, 23, 59, 59))
            start, end = draw.skewed(range(1, 31)), draw.maybe(draw.skewed(range(1, 31)), 0.04)
            distance, fare = draw.whole(2, 180) / 10, draw.cents(1, 30)
            tip, rating = draw.maybe(draw.one((0.0, 1.0, 2.0, 5.0)), 0.3), draw.maybe(draw.whole(1, 5), 0.35)
            bike, code = draw.skewed(("classic", "electric", "cargo")), draw.maybe(draw.one(("HELLO", "SUMMER")), 0.8)
            key = len(trips) + 1
            trips.append((key, n, at, ended, start, end, bike, distance, minutes, fare, tip, rating, code))
            for _ in range(draw.one((1, 1, 1, 2, 0))):
                method = draw.skewed(("card", "wallet", "cash"))
                payments.append((len(payments) + 1, key, method, fare, draw.yes(0.05), _after(draw, at.date(), 2)))
    return {
        "riders": (
            "rider_id BIGINT, birth_year INTEGER, gender VARCHAR, membership VARCHAR, joined_on DATE,"
            " home_district VARCHAR",
            riders,
        ),
        "trips": (
            "trip_id BIGINT, rider_id BIGINT, started_at TIMESTAMP, ended_at TIMESTAMP, start_station INTEGER,"
            " end_station INTEGER, bike_type VARCHAR, distance_km DOUBLE, duration_min INTEGER, fare DOUBLE,"
            " tip DOUBLE, rating INTEGER, promo_code VARCHAR",
            trips,
        ),
        "payments": (
            "payment_id BIGINT, trip_id BIGINT, method VARCHAR, amount DOUBLE, refunded BOOLEAN, paid_on DATE",
            payments,
        ),
        "stations": (
            "station_id INTEGER, station_name VARCHAR, district VARCHAR, capacity INTEGER, lat DOUBLE, lon DOUBLE,"
            " opened_on DATE",
            stations,
        ),
        "weather": ("day DATE, temp_c DOUBLE, rain_mm DOUBLE, condition VARCHAR", weather),
    }


def bank() -> World:
    draw = Draw(6)
    codes: Rows = [
        (4111, "Transport", "low"),
        (5411, "Groceries", "low"),
        (5812, "Restaurants", "low"),
        (6011, "Cash", "medium"),
        (7995, "Gambling", "high"),
        (5967, "Online services", "high"),
    ]
    rates: Rows = [("CHF", 1.1), ("EUR", 1.08), ("USD", 1.0)]
    shops = {4111: "CityRail", 5411: "FreshMart", 5812: "Bistro", 6011: "ATM", 7995: "Lucky7", 5967: "StreamCo"}
    clients: Rows = []
    accounts: Rows = []
    transactions: Rows = []
    loans: Rows = []
    for n in range(1, 401):
        born, income = draw.day(date(1930, 1, 1), date(2006, 12, 31)), draw.maybe(draw.cents(12000, 240000), 0.15)
        score, employed = draw.maybe(draw.whole(250, 990), 0.1), draw.maybe(draw.yes(0.75), 0.1)
        region = draw.skewed(("north", "south", "east", "west"))
        segment, joined = draw.skewed(("retail", "premier", "private")), draw.day(date(2010, 1, 1), LAST)
        clients.append((n, born, region, segment, score, income, employed, joined))
        for _ in range(draw.one((1, 1, 2, 2, 3))):
            key, kind = len(accounts) + 1, draw.skewed(("checking", "savings", "credit"))
            closed = draw.maybe(draw.day(), 0.85)
            balance, currency = draw.cents(-2000, 60000), draw.skewed(("CHF", "EUR", "USD"))
            accounts.append((key, n, kind, draw.day(joined, LAST), closed, balance, currency))
            for _ in range(int(draw.random() ** 2 * 20)):
                at, what = draw.moment(), draw.skewed(("card", "transfer", "atm", "fee", "salary"))
                amount = draw.cents(1500, 5000) if what == "salary" else -draw.cents(1, 900)
                code = draw.skewed(codes)[0] if what in {"card", "atm"} else None
                merchant, country = shops.get(code or 0), draw.skewed(("CH", "DE", "US", "IT"))
                values = (at, at.date(), amount, what, code, merchant, draw.yes(0.04), country)
                transactions.append((len(transactions) + 1, key, *values))
        for _ in range(draw.one((0, 0, 1, 1, 2))):
            product, term = draw.skewed(("personal", "auto", "mortgage")), draw.one((12, 36, 60, 120, 240, 360))
            principal, rate = draw.cents(1000, 400000), draw.whole(100, 1800) / 10000
            status = draw.skewed(("current", "paid", "late", "default"))
            collateral = draw.maybe(draw.cents(5000, 700000), 0.5)
            loans.append((len(loans) + 1, n, product, principal, rate, term, draw.day(), status, collateral))
    return {
        "clients": (
            "client_id BIGINT, birth_date DATE, region VARCHAR, segment VARCHAR, risk_score INTEGER, income DOUBLE,"
            " employed BOOLEAN, joined_on DATE",
            clients,
        ),
        "accounts": (
            "account_id BIGINT, client_id BIGINT, kind VARCHAR, opened_on DATE, closed_on DATE, balance DOUBLE,"
            " currency VARCHAR",
            accounts,
        ),
        "transactions": (
            "tx_id BIGINT, account_id BIGINT, booked_at TIMESTAMP, value_date DATE, amount DOUBLE, tx_type VARCHAR,"
            " mcc INTEGER, merchant VARCHAR, is_fraud BOOLEAN, country VARCHAR",
            transactions,
        ),
        "loans": (
            "loan_id BIGINT, client_id BIGINT, product VARCHAR, principal DOUBLE, rate DOUBLE, term_months INTEGER,"
            " issued_on DATE, status VARCHAR, collateral DOUBLE",
            loans,
        ),
        "mcc_codes": ("mcc INTEGER, mcc_category VARCHAR, risk VARCHAR", codes),
        "fx_rates": ("currency VARCHAR, rate_to_usd DOUBLE", rates),
    }


def school() -> World:
    draw = Draw(7)
    subjects = ("Math", "English", "Science", "History", "Art", "Music")
    teachers: Rows = []
    for n in range(1, 13):
        hired = draw.day(date(1990, 1, 1), date(2023, 12, 31))
        teachers.append((n, f"Teacher {n}", subjects[n % 6], hired))
    courses: Rows = []
    for n in range(1, 25):
        subject = subjects[n % 6]
        courses.append((n, f"{subject} {n}", subject, draw.whole(1, 4), n % 12 + 1))
    terms = {
        "2024S": (date(2024, 1, 15), date(2024, 6, 15)),
        "2024F": (date(2024, 8, 20), date(2024, 12, 20)),
        "2025S": (date(2025, 1, 15), date(2025, 6, 15)),
    }
    students: Rows = []
    enrollments: Rows = []
    grades: Rows = []
    attendance: Rows = []
    for n in range(1, 401):
        born, level = draw.day(date(2005, 1, 1), date(2013, 12, 31)), draw.whole(5, 12)
        campus, mail = draw.skewed(("Lincoln", "Roosevelt", "Kennedy")), draw.maybe(f"parent{n}@mail.example", 0.2)
        gpa = draw.maybe(draw.whole(0, 400) / 100, 0.1)
        students.append((n, draw.one(("F", "M")), born, level, campus, draw.yes(0.35), mail, gpa))
        for term, (start, end) in terms.items():
            for _ in range(draw.whole(0, 3)):
                key, on = len(enrollments) + 1, draw.day(start, start + timedelta(days=14))
                dropped = draw.maybe(draw.day(on, end), 0.88)
                enrollments.append((key, n, draw.skewed(range(1, 25)), term, on, dropped))
                for _ in range(draw.whole(0, 4)):
                    kind, score = draw.skewed(("homework", "quiz", "exam")), draw.maybe(draw.whole(200, 1000) / 10, 0.1)
                    grades.append((len(grades) + 1, key, kind, score, draw.one((0.1, 0.2, 0.5)), draw.day(on, end)))
        for _ in range(draw.whole(0, 12)):
            status = draw.skewed(("present", "present", "late", "absent", "excused"))
            late = draw.whole(1, 45) if status == "late" else None
            attendance.append((n, draw.day(), status, late, draw.whole(1, 8)))
    return {
        "students": (
            "student_id BIGINT, gender VARCHAR, birth_date DATE, grade_level INTEGER, school VARCHAR,"
            " free_lunch BOOLEAN, guardian_email VARCHAR, gpa DOUBLE",
            students,
        ),
        "enrollments": (
            "enrollment_id BIGINT, student_id BIGINT, course_id INTEGER, term VARCHAR, enrolled_on DATE,"
            " dropped_on DATE",
            enrollments,
        ),
        "grades": (
            "grade_id BIGINT, enrollment_id BIGINT, kind VARCHAR, score DOUBLE, weight DOUBLE, graded_on DATE",
            grades,
        ),
        "attendance": ("student_id BIGINT, day DATE, status VARCHAR, minutes_late INTEGER, period INTEGER", attendance),
        "courses": (
            "course_id INTEGER, title VARCHAR, subject VARCHAR, credits INTEGER, teacher_id INTEGER",
            courses,
        ),
        "teachers": ("teacher_id INTEGER, teacher_name VARCHAR, department VARCHAR, hired_on DATE", teachers),
    }


WORLDS: dict[str, Callable[[], World]] = {
    "shop": shop,
    "hospital": hospital,
    "saas": saas,
    "tpch": tpch,
    "rides": rides,
    "bank": bank,
    "school": school,
}


@cache
def _make_tables(name: str) -> list[tuple[str, str, pa.Table]]:
    """Return the name, the definitions of the columns and the rows of each table of a world."""
    made = []
    for table, (definitions, rows) in WORLDS[name]().items():
        columns = [definition.split() for definition in definitions.split(",")]
        values = zip(*rows, strict=True)
        arrays = [pa.array(column, _ARROW[kind]) for column, (_, kind) in zip(values, columns, strict=True)]
        made.append((table, definitions, pa.table(arrays, names=[column for column, _ in columns])))
    return made


def fill(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Create the tables of a world and put its rows into them."""
    for table, definitions, rows in _make_tables(name):
        connection.execute(f"CREATE TABLE {table} ({definitions})")
        connection.register("filled", rows)
        connection.execute(f"INSERT INTO {table} SELECT * FROM filled")
        connection.unregister("filled")


def connect(name: str) -> duckdb.DuckDBPyConnection:
    """Return an in-memory database with the tables of a world.

    It is called after its world and has them in the schemas `main` and `public`, so that `"shop"."public"."orders"`
    names a table.
    """
    connection = duckdb.connect()
    connection.execute(f"ATTACH ':memory:' AS {name}; USE {name}; CREATE SCHEMA public")
    fill(connection, name)
    for (table,) in connection.execute("SHOW TABLES").fetchall():
        connection.execute(f"CREATE VIEW public.{table} AS SELECT * FROM main.{table}")
    return connection


def build(name: str, folder: Path) -> Path:
    """Write a world's database and its policy into a folder, and return the policy's path."""
    with duckdb.connect(str(folder / f"{name}.duckdb")) as connection:
        fill(connection, name)
    return Path(shutil.copy(FOLDER / f"{name}.toml", folder))
