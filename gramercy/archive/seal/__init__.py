"""Seals: digests, signatures, keys, and anchors of the ledger."""
