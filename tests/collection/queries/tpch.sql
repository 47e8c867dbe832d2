-- id: tpch-001
-- source: tpch
-- dialect: postgres
-- world: tpch
-- label: answerable
-- shapes: 7 interval, ordinary
SELECT l_returnflag, l_linestatus,
       SUM(l_quantity) AS sum_qty,
       SUM(l_extendedprice) AS sum_base_price,
       SUM(l_extendedprice * (1 - l_discount)) AS sum_disc_price,
       SUM(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge,
       AVG(l_quantity) AS avg_qty, AVG(l_extendedprice) AS avg_price, AVG(l_discount) AS avg_disc,
       COUNT(*) AS count_order
FROM lineitem
WHERE l_shipdate <= DATE '1998-12-01' - INTERVAL '90' DAY
GROUP BY l_returnflag, l_linestatus
ORDER BY l_returnflag, l_linestatus;

-- id: tpch-002
-- source: tpch
-- dialect: postgres
-- world: tpch
-- label: answerable
-- shapes: 3 public-only, 2 comma-join
SELECT s.s_acctbal, s.s_name, n.n_name, p.p_partkey, p.p_mfgr
FROM part p, supplier s, partsupp ps, nation n, region r
WHERE p.p_partkey = ps.ps_partkey AND s.s_suppkey = ps.ps_suppkey
  AND p.p_size <= 15 AND p.p_type LIKE '%BRASS'
  AND s.s_nationkey = n.n_nationkey AND n.n_regionkey = r.r_regionkey AND r.r_name = 'AMERICA'
  AND ps.ps_supplycost = (
    SELECT MIN(x.ps_supplycost)
    FROM partsupp x, supplier y, nation m, region q
    WHERE p.p_partkey = x.ps_partkey AND y.s_suppkey = x.ps_suppkey
      AND y.s_nationkey = m.n_nationkey AND m.n_regionkey = q.r_regionkey AND q.r_name = 'AMERICA')
ORDER BY s.s_acctbal DESC, n.n_name, s.s_name, p.p_partkey
LIMIT 100;

-- id: tpch-003
-- source: tpch
-- dialect: postgres
-- world: tpch
-- label: unanswerable: returns rows of persons (one group for each order)
-- shapes: 2 comma-join
SELECT l_orderkey, SUM(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority
FROM customer, orders, lineitem
WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey
  AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
GROUP BY l_orderkey, o_orderdate, o_shippriority
ORDER BY revenue DESC, o_orderdate
LIMIT 10;

-- id: tpch-004
-- source: tpch
-- dialect: postgres
-- world: tpch
-- label: answerable
-- shapes: 2 comma-join, 5 foreign-key-join
SELECT o_shippriority, SUM(l_extendedprice * (1 - l_discount)) AS revenue
FROM customer, orders, lineitem
WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey
  AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
GROUP BY o_shippriority;

-- id: tpch-005
-- source: tpch
-- dialect: postgres
-- world: tpch
-- label: answerable
-- shapes: 5 exists, 7 interval
SELECT o_orderpriority, COUNT(*) AS order_count
FROM orders
WHERE o_orderdate >= DATE '1993-07-01' AND o_orderdate < DATE '1993-07-01' + INTERVAL '3' MONTH
  AND EXISTS (SELECT * FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)
GROUP BY o_orderpriority
ORDER BY o_orderpriority;

-- id: tpch-006
-- source: tpch
-- dialect: postgres
-- world: tpch
-- label: answerable
-- shapes: 2 comma-join, 5 foreign-key-join, 3 public-table-keys
SELECT n_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue
FROM customer, orders, lineitem, supplier, nation, region
WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey
  AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey
  AND r_name = 'EUROPE' AND o_orderdate >= DATE '1993-01-01' AND o_orderdate < DATE '1993-01-01' + INTERVAL '3' YEAR
GROUP BY n_name
ORDER BY revenue DESC;

-- id: tpch-007
-- source: tpch
-- dialect: postgres
-- world: tpch
-- label: answerable
-- shapes: ordinary
SELECT SUM(l_extendedprice * l_discount) AS revenue
FROM lineitem
WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1994-01-01' + INTERVAL '1' YEAR
  AND l_discount BETWEEN 0.06 - 0.01 AND 0.06 + 0.01 AND l_quantity < 24;

-- id: tpch-008
-- source: tpch
-- dialect: postgres
-- world: tpch
-- label: answerable
-- shapes: 2 comma-join, 5 public-join-twice, 7 extract
SELECT supp_nation, cust_nation, l_year, SUM(volume) AS revenue
FROM (
  SELECT n1.n_name AS supp_nation, n2.n_name AS cust_nation, EXTRACT(YEAR FROM l_shipdate) AS l_year,
         l_extendedprice * (1 - l_discount) AS volume
  FROM supplier, lineitem, orders, customer, nation n1, nation n2
  WHERE s_suppkey = l_suppkey AND o_orderkey = l_orderkey AND c_custkey = o_custkey
    AND s_nationkey = n1.n_nationkey AND c_nationkey = n2.n_nationkey
    AND ((n1.n_name = 'FRANCE' AND n2.n_name = 'GERMANY') OR (n1.n_name = 'GERMANY' AND n2.n_name = 'FRANCE'))
    AND l_shipdate BETWEEN DATE '1992-01-01' AND DATE '1998-12-31'
) AS shipping
GROUP BY supp_nation, cust_nation, l_year
ORDER BY supp_nation, cust_nation, l_year;

-- id: tpch-009
-- source: tpch
-- dialect: postgres
-- world: tpch
-- label: answerable
-- shapes: 2 comma-join, 4 ratio, 5 public-join-twice
SELECT o_year, SUM(CASE WHEN nation = 'BRAZIL' THEN volume ELSE 0 END) / SUM(volume) AS mkt_share
FROM (
  SELECT EXTRACT(YEAR FROM o_orderdate) AS o_year, l_extendedprice * (1 - l_discount) AS volume, n2.n_name AS nation
  FROM part, supplier, lineitem, orders, customer, nation n1, nation n2, region
  WHERE p_partkey = l_partkey AND s_suppkey = l_suppkey AND l_orderkey = o_orderkey AND o_custkey = c_custkey
    AND c_nationkey = n1.n_nationkey AND n1.n_regionkey = r_regionkey AND r_name = 'AMERICA'
    AND s_nationkey = n2.n_nationkey AND o_orderdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'
    AND p_type LIKE 'ECONOMY%'
) AS all_nations
GROUP BY o_year
ORDER BY o_year;

-- id: tpch-010
-- source: tpch
-- dialect: postgres
-- world: tpch
-- label: answerable
-- shapes: 5 compound-key, 2 comma-join, 7 extract
SELECT nation, o_year, SUM(amount) AS sum_profit
FROM (
  SELECT n_name AS nation, EXTRACT(YEAR FROM o_orderdate) AS o_year,
         l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity AS amount
  FROM part, supplier, lineitem, partsupp, orders, nation
  WHERE s_suppkey = l_suppkey AND ps_suppkey = l_suppkey AND ps_partkey = l_partkey AND p_partkey = l_partkey
    AND o_orderkey = l_orderkey AND s_nationkey = n_nationkey AND p_name LIKE '%green%'
) AS profit
GROUP BY nation, o_year
ORDER BY nation, o_year DESC;

-- id: tpch-011
-- source: tpch
-- dialect: postgres
-- world: tpch
-- label: unanswerable: returns rows of persons
-- shapes: 2 comma-join
SELECT c_custkey, c_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue, c_acctbal, n_name, c_address, c_phone
FROM customer, orders, lineitem, nation
WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_returnflag = 'R' AND c_nationkey = n_nationkey
GROUP BY c_custkey, c_name, c_acctbal, c_phone, n_name, c_address
ORDER BY revenue DESC
LIMIT 20;

-- id: tpch-012
-- source: tpch
-- dialect: postgres
-- world: tpch
-- label: answerable
-- shapes: 2 comma-join, 5 foreign-key-join, 3 public-table-keys
SELECT n_name, SUM(l_extendedprice * (1 - l_discount)) AS lost_revenue, COUNT(DISTINCT c_custkey) AS customers
FROM customer, orders, lineitem, nation
WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_returnflag = 'R' AND c_nationkey = n_nationkey
GROUP BY n_name
ORDER BY lost_revenue DESC
LIMIT 20;

-- id: tpch-013
-- source: tpch
-- dialect: postgres
-- world: tpch
-- label: answerable
-- shapes: 3 public-only, 4 scalar-subquery
SELECT ps_partkey, SUM(ps_supplycost * ps_availqty) AS value
FROM partsupp, supplier, nation
WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'GERMANY'
GROUP BY ps_partkey
HAVING SUM(ps_supplycost * ps_availqty) > (
  SELECT SUM(ps_supplycost * ps_availqty) * 0.001
  FROM partsupp, supplier, nation
  WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'GERMANY')
ORDER BY value DESC;

-- id: tpch-014
-- source: tpch
-- dialect: postgres
-- world: tpch
-- label: answerable
-- shapes: 2 comma-join, 5 foreign-key-join
SELECT l_shipmode,
       SUM(CASE WHEN o_orderpriority = '1-URGENT' OR o_orderpriority = '2-HIGH' THEN 1 ELSE 0 END) AS high_line_count,
       SUM(CASE WHEN o_orderpriority <> '1-URGENT' AND o_orderpriority <> '2-HIGH' THEN 1 ELSE 0 END) AS low_line_count
FROM orders, lineitem
WHERE o_orderkey = l_orderkey AND l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate
  AND l_shipdate < l_commitdate AND l_receiptdate >= DATE '1994-01-01'
  AND l_receiptdate < DATE '1994-01-01' + INTERVAL '1' YEAR
GROUP BY l_shipmode
ORDER BY l_shipmode;

-- id: tpch-015
-- source: tpch
-- dialect: postgres
-- world: tpch
-- label: answerable
-- shapes: 6 per-unit-subquery, 2 left-join-on-filter
SELECT c_count, COUNT(*) AS custdist
FROM (
  SELECT c_custkey, COUNT(o_orderkey)
  FROM customer LEFT OUTER JOIN orders ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%requests%'
  GROUP BY c_custkey
) AS c_orders (c_custkey, c_count)
GROUP BY c_count
ORDER BY custdist DESC, c_count DESC;

-- id: tpch-016
-- source: tpch
-- dialect: postgres
-- world: tpch
-- label: answerable
-- shapes: 2 comma-join, 4 ratio
SELECT 100.00 * SUM(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) ELSE 0 END)
       / SUM(l_extendedprice * (1 - l_discount)) AS promo_revenue
FROM lineitem, part
WHERE l_partkey = p_partkey AND l_shipdate >= DATE '1995-09-01' AND l_shipdate < DATE '1995-09-01' + INTERVAL '1' MONTH;

-- id: tpch-017
-- source: tpch
-- dialect: postgres
-- world: tpch
-- label: answerable
-- shapes: 4 join-of-results, 4 cte
WITH revenue AS (
  SELECT l_suppkey AS supplier_no, SUM(l_extendedprice * (1 - l_discount)) AS total_revenue
  FROM lineitem
  WHERE l_shipdate >= DATE '1996-01-01' AND l_shipdate < DATE '1996-01-01' + INTERVAL '3' MONTH
  GROUP BY l_suppkey
)
SELECT s_suppkey, s_name, s_address, s_phone, total_revenue
FROM supplier, revenue
WHERE s_suppkey = supplier_no AND total_revenue = (SELECT MAX(total_revenue) FROM revenue)
ORDER BY s_suppkey;

-- id: tpch-018
-- source: tpch
-- dialect: postgres
-- world: tpch
-- label: answerable
-- shapes: 3 public-only, 5 not-in-public
SELECT p_brand, p_type, p_size, COUNT(DISTINCT ps_suppkey) AS supplier_cnt
FROM partsupp, part
WHERE p_partkey = ps_partkey AND p_brand <> 'Brand#45' AND p_type NOT LIKE 'MEDIUM POLISHED%'
  AND p_size IN (49, 14, 23, 45, 19, 3, 36, 9)
  AND ps_suppkey NOT IN (SELECT s_suppkey FROM supplier WHERE s_comment LIKE '%Customer%Complaints%')
GROUP BY p_brand, p_type, p_size
ORDER BY supplier_cnt DESC, p_brand, p_type, p_size;

-- id: tpch-019
-- source: tpch
-- dialect: postgres
-- world: tpch
-- label: answerable
-- shapes: 4 correlated-result, 2 comma-join
SELECT SUM(l_extendedprice) / 7.0 AS avg_yearly
FROM lineitem, part
WHERE p_partkey = l_partkey AND p_container = 'MED BOX'
  AND l_quantity < (SELECT 0.5 * AVG(l.l_quantity) FROM lineitem l WHERE l.l_partkey = p_partkey);

-- id: tpch-020
-- source: tpch
-- dialect: postgres
-- world: tpch
-- label: unanswerable: returns rows of persons
-- shapes: 5 in-subquery
SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, SUM(l_quantity)
FROM customer, orders, lineitem
WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING SUM(l_quantity) > 250)
  AND c_custkey = o_custkey AND o_orderkey = l_orderkey
GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
ORDER BY o_totalprice DESC, o_orderdate
LIMIT 100;

-- id: tpch-021
-- source: tpch
-- dialect: postgres
-- world: tpch
-- label: answerable
-- shapes: 5 in-own-rows, 5 foreign-key-join
SELECT COUNT(*) AS large_orders, SUM(o_totalprice) AS value
FROM orders
WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING SUM(l_quantity) > 200);

-- id: tpch-022
-- source: tpch
-- dialect: postgres
-- world: tpch
-- label: answerable
-- shapes: 2 comma-join, 5 public-join
SELECT SUM(l_extendedprice * (1 - l_discount)) AS revenue
FROM lineitem, part
WHERE (p_partkey = l_partkey AND p_brand = 'Brand#12' AND p_container IN ('SM CASE', 'SM BOX', 'SM PKG')
       AND l_quantity BETWEEN 1 AND 31 AND p_size BETWEEN 1 AND 45 AND l_shipinstruct = 'DELIVER IN PERSON')
   OR (p_partkey = l_partkey AND p_brand = 'Brand#23' AND p_container IN ('MED BAG', 'MED BOX', 'MED PKG')
       AND l_quantity BETWEEN 10 AND 40 AND p_size BETWEEN 1 AND 50 AND l_shipinstruct = 'DELIVER IN PERSON')
   OR (p_partkey = l_partkey AND p_brand LIKE 'Brand#3_' AND p_container LIKE 'LG %'
       AND l_quantity BETWEEN 5 AND 45 AND p_size BETWEEN 1 AND 50 AND l_shipmode IN ('AIR', 'REG AIR'));

-- id: tpch-023
-- source: tpch
-- dialect: postgres
-- world: tpch
-- label: answerable
-- shapes: 4 join-of-results, 5 in-public
SELECT s_name, s_address
FROM supplier, nation
WHERE s_suppkey IN (
    SELECT ps_suppkey
    FROM partsupp
    WHERE ps_partkey IN (SELECT p_partkey FROM part WHERE p_name LIKE 'f%')
      AND ps_availqty > (
        SELECT 0.5 * SUM(l_quantity) FROM lineitem
        WHERE l_partkey = ps_partkey AND l_suppkey = ps_suppkey
          AND l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1996-01-01'))
  AND s_nationkey = n_nationkey
ORDER BY s_name;

-- id: tpch-024
-- source: tpch
-- dialect: postgres
-- world: tpch
-- label: answerable
-- shapes: 5 exists, 5 not-exists, 5 join-within-unit
SELECT s_name, COUNT(*) AS numwait
FROM supplier, lineitem l1, orders, nation
WHERE s_suppkey = l1.l_suppkey AND o_orderkey = l1.l_orderkey AND o_orderstatus = 'F'
  AND l1.l_receiptdate > l1.l_commitdate
  AND EXISTS (SELECT * FROM lineitem l2 WHERE l2.l_orderkey = l1.l_orderkey AND l2.l_suppkey <> l1.l_suppkey)
  AND NOT EXISTS (SELECT * FROM lineitem l3 WHERE l3.l_orderkey = l1.l_orderkey AND l3.l_suppkey <> l1.l_suppkey
                  AND l3.l_receiptdate > l3.l_commitdate)
  AND s_nationkey = n_nationkey
GROUP BY s_name
ORDER BY numwait DESC, s_name
LIMIT 100;

-- id: tpch-025
-- source: tpch
-- dialect: postgres
-- world: tpch
-- label: answerable
-- shapes: 4 scalar-subquery, 5 not-exists, 7 substring
SELECT cntrycode, COUNT(*) AS numcust, SUM(c_acctbal) AS totacctbal
FROM (
  SELECT SUBSTRING(c_phone FROM 1 FOR 2) AS cntrycode, c_acctbal
  FROM customer
  WHERE SUBSTRING(c_phone FROM 1 FOR 2) IN ('13', '31', '23', '29', '30', '18', '17')
    AND c_acctbal > (SELECT AVG(c_acctbal) FROM customer WHERE c_acctbal > 0.00
                     AND SUBSTRING(c_phone FROM 1 FOR 2) IN ('13', '31', '23', '29', '30', '18', '17'))
    AND NOT EXISTS (SELECT * FROM orders WHERE o_custkey = c_custkey)
) AS custsale
GROUP BY cntrycode
ORDER BY cntrycode;

-- id: tpch-026
-- source: tpch
-- dialect: duckdb
-- world: tpch
-- label: answerable
-- shapes: 5 public-join, 3 public-table-keys
SELECT r_name, c_mktsegment, COUNT(*) AS customers, AVG(c_acctbal) AS balance
FROM customer
JOIN nation ON n_nationkey = c_nationkey
JOIN region ON r_regionkey = n_regionkey
GROUP BY ALL
ORDER BY ALL;

-- id: tpch-027
-- source: tpch
-- dialect: duckdb
-- world: tpch
-- label: answerable
-- shapes: 4 window, 7 extract
SELECT year(o_orderdate) AS y, SUM(o_totalprice) AS value,
       RANK() OVER (ORDER BY SUM(o_totalprice) DESC) AS rk
FROM orders
GROUP BY y
ORDER BY y;

-- id: tpch-028
-- source: tpch
-- dialect: duckdb
-- world: tpch
-- label: answerable
-- shapes: 6 per-unit-subquery, 6 quantile
SELECT median(spent) AS median_customer
FROM (SELECT o_custkey, SUM(o_totalprice) AS spent FROM orders GROUP BY o_custkey);

-- id: tpch-029
-- source: tpch
-- dialect: duckdb
-- world: tpch
-- label: answerable
-- shapes: 5 compound-key, 2 using
SELECT AVG(l.l_extendedprice / l.l_quantity - ps.ps_supplycost) AS mean_margin
FROM lineitem l
JOIN partsupp ps ON (ps.ps_partkey, ps.ps_suppkey) = (l.l_partkey, l.l_suppkey);

-- id: tpch-030
-- source: tpch
-- dialect: duckdb
-- world: tpch
-- label: answerable
-- shapes: 7 date-difference
SELECT l_shipmode, AVG(l_receiptdate - l_shipdate) AS transit_days,
       AVG(CASE WHEN l_receiptdate > l_commitdate THEN 1.0 ELSE 0.0 END) AS late_share
FROM lineitem
GROUP BY l_shipmode
ORDER BY late_share DESC;

-- id: tpch-031
-- source: tpch
-- dialect: duckdb
-- world: tpch
-- label: unanswerable: names a person by an identifier that the policy does not list
-- shapes: ordinary
SELECT SUM(o_totalprice) FROM orders WHERE o_custkey = 17;

-- id: tpch-032
-- source: tpch
-- dialect: duckdb
-- world: tpch
-- label: unanswerable: returns rows of persons
-- shapes: ordinary
SELECT l_orderkey, l_linenumber, l_comment FROM lineitem WHERE l_quantity = 50;
