-- What psycopg2 2.9.13 asks.

BEGIN
;;

SET tacit.epsilon = 1
;;

SELECT ward, COUNT(*) AS n FROM visits WHERE age >= 30 AND visited >= '2025-03-01'::date AND ward IN ('A', 'it''s') GROUP BY ward
;;

SELECT t.oid, typarray
FROM pg_type t JOIN pg_namespace ns
    ON typnamespace = ns.oid
WHERE typname = 'hstore';
;;

COMMIT
;;

BEGIN ISOLATION LEVEL SERIALIZABLE
;;

SELECT 1
;;
