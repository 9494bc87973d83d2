"""Factor analyses and reliabilities from releases: what their intervals cover.

``python -m benchmarks factors`` measures the missing cells and writes the page.
"""
