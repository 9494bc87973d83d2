"""``python -m benchmarks.statistics``."""

import os

# One BLAS thread per process, set before numpy loads: the parallel processes use all cores.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

from benchmarks.statistics.run import main  # noqa: E402

if __name__ == "__main__":
    main()
