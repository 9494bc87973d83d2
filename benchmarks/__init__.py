"""Benchmarks of Gramercy against other methods. Noise is seeded, so nothing here may be released."""
