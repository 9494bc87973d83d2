"""The benchmarks: their arithmetic, their pages, and what they recorded."""
