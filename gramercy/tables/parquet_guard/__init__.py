"""Checks how much memory a Parquet file will need, before a library reads it."""
