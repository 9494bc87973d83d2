"""The last steps of a cumulative series, as a release of their own.

A release of a step has the sum over all rows so far. That of an earlier step, taken from it, leaves
the sum over the steps since then, with noise of the same law and of a known size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gramercy.archive.bundles.bundle_kinds import ReleaseBundle
from gramercy.archive.bundles.encoded_file import Encoded, decode
from gramercy.archive.bundles.number_files import GroupMatrices
from gramercy.common.metric import congruence
from gramercy.common.prefix_sums import PrefixSums
from gramercy.schemas import families
from gramercy.schemas.errors import GramercyError
from gramercy.schemas.facts import CumulativeFacts, EarlierStep, RowsFacts
from gramercy.schemas.noise import NoiseLaw

Array = NDArray[np.float64]


class Denoise(Protocol):
    """`estimators.noise.denoise.denoise`."""

    def __call__(
        self, matrix: Array, law: NoiseLaw, trace: float, rows: float, *, unit: bool
    ) -> Array: ...


def check_last(release: str, facts: CumulativeFacts | None, steps: int) -> CumulativeFacts:
    """The facts of a step, if it has as many last steps; raises RequestError otherwise."""
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
    return facts


def window(
    newest: ReleaseBundle,
    first: int,
    last: int,
    read: Callable[[EarlierStep], ReleaseBundle],
    denoise: Denoise,
) -> ReleaseBundle:
    """The rows of the steps after `first` up to `last`, as a later release decodes them.

    `read`: gives a step from which that release was decoded. Raises BundleError if it is another.
    """
    later = _sum_up_to(newest, last, read, denoise)
    if first == 0:
        return later
    earlier, facts = _sum_up_to(newest, first, read, denoise), later.manifest.cumulative
    series = PrefixSums(facts.steps if facts else 0)
    spread = series.spread(last, last - first) / series.spread(last)

    def since(a: _Sum, b: _Sum) -> _Sum:
        count = a.rows.observed - b.rows.observed
        return _Sum(a.matrix - b.matrix, _counted(a.rows, count, a.rows.sd * spread))

    parts = zip(_sums(later), _sums(earlier), strict=True)
    found = _of_sums(later, [since(*pair) for pair in parts], spread, denoise)
    return replace(found, first_step=first)


def _sum_up_to(
    newest: ReleaseBundle,
    step: int,
    read: Callable[[EarlierStep], ReleaseBundle],
    denoise: Denoise,
) -> ReleaseBundle:
    """The sum over all steps up to a number, from 1, as a later release decodes it.

    It is the published sum, unless a step was drawn again after it.
    """
    facts = newest.manifest.cumulative
    if facts is None or step == facts.step:
        return newest

    def named(number: int) -> tuple[ReleaseBundle, CumulativeFacts]:
        each = facts.earlier[number - 1]
        bundle = read(each)
        own, series = bundle.manifest.cumulative, bundle.manifest.series
        is_named = bundle.sha256 == each.sha256 and series == newest.manifest.series
        if own is None or own.step != number or not is_named:
            raise _is_another(newest, bundle)
        return bundle, own

    if len(facts.earlier) != facts.step - 1:
        raise _is_another(newest, newest)
    earlier, own = named(step)
    if facts.earlier[: len(own.earlier)] == own.earlier:
        return earlier
    published = [named(number)[0].encoded for number in range(1, step + 1)]
    return _decoded_again(earlier, facts, published, denoise)


def _decoded_again(
    earlier: ReleaseBundle,
    later: CumulativeFacts,
    published: Sequence[Sequence[Encoded]],
    denoise: Denoise,
) -> ReleaseBundle:
    """The sum over all steps up to an earlier one, decoded from the steps that a later one names.

    `published`: what these steps published, up to the earlier one.
    """
    facts, root, own = earlier.manifest, earlier.root, earlier.manifest.cumulative

    def counted(rows: RowsFacts, count: float) -> RowsFacts:
        return rows if rows.status == "public" else _counted(rows, count, rows.sd)

    series, divisor = PrefixSums(later.steps), facts.calibration.lattice.divisor
    sums, rows = decode(series, divisor, published)
    decoded = [
        _Sum(total if root is None else congruence(root, total), counted(old.rows, count))
        for total, count, old in zip(sums, rows.tolist(), _sums(earlier)[-len(sums) :], strict=True)
    ]
    if facts.groups:
        count = sum(each.rows.observed for each in decoded)
        whole = sum((each.matrix for each in decoded), np.zeros_like(earlier.raw))
        decoded.insert(0, _Sum(whole, counted(facts.rows, count)))
    steps = own and own.model_copy(update={"earlier": later.earlier[: own.step - 1]})
    named = replace(earlier, manifest=facts.model_copy(update={"cumulative": steps}))
    return _of_sums(named, decoded, 1.0, denoise)


@dataclass(frozen=True)
class _Sum:
    """A noisy sum over rows, and their number."""

    matrix: Array
    rows: RowsFacts


def _sums(bundle: ReleaseBundle) -> list[_Sum]:
    """The sums of a release: over all rows, and over those of each group."""
    groups = zip(bundle.groups, bundle.manifest.groups, strict=True)
    pairs = [(bundle.raw, bundle.manifest.rows), *((a.raw, b.rows) for a, b in groups)]
    return [_Sum(raw * rows.value, rows) for raw, rows in pairs]


def _of_sums(
    bundle: ReleaseBundle, sums: Sequence[_Sum], spread: float, denoise: Denoise
) -> ReleaseBundle:
    """A release with other sums, of all rows and of groups.

    `spread`: standard deviation of their noise, in that of the release's own sums.
    """
    facts, (whole, *groups) = bundle.manifest, sums
    update = {
        "rows": whole.rows,
        "noise": facts.noise.divided_by(whole.rows.value / (facts.rows.value * spread)),
        "groups": tuple(
            each.model_copy(update={"rows": own.rows})
            for each, own in zip(facts.groups, groups, strict=True)
        ),
    }
    manifest = facts.model_copy(update=update)

    def both(each: _Sum, law: NoiseLaw) -> tuple[Array, Array]:
        """The matrix, and its denoised form."""
        raw, bound = each.matrix / each.rows.value, manifest.trace_bound
        unit = manifest.normalisation.unit_rows
        drawn = denoise(bundle.in_metric(raw), law, bound, each.rows.value, unit=unit)
        return raw, drawn if bundle.root is None else congruence(bundle.root, drawn)

    raw, denoised = both(whole, manifest.noise)
    return replace(
        bundle,
        manifest=manifest,
        raw=raw,
        projected=denoised,
        denoised=denoised,
        groups=tuple(
            GroupMatrices(a.level, *both(own, manifest.group_noise(own.rows.value)))
            for a, own in zip(bundle.groups, groups, strict=True)
        ),
        whitening=bundle.whitening and replace(bundle.whitening, drawn=None),
    )


def _counted(rows: RowsFacts, count: float, sd: float) -> RowsFacts:
    """Another number of rows, with the standard deviation of its noise."""
    return RowsFacts(value=max(count, 1.0), observed=count, status=rows.status, sd=sd)


def _is_another(later: ReleaseBundle, earlier: ReleaseBundle) -> GramercyError:
    return families.CONTRADICTION(
        "'{earlier}' is not the release from which '{release}' was decoded.",
        "Fetch both bundles again from their curator.",
        earlier=earlier.release_evidence.name,
        release=later.release_evidence.name,
    )
