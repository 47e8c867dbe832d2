-- What psycopg 3.3.8 asks.

BEGIN
;;

SET tacit.epsilon = 1
;;

SELECT ward, COUNT(*) AS n FROM visits WHERE age >= $1 AND ward <> $2 AND visited > $3 AND insured = $4 GROUP BY ward
;;

SELECT $1::text, $2::int
;;

SAVEPOINT "_pg3_1"
;;

SELECT
    typname AS name, oid, typarray AS array_oid,
    oid::regtype::text AS regtype, typdelim AS delimiter
FROM pg_type t
WHERE t.oid = to_regtype($1)
ORDER BY t.oid
;;

RELEASE "_pg3_1"
;;

SELECT 1
;;

COMMIT
;;
