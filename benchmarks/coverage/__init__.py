"""Whether intervals hold the truth, and how many discoveries are false, over many releases.

``python -m benchmarks.coverage`` measures what `results.jsonl` lacks and writes the page anew.
"""
