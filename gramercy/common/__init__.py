"""Used by several packages, and not a schema: the home, the machine, the integer lattice."""
