"""Estimate the constants of a release: draw the histograms from which they are computed.

Each draw follows a pass over the table with constants that are already published, and has a mu that
was fixed and charged before the first draw.
"""

from __future__ import annotations

from dataclasses import replace

from gramercy.pipeline.plan.planning import Plan
from gramercy.pipeline.publish.accumulation import PrivateCounts, count_cells, count_lengths
from gramercy.scaling.chain import ConstantsChain
from gramercy.schemas import wordings
from gramercy.schemas.evidence import Histogram


def estimate_constants(plan: Plan, data: PrivateCounts) -> tuple[Plan, list[Histogram]]:
    """Draw the noise of all histograms of a release that has been charged.

    Parameters
    ----------
    plan
        The planned release, whose constants are not known.
    data
        Exact counts over the bins of the first stage. Private.

    Returns
    -------
    Plan
        The plan with the estimated constants and radius.
    list of Histogram
        What to publish: the histograms of all columns for each stage, and those of row lengths.

    Raises
    ------
    TableError
        If the table has changed since its first pass; everything that was charged stays spent.
    """
    noise = plan.calibration.constants_noise
    if noise is None:
        raise wordings.sums_not_as_planned()
    chain, published = ConstantsChain.start(plan.spec), list[Histogram]()
    counts = data.counts
    for stage, law in enumerate(noise.stages):
        if stage > 0:
            counts = count_cells(plan, chain.grids, data.state, data.kept)
        noisy = law.perturb(counts.counts)
        published += chain.histograms(noisy, law.sd)
        chain = chain.after(noisy, law.sd)
    lengths = count_lengths(replace(plan, spec=chain.scaled), data.state, data.kept)
    (noisy_lengths,) = noise.lengths.perturb(lengths.counts)
    published.append(chain.length_histogram(noisy_lengths, noise.lengths.sd))
    spec = chain.clipped(noisy_lengths, noise.lengths.sd, plan.calibration.noise_of_sum(plan.spec))
    return replace(plan, spec=spec), published
