"""What each constant and branch of `gramercy/scaling` earns, on kinds of tables of its own.

``python -m benchmarks ablation`` measures the cells missing in `results.jsonl` and writes the page.
"""
