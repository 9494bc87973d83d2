"""Sizes that a Parquet file states in its footer and its page headers."""
