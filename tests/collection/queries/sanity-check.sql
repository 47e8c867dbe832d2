-- id: school-011
-- source: sanity-check
-- dialect: duckdb
-- world: school
-- label: answerable
-- shapes: ordinary
SELECT COUNT(*) AS n, COUNT(gpa) AS with_gpa, COUNT(*) - COUNT(gpa) AS missing FROM students;

-- id: school-012
-- source: sanity-check
-- dialect: duckdb
-- world: school
-- label: answerable
-- shapes: ordinary
SELECT 100.0 * SUM(CASE WHEN guardian_email IS NULL THEN 1 ELSE 0 END) / COUNT(*) AS pct_missing FROM students;

-- id: school-013
-- source: sanity-check
-- dialect: duckdb
-- world: school
-- label: answerable
-- shapes: ordinary
SELECT COUNT(DISTINCT student_id) AS students, COUNT(*) AS enrollments FROM enrollments;

-- id: school-014
-- source: sanity-check
-- dialect: duckdb
-- world: school
-- label: answerable
-- shapes: 2 count-unit
SELECT COUNT(*) - COUNT(student_id) AS null_students FROM attendance;

-- id: school-015
-- source: sanity-check
-- dialect: duckdb
-- world: school
-- label: answerable
-- shapes: 6 per-unit-subquery
SELECT COUNT(*) AS duplicated
FROM (
  SELECT student_id, course_id, term
  FROM enrollments
  GROUP BY student_id, course_id, term
  HAVING COUNT(*) > 1
);

-- id: school-016
-- source: sanity-check
-- dialect: duckdb
-- world: school
-- label: answerable
-- shapes: 6 per-unit-subquery
SELECT n, COUNT(*) AS students FROM (SELECT student_id, COUNT(*) AS n FROM enrollments GROUP BY student_id) GROUP BY n ORDER BY n;

-- id: school-017
-- source: sanity-check
-- dialect: duckdb
-- world: school
-- label: answerable
-- shapes: ordinary
SELECT COUNT(*) AS out_of_range FROM grades WHERE score NOT BETWEEN 0 AND 100;

-- id: school-018
-- source: sanity-check
-- dialect: duckdb
-- world: school
-- label: answerable
-- shapes: ordinary
SELECT COUNT(*) AS dropped_before_start FROM enrollments WHERE dropped_on < enrolled_on;

-- id: school-019
-- source: sanity-check
-- dialect: duckdb
-- world: school
-- label: answerable
-- shapes: 6 variance
SELECT kind, AVG(score) AS mean, STDDEV(score) AS sd, COUNT(score) AS n FROM grades GROUP BY kind;

-- id: school-020
-- source: sanity-check
-- dialect: duckdb
-- world: school
-- label: answerable
-- shapes: 6 quantile
SELECT quantile_cont(gpa, 0.05) AS p5, median(gpa) AS p50, quantile_cont(gpa, 0.95) AS p95 FROM students;

-- id: school-021
-- source: sanity-check
-- dialect: duckdb
-- world: school
-- label: answerable
-- shapes: 6 histogram
SELECT floor(score / 10) * 10 AS bin, COUNT(*) AS n FROM grades WHERE score IS NOT NULL GROUP BY bin ORDER BY bin;

-- id: school-022
-- source: sanity-check
-- dialect: duckdb
-- world: school
-- label: answerable
-- shapes: 4 weighted-average, 5 foreign-key-join
SELECT c.subject, SUM(g.score * g.weight) / SUM(g.weight) AS weighted
FROM grades g
JOIN enrollments e USING (enrollment_id)
JOIN courses c USING (course_id)
WHERE g.score IS NOT NULL
GROUP BY c.subject
ORDER BY c.subject;

-- id: school-023
-- source: sanity-check
-- dialect: duckdb
-- world: school
-- label: answerable
-- shapes: 5 foreign-key-join, 5 anti-join
SELECT COUNT(*) AS ungraded
FROM enrollments e
LEFT JOIN grades g ON g.enrollment_id = e.enrollment_id
WHERE g.grade_id IS NULL;

-- id: school-024
-- source: sanity-check
-- dialect: duckdb
-- world: school
-- label: answerable
-- shapes: 5 foreign-key-join, 5 not-exists
SELECT COUNT(*) AS ungraded
FROM enrollments e
WHERE NOT EXISTS (FROM grades g WHERE g.enrollment_id = e.enrollment_id);

-- id: school-025
-- source: sanity-check
-- dialect: duckdb
-- world: school
-- label: answerable
-- shapes: 6 correlation, 6 per-unit-subquery, 5 join-on-unit
SELECT corr(s.gpa, a.absences) AS r
FROM students s
JOIN (SELECT student_id, COUNT(*) FILTER (WHERE status = 'absent') AS absences FROM attendance GROUP BY student_id) a
  ON a.student_id = s.student_id;

-- id: school-026
-- source: sanity-check
-- dialect: duckdb
-- world: school
-- label: answerable
-- shapes: 4 percent-of-total
SELECT status, COUNT(*) AS n, round(COUNT(*) / SUM(COUNT(*)) OVER () * 100, 1) AS pct FROM attendance GROUP BY status;

-- id: school-027
-- source: sanity-check
-- dialect: duckdb
-- world: school
-- label: answerable
-- shapes: 7 dow
SELECT dayofweek(day) AS dow, AVG((status = 'absent')::INT) AS absence_rate FROM attendance GROUP BY dow ORDER BY dow;

-- id: school-028
-- source: sanity-check
-- dialect: duckdb
-- world: school
-- label: answerable
-- shapes: 3 rollup
SELECT school, grade_level, COUNT(*) AS students FROM students GROUP BY ROLLUP (school, grade_level) ORDER BY ALL;

-- id: school-029
-- source: sanity-check
-- dialect: duckdb
-- world: school
-- label: answerable
-- shapes: 3 declared-keys
SELECT DISTINCT term FROM enrollments;

-- id: school-030
-- source: sanity-check
-- dialect: duckdb
-- world: school
-- label: answerable
-- shapes: 3 declared-keys
SELECT DISTINCT gender, free_lunch FROM students;

-- id: school-031
-- source: sanity-check
-- dialect: duckdb
-- world: school
-- label: answerable
-- shapes: 3 bounded-integer-keys
SELECT grade_level, COUNT(*) AS n FROM students WHERE grade_level >= 9 GROUP BY grade_level ORDER BY grade_level;

-- id: school-032
-- source: sanity-check
-- dialect: duckdb
-- world: school
-- label: answerable
-- shapes: 5 public-join, 3 public-table-keys
SELECT c.title, COUNT(*) AS enrolled, COUNT(e.dropped_on) AS dropped
FROM enrollments e JOIN courses c ON c.course_id = e.course_id
GROUP BY c.title
ORDER BY enrolled DESC
LIMIT 5;

-- id: school-033
-- source: sanity-check
-- dialect: duckdb
-- world: school
-- label: answerable
-- shapes: 5 public-join, 3 public-key-list
SELECT c.course_id, c.title, COUNT(e.enrollment_id) AS enrolled
FROM courses c LEFT JOIN enrollments e ON e.course_id = c.course_id AND e.term = '2025S'
GROUP BY c.course_id, c.title
ORDER BY c.course_id;

-- id: school-034
-- source: sanity-check
-- dialect: duckdb
-- world: school
-- label: answerable
-- shapes: 8 one-meaning
SELECT SUM(1) AS n FROM attendance WHERE status = 'late' AND minutes_late > 10;

-- id: school-035
-- source: sanity-check
-- dialect: duckdb
-- world: school
-- label: answerable
-- shapes: 6 sum-distinct
SELECT SUM(DISTINCT minutes_late) AS s, COUNT(DISTINCT minutes_late) AS c FROM attendance;

-- id: school-036
-- source: sanity-check
-- dialect: duckdb
-- world: school
-- label: unanswerable: returns rows of persons
-- shapes: ordinary
SELECT student_id, COUNT(*) FROM enrollments GROUP BY student_id HAVING COUNT(*) > 8;

-- id: school-037
-- source: sanity-check
-- dialect: duckdb
-- world: school
-- label: unanswerable: returns rows of persons
-- shapes: ordinary
SELECT guardian_email FROM students WHERE free_lunch;

-- id: school-038
-- source: sanity-check
-- dialect: duckdb
-- world: school
-- label: unanswerable: returns rows of persons
-- shapes: 2 select-distinct
SELECT DISTINCT student_id FROM attendance WHERE status = 'absent' AND day = DATE '2025-05-05';

-- id: school-039
-- source: sanity-check
-- dialect: duckdb
-- world: school
-- label: unanswerable: exact extreme
-- shapes: ordinary
SELECT MIN(birth_date) AS oldest, MAX(birth_date) AS youngest FROM students;

-- id: school-040
-- source: sanity-check
-- dialect: duckdb
-- world: school
-- label: unanswerable: exact extreme
-- shapes: 5 foreign-key-join
SELECT e.term, MAX(g.score) AS best FROM grades g JOIN enrollments e USING (enrollment_id) GROUP BY e.term;

-- id: school-041
-- source: sanity-check
-- dialect: duckdb
-- world: school
-- label: unanswerable: joins rows of different persons
-- shapes: 5 self-join
SELECT COUNT(*) FROM students a JOIN students b ON a.guardian_email = b.guardian_email WHERE a.student_id < b.student_id;

-- id: school-042
-- source: sanity-check
-- dialect: duckdb
-- world: school
-- label: unanswerable: joins rows of different persons
-- shapes: 5 self-join
SELECT COUNT(*) FROM enrollments a JOIN enrollments b ON a.course_id = b.course_id AND a.term = b.term AND a.student_id <> b.student_id;

-- id: school-043
-- source: sanity-check
-- dialect: duckdb
-- world: school
-- label: unanswerable: ranks persons against each other
-- shapes: 4 window
SELECT school, AVG(rk) FROM (SELECT school, RANK() OVER (ORDER BY gpa DESC) AS rk FROM students) GROUP BY school;

-- id: school-044
-- source: sanity-check
-- dialect: duckdb
-- world: school
-- label: unanswerable: a person's row compared with the exact extreme of all
-- shapes: 4 window
SELECT COUNT(*) FROM (SELECT gpa, MAX(gpa) OVER (PARTITION BY school) AS best FROM students) WHERE gpa = best;

-- id: school-045
-- source: sanity-check
-- dialect: duckdb
-- world: school
-- label: unanswerable: returns rows of persons
-- shapes: 6 outliers
SELECT enrollment_id, score FROM grades WHERE score < 25 ORDER BY score;

-- id: school-046
-- source: sanity-check
-- dialect: duckdb
-- world: school
-- label: unanswerable: collects values of persons
-- shapes: 6 nested
SELECT school, list_sort(list(gpa))[1:3] AS lowest FROM students GROUP BY school;

-- id: school-047
-- source: sanity-check
-- dialect: duckdb
-- world: school
-- label: unanswerable: a hash over all rows, changed by any one row
-- shapes: ordinary
SELECT bit_xor(hash(student_id, gpa)) AS checksum FROM students;

-- id: school-048
-- source: sanity-check
-- dialect: duckdb
-- world: school
-- label: unanswerable: a person's identifier is the answer
-- shapes: ordinary
SELECT MAX(student_id) FROM students;

-- id: school-049
-- source: sanity-check
-- dialect: duckdb
-- world: school
-- label: unanswerable: the number of rows of one person
-- shapes: ordinary
SELECT MAX(n) FROM (SELECT student_id, COUNT(*) AS n FROM attendance GROUP BY student_id);

-- id: tpch-033
-- source: sanity-check
-- dialect: duckdb
-- world: tpch
-- label: answerable
-- shapes: ordinary
SELECT COUNT(*) AS n, COUNT(DISTINCT l_orderkey) AS orders, COUNT(DISTINCT l_partkey) AS parts FROM lineitem;

-- id: tpch-034
-- source: sanity-check
-- dialect: duckdb
-- world: tpch
-- label: answerable
-- shapes: 5 foreign-key-join, 6 per-unit-subquery
SELECT COUNT(*) AS mismatched
FROM (
  SELECT o_orderkey, o_totalprice, SUM(l_extendedprice * (1 + l_tax) * (1 - l_discount)) AS recomputed
  FROM orders JOIN lineitem ON l_orderkey = o_orderkey
  GROUP BY o_orderkey, o_totalprice
)
WHERE abs(o_totalprice - recomputed) > 1;

-- id: tpch-035
-- source: sanity-check
-- dialect: duckdb
-- world: tpch
-- label: answerable
-- shapes: 3 declared-keys, 4 union-all
SELECT 'customer' AS t, COUNT(*) AS n FROM customer UNION ALL SELECT 'orders', COUNT(*) FROM orders
UNION ALL SELECT 'lineitem', COUNT(*) FROM lineitem UNION ALL SELECT 'part', COUNT(*) FROM part;

-- id: tpch-036
-- source: sanity-check
-- dialect: duckdb
-- world: tpch
-- label: unanswerable: exact extreme
-- shapes: ordinary
SELECT MIN(o_orderdate), MAX(o_orderdate) FROM orders;
