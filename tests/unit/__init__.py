"""Each room of the package by itself; the folders are its rooms."""
