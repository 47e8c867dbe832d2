-- a count of the unit's own rows
SELECT n > 1, COUNT(*), SUM(age) FROM (SELECT age, (SELECT COUNT(*) FROM visits v WHERE v.customer_id = c.id) AS n FROM customers c) AS t GROUP BY n > 1

-- a count by its cap
SELECT SUM(n) FROM (SELECT (SELECT COUNT(score) FROM visits v WHERE v.customer_id = c.id AND score > 0) AS n FROM customers c) AS t

-- counts in WHERE
SELECT COUNT(*), SUM(age) FROM customers c WHERE (SELECT COUNT(*) FROM visits v WHERE v.customer_id = c.id) = 0 OR (SELECT COUNT(*) FROM orders o WHERE o.customer_id = c.id AND o.status = 'paid') > 1

-- a sum in WHERE, NULL where there is nothing
SELECT COUNT(*) FROM customers c WHERE (SELECT SUM(amount) FROM orders o WHERE o.customer_id = c.id) IS NULL

-- NOT of a comparison with NULL
SELECT COUNT(*) FROM customers c WHERE NOT (SELECT SUM(amount) FROM orders o WHERE o.customer_id = c.id) > 2

-- a value with aggregates around it
SELECT SUM(GREATEST(-50, LEAST(s, 50))) FROM (SELECT COALESCE((SELECT SUM(score) FROM visits v WHERE v.customer_id = c.id), 0) - 1 AS s FROM customers c) AS t

-- an expression of aggregates
SELECT COUNT(*) FROM customers c WHERE (SELECT COALESCE(MAX(score), -9) - COALESCE(MIN(score), 9) + COUNT(*) FROM visits v WHERE v.customer_id = c.id) > 0

-- an average
SELECT COUNT(*) FROM visits v WHERE score > (SELECT AVG(score) FROM visits w WHERE w.customer_id = v.customer_id)

-- least and largest
SELECT SUM((SELECT MAX(score) FROM visits v WHERE v.customer_id = c.id)), SUM((SELECT MIN(score) FROM visits v WHERE v.customer_id = c.id)) FROM customers c

-- a filtered count, and one of different values
SELECT SUM(LEAST(a, 9)), SUM(LEAST(b, 9)) FROM (SELECT (SELECT COUNT(*) FILTER (WHERE score > 1) FROM visits v WHERE v.customer_id = c.id) AS a, (SELECT COUNT(DISTINCT score) FROM visits v WHERE v.customer_id = c.id) AS b FROM customers c) AS t

-- grouped by the value
SELECT (SELECT COUNT(*) FROM orders o WHERE o.customer_id = c.id) > 1 AS n, COUNT(*) FROM customers c GROUP BY 1

-- grouped by its name
SELECT (SELECT COUNT(*) FROM orders o WHERE o.customer_id = c.id) > 1 AS n, COUNT(*) FROM customers c GROUP BY n

-- along a key
SELECT COUNT(*), SUM(amount) FROM orders o WHERE (SELECT SUM(quantity) FROM lines l WHERE l.order_id = o.id) > 1

-- along a key, to the parent
SELECT COUNT(*), SUM(quantity) FROM lines l WHERE (SELECT amount FROM orders o WHERE o.id = l.order_id) > 0

-- along a key and more
SELECT COUNT(*) FROM orders o WHERE (SELECT COUNT(*) FROM lines l WHERE l.order_id = o.id AND l.product = o.store) > 0

-- the unit and more
SELECT COUNT(*) FROM orders o WHERE (SELECT COUNT(*) FROM visits v WHERE v.customer_id = o.customer_id AND v.score = o.amount) > 0

-- a condition on the row outside
SELECT COUNT(*), SUM(amount) FROM orders o WHERE (SELECT COUNT(*) FROM lines l WHERE l.order_id = o.id AND o.amount > 1) = 0

-- a condition on the row outside, of a value that is looked up
SELECT COUNT(*), SUM(quantity) FROM lines l WHERE (SELECT weight FROM products p WHERE p.product = l.product AND l.quantity > 1) IS NULL

-- names without a table
SELECT COUNT(*) FROM customers WHERE (SELECT COUNT(*) FROM visits WHERE customer_id = id) > 1

-- a public table by anything
SELECT COUNT(*), SUM(quantity) FROM lines l WHERE (SELECT COUNT(*) FROM prices p WHERE p.product = l.product) > 1

-- a public value
SELECT COUNT(*), SUM(quantity) FROM lines WHERE quantity >= (SELECT AVG(weight) FROM products)

-- a public value of nothing
SELECT COUNT(*) FROM lines WHERE (SELECT COUNT(*) FROM products WHERE weight > 1000) = 0 AND (SELECT MAX(weight) FROM products WHERE weight > 1000) IS NULL

-- a public value that is looked up
SELECT SUM((SELECT weight FROM products p WHERE p.product = l.product)), COUNT(*) FROM lines l

-- a public value by two columns
SELECT SUM((SELECT cost FROM prices p WHERE p.product = s.product AND p.year = s.year)) FROM sales s

-- a public text that is compared
SELECT COUNT(*) FROM lines l WHERE (SELECT origin FROM products p WHERE p.product = l.product) = product

-- over a join of public tables
SELECT COUNT(*) FROM lines l WHERE (SELECT MAX(p.cost) FROM prices p JOIN products q ON p.product = q.product WHERE q.product = l.product AND q.weight > 0) > 1

-- over a join of the unit's rows
SELECT COUNT(*) FROM customers c WHERE (SELECT SUM(l.quantity * o.amount) FROM orders o JOIN lines l ON l.order_id = o.id WHERE o.customer_id = c.id) > 1

-- in CASE and in an aggregate
SELECT SUM(CASE WHEN (SELECT COUNT(*) FROM lines l WHERE l.order_id = o.id) > 1 THEN amount ELSE 0 END), COUNT(*) FILTER (WHERE (SELECT COUNT(*) FROM lines l WHERE l.order_id = o.id) = 0) FROM orders o

-- in a subquery that groups by the unit
SELECT SUM(GREATEST(-50, LEAST(s, 50))) FROM (SELECT customer_id, SUM((SELECT weight FROM products p WHERE p.product = s.product)) AS s FROM sales s GROUP BY customer_id) AS t

-- within another
SELECT COUNT(*) FROM customers c WHERE (SELECT COUNT(*) FROM orders o WHERE o.customer_id = c.id AND (SELECT COUNT(*) FROM lines l WHERE l.order_id = o.id) > 1) > 0

-- with EXISTS inside and beside it
SELECT COUNT(*) FROM customers c WHERE (SELECT COUNT(*) FROM orders o WHERE o.customer_id = c.id AND EXISTS (SELECT 1 FROM lines l WHERE l.order_id = o.id)) > 0 AND NOT EXISTS (SELECT 1 FROM visits v WHERE v.customer_id = c.id AND v.score > 3)

-- in the condition of a join
SELECT COUNT(*) FROM orders o JOIN customers c ON c.id = o.customer_id AND o.amount = (SELECT MAX(p.amount) FROM orders p WHERE p.customer_id = c.id)

-- with LIMIT of what is one row
SELECT COUNT(*) FROM customers c WHERE (SELECT COUNT(*) FROM visits v WHERE v.customer_id = c.id LIMIT 1) > 1
