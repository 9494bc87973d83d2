"""Regressions and components from one release, against procedures made for these analyses.

Run ``python -m benchmarks analyses``: it measures the missing cells and writes `results.md`.
"""
