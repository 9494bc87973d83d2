"""Published methods, reimplemented from their papers for replace-one neighbours."""

from benchmarks.utility.method import Method
from benchmarks.utility.peers import adaptive, classical, dong, emcov, nuclear, opendp_pca

PEERS: tuple[Method, ...] = (
    *classical.METHODS,
    *dong.METHODS,
    *adaptive.METHODS,
    *emcov.METHODS,
    *nuclear.METHODS,
    *opendp_pca.METHODS,
)
