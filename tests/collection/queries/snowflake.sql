-- id: shop-117
-- source: snowflake
-- dialect: snowflake
-- world: shop
-- label: answerable
-- shapes: 2 three-part-names
SELECT STATUS, COUNT(*) AS N FROM SHOP.PUBLIC.ORDERS GROUP BY STATUS ORDER BY N DESC;

-- id: shop-118
-- source: snowflake
-- dialect: snowflake
-- world: shop
-- label: answerable
-- shapes: 2 three-part-names, 7 date-trunc
SELECT DATE_TRUNC('MONTH', o.ORDERED_AT) AS MONTH, SUM(o.TOTAL) AS REVENUE
FROM "SHOP"."PUBLIC"."ORDERS" o
GROUP BY 1
ORDER BY 1;

-- id: shop-119
-- source: snowflake
-- dialect: snowflake
-- world: shop
-- label: answerable
-- shapes: 7 dateadd, 7 current-date
-- plain: SELECT COUNT(*) FROM orders WHERE order_date >= DATE '2025-06-30' - INTERVAL 30 DAY
SELECT COUNT(*) FROM orders WHERE order_date >= DATEADD(day, -30, CURRENT_DATE());

-- id: shop-120
-- source: snowflake
-- dialect: snowflake
-- world: shop
-- label: answerable
-- shapes: 7 datediff
SELECT AVG(DATEDIFF('day', c.signup_date, o.order_date)) AS days_since_signup
FROM orders o JOIN customers c ON c.customer_id = o.customer_id;

-- id: shop-121
-- source: snowflake
-- dialect: snowflake
-- world: shop
-- label: answerable
-- shapes: 7 datediff
-- plain: SELECT channel, AVG(datediff('hour', ordered_at, shipped_at)) AS hours_to_ship FROM orders
-- plain: WHERE shipped_at IS NOT NULL GROUP BY channel
SELECT channel, AVG(DATEDIFF(hour, ordered_at, shipped_at)) AS hours_to_ship
FROM orders
WHERE shipped_at IS NOT NULL
GROUP BY channel;

-- id: shop-122
-- source: snowflake
-- dialect: snowflake
-- world: shop
-- label: answerable
-- shapes: 4 qualify, 5 foreign-key-join
SELECT p.category, p.name, SUM(l.quantity) AS units
FROM lines l
JOIN products p ON p.product_id = l.product_id
GROUP BY p.category, p.name
QUALIFY ROW_NUMBER() OVER (PARTITION BY p.category ORDER BY units DESC) <= 2;

-- id: shop-123
-- source: snowflake
-- dialect: snowflake
-- world: shop
-- label: answerable
-- shapes: 6 first-order, 4 qualify
WITH firsts AS (
  SELECT customer_id, channel, total
  FROM orders
  QUALIFY ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY ordered_at, order_id) = 1
)
SELECT channel, COUNT(*) AS customers, AVG(total) AS first_value FROM firsts GROUP BY channel;

-- id: shop-124
-- source: snowflake
-- dialect: snowflake
-- world: shop
-- label: answerable
-- shapes: 7 iff
-- plain: SELECT
-- plain:   SUM(CASE WHEN status = 'refunded' THEN total ELSE 0 END) AS refunded,
-- plain:   COUNT_IF((
-- plain:     status = 'refunded'
-- plain:   ) IS TRUE) AS refunds
-- plain: FROM orders
SELECT SUM(IFF(status = 'refunded', total, 0)) AS refunded, COUNT_IF(status = 'refunded') AS refunds FROM orders;

-- id: shop-125
-- source: snowflake
-- dialect: snowflake
-- world: shop
-- label: answerable
-- shapes: 7 zeroifnull, 7 nvl
-- plain: SELECT country, SUM(COALESCE(age, 0)) AS ages, COUNT(*) AS n FROM customers GROUP BY country
SELECT country, SUM(ZEROIFNULL(age)) AS ages, COUNT(NVL(segment, 'none')) AS n FROM customers GROUP BY country;

-- id: shop-126
-- source: snowflake
-- dialect: snowflake
-- world: shop
-- label: answerable
-- shapes: 7 div0
-- plain: SELECT channel, SUM(CASE WHEN status = 'cancelled' THEN 1 ELSE 0 END) / COUNT(*) AS cancel_rate
-- plain: FROM orders GROUP BY channel
SELECT channel, DIV0(SUM(IFF(status = 'cancelled', 1, 0)), COUNT(*)) AS cancel_rate FROM orders GROUP BY channel;

-- id: shop-127
-- source: snowflake
-- dialect: snowflake
-- world: shop
-- label: answerable
-- shapes: 4 ratio-to-report
-- plain: SELECT channel, SUM(total) AS revenue, SUM(total) / SUM(SUM(total)) OVER () AS share FROM orders GROUP BY channel
SELECT channel, SUM(total) AS revenue, RATIO_TO_REPORT(SUM(total)) OVER () AS share FROM orders GROUP BY channel;

-- id: shop-128
-- source: snowflake
-- dialect: snowflake
-- world: shop
-- label: answerable
-- shapes: 7 to-char
-- plain: SELECT strftime(order_date, '%Y-%m') AS ym, COUNT(DISTINCT customer_id) AS buyers FROM orders GROUP BY 1 ORDER BY 1
SELECT TO_CHAR(order_date, 'YYYY-MM') AS ym, COUNT(DISTINCT customer_id) AS buyers FROM orders GROUP BY 1 ORDER BY 1;

-- id: shop-129
-- source: snowflake
-- dialect: snowflake
-- world: shop
-- label: answerable
-- shapes: 7 to-varchar
-- plain: SELECT strftime(ordered_at, '%Y-%m-%d') AS d, SUM(total) AS revenue FROM orders
-- plain: WHERE ordered_at BETWEEN '2025-06-01' AND '2025-06-07 23:59:59' GROUP BY d ORDER BY d
SELECT TO_VARCHAR(ordered_at, 'YYYY-MM-DD') AS d, SUM(total) AS revenue
FROM orders
WHERE ordered_at BETWEEN '2025-06-01' AND '2025-06-07 23:59:59'
GROUP BY d
ORDER BY d;

-- id: shop-130
-- source: snowflake
-- dialect: snowflake
-- world: shop
-- label: answerable
-- shapes: 7 to-date
-- plain: SELECT COUNT(*) FROM orders WHERE ordered_at::DATE = DATE '2025-06-30'
SELECT COUNT(*) FROM orders WHERE ordered_at::DATE = TO_DATE('2025-06-30');

-- id: shop-131
-- source: snowflake
-- dialect: snowflake
-- world: shop
-- label: answerable
-- shapes: 7 dayname
-- plain: SELECT strftime(order_date, '%a') AS weekday, COUNT(*) AS orders FROM orders GROUP BY 1
SELECT DAYNAME(order_date) AS weekday, COUNT(*) AS orders FROM orders GROUP BY DAYNAME(order_date);

-- id: shop-132
-- source: snowflake
-- dialect: snowflake
-- world: shop
-- label: answerable
-- shapes: 7 dayofweekiso
-- plain: SELECT isodow(order_date) AS dow, SUM(total) AS revenue FROM orders GROUP BY 1 ORDER BY 1
SELECT DAYOFWEEKISO(order_date) AS dow, SUM(total) AS revenue FROM orders GROUP BY 1 ORDER BY 1;

-- id: shop-133
-- source: snowflake
-- dialect: snowflake
-- world: shop
-- label: answerable
-- shapes: 7 monthname
-- plain: SELECT strftime(order_date, '%b') AS m, COUNT(*) AS orders FROM orders WHERE YEAR(order_date) = 2024 GROUP BY 1
SELECT MONTHNAME(order_date) AS m, COUNT(*) AS orders FROM orders WHERE YEAR(order_date) = 2024 GROUP BY 1;

-- id: shop-134
-- source: snowflake
-- dialect: snowflake
-- world: shop
-- label: answerable
-- shapes: 6 approx-distinct
-- plain: SELECT COUNT(DISTINCT session_id) AS sessions, COUNT(DISTINCT page) AS pages FROM events
SELECT APPROX_COUNT_DISTINCT(session_id) AS sessions, APPROX_COUNT_DISTINCT(page) AS pages FROM events;

-- id: shop-135
-- source: snowflake
-- dialect: snowflake
-- world: shop
-- label: answerable
-- shapes: 6 approx-quantile
-- plain: SELECT channel, quantile_cont(total, 0.75) AS p75 FROM orders GROUP BY channel
SELECT channel, APPROX_PERCENTILE(total, 0.75) AS p75 FROM orders GROUP BY channel;

-- id: shop-136
-- source: snowflake
-- dialect: snowflake
-- world: shop
-- label: answerable
-- shapes: 6 quantile
SELECT MEDIAN(age) AS median_age, PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY age) AS q1 FROM customers;

-- id: shop-137
-- source: snowflake
-- dialect: snowflake
-- world: shop
-- label: answerable
-- shapes: 6 hll
-- plain: SELECT event_type, COUNT(DISTINCT customer_id) AS users FROM events GROUP BY event_type
SELECT event_type, HLL(customer_id) AS users FROM events GROUP BY event_type;

-- id: shop-138
-- source: snowflake
-- dialect: snowflake
-- world: shop
-- label: answerable
-- shapes: 6 conditional-event, 6 sessions
-- plain: SELECT COUNT(*) AS sessions FROM (SELECT DISTINCT customer_id, s FROM (
-- plain:   SELECT customer_id, SUM(CASE WHEN datediff('minute', prev, event_time) > 30 THEN 1 ELSE 0 END)
-- plain:          OVER (PARTITION BY customer_id ORDER BY event_time) AS s
-- plain:   FROM (SELECT customer_id, event_time,
-- plain:                LAG(event_time) OVER (PARTITION BY customer_id ORDER BY event_time) AS prev FROM events)))
SELECT COUNT(*) AS sessions
FROM (
  SELECT DISTINCT customer_id,
         CONDITIONAL_TRUE_EVENT(DATEDIFF(minute, prev, event_time) > 30) OVER (PARTITION BY customer_id ORDER BY event_time) AS s
  FROM (SELECT customer_id, event_time,
               LAG(event_time) OVER (PARTITION BY customer_id ORDER BY event_time) AS prev FROM events)
);

-- id: shop-139
-- source: snowflake
-- dialect: snowflake
-- world: shop
-- label: answerable
-- shapes: 7 like-any
-- plain: SELECT COUNT(*) FROM customers WHERE email LIKE '%@gmail.com' OR email LIKE '%@outlook.com'
SELECT COUNT(*) FROM customers WHERE email LIKE ANY ('%@gmail.com', '%@outlook.com');

-- id: shop-140
-- source: snowflake
-- dialect: snowflake
-- world: shop
-- label: answerable
-- shapes: 7 contains
-- plain: SELECT COUNT(*) FROM customers WHERE contains(lower(email), 'example') OR starts_with(email, 'c1')
SELECT COUNT(*) FROM customers WHERE CONTAINS(LOWER(email), 'example') OR STARTSWITH(email, 'c1');

-- id: shop-141
-- source: snowflake
-- dialect: snowflake
-- world: shop
-- label: answerable
-- shapes: 7 regexp-like
-- plain: SELECT COUNT(*) FROM customers WHERE regexp_full_match(email, 'c[0-9]{2}@.*')
SELECT COUNT(*) FROM customers WHERE REGEXP_LIKE(email, 'c[0-9]{2}@.*');

-- id: shop-142
-- source: snowflake
-- dialect: snowflake
-- world: shop
-- label: answerable
-- shapes: 7 split-part
SELECT SPLIT_PART(email, '@', -1) AS domain, COUNT(*) FROM customers GROUP BY 1 ORDER BY 2 DESC;

-- id: shop-143
-- source: snowflake
-- dialect: snowflake
-- world: shop
-- label: answerable
-- shapes: 2 group-by-all
SELECT country, newsletter, COUNT(*) AS n, AVG(loyalty_points) AS points FROM customers GROUP BY ALL;

-- id: shop-144
-- source: snowflake
-- dialect: snowflake
-- world: shop
-- label: answerable
-- shapes: 4 top-n
-- plain: SELECT channel, SUM(total) AS revenue FROM orders GROUP BY channel ORDER BY revenue DESC LIMIT 3
SELECT TOP 3 channel, SUM(total) AS revenue FROM orders GROUP BY channel ORDER BY revenue DESC;

-- id: shop-145
-- source: snowflake
-- dialect: snowflake
-- world: shop
-- label: answerable
-- shapes: 7 decode
-- plain: SELECT CASE WHEN channel IN ('web', 'app') THEN 'online' ELSE 'offline' END AS kind, COUNT(*) AS n
-- plain: FROM orders GROUP BY kind
SELECT DECODE(channel, 'web', 'online', 'app', 'online', 'offline') AS kind, COUNT(*) AS n FROM orders GROUP BY kind;

-- id: shop-146
-- source: snowflake
-- dialect: snowflake
-- world: shop
-- label: answerable
-- shapes: 7 last-day
SELECT LAST_DAY(order_date) AS month_end, SUM(total) AS revenue FROM orders GROUP BY 1 ORDER BY 1;

-- id: shop-147
-- source: snowflake
-- dialect: snowflake
-- world: shop
-- label: answerable
-- shapes: 7 months-between
-- plain: SELECT AVG(n) AS mean_months FROM (
-- plain:   SELECT customer_id, CASE WHEN day(b) = day(a) OR (b = last_day(b) AND a = last_day(a))
-- plain:     THEN (year(b) - year(a)) * 12 + month(b) - month(a)
-- plain:     ELSE (year(b) - year(a)) * 12 + month(b) - month(a) + (day(b) - day(a)) / 31.0 END AS n
-- plain:   FROM (SELECT customer_id, MAX(order_date) AS b, MIN(order_date) AS a FROM orders GROUP BY customer_id))
SELECT AVG(n) AS mean_months
FROM (SELECT customer_id, MONTHS_BETWEEN(MAX(order_date), MIN(order_date)) AS n FROM orders GROUP BY customer_id);

-- id: shop-148
-- source: snowflake
-- dialect: snowflake
-- world: shop
-- label: answerable
-- shapes: 4 pivot
-- plain: SELECT channel, SUM(total) FILTER (WHERE status = 'paid') AS paid,
-- plain:        SUM(total) FILTER (WHERE status = 'shipped') AS shipped,
-- plain:        SUM(total) FILTER (WHERE status = 'delivered') AS delivered
-- plain: FROM orders GROUP BY channel ORDER BY channel
SELECT * FROM (SELECT channel, status, total FROM orders)
PIVOT (SUM(total) FOR status IN ('paid', 'shipped', 'delivered')) AS p
ORDER BY channel;

-- id: shop-149
-- source: snowflake
-- dialect: snowflake
-- world: shop
-- label: unanswerable: returns rows of persons
-- shapes: 2 three-part-names
SELECT * FROM SHOP.PUBLIC.CUSTOMERS LIMIT 10;

-- id: shop-150
-- source: snowflake
-- dialect: snowflake
-- world: shop
-- label: unanswerable: returns rows of persons
-- shapes: 6 sample
SELECT order_id, total FROM orders SAMPLE (10 ROWS);

-- id: shop-151
-- source: snowflake
-- dialect: snowflake
-- world: shop
-- label: unanswerable: collects values of persons
-- shapes: ordinary
SELECT channel, LISTAGG(DISTINCT email, ';') FROM orders o JOIN customers c ON c.customer_id = o.customer_id GROUP BY channel;

-- id: shop-152
-- source: snowflake
-- dialect: snowflake
-- world: shop
-- label: unanswerable: a value of some person's row
-- shapes: ordinary
SELECT country, ANY_VALUE(email) AS example FROM customers GROUP BY country;

-- id: shop-153
-- source: snowflake
-- dialect: snowflake
-- world: shop
-- label: unanswerable: the row with an exact extreme
-- shapes: 4 max-by
SELECT MAX_BY(customer_id, total) AS biggest_spender FROM orders;

-- id: shop-154
-- source: snowflake
-- dialect: snowflake
-- world: shop
-- label: unanswerable: changes data
-- shapes: ddl-dml
CREATE OR REPLACE TRANSIENT TABLE analytics.big AS SELECT * FROM orders;

-- id: shop-155
-- source: snowflake
-- dialect: snowflake
-- world: shop
-- label: unanswerable: changes data
-- shapes: ddl-dml
MERGE INTO customers t USING (SELECT 1 AS id) s ON t.customer_id = s.id WHEN MATCHED THEN UPDATE SET newsletter = FALSE;

-- id: saas-024
-- source: snowflake
-- dialect: snowflake
-- world: saas
-- label: answerable
-- shapes: 7 to-timestamp, 7 dateadd
-- plain: SELECT platform, COUNT(*) AS events FROM events
-- plain: WHERE occurred_at >= TIMESTAMP '2025-06-01' AND occurred_at < TIMESTAMP '2025-07-01' GROUP BY platform
SELECT platform, COUNT(*) AS events
FROM events
WHERE occurred_at >= TO_TIMESTAMP_NTZ('2025-06-01 00:00:00')
  AND occurred_at < DATEADD('month', 1, TO_TIMESTAMP_NTZ('2025-06-01 00:00:00'))
GROUP BY platform;

-- id: saas-025
-- source: snowflake
-- dialect: snowflake
-- world: saas
-- label: answerable
-- shapes: 7 time-slice
-- plain: SELECT date_trunc('week', occurred_at) AS week, COUNT(*) AS n FROM events
-- plain: WHERE occurred_at >= '2025-05-05' AND occurred_at < '2025-06-02' GROUP BY week ORDER BY week
SELECT TIME_SLICE(occurred_at, 1, 'WEEK') AS week, COUNT(*) AS n
FROM events
WHERE occurred_at >= '2025-05-05' AND occurred_at < '2025-06-02'
GROUP BY week
ORDER BY week;

-- id: saas-026
-- source: snowflake
-- dialect: snowflake
-- world: saas
-- label: answerable
-- shapes: 6 churn, 7 datediff
-- plain: SELECT plan, AVG(datediff('month', started_on, COALESCE(ended_on, DATE '2025-06-30'))) AS months
-- plain: FROM subscriptions GROUP BY plan ORDER BY plan
SELECT plan, AVG(DATEDIFF(month, started_on, COALESCE(ended_on, '2025-06-30'::DATE))) AS months
FROM subscriptions
GROUP BY plan
ORDER BY plan;

-- id: saas-027
-- source: snowflake
-- dialect: snowflake
-- world: saas
-- label: answerable
-- shapes: 7 try-to
-- plain: SELECT year(started_on) AS y, SUM(mrr) AS mrr FROM subscriptions GROUP BY y ORDER BY y
SELECT TRY_TO_NUMBER(TO_VARCHAR(started_on, 'YYYY')) AS y, SUM(mrr) AS mrr FROM subscriptions GROUP BY y ORDER BY y;

-- id: saas-028
-- source: snowflake
-- dialect: snowflake
-- world: saas
-- label: answerable
-- shapes: 5 foreign-key-join, 2 using
SELECT s.plan, i.currency, SUM(i.amount) AS billed, COUNT(DISTINCT s.user_id) AS payers
FROM invoices i JOIN subscriptions s USING (subscription_id)
WHERE i.status = 'paid'
GROUP BY 1, 2
HAVING COUNT(*) > 5
ORDER BY billed DESC NULLS LAST;

-- id: saas-029
-- source: snowflake
-- dialect: snowflake
-- world: saas
-- label: answerable
-- shapes: 6 boolean-aggregate
-- plain: SELECT
-- plain:   role,
-- plain:   AVG(CASE WHEN is_active THEN 1 ELSE 0 END) AS active_share,
-- plain:   COUNT_IF((
-- plain:     NOT is_active
-- plain:   ) IS TRUE) AS inactive
-- plain: FROM users
-- plain: GROUP BY
-- plain:   role
SELECT role, AVG(IFF(is_active, 1, 0)) AS active_share, COUNT_IF(NOT is_active) AS inactive FROM users GROUP BY role;

-- id: saas-030
-- source: snowflake
-- dialect: snowflake
-- world: saas
-- label: answerable
-- shapes: 7 week-start
SELECT DATE_TRUNC('WEEK', created_at)::DATE AS wk, COUNT(*) AS signups FROM users GROUP BY 1 ORDER BY 1 LIMIT 8;

-- id: saas-031
-- source: snowflake
-- dialect: snowflake
-- world: saas
-- label: unanswerable: returns rows of persons
-- shapes: 4 qualify
SELECT user_id, plan, started_on
FROM subscriptions
QUALIFY ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY started_on DESC) = 1;

-- id: saas-032
-- source: snowflake
-- dialect: snowflake
-- world: saas
-- label: unanswerable: exact extreme
-- shapes: ordinary
SELECT platform, MAX(load_ms) FROM events GROUP BY platform;

-- id: hospital-001
-- source: snowflake
-- dialect: snowflake
-- world: hospital
-- label: answerable
-- shapes: 7 iff, 7 datediff
-- plain: SELECT CASE WHEN datediff('day', admitted, discharged) > 3 THEN 'long' ELSE 'short' END AS stay, COUNT(*) AS n,
-- plain:        AVG(cost) AS cost FROM visits WHERE discharged IS NOT NULL GROUP BY stay
SELECT IFF(DATEDIFF('day', admitted, discharged) > 3, 'long', 'short') AS stay, COUNT(*) AS n, AVG(cost) AS cost
FROM visits
WHERE discharged IS NOT NULL
GROUP BY stay;

-- id: hospital-002
-- source: snowflake
-- dialect: snowflake
-- world: hospital
-- label: answerable
-- shapes: 7 year-function, 2 three-part-names
SELECT YEAR(v.admitted) AS y, QUARTER(v.admitted) AS q, COUNT(*) AS visits
FROM HOSPITAL.PUBLIC.VISITS v
GROUP BY y, q
ORDER BY y, q;

-- id: bank-001
-- source: snowflake
-- dialect: snowflake
-- world: bank
-- label: answerable
-- shapes: 7 square, 6 variance
-- plain: SELECT tx_type, SQRT(AVG(amount * amount) - AVG(amount) * AVG(amount)) AS sd FROM transactions GROUP BY tx_type
SELECT tx_type, SQRT(AVG(SQUARE(amount)) - SQUARE(AVG(amount))) AS sd FROM transactions GROUP BY tx_type;

-- id: bank-002
-- source: snowflake
-- dialect: snowflake
-- world: bank
-- label: answerable
-- shapes: 7 sysdate, 7 dateadd
-- plain: SELECT kind, COUNT(*) AS opened_last_year FROM accounts WHERE opened_on > DATE '2024-06-30' GROUP BY kind
SELECT kind, COUNT(*) AS opened_last_year FROM accounts
WHERE opened_on > DATEADD(year, -1, CURRENT_DATE)
GROUP BY kind;
