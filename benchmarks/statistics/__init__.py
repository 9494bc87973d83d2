"""Accuracy of correlations against those of the table, by the choice of centres and scales.

Run ``python -m benchmarks statistics``: it measures the missing cells and writes `results.md`.
"""
