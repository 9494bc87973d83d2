"""Sealed bundles: written aside, verified, published by one rename, checked on every read."""
