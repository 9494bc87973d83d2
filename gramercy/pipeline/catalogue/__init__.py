"""The signed listing and the pages of the catalogue."""
