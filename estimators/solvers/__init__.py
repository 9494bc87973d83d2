"""Numerical solvers, apart from what they are used for."""
