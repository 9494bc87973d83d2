"""What several rooms need and no schema is: the home, the machine, the lattice of integers."""
