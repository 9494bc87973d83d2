"""Error of released second moments at the same guarantee: Gramercy and its peers.

``python -m benchmarks.utility`` measures the cells missing in `results.jsonl` and writes the page.
"""
