-- having
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING COUNT(*) > 140;

-- having by an alias, and an aggregate that is not shown
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING n > 10 AND AVG(cost) < 2500 OR ward = 'B';

-- having without keys
SELECT COUNT(*) AS n FROM visits HAVING COUNT(*) > 5;

-- having that no row passes
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING COUNT(*) < 0;

-- order by count, then key
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n DESC, ward ASC;

-- order by an aggregate that is not shown
SELECT ward FROM visits GROUP BY ward ORDER BY SUM(cost) DESC, ward;

-- order by an expression
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n * -1 + 3, ward DESC;

-- nulls first
SELECT ward, AVG(age) FILTER (WHERE ward <> 'B') AS m FROM visits GROUP BY ward ORDER BY m DESC NULLS FIRST, ward;

-- nulls last
SELECT ward, AVG(age) FILTER (WHERE ward <> 'B') AS m FROM people GROUP BY ward ORDER BY m NULLS LAST, ward;

-- nulls where nothing is said
SELECT sex, urgent, AVG(age) FILTER (WHERE sex = 'f') AS m FROM people GROUP BY sex, urgent ORDER BY m, sex, urgent;

-- nulls where nothing is said, downward
SELECT sex, urgent, AVG(age) FILTER (WHERE sex = 'f') AS m FROM people GROUP BY sex, urgent ORDER BY m DESC, sex, urgent;

-- limit
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n DESC, ward LIMIT 3;

-- limit and offset
SELECT grade, COUNT(*) AS n FROM visits GROUP BY grade ORDER BY grade LIMIT 2 OFFSET 2;

-- limit of none, and an offset beyond the end
SELECT grade, COUNT(*) AS n FROM visits GROUP BY grade ORDER BY grade LIMIT 0 OFFSET 9;

-- a ratio
SELECT ward, SUM(cost) / COUNT(*) AS per_visit FROM visits WHERE ward <> 'empty' GROUP BY ward ORDER BY ward;

-- arithmetic over aggregates
SELECT COUNT(*) * 2 AS a, SUM(age) - COUNT(*) AS b, -COUNT(*) AS c, ABS(0 - COUNT(*)) AS d, (SUM(age) + 1) / 2 AS e FROM visits;

-- round
SELECT ROUND(AVG(cost), 2) AS two, ROUND(AVG(cost)) AS whole, ROUND(COUNT(*) / 7.0, 3) AS three FROM visits;

-- round of integers
SELECT ROUND(COUNT(*)) AS a, ROUND(SUM(age), 1) AS b FROM visits;

-- floor and ceil over aggregates
SELECT FLOOR(AVG(age)) AS f, CEIL(AVG(age)) AS c, FLOOR(COUNT(*) / 10) AS tens, CEIL(COUNT(*)) AS n FROM visits;

-- case over aggregates
SELECT ward, CASE WHEN COUNT(*) > 150 THEN 'many' WHEN COUNT(*) > 0 THEN 'few' ELSE 'none' END AS size, COUNT(*) AS n
FROM visits GROUP BY ward;

-- least, greatest and coalesce over aggregates
SELECT grade, LEAST(COUNT(*), 180) AS l, GREATEST(AVG(cost), 2500.0) AS g, COALESCE(AVG(age), -1) AS c
FROM visits GROUP BY grade ORDER BY grade;

-- keys in expressions
SELECT grade * 10 + 1 AS label, grade = 3 AS is_three, COUNT(*) + grade AS n FROM visits GROUP BY grade ORDER BY grade;

-- ! division by an aggregate that is zero
SELECT COUNT(*) / COUNT(*) FILTER (WHERE age > 5000) AS ratio, COUNT(*) AS n FROM visits;

-- everything at once
SELECT v.ward AS w, v.sex, COUNT(*) AS n, ROUND(AVG(v.cost), 1) AS m, SUM(CASE WHEN v.urgent THEN 1 ELSE 0 END) AS u
FROM visits AS v WHERE v.age BETWEEN 1 AND 119 AND v.note IS NOT NULL GROUP BY 1, v.sex
HAVING n > 3 AND m > 100 ORDER BY n DESC, w, sex NULLS LAST LIMIT 9 OFFSET 1;

-- constants beside aggregates
SELECT 1 AS one, 'x' AS text, COUNT(*) AS n, DATE '2025-01-01' AS d, TRUE AS b, 2.5 AS f FROM people;

-- comparisons of released values
SELECT ward, COUNT(*) > 140 AS large, AVG(age) BETWEEN 40 AND 60 AS middling, COUNT(*) AS n FROM visits GROUP BY ward;

-- released values cut and rounded
SELECT ward, TRUNC(AVG(age)) AS a, ROUND(AVG(cost), 1) AS b, COUNT(*) // 7 AS c FROM visits GROUP BY ward;

-- dates computed from keys
SELECT day, day + 1 AS following, STRFTIME(day, '%d %b') AS label, COUNT(*) AS n FROM visits GROUP BY day;
