"""Drafts of a contract and a request for a table that was never published."""
