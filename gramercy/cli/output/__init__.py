"""Results on a terminal, and the files that an option asks for."""
