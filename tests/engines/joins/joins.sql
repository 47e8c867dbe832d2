-- a comma
SELECT COUNT(*), SUM(l.quantity) FROM lines l, products p WHERE l.product = p.product

-- a comma, names without tables, and more conditions
SELECT COUNT(*), SUM(quantity * price) FROM lines, products p WHERE lines.product = p.product AND quantity > 1 AND price < 4

-- three by commas, not in order
SELECT COUNT(*), SUM(l.quantity) FROM products p, orders o, lines l WHERE l.order_id = o.id AND l.product = p.product AND o.status = 'paid'

-- four by commas
SELECT COUNT(*), SUM(l.quantity * p.price), SUM(c.age) FROM customers c, orders o, lines l, products p WHERE c.id = o.customer_id AND o.id = l.order_id AND p.product = l.product AND c.age > 2

-- a comma and JOIN
SELECT COUNT(*), SUM(o.amount) FROM customers c, orders o JOIN stores s ON s.store = o.store WHERE c.id = o.customer_id

-- CROSS JOIN with WHERE
SELECT COUNT(*), SUM(weight) FROM lines CROSS JOIN products WHERE products.product = lines.product

-- CROSS JOIN inside a LEFT JOIN
SELECT COUNT(*), SUM(weight), COUNT(s.city) FROM orders o CROSS JOIN customers c LEFT JOIN stores s ON s.store = o.store JOIN lines l ON l.order_id = o.id JOIN products p ON p.product = l.product WHERE c.id = o.customer_id

-- an equality in every branch of OR
SELECT COUNT(*), SUM(quantity) FROM lines l, products p WHERE (p.product = l.product AND quantity < 2 AND p.weight > 1) OR (p.product = l.product AND quantity > 2)

-- ON with an OR that demands an equality
SELECT COUNT(*) FROM lines l JOIN products p ON (p.product = l.product AND p.weight > 1) OR (p.product = l.product AND quantity > 2)

-- RIGHT JOIN
SELECT COUNT(*), COUNT(p.price), SUM(quantity) FROM products p RIGHT JOIN lines l USING (product)

-- RIGHT JOIN, columns in the order of the text
SELECT COUNT(a), SUM(b), COUNT(DISTINCT c) FROM (SELECT * FROM (SELECT store AS a, size AS b FROM stores) AS s RIGHT JOIN (SELECT customer_id AS c, store AS d, amount AS e FROM orders) AS o ON s.a = o.d) AS t WHERE e > 0

-- NATURAL JOIN
SELECT COUNT(*), SUM(price) FROM lines NATURAL JOIN products

-- NATURAL LEFT JOIN
SELECT COUNT(*), COUNT(city) FROM orders NATURAL LEFT JOIN stores

-- NATURAL JOIN on two columns
SELECT COUNT(*), SUM(cost) FROM sales NATURAL JOIN prices

-- LEFT JOIN with a condition on the right side
SELECT COUNT(*), COUNT(p.price), SUM(p.weight) FROM lines l LEFT JOIN products p ON l.product = p.product AND p.weight > 1

-- LEFT JOIN with a condition on the left side
SELECT COUNT(*), COUNT(p.price), SUM(p.weight) FROM lines l LEFT JOIN products p ON l.product = p.product AND l.quantity > 1

-- LEFT JOIN with a condition on both sides
SELECT COUNT(*), COUNT(p.price), SUM(p.weight) FROM lines l LEFT JOIN products p ON l.product = p.product AND l.quantity > p.weight

-- LEFT JOIN with conditions of all kinds
SELECT COUNT(*), COUNT(s.city), SUM(s.size) FROM orders o LEFT JOIN stores s ON o.store = s.store AND s.size > 0 AND o.amount > 1 AND s.size <> o.amount AND TRUE

-- LEFT JOIN of private tables with conditions
SELECT COUNT(*), COUNT(v.score), SUM(v.score) FROM orders o LEFT JOIN visits v ON o.customer_id = v.customer_id AND v.score > 1 AND o.status = 'paid'

-- LEFT JOIN that never matches
SELECT COUNT(*), COUNT(p.price) FROM lines l LEFT JOIN products p ON l.product = p.product AND 1 = 2

-- LEFT JOIN of one row for each unit, compared
SELECT COUNT(*), COUNT(t.n) FROM orders o LEFT JOIN (SELECT customer_id, COUNT(*) AS n FROM visits GROUP BY customer_id) t ON o.customer_id = t.customer_id AND t.n > o.amount

-- a public table grouped
SELECT COUNT(*), SUM(LEAST(n, 99)) FROM orders o JOIN (SELECT store, COUNT(*) AS n, MAX(size) AS m FROM stores WHERE size > 0 GROUP BY store) s ON s.store = o.store

-- a public table grouped by two
SELECT COUNT(*), SUM(m) FROM sales s JOIN (SELECT product AS p, year AS y, MAX(cost) AS m FROM prices GROUP BY product, year) t ON s.product = t.p AND s.year = t.y

-- a public table grouped by an expression
SELECT COUNT(*), SUM(LEAST(n, 99)) FROM orders o JOIN (SELECT LOWER(city) AS c, COUNT(*) AS n FROM stores GROUP BY LOWER(city)) t ON t.c = o.status

-- a filtered public subquery
SELECT COUNT(*), SUM(w) FROM lines l JOIN (SELECT product AS p, weight AS w FROM products WHERE weight > 0) t ON t.p = l.product

-- a filtered public subquery by name
WITH heavy AS (SELECT product, weight FROM products WHERE weight > 1), same AS (SELECT * FROM heavy) SELECT COUNT(*), SUM(weight) FROM lines LEFT JOIN same USING (product)

-- a key of two columns
SELECT COUNT(*), SUM(cost) FROM sales s JOIN prices p ON s.product = p.product AND s.year = p.year

-- a key of two columns in a subquery
SELECT COUNT(*), SUM(cost) FROM sales JOIN (SELECT year, cost, product FROM prices WHERE cost > 0) p USING (product, year)

-- public tables in the other order
SELECT COUNT(*), SUM(weight), COUNT(city) FROM stores s JOIN products p ON p.origin = s.store JOIN lines l ON l.product = p.product

-- public tables joined on what many share
SELECT COUNT(*), SUM(LEAST(x.n, 99)) FROM lines l JOIN (SELECT p.product AS product, COUNT(*) AS n FROM products p JOIN products q ON p.origin = q.origin GROUP BY p.product) x ON x.product = l.product

-- FULL JOIN on the unit
SELECT COUNT(*), COUNT(o.amount), COUNT(v.score), SUM(o.amount), SUM(v.score) FROM orders o FULL JOIN visits v ON o.customer_id = v.customer_id

-- FULL JOIN USING, whose column is that of either side
SELECT COUNT(*), SUM(o.amount), SUM(v.score), COUNT(DISTINCT customer_id) FROM (SELECT customer_id, amount FROM orders) o FULL OUTER JOIN (SELECT customer_id, score FROM visits WHERE score > 1) v USING (customer_id)

-- FULL JOIN USING, with a side's own column
SELECT COUNT(*), COUNT(o.customer_id), COUNT(v.customer_id), COUNT(*) FILTER (WHERE o.customer_id IS NULL) FROM (SELECT customer_id, amount FROM orders) o FULL JOIN (SELECT customer_id, score FROM visits WHERE score > 1) v USING (customer_id)

-- FULL JOIN USING, rows of one side only
SELECT COUNT(*), SUM(v.score) FROM (SELECT customer_id, amount FROM orders WHERE amount > 20) o FULL JOIN (SELECT customer_id, score FROM visits) v USING (customer_id) WHERE o.customer_id IS NULL

-- FULL JOIN of one row for each unit
SELECT COUNT(*), SUM(LEAST(a.n, 9)), SUM(LEAST(b.n, 9)), COUNT(*) FILTER (WHERE a.n IS NULL) FROM (SELECT customer_id, COUNT(*) AS n FROM orders GROUP BY customer_id) a FULL JOIN (SELECT customer_id, COUNT(*) AS n FROM visits GROUP BY customer_id) b USING (customer_id)

-- FULL JOIN along a key
SELECT COUNT(*), SUM(l.quantity), SUM(p.paid) FROM lines l FULL JOIN payments p ON p.order_id = l.order_id

-- FULL JOIN on more than the unit
SELECT COUNT(*), SUM(o.amount), SUM(v.score) FROM orders o FULL JOIN visits v ON o.customer_id = v.customer_id AND o.amount = v.score

-- LEFT JOIN with a condition on both sides, where a row may find several
SELECT COUNT(*), SUM(amount), COUNT(score), SUM(score) FROM orders o LEFT JOIN visits v ON v.customer_id = o.customer_id AND v.score > o.amount

-- LEFT JOIN with conditions of all kinds
SELECT status, COUNT(*), SUM(score), COUNT(DISTINCT o.customer_id), COUNT(DISTINCT v.customer_id) FROM orders o LEFT JOIN visits v ON v.customer_id = o.customer_id AND o.amount <= v.score AND v.score < 4 AND o.status <> 'open' WHERE status <> 'x' GROUP BY status

-- LEFT JOIN with a condition on both sides, along a key
SELECT COUNT(*), SUM(amount), SUM(quantity), COUNT(DISTINCT o.customer_id) FROM orders o LEFT JOIN lines l ON l.order_id = o.id AND l.quantity <> o.amount

-- RIGHT JOIN with a condition on both sides
SELECT COUNT(*), SUM(amount), SUM(score) FROM visits v RIGHT JOIN orders o ON v.customer_id = o.customer_id AND v.score > o.amount

-- the star of a RIGHT JOIN with a condition on both sides
SELECT COUNT(*), SUM(x), SUM(y) FROM (SELECT * FROM (SELECT customer_id AS c, score AS x FROM visits) AS v RIGHT JOIN (SELECT customer_id AS d, amount AS y FROM orders) AS o ON c = d AND x > y) AS t

-- LEFT JOIN with a condition on both sides, of rows without a match
SELECT COUNT(*), SUM(amount) FROM orders o LEFT JOIN visits v ON v.customer_id = o.customer_id AND v.score > o.amount WHERE v.customer_id IS NULL

-- LEFT JOIN with a condition on both sides, with a value that is never NULL
SELECT COUNT(*), COUNT(n), SUM(n) FROM visits v LEFT JOIN (SELECT customer_id, COUNT(*) AS n, amount FROM orders GROUP BY customer_id, amount) AS o ON o.customer_id = v.customer_id AND o.amount >= v.score

-- LEFT JOIN with a condition on both sides, and another join
SELECT COUNT(*), SUM(age), SUM(score) FROM customers c LEFT JOIN visits v ON v.customer_id = c.id AND v.score > c.age LEFT JOIN sales s ON s.customer_id = c.id AND s.year > 0

-- LEFT JOIN of public tables with a condition on both sides
SELECT COUNT(*) FROM lines l WHERE product IN (SELECT p.product FROM products p LEFT JOIN prices q ON q.product = p.product AND q.cost > p.weight WHERE q.cost IS NULL)
