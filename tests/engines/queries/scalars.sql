-- plus and minus
SELECT SUM(age + 1) AS a, SUM(age - grade) AS b, SUM(10 - age) AS c FROM visits;

-- times
SELECT SUM(age * grade) AS a, SUM(age * 2) AS b, SUM(cost * 0.5) AS c FROM visits;

-- squares
SELECT SUM(age * age) AS a, SUM(score * score) AS s FROM people;

-- division by a constant
SELECT SUM(age / 2.0) AS half, SUM(cost / 4) AS quarter FROM visits;

-- ~ division by a column
SELECT SUM(cost / (age + 1)) AS s, AVG(cost / (grade + 0.5)) AS m FROM visits;

-- division that may be by zero, counted
SELECT COUNT(cost / age) AS n FROM visits WHERE age > 0 OR age IS NULL;

-- ~ division that may be by zero, clamped
SELECT SUM(GREATEST(0, LEAST(cost / age, 100))) AS s FROM people WHERE age <> 0;

-- signs
SELECT SUM(-age) AS a, SUM(- -age) AS b, SUM(+grade) AS c, SUM(-score) AS d, SUM(-(-cost)) AS e FROM visits;

-- abs
SELECT SUM(ABS(score)) AS a, SUM(ABS(age - 50)) AS b, AVG(ABS(big)) AS c FROM visits;

-- floor and ceil of floats
SELECT SUM(FLOOR(cost)) AS f, SUM(CEIL(cost)) AS c, SUM(FLOOR(score)) AS g, SUM(CEIL(score + 0.25)) AS h FROM visits;

-- floor and ceil of integers
SELECT SUM(FLOOR(age)) AS f, SUM(CEIL(grade)) AS c, COUNT(FLOOR(age)) AS n FROM visits;

-- floor of integers beyond 53 bits
SELECT SUM(FLOOR(big)) AS f, SUM(CEIL(big - 1)) AS c FROM people WHERE big BETWEEN 0 AND 9007199254740993;

-- nearest integer
SELECT SUM(FLOOR(cost + 0.5)) AS s FROM people;

-- least and greatest
SELECT SUM(LEAST(age, 40)) AS a, SUM(GREATEST(age, grade, 7)) AS b, SUM(LEAST(cost, 99.5, age)) AS c FROM visits;

-- an unbounded column, bounded in the question
SELECT SUM(LEAST(GREATEST(stay, 0), 30)) AS nights FROM visits;

-- ~ an unbounded float, bounded in the question
SELECT AVG(GREATEST(40, LEAST(pulse, 180))) AS pulse FROM people;

-- coalesce
SELECT SUM(COALESCE(age, 0)) AS a, AVG(COALESCE(cost, score, -1)) AS b, COUNT(COALESCE(note, 'none')) AS n FROM visits;

-- comparisons of numbers
SELECT COUNT(*) FROM visits WHERE age >= 18 AND age < 65 AND cost <= 4000.5 AND score > -9.5 AND grade <> 3 AND stay != 7;

-- comparisons with both sides computed
SELECT COUNT(*) AS n FROM visits WHERE age * 2 > cost / 10 AND score + 1 < grade;

-- equality of texts
SELECT COUNT(*) AS n FROM visits WHERE note = 'it''s' OR note = 'say "hi"' OR note = '日本' OR note = '' OR note = 'a;b--c';

-- texts that differ
SELECT COUNT(*) AS n FROM people WHERE note <> 'naïve' AND ward <> 'Ostflügel';

-- in and not in
SELECT COUNT(*) AS n FROM visits WHERE ward IN ('A', 'it''s') AND grade NOT IN (1, 5) AND cost NOT IN (1.5, 2);

-- between
SELECT COUNT(*) AS n FROM visits WHERE age BETWEEN 20 AND 60 AND cost NOT BETWEEN 10.5 AND 99.99;

-- dates
SELECT COUNT(*) AS n FROM visits WHERE admitted >= DATE '2024-06-01' AND admitted < '2025-01-01' AND day <> DATE '2025-01-03';

-- dates between and in
SELECT COUNT(*) AS n FROM people WHERE admitted BETWEEN '2024-02-01' AND '2024-12-31' AND day IN (DATE '2025-01-01', DATE '2025-01-02');

-- null tests
SELECT COUNT(*) AS n FROM visits WHERE age IS NULL OR (cost IS NOT NULL AND NOT (note IS NULL));

-- three-valued logic
SELECT COUNT(*) AS n FROM visits WHERE NOT (age > 50 AND cost > 1000) OR (urgent AND score < 0);

-- a bool by itself
SELECT COUNT(*) AS n, SUM(CASE WHEN NOT urgent THEN 1 ELSE 2 END) AS s FROM people WHERE urgent = TRUE OR NOT urgent;

-- case in where
SELECT COUNT(*) AS n FROM visits WHERE CASE WHEN sex = 'f' THEN age > 30 ELSE age > 50 END;

-- nested case
SELECT SUM(CASE WHEN age > 60 THEN CASE WHEN urgent THEN 3 ELSE 2 END WHEN age > 30 THEN 1 ELSE 0 END) AS s FROM visits;

-- a column compared with infinity's neighbors
SELECT COUNT(*) AS n FROM visits WHERE pulse > 60.5 AND pulse < 1e199;

-- no row at all
SELECT COUNT(*) AS n, COUNT(age) AS a, AVG(age) AS m FROM visits WHERE age > 5000;
