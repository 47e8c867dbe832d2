-- a parent with its children
SELECT COUNT(*), SUM(l.quantity), SUM(o.amount) FROM orders o JOIN lines l ON o.id = l.order_id

-- a child with its parent
SELECT COUNT(*), SUM(l.quantity), SUM(o.amount) FROM lines l JOIN orders o ON l.order_id = o.id WHERE o.status = 'paid'

-- three along keys
SELECT COUNT(*), SUM(c.age), SUM(o.amount), SUM(l.quantity) FROM lines l JOIN orders o ON o.id = l.order_id JOIN customers c ON c.id = o.customer_id

-- three along keys, from the top
SELECT COUNT(*), SUM(c.age), SUM(l.quantity) FROM customers c JOIN orders o ON o.customer_id = c.id JOIN lines l ON l.order_id = o.id

-- LEFT JOIN from the parent
SELECT COUNT(*), COUNT(l.quantity), SUM(o.amount) FROM orders o LEFT JOIN lines l ON l.order_id = o.id

-- LEFT JOIN from the parent, filtered
SELECT COUNT(*), COUNT(l.quantity), SUM(o.amount) FROM orders o LEFT JOIN lines l ON l.order_id = o.id AND l.quantity > 1

-- LEFT JOIN from the child
SELECT COUNT(*), SUM(o.amount) FROM lines l LEFT JOIN orders o ON o.id = l.order_id AND o.status = 'paid'

-- RIGHT JOIN to the parent
SELECT COUNT(*), COUNT(l.quantity) FROM lines l RIGHT JOIN orders o ON l.order_id = o.id

-- children of one parent
SELECT COUNT(*), SUM(l.quantity), SUM(p.paid) FROM lines l JOIN payments p ON p.order_id = l.order_id

-- USING the name of the key
SELECT COUNT(*), SUM(l.quantity), SUM(p.paid) FROM lines l JOIN payments p USING (order_id)

-- NATURAL JOIN on the key
SELECT COUNT(*), SUM(quantity * paid) FROM (SELECT order_id, quantity FROM lines) l NATURAL JOIN (SELECT order_id, paid FROM payments) p

-- the unit of a table that reaches it through another
SELECT COUNT(DISTINCT customer_id), COUNT(*) FROM lines

-- the same, joined
SELECT COUNT(DISTINCT c.id) FROM customers c JOIN orders o ON o.customer_id = c.id JOIN lines l ON l.order_id = o.id WHERE l.quantity > 1

-- grouped by the unit
SELECT COUNT(*), SUM(LEAST(n, 99)) FROM (SELECT customer_id, COUNT(*) AS n FROM orders GROUP BY customer_id) AS t

-- grouped by the unit through two tables
SELECT COUNT(*), SUM(GREATEST(-99, LEAST(q, 99))) FROM (SELECT customer_id, SUM(quantity) AS q FROM lines GROUP BY customer_id) AS t

-- on the unit with another table
SELECT COUNT(*), SUM(v.score) FROM lines l JOIN visits v ON v.customer_id = l.customer_id

-- grouped by the key
SELECT COUNT(*), SUM(GREATEST(-99, LEAST(q, 99))) FROM (SELECT order_id, SUM(quantity) AS q FROM lines GROUP BY order_id) AS t WHERE q > 2

-- grouped by the key, joined with the parent
SELECT COUNT(*), SUM(GREATEST(-99, LEAST(q, 99))), SUM(o.amount) FROM orders o JOIN (SELECT order_id, SUM(quantity) AS q FROM lines GROUP BY order_id) AS t ON t.order_id = o.id

-- subqueries that pass keys on
WITH paid AS (SELECT id, customer_id, amount FROM orders WHERE status = 'paid') SELECT COUNT(*), SUM(amount), COUNT(DISTINCT paid.customer_id) FROM lines JOIN paid ON paid.id = lines.order_id

-- with a public table
SELECT COUNT(*), SUM(weight), COUNT(city) FROM orders o JOIN lines l ON l.order_id = o.id JOIN products p USING (product) LEFT JOIN stores s ON s.store = o.store

-- by groups
SELECT o.status, COUNT(*), SUM(l.quantity) FROM orders o JOIN lines l ON o.id = l.order_id WHERE o.status IS NOT NULL GROUP BY o.status
