"""A model of the whole: steward, analysts, auditors, crashes and clock over ledger and archive."""
