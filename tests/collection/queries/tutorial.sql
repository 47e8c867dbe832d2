-- id: shop-060
-- source: tutorial
-- dialect: duckdb
-- world: shop
-- label: answerable
-- shapes: ordinary
SELECT COUNT(*) FROM customers;

-- id: shop-061
-- source: tutorial
-- dialect: duckdb
-- world: shop
-- label: answerable
-- shapes: ordinary
SELECT COUNT(DISTINCT country) FROM customers;

-- id: shop-062
-- source: tutorial
-- dialect: duckdb
-- world: shop
-- label: unanswerable: returns rows of persons
-- shapes: 2 select-star
SELECT * FROM customers;

-- id: shop-063
-- source: tutorial
-- dialect: postgres
-- world: shop
-- label: unanswerable: returns rows of persons
-- shapes: 2 select-star
SELECT * FROM customers WHERE country = 'DE' AND city = 'Berlin';

-- id: shop-064
-- source: tutorial
-- dialect: postgres
-- world: shop
-- label: unanswerable: returns rows of persons
-- shapes: ordinary
SELECT email, city FROM customers ORDER BY signup_date DESC;

-- id: shop-065
-- source: tutorial
-- dialect: postgres
-- world: shop
-- label: unanswerable: returns rows of persons
-- shapes: 2 left-join
SELECT customers.email, orders.order_id
FROM customers
LEFT JOIN orders ON customers.customer_id = orders.customer_id
ORDER BY customers.email;

-- id: shop-066
-- source: tutorial
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: ordinary
SELECT COUNT(customer_id), country
FROM customers
GROUP BY country
HAVING COUNT(customer_id) > 5
ORDER BY COUNT(customer_id) DESC;

-- id: shop-067
-- source: tutorial
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 2 count-unit
SELECT COUNT(customer_id) AS n FROM orders;

-- id: shop-068
-- source: tutorial
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 5 exists
SELECT COUNT(*)
FROM customers c
WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.customer_id AND o.total > 500);

-- id: shop-069
-- source: tutorial
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 5 not-exists
SELECT c.country, COUNT(*) AS never_ordered
FROM customers c
WHERE NOT EXISTS (SELECT * FROM orders o WHERE o.customer_id = c.customer_id)
GROUP BY c.country;

-- id: shop-070
-- source: tutorial
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 5 not-in-own-rows
SELECT COUNT(*) AS never_ordered
FROM customers
WHERE customer_id NOT IN (SELECT customer_id FROM orders);

-- id: shop-071
-- source: tutorial
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 5 in-public
SELECT SUM(quantity) AS units
FROM lines
WHERE product_id IN (SELECT product_id FROM products WHERE category = 'Books');

-- id: shop-072
-- source: tutorial
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 5 not-in-public
SELECT COUNT(*) AS lines_not_toys
FROM lines
WHERE product_id NOT IN (SELECT product_id FROM products WHERE category = 'Toys');

-- id: shop-073
-- source: tutorial
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 2 left-join, 5 anti-join
SELECT COUNT(*) AS customers_without_orders
FROM customers c
LEFT JOIN orders o ON o.customer_id = c.customer_id
WHERE o.order_id IS NULL;

-- id: shop-074
-- source: tutorial
-- dialect: postgres
-- world: shop
-- label: unanswerable: joins rows of different persons
-- shapes: 5 self-join
SELECT a.email AS customer1, b.email AS customer2, a.city
FROM customers a, customers b
WHERE a.customer_id <> b.customer_id AND a.city = b.city
ORDER BY a.city;

-- id: shop-075
-- source: tutorial
-- dialect: postgres
-- world: shop
-- label: unanswerable: joins rows of different persons
-- shapes: 5 self-join
SELECT COUNT(*) AS pairs_in_same_city
FROM customers a
JOIN customers b ON a.city = b.city AND a.customer_id < b.customer_id;

-- id: shop-076
-- source: tutorial
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: ordinary
SELECT CASE WHEN quantity > 5 THEN 'more than 5'
            WHEN quantity = 5 THEN 'exactly 5'
            ELSE 'under 5' END AS bucket,
       COUNT(*) AS n
FROM lines
GROUP BY bucket;

-- id: shop-077
-- source: tutorial
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 7 like
SELECT COUNT(*) FROM customers WHERE email LIKE '%@gmail.com';

-- id: shop-078
-- source: tutorial
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 7 ilike
SELECT COUNT(*) FROM customers WHERE email ILIKE '%EXAMPLE.org';

-- id: shop-079
-- source: tutorial
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 7 split-part, 3 private-keys
SELECT LOWER(SPLIT_PART(email, '@', 2)) AS domain, COUNT(*) AS customers
FROM customers
GROUP BY 1
ORDER BY 2 DESC;

-- id: shop-080
-- source: tutorial
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 7 left-function, 3 private-keys
SELECT LEFT(city, 1) AS initial, COUNT(*) FROM customers GROUP BY LEFT(city, 1) ORDER BY 1;

-- id: shop-081
-- source: tutorial
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 4 scalar-subquery
SELECT COUNT(*) AS above_average
FROM orders
WHERE total > (SELECT AVG(total) FROM orders);

-- id: shop-082
-- source: tutorial
-- dialect: postgres
-- world: shop
-- label: unanswerable: returns rows of persons
-- shapes: 4 scalar-subquery
SELECT order_id, total
FROM orders
WHERE total > (SELECT AVG(total) FROM orders);

-- id: shop-083
-- source: tutorial
-- dialect: postgres
-- world: shop
-- label: unanswerable: changes data
-- shapes: ddl-dml
UPDATE customers SET newsletter = false WHERE country = 'FR';

-- id: shop-084
-- source: tutorial
-- dialect: postgres
-- world: shop
-- label: unanswerable: changes data
-- shapes: ddl-dml
INSERT INTO customers (customer_id, email, country) VALUES (9001, 'new@example.org', 'CH');

-- id: shop-085
-- source: tutorial
-- dialect: postgres
-- world: shop
-- label: unanswerable: changes data
-- shapes: ddl-dml
DELETE FROM orders WHERE status = 'cancelled';

-- id: shop-086
-- source: tutorial
-- dialect: postgres
-- world: shop
-- label: unanswerable: changes data
-- shapes: ddl-dml
CREATE TABLE big_orders AS SELECT * FROM orders WHERE total > 1000;

-- id: shop-087
-- source: tutorial
-- dialect: postgres
-- world: shop
-- label: unanswerable: changes data
-- shapes: ddl-dml
CREATE VIEW german_customers AS SELECT customer_id, email FROM customers WHERE country = 'DE';

-- id: shop-088
-- source: tutorial
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 3 public-only
SELECT category, COUNT(*) AS products, ROUND(AVG(price)::numeric, 2) AS avg_price
FROM products
GROUP BY category
ORDER BY products DESC;

-- id: shop-089
-- source: tutorial
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 3 public-only
SELECT name, price FROM products WHERE price BETWEEN 50 AND 100 AND NOT discontinued ORDER BY price;

-- id: shop-090
-- source: tutorial
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 3 public-only, 2 select-star
SELECT * FROM countries;

-- id: shop-091
-- source: tutorial
-- dialect: postgres
-- world: shop
-- label: answerable
-- shapes: 2 table-statement, 3 public-only
TABLE categories;

-- id: shop-092
-- source: tutorial
-- dialect: postgres
-- world: shop
-- label: unanswerable: returns rows of persons
-- shapes: 2 table-statement
TABLE customers;

-- id: rides-005
-- source: tutorial
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: ordinary
SELECT bike_type, AVG(duration_min) AS avg_minutes, COUNT(*) AS trips
FROM trips
GROUP BY bike_type
ORDER BY avg_minutes DESC;

-- id: rides-006
-- source: tutorial
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 4 window, 7 date-trunc
SELECT DATE_TRUNC('month', started_at) AS month,
       COUNT(*) AS trips,
       COUNT(*) - LAG(COUNT(*), 1) OVER (ORDER BY DATE_TRUNC('month', started_at)) AS diff
FROM trips
GROUP BY 1
ORDER BY 1;

-- id: rides-007
-- source: tutorial
-- dialect: postgres
-- world: rides
-- label: unanswerable: window over different persons' rows, returned row by row
-- shapes: 4 window
SELECT start_station, duration_min,
       SUM(duration_min) OVER (PARTITION BY start_station ORDER BY started_at) AS running_total
FROM trips
WHERE started_at < '2024-02-01';

-- id: rides-008
-- source: tutorial
-- dialect: postgres
-- world: rides
-- label: unanswerable: returns rows of persons
-- shapes: 4 window
SELECT trip_id, NTILE(4) OVER (ORDER BY duration_min) AS quartile FROM trips;

-- id: rides-009
-- source: tutorial
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 6 per-unit-window
SELECT AVG(gap_days) AS mean_gap
FROM (
  SELECT EXTRACT(EPOCH FROM (started_at - LAG(started_at) OVER (PARTITION BY rider_id ORDER BY started_at))) / 86400 AS gap_days
  FROM trips
) g
WHERE gap_days IS NOT NULL;

-- id: rides-010
-- source: tutorial
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 6 per-unit-subquery
SELECT trips_per_rider, COUNT(*) AS riders
FROM (SELECT rider_id, COUNT(*) AS trips_per_rider FROM trips GROUP BY rider_id) t
GROUP BY trips_per_rider
ORDER BY trips_per_rider;

-- id: rides-011
-- source: tutorial
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 6 per-unit-subquery
SELECT AVG(n) AS trips_per_rider, STDDEV(n) AS sd
FROM (SELECT rider_id, COUNT(*) AS n FROM trips GROUP BY rider_id) AS per_rider;

-- id: school-001
-- source: tutorial
-- dialect: postgres
-- world: school
-- label: answerable
-- shapes: ordinary
SELECT school, COUNT(*) AS students, ROUND(AVG(gpa)::numeric, 2) AS mean_gpa
FROM students
GROUP BY school;

-- id: school-002
-- source: tutorial
-- dialect: postgres
-- world: school
-- label: answerable
-- shapes: 5 foreign-key-join, 3 public-table-keys
SELECT c.subject, AVG(g.score) AS mean_score
FROM grades g
JOIN enrollments e ON g.enrollment_id = e.enrollment_id
JOIN courses c ON c.course_id = e.course_id
GROUP BY c.subject
ORDER BY mean_score DESC;

-- id: school-003
-- source: tutorial
-- dialect: postgres
-- world: school
-- label: answerable
-- shapes: 5 foreign-key-join, 2 comma-join
SELECT t.teacher_name, COUNT(DISTINCT e.student_id) AS students
FROM enrollments e, courses c, teachers t
WHERE e.course_id = c.course_id
  AND c.teacher_id = t.teacher_id
  AND e.term = '2025S'
GROUP BY t.teacher_name
ORDER BY students DESC;

-- id: school-004
-- source: tutorial
-- dialect: postgres
-- world: school
-- label: answerable
-- shapes: 3 public-only
SELECT t.department, COUNT(c.course_id) AS courses, SUM(c.credits) AS credits
FROM teachers t
LEFT JOIN courses c ON c.teacher_id = t.teacher_id
GROUP BY t.department
ORDER BY t.department;

-- id: school-005
-- source: tutorial
-- dialect: postgres
-- world: school
-- label: answerable
-- shapes: 6 per-unit-subquery
SELECT COUNT(*) AS overloaded
FROM (
  SELECT student_id
  FROM enrollments
  WHERE term = '2024F'
  GROUP BY student_id
  HAVING COUNT(*) >= 3
) s;

-- id: school-006
-- source: tutorial
-- dialect: postgres
-- world: school
-- label: answerable
-- shapes: 8 one-meaning
SELECT COUNT(*) FROM students WHERE free_lunch = TRUE;

-- id: school-007
-- source: tutorial
-- dialect: postgres
-- world: school
-- label: answerable
-- shapes: 7 age, 7 date-difference
SELECT gender, AVG(EXTRACT(YEAR FROM AGE(DATE '2025-06-30', birth_date))) AS mean_age
FROM students
GROUP BY gender;

-- id: school-008
-- source: tutorial
-- dialect: postgres
-- world: school
-- label: unanswerable: returns a row of one person
-- shapes: 4 top-n
SELECT student_id, gpa FROM students WHERE gpa IS NOT NULL ORDER BY gpa DESC LIMIT 1 OFFSET 1;

-- id: school-009
-- source: tutorial
-- dialect: postgres
-- world: school
-- label: unanswerable: returns rows of persons
-- shapes: ordinary
SELECT s.student_id, s.guardian_email
FROM students s
JOIN attendance a ON a.student_id = s.student_id
WHERE a.status = 'absent'
GROUP BY s.student_id, s.guardian_email
HAVING COUNT(*) > 3;

-- id: school-010
-- source: tutorial
-- dialect: postgres
-- world: school
-- label: unanswerable: exact extreme
-- shapes: 4 scalar-subquery
SELECT COUNT(*) FROM students WHERE gpa = (SELECT MAX(gpa) FROM students);
