-- id: shop-093
-- source: product-analytics
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 6 funnel
SELECT COUNT(DISTINCT customer_id) FILTER (WHERE event_type = 'visit') AS visited,
       COUNT(DISTINCT customer_id) FILTER (WHERE event_type = 'view') AS viewed,
       COUNT(DISTINCT customer_id) FILTER (WHERE event_type = 'cart') AS carted,
       COUNT(DISTINCT customer_id) FILTER (WHERE event_type = 'purchase') AS purchased
FROM events
WHERE event_time >= '2025-01-01';

-- id: shop-094
-- source: product-analytics
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 6 funnel
SELECT device,
       COUNT(DISTINCT CASE WHEN event_type = 'visit' THEN customer_id END) AS visitors,
       COUNT(DISTINCT CASE WHEN event_type = 'checkout' THEN customer_id END) AS checkouts,
       100.0 * COUNT(DISTINCT CASE WHEN event_type = 'checkout' THEN customer_id END)
             / NULLIF(COUNT(DISTINCT CASE WHEN event_type = 'visit' THEN customer_id END), 0) AS rate
FROM events
GROUP BY device;

-- id: shop-095
-- source: product-analytics
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 6 funnel, 6 per-unit-subquery
WITH steps AS (
  SELECT customer_id,
         MIN(event_time) FILTER (WHERE event_type = 'view') AS viewed_at,
         MIN(event_time) FILTER (WHERE event_type = 'cart') AS carted_at,
         MIN(event_time) FILTER (WHERE event_type = 'purchase') AS bought_at
  FROM events
  GROUP BY customer_id
)
SELECT COUNT(viewed_at) AS viewed,
       COUNT(CASE WHEN carted_at > viewed_at THEN 1 END) AS carted,
       COUNT(CASE WHEN bought_at > carted_at AND carted_at > viewed_at THEN 1 END) AS bought
FROM steps;

-- id: shop-096
-- source: product-analytics
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 6 funnel, 5 join-on-unit
WITH carts AS (
  SELECT customer_id, MIN(event_time) AS t FROM events WHERE event_type = 'cart' GROUP BY customer_id
), buys AS (
  SELECT customer_id, MIN(event_time) AS t FROM events WHERE event_type = 'purchase' GROUP BY customer_id
)
SELECT COUNT(*) AS carted,
       COUNT(buys.customer_id) AS bought_within_a_day
FROM carts
LEFT JOIN buys ON buys.customer_id = carts.customer_id
              AND buys.t BETWEEN carts.t AND carts.t + INTERVAL '1 day';

-- id: shop-097
-- source: product-analytics
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 4 union-all, 6 funnel
SELECT 1 AS step, 'visit' AS name, COUNT(DISTINCT customer_id) AS users FROM events WHERE event_type = 'visit'
UNION ALL
SELECT 2, 'cart', COUNT(DISTINCT customer_id) FROM events WHERE event_type = 'cart'
UNION ALL
SELECT 3, 'purchase', COUNT(DISTINCT customer_id) FROM events WHERE event_type = 'purchase'
ORDER BY step;

-- id: shop-098
-- source: product-analytics
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 4 window, 6 funnel
WITH f AS (
  SELECT event_type, COUNT(DISTINCT customer_id) AS users
  FROM events
  WHERE event_type IN ('visit', 'cart', 'purchase')
  GROUP BY event_type
)
SELECT event_type, users,
       ROUND(100.0 * users / FIRST_VALUE(users) OVER (ORDER BY users DESC), 1) AS pct_of_top
FROM f
ORDER BY users DESC;

-- id: shop-099
-- source: product-analytics
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 6 dau-mau
SELECT DATE(event_time) AS day, COUNT(DISTINCT customer_id) AS dau
FROM events
WHERE event_time >= '2025-06-01' AND event_time < '2025-07-01'
GROUP BY DATE(event_time)
ORDER BY day;

-- id: shop-100
-- source: product-analytics
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 6 dau-mau, 4 join-of-results
WITH d AS (
  SELECT DATE_TRUNC('month', event_time) AS m, COUNT(DISTINCT (customer_id, CAST(event_time AS DATE))) AS user_days
  FROM events GROUP BY 1
), m AS (
  SELECT DATE_TRUNC('month', event_time) AS m, COUNT(DISTINCT customer_id) AS mau
  FROM events GROUP BY 1
)
SELECT m.m AS month, d.user_days / 30.0 / m.mau AS stickiness
FROM d JOIN m ON m.m = d.m
ORDER BY 1;

-- id: shop-101
-- source: product-analytics
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 6 retention, 6 per-unit-window
WITH firsts AS (
  SELECT customer_id, DATE_TRUNC('month', MIN(ordered_at)) AS cohort
  FROM orders
  GROUP BY customer_id
)
SELECT f.cohort,
       DATE_TRUNC('month', o.ordered_at) AS active_month,
       COUNT(DISTINCT o.customer_id) AS customers
FROM orders o
JOIN firsts f ON f.customer_id = o.customer_id
GROUP BY 1, 2
ORDER BY 1, 2;

-- id: shop-102
-- source: product-analytics
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 6 retention, 6 per-unit-window
SELECT cohort, month_no, COUNT(DISTINCT customer_id) AS active
FROM (
  SELECT customer_id,
         DATE_TRUNC('quarter', MIN(order_date) OVER (PARTITION BY customer_id)) AS cohort,
         (EXTRACT(YEAR FROM order_date) - EXTRACT(YEAR FROM MIN(order_date) OVER (PARTITION BY customer_id))) * 12
         + EXTRACT(MONTH FROM order_date) - EXTRACT(MONTH FROM MIN(order_date) OVER (PARTITION BY customer_id)) AS month_no
  FROM orders
) x
GROUP BY cohort, month_no
ORDER BY cohort, month_no;

-- id: shop-103
-- source: product-analytics
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 6 first-order, 6 per-unit-window
SELECT channel, COUNT(*) AS first_orders
FROM (
  SELECT customer_id, channel,
         ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY ordered_at, order_id) AS rn
  FROM orders
) o
WHERE rn = 1
GROUP BY channel;

-- id: shop-104
-- source: product-analytics
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 6 first-order
SELECT AVG(total) AS first_order_value
FROM (
  SELECT DISTINCT ON (customer_id) customer_id, total
  FROM orders
  ORDER BY customer_id, ordered_at, order_id
) t;

-- id: shop-105
-- source: product-analytics
-- dialect: duckdb
-- world: shop
-- label: answerable
-- shapes: 6 first-order, 4 qualify
SELECT channel, AVG(total) AS second_order_value, COUNT(*) AS n
FROM (
  SELECT channel, total
  FROM orders
  QUALIFY ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY ordered_at, order_id) = 2
)
GROUP BY channel;

-- id: shop-106
-- source: product-analytics
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 6 repeat-purchase, 6 per-unit-subquery
SELECT COUNT(*) AS buyers,
       COUNT(*) FILTER (WHERE n >= 2) AS repeat_buyers,
       AVG(CASE WHEN n >= 2 THEN 1.0 ELSE 0 END) AS repeat_rate
FROM (SELECT customer_id, COUNT(*) AS n FROM orders GROUP BY customer_id) b;

-- id: shop-107
-- source: product-analytics
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 6 time-to-event, 7 date-difference, 5 join-on-unit
SELECT AVG(first_order - signup_date) AS days_to_first_order
FROM (
  SELECT c.customer_id, c.signup_date, MIN(o.order_date) AS first_order
  FROM customers c
  JOIN orders o ON o.customer_id = c.customer_id
  GROUP BY c.customer_id, c.signup_date
) t;

-- id: shop-108
-- source: product-analytics
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 6 sessions, 6 per-unit-window, 7 interval
SELECT COUNT(*) AS sessions
FROM (
  SELECT CASE WHEN event_time - LAG(event_time) OVER (PARTITION BY customer_id ORDER BY event_time) <= INTERVAL '30 minutes'
              THEN 0 ELSE 1 END AS starts
  FROM events
) e
WHERE starts = 1;

-- id: shop-109
-- source: product-analytics
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 6 sessions, 6 per-unit-window
WITH marked AS (
  SELECT customer_id, event_time,
         CASE WHEN EXTRACT(EPOCH FROM event_time - LAG(event_time) OVER w) > 1800 THEN 1 ELSE 0 END AS is_new
  FROM events
  WINDOW w AS (PARTITION BY customer_id ORDER BY event_time, event_id)
), numbered AS (
  SELECT customer_id, event_time,
         SUM(is_new) OVER (PARTITION BY customer_id ORDER BY event_time ROWS UNBOUNDED PRECEDING) AS session_no
  FROM marked
)
SELECT AVG(events) AS events_per_session
FROM (
  SELECT customer_id, session_no, COUNT(*) AS events
  FROM numbered
  GROUP BY customer_id, session_no
) s;

-- id: shop-110
-- source: product-analytics
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 6 sessions
SELECT device, COUNT(DISTINCT session_id) AS sessions, COUNT(*)::numeric / COUNT(DISTINCT session_id) AS events_per_session
FROM events
GROUP BY device;

-- id: shop-111
-- source: product-analytics
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 6 sessions, 6 quantile
SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY seconds) AS median_session
FROM (
  SELECT customer_id, session_id, EXTRACT(EPOCH FROM MAX(event_time) - MIN(event_time)) AS seconds
  FROM events
  GROUP BY customer_id, session_id
) s;

-- id: shop-112
-- source: product-analytics
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 6 rfm, 6 per-unit-subquery, 7 current-date
-- plain: SELECT CASE WHEN recency <= 30 THEN 'active' WHEN recency <= 90 THEN 'cooling' ELSE 'lapsed' END AS state,
-- plain:        COUNT(*) AS customers,
-- plain:        AVG(frequency) AS orders,
-- plain:        AVG(monetary) AS spent
-- plain: FROM (
-- plain:   SELECT customer_id,
-- plain:          DATE '2025-06-30' - MAX(order_date) AS recency,
-- plain:          COUNT(*) AS frequency,
-- plain:          SUM(total) AS monetary
-- plain:   FROM orders
-- plain:   GROUP BY customer_id
-- plain: ) rfm
-- plain: GROUP BY 1
SELECT CASE WHEN recency <= 30 THEN 'active' WHEN recency <= 90 THEN 'cooling' ELSE 'lapsed' END AS state,
       COUNT(*) AS customers,
       AVG(frequency) AS orders,
       AVG(monetary) AS spent
FROM (
  SELECT customer_id,
         CURRENT_DATE - MAX(order_date) AS recency,
         COUNT(*) AS frequency,
         SUM(total) AS monetary
  FROM orders
  GROUP BY customer_id
) rfm
GROUP BY 1;

-- id: shop-113
-- source: product-analytics
-- dialect: postgres
-- world: shop
-- label: unanswerable: ranks persons against each other
-- shapes: 6 rfm
SELECT quartile, COUNT(*), AVG(spent)
FROM (
  SELECT customer_id, SUM(total) AS spent, NTILE(4) OVER (ORDER BY SUM(total)) AS quartile
  FROM orders
  GROUP BY customer_id
) q
GROUP BY quartile;

-- id: shop-114
-- source: product-analytics
-- dialect: postgres
-- world: shop
-- label: unanswerable: returns rows of persons
-- shapes: 6 sessions
SELECT customer_id, session_id, MIN(event_time) AS started, COUNT(*) AS events
FROM events
GROUP BY customer_id, session_id
ORDER BY events DESC;

-- id: shop-115
-- source: product-analytics
-- dialect: postgres
-- world: shop
-- label: unanswerable: joins rows of different persons
-- shapes: 5 self-join
SELECT a.product_id AS p1, b.product_id AS p2, COUNT(*) AS together
FROM lines a
JOIN lines b ON a.quantity = b.quantity AND a.product_id < b.product_id
GROUP BY 1, 2
ORDER BY together DESC
LIMIT 20;

-- id: shop-116
-- source: product-analytics
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 5 basket, 5 join-within-unit
SELECT a.product_id AS p1, b.product_id AS p2, COUNT(*) AS together
FROM lines a
JOIN lines b ON a.order_id = b.order_id AND a.product_id < b.product_id
GROUP BY 1, 2
ORDER BY together DESC
LIMIT 20;

-- id: saas-009
-- source: product-analytics
-- dialect: postgres
-- world: saas
-- label: answerable
-- shapes: 6 cohort, 7 to-char
-- plain: SELECT
-- plain:   STRFTIME(u.created_at, '%Y-%m') AS cohort,
-- plain:   COUNT(*) AS signups,
-- plain:   COUNT(*) FILTER(WHERE
-- plain:     EXISTS(
-- plain:       SELECT
-- plain:         1
-- plain:       FROM subscriptions AS s
-- plain:       WHERE
-- plain:         s.user_id = u.user_id
-- plain:     )) AS converted
-- plain: FROM users AS u
-- plain: GROUP BY
-- plain:   1
-- plain: ORDER BY
-- plain:   1
SELECT TO_CHAR(u.created_at, 'YYYY-MM') AS cohort, COUNT(*) AS signups,
       COUNT(*) FILTER (WHERE EXISTS (SELECT 1 FROM subscriptions s WHERE s.user_id = u.user_id)) AS converted
FROM users u
GROUP BY 1
ORDER BY 1;

-- id: saas-010
-- source: product-analytics
-- dialect: postgres
-- world: saas
-- label: answerable
-- shapes: 6 activation, 5 exists, 7 interval
SELECT COUNT(*) AS activated
FROM users u
WHERE EXISTS (
  SELECT 1 FROM events e
  WHERE e.user_id = u.user_id
    AND e.name = 'create_project'
    AND e.occurred_at < u.created_at + INTERVAL '7 days');

-- id: saas-011
-- source: product-analytics
-- dialect: postgres
-- world: saas
-- label: answerable
-- shapes: 6 activation, 2 left-join-on-filter
SELECT u.source,
       COUNT(DISTINCT u.user_id) AS signups,
       COUNT(DISTINCT e.user_id) AS activated
FROM users u
LEFT JOIN events e ON e.user_id = u.user_id AND e.name = 'create_project'
GROUP BY u.source;

-- id: saas-012
-- source: product-analytics
-- dialect: postgres
-- world: saas
-- label: answerable
-- shapes: 6 experiment, 5 join-on-unit
SELECT a.variant,
       COUNT(DISTINCT a.user_id) AS users,
       COUNT(DISTINCT s.user_id) AS converted,
       COUNT(DISTINCT s.user_id)::numeric / COUNT(DISTINCT a.user_id) AS rate
FROM assignments a
LEFT JOIN subscriptions s ON s.user_id = a.user_id AND s.started_on >= a.assigned_at::date
WHERE a.experiment = 'onboarding'
GROUP BY a.variant;

-- id: saas-013
-- source: product-analytics
-- dialect: postgres
-- world: saas
-- label: answerable
-- shapes: 6 experiment, 6 per-unit-subquery, 6 variance
SELECT variant, COUNT(*) AS n, AVG(logins) AS mean, VAR_SAMP(logins) AS variance
FROM (
  SELECT a.user_id, a.variant, COUNT(e.event_id) AS logins
  FROM assignments a
  LEFT JOIN events e ON e.user_id = a.user_id AND e.name = 'login'
  WHERE a.experiment = 'pricing'
  GROUP BY a.user_id, a.variant
) t
GROUP BY variant;

-- id: saas-014
-- source: product-analytics
-- dialect: postgres
-- world: saas
-- label: answerable
-- shapes: 6 next-plan, 6 per-unit-window
SELECT plan, next_plan, COUNT(*) AS transitions
FROM (
  SELECT user_id, plan, LEAD(plan) OVER (PARTITION BY user_id ORDER BY started_on, subscription_id) AS next_plan
  FROM subscriptions
) t
WHERE next_plan IS NOT NULL
GROUP BY plan, next_plan
ORDER BY transitions DESC;

-- id: saas-015
-- source: product-analytics
-- dialect: postgres
-- world: saas
-- label: answerable
-- shapes: 6 churn, 7 date-trunc
SELECT DATE_TRUNC('month', ended_on) AS month, COUNT(*) AS ended, SUM(mrr) AS lost_mrr
FROM subscriptions
WHERE ended_on IS NOT NULL
GROUP BY 1
ORDER BY 1;

-- id: saas-016
-- source: product-analytics
-- dialect: postgres
-- world: saas
-- label: answerable
-- shapes: 6 churn, 4 cte
WITH active AS (
  SELECT COUNT(*) AS n FROM subscriptions
  WHERE started_on < DATE '2025-01-01' AND (ended_on IS NULL OR ended_on >= DATE '2025-01-01')
), lost AS (
  SELECT COUNT(*) AS n FROM subscriptions
  WHERE started_on < DATE '2025-01-01' AND ended_on >= DATE '2025-01-01' AND ended_on < DATE '2025-04-01'
)
SELECT 100.0 * lost.n / active.n AS churn_pct FROM active, lost;

-- id: saas-017
-- source: product-analytics
-- dialect: postgres
-- world: saas
-- label: answerable
-- shapes: 6 retention, 5 join-on-unit, 7 date-difference
SELECT DATE_TRUNC('month', u.created_at)::date AS cohort,
       FLOOR((e.occurred_at::date - u.created_at::date) / 7.0) AS week,
       COUNT(DISTINCT u.user_id) AS users
FROM users u
JOIN events e ON e.user_id = u.user_id
WHERE u.created_at >= '2025-01-01'
GROUP BY 1, 2
ORDER BY 1, 2;

-- id: saas-018
-- source: product-analytics
-- dialect: postgres
-- world: saas
-- label: answerable
-- shapes: 6 retention, 6 per-unit-subquery
SELECT COUNT(*) AS users,
       SUM(d1) AS day1, SUM(d7) AS day7, SUM(d30) AS day30
FROM (
  SELECT u.user_id,
         MAX(CASE WHEN e.occurred_at::date = u.created_at::date + 1 THEN 1 ELSE 0 END) AS d1,
         MAX(CASE WHEN e.occurred_at::date = u.created_at::date + 7 THEN 1 ELSE 0 END) AS d7,
         MAX(CASE WHEN e.occurred_at::date >= u.created_at::date + 30 THEN 1 ELSE 0 END) AS d30
  FROM users u
  LEFT JOIN events e ON e.user_id = u.user_id
  GROUP BY u.user_id
) r;

-- id: saas-019
-- source: product-analytics
-- dialect: postgres
-- world: saas
-- label: answerable
-- shapes: 6 mode-per-unit
SELECT feature, COUNT(DISTINCT user_id) AS users, COUNT(*) AS uses
FROM events
WHERE feature IS NOT NULL
GROUP BY feature
ORDER BY users DESC
LIMIT 5;

-- id: saas-020
-- source: product-analytics
-- dialect: postgres
-- world: saas
-- label: answerable
-- shapes: 6 power-users, 6 per-unit-subquery
SELECT CASE WHEN days >= 5 THEN 'power' WHEN days >= 2 THEN 'regular' ELSE 'light' END AS kind, COUNT(*) AS users
FROM (
  SELECT user_id, COUNT(DISTINCT occurred_at::date) AS days
  FROM events
  GROUP BY user_id
) d
GROUP BY kind;

-- id: saas-021
-- source: product-analytics
-- dialect: postgres
-- world: saas
-- label: unanswerable: returns rows of persons
-- shapes: 6 churn
SELECT user_id, MAX(occurred_at) AS last_seen
FROM events
GROUP BY user_id
HAVING MAX(occurred_at) < TIMESTAMP '2025-03-01';

-- id: saas-022
-- source: product-analytics
-- dialect: postgres
-- world: saas
-- label: unanswerable: joins rows of different persons
-- shapes: 5 self-join
SELECT COUNT(*) AS co_workers
FROM users a
JOIN users b ON a.account_id = b.account_id
WHERE a.user_id <> b.user_id AND a.role = 'admin' AND b.role = 'viewer';

-- id: saas-023
-- source: product-analytics
-- dialect: postgres
-- world: saas
-- label: unanswerable: a person's rows compared with all others'
-- shapes: 5 correlated
SELECT COUNT(*) FROM users u
WHERE u.nps > (SELECT AVG(v.nps) FROM users v WHERE v.account_id = u.account_id AND v.user_id <> u.user_id);

-- id: rides-012
-- source: product-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 6 per-unit-window, 6 first-trip
SELECT s.district, COUNT(*) AS first_trips
FROM (
  SELECT t.*, ROW_NUMBER() OVER (PARTITION BY rider_id ORDER BY started_at, trip_id) AS n
  FROM trips t
) f
JOIN stations s ON s.station_id = f.start_station
WHERE f.n = 1
GROUP BY s.district;

-- id: rides-013
-- source: product-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 6 per-unit-subquery, 6 streak
SELECT COUNT(*) AS commuters
FROM (
  SELECT rider_id
  FROM trips
  WHERE EXTRACT(DOW FROM started_at) BETWEEN 1 AND 5
    AND EXTRACT(HOUR FROM started_at) IN (7, 8, 9)
  GROUP BY rider_id
  HAVING COUNT(*) >= 2
) c;

-- id: rides-014
-- source: product-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 6 gaps, 6 per-unit-window, 6 quantile
SELECT PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY gap) AS median_gap_days
FROM (
  SELECT started_at::date - LAG(started_at::date) OVER (PARTITION BY rider_id ORDER BY started_at, trip_id) AS gap
  FROM trips
) g
WHERE gap IS NOT NULL;
