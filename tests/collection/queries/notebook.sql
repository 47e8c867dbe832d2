-- id: bank-044
-- source: notebook
-- dialect: duckdb
-- world: bank
-- label: answerable
-- shapes: 6 variance-distinct
SELECT var_samp(DISTINCT term_months) AS v, stddev(DISTINCT term_months) AS sd, avg(DISTINCT term_months) AS m FROM loans;

-- id: bank-045
-- source: notebook
-- dialect: duckdb
-- world: bank
-- label: answerable
-- shapes: 6 covariance
SELECT covar_samp(principal, rate) AS c, covar_pop(principal, rate) AS cp, corr(principal, term_months) AS r FROM loans;

-- id: bank-046
-- source: notebook
-- dialect: duckdb
-- world: bank
-- label: answerable
-- shapes: 6 regression
SELECT regr_slope(income, risk_score) AS b, regr_intercept(income, risk_score) AS a, regr_r2(income, risk_score) AS r2,
       regr_sxx(income, risk_score) AS sxx, regr_syy(income, risk_score) AS syy, regr_sxy(income, risk_score) AS sxy
FROM clients;

-- id: bank-047
-- source: notebook
-- dialect: duckdb
-- world: bank
-- label: answerable
-- shapes: 6 standardize, 4 scalar-subquery
SELECT segment, (AVG(income) - (SELECT AVG(income) FROM clients)) / (SELECT STDDEV(income) FROM clients) AS z
FROM clients
GROUP BY segment;

-- id: bank-048
-- source: notebook
-- dialect: duckdb
-- world: bank
-- label: answerable
-- shapes: 6 crosstab
SELECT region,
       COUNT(*) FILTER (WHERE segment = 'retail') AS retail,
       COUNT(*) FILTER (WHERE segment = 'premier') AS premier,
       COUNT(*) FILTER (WHERE segment = 'private') AS private_
FROM clients
GROUP BY region
ORDER BY region;

-- id: bank-049
-- source: notebook
-- dialect: duckdb
-- world: bank
-- label: answerable
-- shapes: 4 cte-chain, 5 join-on-unit
WITH flows AS (
  SELECT a.client_id, SUM(t.amount) AS net
  FROM transactions t JOIN accounts a USING (account_id)
  GROUP BY a.client_id
), labeled AS (
  SELECT c.segment, c.employed, f.net
  FROM clients c JOIN flows f USING (client_id)
)
SELECT segment, COUNT(*) AS n, AVG(net) AS mean_net, median(net) AS median_net
FROM labeled
WHERE employed
GROUP BY segment;

-- id: bank-050
-- source: notebook
-- dialect: duckdb
-- world: bank
-- label: answerable
-- shapes: 5 join-on-unit, 6 per-unit-subquery, 6 histogram
SELECT n_accounts, n_loans, COUNT(*) AS clients
FROM (
  SELECT c.client_id,
         (SELECT COUNT(*) FROM accounts a WHERE a.client_id = c.client_id) AS n_accounts,
         (SELECT COUNT(*) FROM loans l WHERE l.client_id = c.client_id) AS n_loans
  FROM clients c
)
GROUP BY ALL
ORDER BY ALL;

-- id: bank-051
-- source: notebook
-- dialect: duckdb
-- world: bank
-- label: answerable
-- shapes: 7 date-plus-integer
SELECT COUNT(*) AS quick_closures FROM accounts WHERE closed_on <= opened_on + 365;

-- id: bank-052
-- source: notebook
-- dialect: postgres
-- world: bank
-- label: answerable
-- shapes: 7 months-between, 7 age
SELECT status,
       AVG(EXTRACT(YEAR FROM AGE(DATE '2025-06-30', issued_on)) * 12 + EXTRACT(MONTH FROM AGE(DATE '2025-06-30', issued_on))) AS months_on_book
FROM loans
GROUP BY status;

-- id: bank-053
-- source: notebook
-- dialect: postgres
-- world: bank
-- label: answerable
-- shapes: 4 lag-share, 7 to-char
-- plain: WITH q AS (SELECT year(booked_at) || '-' || quarter(booked_at) AS quarter, COUNT(*) AS n,
-- plain:   COUNT(*) FILTER (WHERE is_fraud) AS f FROM transactions GROUP BY 1)
-- plain: SELECT quarter, f / n AS rate, f / n - LAG(f / n) OVER (ORDER BY quarter) AS delta FROM q ORDER BY quarter
WITH q AS (
  SELECT TO_CHAR(booked_at, 'YYYY-Q') AS quarter, COUNT(*) AS n, COUNT(*) FILTER (WHERE is_fraud) AS f
  FROM transactions
  GROUP BY TO_CHAR(booked_at, 'YYYY-Q')
)
SELECT quarter, f::float / n AS rate, f::float / n - LAG(f::float / n) OVER (ORDER BY quarter) AS delta
FROM q
ORDER BY quarter;

-- id: tpch-037
-- source: notebook
-- dialect: duckdb
-- world: tpch
-- label: answerable
-- shapes: 5 foreign-key-join, 6 per-unit-window
SELECT AVG(o_totalprice - prev) AS mean_change
FROM (
  SELECT o_totalprice, LAG(o_totalprice) OVER (PARTITION BY o_custkey ORDER BY o_orderdate, o_orderkey) AS prev
  FROM orders
)
WHERE prev IS NOT NULL;

-- id: tpch-038
-- source: notebook
-- dialect: duckdb
-- world: tpch
-- label: answerable
-- shapes: 3 narrowed-keys, 7 extract
SELECT month(o_orderdate) AS m, COUNT(*) AS n FROM orders WHERE month(o_orderdate) IN (11, 12) GROUP BY m ORDER BY m;

-- id: tpch-039
-- source: notebook
-- dialect: snowflake
-- world: tpch
-- label: answerable
-- shapes: 2 comma-join, 3 public-table-keys
SELECT R_NAME, YEAR(O_ORDERDATE) AS Y, SUM(O_TOTALPRICE) AS SALES
FROM CUSTOMER, ORDERS, NATION, REGION
WHERE C_CUSTKEY = O_CUSTKEY AND C_NATIONKEY = N_NATIONKEY AND N_REGIONKEY = R_REGIONKEY
GROUP BY R_NAME, Y
ORDER BY R_NAME, Y;

-- id: tpch-040
-- source: notebook
-- dialect: bigquery
-- world: tpch
-- label: answerable
-- shapes: 5 foreign-key-join, 4 cte
-- plain: WITH late AS (
-- plain:   SELECT o.o_orderpriority AS priority, COUNT(*) FILTER (WHERE l.l_receiptdate > l.l_commitdate) AS late_lines,
-- plain:          COUNT(*) AS all_lines
-- plain:   FROM lineitem l JOIN orders o ON o.o_orderkey = l.l_orderkey GROUP BY priority)
-- plain: SELECT priority, ROUND(100 * late_lines / all_lines, 1) AS late_pct FROM late ORDER BY priority
WITH late AS (
  SELECT o.o_orderpriority AS priority, COUNTIF(l.l_receiptdate > l.l_commitdate) AS late_lines, COUNT(*) AS all_lines
  FROM lineitem l JOIN orders o ON o.o_orderkey = l.l_orderkey
  GROUP BY priority
)
SELECT priority, ROUND(100 * late_lines / all_lines, 1) AS late_pct FROM late ORDER BY priority;

-- id: school-050
-- source: notebook
-- dialect: postgres
-- world: school
-- label: answerable
-- shapes: 6 per-unit-window, 5 foreign-key-join
SELECT AVG(last_score - first_score) AS mean_progress
FROM (
  SELECT DISTINCT e.student_id,
         FIRST_VALUE(g.score) OVER w AS first_score,
         LAST_VALUE(g.score) OVER w AS last_score
  FROM grades g JOIN enrollments e ON e.enrollment_id = g.enrollment_id
  WHERE g.score IS NOT NULL
  WINDOW w AS (PARTITION BY e.student_id ORDER BY g.graded_on, g.grade_id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
) p;

-- id: school-051
-- source: notebook
-- dialect: postgres
-- world: school
-- label: answerable
-- shapes: 6 per-unit-subquery, 5 join-on-unit
SELECT s.grade_level, AVG(COALESCE(a.absences, 0)) AS absences
FROM students s
LEFT JOIN (
  SELECT student_id, COUNT(*) AS absences FROM attendance WHERE status = 'absent' GROUP BY student_id
) a ON a.student_id = s.student_id
GROUP BY s.grade_level
ORDER BY s.grade_level;

-- id: school-052
-- source: notebook
-- dialect: postgres
-- world: school
-- label: answerable
-- shapes: 6 retention
SELECT COUNT(*) AS fall, COUNT(b.student_id) AS returned
FROM (SELECT DISTINCT student_id FROM enrollments WHERE term = '2024F') a
LEFT JOIN (SELECT DISTINCT student_id FROM enrollments WHERE term = '2025S') b ON b.student_id = a.student_id;

-- id: school-053
-- source: notebook
-- dialect: postgres
-- world: school
-- label: answerable
-- shapes: 4 except, 6 per-unit-subquery
SELECT COUNT(*) AS left_school
FROM (
  SELECT student_id FROM enrollments WHERE term = '2024S'
  EXCEPT
  SELECT student_id FROM enrollments WHERE term = '2025S'
) gone;

-- id: school-054
-- source: notebook
-- dialect: postgres
-- world: school
-- label: answerable
-- shapes: 2 natural-join, 5 foreign-key-join
SELECT subject, kind, COUNT(score) AS graded
FROM grades NATURAL JOIN enrollments NATURAL JOIN courses
GROUP BY subject, kind
ORDER BY subject, kind;

-- id: school-055
-- source: notebook
-- dialect: snowflake
-- world: school
-- label: answerable
-- shapes: 7 dateadd, 7 iff
-- plain: SELECT CASE WHEN day < DATE '2024-07-01' THEN 'H1' ELSE 'later' END AS half,
-- plain:        COUNT(*) FILTER (WHERE status = 'absent') AS absences FROM attendance GROUP BY 1
SELECT IFF(day < DATEADD('month', 6, '2024-01-01'::DATE), 'H1', 'later') AS half, COUNT_IF(status = 'absent') AS absences
FROM attendance
GROUP BY 1;

-- id: school-056
-- source: notebook
-- dialect: bigquery
-- world: school
-- label: answerable
-- shapes: 7 format-date, 2 backticks
-- plain: SELECT strftime(day, '%A') AS weekday, COUNT(*) AS records FROM attendance GROUP BY weekday
SELECT FORMAT_DATE('%A', day) AS weekday, COUNT(*) AS records FROM `school.attendance` GROUP BY weekday;

-- id: hospital-085
-- source: notebook
-- dialect: bigquery
-- world: hospital
-- label: answerable
-- shapes: 7 date-diff, 5 join-on-unit
-- plain: SELECT datediff('year', p.birth_date, CAST(v.admitted AS DATE)) // 20 * 20 AS age_from, COUNT(*) AS visits
-- plain: FROM visits v JOIN patients p ON p.patient_id = v.patient_id GROUP BY age_from ORDER BY age_from
SELECT DIV(DATE_DIFF(DATE(v.admitted), p.birth_date, YEAR), 20) * 20 AS age_from, COUNT(*) AS visits
FROM visits v JOIN patients p ON p.patient_id = v.patient_id
GROUP BY age_from
ORDER BY age_from;

-- id: hospital-086
-- source: notebook
-- dialect: postgres
-- world: hospital
-- label: answerable
-- shapes: 4 rank-of-results, 4 cte, 3 private-keys
WITH by_zip AS (
  SELECT p.zip, COUNT(DISTINCT p.patient_id) AS patients, COUNT(*) AS visits
  FROM patients p JOIN visits v ON v.patient_id = p.patient_id
  GROUP BY p.zip
)
SELECT zip, visits * 1.0 / patients AS intensity, DENSE_RANK() OVER (ORDER BY visits * 1.0 / patients DESC) AS rk
FROM by_zip
ORDER BY rk;

-- id: saas-089
-- source: notebook
-- dialect: postgres
-- world: saas
-- label: answerable
-- shapes: 4 union-of-rows, 2 derived-table
SELECT kind, COUNT(*) AS n, COUNT(DISTINCT user_id) AS users
FROM (
  SELECT user_id, 'event' AS kind FROM events
  UNION ALL
  SELECT user_id, 'subscription' FROM subscriptions
) activity
GROUP BY kind;

-- id: saas-090
-- source: notebook
-- dialect: postgres
-- world: saas
-- label: answerable
-- shapes: 5 foreign-key-join, 6 per-unit-subquery, 6 quantile
SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY ltv) AS median_ltv, AVG(ltv) AS mean_ltv
FROM (
  SELECT s.user_id, SUM(i.amount) AS ltv
  FROM subscriptions s JOIN invoices i ON i.subscription_id = s.subscription_id
  WHERE i.status = 'paid'
  GROUP BY s.user_id
) l;

-- id: rides-074
-- source: notebook
-- dialect: duckdb
-- world: rides
-- label: answerable
-- shapes: 4 unpivot-of-results
SELECT metric, value
FROM (SELECT AVG(fare) AS mean_fare, AVG(tip) AS mean_tip, AVG(distance_km) AS mean_km FROM trips)
UNPIVOT (value FOR metric IN (mean_fare, mean_tip, mean_km));

-- id: rides-075
-- source: notebook
-- dialect: duckdb
-- world: rides
-- label: answerable
-- shapes: 5 public-join, 6 per-unit-window, 6 same-station
SELECT AVG(CASE WHEN start_station = prev_end THEN 1.0 ELSE 0.0 END) AS resumes_where_left
FROM (
  SELECT start_station, LAG(end_station) OVER (PARTITION BY rider_id ORDER BY started_at, trip_id) AS prev_end FROM trips
)
WHERE prev_end IS NOT NULL;

-- id: rides-076
-- source: notebook
-- dialect: duckdb
-- world: rides
-- label: unanswerable: returns rows of persons
-- shapes: 2 select-star
SELECT * FROM trips WHERE duration_min > 100;

-- id: rides-077
-- source: notebook
-- dialect: duckdb
-- world: rides
-- label: unanswerable: returns a value for each person
-- shapes: 6 per-unit-subquery
SELECT rider_id, AVG(fare) FROM trips GROUP BY ALL ORDER BY 2 DESC;

-- id: bank-054
-- source: notebook
-- dialect: duckdb
-- world: bank
-- label: unanswerable: ranks persons against each other
-- shapes: 4 window
SELECT decile, AVG(income) FROM (SELECT income, ntile(10) OVER (ORDER BY income) AS decile FROM clients WHERE income IS NOT NULL) GROUP BY decile;

-- id: bank-055
-- source: notebook
-- dialect: duckdb
-- world: bank
-- label: unanswerable: exact extreme
-- shapes: ordinary
SELECT segment, max(income) - min(income) AS spread FROM clients GROUP BY segment;
