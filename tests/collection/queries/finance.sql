-- id: bank-003
-- source: finance
-- dialect: postgres
-- world: bank
-- label: answerable
-- shapes: 5 foreign-key-join
SELECT a.kind, SUM(t.amount) AS net_flow, COUNT(*) AS n
FROM accounts a
JOIN transactions t ON t.account_id = a.account_id
GROUP BY a.kind
ORDER BY a.kind;

-- id: bank-004
-- source: finance
-- dialect: postgres
-- world: bank
-- label: answerable
-- shapes: 7 date-trunc
SELECT DATE_TRUNC('month', booked_at)::date AS month,
       SUM(CASE WHEN amount > 0 THEN amount ELSE 0 END) AS credits,
       -SUM(CASE WHEN amount < 0 THEN amount ELSE 0 END) AS debits
FROM transactions
GROUP BY 1
ORDER BY 1;

-- id: bank-005
-- source: finance
-- dialect: postgres
-- world: bank
-- label: answerable
-- shapes: 5 public-join, 3 public-table-keys
SELECT m.mcc_category, m.risk, COUNT(*) AS n, AVG(-t.amount) AS ticket
FROM transactions t
JOIN mcc_codes m ON m.mcc = t.mcc
WHERE t.tx_type = 'card'
GROUP BY m.mcc_category, m.risk
ORDER BY n DESC;

-- id: bank-006
-- source: finance
-- dialect: postgres
-- world: bank
-- label: answerable
-- shapes: 5 public-join, 7 numeric-cast
SELECT a.kind, SUM(a.balance * f.rate_to_usd)::numeric(18, 2) AS balance_usd
FROM accounts a
JOIN fx_rates f ON f.currency = a.currency
WHERE a.closed_on IS NULL
GROUP BY a.kind;

-- id: bank-007
-- source: finance
-- dialect: postgres
-- world: bank
-- label: answerable
-- shapes: 4 ratio
SELECT country,
       COUNT(*) AS txs,
       SUM(CASE WHEN is_fraud THEN 1 ELSE 0 END) AS frauds,
       1e4 * SUM(CASE WHEN is_fraud THEN 1 ELSE 0 END) / COUNT(*) AS bps
FROM transactions
GROUP BY country
ORDER BY bps DESC;

-- id: bank-008
-- source: finance
-- dialect: postgres
-- world: bank
-- label: answerable
-- shapes: 4 window
SELECT month, volume,
       SUM(volume) OVER (PARTITION BY EXTRACT(YEAR FROM month) ORDER BY month) AS ytd,
       volume / NULLIF(LAG(volume, 12) OVER (ORDER BY month), 0) - 1 AS yoy
FROM (
  SELECT DATE_TRUNC('month', value_date) AS month, SUM(ABS(amount)) AS volume
  FROM transactions
  GROUP BY 1
) m
ORDER BY month;

-- id: bank-009
-- source: finance
-- dialect: postgres
-- world: bank
-- label: answerable
-- shapes: 6 vintage, 7 to-char
-- plain: SELECT year(issued_on) || 'Q' || quarter(issued_on) AS vintage, product, COUNT(*) AS loans,
-- plain:        AVG(CASE WHEN status = 'default' THEN 1.0 ELSE 0 END) AS default_rate
-- plain: FROM loans GROUP BY 1, 2 ORDER BY 1, 2
SELECT TO_CHAR(issued_on, 'YYYY"Q"Q') AS vintage, product,
       COUNT(*) AS loans,
       AVG(CASE WHEN status = 'default' THEN 1.0 ELSE 0 END) AS default_rate
FROM loans
GROUP BY 1, 2
ORDER BY 1, 2;

-- id: bank-010
-- source: finance
-- dialect: postgres
-- world: bank
-- label: answerable
-- shapes: 4 weighted-average
SELECT product, SUM(rate * principal) / SUM(principal) AS weighted_rate, SUM(principal) AS exposure
FROM loans
WHERE status IN ('current', 'late')
GROUP BY product;

-- id: bank-011
-- source: finance
-- dialect: postgres
-- world: bank
-- label: answerable
-- shapes: 4 ratio
SELECT SUM(principal) / NULLIF(SUM(collateral), 0) AS loan_to_value
FROM loans
WHERE collateral IS NOT NULL;

-- id: bank-012
-- source: finance
-- dialect: postgres
-- world: bank
-- label: answerable
-- shapes: 6 quantile
-- plain: SELECT segment, quantile_cont(income, [0.1, 0.5, 0.9]) AS income_deciles FROM clients GROUP BY segment
SELECT segment,
       PERCENTILE_CONT(ARRAY[0.1, 0.5, 0.9]) WITHIN GROUP (ORDER BY income) AS income_deciles
FROM clients
GROUP BY segment;

-- id: bank-013
-- source: finance
-- dialect: postgres
-- world: bank
-- label: answerable
-- shapes: 6 histogram
SELECT CASE WHEN risk_score IS NULL THEN 'unscored'
            WHEN risk_score < 580 THEN 'poor'
            WHEN risk_score < 670 THEN 'fair'
            WHEN risk_score < 740 THEN 'good'
            ELSE 'excellent' END AS band,
       COUNT(*) AS clients
FROM clients
GROUP BY 1;

-- id: bank-014
-- source: finance
-- dialect: postgres
-- world: bank
-- label: answerable
-- shapes: 6 per-unit-subquery
SELECT AVG(total) AS mean_wealth, COUNT(*) FILTER (WHERE total < 0) AS overdrawn
FROM (SELECT client_id, SUM(balance) AS total FROM accounts GROUP BY client_id) w;

-- id: bank-015
-- source: finance
-- dialect: postgres
-- world: bank
-- label: answerable
-- shapes: 6 per-unit-subquery, 5 join-on-unit
SELECT c.region, COUNT(*) AS clients, AVG(a.n) AS accounts_per_client
FROM clients c
JOIN (SELECT client_id, COUNT(*) AS n FROM accounts WHERE closed_on IS NULL GROUP BY client_id) a
  ON a.client_id = c.client_id
GROUP BY c.region;

-- id: bank-016
-- source: finance
-- dialect: postgres
-- world: bank
-- label: answerable
-- shapes: 6 per-unit-window, 5 foreign-key-join
SELECT COUNT(DISTINCT client_id) AS clients_with_burst
FROM (
  SELECT a.client_id,
         t.booked_at - LAG(t.booked_at, 2) OVER (PARTITION BY a.client_id ORDER BY t.booked_at) AS span
  FROM transactions t JOIN accounts a ON a.account_id = t.account_id
  WHERE t.tx_type = 'card'
) s
WHERE span < INTERVAL '14 days';

-- id: bank-017
-- source: finance
-- dialect: postgres
-- world: bank
-- label: answerable
-- shapes: 6 per-unit-subquery, 5 foreign-key-join
SELECT COUNT(*) AS salaried
FROM (
  SELECT a.client_id
  FROM accounts a JOIN transactions t USING (account_id)
  WHERE t.tx_type = 'salary'
  GROUP BY a.client_id
  HAVING COUNT(DISTINCT DATE_TRUNC('month', t.booked_at)) >= 2
) x;

-- id: bank-018
-- source: finance
-- dialect: postgres
-- world: bank
-- label: answerable
-- shapes: 5 not-in-own-rows
SELECT segment, COUNT(*) AS without_loan
FROM clients
WHERE client_id NOT IN (SELECT client_id FROM loans WHERE status <> 'paid')
GROUP BY segment;

-- id: bank-019
-- source: finance
-- dialect: postgres
-- world: bank
-- label: answerable
-- shapes: 5 exists, 5 foreign-key-join
SELECT a.currency, COUNT(*) AS dormant
FROM accounts a
WHERE a.closed_on IS NULL
  AND NOT EXISTS (SELECT 1 FROM transactions t WHERE t.account_id = a.account_id AND t.booked_at >= '2025-01-01')
GROUP BY a.currency;

-- id: bank-020
-- source: finance
-- dialect: postgres
-- world: bank
-- label: answerable
-- shapes: 3 rollup
SELECT region, segment, COUNT(*) AS clients, AVG(income) AS income
FROM clients
GROUP BY ROLLUP (region, segment)
ORDER BY region NULLS LAST, segment NULLS LAST;

-- id: bank-021
-- source: finance
-- dialect: postgres
-- world: bank
-- label: answerable
-- shapes: 3 grouping-sets
SELECT COALESCE(product, 'all products') AS product, COALESCE(status, 'all') AS status, SUM(principal) AS exposure
FROM loans
GROUP BY GROUPING SETS ((product, status), (product), (status), ());

-- id: bank-022
-- source: finance
-- dialect: postgres
-- world: bank
-- label: answerable
-- shapes: 7 age
-- plain: SELECT CAST(date_part('year', age(DATE '2025-06-30', birth_date)) AS INTEGER) // 10 * 10 AS age_band, COUNT(*) AS clients
-- plain: FROM clients GROUP BY 1 ORDER BY 1
SELECT DATE_PART('year', AGE('2025-06-30'::date, birth_date))::int / 10 * 10 AS age_band, COUNT(*) AS clients
FROM clients
GROUP BY 1
ORDER BY 1;

-- id: bank-023
-- source: finance
-- dialect: postgres
-- world: bank
-- label: answerable
-- shapes: 7 substring, 7 concat
SELECT UPPER(SUBSTRING(region, 1, 1)) || '-' || segment AS cell, COUNT(*) AS n
FROM clients
GROUP BY 1;

-- id: bank-024
-- source: finance
-- dialect: postgres
-- world: bank
-- label: answerable
-- shapes: 4 having, 3 private-keys
SELECT merchant, COUNT(*) AS n, SUM(-amount) AS spent
FROM transactions
WHERE merchant IS NOT NULL
GROUP BY merchant
HAVING SUM(-amount) > 1000
ORDER BY spent DESC;

-- id: bank-025
-- source: finance
-- dialect: postgres
-- world: bank
-- label: answerable
-- shapes: 6 regression
SELECT product, REGR_SLOPE(rate, term_months) AS slope, REGR_AVGX(rate, term_months) AS avg_term, COUNT(*) AS n
FROM loans
GROUP BY product;

-- id: bank-026
-- source: finance
-- dialect: postgres
-- world: bank
-- label: answerable
-- shapes: 6 variance
SELECT tx_type, STDDEV(amount) / NULLIF(ABS(AVG(amount)), 0) AS coefficient_of_variation
FROM transactions
GROUP BY tx_type;

-- id: bank-027
-- source: finance
-- dialect: postgres
-- world: bank
-- label: answerable
-- shapes: 4 scalar-subquery
SELECT region, AVG(income) - (SELECT AVG(income) FROM clients) AS difference_from_mean
FROM clients
GROUP BY region;

-- id: bank-028
-- source: finance
-- dialect: postgres
-- world: bank
-- label: answerable
-- shapes: 4 union-all
SELECT 'assets' AS side, SUM(principal) AS amount FROM loans WHERE status <> 'paid'
UNION ALL
SELECT 'deposits', SUM(balance) FROM accounts WHERE kind <> 'credit';

-- id: bank-029
-- source: finance
-- dialect: postgres
-- world: bank
-- label: answerable
-- shapes: 8 one-meaning
SELECT COUNT(*) FROM clients WHERE employed IS TRUE AND income IS NOT NULL;

-- id: bank-030
-- source: finance
-- dialect: postgres
-- world: bank
-- label: answerable
-- shapes: 8 null-logic
SELECT COUNT(*) FROM clients WHERE NOT employed;

-- id: bank-031
-- source: finance
-- dialect: duckdb
-- world: bank
-- label: answerable
-- shapes: 4 window
SELECT product, status, SUM(principal) AS exposure,
       SUM(principal) / SUM(SUM(principal)) OVER (PARTITION BY product) AS share,
       DENSE_RANK() OVER (PARTITION BY product ORDER BY SUM(principal) DESC) AS rk
FROM loans
GROUP BY product, status
ORDER BY ALL;

-- id: bank-032
-- source: finance
-- dialect: postgres
-- world: bank
-- label: unanswerable: returns rows of persons
-- shapes: 5 foreign-key-join
SELECT t.tx_id, t.amount, a.client_id
FROM transactions t JOIN accounts a ON a.account_id = t.account_id
WHERE t.is_fraud AND t.amount < -500;

-- id: bank-033
-- source: finance
-- dialect: postgres
-- world: bank
-- label: unanswerable: returns rows of persons
-- shapes: 6 per-unit-subquery
SELECT client_id, SUM(balance) AS wealth
FROM accounts
GROUP BY client_id
HAVING SUM(balance) > 100000;

-- id: bank-034
-- source: finance
-- dialect: postgres
-- world: bank
-- label: unanswerable: exact extreme
-- shapes: ordinary
SELECT segment, MAX(balance) AS largest, MIN(balance) AS smallest
FROM clients JOIN accounts USING (client_id)
GROUP BY segment;

-- id: bank-035
-- source: finance
-- dialect: postgres
-- world: bank
-- label: unanswerable: joins rows of different persons
-- shapes: 5 self-join
SELECT COUNT(*) AS mirrored
FROM transactions a JOIN transactions b ON a.amount = -b.amount AND a.value_date = b.value_date AND a.account_id <> b.account_id;

-- id: bank-036
-- source: finance
-- dialect: postgres
-- world: bank
-- label: unanswerable: joins rows of different persons
-- shapes: 5 self-join
SELECT a.tx_id, b.tx_id
FROM transactions a, transactions b
WHERE a.merchant = b.merchant AND a.amount = b.amount AND a.tx_id < b.tx_id
  AND ABS(EXTRACT(EPOCH FROM a.booked_at - b.booked_at)) < 60;

-- id: bank-037
-- source: finance
-- dialect: postgres
-- world: bank
-- label: unanswerable: ranks persons against each other
-- shapes: 4 window
SELECT AVG(share) FROM (
  SELECT PERCENT_RANK() OVER (ORDER BY income) AS share, employed FROM clients
) p WHERE employed;

-- id: bank-038
-- source: finance
-- dialect: postgres
-- world: bank
-- label: unanswerable: window over different persons' rows, returned row by row
-- shapes: 4 window
SELECT booked_at, amount, SUM(amount) OVER (ORDER BY booked_at) AS running_balance FROM transactions;

-- id: bank-039
-- source: finance
-- dialect: postgres
-- world: bank
-- label: unanswerable: picks rows of persons by their rank among all
-- shapes: 4 top-n
SELECT SUM(balance) AS top_ten FROM (SELECT balance FROM accounts ORDER BY balance DESC LIMIT 10) t;

-- id: bank-040
-- source: finance
-- dialect: postgres
-- world: bank
-- label: unanswerable: names a person by an identifier that the policy does not list
-- shapes: ordinary
SELECT COUNT(*) FROM accounts WHERE client_id IN (3, 5, 8);

-- id: bank-041
-- source: finance
-- dialect: postgres
-- world: bank
-- label: answerable
-- shapes: 6 geometric-mean
SELECT product, EXP(AVG(LN(1 + rate))) - 1 AS geometric_mean_rate FROM loans GROUP BY product;

-- id: bank-042
-- source: finance
-- dialect: postgres
-- world: bank
-- label: unanswerable: changes data
-- shapes: ddl-dml
GRANT SELECT ON transactions TO PUBLIC;

-- id: bank-043
-- source: finance
-- dialect: postgres
-- world: bank
-- label: unanswerable: a column that the policy does not list
-- shapes: ordinary
SELECT iban_country, COUNT(*) FROM accounts GROUP BY iban_country;
