"""OpenDP's DP-PCA (its implementation of EMCov), run in a separate interpreter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.arrays import Rng
from benchmarks.peers import OPENDP
from benchmarks.utility.data import Dataset
from benchmarks.utility.guarantees import Privacy
from benchmarks.utility.matrices import assemble, plausible
from benchmarks.utility.method import Forms, Method

SCRIPT = Path(__file__).with_name("opendp_worker.py")


def draws(data: Dataset, privacy: Privacy, _: Rng, times: int) -> Iterator[Forms]:
    """Yield releases drawn with OpenDP's own generator, which cannot be seeded."""
    found = OPENDP.run(SCRIPT, {"rows": data.rows}, privacy.epsilon, times)
    for squares, columns in zip(found["squares"], found["vectors"], strict=True):
        values = squares / data.n
        yield {
            "published": assemble(columns, values),
            "projected": assemble(columns, plausible(values[::-1])[::-1]),
        }


METHODS = (
    Method(
        "opendp-pca",
        "OpenDP DP-PCA",
        "OpenDP's make_private_pca with all components, origin 0 and its default budget split; its "
        "own privacy map gives epsilon for two changed rows. In version 0.16 the acceptance rule "
        "of its eigenvector sampler divides by (u^T Omega u)^(d/2), where the envelope requires "
        "the product. So its vectors are more concentrated than the law that its guarantee is "
        "for; the results are shown unchanged. Measured up to epsilon = 1, because above it the "
        "sampler takes minutes per release.",
        ("pure",),
        draws,
        repetitions=5,
        many_columns=0,
        up_to=1.0,
    ),
)
