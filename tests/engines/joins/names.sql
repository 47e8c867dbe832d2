-- a schema
SELECT COUNT(*) FROM public.orders

-- three parts, in quotes
SELECT COUNT(*), SUM("o"."amount") FROM "shop"."public"."orders" AS "o"

-- a column of three parts
SELECT SUM(public.orders.amount) FROM public.orders WHERE public.orders.amount > 2

-- backticks
SELECT COUNT(*), SUM(`orders`.`amount`) FROM `shop.public.orders` WHERE `amount` >= 1

-- a name of WITH, with columns
WITH t(c, n) AS (SELECT customer_id, COUNT(*) FROM orders GROUP BY customer_id) SELECT COUNT(*), SUM(LEAST(n, 50)) FROM t

-- a hint to materialize
WITH t AS MATERIALIZED (SELECT amount FROM orders), s AS NOT MATERIALIZED (SELECT amount FROM t) SELECT SUM(amount) FROM s

-- a subquery with names for its columns
SELECT SUM(v) FROM (SELECT amount, status FROM orders) AS t(v, s) WHERE s = 'paid'

-- fewer names than columns
SELECT SUM(v), COUNT(status) FROM (SELECT amount, status FROM orders) AS t(v)

-- names for a union
SELECT SUM(v) FROM (SELECT amount FROM orders UNION ALL SELECT score FROM visits) AS t(v)

-- a join in brackets with a name
SELECT COUNT(*), SUM(j.amount), SUM(j.size) FROM (orders JOIN stores USING (store)) AS j WHERE j.size > 0

-- a join in brackets
SELECT COUNT(*), SUM(price) FROM (lines JOIN products USING (product))

-- a name of the select list in WHERE
SELECT status AS w, COUNT(*), SUM(amount) AS s FROM orders WHERE w <> 'open' AND amount > 0 GROUP BY w

-- a name of the select list inside a key and in IN
SELECT amount + 1 AS a, COUNT(*) AS n FROM orders WHERE a IN (SELECT weight FROM products) GROUP BY a HAVING n > 1000

-- a column comes before a name of the select list
SELECT status, COUNT(*), SUM(amount) FROM (SELECT -amount AS amount, status FROM orders WHERE amount > 0) AS t WHERE status <> 'x' GROUP BY status
