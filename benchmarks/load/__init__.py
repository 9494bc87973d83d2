"""What commands take with up to 10,000 releases.

``python -m benchmarks load`` measures the cells missing in `results.jsonl` and writes the page.
"""
