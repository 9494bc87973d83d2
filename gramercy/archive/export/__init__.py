"""Releases in the formats of others."""
