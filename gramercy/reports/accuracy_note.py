"""The verdict on the correlations of a release: noise and bias together.

Green is conservative. It is shown only where the bias can be bounded: where rows were clipped, not
divided by their length, means are known, and the shares of missing cells are published. On 19 kinds
of tables, real and simulated, at three values of epsilon, no correlation behind a green box was off
by more than 0.1 (`tests/unit/reports/test_accuracy_note.py` has some of them).
"""

from __future__ import annotations

import hashlib

import numpy as np

from gramercy.archive.bundles.release_bundle import ReleaseBundle
from gramercy.estimators.accuracy.clipped_means import clamped_columns
from gramercy.estimators.accuracy.correlation_accuracy import (
    CorrelationAccuracy,
    correlation_accuracy,
)
from gramercy.estimators.noise.spectrum import Spectrum
from gramercy.estimators.table_units import weight_lost
from gramercy.reports.notes import Level, Note, listed, warning
from gramercy.schemas import families
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts
from gramercy.schemas.manifest import ReleaseManifest

_GREEN_TYPICAL, _GREEN_LARGEST, _GREEN_LOST = 0.05, 0.08, 0.05
_RED_TYPICAL, _RED_LOST = 0.2, 0.5
_DOMINANT = 0.5  # share of the trace in one direction that suggests centres that are off
_LONG = 1.15  # standard deviation of the rows relative to the released one
_MOST_SIMULATED = 4
# The accuracy of the latest releases of this process, by the digest of what it depends on.
_simulated: dict[str, CorrelationAccuracy | None] = {}


def accuracy_notes(bundle: ReleaseBundle, spectrum: Spectrum) -> list[Note]:
    """How far the correlations of a release, or the entries of its matrix, can be used."""
    facts = bundle.manifest
    if not facts.names:
        return []
    noise, signal = (float(np.linalg.norm(each)) for each in (bundle.deviations, bundle.repaired))
    sizes = f"The noise has a Frobenius norm of about {noise:.2g}, the {bundle.repair} matrix of "
    sizes += f"{signal:.2g}; {spectrum.above_noise} of {len(facts.names)} eigenvalues are above "
    sizes += "the noise."
    lost = facts.intercept and weight_lost(bundle.unbiased, bundle.deviations)
    if noise > signal or spectrum.above_noise == 0 or lost:
        notice = families.NOISE(
            "{sizes}",
            "Read single entries with great care, and use the {repair} matrix.",
            sizes=sizes,
            repair=bundle.repair,
        )
        return [warning("This matrix is mostly noise", notice, "danger")]
    accuracy = None
    if facts.publication.is_moment:
        evidence = bundle.evidence
        accuracy = _accuracy(bundle, evidence)
    if accuracy is not None:
        tails = [*long_tails_notes(accuracy, evidence), *clamped_notes(evidence)]
        return [correlation_note(accuracy, evidence, sizes), *tails]
    if 2 * noise > signal:
        head = "The noise is about as large as the matrix"
        return [
            warning(
                head,
                families.NOISE(
                    "{sizes}",
                    "Large structure is reliable; single small entries are not.",
                    sizes=sizes,
                ),
            )
        ]
    return [Note("good", "The structure is well above the noise", sizes)]


def long_tails_notes(accuracy: CorrelationAccuracy, evidence: Evidence) -> list[Note]:
    """A note that names the columns whose standard deviations are too small, if there are some."""
    columns = evidence.columns[1:] if _has_intercept(evidence) else evidence.columns
    names = [
        each.name
        for each, spread in zip(columns, accuracy.spread, strict=True)
        if isinstance(each, ColumnFacts) and spread > _LONG
    ]
    return (
        [
            warning(
                "Columns with long tails",
                families.TAILS(
                    "Columns with long tails: {columns}.",
                    "Long rows count less, so the standard deviations are probably too small, by "
                    "a tenth or more. The logarithm of such a column has shorter tails.",
                    columns=listed(names),
                ),
            )
        ]
        if names
        else []
    )


def clamped_notes(evidence: Evidence) -> list[Note]:
    """A note that names the columns whose cells seem to be clamped, if there are some."""
    names = clamped_columns(evidence)
    head = "Means of clamped cells"
    return (
        [
            warning(
                head,
                families.TAILS(
                    "Columns with cells near or beyond their bounds: {columns}.",
                    "Cells are clamped to the bounds that this release states, so means and "
                    "standard deviations may be off by more than their intervals say. Use the "
                    "quantiles from the histograms, where cells are not clamped; or publish the "
                    "logarithm of such a column. A code for missing values, such as -9, belongs "
                    "in the contract: 'missing: [-9]'.",
                    columns=listed(names),
                ),
            )
        ]
        if names
        else []
    )


def _accuracy(bundle: ReleaseBundle, evidence: Evidence) -> CorrelationAccuracy | None:
    """The accuracy of the correlations, simulated once for a report and a page of the catalogue."""
    digest = hashlib.sha256(f"{bundle.sha256} {bundle.manifest.model_dump_json()}".encode())
    for matrix in (evidence.raw, evidence.repaired):
        digest.update(np.ascontiguousarray(matrix).tobytes())
    key = digest.hexdigest()
    if key not in _simulated:
        per_person = _rows_per_person(bundle.manifest)
        found = correlation_accuracy(evidence, per_person)
        if len(_simulated) >= _MOST_SIMULATED:
            _simulated.clear()
        _simulated[key] = found
        return found
    return _simulated[key]


def correlation_note(accuracy: CorrelationAccuracy, evidence: Evidence, sizes: str) -> Note:
    """The verdict on correlations.

    Parameters
    ----------
    accuracy, evidence
        Of the release.
    sizes
        A sentence on the sizes of matrix and noise.
    """
    level = correlation_level(accuracy, evidence)
    typical, largest = accuracy.typical_error, accuracy.largest_error
    details = "; ".join(_details(accuracy, evidence))
    if level == "good":
        text = f"A correlation is typically off by {typical:.2g}, at most by about {largest:.2g}"
        return Note(level, "The correlations are accurate", f"{text}: {details}. {sizes}")
    head = {
        "warning": "The correlations are uncertain",
        "danger": "The correlations are unreliable",
    }[level]
    if not _has_intercept(evidence):
        centres = accuracy.error_if_centres_are_off
        return warning(
            head,
            families.READING(
                "Without an intercept, these are not correlations about the means, but "
                "about the public centres. If the centres are off, a correlation is "
                "typically off by {centres:.2g}; noise and normalisation add "
                "{typical:.2g}: {details}.",
                "Write 'intercept: true' in the contract of the next data set.",
                centres=centres,
                typical=typical,
                details=details,
            ),
            level,
        )
    if level == "danger":
        notice = families.NOISE(
            "A correlation is typically off by {typical:.2g}, some by as much as "
            "{largest:.2g}: {details}.",
            "Do not rely on single correlations.",
            typical=typical,
            largest=largest,
            details=details,
        )
    else:
        notice = families.NOISE(
            "A correlation is typically off by {typical:.2g}, some by as much as "
            "{largest:.2g}: {details}.",
            "Rely on correlations that are clearly larger than that.",
            typical=typical,
            largest=largest,
            details=details,
        )
    return warning(head, notice, level)


def correlation_level(accuracy: CorrelationAccuracy, evidence: Evidence) -> Level:
    """Green, orange or red, from noise and bias together."""
    off_centre = accuracy.leading_share > _DOMINANT and (
        accuracy.error_if_centres_are_off > _RED_TYPICAL
    )
    if accuracy.typical_error > _RED_TYPICAL or accuracy.lost_share > _RED_LOST or off_centre:
        return "danger"
    accurate = (
        accuracy.typical_error <= _GREEN_TYPICAL
        and accuracy.largest_error <= _GREEN_LARGEST
        and accuracy.lost_share <= _GREEN_LOST
    )
    bounded = _has_intercept(evidence) and not evidence.unit and _missing_known(evidence)
    return "good" if accurate and bounded else "warning"


def _details(accuracy: CorrelationAccuracy, evidence: Evidence) -> list[str]:
    details = [f"noise {accuracy.typical_noise:.2g}", f"normalisation {accuracy.typical_bias:.2g}"]
    if accuracy.lost_share:
        details.append(f"{100 * accuracy.lost_share:.3g} % of the pairs are lost in the noise")
    if evidence.unit:
        details.append("rows were divided by their length, which is simulated for a few laws only")
    if not _missing_known(evidence):
        details.append("more, if more than 5 % of a column's cells are missing")
    return details


def _has_intercept(evidence: Evidence) -> bool:
    return bool(evidence.columns) and evidence.columns[0] is None


def _missing_known(evidence: Evidence) -> bool:
    """Whether shares of missing cells are published; levels have no missing cells."""
    return bool(evidence.present) or not any(
        isinstance(column, ColumnFacts) for column in evidence.columns
    )


def _rows_per_person(facts: ReleaseManifest) -> int:
    """Rows that are normalised together."""
    if facts.privacy_unit != "person":
        return 1
    return max(1, round(facts.dataset.rows / facts.dataset.count))
