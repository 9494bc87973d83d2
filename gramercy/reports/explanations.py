"""Explanations of numbers, for readers without a background in privacy."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr, ndtri

from gramercy.archive.bundles.release_bundle import ReleaseBundle
from gramercy.estimators.noise.spectrum import Spectrum
from gramercy.reports.accuracy_note import accuracy_notes
from gramercy.reports.correlations import NOISE_BAND
from gramercy.reports.notes import Note, listed, warning
from gramercy.schemas import families
from gramercy.schemas.column import INTERCEPT
from gramercy.schemas.facts import GuaranteeFacts
from gramercy.schemas.manifest import ReleaseManifest
from gramercy.schemas.noise import Family
from gramercy.schemas.normalisation import Clip


def best_attacker_accuracy(guarantee: GuaranteeFacts) -> float:
    """Upper bound of the accuracy of guessing which of two neighbouring tables was used.

    Phi(mu/2) + delta0 when both are equally likely, and 1 / (1 + e^-epsilon) for pure epsilon;
    rounded up to a thousandth. Blind guessing has 0.5.
    """
    accuracy = float(ndtr(guarantee.mu / 2)) + guarantee.delta0
    if guarantee.pure_epsilon is not None:
        accuracy = min(accuracy, 1 / (1 + math.exp(-guarantee.pure_epsilon)))
    return min(1.0, math.ceil(1000 * accuracy) / 1000)


def attack_scenario(neighbours: str, unit: str) -> str:
    """The attack that a guarantee bounds, in words; `unit` is a row, a cell or a person."""
    if neighbours == "replace-one":
        return (
            f"suppose an attacker knows every {unit} but one, and knows two equally likely "
            "candidates for that one"
        )
    return (
        f"suppose an attacker knows every other {unit}, and must decide whether one more {unit}, "
        "which the attacker also knows, is in the table or not, both equally likely"
    )


def protection_note(guarantee: GuaranteeFacts) -> Note:
    """How strong a guarantee is."""
    weak = families.PROTECTION(
        "In the worst case the best attacker guesses right {correct:.1f} % of the "
        "time; blind guessing is right 50 % of the time.",
        "A smaller epsilon protects more.",
        correct=100 * best_attacker_accuracy(guarantee),
    )
    if guarantee.mu <= 1:
        head = "Strong protection" if guarantee.mu <= 0.5 else "Moderate protection"
        return Note("good", head, weak.sentence)
    return warning("Weak protection" if guarantee.mu <= 2 else "Very weak protection", weak)


def reader_notes(bundle: ReleaseBundle, spectrum: Spectrum) -> list[Note]:
    """What a reader should know before using a release, most important first."""
    facts = bundle.manifest
    p = len(facts.names)
    return [
        protection_note(facts.guarantee),
        *accuracy_notes(bundle, spectrum),
        *_lost_columns(bundle),
        *_few_rows(facts, p),
        *_noisy_divisor(facts),
    ]


def _lost_columns(bundle: ReleaseBundle) -> list[Note]:
    facts = bundle.manifest
    lost = [
        name
        for name, entry, sd in zip(
            facts.names, np.diag(bundle.unbiased), np.diag(bundle.deviations), strict=True
        )
        if entry <= NOISE_BAND * sd
    ]
    if not lost:
        return []
    names, precision = listed([*map(display_name, lost)]), facts.kind == "precision"
    notice = (
        families.NOISE(
            "Columns whose own precision is within the noise: {columns}.",
            "Publish the second moment instead: it shows more.",
            columns=names,
        )
        if precision
        else families.NOISE(
            "Columns whose own variation is within the noise: {columns}.",
            "A smaller public 'scale' gives a numeric column more weight; a level with "
            "few rows cannot be seen.",
            columns=names,
        )
    )
    count = "One column is" if len(lost) == 1 else f"{len(lost)} columns are"
    return [warning(f"{count} within the noise", notice)]


def _few_rows(facts: ReleaseManifest, p: int) -> list[Note]:
    count, unit = facts.rows.value, facts.count_key
    if count >= 10 * p:
        return []
    if count < p and unit == "rows":  # persons may have several rows each
        notice = families.NOISE(
            "{count:.0f} rows for {columns} columns: the matrix is singular.",
            "Use penalised estimates only; the intervals here cover the noise alone.",
            count=count,
            columns=p,
        )
    else:
        notice = families.NOISE(
            "{count:.0f} {unit} for {columns} columns: sampling alone makes many "
            "entries uncertain.",
            "Use penalised estimates only; the intervals here cover the noise alone.",
            count=count,
            unit=unit,
            columns=p,
        )
    return [warning(f"Few {unit} for so many columns", notice)]


def _noisy_divisor(facts: ReleaseManifest) -> list[Note]:
    if facts.rows.status == "public":
        return []
    share = facts.rows.sd / facts.rows.value
    if share < 0.02:
        return []
    head = f"The number of {facts.count_key} is uncertain"
    return [
        warning(
            head,
            families.NOISE(
                "This number is private, and known to about {percent:.0f} %. All entries "
                "share that error.",
                "Correlations are not affected.",
                percent=100 * share,
            ),
        )
    ]


def median_largest_noise(entries: int, family: Family = "gaussian-isotropic") -> float:
    """Median of the largest absolute value among entries of pure noise, in standard deviations.

    Exact for independent Gaussian and Laplace entries; the other families use the Gaussian value.
    In simulations with 5 and 30 columns (10 and 435 entries off the diagonal; Gaussian 1.83 and
    3.16), ``k-norm`` had 1.78 and 3.16, ``matrix-laplace`` 1.78 and 3.22, ``wishart`` with p + 1
    degrees of freedom 1.77 and 3.29.
    """
    # Tail probability of one entry at the median of the maximum.
    tail = -math.expm1(-math.log(2) / max(entries, 1))
    if family == "laplace":
        return -math.log(tail) / math.sqrt(2)
    return float(-ndtri(tail / 2))


def matrix_description(facts: ReleaseManifest) -> str:
    """What the entries of the matrix are."""
    if facts.kind == "precision":
        return (
            "This is a precision matrix: the graphical lasso solution for the second moment of the "
            f"normalised rows at penalty {facts.mechanism['penalty']:g}, with noise added to the "
            "solution. The noise hides its zeros."
        )
    normalisation = facts.normalisation
    if normalisation.unit_rows:
        rows = (
            "each row was divided by its length (a row of zeros stays zero), so without noise the "
            "trace is at most 1"
        )
    elif normalisation.keeps_rows:
        rows = "all numbers are whole"
    elif isinstance(normalisation, Clip):
        rows = (
            f"rows longer than {normalisation.length:g} were shortened to that length, and all "
            f"rows were divided by it {_rescaling_hint(normalisation.length)}"
        )
    else:
        rows = (
            f"all rows were divided by {facts.largest_norm:g}, the greatest length that the bounds "
            f"allow {_rescaling_hint(facts.largest_norm)}"
        )
    source = {
        "rows": "It is an unbiased estimate from the noisy rows, which are also published. ",
        "reports": "It is the average of the noisy reports, which are also published. ",
    }.get(facts.kind, "")
    ones = " The first column is an intercept: it carries the means." if facts.intercept else ""
    summand = "x xᵀ"
    if facts.privacy_unit == "person":
        summand = "the sum of x xᵀ over a person's rows"
        rows += "; then all rows of a person were scaled together, to a sum of squares of at most 1"
    return source + (
        f"'Covariance' here means the second moment of the normalised rows: the average of "
        f"{summand}, where the columns of x were centred and scaled by public constants, and "
        f"{rows}."
        f"{ones}"
    )


def _rescaling_hint(radius: float) -> str:
    return f"(multiply the matrix by {radius * radius:.4g} to undo this)"


def display_name(name: str) -> str:
    """A column's name in a table or a figure."""
    return "(all rows)" if name == INTERCEPT else name
