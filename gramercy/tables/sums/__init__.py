"""Exact sums over rows: repaired, normalised, rounded, added."""
