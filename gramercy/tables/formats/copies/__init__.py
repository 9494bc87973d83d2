"""Tables that are read once, into a private copy: of databases and Delta tables."""
