"""Persons: their names, and the scale and the sample of their rows."""
