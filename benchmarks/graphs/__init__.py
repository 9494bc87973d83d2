"""Graphs and precision matrices from a release, at the same exact guarantee: ours and the papers'.

``python -m benchmarks.graphs`` measures what `results.jsonl` lacks and writes the page anew.
"""
