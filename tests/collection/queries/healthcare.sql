-- id: hospital-039
-- source: healthcare
-- dialect: postgres
-- world: hospital
-- label: answerable
-- shapes: ordinary
SELECT ward, COUNT(*) AS admissions, COUNT(DISTINCT patient_id) AS patients
FROM visits
GROUP BY ward
ORDER BY admissions DESC;

-- id: hospital-040
-- source: healthcare
-- dialect: postgres
-- world: hospital
-- label: answerable
-- shapes: 7 epoch
SELECT ward, AVG(EXTRACT(EPOCH FROM (discharged - admitted)) / 3600.0) AS mean_hours
FROM visits
WHERE discharged IS NOT NULL
GROUP BY ward;

-- id: hospital-041
-- source: healthcare
-- dialect: postgres
-- world: hospital
-- label: answerable
-- shapes: 5 public-join, 3 public-table-keys
SELECT i.chapter, COUNT(*) AS visits, SUM(v.cost) AS cost
FROM visits v
JOIN icd i ON i.code = v.diagnosis_code
GROUP BY i.chapter
ORDER BY cost DESC;

-- id: hospital-042
-- source: healthcare
-- dialect: postgres
-- world: hospital
-- label: answerable
-- shapes: 2 right-join, 3 public-key-list
SELECT i.code, i.description, COUNT(v.visit_id) AS visits
FROM visits v
RIGHT JOIN icd i ON i.code = v.diagnosis_code
GROUP BY i.code, i.description
ORDER BY i.code;

-- id: hospital-043
-- source: healthcare
-- dialect: postgres
-- world: hospital
-- label: answerable
-- shapes: 5 public-join, 4 ratio
SELECT w.ward, COUNT(v.visit_id) AS stays, ROUND(COUNT(v.visit_id)::numeric / w.beds, 2) AS per_bed
FROM wards w
LEFT JOIN visits v ON v.ward = w.ward
GROUP BY w.ward, w.beds
ORDER BY per_bed DESC;

-- id: hospital-044
-- source: healthcare
-- dialect: postgres
-- world: hospital
-- label: answerable
-- shapes: 6 readmission, 6 per-unit-window, 7 interval
SELECT AVG(CASE WHEN next_admitted <= discharged + INTERVAL '30 days' THEN 1.0 ELSE 0.0 END) AS readmission_rate
FROM (
  SELECT discharged, LEAD(admitted) OVER (PARTITION BY patient_id ORDER BY admitted, visit_id) AS next_admitted
  FROM visits
) v
WHERE discharged IS NOT NULL;

-- id: hospital-045
-- source: healthcare
-- dialect: postgres
-- world: hospital
-- label: answerable
-- shapes: 6 per-unit-window
SELECT ward, next_ward, COUNT(*) AS transfers
FROM (
  SELECT ward, LEAD(ward) OVER (PARTITION BY patient_id ORDER BY admitted, visit_id) AS next_ward
  FROM visits
) t
WHERE next_ward IS NOT NULL AND next_ward <> ward
GROUP BY ward, next_ward
ORDER BY transfers DESC;

-- id: hospital-046
-- source: healthcare
-- dialect: postgres
-- world: hospital
-- label: answerable
-- shapes: 5 foreign-key-join
SELECT l.test_name, AVG(l.value) AS mean_value, STDDEV(l.value) AS sd, COUNT(*) AS n
FROM lab_results l
GROUP BY l.test_name
ORDER BY l.test_name;

-- id: hospital-047
-- source: healthcare
-- dialect: postgres
-- world: hospital
-- label: answerable
-- shapes: 5 foreign-key-join
SELECT v.ward, l.test_name, AVG(CASE WHEN l.abnormal THEN 1.0 ELSE 0.0 END) AS abnormal_share
FROM lab_results l
JOIN visits v ON v.visit_id = l.visit_id
GROUP BY v.ward, l.test_name
ORDER BY v.ward, l.test_name;

-- id: hospital-048
-- source: healthcare
-- dialect: postgres
-- world: hospital
-- label: answerable
-- shapes: 5 foreign-key-join, 5 join-on-unit
SELECT p.sex, AVG(l.value) AS mean_hba1c
FROM patients p
JOIN visits v ON v.patient_id = p.patient_id
JOIN lab_results l ON l.visit_id = v.visit_id
WHERE l.test_name = 'hba1c'
GROUP BY p.sex;

-- id: hospital-049
-- source: healthcare
-- dialect: postgres
-- world: hospital
-- label: answerable
-- shapes: 5 foreign-key-join, 2 comma-join
SELECT p.insurance, COUNT(DISTINCT p.patient_id) AS patients, COUNT(l.lab_id) AS tests
FROM patients p, visits v, lab_results l
WHERE p.patient_id = v.patient_id AND v.visit_id = l.visit_id AND l.abnormal
GROUP BY p.insurance;

-- id: hospital-050
-- source: healthcare
-- dialect: postgres
-- world: hospital
-- label: answerable
-- shapes: 6 per-unit-subquery, 5 foreign-key-join
SELECT COUNT(*) AS poorly_controlled
FROM (
  SELECT v.patient_id
  FROM visits v JOIN lab_results l ON l.visit_id = v.visit_id
  WHERE l.test_name = 'glucose'
  GROUP BY v.patient_id
  HAVING AVG(l.value) > 140
) x;

-- id: hospital-051
-- source: healthcare
-- dialect: postgres
-- world: hospital
-- label: answerable
-- shapes: 6 latest-value, 6 per-unit-window
SELECT AVG(value) AS mean_latest_ldl
FROM (
  SELECT v.patient_id, l.value,
         ROW_NUMBER() OVER (PARTITION BY v.patient_id ORDER BY l.taken_at DESC, l.lab_id DESC) AS rn
  FROM lab_results l JOIN visits v ON v.visit_id = l.visit_id
  WHERE l.test_name = 'ldl' AND l.value IS NOT NULL
) t
WHERE rn = 1;

-- id: hospital-052
-- source: healthcare
-- dialect: postgres
-- world: hospital
-- label: answerable
-- shapes: 7 age
SELECT CASE WHEN age < 18 THEN '0-17' WHEN age < 40 THEN '18-39' WHEN age < 65 THEN '40-64' ELSE '65+' END AS age_group,
       COUNT(*) AS visits, AVG(severity) AS severity
FROM visits
GROUP BY 1
ORDER BY 1;

-- id: hospital-053
-- source: healthcare
-- dialect: postgres
-- world: hospital
-- label: answerable
-- shapes: 7 extract
-- plain: SELECT year(birth_date) // 10 * 10 AS birth_decade, COUNT(*) AS patients FROM patients
-- plain: GROUP BY birth_decade ORDER BY birth_decade
SELECT EXTRACT(YEAR FROM birth_date)::int / 10 * 10 AS birth_decade, COUNT(*) AS patients
FROM patients
GROUP BY birth_decade
ORDER BY birth_decade;

-- id: hospital-054
-- source: healthcare
-- dialect: postgres
-- world: hospital
-- label: answerable
-- shapes: 7 arithmetic
SELECT AVG(weight_kg / POWER(height_cm / 100.0, 2)) AS bmi
FROM patients
WHERE height_cm IS NOT NULL AND weight_kg IS NOT NULL;

-- id: hospital-055
-- source: healthcare
-- dialect: postgres
-- world: hospital
-- label: answerable
-- shapes: 6 correlation
SELECT CORR(height_cm, weight_kg) AS r, REGR_COUNT(weight_kg, height_cm) AS n FROM patients;

-- id: hospital-056
-- source: healthcare
-- dialect: postgres
-- world: hospital
-- label: answerable
-- shapes: 6 quantile
SELECT ward, PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY cost) AS median_cost
FROM visits
GROUP BY ward
ORDER BY ward;

-- id: hospital-057
-- source: healthcare
-- dialect: postgres
-- world: hospital
-- label: answerable
-- shapes: 6 relative-risk, 4 cte
WITH s AS (
  SELECT p.smoker, COUNT(DISTINCT p.patient_id) AS patients,
         COUNT(DISTINCT p.patient_id) FILTER (WHERE v.diagnosis_code LIKE 'I%') AS cardiac
  FROM patients p LEFT JOIN visits v ON v.patient_id = p.patient_id
  WHERE p.smoker IS NOT NULL
  GROUP BY p.smoker
)
SELECT (SELECT cardiac::numeric / patients FROM s WHERE smoker)
     / (SELECT cardiac::numeric / patients FROM s WHERE NOT smoker) AS relative_risk;

-- id: hospital-058
-- source: healthcare
-- dialect: postgres
-- world: hospital
-- label: answerable
-- shapes: 6 prevalence, 5 exists
SELECT sex, COUNT(*) AS patients,
       SUM(CASE WHEN EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id AND v.diagnosis_code = 'E11')
                THEN 1 ELSE 0 END) AS diabetics
FROM patients p
GROUP BY sex;

-- id: hospital-059
-- source: healthcare
-- dialect: postgres
-- world: hospital
-- label: answerable
-- shapes: 5 in-own-rows
SELECT COUNT(*) AS on_insulin_and_admitted
FROM patients
WHERE patient_id IN (SELECT patient_id FROM prescriptions WHERE drug = 'insulin')
  AND patient_id IN (SELECT patient_id FROM visits);

-- id: hospital-060
-- source: healthcare
-- dialect: postgres
-- world: hospital
-- label: answerable
-- shapes: 4 intersect
SELECT COUNT(*) FROM (
  SELECT patient_id FROM prescriptions WHERE drug = 'aspirin'
  INTERSECT
  SELECT patient_id FROM visits WHERE ward = 'Cardiology'
) both_;

-- id: hospital-061
-- source: healthcare
-- dialect: postgres
-- world: hospital
-- label: answerable
-- shapes: 5 public-join, 3 public-table-keys
SELECT d.class, SUM(pr.days) AS treatment_days, AVG(pr.dose_mg) AS dose, SUM(pr.days * d.unit_cost) AS cost
FROM prescriptions pr
JOIN drugs d ON d.drug = pr.drug
GROUP BY d.class
ORDER BY d.class;

-- id: hospital-062
-- source: healthcare
-- dialect: postgres
-- world: hospital
-- label: answerable
-- shapes: 5 in-public
SELECT COUNT(*) AS generic_scripts, COUNT(DISTINCT patient_id) AS patients
FROM prescriptions
WHERE drug IN (SELECT drug FROM drugs WHERE generic AND unit_cost < 1);

-- id: hospital-063
-- source: healthcare
-- dialect: postgres
-- world: hospital
-- label: answerable
-- shapes: 6 adherence, 6 per-unit-subquery
SELECT AVG(covered) AS mean_days_covered
FROM (SELECT patient_id, LEAST(SUM(days * (1 + COALESCE(refills, 0))), 365) AS covered FROM prescriptions GROUP BY patient_id) c;

-- id: hospital-064
-- source: healthcare
-- dialect: postgres
-- world: hospital
-- label: answerable
-- shapes: 3 null-keys
SELECT blood_type, COUNT(*) FROM patients GROUP BY blood_type ORDER BY blood_type NULLS FIRST;

-- id: hospital-065
-- source: healthcare
-- dialect: postgres
-- world: hospital
-- label: answerable
-- shapes: 3 cube
SELECT sex, insurance, COUNT(*) AS patients FROM patients GROUP BY CUBE (sex, insurance);

-- id: hospital-066
-- source: healthcare
-- dialect: postgres
-- world: hospital
-- label: answerable
-- shapes: 3 narrowed-keys, 7 date-trunc
SELECT DATE_TRUNC('day', admitted)::date AS day, COUNT(*) AS admissions
FROM visits
WHERE admitted >= '2025-02-03' AND admitted < '2025-02-10'
GROUP BY 1
ORDER BY 1;

-- id: hospital-067
-- source: healthcare
-- dialect: postgres
-- world: hospital
-- label: answerable
-- shapes: 4 window, 7 date-trunc
SELECT DATE_TRUNC('month', admitted) AS month, COUNT(*) AS n,
       ROUND(AVG(COUNT(*)) OVER (ORDER BY DATE_TRUNC('month', admitted) ROWS BETWEEN 2 PRECEDING AND CURRENT ROW), 1) AS ma3
FROM visits
GROUP BY 1
ORDER BY 1;

-- id: hospital-068
-- source: healthcare
-- dialect: postgres
-- world: hospital
-- label: answerable
-- shapes: 8 null-logic
SELECT COUNT(*) AS known_no, (SELECT COUNT(*) FROM visits WHERE readmitted IS NULL) AS unknown
FROM visits
WHERE readmitted = FALSE;

-- id: hospital-069
-- source: healthcare
-- dialect: postgres
-- world: hospital
-- label: answerable
-- shapes: 2 left-join-on-filter, 5 join-on-unit
SELECT p.insurance, COUNT(v.visit_id) AS emergency_visits
FROM patients p
LEFT JOIN visits v ON v.patient_id = p.patient_id AND v.emergency
GROUP BY p.insurance
ORDER BY p.insurance;

-- id: hospital-070
-- source: healthcare
-- dialect: postgres
-- world: hospital
-- label: answerable
-- shapes: 6 time-to-event, 6 per-unit-subquery
SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY stays) AS median_stays, AVG(stays) AS mean_stays
FROM (SELECT patient_id, COUNT(*) AS stays FROM visits GROUP BY patient_id) s;

-- id: hospital-071
-- source: healthcare
-- dialect: postgres
-- world: hospital
-- label: answerable
-- shapes: 7 now
-- plain: SELECT COUNT(*) AS in_house FROM visits WHERE admitted <= TIMESTAMP '2025-06-30 00:00:00' AND (discharged IS NULL OR discharged > TIMESTAMP '2025-06-30 00:00:00')
SELECT COUNT(*) AS in_house FROM visits WHERE admitted <= NOW() AND (discharged IS NULL OR discharged > NOW());

-- id: hospital-072
-- source: healthcare
-- dialect: postgres
-- world: hospital
-- label: answerable
-- shapes: 6 census, 3 public-key-list
SELECT w.ward, COUNT(v.visit_id) AS in_house
FROM wards w
LEFT JOIN visits v ON v.ward = w.ward
  AND v.admitted < TIMESTAMP '2025-03-15 00:00:00'
  AND (v.discharged IS NULL OR v.discharged >= TIMESTAMP '2025-03-15 00:00:00')
GROUP BY w.ward
ORDER BY w.ward;

-- id: hospital-073
-- source: healthcare
-- dialect: postgres
-- world: hospital
-- label: unanswerable: returns rows of persons
-- shapes: ordinary
SELECT patient_id, birth_date, zip FROM patients WHERE smoker AND birth_date < '1950-01-01';

-- id: hospital-074
-- source: healthcare
-- dialect: postgres
-- world: hospital
-- label: unanswerable: returns rows of persons
-- shapes: 6 latest-value
SELECT DISTINCT ON (patient_id) patient_id, ward, admitted
FROM visits
ORDER BY patient_id, admitted DESC;

-- id: hospital-075
-- source: healthcare
-- dialect: postgres
-- world: hospital
-- label: unanswerable: returns rows of persons
-- shapes: 4 window
SELECT patient_id, admitted, admitted - LAG(discharged) OVER (PARTITION BY patient_id ORDER BY admitted) AS since_last
FROM visits;

-- id: hospital-076
-- source: healthcare
-- dialect: postgres
-- world: hospital
-- label: unanswerable: exact extreme
-- shapes: ordinary
SELECT ward, MAX(cost) FROM visits GROUP BY ward;

-- id: hospital-077
-- source: healthcare
-- dialect: postgres
-- world: hospital
-- label: unanswerable: exact extreme
-- shapes: 7 date-difference
SELECT MAX(discharged - admitted) AS longest_stay FROM visits;

-- id: hospital-078
-- source: healthcare
-- dialect: postgres
-- world: hospital
-- label: unanswerable: joins rows of different persons
-- shapes: 5 self-join
SELECT COUNT(*) AS contacts
FROM visits a
JOIN visits b ON a.ward = b.ward AND a.patient_id <> b.patient_id
 AND a.admitted < b.discharged AND b.admitted < a.discharged
WHERE a.diagnosis_code = 'J18';

-- id: hospital-079
-- source: healthcare
-- dialect: postgres
-- world: hospital
-- label: unanswerable: collects values of persons
-- shapes: ordinary
SELECT diagnosis_code, STRING_AGG(zip, ',') FROM visits v JOIN patients p USING (patient_id) GROUP BY diagnosis_code;

-- id: hospital-080
-- source: healthcare
-- dialect: postgres
-- world: hospital
-- label: unanswerable: returns a value for each person
-- shapes: ordinary
SELECT p.patient_id, COUNT(v.visit_id) FROM patients p LEFT JOIN visits v ON v.patient_id = p.patient_id GROUP BY p.patient_id;

-- id: hospital-081
-- source: healthcare
-- dialect: postgres
-- world: hospital
-- label: unanswerable: the ids of persons are the answer
-- shapes: 4 except
SELECT patient_id FROM patients EXCEPT SELECT patient_id FROM visits;

-- id: hospital-082
-- source: healthcare
-- dialect: postgres
-- world: hospital
-- label: unanswerable: returns rows of persons
-- shapes: 2 select-distinct
SELECT DISTINCT patient_id, zip, sex FROM patients;

-- id: hospital-083
-- source: healthcare
-- dialect: postgres
-- world: hospital
-- label: unanswerable: a column that the policy does not list
-- shapes: ordinary
SELECT COUNT(*) FROM patients WHERE last_name = 'Muster';

-- id: hospital-084
-- source: healthcare
-- dialect: postgres
-- world: hospital
-- label: unanswerable: joins rows of different persons
-- shapes: 5 cross-join
SELECT COUNT(*) FROM visits v CROSS JOIN visits u;
