-- id: hospital-003
-- source: duckdb
-- dialect: duckdb
-- world: hospital
-- label: answerable
-- shapes: 2 from-first
FROM visits SELECT ward, COUNT(*) AS n GROUP BY ALL ORDER BY ALL;

-- id: hospital-004
-- source: duckdb
-- dialect: duckdb
-- world: hospital
-- label: answerable
-- shapes: 2 group-by-all
SELECT ward, emergency, COUNT(*) AS n, AVG(cost) AS cost FROM visits GROUP BY ALL ORDER BY ALL;

-- id: hospital-005
-- source: duckdb
-- dialect: duckdb
-- world: hospital
-- label: answerable
-- shapes: 6 quantile
SELECT ward, quantile_cont(cost, 0.9) AS p90, median(severity) AS sev FROM visits GROUP BY ward;

-- id: hospital-006
-- source: duckdb
-- dialect: duckdb
-- world: hospital
-- label: answerable
-- shapes: 6 quantile
SELECT quantile_cont(cost, [0.25, 0.5, 0.75]) AS quartiles FROM visits;

-- id: hospital-007
-- source: duckdb
-- dialect: duckdb
-- world: hospital
-- label: answerable
-- shapes: 6 quantile
-- plain: SELECT quantile_disc(age, 0.5) AS median_age, quantile_cont(cost, 0.99) AS p99 FROM visits
SELECT quantile_disc(age, 0.5) AS median_age, approx_quantile(cost, 0.99) AS p99 FROM visits;

-- id: hospital-008
-- source: duckdb
-- dialect: duckdb
-- world: hospital
-- label: answerable
-- shapes: 6 mad
SELECT mad(cost) AS mad_cost FROM visits;

-- id: hospital-009
-- source: duckdb
-- dialect: duckdb
-- world: hospital
-- label: answerable
-- shapes: 6 histogram
SELECT histogram(severity) AS severities FROM visits;

-- id: hospital-010
-- source: duckdb
-- dialect: duckdb
-- world: hospital
-- label: answerable
-- shapes: 6 kurtosis
SELECT skewness(cost) AS skew, kurtosis(cost) AS kurt FROM visits;

-- id: hospital-011
-- source: duckdb
-- dialect: duckdb
-- world: hospital
-- label: answerable
-- shapes: 6 entropy
SELECT entropy(ward) AS bits FROM visits;

-- id: hospital-012
-- source: duckdb
-- dialect: duckdb
-- world: hospital
-- label: answerable
-- shapes: 6 mode
SELECT mode(ward) AS commonest_ward, mode(severity) AS commonest_severity FROM visits;

-- id: hospital-013
-- source: duckdb
-- dialect: duckdb
-- world: hospital
-- label: answerable
-- shapes: 6 approx-distinct
-- plain: SELECT COUNT(DISTINCT diagnosis_code) AS codes FROM visits
SELECT approx_count_distinct(diagnosis_code) AS codes FROM visits;

-- id: hospital-014
-- source: duckdb
-- dialect: duckdb
-- world: hospital
-- label: answerable
-- shapes: 6 count-if
SELECT count_if(emergency) AS emergencies, sum(emergency::INT) AS also, avg(emergency::INT) AS share FROM visits;

-- id: hospital-015
-- source: duckdb
-- dialect: duckdb
-- world: hospital
-- label: answerable
-- shapes: 7 date-part-functions
SELECT year(admitted) AS y, month(admitted) AS m, COUNT(*) AS n FROM visits GROUP BY y, m ORDER BY y, m;

-- id: hospital-016
-- source: duckdb
-- dialect: duckdb
-- world: hospital
-- label: answerable
-- shapes: 7 dayname
SELECT dayname(admitted) AS weekday, COUNT(*) AS n FROM visits GROUP BY weekday;

-- id: hospital-017
-- source: duckdb
-- dialect: duckdb
-- world: hospital
-- label: answerable
-- shapes: 7 strftime
SELECT strftime(admitted, '%Y-%m') AS ym, COUNT(DISTINCT patient_id) AS patients FROM visits GROUP BY ym ORDER BY ym;

-- id: hospital-018
-- source: duckdb
-- dialect: duckdb
-- world: hospital
-- label: answerable
-- shapes: 7 time-bucket
SELECT time_bucket(INTERVAL '7 days', admitted) AS wk, COUNT(*) AS n
FROM visits
WHERE admitted >= TIMESTAMP '2025-05-01'
GROUP BY wk
ORDER BY wk;

-- id: hospital-019
-- source: duckdb
-- dialect: duckdb
-- world: hospital
-- label: answerable
-- shapes: 7 datediff
SELECT ward, avg(date_diff('day', admitted, discharged)) AS days FROM visits GROUP BY ward;

-- id: hospital-020
-- source: duckdb
-- dialect: duckdb
-- world: hospital
-- label: answerable
-- shapes: 7 integer-division
SELECT age // 10 * 10 AS decade, COUNT(*) AS n FROM visits GROUP BY decade ORDER BY decade;

-- id: hospital-021
-- source: duckdb
-- dialect: duckdb
-- world: hospital
-- label: answerable
-- shapes: 7 float-division
SELECT AVG(age / 10) AS tenths FROM visits;

-- id: hospital-022
-- source: duckdb
-- dialect: duckdb
-- world: hospital
-- label: answerable
-- shapes: 4 pivot
PIVOT visits ON emergency USING COUNT(*) GROUP BY ward ORDER BY ward;

-- id: hospital-023
-- source: duckdb
-- dialect: duckdb
-- world: hospital
-- label: answerable
-- shapes: 4 qualify
SELECT ward, diagnosis_code, COUNT(*) AS n
FROM visits
GROUP BY ward, diagnosis_code
QUALIFY row_number() OVER (PARTITION BY ward ORDER BY n DESC) = 1;

-- id: hospital-024
-- source: duckdb
-- dialect: duckdb
-- world: hospital
-- label: answerable
-- shapes: 2 filter-clause
SELECT ward, COUNT(*) FILTER (severity >= 4) AS severe FROM visits GROUP BY ward;

-- id: hospital-025
-- source: duckdb
-- dialect: duckdb
-- world: hospital
-- label: answerable
-- shapes: 2 using
SELECT floor, SUM(cost) AS cost FROM visits JOIN wards USING (ward) GROUP BY floor ORDER BY floor;

-- id: hospital-026
-- source: duckdb
-- dialect: duckdb
-- world: hospital
-- label: answerable
-- shapes: 5 semi-join
SELECT COUNT(*) AS n FROM patients SEMI JOIN visits USING (patient_id);

-- id: hospital-027
-- source: duckdb
-- dialect: duckdb
-- world: hospital
-- label: answerable
-- shapes: 5 anti-join
SELECT insurance, COUNT(*) AS never_seen FROM patients ANTI JOIN visits USING (patient_id) GROUP BY insurance;

-- id: hospital-028
-- source: duckdb
-- dialect: duckdb
-- world: hospital
-- label: answerable
-- shapes: 2 positional-alias
SELECT ward AS w, AVG(cost) AS c FROM visits WHERE w <> 'Emergency' GROUP BY w HAVING c > 100 ORDER BY c DESC;

-- id: hospital-029
-- source: duckdb
-- dialect: duckdb
-- world: hospital
-- label: answerable
-- shapes: 6 arg-max-of-results
SELECT arg_max(ward, n) AS busiest FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward);

-- id: hospital-030
-- source: duckdb
-- dialect: duckdb
-- world: hospital
-- label: answerable
-- shapes: 2 columns-expression
SELECT COUNT(COLUMNS(*)) FROM (SELECT zip, blood_type, smoker, height_cm FROM patients);

-- id: hospital-031
-- source: duckdb
-- dialect: duckdb
-- world: hospital
-- label: unanswerable: returns rows of persons
-- shapes: 2 from-first
FROM patients LIMIT 5;

-- id: hospital-032
-- source: duckdb
-- dialect: duckdb
-- world: hospital
-- label: unanswerable: returns rows of persons
-- shapes: 6 sample
SELECT * FROM visits USING SAMPLE 10;

-- id: hospital-033
-- source: duckdb
-- dialect: duckdb
-- world: hospital
-- label: unanswerable: exact extreme, per column
-- shapes: 6 summarize
SUMMARIZE visits;

-- id: hospital-034
-- source: duckdb
-- dialect: duckdb
-- world: hospital
-- label: unanswerable: collects values of persons
-- shapes: ordinary
SELECT ward, list(cost) AS costs FROM visits GROUP BY ward;

-- id: hospital-035
-- source: duckdb
-- dialect: duckdb
-- world: hospital
-- label: unanswerable: the row with an exact extreme
-- shapes: 4 arg-max
SELECT arg_max(patient_id, cost) AS costliest FROM visits;

-- id: hospital-036
-- source: duckdb
-- dialect: duckdb
-- world: hospital
-- label: unanswerable: a value of some person's row
-- shapes: ordinary
SELECT first(diagnosis_code ORDER BY admitted DESC) FROM visits;

-- id: hospital-037
-- source: duckdb
-- dialect: duckdb
-- world: hospital
-- label: unanswerable: writes a file with rows of persons
-- shapes: ddl-dml
COPY (SELECT * FROM visits) TO 'visits.csv' (HEADER);

-- id: hospital-038
-- source: duckdb
-- dialect: duckdb
-- world: hospital
-- label: unanswerable: joins rows of different persons by nearness in time
-- shapes: 5 asof-join
SELECT AVG(b.cost - a.cost)
FROM visits a ASOF JOIN visits b ON a.ward = b.ward AND a.admitted >= b.discharged;
