"""The last steps of a cumulative series, as a release of their own.

A release of a step has the sum over all rows so far. That of an earlier step, taken from it, leaves
the sum over the steps since then, with noise of the same law and of a known size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gramercy.archive.bundles.bundle_kinds import ReleaseBundle
from gramercy.archive.bundles.number_files import GroupMatrices
from gramercy.common.metric import congruence
from gramercy.common.prefix_sums import PrefixSums
from gramercy.schemas import families
from gramercy.schemas.facts import CumulativeFacts, EarlierStep, RowsFacts
from gramercy.schemas.noise import NoiseLaw

Array = NDArray[np.float64]


class Denoise(Protocol):
    """`estimators.noise.denoise.denoise`."""

    def __call__(
        self, matrix: Array, law: NoiseLaw, trace: float, rows: float, *, unit: bool
    ) -> Array: ...


def step_before(release: str, facts: CumulativeFacts | None, steps: int) -> EarlierStep | None:
    """The release whose sum is taken from that of a step, so that its last steps are left.

    `steps`: their number. None if they are all steps so far. Raises RequestError if there are not
    as many, or the release is not of a series.
    """
    if facts is None:
        raise families.PERIOD(
            "'{release}' is not a step of a cumulative series.",
            "It has all rows of its version; only releases of requests with the key 'cumulative' "
            "have steps.",
            release=release,
        )
    if not 1 <= steps <= facts.step:
        raise families.PERIOD(
            "'{release}' has {published} steps so far, so a number of last steps must be from 1 to "
            "{published}, not {steps}.",
            release=release,
            published=facts.step,
            steps=steps,
        )
    return facts.earlier[facts.step - steps - 1] if steps < facts.step else None


def last_steps(later: ReleaseBundle, earlier: ReleaseBundle, denoise: Denoise) -> ReleaseBundle:
    """The rows of the steps after `earlier` up to `later`, as a release of its own.

    `earlier`: the release that `step_before` names; raises BundleError if it is of another series.
    """
    facts, before = later.manifest, earlier.manifest
    total, first = _steps(later, earlier)
    series = PrefixSums(total.steps)
    spread = series.spread(total.step, total.step - first) / series.spread(total.step)
    rows = _rows(facts.rows, before.rows, spread)
    pairs = zip(facts.groups, before.groups, strict=True)
    groups = tuple(a.model_copy(update={"rows": _rows(a.rows, b.rows, spread)}) for a, b in pairs)
    noise = facts.noise.divided_by(rows.value / (facts.rows.value * spread))
    manifest = facts.model_copy(update={"rows": rows, "noise": noise, "groups": groups})

    def repaired(matrix: Array, law: NoiseLaw, of: RowsFacts) -> Array:
        bound, unit = manifest.trace_bound, manifest.normalisation.unit_rows
        drawn = denoise(later.in_metric(matrix), law, bound, of.value, unit=unit)
        return drawn if later.root is None else congruence(later.root, drawn)

    def since(a: Array, of_a: RowsFacts, b: Array, of_b: RowsFacts, of: RowsFacts) -> Array:
        return (a * of_a.value - b * of_b.value) / of.value

    raw = since(later.raw, facts.rows, earlier.raw, before.rows, rows)
    of_groups: Sequence[tuple[GroupMatrices, GroupMatrices]] = [
        *zip(later.groups, earlier.groups, strict=True)
    ]
    matrices = []
    for k, (a, b) in enumerate(of_groups):
        own = groups[k].rows
        moment = since(a.raw, facts.groups[k].rows, b.raw, before.groups[k].rows, own)
        law = manifest.group_noise(own.value)
        matrices.append(GroupMatrices(a.level, moment, repaired(moment, law, own)))
    denoised = repaired(raw, noise, rows)
    whitening = later.whitening and replace(later.whitening, drawn=None)
    return replace(
        later,
        manifest=manifest,
        raw=raw,
        projected=denoised,
        denoised=denoised,
        groups=tuple(matrices),
        whitening=whitening,
        first_step=first,
    )


def _steps(later: ReleaseBundle, earlier: ReleaseBundle) -> tuple[CumulativeFacts, int]:
    """The facts of the later step, and the number of the earlier one."""
    total, before = later.manifest.cumulative, earlier.manifest.cumulative
    if total is not None and before is not None:
        named = [each.sha256 for each in total.earlier]
        first = before.step
        draws = [*(each.sha256 for each in before.earlier), earlier.sha256]
        if first < total.step and draws == named[:first]:
            return total, first
    raise families.CONTRADICTION(
        "'{release}' was not decoded from the steps that '{earlier}' was decoded from.",
        "Take the last steps of a release after which no step was drawn again, or fetch both "
        "bundles again from their curator.",
        release=later.release_evidence.name,
        earlier=earlier.release_evidence.name,
    )


def _rows(total: RowsFacts, before: RowsFacts, spread: float) -> RowsFacts:
    """The number of rows since a step, and the noise that it has."""
    count = total.observed - before.observed
    return RowsFacts(
        value=max(count, 1.0), observed=count, status=total.status, sd=total.sd * spread
    )
