"""``python -m benchmarks NAME`` measures the missing cells of a benchmark, and writes its page."""

from __future__ import annotations

import importlib
import os
import sys

NAMES = (
    "statistics", "analyses", "utility", "denoising", "graphs", "coverage", "intervals",
    "verdicts", "ablation", "solvers", "throughput", "load", "series", "factors",
    "papers",
)  # fmt: skip
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

if __name__ == "__main__":
    name, *arguments = sys.argv[1:] or [""]
    if name not in NAMES:
        sys.exit(f"usage: python -m benchmarks NAME [--help], where NAME is of {', '.join(NAMES)}")
    # BLAS gets one thread per process, because parallel processes use all cores: read when numpy
    # loads, so before the benchmark is imported.
    if name != "throughput":
        os.environ.update(dict.fromkeys(_THREADS, "1"))
    importlib.import_module(f"benchmarks.{name}.page").BENCHMARK.main(arguments)
