"""Tables that are read once, into a private copy: of databases, workbooks and Delta tables."""
