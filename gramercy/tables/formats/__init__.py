"""Files and tables of every format, as batches of cells."""
