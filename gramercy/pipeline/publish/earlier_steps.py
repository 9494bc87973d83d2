"""The earlier steps of a cumulative series, from which the sum so far is decoded.

A step is drawn when all steps before it are published: then its sum is there as soon as its own
numbers are. A step that is missing is published first, and one that is spent blocks the later ones.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gramercy.archive.bundles.bundle_kinds import read_release_manifest
from gramercy.archive.bundles.encoded_file import ENCODED, Encoded, read_encoded
from gramercy.archive.bundles.package import DESCRIPTOR
from gramercy.archive.seal.bundle import SUMS, check_file, file_digest
from gramercy.ledger import ChargedSeries, check_before
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.calibration import calibrate
from gramercy.pipeline.plan.planning import Plan
from gramercy.pipeline.plan.step_charges import charged_series
from gramercy.pipeline.publish import internal_record
from gramercy.pipeline.publish.drawing import PrivateData
from gramercy.pipeline.publish.private_table import PrivateSums
from gramercy.schemas import families, wordings
from gramercy.schemas.facts import EarlierStep
from gramercy.schemas.manifest import SHARED_BY_STEPS, ReleaseManifest
from gramercy.tables.sums.streaming import Accumulated


def with_earlier_steps(context: Context, plan: Plan, data: PrivateData) -> Plan:
    """The plan of a step, to be charged, with what all steps before it published.

    Raises
    ------
    SpentFailure
        If one of them is not published.
    TermsChanged
        If its public facts are not those of the steps before.
    TableError
        If the public number of rows of an earlier step differs from its first reading.
    """
    facts = plan.spec.cumulative
    if facts is None or not isinstance(data, PrivateSums):
        return plan
    if len(data.sums.part_sums) != plan.spec.slices * plan.spec.groups_count:
        raise wordings.sums_not_as_planned()
    charged = charged_series(context.ledger, plan)
    newest = check_continues(context, plan, charged)
    earlier, published = list[EarlierStep](), list[tuple[Encoded, ...]]()
    charges = charged.before(facts.step)
    check_before(plan.contract.id, plan.request.version, charges)
    for charge in charges:
        if charge is None or newest is None:
            raise ValueError
        folder = context.archive.release(plan.contract.id, charge.release)
        if file_digest(folder / SUMS) != charge.sha256:
            raise wordings.bundle_replaced(context.archive.display_path(folder))
        earlier.append(EarlierStep(release=charge.release, sha256=charge.sha256))
        numbers = context.read_steps.get(charge.sha256)
        if numbers is None:
            check_file(folder, ENCODED)
            numbers = read_encoded(folder, newest)  # all steps have the same columns
        published.append(numbers)
    context.read_steps.clear()  # a run that catches up reads each step once
    context.read_steps.update(zip((each.sha256 for each in earlier), published, strict=True))
    update = {
        "draws": charged.draws(facts.step),
        "earlier": tuple(earlier),
        "rows": _public_rows(context, plan, charged, data.sums),
    }
    spec = plan.spec.model_copy(update={"cumulative": facts.model_copy(update=update)})
    return replace(plan, spec=spec, calibration=calibrate(spec), earlier=tuple(published))


def check_continues(context: Context, plan: Plan, charged: ChargedSeries) -> ReleaseManifest | None:
    """Refuse a step whose numbers could not be decoded together with those of earlier ones.

    A contract may state other public facts since then, such as another number of rows, to which the
    lattice of integer rows is fitted. Returns the manifest of the last earlier step, if one is
    published.
    """
    facts = plan.spec.cumulative
    charges = charged.before(facts.step) if facts else []
    published = [each.release for each in charges if each is not None and each.is_published]
    if not published:
        return None
    folder = context.archive.release(plan.contract.id, published[-1])
    check_file(folder, DESCRIPTOR)
    earlier, spec = read_release_manifest(folder), plan.spec
    changed = [key for key in SHARED_BY_STEPS if getattr(spec, key) != getattr(earlier, key)]
    own, other = plan.mechanism.lattice, earlier.calibration.lattice
    if (own.bits, own.shrinkage) != (other.bits, other.shrinkage):
        changed.append("rows")
    if spec.dataset.curator != earlier.dataset.curator:  # by which analysts know the data set
        changed.append("curator")
    if changed:
        raise families.TERMS(
            "{version} continues the series of {release}, which was published with other facts: "
            "{changed}.",
            "Restore them in the contract: its 'rows' was {rows}, and its 'curator' {curator}. All "
            "steps of a series have the same rows of whole numbers, from which sums are decoded.",
            version=plan.request.version,
            release=f"{plan.contract.id}/{published[-1]}",
            changed=tuple(changed),
            rows=earlier.dataset.rows,
            curator=earlier.dataset.curator,
        )
    return earlier


def _exact_rows(steps: int, sums: Accumulated) -> tuple[int, ...]:
    """The number of rows of every step so far, in all groups."""
    return tuple(sum(part.rows for part in sums.part_sums[k::steps]) for k in range(steps))


def _public_rows(
    context: Context, plan: Plan, charged: ChargedSeries, sums: Accumulated
) -> tuple[int, ...]:
    """The number of rows of every step so far; empty where it is private.

    The first release that states the number of a step fixes it, and all later ones state the same.
    """
    if not plan.contract.neighbours.count_is_public:
        return ()
    found = _exact_rows(plan.spec.slices, sums)
    published = [
        (each.series.step, context.archive.release(plan.contract.id, each.release))
        for each in charged.charges
        if each.series is not None and each.state.was_published
    ]
    folders = [folder for _, folder in sorted(published) if context.archive.contains(folder)]
    stated = read_release_manifest(folders[-1]) if folders else None
    fixed = stated.cumulative.rows if stated is not None and stated.cumulative else ()
    for label, rows, declared in zip(plan.spec.step_days.labels, found, fixed, strict=False):
        if rows != declared:
            raise families.ROW_COUNT(
                "Step {step} has {rows} rows in the table, but {release} states {declared}.",
                "Restore the rows of that step and their dates: the number of rows of every step "
                "is public, and fixed by its first release. Rows may be replaced, and not added or "
                "deleted.",
                step=label,
                rows=rows,
                declared=declared,
                release=f"{plan.contract.id}/{stated.release if stated else ''}",
            )
    return found


def rows_of_steps(context: Context, plan: Plan, sums: Accumulated) -> dict[str, Any]:
    """For the steward: exact numbers of rows of all steps, and which earlier ones have changed.

    Of a later row only a part is in the sums, and of a deleted one a part stays.
    """
    facts = plan.spec.cumulative
    if facts is None:
        return {}
    found = dict(zip(plan.spec.step_days.labels, _exact_rows(facts.step, sums), strict=False))
    last = dict[str, int]()
    for charge in reversed(charged_series(context.ledger, plan).charges):
        record = internal_record.read_record(context.home, plan.contract.id, charge.release)
        last = record.get("rows_of_steps", {}) | last
        if len(last) >= facts.step - 1:
            break
    changed = {
        label: [last[label], rows] for label, rows in found.items() if last.get(label, rows) != rows
    }
    return {"rows_of_steps": found, "changed_steps": changed}
