-- id: shop-001
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 2 schema-qualified
SELECT "public"."orders"."status" AS "status", COUNT(*) AS "count"
FROM "public"."orders"
GROUP BY "public"."orders"."status"
ORDER BY "public"."orders"."status" ASC;

-- id: shop-002
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 2 schema-qualified, 7 date-trunc
SELECT
  CAST(DATE_TRUNC('month', "public"."orders"."ordered_at") AS date) AS "ordered_at",
  SUM("public"."orders"."total") AS "sum"
FROM "public"."orders"
GROUP BY CAST(DATE_TRUNC('month', "public"."orders"."ordered_at") AS date)
ORDER BY CAST(DATE_TRUNC('month', "public"."orders"."ordered_at") AS date) ASC;

-- id: shop-003
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 2 schema-qualified, 5 foreign-key-join, 3 public-table-keys
SELECT
  "Products"."category" AS "Products__category",
  COUNT(*) AS "count",
  SUM("public"."lines"."quantity") AS "sum"
FROM "public"."lines"
LEFT JOIN "public"."products" AS "Products" ON "public"."lines"."product_id" = "Products"."product_id"
GROUP BY "Products"."category"
ORDER BY "count" DESC, "Products"."category" ASC;

-- id: shop-004
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: unanswerable: returns rows of persons
-- shapes: 2 schema-qualified
SELECT
  "public"."customers"."email" AS "email",
  "public"."customers"."country" AS "country",
  "public"."customers"."signup_date" AS "signup_date"
FROM "public"."customers"
LIMIT 2000;

-- id: shop-005
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 8 zero-row-probe
SELECT "source".* FROM (SELECT "public"."orders"."status" AS "status", "public"."orders"."total" AS "total" FROM "public"."orders") AS "source" LIMIT 0;

-- id: shop-006
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 8 zero-row-probe
SELECT true AS "_" FROM "public"."customers" WHERE 1 <> 1 LIMIT 0;

-- id: shop-007
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 7 to-char, 2 fetch-first
-- plain: SELECT
-- plain:   (
-- plain:     STRFTIME(DATE_TRUNC('MONTH', orders.ordered_at), '%Y-%m')
-- plain:   ) AS "orders.ordered_month",
-- plain:   COALESCE(SUM(orders.total), 0) AS "orders.revenue",
-- plain:   COUNT(DISTINCT orders.customer_id) AS "orders.buyers"
-- plain: FROM public.orders AS orders
-- plain: GROUP BY
-- plain:   1
-- plain: ORDER BY
-- plain:   1 DESC NULLS FIRST
-- plain: LIMIT 500
SELECT
  (TO_CHAR(DATE_TRUNC('month', orders.ordered_at), 'YYYY-MM')) AS "orders.ordered_month",
  COALESCE(SUM(orders.total), 0) AS "orders.revenue",
  COUNT(DISTINCT orders.customer_id) AS "orders.buyers"
FROM public.orders AS orders
GROUP BY 1
ORDER BY 1 DESC
FETCH NEXT 500 ROWS ONLY;

-- id: shop-008
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 7 interval, 7 current-date
-- plain: SELECT CAST(ordered_at AS DATE) AS "orders.ordered_date", COUNT(*) AS "orders.count"
-- plain: FROM orders WHERE ordered_at >= TIMESTAMP '2025-06-24' AND ordered_at < TIMESTAMP '2025-07-01'
-- plain: GROUP BY 1 ORDER BY 1 DESC
SELECT
  DATE(orders.ordered_at) AS "orders.ordered_date",
  COUNT(*) AS "orders.count"
FROM public.orders AS orders
WHERE ((orders.ordered_at) >= ((SELECT (DATE_TRUNC('day', CURRENT_DATE::timestamp) + (-6 || ' day')::interval)))
  AND (orders.ordered_at) < ((SELECT (DATE_TRUNC('day', CURRENT_DATE::timestamp) + (1 || ' day')::interval))))
GROUP BY 1
ORDER BY 1 DESC;

-- id: shop-009
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 5 foreign-key-join, 3 public-table-keys, 2 fetch-first
WITH order_facts AS (
  SELECT o.customer_id, COUNT(*) AS lifetime_orders, SUM(o.total) AS lifetime_value
  FROM public.orders o
  GROUP BY 1
)
SELECT
  CASE WHEN order_facts.lifetime_orders = 1 THEN 'one'
       WHEN order_facts.lifetime_orders <= 3 THEN 'two to three'
       ELSE 'four or more' END AS "order_facts.tier",
  COUNT(DISTINCT customers.customer_id) AS "customers.count",
  AVG(order_facts.lifetime_value) AS "order_facts.average_value"
FROM public.customers AS customers
INNER JOIN order_facts ON customers.customer_id = order_facts.customer_id
GROUP BY 1
ORDER BY 2 DESC
FETCH NEXT 500 ROWS ONLY;

-- id: shop-010
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 7 to-char, 4 cte
-- plain: WITH monthly AS (
-- plain:   SELECT
-- plain:     STRFTIME(order_date, '%Y-%m') AS month,
-- plain:     SUM(total) AS revenue
-- plain:   FROM orders
-- plain:   WHERE
-- plain:     NOT status IN ('cancelled', 'refunded')
-- plain:   GROUP BY
-- plain:     1
-- plain: )
-- plain: SELECT
-- plain:   month,
-- plain:   revenue,
-- plain:   revenue - LAG(revenue) OVER (ORDER BY month) AS change
-- plain: FROM monthly
-- plain: ORDER BY
-- plain:   month
WITH monthly AS (
  SELECT TO_CHAR(order_date, 'YYYY-MM') AS month, SUM(total) AS revenue
  FROM orders
  WHERE status NOT IN ('cancelled', 'refunded')
  GROUP BY 1
)
SELECT month, revenue, revenue - LAG(revenue) OVER (ORDER BY month) AS change
FROM monthly
ORDER BY month;

-- id: shop-011
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 2 derived-table, 7 date-trunc
SELECT DATE_TRUNC('week', ordered_at) AS __timestamp,
       channel AS channel,
       count(*) AS count
FROM
  (SELECT * FROM orders WHERE status <> 'cancelled') AS virtual_table
WHERE ordered_at >= '2025-01-01 00:00:00'
  AND ordered_at < '2025-04-01 00:00:00'
GROUP BY DATE_TRUNC('week', ordered_at),
         channel
ORDER BY count DESC
LIMIT 10000;

-- id: shop-012
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 7 to-timestamp
-- plain: SELECT channel, AVG(total) AS "AVG(total)" FROM orders
-- plain: WHERE ordered_at >= TIMESTAMP '2024-06-01' AND ordered_at < TIMESTAMP '2025-06-01'
-- plain: GROUP BY channel ORDER BY 2 DESC LIMIT 100
SELECT channel AS channel, AVG(total) AS "AVG(total)"
FROM orders
WHERE ordered_at >= TO_TIMESTAMP('2024-06-01 00:00:00', 'YYYY-MM-DD HH24:MI:SS')
  AND ordered_at < TO_TIMESTAMP('2025-06-01 00:00:00', 'YYYY-MM-DD HH24:MI:SS')
GROUP BY channel
ORDER BY "AVG(total)" DESC
LIMIT 100;

-- id: shop-013
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 4 top-n, 5 in-subquery
SELECT country AS country, COUNT(*) AS count
FROM customers
JOIN
  (SELECT country AS country__, COUNT(*) AS mme_inner__
   FROM customers
   GROUP BY country
   ORDER BY mme_inner__ DESC
   LIMIT 3) AS series_limit ON country = country__
GROUP BY country
ORDER BY count DESC;

-- id: shop-014
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 2 schema-qualified, 8 one-meaning
SELECT "orders"."channel" AS "channel",
  SUM("orders"."total") AS "sum:total:ok",
  SUM(1) AS "cnt:orders:ok"
FROM "public"."orders" "orders"
GROUP BY 1;

-- id: shop-015
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 8 one-meaning
SELECT COUNT(1) AS "cnt", AVG("orders"."total") AS "avg:total:ok"
FROM "public"."orders" "orders"
HAVING (COUNT(1) > 0);

-- id: shop-016
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 7 date-trunc, 8 one-meaning
SELECT DATE_TRUNC('QUARTER', CAST("orders"."order_date" AS DATE)) AS "tqr:order_date:ok",
  COUNT(DISTINCT "orders"."customer_id") AS "ctd:customer_id:ok"
FROM "public"."orders" "orders"
WHERE ((CAST("orders"."order_date" AS DATE) >= DATE '2024-07-01') AND (CAST("orders"."order_date" AS DATE) < DATE '2025-07-01'))
GROUP BY 1;

-- id: shop-017
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: unanswerable: exact extreme
-- shapes: 8 range-probe
SELECT MIN("orders"."order_date") AS "TEMP(min)", MAX("orders"."order_date") AS "TEMP(max)", COUNT(1) AS "TEMP(cnt)"
FROM "public"."orders" "orders";

-- id: shop-018
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 3 declared-keys, 2 group-by-no-aggregate
SELECT "orders"."status" AS "status"
FROM "public"."orders" "orders"
GROUP BY 1
ORDER BY 1 ASC;

-- id: shop-019
-- source: dashboard
-- dialect: duckdb
-- world: shop
-- label: answerable
-- shapes: 3 declared-keys, 2 select-distinct
SELECT DISTINCT channel FROM orders ORDER BY channel;

-- id: shop-020
-- source: dashboard
-- dialect: duckdb
-- world: shop
-- label: answerable
-- shapes: 3 private-keys, 2 select-distinct
SELECT DISTINCT city FROM customers WHERE city IS NOT NULL ORDER BY 1;

-- id: shop-021
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 3 narrowed-keys
SELECT order_date, COUNT(*) AS orders, SUM(total) AS revenue
FROM orders
WHERE order_date BETWEEN DATE '2025-03-03' AND DATE '2025-03-09'
GROUP BY order_date
ORDER BY order_date;

-- id: shop-022
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 3 narrowed-keys
SELECT status, COUNT(*) FROM orders WHERE status = 'paid' GROUP BY status;

-- id: shop-023
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 3 narrowed-keys
SELECT status, channel, COUNT(*) AS n
FROM orders
WHERE status IN ('paid', 'shipped') AND channel <> 'phone'
GROUP BY status, channel;

-- id: shop-024
-- source: dashboard
-- dialect: duckdb
-- world: shop
-- label: answerable
-- shapes: 4 percent-of-total
SELECT channel,
       COUNT(*) AS orders,
       ROUND(100.0 * COUNT(*) / SUM(COUNT(*)) OVER (), 1) AS pct
FROM orders
GROUP BY channel
ORDER BY orders DESC;

-- id: shop-025
-- source: dashboard
-- dialect: duckdb
-- world: shop
-- label: answerable
-- shapes: 4 window, 7 date-trunc
SELECT date_trunc('month', order_date) AS month,
       SUM(total) AS revenue,
       SUM(SUM(total)) OVER (ORDER BY date_trunc('month', order_date)) AS cumulative
FROM orders
WHERE order_date >= DATE '2025-01-01'
GROUP BY 1
ORDER BY 1;

-- id: shop-026
-- source: dashboard
-- dialect: duckdb
-- world: shop
-- label: answerable
-- shapes: 4 window, 4 cte
WITH daily AS (
  SELECT order_date AS d, COUNT(*) AS n
  FROM orders
  WHERE order_date >= '2025-05-01'
  GROUP BY order_date
)
SELECT d, n,
       AVG(n) OVER (ORDER BY d ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS n_7d
FROM daily
ORDER BY d;

-- id: shop-027
-- source: dashboard
-- dialect: duckdb
-- world: shop
-- label: answerable
-- shapes: 4 scalar-subquery
SELECT status,
       COUNT(*) * 100.0 / (SELECT COUNT(*) FROM orders) AS share
FROM orders
GROUP BY status;

-- id: shop-028
-- source: dashboard
-- dialect: duckdb
-- world: shop
-- label: answerable
-- shapes: 3 rollup
SELECT channel, status, COUNT(*) AS n, SUM(total) AS revenue
FROM orders
GROUP BY ROLLUP (channel, status)
ORDER BY channel NULLS LAST, status NULLS LAST;

-- id: shop-029
-- source: dashboard
-- dialect: duckdb
-- world: shop
-- label: answerable
-- shapes: 3 cube
SELECT channel, status, COUNT(*) AS n
FROM orders
GROUP BY CUBE (channel, status);

-- id: shop-030
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 3 grouping-sets
SELECT country, segment, COUNT(*) AS customers, GROUPING(country, segment) AS level
FROM customers
GROUP BY GROUPING SETS ((country, segment), (country), ())
ORDER BY level, country, segment;

-- id: shop-031
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 3 null-keys
SELECT COALESCE(segment, 'unknown') AS segment, COUNT(*) AS customers
FROM customers
GROUP BY 1
ORDER BY 2 DESC;

-- id: shop-032
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 3 null-keys
SELECT segment, COUNT(*) AS customers, AVG(age) AS mean_age
FROM customers
GROUP BY segment;

-- id: shop-033
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 2 right-join, 3 public-key-list
SELECT c.country_name, COUNT(u.customer_id) AS customers
FROM customers u
RIGHT JOIN countries c ON c.country = u.country
GROUP BY c.country_name
ORDER BY c.country_name;

-- id: shop-034
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 2 right-join, 3 public-key-list
SELECT cal.day, COUNT(o.order_id) AS orders, COALESCE(SUM(o.total), 0) AS revenue
FROM orders o
RIGHT JOIN calendar cal ON cal.day = o.order_date
WHERE cal.day BETWEEN '2025-06-01' AND '2025-06-30'
GROUP BY cal.day
ORDER BY cal.day;

-- id: shop-035
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 2 left-join-from-public, 3 public-key-list
SELECT cat.category, COALESCE(SUM(l.quantity), 0) AS sold
FROM categories cat
LEFT JOIN products p ON p.category = cat.category
LEFT JOIN lines l ON l.product_id = p.product_id
GROUP BY cat.category
ORDER BY sold DESC;

-- id: shop-036
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 2 comma-join
SELECT c.region, COUNT(*) AS n
FROM customers u, countries c
WHERE u.country = c.country
GROUP BY c.region;

-- id: shop-037
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 2 using
SELECT region, AVG(loyalty_points) AS points
FROM customers
JOIN countries USING (country)
GROUP BY region;

-- id: shop-038
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 2 natural-join
SELECT department, COUNT(*) AS line_count
FROM lines
NATURAL JOIN products
NATURAL JOIN categories
GROUP BY department
ORDER BY department;

-- id: shop-039
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 5 foreign-key-join
SELECT o.channel,
       SUM(l.quantity * l.unit_price * (1 - l.discount)) AS net_sales
FROM orders o
JOIN lines l ON o.order_id = l.order_id
GROUP BY o.channel;

-- id: shop-040
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 5 foreign-key-join, 3 public-table-keys
SELECT p.brand,
       COUNT(DISTINCT o.customer_id) AS buyers,
       COUNT(DISTINCT o.order_id) AS orders,
       SUM(l.quantity) AS units
FROM lines l
JOIN orders o ON o.order_id = l.order_id
JOIN products p ON p.product_id = l.product_id
WHERE o.status = 'delivered'
GROUP BY p.brand
ORDER BY units DESC;

-- id: shop-041
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 5 foreign-key-join, 4 top-n
SELECT p.name, SUM(l.quantity * l.unit_price) AS gross
FROM orders o
INNER JOIN lines l USING (order_id)
INNER JOIN products p USING (product_id)
GROUP BY p.name
ORDER BY gross DESC
LIMIT 10;

-- id: shop-042
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 4 top-n-per-group, 5 foreign-key-join
SELECT *
FROM (
  SELECT p.category, p.name, SUM(l.quantity) AS units,
         ROW_NUMBER() OVER (PARTITION BY p.category ORDER BY SUM(l.quantity) DESC) AS rk
  FROM lines l
  JOIN products p ON p.product_id = l.product_id
  GROUP BY p.category, p.name
) ranked
WHERE rk <= 3
ORDER BY category, rk;

-- id: shop-043
-- source: dashboard
-- dialect: duckdb
-- world: shop
-- label: answerable
-- shapes: 4 qualify
SELECT country, city, COUNT(*) AS n
FROM customers
WHERE city IS NOT NULL
GROUP BY country, city
QUALIFY RANK() OVER (PARTITION BY country ORDER BY COUNT(*) DESC) = 1;

-- id: shop-044
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: ordinary
SELECT COUNT(*) AS customers,
       SUM(CASE WHEN newsletter THEN 1 ELSE 0 END) AS subscribed,
       AVG(CASE WHEN newsletter THEN 1.0 ELSE 0.0 END) AS subscription_rate
FROM customers;

-- id: shop-045
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: ordinary
SELECT COUNT(*) FILTER (WHERE status = 'cancelled')::numeric / NULLIF(COUNT(*), 0) AS cancel_rate
FROM orders
WHERE order_date >= DATE '2025-01-01';

-- id: shop-046
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 7 current-date, 7 interval
-- plain: SELECT COUNT(*) AS orders_30d, SUM(total) AS revenue_30d
-- plain: FROM orders
-- plain: WHERE order_date >= DATE '2025-06-30' - INTERVAL '30 days'
SELECT COUNT(*) AS orders_30d, SUM(total) AS revenue_30d
FROM orders
WHERE order_date >= CURRENT_DATE - INTERVAL '30 days';

-- id: shop-047
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 7 current-date, 4 union-all
-- plain: SELECT 'this month' AS period, COALESCE(SUM(total), 0) AS revenue
-- plain: FROM orders
-- plain: WHERE order_date >= DATE_TRUNC('month', DATE '2025-06-30')
-- plain: UNION ALL
-- plain: SELECT 'last month', COALESCE(SUM(total), 0)
-- plain: FROM orders
-- plain: WHERE order_date >= DATE_TRUNC('month', DATE '2025-06-30') - INTERVAL '1 month'
-- plain:   AND order_date < DATE_TRUNC('month', DATE '2025-06-30')
SELECT 'this month' AS period, COALESCE(SUM(total), 0) AS revenue
FROM orders
WHERE order_date >= DATE_TRUNC('month', CURRENT_DATE)
UNION ALL
SELECT 'last month', COALESCE(SUM(total), 0)
FROM orders
WHERE order_date >= DATE_TRUNC('month', CURRENT_DATE) - INTERVAL '1 month'
  AND order_date < DATE_TRUNC('month', CURRENT_DATE);

-- id: shop-048
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 4 union-all
SELECT 'customers' AS metric, COUNT(*) AS value FROM customers
UNION ALL
SELECT 'orders', COUNT(*) FROM orders
UNION ALL
SELECT 'order lines', COUNT(*) FROM lines;

-- id: shop-049
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 4 join-of-results, 4 cte
WITH r AS (
  SELECT channel, SUM(total) AS revenue FROM orders GROUP BY channel
), c AS (
  SELECT channel, COUNT(*) AS cancelled FROM orders WHERE status = 'cancelled' GROUP BY channel
)
SELECT r.channel, r.revenue, COALESCE(c.cancelled, 0) AS cancelled
FROM r LEFT JOIN c ON c.channel = r.channel
ORDER BY r.channel;

-- id: shop-050
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 4 cte-reaggregate
WITH per_day AS (
  SELECT order_date, COUNT(*) AS n FROM orders GROUP BY order_date
)
SELECT AVG(n) AS mean_daily_orders, MAX(n) AS busiest_day
FROM per_day;

-- id: shop-051
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 4 having
SELECT city, COUNT(*) AS customers
FROM customers
GROUP BY city
HAVING COUNT(*) >= 30
ORDER BY customers DESC;

-- id: shop-052
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 6 quantile
SELECT channel,
       PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY total) AS median_total,
       PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY total) AS p90_total
FROM orders
GROUP BY channel;

-- id: shop-053
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: unanswerable: returns rows of persons
-- shapes: 4 top-n
SELECT customer_id, SUM(total) AS spent
FROM orders
GROUP BY customer_id
ORDER BY spent DESC
LIMIT 10;

-- id: shop-054
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: unanswerable: returns rows of persons
-- shapes: 5 foreign-key-join
SELECT o.order_id, c.email, o.total, o.status
FROM orders o
JOIN customers c ON c.customer_id = o.customer_id
WHERE o.status = 'pending'
ORDER BY o.ordered_at DESC
LIMIT 25;

-- id: shop-055
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: unanswerable: returns a row of one person
-- shapes: ordinary
SELECT order_id, total FROM orders ORDER BY total DESC LIMIT 1;

-- id: shop-056
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: unanswerable: exact extreme
-- shapes: ordinary
SELECT MAX(total) AS largest_order FROM orders;

-- id: shop-057
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: unanswerable: exact extreme
-- shapes: ordinary
SELECT channel, MIN(total), MAX(total), AVG(total) FROM orders GROUP BY channel;

-- id: shop-058
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: unanswerable: names of persons joined into one text
-- shapes: ordinary
SELECT country, STRING_AGG(email, ', ') AS emails FROM customers GROUP BY country;

-- id: shop-059
-- source: dashboard
-- dialect: postgres
-- world: shop
-- label: unanswerable: returns the latest row of persons
-- shapes: 7 interval
SELECT MAX(ordered_at) AS last_order_at FROM orders WHERE channel = 'store';

-- id: saas-001
-- source: dashboard
-- dialect: postgres
-- world: saas
-- label: answerable
-- shapes: 5 foreign-key-join, 7 date-trunc
SELECT DATE_TRUNC('month', i.issued_on)::date AS month,
       SUM(i.amount) AS invoiced,
       SUM(i.amount) FILTER (WHERE i.status = 'paid') AS paid
FROM invoices i
GROUP BY 1
ORDER BY 1;

-- id: saas-002
-- source: dashboard
-- dialect: postgres
-- world: saas
-- label: answerable
-- shapes: 5 foreign-key-join, 3 public-table-keys
SELECT p.tier, COUNT(DISTINCT s.user_id) AS payers, SUM(i.amount) AS billed
FROM subscriptions s
JOIN invoices i ON i.subscription_id = s.subscription_id
JOIN plans p ON p.plan = s.plan
WHERE i.status <> 'void'
GROUP BY p.tier
ORDER BY p.tier;

-- id: saas-003
-- source: dashboard
-- dialect: postgres
-- world: saas
-- label: answerable
-- shapes: 5 public-join, 3 public-table-keys
SELECT a.industry, COUNT(*) AS users, AVG(u.nps) AS nps
FROM users u
LEFT JOIN accounts a ON a.account_id = u.account_id
WHERE u.is_active
GROUP BY a.industry
ORDER BY users DESC;

-- id: saas-004
-- source: dashboard
-- dialect: postgres
-- world: saas
-- label: answerable
-- shapes: 2 left-join-on-filter
SELECT a.industry, COUNT(u.user_id) AS users
FROM users u
LEFT JOIN accounts a ON a.account_id = u.account_id AND a.employees >= 100
GROUP BY a.industry;

-- id: saas-005
-- source: dashboard
-- dialect: postgres
-- world: saas
-- label: answerable
-- shapes: 4 ratio
SELECT platform,
       100.0 * COUNT(*) FILTER (WHERE load_ms > 2000) / COUNT(*) AS slow_pct
FROM events
WHERE occurred_at >= TIMESTAMP '2025-01-01 00:00:00'
GROUP BY platform;

-- id: saas-006
-- source: dashboard
-- dialect: postgres
-- world: saas
-- label: answerable
-- shapes: 6 nps
SELECT ROUND(100.0 * (SUM(CASE WHEN nps >= 9 THEN 1 ELSE 0 END) - SUM(CASE WHEN nps <= 6 THEN 1 ELSE 0 END))
             / NULLIF(COUNT(nps), 0)) AS nps
FROM users;

-- id: saas-007
-- source: dashboard
-- dialect: postgres
-- world: saas
-- label: unanswerable: returns rows of persons
-- shapes: ordinary
SELECT u.user_id, u.created_at, u.role
FROM users u
LEFT JOIN subscriptions s ON s.user_id = u.user_id
WHERE s.user_id IS NULL;

-- id: saas-008
-- source: dashboard
-- dialect: postgres
-- world: saas
-- label: unanswerable: returns rows of persons
-- shapes: 2 select-star
SELECT * FROM events ORDER BY occurred_at DESC LIMIT 100;

-- id: rides-001
-- source: dashboard
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 7 hour-key
SELECT EXTRACT(HOUR FROM started_at) AS hour, COUNT(*) AS trips
FROM trips
GROUP BY 1
ORDER BY 1;

-- id: rides-002
-- source: dashboard
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 5 public-join, 3 public-table-keys
SELECT s.district, COUNT(*) AS departures, AVG(t.distance_km) AS km
FROM trips t
JOIN stations s ON s.station_id = t.start_station
GROUP BY s.district
ORDER BY departures DESC;

-- id: rides-003
-- source: dashboard
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 5 public-join-twice, 3 public-table-keys
SELECT a.district AS origin, b.district AS destination, COUNT(*) AS trips
FROM trips t
JOIN stations a ON a.station_id = t.start_station
JOIN stations b ON b.station_id = t.end_station
GROUP BY a.district, b.district
ORDER BY trips DESC
LIMIT 20;

-- id: rides-004
-- source: dashboard
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 5 public-join, 7 cast-key
SELECT w.condition, COUNT(*) AS trips, AVG(t.duration_min) AS minutes
FROM trips t
JOIN weather w ON w.day = t.started_at::date
GROUP BY w.condition;
