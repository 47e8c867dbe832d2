"""Interpreters of a loss: what it costs, and whether a budget still admits it."""
