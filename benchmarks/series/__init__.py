"""Weekly releases of a growing table: the noise, time and memory of a year.

``python -m benchmarks series`` measures the cells missing in `results.jsonl` and writes the page.
"""
