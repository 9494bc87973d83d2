"""Drafts of a contract and a request, for a table that nobody has published yet."""
