"""Exact privacy guarantees and their composition."""
