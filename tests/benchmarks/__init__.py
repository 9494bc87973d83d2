"""Tests of the benchmarks: their computations, pages and stored results."""
