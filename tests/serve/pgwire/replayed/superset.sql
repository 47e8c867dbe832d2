-- What Superset asks by its engine spec for PostgreSQL and its query builder: time ranges, grains, filters, datasets.

-- answered
SELECT DATE_TRUNC('month', visited) AS visited, COUNT(*) AS count
FROM public.visits
WHERE visited >= TO_DATE('2025-01-01', 'YYYY-MM-DD') AND visited < TO_DATE('2025-06-01', 'YYYY-MM-DD')
GROUP BY DATE_TRUNC('month', visited) ORDER BY count DESC
LIMIT 10000
;;

-- answered
SELECT DATE_TRUNC('day', seen) AS seen, sum(cost) AS "SUM(cost)"
FROM public.visits
WHERE seen >= TO_TIMESTAMP('2025-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
    AND seen < TO_TIMESTAMP('2025-02-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
GROUP BY DATE_TRUNC('day', seen) ORDER BY "SUM(cost)" DESC
LIMIT 1000
;;

-- answered
SELECT DATE_TRUNC('minute', seen) AS seen, COUNT(*) AS count
FROM public.visits
WHERE seen >= TO_TIMESTAMP('2025-01-01 10:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
    AND seen < TO_TIMESTAMP('2025-01-01 11:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
GROUP BY DATE_TRUNC('minute', seen)
LIMIT 50000
;;

-- free: the values of a filter are keys that the policy declares
SELECT ward AS ward
FROM public.visits
GROUP BY ward
LIMIT 1000
;;

-- free
SELECT DISTINCT insured AS insured
FROM public.visits
LIMIT 10000
;;

-- answered: a virtual dataset of rows
SELECT ward AS ward, COUNT(*) AS count
FROM (SELECT * FROM visits WHERE age > 30) AS virtual_table
WHERE ward IN ('Surgery', 'Emergency')
GROUP BY ward ORDER BY count DESC
LIMIT 10000
;;

-- answered: a virtual dataset of an answer
SELECT ward AS ward, AVG(n) AS "AVG(n)"
FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS virtual_table
GROUP BY ward ORDER BY "AVG(n)" DESC
LIMIT 10000
;;

-- free: a dataset is saved
SELECT * FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS virtual_table LIMIT 0
;;

-- answered: the editor
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward LIMIT 1001
;;

-- refused raw-column: count them: COUNT(*)
SELECT * FROM public.visits LIMIT 100
-- instead
SELECT COUNT(*) FROM public.visits LIMIT 100
;;

-- refused type: bins of 300 seconds are FLOOR(EXTRACT(EPOCH FROM seen) / 300) * 300
SELECT DATE_TRUNC('hour', seen) + INTERVAL '5 minutes' * FLOOR(EXTRACT(MINUTE FROM seen) / 5) AS seen, COUNT(*) AS count
FROM public.visits
WHERE seen < TO_TIMESTAMP('2025-01-01 12:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
GROUP BY DATE_TRUNC('hour', seen) + INTERVAL '5 minutes' * FLOOR(EXTRACT(MINUTE FROM seen) / 5)
LIMIT 10000
-- instead
SELECT FLOOR(EXTRACT(EPOCH FROM seen) / 300) * 300 AS seen, COUNT(*) AS count
FROM public.visits
WHERE seen < TO_TIMESTAMP('2025-01-01 12:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
GROUP BY FLOOR(EXTRACT(EPOCH FROM seen) / 300) * 300
LIMIT 10000
;;
