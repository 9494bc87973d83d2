"""Sealed bundles: staged, verified, committed at once, and checked on every read."""
