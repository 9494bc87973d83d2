"""What the pages of a Parquet file will ask of memory, told before a library reads them."""
