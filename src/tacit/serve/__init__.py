"""A curator behind a counter: HTTP, the PostgreSQL wire and the console."""
