"""Coverage of intervals and false discoveries, over many releases.

``python -m benchmarks.coverage`` measures the cells missing in `results.jsonl` and writes the page.
"""
