"""The verdict of a release against the truth, and coverage of its intervals, by kind of table.

``python -m benchmarks verdicts`` measures the cells missing in `results.jsonl` and writes the page.
"""
