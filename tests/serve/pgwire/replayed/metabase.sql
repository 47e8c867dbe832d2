-- What Metabase asks for its questions, by its public sources.

-- answered
SELECT DATE_TRUNC('month', CAST("public"."visits"."visited" AS date)) AS "visited", COUNT(*) AS "count"
FROM "public"."visits"
GROUP BY DATE_TRUNC('month', CAST("public"."visits"."visited" AS date))
ORDER BY DATE_TRUNC('month', CAST("public"."visits"."visited" AS date)) ASC
;;

-- answered
SELECT CAST(DATE_TRUNC('month', "public"."visits"."seen") AS date) AS "seen", SUM("public"."visits"."cost") AS "sum"
FROM "public"."visits"
WHERE ("public"."visits"."seen" >= timestamp with time zone '2025-01-01 00:00:00.000Z')
    AND ("public"."visits"."seen" < timestamp with time zone '2025-04-01 00:00:00.000Z')
GROUP BY CAST(DATE_TRUNC('month', "public"."visits"."seen") AS date)
ORDER BY CAST(DATE_TRUNC('month', "public"."visits"."seen") AS date) ASC
;;

-- answered: a question over a model
SELECT "source"."ward" AS "ward", COUNT(*) AS "count"
FROM (SELECT "public"."visits"."ward" AS "ward", "public"."visits"."age" AS "age" FROM "public"."visits") AS "source"
WHERE "source"."age" > 30
GROUP BY "source"."ward" ORDER BY "source"."ward" ASC
LIMIT 1048575
;;

-- answered: bins
SELECT FLOOR(("public"."visits"."age" / 10.0)) * 10.0 AS "age", COUNT(*) AS "count"
FROM "public"."visits"
GROUP BY FLOOR(("public"."visits"."age" / 10.0)) * 10.0 ORDER BY FLOOR(("public"."visits"."age" / 10.0)) * 10.0 ASC
;;

-- free: the values of a filter
SELECT "public"."visits"."ward" AS "ward" FROM "public"."visits"
GROUP BY "public"."visits"."ward" ORDER BY "public"."visits"."ward" ASC LIMIT 1000
;;

-- refused raw-column: put it into an aggregate: AVG("visits"."age")
SELECT "public"."visits"."age" AS "age" FROM "public"."visits" LIMIT 1048575
-- instead
SELECT AVG("visits"."age") AS "age" FROM "public"."visits" LIMIT 1048575
;;

-- refused unknown-function: write the date itself; the owner may declare what is today in the policy
SELECT COUNT(*) AS "count" FROM "public"."visits"
WHERE "public"."visits"."visited" >= DATE_TRUNC('month', (NOW() + INTERVAL '-1 month'))
-- instead
SELECT COUNT(*) AS "count" FROM "public"."visits"
WHERE "public"."visits"."visited" >= DATE_TRUNC('month', (DATE '2025-12-31' + INTERVAL '-1 month'))
;;
