"""Modules that several packages use: the home, the disk, the machine, the lattice, drawings."""
