"""Choosing a penalty without private data."""
