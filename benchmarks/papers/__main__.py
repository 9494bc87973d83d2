"""``python -m benchmarks.papers``."""

import os

# One BLAS thread a process, set before numpy loads: processes share the cores, not threads.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

from benchmarks.papers.run import main  # noqa: E402

if __name__ == "__main__":
    main()
