-- days and months added to a date
SELECT COUNT(*) AS n FROM visits WHERE day + 3 > DATE '2025-01-08' AND admitted + INTERVAL '1 month' < DATE '2025-03-31' - INTERVAL 7 DAY;

-- days taken from a date
SELECT SUM(DATE '2025-02-01' - (GREATEST(LEAST(day, DATE '2025-01-31'), DATE '2025-01-01') - 2)) AS s, COUNT(*) AS n FROM visits WHERE day - INTERVAL '2 days' <> '2025-01-01';

-- a date and a number of days in a column
SELECT COUNT(*) AS n FROM visits WHERE admitted + INTERVAL (age) DAY > DATE '2025-01-01';

-- months between
SELECT SUM(LEAST(GREATEST(DATE_DIFF('month', admitted, DATE '2025-06-01'), 0), 30)) AS s FROM visits;

-- quarters and years between
SELECT COUNT(*) AS n FROM visits WHERE DATE_DIFF('quarter', admitted, day) > 1 OR DATEDIFF('year', admitted, day) = 0;

-- the text of a month as a key
SELECT STRFTIME(LEAST(GREATEST(COALESCE(admitted, DATE '2024-01-01'), DATE '2024-01-01'), DATE '2025-06-30'), '%Y-%m') AS m, COUNT(*) AS n, SUM(age) AS s FROM visits GROUP BY 1 ORDER BY m;

-- the name of a weekday as a key
SELECT DAYNAME(LEAST(GREATEST(day, DATE '2025-01-01'), DATE '2025-01-07')) AS w, COUNT(*) AS n FROM visits GROUP BY DAYNAME(LEAST(GREATEST(day, DATE '2025-01-01'), DATE '2025-01-07'));

-- a year and week in one number as a key
SELECT YEARWEEK(LEAST(GREATEST(day, DATE '2024-12-28'), DATE '2025-01-20')) AS w, COUNT(*) AS n FROM visits GROUP BY 1;

-- the last day of a month as a key
SELECT LAST_DAY(LEAST(GREATEST(day, DATE '2024-12-28'), DATE '2025-02-02')) AS d, COUNT(*) AS n FROM visits GROUP BY 1;

-- parts of dates
SELECT COUNT(*) AS n FROM visits WHERE DAYOFYEAR(admitted) > 100 AND ISOYEAR(admitted) = 2024 AND EXTRACT(epoch FROM admitted) > 1717000000;

-- a text made of an integer and a bool as keys
SELECT grade::text AS g, urgent::text AS u, COUNT(*) AS n FROM visits GROUP BY 1, 2;

-- the text of an age as a condition
SELECT COUNT(*) AS n FROM visits WHERE age::VARCHAR LIKE '1%' OR CAST(admitted AS VARCHAR) LIKE '2024-12%';

-- rounding over rows
SELECT SUM(ROUND(score)) AS a, SUM(ROUND(CAST(cost AS DECIMAL(18, 2)), 1)::DOUBLE) AS b, SUM(TRUNC(score)) AS c FROM visits;

-- whole division
SELECT SUM(age // 7) AS a, SUM(grade // (grade + 1)) AS b, SUM(-age // 7) AS c FROM visits;

-- whole division as a key
SELECT age // 10 AS tens, COUNT(*) AS n FROM visits WHERE age IS NOT NULL GROUP BY 1 ORDER BY 1;

-- ~ logarithms
SELECT SUM(LOG10(age + 1)) AS a, SUM(LOG(2, age + 1)) AS b FROM visits;

-- parts of texts
SELECT COUNT(*) AS n FROM visits WHERE LEFT(note, 2) = 'ok' OR RIGHT(note, 1) = 's' OR SPLIT_PART(note, ';', 2) = 'b--c';

-- places and replacements in texts
SELECT COUNT(*) AS n FROM visits WHERE STRPOS(note, 'ï') = 3 OR REPLACE(note, 'hi', '') = 'say ""' OR POSITION('%' IN note) > 0;

-- patterns with wildcards as themselves
SELECT COUNT(*) AS n FROM visits WHERE note LIKE '!%!_' ESCAPE '!' OR STARTS_WITH(note, '%') OR note LIKE 'o' || '%';

-- distinct from
SELECT COUNT(*) AS n FROM visits WHERE note IS DISTINCT FROM 'ok' AND age IS NOT DISTINCT FROM age AND stay IS DISTINCT FROM grade;

-- lists of columns
SELECT COUNT(*) AS n FROM visits WHERE age NOT IN (stay, grade, 3) AND ward IN ('A', 'B');

-- counts of conditions
SELECT COUNT_IF(age > 40) AS a, COUNT_IF(urgent AND age < 20) AS b FROM visits;

-- texts put together without NULLs
SELECT COUNT(DISTINCT CONCAT_WS('-', note, ward)) AS n FROM people;
