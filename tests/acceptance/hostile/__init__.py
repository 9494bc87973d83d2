"""Hostile tables, and what is to become of them."""
