-- id: shop-156
-- source: bigquery
-- dialect: bigquery
-- world: shop
-- label: answerable
-- shapes: 2 backticks
-- plain: SELECT status, COUNT(*) AS n FROM orders GROUP BY status ORDER BY n DESC
SELECT status, COUNT(*) AS n FROM `shop.orders` GROUP BY status ORDER BY n DESC;

-- id: shop-157
-- source: bigquery
-- dialect: bigquery
-- world: shop
-- label: answerable
-- shapes: 2 backticks, 2 three-part-names
-- plain: SELECT o.channel, ROUND(SUM(o.total), 2) AS revenue FROM orders AS o GROUP BY o.channel
SELECT o.channel, ROUND(SUM(o.total), 2) AS revenue
FROM `shop`.`public`.`orders` AS o
GROUP BY o.channel;

-- id: shop-158
-- source: bigquery
-- dialect: bigquery
-- world: shop
-- label: answerable
-- shapes: 2 backticks, 7 date-trunc
-- plain: SELECT
-- plain:   DATE_TRUNC('MONTH', order_date) AS month,
-- plain:   SUM(total) AS revenue
-- plain: FROM "orders"
-- plain: GROUP BY
-- plain:   month
-- plain: ORDER BY
-- plain:   month NULLS FIRST
SELECT DATE_TRUNC(order_date, MONTH) AS month, SUM(total) AS revenue
FROM `orders`
GROUP BY month
ORDER BY month;

-- id: shop-159
-- source: bigquery
-- dialect: bigquery
-- world: shop
-- label: answerable
-- shapes: 7 timestamp-trunc
-- plain: SELECT date_trunc('day', ordered_at) AS day, COUNT(*) AS orders FROM orders
-- plain: WHERE ordered_at >= TIMESTAMP '2025-06-01' AND ordered_at < TIMESTAMP '2025-06-15' GROUP BY 1 ORDER BY 1
SELECT TIMESTAMP_TRUNC(ordered_at, DAY) AS day, COUNT(*) AS orders
FROM orders
WHERE ordered_at >= TIMESTAMP '2025-06-01' AND ordered_at < TIMESTAMP '2025-06-15'
GROUP BY 1
ORDER BY 1;

-- id: shop-160
-- source: bigquery
-- dialect: bigquery
-- world: shop
-- label: answerable
-- shapes: 7 date-sub, 7 current-date
-- plain: SELECT COUNT(DISTINCT customer_id) AS active FROM events
-- plain: WHERE CAST(event_time AS DATE) >= DATE '2025-06-30' - INTERVAL 28 DAY
SELECT COUNT(DISTINCT customer_id) AS active
FROM events
WHERE DATE(event_time) >= DATE_SUB(CURRENT_DATE(), INTERVAL 28 DAY);

-- id: shop-161
-- source: bigquery
-- dialect: bigquery
-- world: shop
-- label: answerable
-- shapes: 7 date-add
-- plain: SELECT COUNT(*) FROM orders WHERE order_date < DATE '2024-04-01'
SELECT COUNT(*) FROM orders WHERE order_date < DATE_ADD(DATE '2024-01-01', INTERVAL 1 QUARTER);

-- id: shop-162
-- source: bigquery
-- dialect: bigquery
-- world: shop
-- label: answerable
-- shapes: 7 date-diff
-- plain: SELECT AVG(datediff('day', order_date, CAST(shipped_at AS DATE))) AS days_to_ship FROM orders
-- plain: WHERE shipped_at IS NOT NULL
SELECT AVG(DATE_DIFF(DATE(shipped_at), order_date, DAY)) AS days_to_ship
FROM orders
WHERE shipped_at IS NOT NULL;

-- id: shop-163
-- source: bigquery
-- dialect: bigquery
-- world: shop
-- label: answerable
-- shapes: 7 timestamp-diff
-- plain: SELECT channel, AVG(datesub('hour', ordered_at, shipped_at)) AS hours FROM orders GROUP BY channel
SELECT channel, AVG(TIMESTAMP_DIFF(shipped_at, ordered_at, HOUR)) AS hours
FROM orders
GROUP BY channel;

-- id: shop-164
-- source: bigquery
-- dialect: bigquery
-- world: shop
-- label: answerable
-- shapes: 7 format-date
-- plain: SELECT strftime(order_date, '%Y-%m') AS month, COUNT(*) AS orders FROM orders GROUP BY month ORDER BY month
SELECT FORMAT_DATE('%Y-%m', order_date) AS month, COUNT(*) AS orders FROM orders GROUP BY month ORDER BY month;

-- id: shop-165
-- source: bigquery
-- dialect: bigquery
-- world: shop
-- label: answerable
-- shapes: 7 format-timestamp
-- plain: SELECT strftime(ordered_at, '%H:00') AS hour, COUNT(*) AS orders FROM orders GROUP BY 1 ORDER BY 1
SELECT FORMAT_TIMESTAMP('%H:00', ordered_at) AS hour, COUNT(*) AS orders FROM orders GROUP BY 1 ORDER BY 1;

-- id: shop-166
-- source: bigquery
-- dialect: bigquery
-- world: shop
-- label: answerable
-- shapes: 7 extract, 7 dayofweek
-- plain: SELECT dayofweek(order_date) + 1 AS dow, SUM(total) AS revenue FROM orders GROUP BY dow ORDER BY dow
SELECT EXTRACT(DAYOFWEEK FROM order_date) AS dow, SUM(total) AS revenue FROM orders GROUP BY dow ORDER BY dow;

-- id: shop-167
-- source: bigquery
-- dialect: bigquery
-- world: shop
-- label: answerable
-- shapes: 7 week-sunday
-- plain: SELECT CAST(date_trunc('week', order_date + 1) AS DATE) - 1 AS week_from_sunday, COUNT(*) AS n FROM orders
-- plain: WHERE order_date BETWEEN '2025-03-02' AND '2025-03-29' GROUP BY 1 ORDER BY 1
SELECT DATE_TRUNC(order_date, WEEK) AS week_from_sunday, COUNT(*) AS n
FROM orders
WHERE order_date BETWEEN '2025-03-02' AND '2025-03-29'
GROUP BY 1
ORDER BY 1;

-- id: shop-168
-- source: bigquery
-- dialect: bigquery
-- world: shop
-- label: answerable
-- shapes: 7 iso-week
-- plain: SELECT isoyear(order_date) AS y, weekofyear(order_date) AS w, COUNT(*) AS n FROM orders GROUP BY y, w ORDER BY y, w
SELECT EXTRACT(ISOYEAR FROM order_date) AS y, EXTRACT(ISOWEEK FROM order_date) AS w, COUNT(*) AS n
FROM orders
GROUP BY y, w
ORDER BY y, w;

-- id: shop-169
-- source: bigquery
-- dialect: bigquery
-- world: shop
-- label: answerable
-- shapes: 6 countif
-- plain: SELECT COUNT(*) FILTER (WHERE status = 'refunded') AS refunds,
-- plain:        COUNT(*) FILTER (WHERE status = 'refunded') / NULLIF(COUNT(*), 0) AS rate FROM orders
SELECT COUNTIF(status = 'refunded') AS refunds, SAFE_DIVIDE(COUNTIF(status = 'refunded'), COUNT(*)) AS rate FROM orders;

-- id: shop-170
-- source: bigquery
-- dialect: bigquery
-- world: shop
-- label: answerable
-- shapes: 6 approx-distinct
-- plain: SELECT COUNT(DISTINCT customer_id) AS visitors FROM events WHERE device = 'mobile'
SELECT APPROX_COUNT_DISTINCT(customer_id) AS visitors FROM events WHERE device = 'mobile';

-- id: shop-171
-- source: bigquery
-- dialect: bigquery
-- world: shop
-- label: answerable
-- shapes: 6 approx-quantiles
-- plain: SELECT quantile_disc(total, 0.5) AS median, quantile_disc(total, 0.95) AS p95 FROM orders
SELECT APPROX_QUANTILES(total, 100)[OFFSET(50)] AS median, APPROX_QUANTILES(total, 100)[OFFSET(95)] AS p95 FROM orders;

-- id: shop-172
-- source: bigquery
-- dialect: bigquery
-- world: shop
-- label: answerable
-- shapes: 6 approx-quantiles
-- plain: SELECT channel, quantile_disc(total, [0.0, 0.25, 0.5, 0.75, 1.0]) AS quartiles FROM orders GROUP BY channel
SELECT channel, APPROX_QUANTILES(total, 4) AS quartiles FROM orders GROUP BY channel;

-- id: shop-173
-- source: bigquery
-- dialect: bigquery
-- world: shop
-- label: answerable
-- shapes: 6 approx-top
-- plain: SELECT city, COUNT(*) AS n FROM customers GROUP BY city ORDER BY n DESC LIMIT 3
SELECT APPROX_TOP_COUNT(city, 3) AS top_cities FROM customers;

-- id: shop-174
-- source: bigquery
-- dialect: bigquery
-- world: shop
-- label: answerable
-- shapes: 7 safe-cast
-- plain: SELECT year(signup_date) AS y, COUNT(*) AS n FROM customers GROUP BY y ORDER BY y
SELECT SAFE_CAST(FORMAT_DATE('%Y', signup_date) AS INT64) AS y, COUNT(*) AS n FROM customers GROUP BY y ORDER BY y;

-- id: shop-175
-- source: bigquery
-- dialect: bigquery
-- world: shop
-- label: answerable
-- shapes: 7 cast-types
-- plain: SELECT CAST(round(total) AS BIGINT) AS rounded, COUNT(*) AS n FROM orders WHERE total < 10 GROUP BY 1 ORDER BY 1
SELECT CAST(total AS INT64) AS rounded, COUNT(*) AS n FROM orders WHERE total < 10 GROUP BY rounded ORDER BY rounded;

-- id: shop-176
-- source: bigquery
-- dialect: bigquery
-- world: shop
-- label: answerable
-- shapes: 7 if, 7 ifnull
-- plain: SELECT CASE WHEN age >= 65 THEN 'senior' ELSE 'other' END AS grp, AVG(loyalty_points) AS points
-- plain: FROM customers GROUP BY grp
SELECT IF(age >= 65, 'senior', 'other') AS grp, AVG(IFNULL(loyalty_points, 0)) AS points FROM customers GROUP BY grp;

-- id: shop-177
-- source: bigquery
-- dialect: bigquery
-- world: shop
-- label: answerable
-- shapes: 7 string-functions
-- plain: SELECT COUNT(*) FROM customers WHERE suffix(lower(email), '.org') AND starts_with(email, 'c')
SELECT COUNT(*) FROM customers WHERE ENDS_WITH(LOWER(email), '.org') AND STARTS_WITH(email, 'c');

-- id: shop-178
-- source: bigquery
-- dialect: bigquery
-- world: shop
-- label: answerable
-- shapes: 7 regexp-contains
-- plain: SELECT COUNT(*) FROM customers WHERE regexp_matches(email, '@(gmail|outlook)\.com$')
SELECT COUNT(*) FROM customers WHERE REGEXP_CONTAINS(email, r'@(gmail|outlook)\.com$');

-- id: shop-179
-- source: bigquery
-- dialect: bigquery
-- world: shop
-- label: answerable
-- shapes: 7 regexp-extract, 3 private-keys
-- plain: SELECT regexp_extract(lower(email), '@(.+)$', 1) AS domain, COUNT(*) AS n FROM customers GROUP BY domain ORDER BY n DESC
SELECT REGEXP_EXTRACT(LOWER(email), r'@(.+)$') AS domain, COUNT(*) AS n FROM customers GROUP BY domain ORDER BY n DESC;

-- id: shop-180
-- source: bigquery
-- dialect: bigquery
-- world: shop
-- label: answerable
-- shapes: 7 split
-- plain: SELECT split_part(email, '@', 2) AS domain, COUNT(*) AS n FROM customers GROUP BY 1
SELECT SPLIT(email, '@')[SAFE_OFFSET(1)] AS domain, COUNT(*) AS n FROM customers GROUP BY 1;

-- id: shop-181
-- source: bigquery
-- dialect: bigquery
-- world: shop
-- label: answerable
-- shapes: 4 qualify
SELECT country, city, COUNT(*) AS n
FROM customers
WHERE TRUE
GROUP BY country, city
QUALIFY ROW_NUMBER() OVER (PARTITION BY country ORDER BY n DESC) <= 2;

-- id: shop-182
-- source: bigquery
-- dialect: bigquery
-- world: shop
-- label: answerable
-- shapes: 4 cte, 4 window
-- plain: WITH w AS (SELECT date_trunc('week', order_date) AS wk, SUM(total) AS revenue FROM orders GROUP BY wk)
-- plain: SELECT wk, revenue, (revenue - LAG(revenue) OVER (ORDER BY wk)) / NULLIF(LAG(revenue) OVER (ORDER BY wk), 0) AS growth
-- plain: FROM w ORDER BY wk
WITH w AS (
  SELECT DATE_TRUNC(order_date, ISOWEEK) AS wk, SUM(total) AS revenue FROM orders GROUP BY wk
)
SELECT wk, revenue, SAFE_DIVIDE(revenue - LAG(revenue) OVER (ORDER BY wk), LAG(revenue) OVER (ORDER BY wk)) AS growth
FROM w
ORDER BY wk;

-- id: shop-183
-- source: bigquery
-- dialect: bigquery
-- world: shop
-- label: answerable
-- shapes: 3 public-key-list, 7 generate-date-array
-- plain: SELECT d.day AS day, COUNT(o.order_id) AS orders
-- plain: FROM (SELECT day FROM calendar WHERE day BETWEEN '2025-06-01' AND '2025-06-07') d
-- plain: LEFT JOIN orders o ON o.order_date = d.day GROUP BY d.day ORDER BY d.day
SELECT d AS day, COUNT(o.order_id) AS orders
FROM UNNEST(GENERATE_DATE_ARRAY('2025-06-01', '2025-06-07')) AS d
LEFT JOIN orders o ON o.order_date = d
GROUP BY d
ORDER BY d;

-- id: shop-184
-- source: bigquery
-- dialect: bigquery
-- world: shop
-- label: answerable
-- shapes: 2 select-except, 8 zero-row-probe
-- plain: SELECT * EXCLUDE (email) FROM customers LIMIT 0
SELECT * EXCEPT (email) FROM customers LIMIT 0;

-- id: shop-185
-- source: bigquery
-- dialect: bigquery
-- world: shop
-- label: answerable
-- shapes: 6 first-order
-- plain: SELECT
-- plain:   DATE_TRUNC('QUARTER', first_order) AS cohort,
-- plain:   COUNT(*) AS customers
-- plain: FROM (
-- plain:   SELECT
-- plain:     customer_id,
-- plain:     MIN(order_date) AS first_order
-- plain:   FROM orders
-- plain:   GROUP BY
-- plain:     customer_id
-- plain: )
-- plain: GROUP BY
-- plain:   cohort
-- plain: ORDER BY
-- plain:   cohort NULLS FIRST
SELECT DATE_TRUNC(first_order, QUARTER) AS cohort, COUNT(*) AS customers
FROM (SELECT customer_id, MIN(order_date) AS first_order FROM orders GROUP BY customer_id)
GROUP BY cohort
ORDER BY cohort;

-- id: shop-186
-- source: bigquery
-- dialect: bigquery
-- world: shop
-- label: unanswerable: returns rows of persons
-- shapes: 2 backticks, 2 select-except
SELECT * EXCEPT (city) FROM `shop.customers` WHERE newsletter LIMIT 1000;

-- id: shop-187
-- source: bigquery
-- dialect: bigquery
-- world: shop
-- label: unanswerable: collects values of persons
-- shapes: ordinary
SELECT country, ARRAY_AGG(email ORDER BY signup_date LIMIT 5) AS newest FROM customers GROUP BY country;

-- id: shop-188
-- source: bigquery
-- dialect: bigquery
-- world: shop
-- label: unanswerable: collects values of persons
-- shapes: ordinary
SELECT customer_id, ARRAY_AGG(STRUCT(order_id, total)) AS orders FROM orders GROUP BY customer_id;

-- id: shop-189
-- source: bigquery
-- dialect: bigquery
-- world: shop
-- label: unanswerable: a value of some person's row
-- shapes: ordinary
SELECT channel, ANY_VALUE(coupon HAVING MAX total) AS coupon_of_largest FROM orders GROUP BY channel;

-- id: shop-190
-- source: bigquery
-- dialect: bigquery
-- world: shop
-- label: unanswerable: returns rows of persons
-- shapes: 6 sample
SELECT * FROM orders TABLESAMPLE SYSTEM (5 PERCENT);

-- id: shop-191
-- source: bigquery
-- dialect: bigquery
-- world: shop
-- label: unanswerable: exact extreme
-- shapes: 7 extract
SELECT EXTRACT(YEAR FROM order_date) AS y, MAX(total) AS largest, MIN(total) AS smallest FROM orders GROUP BY y;

-- id: saas-033
-- source: bigquery
-- dialect: bigquery
-- world: saas
-- label: answerable
-- shapes: 6 funnel
-- plain: SELECT COUNT(DISTINCT CASE WHEN name = 'login' THEN user_id END) AS logged_in,
-- plain:        COUNT(DISTINCT CASE WHEN name = 'create_project' THEN user_id END) AS created,
-- plain:        COUNT(DISTINCT CASE WHEN name = 'invite' THEN user_id END) AS invited FROM events
SELECT COUNT(DISTINCT IF(name = 'login', user_id, NULL)) AS logged_in,
       COUNT(DISTINCT IF(name = 'create_project', user_id, NULL)) AS created,
       COUNT(DISTINCT IF(name = 'invite', user_id, NULL)) AS invited
FROM events;

-- id: saas-034
-- source: bigquery
-- dialect: bigquery
-- world: saas
-- label: answerable
-- shapes: 6 retention, 7 date-diff
-- plain: WITH firsts AS (SELECT user_id, MIN(CAST(occurred_at AS DATE)) AS d0 FROM events GROUP BY user_id)
-- plain: SELECT datediff('month', f.d0, CAST(e.occurred_at AS DATE)) AS month_no, COUNT(DISTINCT e.user_id) AS users
-- plain: FROM events e JOIN firsts f USING (user_id) GROUP BY month_no ORDER BY month_no
WITH firsts AS (
  SELECT user_id, MIN(DATE(occurred_at)) AS d0 FROM events GROUP BY user_id
)
SELECT DATE_DIFF(DATE(e.occurred_at), f.d0, MONTH) AS month_no, COUNT(DISTINCT e.user_id) AS users
FROM events e JOIN firsts f USING (user_id)
GROUP BY month_no
ORDER BY month_no;

-- id: saas-035
-- source: bigquery
-- dialect: bigquery
-- world: saas
-- label: answerable
-- shapes: 7 datetime-trunc, 2 backticks
-- plain: SELECT date_trunc('hour', occurred_at) AS hour, COUNT(*) AS events FROM events
-- plain: WHERE occurred_at BETWEEN '2025-06-30 00:00:00' AND '2025-06-30 23:59:59' GROUP BY hour ORDER BY hour
SELECT DATETIME_TRUNC(occurred_at, HOUR) AS hour, COUNT(*) AS events
FROM `saas.events`
WHERE occurred_at BETWEEN '2025-06-30 00:00:00' AND '2025-06-30 23:59:59'
GROUP BY hour
ORDER BY hour;

-- id: saas-036
-- source: bigquery
-- dialect: bigquery
-- world: saas
-- label: answerable
-- shapes: 6 per-unit-subquery, 6 quantile
-- plain: SELECT quantile_disc(n, 0.5) AS median_events FROM (SELECT user_id, COUNT(*) AS n FROM events GROUP BY user_id)
SELECT APPROX_QUANTILES(n, 2)[OFFSET(1)] AS median_events
FROM (SELECT user_id, COUNT(*) AS n FROM events GROUP BY user_id);

-- id: saas-037
-- source: bigquery
-- dialect: bigquery
-- world: saas
-- label: answerable
-- shapes: 7 unix-seconds
-- plain: SELECT AVG(epoch(paid_at) - epoch(CAST(issued_on AS TIMESTAMP))) / 86400 AS days_to_pay FROM invoices
-- plain: WHERE paid_at IS NOT NULL
SELECT AVG(UNIX_SECONDS(i.paid_at) - UNIX_SECONDS(TIMESTAMP(i.issued_on))) / 86400 AS days_to_pay
FROM invoices i
WHERE i.paid_at IS NOT NULL;

-- id: saas-038
-- source: bigquery
-- dialect: bigquery
-- world: saas
-- label: answerable
-- shapes: 6 logical-or
-- plain: SELECT COUNT(*) FILTER (WHERE upgraded) AS upgraders
-- plain: FROM (SELECT user_id, BOOL_OR(name = 'upgrade_click') AS upgraded FROM events GROUP BY user_id)
SELECT COUNTIF(upgraded) AS upgraders
FROM (SELECT user_id, LOGICAL_OR(name = 'upgrade_click') AS upgraded FROM events GROUP BY user_id);

-- id: saas-039
-- source: bigquery
-- dialect: bigquery
-- world: saas
-- label: unanswerable: whether any one person's row exists
-- shapes: 6 logical-or
SELECT LOGICAL_OR(load_ms > 8990) AS any_timeout FROM events;

-- id: saas-040
-- source: bigquery
-- dialect: bigquery
-- world: saas
-- label: unanswerable: a person's last value, row by row
-- shapes: 4 window
SELECT user_id, LAST_VALUE(plan) OVER (PARTITION BY user_id ORDER BY started_on) AS current_plan FROM subscriptions;

-- id: saas-041
-- source: bigquery
-- dialect: bigquery
-- world: saas
-- label: unanswerable: changes data
-- shapes: ddl-dml
CREATE OR REPLACE TABLE saas.snapshot PARTITION BY DATE(created_at) AS SELECT * FROM users;

-- id: rides-069
-- source: bigquery
-- dialect: bigquery
-- world: rides
-- label: answerable
-- shapes: 7 parse-date
-- plain: SELECT COUNT(*) FROM trips WHERE CAST(started_at AS DATE) >= DATE '2025-01-01'
SELECT COUNT(*) FROM trips WHERE DATE(started_at) >= PARSE_DATE('%Y%m%d', '20250101');

-- id: rides-070
-- source: bigquery
-- dialect: bigquery
-- world: rides
-- label: answerable
-- shapes: 6 range-bucket
-- plain: SELECT CASE WHEN duration_min < 5 THEN 0 WHEN duration_min < 15 THEN 1 WHEN duration_min < 30 THEN 2
-- plain:        WHEN duration_min < 60 THEN 3 ELSE 4 END AS bucket, COUNT(*) AS trips
-- plain: FROM trips WHERE duration_min IS NOT NULL GROUP BY bucket ORDER BY bucket
SELECT RANGE_BUCKET(duration_min, [5, 15, 30, 60]) AS bucket, COUNT(*) AS trips
FROM trips
WHERE duration_min IS NOT NULL
GROUP BY bucket
ORDER BY bucket;

-- id: rides-071
-- source: bigquery
-- dialect: bigquery
-- world: rides
-- label: answerable
-- shapes: 6 correlation, 2 backticks
-- plain: SELECT CORR(w.temp_c, t.distance_km) AS r FROM trips t JOIN weather w ON w.day = CAST(t.started_at AS DATE)
SELECT CORR(w.temp_c, t.distance_km) AS r
FROM `rides.trips` t JOIN `rides.weather` w ON w.day = DATE(t.started_at);

-- id: rides-072
-- source: bigquery
-- dialect: bigquery
-- world: rides
-- label: answerable
-- shapes: 7 div, 7 mod
-- plain: SELECT hour(started_at) // 6 AS part_of_day, COUNT(*) AS trips,
-- plain:        COUNT(*) FILTER (WHERE start_station % 2 = 0) AS even_stations FROM trips GROUP BY 1 ORDER BY 1
SELECT DIV(EXTRACT(HOUR FROM started_at), 6) AS part_of_day, COUNT(*) AS trips,
       COUNTIF(MOD(start_station, 2) = 0) AS even_stations
FROM trips
GROUP BY part_of_day
ORDER BY part_of_day;

-- id: rides-073
-- source: bigquery
-- dialect: bigquery
-- world: rides
-- label: answerable
-- shapes: 7 log
-- plain: SELECT AVG(ln(fare)) AS natural_log, AVG(log2(fare)) AS log2 FROM trips WHERE fare >= 1
SELECT AVG(LOG(fare)) AS natural_log, AVG(LOG(fare, 2)) AS log2 FROM trips WHERE fare >= 1;
