"""Tables of databases: read once, in one statement, into a private Parquet file."""
