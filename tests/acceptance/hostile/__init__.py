"""Hostile tables, and the expected result of each."""
