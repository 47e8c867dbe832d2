-- pair: 1
-- world: shop
-- why: a boolean is its own condition
SELECT COUNT(*) FROM customers WHERE newsletter;
SELECT COUNT(*) FROM customers WHERE newsletter = TRUE;

-- pair: 2
-- world: shop
-- why: IS TRUE and a bare boolean both drop NULL in WHERE
SELECT COUNT(*) FROM customers WHERE newsletter;
SELECT COUNT(*) FROM customers WHERE newsletter IS TRUE;

-- pair: 3
-- world: shop
-- why: NOT b and b = FALSE are NULL for the same rows
SELECT COUNT(*) FROM customers WHERE NOT newsletter;
SELECT COUNT(*) FROM customers WHERE newsletter = FALSE;

-- pair: 4
-- world: hospital
-- why: IS NOT TRUE takes FALSE and NULL
SELECT COUNT(*) FROM patients WHERE smoker IS NOT TRUE;
SELECT COUNT(*) FROM patients WHERE NOT smoker OR smoker IS NULL;

-- pair: 5
-- world: hospital
-- why: IS FALSE and NOT agree in WHERE
SELECT COUNT(*) FROM visits WHERE readmitted IS FALSE;
SELECT COUNT(*) FROM visits WHERE NOT readmitted;

-- pair: 6
-- world: shop
-- why: SUM(1) counts rows
SELECT status, SUM(1) AS n FROM orders GROUP BY status;
SELECT status, COUNT(*) AS n FROM orders GROUP BY status;

-- pair: 7
-- world: shop
-- why: COUNT of a constant counts rows
SELECT COUNT(1) FROM orders;
SELECT COUNT(*) FROM orders;

-- pair: 8
-- world: shop
-- why: a column that is never missing is counted in every row
SELECT COUNT(total) FROM orders;
SELECT COUNT(*) FROM orders;

-- pair: 9
-- world: shop
-- why: rows without a unit are left out, so the unit is never NULL
SELECT COUNT(customer_id) FROM orders;
SELECT COUNT(*) FROM orders;

-- pair: 10
-- world: shop
-- why: days are whole: after a day is from the next day on
SELECT COUNT(*) FROM orders WHERE order_date > DATE '2025-03-01';
SELECT COUNT(*) FROM orders WHERE order_date >= DATE '2025-03-02';

-- pair: 11
-- world: shop
-- why: days are whole: before a day is up to the day before
SELECT SUM(total) FROM orders WHERE order_date < DATE '2025-01-01';
SELECT SUM(total) FROM orders WHERE order_date <= DATE '2024-12-31';

-- pair: 12
-- world: shop
-- why: integers are whole
SELECT COUNT(*) FROM customers WHERE age > 64;
SELECT COUNT(*) FROM customers WHERE age >= 65;

-- pair: 13
-- world: shop
-- why: BETWEEN is two comparisons
SELECT COUNT(*) FROM customers WHERE age BETWEEN 30 AND 39;
SELECT COUNT(*) FROM customers WHERE age >= 30 AND age <= 39;

-- pair: 14
-- world: shop
-- why: an integer range with open and closed ends
SELECT AVG(loyalty_points) FROM customers WHERE age > 29 AND age < 40;
SELECT AVG(loyalty_points) FROM customers WHERE age BETWEEN 30 AND 39;

-- pair: 15
-- world: shop
-- why: the order of conjuncts does not matter
SELECT COUNT(*) FROM orders WHERE status = 'paid' AND channel = 'web';
SELECT COUNT(*) FROM orders WHERE channel = 'web' AND status = 'paid';

-- pair: 16
-- world: shop
-- why: the order of alternatives does not matter
SELECT COUNT(*) FROM orders WHERE status = 'paid' OR channel = 'web';
SELECT COUNT(*) FROM orders WHERE channel = 'web' OR status = 'paid';

-- pair: 17
-- world: shop
-- why: a comparison may be turned around
SELECT COUNT(*) FROM orders WHERE total >= 100;
SELECT COUNT(*) FROM orders WHERE 100 <= total;

-- pair: 18
-- world: shop
-- why: aliases do not matter
SELECT channel, COUNT(*) AS orders FROM orders GROUP BY channel;
SELECT channel AS how, COUNT(*) AS "Number of Orders" FROM orders GROUP BY channel;

-- pair: 19
-- world: shop
-- why: the order of select items does not matter
SELECT channel, COUNT(*) AS n, SUM(total) AS s FROM orders GROUP BY channel;
SELECT SUM(total) AS s, COUNT(*) AS n, channel FROM orders GROUP BY channel;

-- pair: 20
-- world: shop
-- why: a table alias does not matter
SELECT o.status, AVG(o.total) FROM orders AS o GROUP BY o.status;
SELECT status, AVG(total) FROM orders GROUP BY status;

-- pair: 21
-- world: shop
-- why: schema and catalog only say where the table is
SELECT COUNT(*) FROM "shop"."public"."orders";
SELECT COUNT(*) FROM orders;

-- pair: 22
-- world: shop
-- why: names without quotes have no case
SELECT COUNT(*) FROM ORDERS WHERE STATUS = 'paid';
select count(*) from orders where status = 'paid';

-- pair: 23
-- world: shop
-- why: GROUP BY by position
SELECT country, COUNT(*) FROM customers GROUP BY 1;
SELECT country, COUNT(*) FROM customers GROUP BY country;

-- pair: 24
-- world: shop
-- why: GROUP BY ALL is by what is not aggregated
SELECT country, newsletter, COUNT(*) FROM customers GROUP BY ALL;
SELECT country, newsletter, COUNT(*) FROM customers GROUP BY country, newsletter;

-- pair: 25
-- world: shop
-- why: the order of keys does not matter
SELECT country, segment, COUNT(*) FROM customers GROUP BY country, segment;
SELECT country, segment, COUNT(*) FROM customers GROUP BY segment, country;

-- pair: 26
-- world: shop
-- why: ORDER BY is post-processing
SELECT country, COUNT(*) AS n FROM customers GROUP BY country ORDER BY n DESC;
SELECT country, COUNT(*) AS n FROM customers GROUP BY country;

-- pair: 27
-- world: shop
-- why: IN is a chain of alternatives
SELECT COUNT(*) FROM orders WHERE status IN ('paid', 'shipped');
SELECT COUNT(*) FROM orders WHERE status = 'paid' OR status = 'shipped';

-- pair: 28
-- world: shop
-- why: the order of a list does not matter
SELECT COUNT(*) FROM orders WHERE status IN ('shipped', 'paid', 'paid');
SELECT COUNT(*) FROM orders WHERE status IN ('paid', 'shipped');

-- pair: 29
-- world: shop
-- why: NOT IN a list without NULL is a chain of inequalities
SELECT COUNT(*) FROM customers WHERE segment NOT IN ('public', 'business');
SELECT COUNT(*) FROM customers WHERE segment <> 'public' AND segment <> 'business';

-- pair: 30
-- world: shop
-- why: IN a list of one is equality
SELECT COUNT(*) FROM customers WHERE segment IN ('public');
SELECT COUNT(*) FROM customers WHERE segment = 'public';

-- pair: 31
-- world: shop
-- why: negation of a comparison, NULL stays NULL
SELECT COUNT(*) FROM customers WHERE NOT (age < 40);
SELECT COUNT(*) FROM customers WHERE age >= 40;

-- pair: 32
-- world: shop
-- why: De Morgan holds in three-valued logic
SELECT COUNT(*) FROM customers WHERE NOT (age < 40 OR segment = 'public');
SELECT COUNT(*) FROM customers WHERE age >= 40 AND segment <> 'public';

-- pair: 33
-- world: shop
-- why: double negation
SELECT COUNT(*) FROM customers WHERE NOT NOT (age < 40);
SELECT COUNT(*) FROM customers WHERE age < 40;

-- pair: 34
-- world: shop
-- why: two spellings of not equal
SELECT COUNT(*) FROM orders WHERE status != 'paid';
SELECT COUNT(*) FROM orders WHERE status <> 'paid';

-- pair: 35
-- world: shop
-- why: a condition that is always true
SELECT COUNT(*) FROM orders WHERE 1 = 1 AND status = 'paid';
SELECT COUNT(*) FROM orders WHERE status = 'paid';

-- pair: 36
-- world: shop
-- why: a repeated condition
SELECT COUNT(*) FROM orders WHERE status = 'paid' AND status = 'paid';
SELECT COUNT(*) FROM orders WHERE status = 'paid';

-- pair: 37
-- world: shop
-- why: the narrower of two bounds
SELECT COUNT(*) FROM customers WHERE age >= 30 AND age >= 40;
SELECT COUNT(*) FROM customers WHERE age >= 40;

-- pair: 38
-- world: shop
-- why: a comparison is never true of NULL, so the test for it says nothing more
SELECT COUNT(*) FROM customers WHERE age >= 40 AND age IS NOT NULL;
SELECT COUNT(*) FROM customers WHERE age >= 40;

-- pair: 39
-- world: shop
-- why: arithmetic on constants
SELECT COUNT(*) FROM customers WHERE loyalty_points > 10 * 100;
SELECT COUNT(*) FROM customers WHERE loyalty_points > 1000;

-- pair: 40
-- world: shop
-- why: date arithmetic on constants
SELECT COUNT(*) FROM orders WHERE order_date >= DATE '2025-03-31' - INTERVAL '30 days';
SELECT COUNT(*) FROM orders WHERE order_date >= DATE '2025-03-01';

-- pair: 41
-- world: shop
-- why: a date written as text
SELECT COUNT(*) FROM orders WHERE order_date >= '2025-03-01';
SELECT COUNT(*) FROM orders WHERE order_date >= DATE '2025-03-01';

-- pair: 42
-- world: shop
-- why: spellings of a cast
SELECT COUNT(*) FROM orders WHERE ordered_at::date = DATE '2025-03-01';
SELECT COUNT(*) FROM orders WHERE CAST(ordered_at AS DATE) = DATE '2025-03-01';

-- pair: 43
-- world: shop
-- why: the day of a timestamp is a half-open range
SELECT COUNT(*) FROM orders WHERE CAST(ordered_at AS DATE) = DATE '2025-03-01';
SELECT COUNT(*) FROM orders WHERE ordered_at >= TIMESTAMP '2025-03-01 00:00:00' AND ordered_at < TIMESTAMP '2025-03-02 00:00:00';

-- pair: 44
-- world: shop
-- why: a year is a range of days
SELECT SUM(total) FROM orders WHERE EXTRACT(YEAR FROM order_date) = 2024;
SELECT SUM(total) FROM orders WHERE order_date BETWEEN DATE '2024-01-01' AND DATE '2024-12-31';

-- pair: 45
-- world: shop
-- why: a month by DATE_TRUNC is a range of days
SELECT SUM(total) FROM orders WHERE DATE_TRUNC('month', order_date) = DATE '2025-02-01';
SELECT SUM(total) FROM orders WHERE order_date >= DATE '2025-02-01' AND order_date < DATE '2025-03-01';

-- pair: 46
-- world: shop
-- why: EXTRACT and DATE_PART
SELECT EXTRACT(MONTH FROM order_date) AS m, COUNT(*) FROM orders GROUP BY 1;
SELECT DATE_PART('month', order_date) AS m, COUNT(*) FROM orders GROUP BY 1;

-- pair: 47
-- world: shop
-- why: the name of a unit has no case
SELECT DATE_TRUNC('MONTH', order_date) AS m, COUNT(*) FROM orders GROUP BY 1;
SELECT DATE_TRUNC('month', order_date) AS m, COUNT(*) FROM orders GROUP BY 1;

-- pair: 48
-- world: shop
-- why: FILTER and CASE in COUNT
SELECT COUNT(*) FILTER (WHERE status = 'paid') FROM orders;
SELECT COUNT(CASE WHEN status = 'paid' THEN 1 END) FROM orders;

-- pair: 49
-- world: shop
-- why: ELSE NULL is what a CASE without ELSE has
SELECT channel, COUNT(CASE WHEN status = 'paid' THEN 1 ELSE NULL END) FROM orders GROUP BY channel;
SELECT channel, COUNT(CASE WHEN status = 'paid' THEN 1 END) FROM orders GROUP BY channel;

-- pair: 50
-- world: shop
-- why: ones and zeros are a count, in groups that have rows
SELECT channel, SUM(CASE WHEN status = 'paid' THEN 1 ELSE 0 END) FROM orders GROUP BY channel;
SELECT channel, COUNT(*) FILTER (WHERE status = 'paid') FROM orders GROUP BY channel;

-- pair: 51
-- world: shop
-- why: FILTER and CASE in SUM
SELECT channel, SUM(total) FILTER (WHERE status = 'paid') FROM orders GROUP BY channel;
SELECT channel, SUM(CASE WHEN status = 'paid' THEN total END) FROM orders GROUP BY channel;

-- pair: 52
-- world: shop
-- why: distinct units under a condition
SELECT COUNT(DISTINCT customer_id) FILTER (WHERE total > 100) FROM orders;
SELECT COUNT(DISTINCT CASE WHEN total > 100 THEN customer_id END) FROM orders;

-- pair: 53
-- world: shop
-- why: the condition of the only aggregate may stand in WHERE
SELECT COUNT(DISTINCT customer_id) FILTER (WHERE total > 100) FROM orders;
SELECT COUNT(DISTINCT customer_id) FROM orders WHERE total > 100;

-- pair: 54
-- world: shop
-- why: simple and searched CASE
SELECT CASE channel WHEN 'web' THEN 'online' WHEN 'app' THEN 'online' ELSE 'offline' END AS k, COUNT(*) FROM orders GROUP BY 1;
SELECT CASE WHEN channel = 'web' THEN 'online' WHEN channel = 'app' THEN 'online' ELSE 'offline' END AS k, COUNT(*) FROM orders GROUP BY 1;

-- pair: 55
-- world: shop
-- why: a subquery that only selects
SELECT AVG(total) FROM (SELECT total, status FROM orders WHERE channel = 'web') t WHERE status = 'paid';
SELECT AVG(total) FROM orders WHERE channel = 'web' AND status = 'paid';

-- pair: 56
-- world: shop
-- why: a CTE is a subquery
WITH w AS (SELECT * FROM orders WHERE channel = 'web') SELECT COUNT(*) FROM w;
SELECT COUNT(*) FROM (SELECT * FROM orders WHERE channel = 'web') AS w;

-- pair: 57
-- world: shop
-- why: SELECT DISTINCT is GROUP BY without aggregates
SELECT DISTINCT city FROM customers;
SELECT city FROM customers GROUP BY city;

-- pair: 58
-- world: shop
-- why: distinct values counted in a subquery, NULL left out
SELECT COUNT(*) FROM (SELECT DISTINCT city FROM customers WHERE city IS NOT NULL) t;
SELECT COUNT(DISTINCT city) FROM customers;

-- pair: 59
-- world: shop
-- why: units with a row, counted in two ways
SELECT COUNT(*) FROM (SELECT customer_id FROM orders GROUP BY customer_id) t;
SELECT COUNT(DISTINCT customer_id) FROM orders;

-- pair: 60
-- world: shop
-- why: inner joins may be written with commas
SELECT c.region, COUNT(*) FROM customers u, countries c WHERE u.country = c.country GROUP BY c.region;
SELECT c.region, COUNT(*) FROM customers u JOIN countries c ON u.country = c.country GROUP BY c.region;

-- pair: 61
-- world: shop
-- why: USING is equality of the named column
SELECT region, COUNT(*) FROM customers JOIN countries USING (country) GROUP BY region;
SELECT c.region, COUNT(*) FROM customers u JOIN countries c ON u.country = c.country GROUP BY c.region;

-- pair: 62
-- world: shop
-- why: the sides of an inner join may be swapped
SELECT p.brand, SUM(l.quantity) FROM lines l JOIN products p ON p.product_id = l.product_id GROUP BY p.brand;
SELECT p.brand, SUM(l.quantity) FROM products p JOIN lines l ON l.product_id = p.product_id GROUP BY p.brand;

-- pair: 63
-- world: shop
-- why: INNER is what JOIN means
SELECT COUNT(*) FROM orders o INNER JOIN lines l ON l.order_id = o.order_id;
SELECT COUNT(*) FROM orders o JOIN lines l ON o.order_id = l.order_id;

-- pair: 64
-- world: shop
-- why: OUTER is what LEFT JOIN means
SELECT COUNT(l.line_id) FROM orders o LEFT OUTER JOIN lines l ON l.order_id = o.order_id;
SELECT COUNT(l.line_id) FROM orders o LEFT JOIN lines l ON l.order_id = o.order_id;

-- pair: 65
-- world: shop
-- why: a right join is a left join from the other side
SELECT c.country_name, COUNT(u.customer_id) FROM customers u RIGHT JOIN countries c ON c.country = u.country GROUP BY 1;
SELECT c.country_name, COUNT(u.customer_id) FROM countries c LEFT JOIN customers u ON c.country = u.country GROUP BY 1;

-- pair: 66
-- world: shop
-- why: a condition of an inner join may stand in ON or in WHERE
SELECT SUM(l.quantity) FROM lines l JOIN products p ON p.product_id = l.product_id AND p.brand = 'Acme';
SELECT SUM(l.quantity) FROM lines l JOIN products p ON p.product_id = l.product_id WHERE p.brand = 'Acme';

-- pair: 67
-- world: shop
-- why: a condition on the right side in WHERE makes a left join an inner one
SELECT COUNT(*) FROM orders o LEFT JOIN lines l ON l.order_id = o.order_id WHERE l.quantity > 2;
SELECT COUNT(*) FROM orders o JOIN lines l ON l.order_id = o.order_id WHERE l.quantity > 2;

-- pair: 68
-- world: shop
-- why: IN over a unique column is a semi-join
SELECT SUM(quantity) FROM lines WHERE product_id IN (SELECT product_id FROM products WHERE category = 'Toys');
SELECT SUM(l.quantity) FROM lines l WHERE EXISTS (SELECT 1 FROM products p WHERE p.product_id = l.product_id AND p.category = 'Toys');

-- pair: 69
-- world: shop
-- why: a semi-join over a unique column is an inner join
SELECT SUM(quantity) FROM lines WHERE product_id IN (SELECT product_id FROM products WHERE category = 'Toys');
SELECT SUM(l.quantity) FROM lines l JOIN products p ON p.product_id = l.product_id WHERE p.category = 'Toys';

-- pair: 70
-- world: shop
-- why: what EXISTS selects does not matter
SELECT COUNT(*) FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.customer_id);
SELECT COUNT(*) FROM customers c WHERE EXISTS (SELECT * FROM orders o WHERE o.customer_id = c.customer_id);

-- pair: 71
-- world: shop
-- why: IN over the unit and EXISTS
SELECT COUNT(*) FROM customers WHERE customer_id IN (SELECT customer_id FROM orders WHERE total > 500);
SELECT COUNT(*) FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.customer_id AND o.total > 500);

-- pair: 72
-- world: shop
-- why: NOT IN over a unit that is never NULL and NOT EXISTS
SELECT COUNT(*) FROM customers WHERE customer_id NOT IN (SELECT customer_id FROM orders);
SELECT COUNT(*) FROM customers c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.customer_id);

-- pair: 73
-- world: shop
-- why: an anti-join by LEFT JOIN and NOT EXISTS
SELECT COUNT(*) FROM customers c LEFT JOIN orders o ON o.customer_id = c.customer_id WHERE o.customer_id IS NULL;
SELECT COUNT(*) FROM customers c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.customer_id);

-- pair: 74
-- world: shop
-- why: COALESCE and CASE
SELECT COALESCE(segment, 'none') AS s, COUNT(*) FROM customers GROUP BY 1;
SELECT CASE WHEN segment IS NULL THEN 'none' ELSE segment END AS s, COUNT(*) FROM customers GROUP BY 1;

-- pair: 75
-- world: shop
-- why: IFNULL is COALESCE of two
SELECT IFNULL(segment, 'none') AS s, COUNT(*) FROM customers GROUP BY 1;
SELECT COALESCE(segment, 'none') AS s, COUNT(*) FROM customers GROUP BY 1;

-- pair: 76
-- world: shop
-- why: COALESCE of a column that is never missing
SELECT SUM(COALESCE(total, 0)) FROM orders;
SELECT SUM(total) FROM orders;

-- pair: 77
-- world: shop
-- why: IS DISTINCT FROM a constant
SELECT COUNT(*) FROM customers WHERE segment IS DISTINCT FROM 'consumer';
SELECT COUNT(*) FROM customers WHERE segment <> 'consumer' OR segment IS NULL;

-- pair: 78
-- world: shop
-- why: IS NOT DISTINCT FROM a constant that is not NULL
SELECT COUNT(*) FROM customers WHERE segment IS NOT DISTINCT FROM 'consumer';
SELECT COUNT(*) FROM customers WHERE segment = 'consumer';

-- pair: 79
-- world: shop
-- why: a pattern without wildcards is equality
SELECT COUNT(*) FROM orders WHERE status LIKE 'paid';
SELECT COUNT(*) FROM orders WHERE status = 'paid';

-- pair: 80
-- world: shop
-- why: a pattern with one wildcard at the end is a prefix
SELECT COUNT(*) FROM customers WHERE email LIKE 'c1%';
SELECT COUNT(*) FROM customers WHERE LEFT(email, 2) = 'c1';

-- pair: 81
-- world: shop
-- why: constants joined to a pattern
SELECT COUNT(*) FROM customers WHERE email LIKE '%' || 'gmail' || '%';
SELECT COUNT(*) FROM customers WHERE email LIKE '%gmail%';

-- pair: 82
-- world: shop
-- why: ILIKE is LIKE of what is in lower case
SELECT COUNT(*) FROM customers WHERE email ILIKE '%EXAMPLE%';
SELECT COUNT(*) FROM customers WHERE LOWER(email) LIKE '%example%';

-- pair: 83
-- world: shop
-- why: SUBSTRING in two spellings
SELECT SUBSTRING(city FROM 1 FOR 2) AS p, COUNT(*) FROM customers GROUP BY 1;
SELECT SUBSTR(city, 1, 2) AS p, COUNT(*) FROM customers GROUP BY 1;

-- pair: 84
-- world: shop
-- why: the sum of a product with a constant
SELECT SUM(quantity * unit_price) FROM lines;
SELECT SUM(unit_price * quantity) FROM lines;

-- pair: 85
-- world: shop
-- why: an average is unchanged by parentheses
SELECT AVG((total) + (shipping)) FROM orders;
SELECT AVG(total + shipping) FROM orders;

-- pair: 86
-- world: shop
-- why: MEDIAN and PERCENTILE_CONT
SELECT MEDIAN(total) FROM orders;
SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY total) FROM orders;

-- pair: 87
-- world: shop
-- why: PERCENTILE_CONT and QUANTILE_CONT
SELECT channel, PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY total) FROM orders GROUP BY channel;
SELECT channel, QUANTILE_CONT(total, 0.9) FROM orders GROUP BY channel;

-- pair: 88
-- world: shop
-- why: STDDEV is that of a sample
SELECT STDDEV(total) FROM orders;
SELECT STDDEV_SAMP(total) FROM orders;

-- pair: 89
-- world: shop
-- why: VARIANCE is that of a sample
SELECT VARIANCE(total) FROM orders;
SELECT VAR_SAMP(total) FROM orders;

-- pair: 90
-- world: shop
-- why: a ratio of released numbers in one select or over a subquery
SELECT SUM(total) / COUNT(*) AS mean FROM orders;
SELECT s / n AS mean FROM (SELECT SUM(total) AS s, COUNT(*) AS n FROM orders) t;

-- pair: 91
-- world: shop
-- why: HAVING and WHERE over a subquery
SELECT country, COUNT(*) AS n FROM customers GROUP BY country HAVING COUNT(*) > 50;
SELECT country, n FROM (SELECT country, COUNT(*) AS n FROM customers GROUP BY country) t WHERE n > 50;

-- pair: 92
-- world: shop
-- why: QUALIFY and WHERE over a subquery
SELECT country, COUNT(*) AS n FROM customers GROUP BY country QUALIFY RANK() OVER (ORDER BY COUNT(*) DESC) = 1;
SELECT country, n FROM (SELECT country, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS r FROM customers GROUP BY country) t WHERE r = 1;

-- pair: 93
-- world: shop
-- why: a share of all by a window or by a scalar subquery
SELECT channel, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS share FROM orders GROUP BY channel;
SELECT channel, COUNT(*) * 1.0 / (SELECT SUM(n) FROM (SELECT channel, COUNT(*) AS n FROM orders GROUP BY channel) t) AS share FROM orders GROUP BY channel;

-- pair: 94
-- world: shop
-- why: ROLLUP is its grouping sets
SELECT channel, status, COUNT(*) FROM orders GROUP BY ROLLUP (channel, status);
SELECT channel, status, COUNT(*) FROM orders GROUP BY GROUPING SETS ((channel, status), (channel), ());

-- pair: 95
-- world: shop
-- why: CUBE is its grouping sets
SELECT channel, status, COUNT(*) FROM orders GROUP BY CUBE (channel, status);
SELECT channel, status, COUNT(*) FROM orders GROUP BY GROUPING SETS ((channel, status), (channel), (status), ());

-- pair: 96
-- world: shop
-- why: LIMIT and FETCH FIRST
SELECT country, COUNT(*) AS n FROM customers GROUP BY country ORDER BY n DESC LIMIT 2;
SELECT country, COUNT(*) AS n FROM customers GROUP BY country ORDER BY n DESC FETCH FIRST 2 ROWS ONLY;

-- pair: 97
-- world: tpch
-- why: an interval of a year, added to a constant
SELECT COUNT(*) FROM orders WHERE o_orderdate < DATE '1994-01-01' + INTERVAL '1' YEAR;
SELECT COUNT(*) FROM orders WHERE o_orderdate <= DATE '1994-12-31';

-- pair: 98
-- world: tpch
-- why: comma joins in another order
SELECT n_name, COUNT(*) FROM customer, orders, nation WHERE c_custkey = o_custkey AND n_nationkey = c_nationkey GROUP BY n_name;
SELECT n_name, COUNT(*) FROM nation, orders, customer WHERE c_nationkey = n_nationkey AND o_custkey = c_custkey GROUP BY n_name;

-- pair: 99
-- world: hospital
-- why: the unit of a joined row has one name on both sides
SELECT COUNT(DISTINCT v.patient_id) FROM visits v JOIN patients p ON p.patient_id = v.patient_id WHERE p.sex = 'F';
SELECT COUNT(DISTINCT p.patient_id) FROM patients p JOIN visits v ON v.patient_id = p.patient_id WHERE p.sex = 'F';

-- pair: 100
-- world: rides
-- why: a named window and its definition
SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER w AS n FROM trips WINDOW w AS (PARTITION BY rider_id ORDER BY started_at, trip_id)) t WHERE n = 2;
SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY rider_id ORDER BY started_at, trip_id) AS n FROM trips) t WHERE n = 2;

-- pair: 101
-- world: rides
-- why: the first row of each rider is one for each rider
SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY rider_id ORDER BY started_at, trip_id) AS n FROM trips) t WHERE n = 1;
SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY rider_id ORDER BY started_at, trip_id) AS n FROM trips) t WHERE n <= 1;

-- pair: 102
-- world: bank
-- why: unary minus of a constant
SELECT COUNT(*) FROM transactions WHERE amount < -(100);
SELECT COUNT(*) FROM transactions WHERE -100 > amount;

-- pair: 103
-- world: bank
-- why: a numeric constant with more digits
SELECT COUNT(*) FROM transactions WHERE amount < -100.00;
SELECT COUNT(*) FROM transactions WHERE amount < -100;

-- pair: 104
-- world: school
-- why: comments and spaces
SELECT COUNT(*) /* all of them */ FROM students -- of every school
;
SELECT   COUNT( * )   FROM   students;

-- pair: 105
-- world: school
-- why: MOD and %
SELECT MOD(grade_level, 2) AS odd, COUNT(*) FROM students GROUP BY 1;
SELECT grade_level % 2 AS odd, COUNT(*) FROM students GROUP BY 1;

-- pair: 106
-- world: school
-- why: the order of conjuncts, and a list of one
SELECT AVG(gpa) FROM students WHERE grade_level = 9 AND free_lunch;
SELECT AVG(gpa) FROM students WHERE free_lunch AND grade_level IN (9);

-- near: 1
-- world: hospital
-- why: NULL is neither: IS NOT TRUE takes it, NOT does not
SELECT COUNT(*) FROM patients WHERE smoker IS NOT TRUE;
SELECT COUNT(*) FROM patients WHERE NOT smoker;

-- near: 2
-- world: shop
-- why: IS DISTINCT FROM takes NULL, <> does not
SELECT COUNT(*) FROM customers WHERE segment IS DISTINCT FROM 'consumer';
SELECT COUNT(*) FROM customers WHERE segment <> 'consumer';

-- near: 3
-- world: shop
-- why: COUNT of a nullable column leaves NULL out
SELECT COUNT(age) FROM customers;
SELECT COUNT(*) FROM customers;

-- near: 4
-- world: shop
-- why: rows and units are not the same
SELECT COUNT(customer_id) FROM orders;
SELECT COUNT(DISTINCT customer_id) FROM orders;

-- near: 5
-- world: shop
-- why: a time has moments between one midnight and the next
SELECT COUNT(*) FROM orders WHERE ordered_at > TIMESTAMP '2025-03-01 00:00:00';
SELECT COUNT(*) FROM orders WHERE ordered_at >= TIMESTAMP '2025-03-02 00:00:00';

-- near: 6
-- world: shop
-- why: a time compared with a day: up to its midnight, not its end
SELECT COUNT(*) FROM orders WHERE ordered_at <= DATE '2025-06-29';
SELECT COUNT(*) FROM orders WHERE CAST(ordered_at AS DATE) <= DATE '2025-06-29';

-- near: 7
-- world: shop
-- why: a price may lie between cents
-- unseen: the stored prices are whole cents
SELECT COUNT(*) FROM orders WHERE total > 100;
SELECT COUNT(*) FROM orders WHERE total >= 100.01;

-- near: 8
-- world: shop
-- why: a filter in ON keeps the rows of the left table
SELECT COUNT(*) FROM orders o LEFT JOIN lines l ON l.order_id = o.order_id AND l.quantity > 2;
SELECT COUNT(*) FROM orders o LEFT JOIN lines l ON l.order_id = o.order_id WHERE l.quantity > 2;

-- near: 9
-- world: shop
-- why: LEFT JOIN keeps customers without orders
SELECT COUNT(*) FROM customers c LEFT JOIN orders o ON o.customer_id = c.customer_id;
SELECT COUNT(*) FROM customers c JOIN orders o ON o.customer_id = c.customer_id;

-- near: 10
-- world: shop
-- why: joined rows and units with a match are not the same
SELECT COUNT(*) FROM customers c JOIN orders o ON o.customer_id = c.customer_id;
SELECT COUNT(*) FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.customer_id);

-- near: 11
-- world: shop
-- why: COALESCE in AVG changes the number of values
SELECT AVG(COALESCE(age, 0)) FROM customers;
SELECT AVG(age) FROM customers;

-- near: 12
-- world: shop
-- why: ELSE 0 counts every row
SELECT COUNT(CASE WHEN status = 'paid' THEN 1 ELSE 0 END) FROM orders;
SELECT COUNT(CASE WHEN status = 'paid' THEN 1 END) FROM orders;

-- near: 13
-- world: shop
-- why: an average over all rows or over those chosen
SELECT AVG(CASE WHEN status = 'paid' THEN total ELSE 0 END) FROM orders;
SELECT AVG(CASE WHEN status = 'paid' THEN total END) FROM orders;

-- near: 14
-- world: shop
-- why: the average of averages is not the average
SELECT AVG(a) FROM (SELECT AVG(total) AS a FROM orders GROUP BY channel) t;
SELECT AVG(total) FROM orders;

-- near: 15
-- world: shop
-- why: NOT of a conjunction is not the conjunction of NOTs
SELECT COUNT(*) FROM orders WHERE NOT (status = 'paid' AND channel = 'web');
SELECT COUNT(*) FROM orders WHERE status <> 'paid' AND channel <> 'web';

-- near: 16
-- world: shop
-- why: AND binds before OR
SELECT COUNT(*) FROM orders WHERE status = 'paid' OR status = 'shipped' AND channel = 'web';
SELECT COUNT(*) FROM orders WHERE (status = 'paid' OR status = 'shipped') AND channel = 'web';

-- near: 17
-- world: shop
-- why: BETWEEN holds both ends
SELECT COUNT(*) FROM orders WHERE order_date BETWEEN DATE '2024-01-01' AND DATE '2025-06-30';
SELECT COUNT(*) FROM orders WHERE order_date >= DATE '2024-01-01' AND order_date < DATE '2025-06-30';

-- near: 18
-- world: shop
-- why: BETWEEN with its ends exchanged is empty
SELECT COUNT(*) FROM customers WHERE age BETWEEN 30 AND 39;
SELECT COUNT(*) FROM customers WHERE age BETWEEN 39 AND 30;

-- near: 19
-- world: shop
-- why: LIKE has case, ILIKE has not
SELECT COUNT(*) FROM customers WHERE email LIKE '%@example.org';
SELECT COUNT(*) FROM customers WHERE email ILIKE '%@example.org';

-- near: 20
-- world: shop
-- why: an underscore is a wildcard
SELECT COUNT(*) FROM customers WHERE email LIKE 'c_@%';
SELECT COUNT(*) FROM customers WHERE LEFT(email, 3) = 'c_@';

-- near: 21
-- world: shop
-- why: quoted texts keep their case
SELECT COUNT(*) FROM orders WHERE status = 'PAID';
SELECT COUNT(*) FROM orders WHERE status = 'paid';

-- near: 22
-- world: shop
-- why: the sample's variance divides by n - 1
SELECT VAR_SAMP(total) FROM orders;
SELECT VAR_POP(total) FROM orders;

-- near: 23
-- world: shop
-- why: PERCENTILE_DISC is a value of the column
SELECT PERCENTILE_DISC(0.9) WITHIN GROUP (ORDER BY total) FROM orders;
SELECT PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY total) FROM orders;

-- near: 24
-- world: shop
-- why: a quantile from above is not one from below
SELECT PERCENTILE_CONT(0.1) WITHIN GROUP (ORDER BY total DESC) FROM orders;
SELECT PERCENTILE_CONT(0.1) WITHIN GROUP (ORDER BY total) FROM orders;

-- near: 25
-- world: shop
-- why: whole and fractional division
SELECT AVG(age // 10) FROM customers;
SELECT AVG(age / 10) FROM customers;

-- near: 26
-- world: shop
-- why: distinct values are added once
SELECT SUM(DISTINCT loyalty_points) FROM customers;
SELECT SUM(loyalty_points) FROM customers;

-- near: 27
-- world: shop
-- why: UNION drops equal rows
SELECT COUNT(*) FROM (SELECT channel FROM orders UNION ALL SELECT channel FROM orders) t;
SELECT COUNT(*) FROM (SELECT channel FROM orders UNION SELECT channel FROM orders) t;

-- near: 28
-- world: shop
-- why: the month of any year, or of one
SELECT COUNT(*) FROM orders WHERE EXTRACT(MONTH FROM order_date) = 3;
SELECT COUNT(*) FROM orders WHERE DATE_TRUNC('month', order_date) = DATE '2025-03-01';

-- near: 29
-- world: shop
-- why: a week of seven days or of its number in the year
SELECT DATE_TRUNC('week', order_date) AS w, COUNT(*) FROM orders GROUP BY 1;
SELECT EXTRACT(WEEK FROM order_date) AS w, COUNT(*) FROM orders GROUP BY 1;

-- near: 30
-- world: shop
-- why: thirty days are not a month
SELECT COUNT(*) FROM orders WHERE order_date >= DATE '2025-06-30' - INTERVAL '30 days';
SELECT COUNT(*) FROM orders WHERE order_date >= DATE '2025-06-30' - INTERVAL '1 month';

-- near: 31
-- world: shop
-- why: HAVING sees the groups, WHERE the rows
SELECT channel, COUNT(*) FROM orders WHERE total > 200 GROUP BY channel;
SELECT channel, COUNT(*) FROM orders GROUP BY channel HAVING AVG(total) > 200;

-- near: 32
-- world: shop
-- why: CUBE has more grouping sets than ROLLUP
SELECT channel, status, COUNT(*) FROM orders GROUP BY CUBE (channel, status);
SELECT channel, status, COUNT(*) FROM orders GROUP BY ROLLUP (channel, status);

-- near: 33
-- world: shop
-- why: distinct pairs are not the product of distinct values
SELECT COUNT(*) FROM (SELECT DISTINCT country, city FROM customers) t;
SELECT COUNT(DISTINCT country) * COUNT(DISTINCT city) FROM customers;

-- near: 34
-- world: shop
-- why: SELECT DISTINCT keeps NULL as a row, COUNT(DISTINCT) does not
SELECT COUNT(*) FROM (SELECT DISTINCT city FROM customers) t;
SELECT COUNT(DISTINCT city) FROM customers;

-- near: 35
-- world: shop
-- why: NOT IN with NULL in the list is never true
SELECT COUNT(*) FROM orders WHERE status NOT IN ('paid', NULL);
SELECT COUNT(*) FROM orders WHERE status NOT IN ('paid');

-- near: 36
-- world: shop
-- why: NOT IN over a column with NULL is never true
SELECT COUNT(*) FROM calendar WHERE 'Easter' NOT IN (SELECT holiday FROM calendar);
SELECT COUNT(*) FROM calendar c WHERE NOT EXISTS (SELECT 1 FROM calendar d WHERE d.holiday = 'Easter');

-- near: 37
-- world: rides
-- why: RANK gives ties the same number
-- unseen: no rider starts two trips at the same moment
SELECT COUNT(*) FROM (SELECT RANK() OVER (PARTITION BY rider_id ORDER BY started_at) AS n FROM trips) t WHERE n = 1;
SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY rider_id ORDER BY started_at) AS n FROM trips) t WHERE n = 1;

-- near: 38
-- world: rides
-- why: the first trip and the last are not the same
SELECT AVG(fare) FROM (SELECT fare, ROW_NUMBER() OVER (PARTITION BY rider_id ORDER BY started_at, trip_id) AS n FROM trips) t WHERE n = 1;
SELECT AVG(fare) FROM (SELECT fare, ROW_NUMBER() OVER (PARTITION BY rider_id ORDER BY started_at DESC, trip_id DESC) AS n FROM trips) t WHERE n = 1;

-- near: 39
-- world: rides
-- why: boundaries of days crossed, or whole days of 24 hours
SELECT SUM(DATE_DIFF('day', started_at, ended_at)) FROM trips;
SELECT SUM(DATE_SUB('day', started_at, ended_at)) FROM trips;

-- near: 40
-- world: bank
-- why: rounding and cutting off differ
SELECT SUM(ROUND(amount)) FROM transactions;
SELECT SUM(TRUNC(amount)) FROM transactions;

-- near: 41
-- world: bank
-- why: a sum of absolute values is not the absolute value of the sum
SELECT SUM(ABS(amount)) FROM transactions;
SELECT ABS(SUM(amount)) FROM transactions;

-- near: 42
-- world: school
-- why: SUM over no rows is NULL, COUNT is 0
-- unseen: the groups of the data all have rows
SELECT kind, SUM(CASE WHEN score > 50 THEN 1 END) FROM grades GROUP BY kind;
SELECT kind, COUNT(CASE WHEN score > 50 THEN 1 END) FROM grades GROUP BY kind;
