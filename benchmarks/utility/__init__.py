"""Error of released second moments at the same guarantee: Gramercy and published methods.

``python -m benchmarks utility`` measures the cells missing in `results.jsonl` and writes the page.
"""
