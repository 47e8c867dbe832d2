"""What every side is asked. Imports the standard library only: each side runs in an environment of its own."""

from __future__ import annotations

EPSILON = 1.0
GROUPS = 1_000
LARGEST = 100  # of a value, which has two decimals; the least is 0
MOST_GROUPS = 4  # of one unit
MOST_ROWS = 5  # of one unit, in each group
SQL = "SELECT g, COUNT(*) AS n, SUM(v) AS s FROM events GROUP BY g"

SHIPPING = ("air", "mail", "rail", "road", "ship", "truck", "pick-up")
SHOP_ROWS = 10  # of one customer, in each way of shipping
SHOP_SQL = "SELECT shipping, COUNT(*) AS n, SUM(price) AS s FROM lines GROUP BY shipping"
JOINED_SQL = "SELECT shipping, COUNT(*) AS n, SUM(price) AS s FROM lines JOIN orders USING (order_id) GROUP BY shipping"
