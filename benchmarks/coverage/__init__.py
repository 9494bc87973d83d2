"""Coverage of intervals and rate of false discoveries, over many releases.

``python -m benchmarks coverage`` measures the cells missing in `results.jsonl` and writes the page.
"""
