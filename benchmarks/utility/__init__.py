"""Error of released second moments at the same guarantee: Gramercy and its peers.

``python -m benchmarks.utility`` measures what `results.jsonl` lacks and writes the page anew.
"""
