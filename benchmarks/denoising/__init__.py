"""How close denoising comes to the best estimate with the same eigenvectors.

``python -m benchmarks denoising`` measures the cells missing in `results.jsonl` and writes the
page.
"""
