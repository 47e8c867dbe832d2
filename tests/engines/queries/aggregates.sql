-- all rows
SELECT COUNT(*) FROM visits;

-- all rows, each its own unit
SELECT COUNT(*) AS n FROM people;

-- values that are there
SELECT COUNT(age) AS a, COUNT(cost) AS c, COUNT(note) AS t, COUNT(admitted) AS d, COUNT(urgent) AS b FROM visits;

-- count of a constant and of an expression
SELECT COUNT(1) AS one, COUNT(age + cost) AS both, COUNT(pulse) AS p FROM people;

-- integer sum
SELECT SUM(age) FROM visits;

-- integer sum over rows that are units
SELECT SUM(age), SUM(grade) FROM people;

-- sums beyond 53 bits
SELECT SUM(big) AS s FROM visits;

-- float sum on its grid
SELECT SUM(cost) AS s, SUM(score) AS t FROM visits;

-- averages
SELECT AVG(age) AS a, AVG(cost) AS c, AVG(score) AS s FROM visits;

-- averages over rows that are units
SELECT AVG(age), AVG(cost), AVG(big) FROM people;

-- one part serves several columns
SELECT COUNT(age) AS n, SUM(age) AS s, AVG(age) AS m, SUM(age) AS again FROM visits;

-- filter
SELECT COUNT(*) FILTER (WHERE age > 40) AS n, SUM(cost) FILTER (WHERE urgent) AS s,
       AVG(score) FILTER (WHERE sex = 'f') AS m FROM visits;

-- filter beside the whole, by ward
SELECT ward, COUNT(*) FILTER (WHERE urgent) AS urgent_ones, COUNT(*) AS n FROM people GROUP BY ward;

-- case inside an aggregate
SELECT SUM(CASE WHEN sex = 'f' THEN cost WHEN sex = 'm' THEN 0 ELSE NULL END) AS women,
       COUNT(CASE WHEN age < 18 THEN 1 END) AS minors FROM visits;

-- case with a subject
SELECT SUM(CASE grade WHEN 1 THEN 10 WHEN 2 THEN 20 ELSE 0 END) AS points FROM people;

-- conditions as numbers
SELECT AVG(CASE WHEN urgent THEN 1 ELSE 0 END) AS share FROM visits;
