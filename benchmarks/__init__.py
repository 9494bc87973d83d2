"""Benchmarks of Gramercy and other methods. Noise is seeded: nothing here may be released."""
