-- INTERSECT of units
SELECT COUNT(*) FROM (SELECT customer_id FROM visits INTERSECT SELECT customer_id FROM sales WHERE year > 0) AS t

-- EXCEPT of units
SELECT COUNT(*) FROM (SELECT customer_id FROM visits EXCEPT SELECT customer_id FROM sales) AS t

-- UNION of units
SELECT COUNT(*) FROM (SELECT customer_id FROM visits UNION SELECT customer_id FROM sales) AS t

-- UNION of units and values
SELECT COUNT(*), SUM(v), COUNT(v) FROM (SELECT customer_id, score AS v FROM visits UNION SELECT customer_id, year FROM sales) AS t

-- INTERSECT with NULLs
SELECT COUNT(*), SUM(v), COUNT(v) FROM (SELECT customer_id, score AS v FROM visits INTERSECT SELECT customer_id, year FROM sales) AS t

-- EXCEPT with NULLs
SELECT COUNT(*), SUM(v), COUNT(v) FROM (SELECT customer_id, score AS v FROM visits EXCEPT SELECT customer_id, year FROM sales) AS t

-- three parts
SELECT COUNT(*), SUM(v) FROM (SELECT customer_id, score AS v FROM visits EXCEPT SELECT customer_id, year FROM sales EXCEPT SELECT customer_id, amount FROM orders) AS t

-- three parts of an INTERSECT
SELECT COUNT(*) FROM (SELECT customer_id FROM visits INTERSECT SELECT customer_id FROM sales INTERSECT SELECT customer_id FROM orders) AS t

-- three parts of a UNION
SELECT COUNT(*), SUM(v) FROM (SELECT customer_id, score AS v FROM visits UNION SELECT customer_id, year FROM sales UNION SELECT customer_id, amount FROM orders) AS t

-- brackets
SELECT COUNT(*) FROM ((SELECT customer_id FROM visits UNION SELECT customer_id FROM sales) EXCEPT SELECT customer_id FROM orders) AS t

-- a key
SELECT COUNT(*) FROM (SELECT id FROM orders WHERE amount > 0 EXCEPT SELECT order_id FROM lines) AS t

-- a key of both
SELECT COUNT(*) FROM (SELECT order_id FROM payments INTERSECT SELECT order_id FROM lines WHERE quantity > 0) AS t

-- a key and values
SELECT COUNT(*), SUM(q) FROM (SELECT order_id, quantity AS q FROM lines UNION SELECT order_id, paid FROM payments) AS t

-- joined on
SELECT COUNT(*), SUM(amount) FROM orders JOIN (SELECT order_id FROM payments UNION SELECT order_id FROM lines) AS t ON t.order_id = orders.id

-- the unit joined on
SELECT COUNT(*), SUM(age) FROM customers JOIN (SELECT customer_id FROM visits EXCEPT SELECT customer_id FROM sales) AS t ON t.customer_id = customers.id

-- in IN
SELECT COUNT(*), SUM(age) FROM customers WHERE id IN (SELECT customer_id FROM visits INTERSECT SELECT customer_id FROM orders)

-- not in
SELECT COUNT(*), SUM(age) FROM customers WHERE id NOT IN (SELECT customer_id FROM visits UNION SELECT customer_id FROM orders)

-- by WITH, grouped
WITH t AS (SELECT customer_id, status FROM orders EXCEPT SELECT customer_id, 'paid' FROM visits) SELECT status, COUNT(*) FROM t WHERE status <> 'x' GROUP BY status

-- public values
SELECT COUNT(*), SUM(quantity) FROM lines WHERE product IN (SELECT product FROM products INTERSECT SELECT product FROM prices)

-- public values without others
SELECT COUNT(*) FROM lines WHERE product IN (SELECT product FROM prices EXCEPT SELECT origin FROM products)

-- public values joined on
SELECT COUNT(*) FROM lines JOIN (SELECT product FROM products UNION SELECT product FROM prices) AS p USING (product)

-- a part of which a column is NULL, first and last
SELECT COUNT(*), COUNT(x), SUM(x), COUNT(p) FROM (SELECT NULL AS x, product AS p FROM lines UNION ALL SELECT score, NULL FROM visits UNION ALL SELECT NULL, status FROM orders) AS t

-- NULLs of two parts before a number
SELECT COUNT(*), SUM(x) FROM (SELECT NULL AS x FROM lines UNION ALL SELECT CAST(NULL AS INT) FROM orders UNION ALL SELECT score FROM visits) AS t

-- integers beside floats
SELECT COUNT(*), SUM(CASE WHEN x > 0.75 THEN 1 ELSE 0 END) FROM (SELECT score AS x FROM visits UNION ALL SELECT quantity / 2.0 FROM lines) AS t
