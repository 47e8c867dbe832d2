"""Where the data is: an engine runs an aggregation and returns integers."""
