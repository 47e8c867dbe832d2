#!/bin/sh
# One step of psql or pgcli: NAME STEP.
grouped="SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY ward"
case "$2" in
  connect) text="SELECT 1" ;;
  introspect) text='\d visits' ;;
  parameters) text="SELECT COUNT(*) AS n FROM visits WHERE age > :age AND ward = :'ward'" ;;
  refusal) text="SELECT COUNT(*) FROM visits WHERE heigth > 3" ;;
  probe) text="SELECT * FROM ($grouped) AS q WHERE 0=1" ;;
  *) text="$grouped" ;;
esac
if [ "$1" = psql ]; then
  echo "$text" | psql -X -v ON_ERROR_STOP=1 -v age=40 -v ward=Surgery
elif [ "$2" = parameters ]; then
  exit 77 # it has none
else
  found=$("$PGCLI" --no-password -c "$text" 2>&1)
  echo "$found"
  ! echo "$found" | grep -q "refused"
fi
