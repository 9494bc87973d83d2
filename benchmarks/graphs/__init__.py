"""Graphs and precision matrices: Gramercy and the papers' methods at one exact guarantee.

``python -m benchmarks graphs`` measures the cells missing in `results.jsonl` and writes the page.
"""
