// One step of a client of Go: NAME STEP.
package main

import (
	"database/sql"
	"errors"
	"fmt"
	"os"

	"github.com/jackc/pgconn"
	_ "github.com/jackc/pgx/v4/stdlib"
	"github.com/lib/pq"
)

const grouped = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY ward"

func run(db *sql.DB, driver string, step string) error {
	text, values := grouped, []interface{}{}
	switch step {
	case "connect":
		text = "SELECT 1"
	case "introspect":
		text = "SELECT column_name FROM information_schema.columns WHERE table_schema = 'public'"
	case "parameters":
		text = "SELECT COUNT(*) AS n FROM visits WHERE age > $1 AND ward = ANY($2)"
		if driver == "pgx" {
			values = []interface{}{40, []string{"Surgery"}}
		} else {
			values = []interface{}{40, pq.Array([]string{"Surgery"})}
		}
	case "refusal":
		text = "SELECT COUNT(*) FROM visits WHERE heigth > 3"
	case "probe":
		text = "SELECT * FROM (" + grouped + ") AS q WHERE 0=1"
	}
	rows, err := db.Query(text, values...)
	if err != nil {
		return err
	}
	defer rows.Close()
	names, err := rows.Columns()
	fmt.Println(names)
	for rows.Next() {
		cells := make([]interface{}, len(names))
		for i := range cells {
			cells[i] = new(interface{})
		}
		if err := rows.Scan(cells...); err != nil {
			return err
		}
		for _, cell := range cells {
			fmt.Printf("%s ", *cell.(*interface{}))
		}
		fmt.Println()
	}
	return rows.Err()
}

func main() {
	driver := map[string]string{"lib/pq": "postgres", "pgx": "pgx"}[os.Args[1]]
	place := "host=%s port=%s user=%s password=%s dbname=%s sslmode=disable options='-c tacit.epsilon=0.1'"
	get := os.Getenv
	db, err := sql.Open(driver, fmt.Sprintf(place, get("PGHOST"), get("PGPORT"), get("PGUSER"), get("PGPASSWORD"), get("PGDATABASE")))
	if err == nil {
		err = run(db, driver, os.Args[2])
	}
	if err != nil {
		var first *pq.Error
		var second *pgconn.PgError
		if errors.As(err, &first) {
			fmt.Println(first.Message, first.Hint)
		} else if errors.As(err, &second) {
			fmt.Println(second.Message, second.Hint)
		} else {
			fmt.Println(err)
		}
		os.Exit(1)
	}
}
