"""The graphical lasso's solvers, beside those that people use, in one run.

``python -m benchmarks.solvers`` measures what `results.jsonl` lacks and writes the page anew.
GGLasso is measured where it is installed (``pip install gglasso``).
"""
