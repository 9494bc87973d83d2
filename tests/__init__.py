"""All tests, with one BLAS thread per process.

Tests run in several processes, and the threads of BLAS wait for each other actively: when there are
more of them than cores, small matrix products take ten times longer.
"""

import os

# Set before numpy loads its libraries; subprocesses inherit it.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"
