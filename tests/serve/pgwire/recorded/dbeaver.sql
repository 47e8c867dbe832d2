-- What DBeaver, by its public sources and logs, asks when it connects and fills its tree. The program was not run.

SET extra_float_digits = 3
;;

SET application_name = 'PostgreSQL JDBC Driver'
;;

SET application_name = 'DBeaver 25.1.5 - Main <clinic>'
;;

SELECT current_schema(),session_user
;;

SHOW search_path
;;

SELECT reset_val FROM pg_settings WHERE name = 'search_path'
;;

SELECT version()
;;

SELECT * FROM pg_catalog.pg_settings WHERE name='standard_conforming_strings'
;;

SELECT db.oid,db.* FROM pg_catalog.pg_database db
WHERE 1 = 1 AND datallowconn AND NOT datistemplate OR db.datname ='clinic'
ORDER BY db.datname
;;

SELECT db.oid,db.* FROM pg_catalog.pg_database db WHERE datname='clinic'
;;

SELECT description FROM pg_shdescription JOIN pg_database ON objoid = pg_database.oid WHERE datname = 'clinic'
;;

SELECT n.oid,n.*,d.description FROM pg_catalog.pg_namespace n
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=n.oid AND d.objsubid=0 AND d.classoid='pg_namespace'::regclass
ORDER BY nspname
;;

SELECT n.oid,n.*,d.description FROM pg_catalog.pg_namespace n
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=n.oid AND d.objsubid=0 AND d.classoid='pg_namespace'::regclass
WHERE nspname='public' ORDER BY nspname
;;

SELECT n.nspname = ANY(current_schemas(true)), n.nspname, t.typname
FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON t.typnamespace = n.oid WHERE t.oid = 1009
;;

SELECT typinput='pg_catalog.array_in'::regproc AS is_array, typtype, typname, pg_type.oid
FROM pg_catalog.pg_type LEFT JOIN (
    SELECT ns.oid AS nspoid, ns.nspname, r.r FROM pg_namespace AS ns JOIN (
        SELECT s.r, (current_schemas(false))[s.r] AS nspname
        FROM generate_series(1, array_upper(current_schemas(false), 1)) AS s(r)
    ) AS r USING (nspname)
) AS sp ON sp.nspoid = typnamespace
WHERE pg_type.oid = 1009 ORDER BY sp.r, pg_type.oid DESC
;;

SELECT string_agg(word, ',') FROM pg_catalog.pg_get_keywords() WHERE word <> ALL ('{all,and,any,as,select}'::text[])
;;

SELECT * FROM pg_catalog.pg_enum WHERE 1<>1 LIMIT 1
;;

SELECT reltype FROM pg_catalog.pg_class WHERE 1<>1 LIMIT 1
;;

SELECT 1 FROM pg_catalog.pg_attribute s
JOIN pg_catalog.pg_class p ON s.attrelid = p.oid JOIN pg_catalog.pg_namespace n ON p.relnamespace = n.oid
WHERE p.relname = 'pg_type' AND n.nspname = 'pg_catalog' AND s.attname = 'typcategory'
;;

SELECT t.oid,t.*,c.relkind,format_type(nullif(t.typbasetype, 0), t.typtypmod) AS base_type_name, d.description
FROM pg_catalog.pg_type t
LEFT OUTER JOIN pg_catalog.pg_type et ON et.oid=t.typelem
LEFT OUTER JOIN pg_catalog.pg_class c ON c.oid=t.typrelid
LEFT OUTER JOIN pg_catalog.pg_description d ON t.oid=d.objoid
WHERE t.typname IS NOT NULL AND (c.relkind IS NULL OR c.relkind = 'c')
    AND (et.typcategory IS NULL OR et.typcategory <> 'C')
;;

SELECT c.oid,c.*,d.description,pg_catalog.pg_get_expr(c.relpartbound, c.oid) AS partition_expr,
    pg_catalog.pg_get_partkeydef(c.oid) AS partition_key
FROM pg_catalog.pg_class c
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=c.oid AND d.objsubid=0 AND d.classoid='pg_class'::regclass
WHERE c.relnamespace=2200 AND c.relkind NOT IN ('i','I','c')
;;

SELECT c.relname,a.*,pg_catalog.pg_get_expr(ad.adbin, ad.adrelid, true) AS def_value,dsc.description,dep.objid
FROM pg_catalog.pg_attribute a
INNER JOIN pg_catalog.pg_class c ON (a.attrelid=c.oid)
LEFT OUTER JOIN pg_catalog.pg_attrdef ad ON (a.attrelid=ad.adrelid AND a.attnum = ad.adnum)
LEFT OUTER JOIN pg_catalog.pg_description dsc ON (c.oid=dsc.objoid AND a.attnum = dsc.objsubid)
LEFT OUTER JOIN pg_depend dep ON dep.refobjid = a.attrelid AND dep.deptype = 'i' AND dep.refobjsubid = a.attnum
    AND dep.classid = dep.refclassid
WHERE NOT a.attisdropped AND c.relkind NOT IN ('i','I','c') AND c.oid=16384
ORDER BY a.attnum
;;

SELECT c.oid,c.*,t.relname AS tabrelname,rt.relnamespace AS refnamespace,d.description,
    CASE WHEN c.contype='c' THEN "substring"(pg_get_constraintdef(c.oid), 7) ELSE NULL END consrc_copy
FROM pg_catalog.pg_constraint c
INNER JOIN pg_catalog.pg_class t ON t.oid=c.conrelid
LEFT OUTER JOIN pg_catalog.pg_class rt ON rt.oid=c.confrelid
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=c.oid AND d.objsubid=0
    AND d.classoid='pg_constraint'::regclass
WHERE c.conrelid=16384 ORDER BY c.oid
;;

SELECT i.*,i.indkey AS keys,c.relname,c.relnamespace,c.relam,c.reltablespace,tc.relname AS tabrelname,dsc.description,
    pg_catalog.pg_get_expr(i.indpred, i.indrelid) AS pred_expr,
    pg_catalog.pg_get_expr(i.indexprs, i.indrelid, true) AS expr,
    pg_catalog.pg_relation_size(i.indexrelid) AS index_rel_size,
    pg_catalog.pg_stat_get_numscans(i.indexrelid) AS index_num_scans
FROM pg_catalog.pg_index i
INNER JOIN pg_catalog.pg_class c ON c.oid=i.indexrelid
INNER JOIN pg_catalog.pg_class tc ON tc.oid=i.indrelid
LEFT OUTER JOIN pg_catalog.pg_description dsc ON i.indexrelid=dsc.objoid
WHERE i.indrelid=16384 ORDER BY tc.relname, c.relname
;;

SELECT p.oid AS poid,p.*,pg_catalog.pg_get_expr(p.proargdefaults, 0) AS arg_defaults,d.description
FROM pg_catalog.pg_proc p
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=p.oid AND d.classoid='pg_proc'::regclass
WHERE p.pronamespace=2200 ORDER BY p.proname
;;

SELECT i.*,c.relnamespace FROM pg_catalog.pg_inherits i,pg_catalog.pg_class c
WHERE i.inhrelid=16384 AND c.oid=i.inhparent ORDER BY i.inhseqno
;;

SELECT x.oid,x.*,p.relname FROM pg_catalog.pg_trigger x
INNER JOIN pg_catalog.pg_class p ON p.oid = x.tgrelid WHERE x.tgrelid=16384 AND NOT x.tgisinternal
;;

SELECT c.oid,pg_catalog.pg_total_relation_size(c.oid) AS total_rel_size,pg_catalog.pg_relation_size(c.oid) AS rel_size
FROM pg_class c WHERE c.relnamespace=2200
;;

SELECT a.oid,a.*,pd.description FROM pg_catalog.pg_roles a
LEFT JOIN pg_catalog.pg_shdescription pd ON a.oid = pd.objoid ORDER BY a.rolname
;;

SELECT t.oid,t.*,pg_tablespace_location(t.oid) loc FROM pg_catalog.pg_tablespace t ORDER BY t.oid
;;

SELECT e.oid,e.*,n.nspname AS schema_name FROM pg_catalog.pg_extension e
LEFT JOIN pg_catalog.pg_namespace n ON n.oid=e.extnamespace ORDER BY e.oid
;;

SELECT * FROM information_schema.table_privileges
WHERE table_catalog='clinic' AND table_schema='public' AND table_name='visits'
;;

SELECT sa.* FROM pg_catalog.pg_stat_activity sa
;;

SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY
;;
