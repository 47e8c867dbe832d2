-- PostgreSQL's catalog, as far as clients look at it. Rows are added from the policy; most tables have none.

CREATE SCHEMA shadow;
CREATE SCHEMA shadow_information;
SET search_path = 'shadow';

CREATE TYPE oid AS BIGINT;
CREATE TYPE name AS VARCHAR;
CREATE TYPE regclass AS VARCHAR;
CREATE TYPE regtype AS VARCHAR;
CREATE TYPE regproc AS VARCHAR;
CREATE TYPE regprocedure AS VARCHAR;
CREATE TYPE regnamespace AS VARCHAR;
CREATE TYPE regrole AS VARCHAR;
CREATE TYPE regoper AS VARCHAR;
CREATE TYPE information_schema_name AS VARCHAR;

CREATE TABLE pg_namespace (oid BIGINT, nspname VARCHAR, nspowner BIGINT, nspacl VARCHAR[]);
CREATE TABLE pg_class (
    oid BIGINT, relname VARCHAR, relnamespace BIGINT, reltype BIGINT, reloftype BIGINT, relowner BIGINT, relam BIGINT,
    relfilenode BIGINT, reltablespace BIGINT, relpages INTEGER, reltuples REAL, relallvisible INTEGER,
    reltoastrelid BIGINT, relhasindex BOOLEAN, relisshared BOOLEAN, relpersistence VARCHAR, relkind VARCHAR,
    relnatts SMALLINT, relchecks SMALLINT, relhasrules BOOLEAN, relhastriggers BOOLEAN, relhassubclass BOOLEAN,
    relrowsecurity BOOLEAN, relforcerowsecurity BOOLEAN, relispopulated BOOLEAN, relreplident VARCHAR,
    relispartition BOOLEAN, relrewrite BIGINT, relfrozenxid BIGINT, relminmxid BIGINT, relacl VARCHAR[],
    reloptions VARCHAR[], relpartbound VARCHAR, xmin BIGINT, tableoid BIGINT
);
CREATE TABLE pg_attribute (
    attrelid BIGINT, attname VARCHAR, atttypid BIGINT, attstattarget INTEGER, attlen SMALLINT, attnum SMALLINT,
    attndims INTEGER, attcacheoff INTEGER, atttypmod INTEGER, attbyval BOOLEAN, attalign VARCHAR, attstorage VARCHAR,
    attcompression VARCHAR, attnotnull BOOLEAN, atthasdef BOOLEAN, atthasmissing BOOLEAN, attidentity VARCHAR,
    attgenerated VARCHAR, attisdropped BOOLEAN, attislocal BOOLEAN, attinhcount INTEGER, attcollation BIGINT,
    attacl VARCHAR[], attoptions VARCHAR[], attfdwoptions VARCHAR[], attmissingval VARCHAR
);
CREATE TABLE pg_type (
    oid BIGINT, typname VARCHAR, typnamespace BIGINT, typowner BIGINT, typlen SMALLINT, typbyval BOOLEAN,
    typtype VARCHAR, typcategory VARCHAR, typispreferred BOOLEAN, typisdefined BOOLEAN, typdelim VARCHAR,
    typrelid BIGINT, typsubscript VARCHAR, typelem BIGINT, typarray BIGINT, typinput VARCHAR, typoutput VARCHAR,
    typreceive VARCHAR, typsend VARCHAR, typmodin VARCHAR, typmodout VARCHAR, typanalyze VARCHAR, typalign VARCHAR,
    typstorage VARCHAR, typnotnull BOOLEAN, typbasetype BIGINT, typtypmod INTEGER, typndims INTEGER,
    typcollation BIGINT, typdefaultbin VARCHAR, typdefault VARCHAR, typacl VARCHAR[]
);
CREATE TABLE pg_description (objoid BIGINT, classoid BIGINT, objsubid INTEGER, description VARCHAR);
CREATE TABLE pg_shdescription (objoid BIGINT, classoid BIGINT, description VARCHAR);
CREATE TABLE pg_attrdef (oid BIGINT, adrelid BIGINT, adnum SMALLINT, adbin VARCHAR);
CREATE TABLE pg_constraint (
    oid BIGINT, conname VARCHAR, connamespace BIGINT, contype VARCHAR, condeferrable BOOLEAN, condeferred BOOLEAN,
    convalidated BOOLEAN, conrelid BIGINT, contypid BIGINT, conindid BIGINT, conparentid BIGINT, confrelid BIGINT,
    confupdtype VARCHAR, confdeltype VARCHAR, confmatchtype VARCHAR, conislocal BOOLEAN, coninhcount INTEGER,
    connoinherit BOOLEAN, conkey SMALLINT[], confkey SMALLINT[], conpfeqop BIGINT[], conppeqop BIGINT[],
    conffeqop BIGINT[], confdelsetcols SMALLINT[], conexclop BIGINT[], conbin VARCHAR
);
CREATE TABLE pg_index (
    indexrelid BIGINT, indrelid BIGINT, indnatts SMALLINT, indnkeyatts SMALLINT, indisunique BOOLEAN,
    indnullsnotdistinct BOOLEAN, indisprimary BOOLEAN, indisexclusion BOOLEAN, indimmediate BOOLEAN,
    indisclustered BOOLEAN, indisvalid BOOLEAN, indcheckxmin BOOLEAN, indisready BOOLEAN, indislive BOOLEAN,
    indisreplident BOOLEAN, indkey SMALLINT[], indcollation BIGINT[], indclass BIGINT[], indoption SMALLINT[],
    indexprs VARCHAR, indpred VARCHAR
);
CREATE TABLE pg_inherits (inhrelid BIGINT, inhparent BIGINT, inhseqno INTEGER, inhdetachpending BOOLEAN);
CREATE TABLE pg_am (oid BIGINT, amname VARCHAR, amhandler VARCHAR, amtype VARCHAR);
CREATE TABLE pg_collation (
    oid BIGINT, collname VARCHAR, collnamespace BIGINT, collowner BIGINT, collprovider VARCHAR,
    collisdeterministic BOOLEAN, collencoding INTEGER, collcollate VARCHAR, collctype VARCHAR, colliculocale VARCHAR,
    collversion VARCHAR
);
CREATE TABLE pg_proc (
    oid BIGINT, proname VARCHAR, pronamespace BIGINT, proowner BIGINT, prolang BIGINT, procost REAL, prorows REAL,
    provariadic BIGINT, prosupport VARCHAR, prokind VARCHAR, prosecdef BOOLEAN, proleakproof BOOLEAN,
    proisstrict BOOLEAN, proretset BOOLEAN, provolatile VARCHAR, proparallel VARCHAR, pronargs SMALLINT,
    pronargdefaults SMALLINT, prorettype BIGINT, proargtypes BIGINT[], proallargtypes BIGINT[], proargmodes VARCHAR[],
    proargnames VARCHAR[], proargdefaults VARCHAR, protrftypes BIGINT[], prosrc VARCHAR, probin VARCHAR,
    prosqlbody VARCHAR, proconfig VARCHAR[], proacl VARCHAR[]
);
CREATE TABLE pg_enum (oid BIGINT, enumtypid BIGINT, enumsortorder REAL, enumlabel VARCHAR);
CREATE TABLE pg_range (
    rngtypid BIGINT, rngsubtype BIGINT, rngmultitypid BIGINT, rngcollation BIGINT, rngsubopc BIGINT,
    rngcanonical VARCHAR, rngsubdiff VARCHAR
);
-- The database has the name that the client gave it, and the client's user is a role beside the owner.
CREATE VIEW pg_roles AS
    SELECT n AS oid, called AS rolname, false AS rolsuper, true AS rolinherit, false AS rolcreaterole,
        false AS rolcreatedb, n > 10 AS rolcanlogin, false AS rolreplication, -1 AS rolconnlimit,
        NULL::VARCHAR AS rolpassword, NULL::VARCHAR AS rolvaliduntil, false AS rolbypassrls,
        NULL::VARCHAR[] AS rolconfig
    FROM (VALUES (10::BIGINT, 'owner'), (16000, getvariable('user_name')::VARCHAR)) AS people(n, called)
    WHERE called IS NOT NULL;
CREATE VIEW pg_authid AS SELECT * FROM pg_roles;
CREATE VIEW pg_user AS SELECT rolname AS usename, oid AS usesysid, false AS usecreatedb, false AS usesuper FROM
    pg_roles;
CREATE TABLE pg_auth_members (roleid BIGINT, member BIGINT, grantor BIGINT, admin_option BOOLEAN);
CREATE MACRO database_name() AS coalesce(getvariable('database')::VARCHAR, 'tacit');
CREATE VIEW pg_database AS
    SELECT 5::BIGINT AS oid, database_name() AS datname, 10::BIGINT AS datdba, 6 AS encoding, 'c' AS datlocprovider,
        false AS datistemplate, true AS datallowconn, -1 AS datconnlimit, 0::BIGINT AS datfrozenxid,
        0::BIGINT AS datminmxid, 1663::BIGINT AS dattablespace, 'C' AS datcollate, 'C' AS datctype,
        NULL::VARCHAR AS daticulocale, NULL::VARCHAR AS datcollversion, NULL::VARCHAR[] AS datacl;
CREATE TABLE pg_tablespace (oid BIGINT, spcname VARCHAR, spcowner BIGINT, spcacl VARCHAR[], spcoptions VARCHAR[]);
CREATE TABLE pg_settings (
    name VARCHAR, setting VARCHAR, unit VARCHAR, category VARCHAR, short_desc VARCHAR, extra_desc VARCHAR,
    context VARCHAR, vartype VARCHAR, source VARCHAR, min_val VARCHAR, max_val VARCHAR, enumvals VARCHAR[],
    boot_val VARCHAR, reset_val VARCHAR, sourcefile VARCHAR, sourceline INTEGER, pending_restart BOOLEAN
);
CREATE TABLE pg_sequence (
    seqrelid BIGINT, seqtypid BIGINT, seqstart BIGINT, seqincrement BIGINT, seqmax BIGINT, seqmin BIGINT,
    seqcache BIGINT, seqcycle BOOLEAN
);
CREATE TABLE pg_trigger (
    oid BIGINT, tgrelid BIGINT, tgparentid BIGINT, tgname VARCHAR, tgfoid BIGINT, tgtype SMALLINT, tgenabled VARCHAR,
    tgisinternal BOOLEAN, tgconstrrelid BIGINT, tgconstrindid BIGINT, tgconstraint BIGINT, tgdeferrable BOOLEAN,
    tginitdeferred BOOLEAN, tgnargs SMALLINT, tgattr SMALLINT[], tgargs VARCHAR, tgqual VARCHAR, tgoldtable VARCHAR,
    tgnewtable VARCHAR
);
CREATE TABLE pg_rewrite (
    oid BIGINT, rulename VARCHAR, ev_class BIGINT, ev_type VARCHAR, ev_enabled VARCHAR, is_instead BOOLEAN
);
CREATE TABLE pg_policy (
    oid BIGINT, polname VARCHAR, polrelid BIGINT, polcmd VARCHAR, polpermissive BOOLEAN, polroles BIGINT[],
    polqual VARCHAR, polwithcheck VARCHAR
);
CREATE TABLE pg_partitioned_table (
    partrelid BIGINT, partstrat VARCHAR, partnatts SMALLINT, partdefid BIGINT, partattrs SMALLINT[], partexprs
    VARCHAR
);
CREATE TABLE pg_statistic_ext (
    oid BIGINT, stxrelid BIGINT, stxname VARCHAR, stxnamespace BIGINT, stxowner BIGINT, stxstattarget INTEGER,
    stxkeys SMALLINT[], stxkind VARCHAR[]
);
CREATE TABLE pg_publication (
    oid BIGINT, pubname VARCHAR, pubowner BIGINT, puballtables BOOLEAN, pubinsert BOOLEAN, pubupdate BOOLEAN,
    pubdelete BOOLEAN, pubtruncate BOOLEAN, pubviaroot BOOLEAN
);
CREATE TABLE pg_publication_rel (oid BIGINT, prpubid BIGINT, prrelid BIGINT, prqual VARCHAR, prattrs SMALLINT[]);
CREATE TABLE pg_publication_namespace (oid BIGINT, pnpubid BIGINT, pnnspid BIGINT);
CREATE TABLE pg_foreign_table (ftrelid BIGINT, ftserver BIGINT, ftoptions VARCHAR[]);
CREATE TABLE pg_foreign_server (
    oid BIGINT, srvname VARCHAR, srvowner BIGINT, srvfdw BIGINT, srvtype VARCHAR, srvversion VARCHAR,
    srvoptions VARCHAR[]
);
CREATE TABLE pg_foreign_data_wrapper (oid BIGINT, fdwname VARCHAR, fdwowner BIGINT, fdwoptions VARCHAR[]);
CREATE TABLE pg_extension (
    oid BIGINT, extname VARCHAR, extowner BIGINT, extnamespace BIGINT, extrelocatable BOOLEAN, extversion
    VARCHAR
);
CREATE TABLE pg_available_extensions (
    name VARCHAR, default_version VARCHAR, installed_version VARCHAR, comment VARCHAR
);
CREATE TABLE pg_language (oid BIGINT, lanname VARCHAR, lanowner BIGINT, lanispl BOOLEAN, lanpltrusted BOOLEAN);
CREATE TABLE pg_operator (
    oid BIGINT, oprname VARCHAR, oprnamespace BIGINT, oprleft BIGINT, oprright BIGINT, oprresult BIGINT,
    oprkind VARCHAR, oprcode BIGINT
);
CREATE TABLE pg_opclass (
    oid BIGINT, opcmethod BIGINT, opcname VARCHAR, opcnamespace BIGINT, opcdefault BOOLEAN, opcintype BIGINT
);
CREATE TABLE pg_cast (
    oid BIGINT, castsource BIGINT, casttarget BIGINT, castfunc BIGINT, castcontext VARCHAR, castmethod VARCHAR
);
CREATE TABLE pg_aggregate (aggfnoid BIGINT, aggkind VARCHAR, aggnumdirectargs SMALLINT);
CREATE TABLE pg_depend (
    classid BIGINT, objid BIGINT, objsubid INTEGER, refclassid BIGINT, refobjid BIGINT, refobjsubid INTEGER,
    deptype VARCHAR
);
CREATE TABLE pg_event_trigger (oid BIGINT, evtname VARCHAR, evtevent VARCHAR, evtowner BIGINT, evtenabled VARCHAR);
CREATE TABLE pg_locks (
    locktype VARCHAR, database BIGINT, relation BIGINT, pid INTEGER, mode VARCHAR, granted BOOLEAN
);
CREATE TABLE pg_stat_activity (
    datid BIGINT, datname VARCHAR, pid INTEGER, leader_pid INTEGER, usesysid BIGINT, usename VARCHAR,
    application_name VARCHAR, client_addr VARCHAR, client_hostname VARCHAR, client_port INTEGER,
    backend_start VARCHAR, xact_start VARCHAR, query_start VARCHAR, state_change VARCHAR, wait_event_type VARCHAR,
    wait_event VARCHAR, state VARCHAR, backend_xid BIGINT, backend_xmin BIGINT, query_id BIGINT, query VARCHAR,
    backend_type VARCHAR
);
CREATE TABLE pg_stat_user_tables (
    relid BIGINT, schemaname VARCHAR, relname VARCHAR, seq_scan BIGINT, seq_tup_read BIGINT, idx_scan BIGINT,
    n_live_tup BIGINT, n_dead_tup BIGINT, last_vacuum VARCHAR, last_analyze VARCHAR
);
CREATE TABLE pg_timezone_names (name VARCHAR, abbrev VARCHAR, is_dst BOOLEAN);
CREATE TABLE pg_matviews (schemaname VARCHAR, matviewname VARCHAR, matviewowner VARCHAR, definition VARCHAR);
CREATE TABLE pg_views (schemaname VARCHAR, viewname VARCHAR, viewowner VARCHAR, definition VARCHAR);
CREATE TABLE pg_indexes (
    schemaname VARCHAR, tablename VARCHAR, indexname VARCHAR, tablespace VARCHAR, indexdef VARCHAR
);
CREATE TABLE pg_policies (schemaname VARCHAR, tablename VARCHAR, policyname VARCHAR, permissive VARCHAR, cmd VARCHAR);
CREATE TABLE pg_sequences (schemaname VARCHAR, sequencename VARCHAR, sequenceowner VARCHAR, last_value BIGINT);
CREATE VIEW pg_tables AS
    SELECT nspname AS schemaname, relname AS tablename, 'owner' AS tableowner, NULL::VARCHAR AS tablespace,
        false AS hasindexes, false AS hasrules, false AS hastriggers, false AS rowsecurity
    FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE relkind = 'r';

INSERT INTO pg_namespace VALUES
    (11, 'pg_catalog', 10, NULL), (2200, 'public', 10, NULL), (13000, 'information_schema', 10, NULL);
INSERT INTO pg_am VALUES (2, 'heap', 'heap_tableam_handler', 't'), (403, 'btree', 'bthandler', 'i');
INSERT INTO pg_collation VALUES
    (100, 'default', 11, 10, 'd', true, -1, NULL, NULL, NULL, NULL),
    (950, 'C', 11, 10, 'c', true, -1, 'C', 'C', NULL, NULL);
INSERT INTO pg_tablespace VALUES (1663, 'pg_default', 10, NULL, NULL);

-- The types: number, name, as SQL says it, bytes, category, element, array.
CREATE TABLE types (
    oid BIGINT, typname VARCHAR, said VARCHAR, typlen SMALLINT, typcategory VARCHAR, typelem BIGINT,
    typarray BIGINT
);
INSERT INTO types VALUES
    (16, 'bool', 'boolean', 1, 'B', 0, 1000), (17, 'bytea', 'bytea', -1, 'U', 0, 1001),
    (18, 'char', '"char"', 1, 'Z', 0, 1002), (19, 'name', 'name', 64, 'S', 18, 1003),
    (20, 'int8', 'bigint', 8, 'N', 0, 1016), (21, 'int2', 'smallint', 2, 'N', 0, 1005),
    (22, 'int2vector', 'int2vector', -1, 'A', 21, 1006), (23, 'int4', 'integer', 4, 'N', 0, 1007),
    (24, 'regproc', 'regproc', 4, 'N', 0, 1008), (25, 'text', 'text', -1, 'S', 0, 1009),
    (26, 'oid', 'oid', 4, 'N', 0, 1028), (30, 'oidvector', 'oidvector', -1, 'A', 26, 1013),
    (114, 'json', 'json', -1, 'U', 0, 199), (142, 'xml', 'xml', -1, 'U', 0, 143),
    (700, 'float4', 'real', 4, 'N', 0, 1021), (701, 'float8', 'double precision', 8, 'N', 0, 1022),
    (705, 'unknown', 'unknown', -2, 'X', 0, 0), (1042, 'bpchar', 'character', -1, 'S', 0, 1014),
    (1043, 'varchar', 'character varying', -1, 'S', 0, 1015), (1082, 'date', 'date', 4, 'D', 0, 1182),
    (1083, 'time', 'time without time zone', 8, 'D', 0, 1183),
    (1114, 'timestamp', 'timestamp without time zone', 8, 'D', 0, 1115),
    (1184, 'timestamptz', 'timestamp with time zone', 8, 'D', 0, 1185),
    (1186, 'interval', 'interval', 16, 'T', 0, 1187), (1700, 'numeric', 'numeric', -1, 'N', 0, 1231),
    (2205, 'regclass', 'regclass', 4, 'N', 0, 2210), (2206, 'regtype', 'regtype', 4, 'N', 0, 2211),
    (2249, 'record', 'record', -1, 'P', 0, 2287), (2278, 'void', 'void', 4, 'P', 0, 0),
    (2950, 'uuid', 'uuid', 16, 'U', 0, 2951), (3802, 'jsonb', 'jsonb', -1, 'U', 0, 3807);
INSERT INTO types
    SELECT typarray, '_' || typname, said || '[]', -1, 'A', oid, 0 FROM types WHERE typarray <> 0;
INSERT INTO pg_type
    SELECT oid, typname, 11, 10, typlen, typlen BETWEEN 1 AND 8, CASE typcategory WHEN 'P' THEN 'p' ELSE 'b' END,
        typcategory, oid IN (16, 25, 26, 701, 1184, 1186), true, ',', 0, NULL, typelem, typarray,
        CASE typcategory WHEN 'A' THEN 'array_in' ELSE typname || 'in' END,
        CASE typcategory WHEN 'A' THEN 'array_out' ELSE typname || 'out' END,
        CASE typcategory WHEN 'A' THEN 'array_recv' ELSE typname || 'recv' END,
        CASE typcategory WHEN 'A' THEN 'array_send' ELSE typname || 'send' END,
        NULL, NULL, NULL, 'i', 'p', false, 0, -1, 0, CASE typcategory WHEN 'S' THEN 100 ELSE 0 END, NULL, NULL, NULL
    FROM types;

-- A macro is pasted where it is called, so the names inside of it are ones that no client uses.
CREATE TABLE spoken AS SELECT oid AS spoken_type, typname AS spoken_name, said AS spoken_so FROM types;
CREATE VIEW remarks AS
    SELECT objoid AS remark_object, objsubid AS remark_column, description AS remark_text FROM pg_description;
CREATE VIEW placed AS SELECT oid AS placed_number, relname AS placed_name FROM pg_class;
CREATE MACRO format_type(type, modifier) AS (SELECT min(spoken_so) FROM spoken WHERE spoken_type = type);
CREATE MACRO to_regtype(called) AS (
    SELECT min(spoken_type) FROM spoken WHERE spoken_name = lower(called) OR spoken_so = lower(called)
);
CREATE MACRO to_regclass(called) AS (
    SELECT min(placed_number) FROM placed WHERE placed_name = replace(replace(called, 'public.', ''), '"', '')
);
-- What a text or a number is as a regclass: the number of the table, as a text that casts to it.
CREATE MACRO regclass_of(called) AS coalesce(to_regclass(called::VARCHAR)::VARCHAR, called::VARCHAR);
CREATE MACRO obj_description(number) AS (
    SELECT min(remark_text) FROM remarks WHERE remark_object = number AND remark_column = 0
), (number, class) AS (
    SELECT min(remark_text) FROM remarks WHERE remark_object = number AND remark_column = 0
);
CREATE MACRO col_description(number, place) AS (
    SELECT min(remark_text) FROM remarks WHERE remark_object = number AND remark_column = place
);
CREATE MACRO pg_table_is_visible(number) AS true;
CREATE MACRO pg_type_is_visible(number) AS true;
CREATE MACRO pg_function_is_visible(number) AS true;
CREATE MACRO pg_operator_is_visible(number) AS true;
CREATE MACRO pg_collation_is_visible(number) AS true;
CREATE MACRO pg_opclass_is_visible(number) AS true;
CREATE MACRO pg_char_to_encoding(called) AS 6;
CREATE MACRO getdatabaseencoding() AS 'UTF8';
CREATE MACRO pg_tablespace_location(number) AS '';
CREATE MACRO pg_database_size(called) AS 0::BIGINT;
CREATE MACRO pg_get_userbyid(number) AS 'owner';
CREATE MACRO shobj_description(number, class) AS NULL::VARCHAR;
CREATE MACRO pg_get_expr(expression, relation) AS
    expression::VARCHAR, (expression, relation, pretty) AS expression::VARCHAR;
CREATE MACRO pg_get_constraintdef(number) AS NULL::VARCHAR, (number, pretty) AS NULL::VARCHAR;
CREATE MACRO pg_get_indexdef(number) AS
    NULL::VARCHAR, (number, col) AS NULL::VARCHAR, (number, col, pretty) AS NULL::VARCHAR;
CREATE MACRO pg_get_viewdef(number) AS NULL::VARCHAR, (number, pretty) AS NULL::VARCHAR;
CREATE MACRO pg_get_ruledef(number) AS NULL::VARCHAR, (number, pretty) AS NULL::VARCHAR;
CREATE MACRO pg_get_triggerdef(number) AS NULL::VARCHAR, (number, pretty) AS NULL::VARCHAR;
CREATE MACRO pg_get_partkeydef(number) AS NULL::VARCHAR;
CREATE MACRO pg_get_statisticsobjdef_columns(number) AS NULL::VARCHAR;
CREATE MACRO pg_get_serial_sequence(relation, col) AS NULL::VARCHAR;
CREATE MACRO pg_get_functiondef(number) AS NULL::VARCHAR;
CREATE MACRO pg_get_function_result(number) AS NULL::VARCHAR;
CREATE MACRO pg_get_function_arguments(number) AS NULL::VARCHAR;
CREATE MACRO pg_get_function_identity_arguments(number) AS NULL::VARCHAR;
CREATE MACRO pg_relation_is_publishable(number) AS false;
CREATE MACRO pg_relation_size(number) AS 0::BIGINT, (number, fork) AS 0::BIGINT;
CREATE MACRO pg_table_size(number) AS 0::BIGINT;
CREATE MACRO pg_stat_get_numscans(number) AS 0::BIGINT;
CREATE MACRO pg_stat_get_live_tuples(number) AS NULL::BIGINT;
CREATE MACRO pg_total_relation_size(number) AS 0::BIGINT;
CREATE MACRO pg_indexes_size(number) AS 0::BIGINT;
CREATE MACRO pg_size_pretty(number) AS number::VARCHAR || ' bytes';
CREATE MACRO pg_encoding_to_char(number) AS 'UTF8';
CREATE MACRO pg_is_in_recovery() AS false;
CREATE MACRO pg_advisory_unlock_all() AS NULL::VARCHAR;
CREATE MACRO pg_backend_pid() AS 1;
CREATE MACRO pg_my_temp_schema() AS 0::BIGINT;
CREATE MACRO pg_is_other_temp_schema(number) AS false;
CREATE MACRO pg_postmaster_start_time() AS NULL::VARCHAR;
CREATE MACRO current_schemas(implicit) AS CASE WHEN implicit THEN ['pg_catalog', 'public'] ELSE ['public'] END;
CREATE MACRO current_schema() AS 'public';
-- Everybody who is let in may look, and nobody may write.
CREATE MACRO allows(privileges, one) AS contains(lower(privileges), one);
CREATE MACRO has_table_privilege(a, b) AS allows(b, 'select'), (a, b, c) AS allows(c, 'select');
CREATE MACRO has_schema_privilege(a, b) AS allows(b, 'usage'), (a, b, c) AS allows(c, 'usage');
CREATE MACRO has_column_privilege(a, b) AS
    allows(b, 'select'), (a, b, c) AS allows(c, 'select'), (a, b, c, d) AS allows(d, 'select');
CREATE MACRO has_any_column_privilege(a, b) AS allows(b, 'select'), (a, b, c) AS allows(c, 'select');
CREATE MACRO has_database_privilege(a, b) AS allows(b, 'connect'), (a, b, c) AS allows(c, 'connect');
CREATE MACRO has_function_privilege(a, b) AS false, (a, b, c) AS false;
CREATE MACRO has_sequence_privilege(a, b) AS false, (a, b, c) AS false;
CREATE MACRO pg_has_role(a, b) AS true, (a, b, c) AS true;
CREATE MACRO current_setting_says(text) AS text::VARCHAR;
CREATE MACRO explain_says(text) AS text;
CREATE MACRO version_says(text) AS text;
CREATE MACRO current_database_says(text) AS text;
CREATE MACRO current_user_says(text) AS text;
CREATE MACRO session_user_says(text) AS text;
CREATE MACRO user_says(text) AS text;
CREATE MACRO current_role_says(text) AS text;
CREATE MACRO current_catalog_says(text) AS text;
CREATE MACRO current_schema_says(text) AS text;
CREATE MACRO quote_ident(called) AS
    CASE WHEN regexp_full_match(called, '[a-z_][a-z0-9_]*') THEN called ELSE '"' || replace(called, '"', '""')
    || '"' END;
CREATE MACRO quote_literal(said) AS '''' || replace(said::VARCHAR, '''', '''''') || '''';
-- %s is the text, and %I the text as a name.
CREATE MACRO filled(pattern, place, said) AS
    CASE regexp_extract_all(pattern, '%[sI]')[place]
        WHEN '%I' THEN quote_ident(said::VARCHAR) WHEN '%s' THEN coalesce(said::VARCHAR, '') ELSE '' END
    || coalesce(string_split_regex(pattern, '%[sI]')[place + 1], '');
CREATE MACRO format(pattern, a) AS string_split_regex(pattern, '%[sI]')[1] || filled(pattern, 1, a),
    (pattern, a, b) AS string_split_regex(pattern, '%[sI]')[1] || filled(pattern, 1, a) || filled(pattern, 2, b);
CREATE MACRO array_lower(list, dimension) AS 1;
CREATE MACRO array_upper(list, dimension) AS len(list);

CREATE MACRO shadow_information._pg_expandarray(list) AS unnest(list_transform(list, lambda e, i: {'x': e, 'n': i}));
CREATE MACRO pg_get_keywords() AS TABLE
    SELECT word, catcode, CASE catcode WHEN 'R' THEN 'reserved' ELSE 'unreserved' END AS catdesc
    FROM (VALUES ('select', 'R'), ('limit', 'R'), ('offset', 'R'), ('explain', 'U'), ('show', 'U'), ('reset', 'U'))
        AS words(word, catcode);

CREATE VIEW shadow_information.schemata AS
    SELECT database_name() AS catalog_name, nspname AS schema_name, 'owner' AS schema_owner FROM pg_namespace;
CREATE VIEW shadow_information.tables AS
    SELECT database_name() AS table_catalog, n.nspname AS table_schema, relname AS table_name, 'BASE TABLE' AS
        table_type,
        NULL::VARCHAR AS self_referencing_column_name, NULL::VARCHAR AS reference_generation, 'NO' AS
            is_insertable_into,
        'NO' AS is_typed, NULL::VARCHAR AS commit_action
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace;
CREATE VIEW shadow_information.columns AS
    SELECT database_name() AS table_catalog, n.nspname AS table_schema, c.relname AS table_name, a.attname AS
        column_name,
        a.attnum::INTEGER AS ordinal_position, NULL::VARCHAR AS column_default,
        CASE WHEN a.attnotnull THEN 'NO' ELSE 'YES' END AS is_nullable, t.said AS data_type,
        NULL::INTEGER AS character_maximum_length, NULL::INTEGER AS character_octet_length,
        CASE t.oid WHEN 20 THEN 64 WHEN 701 THEN 53 END AS numeric_precision,
        CASE WHEN t.oid IN (20, 701) THEN 2 END AS numeric_precision_radix, CASE t.oid WHEN 20 THEN 0 END AS
            numeric_scale,
        CASE t.oid WHEN 1082 THEN 0 END AS datetime_precision, database_name() AS udt_catalog, 'pg_catalog'
            AS udt_schema,
        t.typname AS udt_name, NULL::VARCHAR AS domain_name, NULL::VARCHAR AS collation_name, 'NO' AS is_identity,
        'NEVER' AS is_generated, NULL::VARCHAR AS generation_expression, 'NO' AS is_updatable
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
        JOIN types t ON t.oid = a.atttypid;
CREATE TABLE shadow_information.views (
    table_catalog VARCHAR, table_schema VARCHAR, table_name VARCHAR, view_definition VARCHAR
);
CREATE TABLE shadow_information.table_constraints (
    constraint_catalog VARCHAR, constraint_schema VARCHAR, constraint_name VARCHAR, table_catalog VARCHAR,
    table_schema VARCHAR, table_name VARCHAR, constraint_type VARCHAR, is_deferrable VARCHAR, initially_deferred
        VARCHAR
);
CREATE TABLE shadow_information.key_column_usage (
    constraint_catalog VARCHAR, constraint_schema VARCHAR, constraint_name VARCHAR, table_catalog VARCHAR,
    table_schema VARCHAR, table_name VARCHAR, column_name VARCHAR, ordinal_position INTEGER,
    position_in_unique_constraint INTEGER
);
CREATE TABLE shadow_information.constraint_column_usage (
    table_catalog VARCHAR, table_schema VARCHAR, table_name VARCHAR, column_name VARCHAR, constraint_catalog VARCHAR,
    constraint_schema VARCHAR, constraint_name VARCHAR
);
CREATE TABLE shadow_information.referential_constraints (
    constraint_catalog VARCHAR, constraint_schema VARCHAR, constraint_name VARCHAR, unique_constraint_catalog VARCHAR,
    unique_constraint_schema VARCHAR, unique_constraint_name VARCHAR, match_option VARCHAR, update_rule VARCHAR,
    delete_rule VARCHAR
);
CREATE TABLE shadow_information.routines (
    routine_schema VARCHAR, routine_name VARCHAR, routine_type VARCHAR, data_type VARCHAR
);
CREATE TABLE shadow_information.sequences (sequence_schema VARCHAR, sequence_name VARCHAR, data_type VARCHAR);
CREATE VIEW shadow_information.table_privileges AS
    SELECT 'owner' AS grantor, 'PUBLIC' AS grantee, database_name() AS table_catalog, n.nspname AS table_schema,
        c.relname AS table_name, 'SELECT' AS privilege_type, 'NO' AS is_grantable, 'YES' AS with_hierarchy
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace;
CREATE TABLE shadow_information.column_privileges (
    grantor VARCHAR, grantee VARCHAR, table_catalog VARCHAR, table_schema VARCHAR, table_name VARCHAR,
    column_name VARCHAR, privilege_type VARCHAR, is_grantable VARCHAR
);
CREATE VIEW shadow_information.role_table_grants AS SELECT * FROM shadow_information.table_privileges;
