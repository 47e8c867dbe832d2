-- by ward
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward;

-- by ward, each row a unit
SELECT ward, COUNT(*) AS n, SUM(cost) AS s, AVG(age) AS m FROM people GROUP BY ward;

-- by an integer key
SELECT grade, COUNT(*) AS n, SUM(grade) AS s FROM visits GROUP BY grade;

-- by a date
SELECT day, COUNT(*) AS n, SUM(cost) AS s FROM visits GROUP BY day ORDER BY day;

-- by a bool
SELECT urgent, COUNT(*) AS n, AVG(score) AS m FROM visits GROUP BY urgent;

-- by two keys
SELECT ward, sex, COUNT(*) AS n, AVG(cost) AS m FROM visits GROUP BY ward, sex;

-- by three keys
SELECT sex, grade, urgent, SUM(age) AS s FROM people GROUP BY sex, grade, urgent;

-- by four keys with a condition
SELECT ward, sex, grade, urgent, COUNT(*) AS n FROM visits WHERE age > 10 GROUP BY ward, sex, grade, urgent;

-- ordinals
SELECT ward, sex, COUNT(*) AS n FROM visits GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2;

-- by an alias
SELECT ward AS w, COUNT(*) AS n FROM visits GROUP BY w ORDER BY w;

-- the keys are not shown
SELECT COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n;

-- qualified by the table
SELECT visits.ward, COUNT(visits.age) AS n FROM visits WHERE visits.age > 3 GROUP BY visits.ward;

-- qualified by an alias
SELECT v.sex, SUM(v.age) AS s FROM visits AS v WHERE v.cost > 100 GROUP BY v.sex HAVING SUM(v.age) > 10 ORDER BY v.sex;

-- any case
select WARD, Count(*) as N from VISITS where AGE > 3 group by Ward order by wArD;

-- quoted identifiers
SELECT "Group", COUNT(*) AS "how many?" FROM "visits" GROUP BY "Group" ORDER BY "how many?" DESC, "Group";

-- the alias of a count is the name of a column
SELECT ward AS w, COUNT(*) AS age FROM visits GROUP BY ward ORDER BY age DESC, w;

-- an ordinal means its own column
SELECT ward AS w, COUNT(*) AS ward FROM visits GROUP BY 1 ORDER BY 1;

-- condition on the key
SELECT ward, COUNT(*) AS n FROM visits WHERE ward IN ('A', 'B', 'a "quoted" one') GROUP BY ward;

-- a key that is also an argument
SELECT grade, SUM(grade * 2) AS s, AVG(grade) AS m FROM visits GROUP BY grade ORDER BY grade DESC;

-- a table and columns of odd names
SELECT "k""0""", COUNT(*) AS n, SUM("x'; DROP TABLE visits; --") AS s
FROM "odd ""t""; -- table" WHERE "k""0""" <> '''; DROP TABLE visits; --' GROUP BY "k""0""";

-- columns named as the generated ones
SELECT k0, k1, SUM(a1) AS s, SUM(a0) AS t, COUNT(*) AS n, SUM(unit) AS u
FROM "odd ""t""; -- table" WHERE a0 > 5 AND unit < 45 AND row_rank > 3 AND group_rank < 99 GROUP BY k0, k1;

-- columns named as the generated ones, crosswise
SELECT k1, SUM(a1 + unit) AS s, SUM(row_rank - a0) AS t, COUNT(*) AS n
FROM "odd ""t""; -- table" WHERE k0 = 'u' AND a1 >= 1 GROUP BY k1 ORDER BY k1;
