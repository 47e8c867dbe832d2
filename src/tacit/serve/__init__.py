"""A curator as a server: HTTP, the PostgreSQL wire and the console."""
