"""Verify releases and audit homes, from public files and the ledger."""
