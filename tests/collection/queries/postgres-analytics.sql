-- id: rides-015
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 7 dow
SELECT EXTRACT(DOW FROM started_at) AS dow, COUNT(*) AS trips FROM trips GROUP BY 1 ORDER BY 1;

-- id: rides-016
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 7 isodow
SELECT EXTRACT(ISODOW FROM started_at)::int AS weekday, AVG(fare) AS fare
FROM trips GROUP BY 1 ORDER BY 1;

-- id: rides-017
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 7 to-char
-- plain: SELECT strftime(started_at, '%a') AS weekday, COUNT(*) AS trips FROM trips GROUP BY 1
SELECT TO_CHAR(started_at, 'Dy') AS weekday, COUNT(*) AS trips
FROM trips
GROUP BY TO_CHAR(started_at, 'Dy');

-- id: rides-018
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 7 to-char
-- plain: SELECT strftime(started_at, '%G-%V') AS iso_week, SUM(fare) AS fares FROM trips
-- plain: WHERE started_at >= '2025-01-01' GROUP BY 1 ORDER BY 1
SELECT TO_CHAR(started_at, 'IYYY-IW') AS iso_week, SUM(fare) AS fares
FROM trips
WHERE started_at >= '2025-01-01'
GROUP BY 1
ORDER BY 1;

-- id: rides-019
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 7 iso-week
SELECT EXTRACT(ISOYEAR FROM started_at) AS y, EXTRACT(WEEK FROM started_at) AS w, COUNT(*) AS trips
FROM trips
GROUP BY 1, 2
ORDER BY 1, 2;

-- id: rides-020
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 7 epoch
SELECT AVG(EXTRACT(EPOCH FROM (ended_at - started_at)) / 60) AS minutes
FROM trips
WHERE ended_at IS NOT NULL;

-- id: rides-021
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 7 epoch, 6 quantile
SELECT bike_type,
       PERCENTILE_CONT(0.95) WITHIN GROUP (ORDER BY EXTRACT(EPOCH FROM ended_at - started_at)) AS p95_seconds
FROM trips
GROUP BY bike_type;

-- id: rides-022
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 6 width-bucket
-- plain: SELECT CASE WHEN distance_km < 0 THEN 0 WHEN distance_km >= 20 THEN 11
-- plain:        ELSE CAST(floor(distance_km / 2) AS INTEGER) + 1 END AS bucket, COUNT(*) AS trips
-- plain: FROM trips GROUP BY bucket ORDER BY bucket
SELECT WIDTH_BUCKET(distance_km, 0, 20, 10) AS bucket, COUNT(*) AS trips
FROM trips
GROUP BY bucket
ORDER BY bucket;

-- id: rides-023
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 6 histogram
SELECT FLOOR(fare / 5) * 5 AS fare_from, COUNT(*) AS trips
FROM trips
GROUP BY 1
ORDER BY 1;

-- id: rides-024
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 6 histogram
SELECT FLOOR(duration_min / 10.0)::int * 10 AS bin, COUNT(*) FROM trips WHERE duration_min IS NOT NULL GROUP BY bin ORDER BY bin;

-- id: rides-025
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 6 regression
SELECT REGR_SLOPE(fare, distance_km) AS slope,
       REGR_INTERCEPT(fare, distance_km) AS intercept,
       REGR_R2(fare, distance_km) AS r2,
       REGR_COUNT(fare, distance_km) AS n
FROM trips;

-- id: rides-026
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 6 correlation
SELECT CORR(duration_min, distance_km) AS r, COVAR_POP(duration_min, distance_km) AS cov
FROM trips;

-- id: rides-027
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 6 variance
SELECT bike_type, STDDEV_POP(fare), VAR_POP(fare), STDDEV_SAMP(tip) FROM trips GROUP BY bike_type;

-- id: rides-028
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 6 sum-distinct
SELECT COUNT(DISTINCT rating) AS ratings, AVG(DISTINCT rating) AS mean_of_ratings, SUM(DISTINCT rating) AS sum_of_ratings
FROM trips;

-- id: rides-029
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 6 mode
SELECT MODE() WITHIN GROUP (ORDER BY start_station) AS busiest_station FROM trips;

-- id: rides-030
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 8 is-distinct-from
SELECT COUNT(*) FROM trips WHERE promo_code IS DISTINCT FROM 'HELLO';

-- id: rides-031
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 8 is-distinct-from
SELECT COUNT(*) FROM trips WHERE end_station IS NOT DISTINCT FROM start_station;

-- id: rides-032
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 3 null-keys
SELECT promo_code, COUNT(*) AS trips, SUM(fare) AS fares FROM trips GROUP BY promo_code ORDER BY trips DESC;

-- id: rides-033
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 7 cast-rounding
SELECT CAST(distance_km AS INTEGER) AS km, COUNT(*) FROM trips GROUP BY 1 ORDER BY 1;

-- id: rides-034
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 7 round
SELECT ROUND(distance_km::numeric) AS km, AVG(fare)::numeric(10, 2) AS fare FROM trips GROUP BY 1 ORDER BY 1;

-- id: rides-035
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 7 integer-division
-- plain: SELECT (2025 - birth_year) // 10 * 10 AS decade, COUNT(*) AS riders FROM riders
-- plain: WHERE birth_year IS NOT NULL GROUP BY 1 ORDER BY 1
SELECT (2025 - birth_year) / 10 * 10 AS decade, COUNT(*) AS riders
FROM riders
WHERE birth_year IS NOT NULL
GROUP BY 1
ORDER BY 1;

-- id: rides-036
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 7 log
SELECT AVG(LOG(fare)) AS mean_log10, AVG(LN(fare)) AS mean_ln FROM trips WHERE fare >= 1;

-- id: rides-037
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 7 current-date, 7 interval
-- plain: SELECT membership, COUNT(*) FROM riders
-- plain: WHERE joined_on > DATE '2025-06-30' - INTERVAL '6 months'
-- plain: GROUP BY membership
SELECT membership, COUNT(*) FROM riders
WHERE joined_on > CURRENT_DATE - INTERVAL '6 months'
GROUP BY membership;

-- id: rides-038
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 7 now
-- plain: SELECT COUNT(*) FROM trips WHERE started_at >= TIMESTAMP '2025-06-30 00:00:00' - INTERVAL '48 hours'
SELECT COUNT(*) FROM trips WHERE started_at >= NOW() - INTERVAL '48 hours';

-- id: rides-039
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 7 date-minus-integer
SELECT COUNT(*) FROM payments WHERE paid_on >= DATE '2025-06-30' - 14;

-- id: rides-040
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 7 iso-string
-- plain: SELECT COUNT(*) FROM trips
-- plain: WHERE started_at >= TIMESTAMP '2025-03-30 06:00:00' AND started_at < TIMESTAMP '2025-03-31 06:00:00'
SELECT COUNT(*) FROM trips WHERE started_at >= '2025-03-30T06:00:00' AND started_at < '2025-03-31T06:00:00Z';

-- id: rides-041
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 7 make-date
SELECT COUNT(*) FROM trips
WHERE started_at::date BETWEEN MAKE_DATE(2024, 12, 24) AND MAKE_DATE(2024, 12, 31);

-- id: rides-042
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 7 to-date
-- plain: SELECT DATE_PART('month', paid_on) AS m, SUM(amount) AS paid FROM payments
-- plain: WHERE paid_on >= DATE '2025-01-01' GROUP BY 1 ORDER BY 1
SELECT DATE_PART('month', paid_on) AS m, SUM(amount) AS paid
FROM payments
WHERE paid_on >= TO_DATE('01/01/2025', 'DD/MM/YYYY')
GROUP BY 1
ORDER BY 1;

-- id: rides-043
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 5 foreign-key-join
SELECT t.bike_type, p.method, SUM(p.amount) AS paid, COUNT(*) FILTER (WHERE p.refunded) AS refunds
FROM trips t
JOIN payments p ON p.trip_id = t.trip_id
GROUP BY t.bike_type, p.method
ORDER BY 1, 2;

-- id: rides-044
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 5 foreign-key-join, 5 anti-join
SELECT COUNT(*) AS unpaid_trips, SUM(t.fare) AS unpaid_fares
FROM trips t
LEFT JOIN payments p ON p.trip_id = t.trip_id
WHERE p.trip_id IS NULL;

-- id: rides-045
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 5 foreign-key-join, 6 per-unit-subquery
SELECT COUNT(*) AS riders, AVG(paid) AS mean_paid
FROM (
  SELECT t.rider_id, SUM(p.amount) AS paid
  FROM payments p
  JOIN trips t USING (trip_id)
  WHERE NOT p.refunded
  GROUP BY t.rider_id
) x;

-- id: rides-046
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 5 join-on-unit, 2 full-join
SELECT COUNT(*) AS rows_, COUNT(r.rider_id) AS with_rider, COUNT(t.trip_id) AS with_trip
FROM riders r
FULL OUTER JOIN trips t ON t.rider_id = r.rider_id;

-- id: rides-047
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 5 exists-public
SELECT COUNT(*) AS trips_on_wet_days
FROM trips t
WHERE EXISTS (SELECT 1 FROM weather w WHERE w.day = t.started_at::date AND w.rain_mm > 5);

-- id: rides-048
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 5 filtered-public-subquery
SELECT s.district, COUNT(*) AS trips
FROM trips t
JOIN (SELECT station_id, district FROM stations WHERE capacity >= 20) s ON s.station_id = t.start_station
GROUP BY s.district;

-- id: rides-049
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 4 correlated-result, 4 cte
WITH by_station AS (
  SELECT start_station, COUNT(*) AS departures FROM trips GROUP BY start_station
)
SELECT st.station_name, b.departures, ROUND(b.departures * 1.0 / st.capacity, 2) AS per_dock
FROM by_station b
JOIN stations st ON st.station_id = b.start_station
ORDER BY per_dock DESC
LIMIT 10;

-- id: rides-050
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 4 join-of-results, 2 full-join
WITH outs AS (SELECT start_station AS id, COUNT(*) AS n FROM trips GROUP BY 1),
     ins AS (SELECT end_station AS id, COUNT(*) AS n FROM trips WHERE end_station IS NOT NULL GROUP BY 1)
SELECT COALESCE(outs.id, ins.id) AS station, COALESCE(ins.n, 0) - COALESCE(outs.n, 0) AS net_flow
FROM outs FULL OUTER JOIN ins ON ins.id = outs.id
ORDER BY net_flow;

-- id: rides-051
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 4 window, 4 percent-of-total
SELECT bike_type, DATE_TRUNC('year', started_at)::date AS y, COUNT(*) AS n,
       COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY DATE_TRUNC('year', started_at)::date) AS share
FROM trips
GROUP BY 1, 2;

-- id: rides-052
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 4 lateral-values
SELECT v.label, COUNT(*) AS trips
FROM trips t
JOIN (VALUES ('short', 0, 15), ('medium', 16, 45), ('long', 46, 1440)) AS v(label, lo, hi)
  ON t.duration_min BETWEEN v.lo AND v.hi
GROUP BY v.label;

-- id: rides-053
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 4 nested-aggregate
SELECT ROUND(AVG(trips), 1) AS mean_trips_per_district
FROM (
  SELECT s.district, COUNT(*) AS trips
  FROM trips t JOIN stations s ON s.station_id = t.end_station
  GROUP BY s.district
) d;

-- id: rides-054
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 7 generate-series, 3 public-key-list
SELECT d.day::date, COUNT(t.trip_id) AS trips
FROM GENERATE_SERIES(TIMESTAMP '2025-06-01', TIMESTAMP '2025-06-14', INTERVAL '1 day') AS d(day)
LEFT JOIN trips t ON t.started_at::date = d.day::date
GROUP BY 1
ORDER BY 1;

-- id: rides-055
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 7 regexp
SELECT COUNT(*) FROM trips WHERE promo_code ~ '^S.*R$';

-- id: rides-056
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 7 greatest-least
SELECT AVG(LEAST(GREATEST(fare / NULLIF(distance_km, 0), 0), 20)) AS fare_per_km FROM trips;

-- id: rides-057
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 7 nullif, 4 ratio
SELECT home_district, SUM(tip) / NULLIF(SUM(fare), 0) AS tip_rate
FROM riders r JOIN trips t ON r.rider_id = t.rider_id
GROUP BY home_district;

-- id: rides-058
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: answerable
-- shapes: 6 bool-and
SELECT BOOL_OR(n > 100) AS any_busy_station, BOOL_AND(n > 5) AS all_used
FROM (SELECT start_station, COUNT(*) AS n FROM trips GROUP BY start_station) s;

-- id: rides-059
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: unanswerable: exact extreme
-- shapes: ordinary
SELECT MIN(fare), MAX(fare) FROM trips WHERE bike_type = 'cargo';

-- id: rides-060
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: unanswerable: whether any one person's row exists
-- shapes: 6 bool-and
SELECT BOOL_OR(fare > 29.9) FROM trips;

-- id: rides-061
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: unanswerable: whether any one person's row exists
-- shapes: 5 exists
SELECT EXISTS (SELECT 1 FROM trips WHERE start_station = 30 AND rating = 1);

-- id: rides-062
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: unanswerable: collects values of persons
-- shapes: ordinary
SELECT start_station, ARRAY_AGG(rating ORDER BY started_at) FROM trips GROUP BY start_station;

-- id: rides-063
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: unanswerable: returns rows of persons
-- shapes: 4 window
SELECT rider_id, started_at, SUM(fare) OVER (PARTITION BY rider_id ORDER BY started_at) AS running_fare FROM trips;

-- id: rides-064
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: unanswerable: joins rows of different persons
-- shapes: 5 self-join
SELECT COUNT(*) AS met
FROM trips a JOIN trips b
  ON a.end_station = b.start_station AND a.ended_at < b.started_at AND b.started_at < a.ended_at + INTERVAL '5 minutes'
WHERE a.rider_id <> b.rider_id;

-- id: rides-065
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: unanswerable: returns rows of persons
-- shapes: 6 sample
SELECT * FROM trips TABLESAMPLE BERNOULLI (1);

-- id: rides-066
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: unanswerable: returns rows of persons
-- shapes: 6 sample
SELECT trip_id, fare FROM trips ORDER BY RANDOM() LIMIT 50;

-- id: rides-067
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: unanswerable: window across different persons' rows
-- shapes: 4 window
SELECT AVG(gap)
FROM (
  SELECT EXTRACT(EPOCH FROM started_at - LAG(started_at) OVER (PARTITION BY start_station ORDER BY started_at)) AS gap
  FROM trips
) g;

-- id: rides-068
-- source: postgres-analytics
-- dialect: postgres
-- world: rides
-- label: unanswerable: recursion over rows of persons
-- shapes: 4 recursive
WITH RECURSIVE hops AS (
  SELECT trip_id, end_station, 1 AS depth FROM trips WHERE start_station = 1
  UNION ALL
  SELECT t.trip_id, t.end_station, h.depth + 1 FROM trips t JOIN hops h ON t.start_station = h.end_station WHERE h.depth < 3
)
SELECT depth, COUNT(*) FROM hops GROUP BY depth;
