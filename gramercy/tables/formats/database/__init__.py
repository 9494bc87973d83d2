"""Tables of databases, which are read once, in one statement."""
