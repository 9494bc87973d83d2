"""Penalty selection without private data."""
