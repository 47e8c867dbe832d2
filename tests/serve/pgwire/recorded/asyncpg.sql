-- What asyncpg 0.32.0 asks.

SELECT ward, COUNT(*) AS n FROM visits WHERE age >= $1 AND visited BETWEEN $2 AND $3 AND ward IN ($4,$5) GROUP BY ward LIMIT $6
;;

BEGIN;
;;

SELECT ward, COUNT(*) n FROM visits GROUP BY ward
;;

COMMIT;
;;

SELECT tacit.explain($1)
;;

SELECT * FROM tacit.budget WHERE who = $1
;;

SELECT pg_advisory_unlock_all();
CLOSE ALL;
UNLISTEN *;
RESET ALL;
;;
