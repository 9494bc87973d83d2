"""Graphs and precision matrices from a release, at the same exact guarantee: ours and the papers'.

``python -m benchmarks.graphs`` measures the cells missing in `results.jsonl` and writes the page.
"""
