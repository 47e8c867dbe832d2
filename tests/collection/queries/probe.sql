-- id: saas-042
-- source: probe
-- dialect: postgres
-- world: saas
-- label: answerable
-- shapes: 8 zero-row-probe
SELECT * FROM users WHERE 1 = 0;

-- id: saas-043
-- source: probe
-- dialect: postgres
-- world: saas
-- label: answerable
-- shapes: 8 zero-row-probe
SELECT * FROM "saas"."public"."events" LIMIT 0;

-- id: saas-044
-- source: probe
-- dialect: postgres
-- world: saas
-- label: answerable
-- shapes: 8 zero-row-probe
SELECT "Custom SQL Query".* FROM (SELECT u.role, u.created_at, e.name FROM users u JOIN events e ON e.user_id = u.user_id) "Custom SQL Query" WHERE 1=0;

-- id: saas-045
-- source: probe
-- dialect: postgres
-- world: saas
-- label: answerable
-- shapes: 8 zero-row-probe
SELECT COUNT(*) AS n, SUM(mrr) AS mrr FROM (SELECT * FROM subscriptions) t HAVING 1 = 0;

-- id: saas-046
-- source: probe
-- dialect: postgres
-- world: saas
-- label: answerable
-- shapes: 8 zero-row-probe
SELECT plan, SUM(mrr) AS mrr FROM subscriptions WHERE FALSE GROUP BY plan;

-- id: saas-047
-- source: probe
-- dialect: duckdb
-- world: saas
-- label: answerable
-- shapes: 8 constant
SELECT 1;

-- id: saas-048
-- source: probe
-- dialect: postgres
-- world: saas
-- label: answerable
-- shapes: 8 constant
-- plain: SELECT DATE '2025-06-30' AS today, 1 + 1 AS two
SELECT CURRENT_DATE AS today, 1 + 1 AS two;

-- id: saas-049
-- source: probe
-- dialect: snowflake
-- world: saas
-- label: answerable
-- shapes: 8 zero-row-probe
-- plain: SELECT * FROM invoices LIMIT 0
SELECT TOP 0 * FROM SAAS.PUBLIC.INVOICES;

-- id: saas-050
-- source: probe
-- dialect: bigquery
-- world: saas
-- label: answerable
-- shapes: 8 zero-row-probe, 2 backticks
-- plain: SELECT * FROM subscriptions LIMIT 0
SELECT * FROM `saas.subscriptions` LIMIT 0;

-- id: saas-051
-- source: probe
-- dialect: duckdb
-- world: saas
-- label: answerable
-- shapes: 8 schema
DESCRIBE users;

-- id: saas-052
-- source: probe
-- dialect: duckdb
-- world: saas
-- label: answerable
-- shapes: 8 schema
SHOW TABLES;

-- id: saas-053
-- source: probe
-- dialect: postgres
-- world: saas
-- label: answerable
-- shapes: 8 schema
SELECT table_name, column_name, data_type
FROM information_schema.columns
WHERE table_schema = 'public' AND table_name = 'users'
ORDER BY ordinal_position;

-- id: saas-054
-- source: probe
-- dialect: postgres
-- world: saas
-- label: answerable
-- shapes: 8 schema
SELECT COUNT(*) AS tables FROM information_schema.tables WHERE table_schema = 'public';

-- id: saas-055
-- source: probe
-- dialect: postgres
-- world: saas
-- label: answerable
-- shapes: 8 one-meaning
SELECT COUNT(*) AS "cnt" FROM (SELECT "users"."user_id" FROM "public"."users") "t" HAVING COUNT(1) > 0;

-- id: saas-056
-- source: probe
-- dialect: postgres
-- world: saas
-- label: answerable
-- shapes: 8 one-meaning
SELECT SUM(1) AS "sum:Number of Records:ok" FROM "public"."events" "events" HAVING COUNT(1) > 0;

-- id: saas-057
-- source: probe
-- dialect: postgres
-- world: saas
-- label: answerable
-- shapes: 2 derived-table
select "_"."country", count(distinct "_"."user_id") as "a0"
from (select "user_id", "country", "is_active" from "public"."users" "$Table") "_"
where "_"."is_active" = true
group by "_"."country"
limit 1000001;

-- id: saas-058
-- source: probe
-- dialect: postgres
-- world: saas
-- label: answerable
-- shapes: 2 derived-table, 7 like
select "rows"."plan" as "plan", sum("rows"."mrr") as "a0"
from (select "_"."plan", "_"."mrr" from "public"."subscriptions" "_" where not "_"."trial") "rows"
group by "plan"
order by "plan"
limit 1001;

-- id: saas-059
-- source: probe
-- dialect: postgres
-- world: saas
-- label: answerable
-- shapes: 8 always-true
SELECT role, COUNT(*) FROM users WHERE 1 = 1 AND created_at >= '2025-01-01' GROUP BY role;

-- id: saas-060
-- source: probe
-- dialect: postgres
-- world: saas
-- label: answerable
-- shapes: 8 always-true
SELECT COUNT(*) FROM users WHERE ('all' = 'all' OR role = 'all') AND TRUE;

-- id: saas-061
-- source: probe
-- dialect: postgres
-- world: saas
-- label: answerable
-- shapes: 3 filter-values
SELECT DISTINCT "users"."country" AS "country" FROM "public"."users" "users" ORDER BY "country" ASC LIMIT 100;

-- id: saas-062
-- source: probe
-- dialect: postgres
-- world: saas
-- label: answerable
-- shapes: 3 filter-values
SELECT "role" FROM "public"."users" GROUP BY "role" ORDER BY COUNT(*) DESC LIMIT 50;

-- id: saas-063
-- source: probe
-- dialect: postgres
-- world: saas
-- label: answerable
-- shapes: 3 filter-values, 3 public-only
SELECT DISTINCT industry FROM accounts ORDER BY industry;

-- id: saas-064
-- source: probe
-- dialect: postgres
-- world: saas
-- label: answerable
-- shapes: 3 filter-values, 7 like
SELECT "feature" FROM "public"."events" WHERE LOWER("feature") LIKE '%' || 'se' || '%' GROUP BY "feature" LIMIT 20;

-- id: saas-065
-- source: probe
-- dialect: postgres
-- world: saas
-- label: answerable
-- shapes: 2 comment
/* dashboard: growth, card 41 */
SELECT -- weekly signups
       DATE_TRUNC('week', created_at) AS wk, COUNT(*) AS n
FROM users
GROUP BY 1 -- by week
ORDER BY 1;

-- id: saas-066
-- source: probe
-- dialect: postgres
-- world: saas
-- label: answerable
-- shapes: 2 semicolon, 2 quoted-identifiers
SELECT "u"."role" AS "User Role", COUNT(*) AS "Total Users" FROM "users" AS "u" GROUP BY "u"."role" ORDER BY "Total Users" DESC;

-- id: saas-067
-- source: probe
-- dialect: postgres
-- world: saas
-- label: unanswerable: returns rows of persons
-- shapes: 2 derived-table
select "_"."user_id", "_"."role", "_"."country" from "public"."users" "_" limit 1000;

-- id: saas-068
-- source: probe
-- dialect: postgres
-- world: saas
-- label: unanswerable: returns rows of persons
-- shapes: 2 select-star
SELECT * FROM (SELECT * FROM users) AS t LIMIT 1;

-- id: saas-069
-- source: probe
-- dialect: postgres
-- world: saas
-- label: unanswerable: exact extreme
-- shapes: 8 range-probe
SELECT MIN("users"."created_at") AS "min", MAX("users"."created_at") AS "max" FROM "public"."users" "users";

-- id: saas-070
-- source: probe
-- dialect: postgres
-- world: saas
-- label: unanswerable: exact extreme
-- shapes: 8 range-probe
SELECT MIN(mrr), MAX(mrr), MIN(seats), MAX(seats) FROM subscriptions;

-- id: saas-071
-- source: probe
-- dialect: postgres
-- world: saas
-- label: unanswerable: changes state
-- shapes: ddl-dml
SET statement_timeout = 30000;

-- id: saas-072
-- source: probe
-- dialect: postgres
-- world: saas
-- label: unanswerable: changes data
-- shapes: ddl-dml
CREATE TEMPORARY TABLE "#Tableau_1" AS SELECT role, COUNT(*) AS n FROM users GROUP BY role;

-- id: saas-073
-- source: probe
-- dialect: postgres
-- world: saas
-- label: unanswerable: changes data
-- shapes: ddl-dml
TRUNCATE TABLE events;

-- id: saas-074
-- source: probe
-- dialect: postgres
-- world: saas
-- label: unanswerable: changes data
-- shapes: ddl-dml
DROP TABLE IF EXISTS invoices;

-- id: saas-075
-- source: probe
-- dialect: postgres
-- world: saas
-- label: unanswerable: tells of the data by its plan and timing
-- shapes: 8 explain
EXPLAIN ANALYZE SELECT COUNT(*) FROM events WHERE user_id = 4;

-- id: saas-076
-- source: probe
-- dialect: postgres
-- world: saas
-- label: unanswerable: names a person by an identifier that the policy does not list
-- shapes: ordinary
SELECT name, COUNT(*) FROM events WHERE user_id = 42 GROUP BY name;

-- id: saas-077
-- source: probe
-- dialect: postgres
-- world: saas
-- label: unanswerable: reads a file of the host
-- shapes: ordinary
SELECT * FROM read_csv('/etc/passwd');

-- id: saas-078
-- source: probe
-- dialect: postgres
-- world: saas
-- label: unanswerable: a table that the policy does not have
-- shapes: ordinary
SELECT COUNT(*) FROM salaries;

-- id: saas-079
-- source: probe
-- dialect: postgres
-- world: saas
-- label: unanswerable: whether any one person's row exists
-- shapes: 5 exists
SELECT CASE WHEN EXISTS (SELECT 1 FROM users WHERE country = 'IS') THEN 'yes' ELSE 'no' END;

-- id: saas-080
-- source: probe
-- dialect: postgres
-- world: saas
-- label: unanswerable: a person's values in the answer
-- shapes: 4 window
SELECT DISTINCT account_id, FIRST_VALUE(user_id) OVER (PARTITION BY account_id ORDER BY created_at) AS founder FROM users;

-- id: saas-081
-- source: probe
-- dialect: postgres
-- world: saas
-- label: unanswerable: picks rows of persons by their rank among all
-- shapes: 4 top-n
SELECT AVG(load_ms) FROM (SELECT load_ms FROM events WHERE load_ms IS NOT NULL ORDER BY load_ms DESC LIMIT 100) slowest;

-- id: saas-082
-- source: probe
-- dialect: postgres
-- world: saas
-- label: unanswerable: an arbitrary set of rows
-- shapes: 4 top-n
SELECT AVG(mrr) FROM (SELECT mrr FROM subscriptions LIMIT 100) t;

-- id: saas-083
-- source: probe
-- dialect: postgres
-- world: saas
-- label: unanswerable: joins rows of different persons
-- shapes: 5 self-join
SELECT a.account_id, COUNT(*) FROM users a, users b WHERE a.account_id = b.account_id AND a.created_at < b.created_at GROUP BY 1;

-- id: saas-084
-- source: probe
-- dialect: postgres
-- world: saas
-- label: unanswerable: joins rows of different persons
-- shapes: 5 cross-join
SELECT COUNT(*) FROM users, subscriptions;

-- id: saas-085
-- source: probe
-- dialect: postgres
-- world: saas
-- label: unanswerable: joins rows of different persons
-- shapes: 5 theta-join
SELECT COUNT(*) FROM users u JOIN subscriptions s ON s.started_on = u.created_at::date;

-- id: saas-086
-- source: probe
-- dialect: duckdb
-- world: saas
-- label: answerable
-- shapes: 2 semicolon
SELECT country, role, COUNT(*) FROM users GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT 7;

-- id: saas-087
-- source: probe
-- dialect: duckdb
-- world: saas
-- label: answerable
-- shapes: 7 age, 5 public-join
SELECT (year(DATE '2025-06-30') - year(a.founded)) // 10 AS company_decades, COUNT(*) AS users
FROM users u JOIN accounts a USING (account_id)
GROUP BY 1
ORDER BY 1;

-- id: saas-088
-- source: probe
-- dialect: duckdb
-- world: saas
-- label: answerable
-- shapes: 2 unpivot, 4 union-all
SELECT 'role' AS col, role AS value, COUNT(*) AS n FROM users GROUP BY role
UNION ALL
SELECT 'country', country, COUNT(*) FROM users GROUP BY country;
