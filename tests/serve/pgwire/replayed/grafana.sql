-- What the macros of Grafana's data source for PostgreSQL become, by its public sources.

-- answered: $__timeGroup(seen, '5m'), $__timeFilter(seen)
SELECT floor(extract(epoch from seen)/300)*300 AS "time", count(*) AS n
FROM visits
WHERE seen BETWEEN '2025-01-01T10:00:00Z' AND '2025-01-01T12:00:00Z'
GROUP BY 1 ORDER BY 1
;;

-- answered: $__timeGroupAlias(seen, $__interval), from and to of a dashboard in milliseconds
SELECT floor(extract(epoch from seen)/86400)*86400 AS "time", avg(cost) AS "avg cost"
FROM visits
WHERE seen BETWEEN '2025-01-01T00:00:00.123Z' AND '2025-03-02T00:00:00.999Z'
GROUP BY time ORDER BY time
;;

-- answered: the same of a date
SELECT floor(extract(epoch from visited)/86400)*86400 AS "time", count(*) AS n
FROM visits
WHERE visited BETWEEN '2025-01-01T00:00:00Z' AND '2025-01-31T00:00:00Z'
GROUP BY 1
;;

-- answered: $__timeFrom(), $__timeTo()
SELECT count(*) AS n FROM visits WHERE seen >= '2025-01-01T00:00:00Z' AND seen <= '2025-02-01T00:00:00Z'
;;

-- answered: $__unixEpochFilter(extract(epoch from seen))
SELECT count(*) AS n FROM visits
WHERE extract(epoch from seen) >= 1735689600 AND extract(epoch from seen) <= 1738368000
;;

-- answered: $__unixEpochGroupAlias(age, '10s')
SELECT floor((age)/10)*10 AS "time", count(*) AS n FROM visits GROUP BY 1
;;

-- free: a variable of a dashboard
SELECT DISTINCT ward FROM visits ORDER BY ward
;;

-- refused raw-column: put it into an aggregate: AVG(cost)
SELECT floor(extract(epoch from seen)/86400)*86400 AS "time", cost
FROM visits
WHERE seen BETWEEN '2025-01-01T00:00:00Z' AND '2025-01-02T00:00:00Z'
GROUP BY 1 ORDER BY 1
-- instead
SELECT floor(extract(epoch from seen)/86400)*86400 AS "time", AVG(cost)
FROM visits
WHERE seen BETWEEN '2025-01-01T00:00:00Z' AND '2025-01-02T00:00:00Z'
GROUP BY 1 ORDER BY 1
;;

-- refused type: group by FLOOR((extract(epoch from seen)) / 100000)
SELECT extract(epoch from seen) as "time", count(*) AS n
FROM visits
WHERE seen BETWEEN '2025-01-01T00:00:00Z' AND '2025-01-02T00:00:00Z'
GROUP BY 1
-- instead
SELECT FLOOR((extract(epoch from seen)) / 100000) as "time", count(*) AS n
FROM visits
WHERE seen BETWEEN '2025-01-01T00:00:00Z' AND '2025-01-02T00:00:00Z'
GROUP BY 1
;;
