"""Compare a table with its contract."""
