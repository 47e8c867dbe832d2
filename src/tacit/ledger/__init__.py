"""What was spent, by whom and on what: charged durably before data is touched, and never forgotten."""
