-- What Tableau asks when a sheet is made: the cursor as in a published log, the other statements in forms that it is
-- known to use. None of them was recorded from Tableau for this file.

-- answered: the cursor that it reads through
BEGIN; declare "SQL_CUR0x7fd83880dc00" cursor with hold for SELECT SUM(1) AS "cnt:visits:ok", "visits"."ward" AS "ward"
FROM "public"."visits" "visits"
GROUP BY 2; fetch 2048 in "SQL_CUR0x7fd83880dc00"; close "SQL_CUR0x7fd83880dc00"; COMMIT
;;

-- answered
SELECT CAST(DATE_TRUNC('MONTH', CAST("visits"."visited" AS DATE)) AS DATE) AS "tmn:visited:ok",
  AVG("visits"."cost") AS "avg:cost:ok"
FROM "public"."visits" "visits"
WHERE (("visits"."visited" >= (DATE '2025-01-01')) AND ("visits"."visited" <= (DATE '2025-06-30')))
GROUP BY 1
;;

-- answered
SELECT CAST(EXTRACT(YEAR FROM "visits"."visited") AS BIGINT) AS "yr:visited:ok", SUM("visits"."cost") AS "sum:cost:ok"
FROM "public"."visits" "visits"
GROUP BY 1
HAVING (COUNT(1) > 0)
;;

-- free: the values of a filter
SELECT "visits"."ward" AS "ward" FROM "public"."visits" "visits" GROUP BY 1 ORDER BY 1 ASC NULLS FIRST
;;

-- answered: the ends of a filter by dates
SELECT MIN("visits"."visited") AS "TEMP(lower)", MAX("visits"."visited") AS "TEMP(upper)"
FROM "public"."visits" "visits"
HAVING (COUNT(1) > 0)
;;

-- free: the columns of a table
SELECT * FROM "public"."visits" LIMIT 0
;;

-- refused unsupported: nothing is ever written; a session has views: CREATE TEMP VIEW my_view AS SELECT ...
CREATE LOCAL TEMPORARY TABLE "#Tableau_1_2_3_Connect" ("COL" INTEGER) ON COMMIT PRESERVE ROWS
-- instead
CREATE TEMP VIEW my_view AS SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward
;;

-- refused raw-column: put it into an aggregate: AVG("visits"."age")
SELECT "visits"."age" AS "age" FROM "public"."visits" "visits" LIMIT 1000
-- instead
SELECT AVG("visits"."age") AS "age" FROM "public"."visits" "visits" LIMIT 1000
;;
