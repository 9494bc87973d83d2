"""Speed of the graphical lasso's solvers, compared with other libraries in one run.

``python -m benchmarks solvers`` measures the cells missing in `results.jsonl` and writes the page.
GGLasso is measured where it is installed (``pip install gglasso``), and QUIC where the environment
variable QUIC_LIBRARY has the path of its library; see `peers`.
"""
