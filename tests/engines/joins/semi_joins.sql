-- IN a public table
SELECT COUNT(*), SUM(quantity) FROM lines WHERE product IN (SELECT product FROM products WHERE weight > 1)

-- NOT IN a public table
SELECT COUNT(*) FROM lines WHERE product NOT IN (SELECT product FROM products WHERE weight > 1)

-- NOT IN a public column that may hold NULL
SELECT COUNT(*) FROM lines WHERE product NOT IN (SELECT origin FROM products)

-- NOT IN with NULLs filtered
SELECT COUNT(*) FROM lines WHERE product NOT IN (SELECT origin FROM products WHERE origin IS NOT NULL)

-- NOT IN nothing
SELECT COUNT(*) FROM lines WHERE product NOT IN (SELECT origin FROM products WHERE weight > 1000)

-- IS NULL of IN
SELECT COUNT(*) FROM lines WHERE (product IN (SELECT origin FROM products)) IS NULL

-- NOT of an AND with IN
SELECT COUNT(*) FROM lines WHERE NOT (quantity > 1 AND product IN (SELECT origin FROM products WHERE weight > 1))

-- IN under OR
SELECT COUNT(*) FROM lines WHERE quantity > 3 OR product IN (SELECT product FROM products WHERE weight < 2)

-- IN inside an aggregate
SELECT COUNT(*) FILTER (WHERE product IN (SELECT product FROM products WHERE weight < 2)), SUM(CASE WHEN product NOT IN (SELECT origin FROM products) THEN quantity END) FROM lines

-- EXISTS in a public table
SELECT COUNT(*) FROM lines l WHERE EXISTS (SELECT 1 FROM products p WHERE p.product = l.product AND p.weight > 1)

-- NOT EXISTS in a public table
SELECT COUNT(*) FROM lines l WHERE NOT EXISTS (SELECT * FROM products p WHERE p.origin = l.product)

-- EXISTS by itself
SELECT COUNT(*) FROM lines WHERE EXISTS (SELECT 1 FROM products WHERE weight > 2)

-- EXISTS of an empty set
SELECT COUNT(*) FROM lines WHERE NOT EXISTS (SELECT 1 FROM products WHERE weight > 2000 LIMIT 1)

-- EXISTS in the unit's own rows
SELECT COUNT(*), SUM(age) FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.id AND o.amount > 2)

-- NOT EXISTS in the unit's own rows
SELECT COUNT(*), SUM(age) FROM customers c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.id AND o.status = 'paid')

-- the unit IN a subquery
SELECT COUNT(*) FROM visits WHERE customer_id IN (SELECT customer_id FROM orders WHERE amount > 2)

-- the unit NOT IN a subquery
SELECT COUNT(*) FROM visits WHERE customer_id NOT IN (SELECT customer_id FROM orders WHERE amount > 2)

-- the unit IN a grouped subquery
SELECT COUNT(*), SUM(amount) FROM orders WHERE customer_id IN (SELECT customer_id FROM visits GROUP BY customer_id HAVING COUNT(*) > 1)

-- along a key
SELECT COUNT(*), SUM(amount) FROM orders o WHERE EXISTS (SELECT 1 FROM lines l WHERE l.order_id = o.id AND l.quantity > 2)

-- not along a key
SELECT COUNT(*), SUM(amount) FROM orders o WHERE NOT EXISTS (SELECT 1 FROM lines l WHERE l.order_id = o.id)

-- a key IN a subquery
SELECT COUNT(*), SUM(amount) FROM orders WHERE id IN (SELECT order_id FROM lines WHERE quantity > 2)

-- a key IN a grouped subquery
SELECT COUNT(*), SUM(amount) FROM orders WHERE id IN (SELECT order_id FROM lines GROUP BY order_id HAVING SUM(quantity) > 3)

-- from the child
SELECT COUNT(*) FROM lines WHERE order_id IN (SELECT id FROM orders WHERE status = 'paid')

-- with another column
SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = v.customer_id AND o.amount = v.score)

-- NOT IN the unit's own values
SELECT COUNT(*) FROM visits v WHERE v.score NOT IN (SELECT o.amount FROM orders o WHERE o.customer_id = v.customer_id)

-- IN the unit's own values, as a value
SELECT COUNT(*) FROM visits v WHERE (v.score IN (SELECT o.amount FROM orders o WHERE o.customer_id = v.customer_id)) IS NOT NULL

-- conditions on the row outside
SELECT COUNT(*) FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.id AND c.age > 2)

-- NOT with conditions on the row outside
SELECT COUNT(*) FROM customers c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.id AND c.age > 2)

-- two at once
SELECT COUNT(*) FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.id) AND NOT EXISTS (SELECT 1 FROM visits v WHERE v.customer_id = c.id)

-- one inside another
SELECT COUNT(*) FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.id AND EXISTS (SELECT 1 FROM lines l WHERE l.order_id = o.id AND l.quantity > 1))

-- a join inside
SELECT COUNT(*) FROM customers c WHERE EXISTS (SELECT 1 FROM orders o JOIN lines l ON l.order_id = o.id JOIN products p ON p.product = l.product WHERE o.customer_id = c.id AND p.weight > 1)

-- commas inside
SELECT COUNT(*) FROM customers c WHERE c.id IN (SELECT o.customer_id FROM orders o, lines l, products p WHERE l.order_id = o.id AND p.product = l.product AND p.weight > 1)

-- commas outside
SELECT COUNT(*), SUM(l.quantity) FROM orders o, lines l WHERE o.id = l.order_id AND o.customer_id IN (SELECT customer_id FROM visits) AND l.product IN (SELECT product FROM products)

-- in a subquery
SELECT COUNT(*), SUM(x) FROM (SELECT amount AS x FROM orders o WHERE o.customer_id IN (SELECT customer_id FROM visits)) t WHERE x > 0

-- in a grouped subquery
SELECT COUNT(*), SUM(LEAST(n, 50)) FROM (SELECT customer_id, COUNT(*) FILTER (WHERE EXISTS (SELECT 1 FROM lines l WHERE l.order_id = o.id)) AS n FROM orders o GROUP BY customer_id) t

-- grouped by it
SELECT (product IN (SELECT product FROM products)) IS TRUE AS known, COUNT(*) FROM lines GROUP BY (product IN (SELECT product FROM products)) IS TRUE

-- a union inside
SELECT COUNT(*) FROM customers WHERE id IN (SELECT customer_id FROM orders UNION ALL SELECT customer_id FROM visits)

-- a comparison with the row outside
SELECT COUNT(*), SUM(amount) FROM orders o WHERE EXISTS (SELECT 1 FROM lines l WHERE l.order_id = o.id AND l.quantity > o.amount)

-- a comparison with the row outside, turned, under NOT
SELECT COUNT(*), SUM(amount) FROM orders o WHERE NOT EXISTS (SELECT 1 FROM visits v WHERE v.customer_id = o.customer_id AND o.amount >= v.score)

-- other values of the same unit
SELECT COUNT(*), SUM(amount) FROM orders o WHERE EXISTS (SELECT 1 FROM orders p WHERE p.customer_id = o.customer_id AND p.amount <> o.amount)

-- a public table, compared
SELECT COUNT(*) FROM lines l WHERE EXISTS (SELECT 1 FROM products p WHERE p.origin = l.product AND p.weight < l.quantity + 1)

-- IN, compared
SELECT COUNT(*) FROM visits v WHERE v.score IN (SELECT amount FROM orders o WHERE o.customer_id = v.customer_id AND o.amount <= v.score)

-- a key NOT IN a subquery
SELECT COUNT(*), SUM(amount) FROM orders WHERE id NOT IN (SELECT order_id FROM lines WHERE quantity > 2)

-- from the child, NOT IN
SELECT COUNT(*) FROM lines WHERE order_id NOT IN (SELECT id FROM orders WHERE status = 'paid')

-- in the condition of a join
SELECT COUNT(*), SUM(size) FROM orders o JOIN stores s ON s.store = o.store AND o.customer_id IN (SELECT customer_id FROM visits) AND EXISTS (SELECT 1 FROM products p WHERE p.origin = s.store)

-- a list of values IN a public table
SELECT COUNT(*), SUM(year) FROM sales WHERE (product, year) IN (SELECT product, year FROM prices WHERE cost > 0)

-- a list of values with the unit
SELECT COUNT(*), SUM(amount) FROM orders WHERE (customer_id, amount) IN (SELECT customer_id, score FROM visits) OR amount > 3

-- a list of values IN a grouped subquery
SELECT COUNT(*), SUM(amount) FROM orders WHERE (customer_id, amount) IN (SELECT customer_id, MAX(amount) FROM orders GROUP BY customer_id)

-- equal lists of values
SELECT COUNT(*) FROM orders o JOIN visits v ON (v.customer_id, v.score) = (o.customer_id, o.amount)
