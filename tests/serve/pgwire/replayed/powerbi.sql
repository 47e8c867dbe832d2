-- What Power BI asks in DirectQuery, in forms that Power Query is known to fold to. None was recorded from it.

-- answered
select "rows"."ward" as "ward", sum("rows"."cost") as "a0"
from (select "_"."ward", "_"."cost" from "public"."visits" "_") "rows"
group by "ward"
limit 1000001
;;

-- answered
select "_"."ward", "_"."a0"
from (select "rows"."ward" as "ward", count(1) as "a0" from "public"."visits" "rows" group by "ward") "_"
where not "_"."a0" is null
limit 1000001
;;

-- answered
select count(*) as "a0"
from (
    select "_"."visited", "_"."ward" from "public"."visits" "_"
    where "_"."visited" >= timestamp '2025-01-01 00:00:00' and "_"."visited" < timestamp '2025-02-01 00:00:00'
        and "_"."ward" = 'Surgery'
) "rows"
limit 1000001
;;

-- free: the values of a slicer
select "rows"."ward" as "ward" from (select "ward" from "public"."visits" "$Table") "rows"
group by "ward" order by "ward" limit 101
;;

-- refused raw-column: put it into an aggregate: AVG("$Table"."age")
select "$Table"."age" as "age" from "public"."visits" "$Table" limit 4096
-- instead
select AVG("$Table"."age") as "age" from "public"."visits" "$Table" limit 4096
;;
