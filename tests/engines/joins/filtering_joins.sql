-- SEMI JOIN on the unit
SELECT COUNT(*), SUM(score) FROM visits SEMI JOIN sales USING (customer_id)

-- ANTI JOIN on the unit
SELECT COUNT(*), SUM(score) FROM visits ANTI JOIN sales USING (customer_id)

-- SEMI JOIN with ON and a filter
SELECT status, COUNT(*), SUM(amount) FROM orders o SEMI JOIN visits v ON v.customer_id = o.customer_id AND v.score > 1 WHERE amount > -1 AND status IS NOT NULL GROUP BY status

-- ANTI JOIN with conditions on both sides
SELECT COUNT(*), SUM(amount) FROM orders o ANTI JOIN visits v ON v.customer_id = o.customer_id AND v.score > 1 AND o.amount > 0 AND v.score > o.amount

-- along a key
SELECT COUNT(*), SUM(amount) FROM orders SEMI JOIN lines ON orders.id = lines.order_id

-- not along a key
SELECT COUNT(*), SUM(amount) FROM orders ANTI JOIN lines ON orders.id = lines.order_id AND quantity > 1

-- a public table
SELECT COUNT(*), SUM(quantity) FROM lines l SEMI JOIN prices p ON p.product = l.product AND p.cost > 0

-- not in a public table
SELECT COUNT(*), SUM(quantity) FROM lines ANTI JOIN prices USING (product)

-- by two columns
SELECT COUNT(*) FROM sales SEMI JOIN prices USING (product, year)

-- NATURAL
SELECT COUNT(*) FROM sales NATURAL SEMI JOIN prices

-- before another join
SELECT COUNT(*), SUM(score) FROM customers c SEMI JOIN orders o ON o.customer_id = c.id JOIN visits v ON v.customer_id = c.id

-- after another join
SELECT COUNT(*), SUM(amount) FROM customers c JOIN orders o ON o.customer_id = c.id ANTI JOIN visits v ON v.customer_id = c.id

-- before a LEFT JOIN
SELECT COUNT(*), SUM(age), COUNT(score) FROM customers c SEMI JOIN orders o ON o.customer_id = c.id LEFT JOIN visits v ON v.customer_id = c.id

-- on the right side of a LEFT JOIN
SELECT COUNT(*), SUM(age), COUNT(t.score) FROM customers c LEFT JOIN (SELECT customer_id, score FROM visits ANTI JOIN sales USING (customer_id)) AS t ON t.customer_id = c.id

-- a subquery on the right
SELECT COUNT(*) FROM customers c SEMI JOIN (SELECT customer_id, COUNT(*) AS n FROM orders GROUP BY customer_id) AS o ON o.customer_id = c.id AND n > 1

-- with itself
SELECT COUNT(*) FROM visits a ANTI JOIN visits b ON a.customer_id = b.customer_id AND b.score > a.score

-- beside a comma
SELECT COUNT(*), SUM(amount) FROM orders o, customers c SEMI JOIN visits v ON v.customer_id = c.id WHERE o.customer_id = c.id

-- the star of a subquery
SELECT COUNT(*), SUM(score) FROM (SELECT * FROM visits SEMI JOIN sales USING (customer_id)) AS t

-- grouped by the unit
SELECT COUNT(*), SUM(LEAST(n, 9)) FROM (SELECT customer_id, COUNT(*) AS n FROM visits SEMI JOIN sales USING (customer_id) GROUP BY customer_id) AS t
