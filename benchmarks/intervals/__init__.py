"""Coverage of intervals on populations resampled from tables, with folds and without.

``python -m benchmarks intervals`` measures the cells missing in `results.jsonl` and writes the
page.
"""
