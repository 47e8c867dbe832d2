# One step of R with DBI, RPostgreSQL and dbplyr: STEP.
step <- commandArgs(trailingOnly = TRUE)[1]
suppressPackageStartupMessages({
  library(DBI)
  library(dplyr, warn.conflicts = FALSE)
})
get <- Sys.getenv
connection <- dbConnect(RPostgreSQL::PostgreSQL(),
  host = get("PGHOST"), port = as.integer(get("PGPORT")), user = get("PGUSER"),
  password = get("PGPASSWORD"), dbname = get("PGDATABASE"))
invisible(dbGetQuery(connection, "SELECT set_config('tacit.epsilon', '0.1', false)"))
grouped <- "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
ask <- function(text) {
  found <- tryCatch(dbGetQuery(connection, text), error = function(e) { cat(conditionMessage(e)); quit(status = 1) })
  if (is.null(found)) {
    cat(dbGetException(connection)$errorMsg)
    quit(status = 1)
  }
  print(found)
}
if (step == "connect") {
  ask("SELECT 1")
} else if (step == "introspect") {
  print(dbListTables(connection))
  print(dbListFields(connection, "visits"))
} else if (step == "parameters") {
  print(tbl(connection, "visits") %>% filter(age > 40, ward == "Surgery") %>% summarise(n = n()) %>% collect())
} else if (step == "probe") {
  print(colnames(tbl(connection, sql(grouped))))
} else if (step == "refusal") {
  ask("SELECT COUNT(*) FROM visits WHERE heigth > 3")
} else {
  print(tbl(connection, "visits") %>% count(ward) %>% arrange(ward) %>% collect())
}
