"""What numbers mean, in words for people who do not read formulas."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from gramercy.archive.release_bundle import ReleaseBundle
from gramercy.estimators.noise.spectrum import Spectrum
from gramercy.reports.correlations import INSIDE
from gramercy.schemas.column import INTERCEPT
from gramercy.schemas.facts import GuaranteeFacts
from gramercy.schemas.manifest import ReleaseManifest
from gramercy.schemas.noise import Family
from gramercy.schemas.normalisation import Clip, Unit, Whole


@dataclass(frozen=True)
class Note:
    """Something that a reader should know before using a number.

    Parameters
    ----------
    level
        ``warning`` or ``good``.
    head, text
        In a few words, and in full.
    """

    level: str
    head: str
    text: str


def best_guess(guarantee: GuaranteeFacts) -> float:
    """How often the best attacker tells two neighbouring tables apart that are equally likely.

    At most Phi(mu/2), and delta0 on top, and at most 1 / (1 + e^-epsilon) where there is a pure
    one; rounded up to a thousandth. Blind guessing has a half.
    """
    right = float(ndtr(guarantee.mu / 2)) + guarantee.delta0
    if guarantee.pure is not None:
        right = min(right, 1 / (1 + math.exp(-guarantee.pure)))
    return min(1.0, math.ceil(1000 * right) / 1000)


def the_attack(neighbours: str, unit: str) -> str:
    """What the attacker has to tell, who knows all else; `unit` is a row, a cell or a person."""
    if neighbours == "replace-one":
        return (
            f"suppose somebody knows every {unit} but one, and for that one has narrowed it down "
            "to two candidates, equally likely"
        )
    return (
        f"suppose somebody knows every other {unit}, and is to tell whether one more, which they "
        "know as well, is in the table or not, equally likely"
    )


def protection(guarantee: GuaranteeFacts) -> Note:
    """How strong a guarantee is."""
    mu, right = guarantee.mu, 100 * best_guess(guarantee)
    guess = f"the best attacker guesses right {right:.1f} times of 100, where blind guessing has 50"
    if mu <= 0.5:
        return Note("good", "Strong protection", f"In the worst case {guess}.")
    if mu <= 1:
        return Note("good", "Moderate protection", f"In the worst case {guess}.")
    head = "This level protects little" if mu <= 2 else "This level hardly protects"
    return Note("warning", head, f"In the worst case {guess}. A smaller epsilon protects more.")


def notes(bundle: ReleaseBundle, found: Spectrum) -> list[Note]:
    """What a reader should know, most important first."""
    facts = bundle.manifest
    p = len(facts.names)
    return [
        protection(facts.guarantee),
        _noise(bundle, found),
        *_lost_columns(bundle),
        *_few_rows(facts, p),
        *_noisy_divisor(facts),
    ]


def _noise(bundle: ReleaseBundle, found: Spectrum) -> Note:
    signal = float(np.linalg.norm(bundle.repaired))
    p = len(bundle.manifest.names)
    noise = float(np.linalg.norm(bundle.deviations))
    sizes = f"The noise has a Frobenius norm of about {noise:.2g}, the {bundle.repair} matrix of "
    sizes += f"{signal:.2g}; {found.beyond} of {p} eigenvalues stand out of the noise."
    if noise > signal or found.beyond == 0:
        return Note(
            "warning",
            "This matrix is mostly noise",
            f"{sizes} Read single entries with great care, and use the {bundle.repair} matrix.",
        )
    if 2 * noise > signal:
        return Note(
            "warning",
            "The noise is of the matrix's own size",
            f"{sizes} Large structure can be trusted, single small entries cannot.",
        )
    return Note("good", "The structure stands out of the noise", sizes)


def _lost_columns(bundle: ReleaseBundle) -> list[Note]:
    facts = bundle.manifest
    lost = [
        name
        for name, entry, sd in zip(
            facts.names, np.diag(bundle.unbiased), np.diag(bundle.deviations), strict=True
        )
        if entry <= INSIDE * sd
    ]
    if not lost:
        return []
    listed = ", ".join(map(shown_name, lost[:8]))
    more = f" and {len(lost) - 8} more" if lost[8:] else ""
    mend = (
        "The second moment, published instead, would show more."
        if facts.kind == "precision"
        else "A smaller public 'scale' gives a column of numbers more weight; a level that few "
        "rows have cannot be seen."
    )
    return [
        Note(
            "warning",
            "One column is lost in the noise"
            if len(lost) == 1
            else f"{len(lost)} columns are lost in the noise",
            f"What they hold lies inside the noise: {listed}{more}. {mend}",
        )
    ]


def _few_rows(facts: ReleaseManifest, p: int) -> list[Note]:
    rows, each = facts.rows.value, facts.count_key
    if rows >= 10 * p:
        return []
    singular = rows < p and each == "rows"  # a person may have many
    words = f"{rows:.0f} {each} for {p} columns: "
    words += f"fewer {each} than columns, so the matrix is singular; " if singular else ""
    words += "" if singular else "sampling alone makes many entries uncertain; "
    words += "penalised estimates are the only ones to use, and intervals here hold the noise alone"
    return [Note("warning", f"Few {each} for so many columns", f"{words}.")]


def _noisy_divisor(facts: ReleaseManifest) -> list[Note]:
    if facts.rows.status == "public":
        return []
    share = facts.rows.sd / facts.rows.value
    if share < 0.02:
        return []
    return [
        Note(
            "warning",
            f"The number of {facts.count_key} is uncertain",
            f"It is private, and known up to about {100 * share:.0f} %; every entry carries that "
            "common error. Correlations do not.",
        )
    ]


def largest_of_noise(entries: int, family: Family = "gaussian-isotropic") -> float:
    """Median of the largest deviation among so many entries of noise alone, off the diagonal.

    Exact for independent Gaussian and Laplace entries. For the others the Gaussian one, which is
    near: simulated at 5 and 30 columns (10 and 435 entries; Gaussian 1.83 and 3.16), of ``k-norm``
    1.78 and 3.16, of ``matrix-laplace`` 1.78 and 3.22, of ``wishart`` with p + 1 degrees of freedom
    1.77 and 3.29.
    """
    beyond = -math.expm1(-math.log(2) / max(entries, 1))  # of one entry, to have the median
    if family == "laplace":
        return -math.log(beyond) / math.sqrt(2)
    return float(-ndtri(beyond / 2))


def what_it_is(facts: ReleaseManifest) -> str:
    """What the matrix holds, said before anybody calls it a covariance."""
    if facts.kind == "precision":
        return (
            "This is a precision matrix: the graphical lasso solution for the second moment of the "
            f"normalised rows at the penalty {facts.mechanism['penalty']:g}, with noise on the "
            "solution itself. Its zeros are hidden by the noise."
        )
    how = facts.normalisation
    if isinstance(how, Unit):
        rows = (
            "each row was divided by its own length (a row with nothing left stays zero), so the "
            "diagonal adds up to one at most, but for noise"
        )
    elif isinstance(how, Whole):
        rows = "all numbers are whole"
    elif isinstance(how, Clip):
        rows = (
            f"rows longer than {how.radius:g} were shortened to it, and all divided by "
            f"{how.radius:g} {_undone(how.radius)}"
        )
    else:
        rows = (
            f"all rows were divided by {facts.longest:g}, the longest that the bounds allow "
            f"{_undone(facts.longest)}"
        )
    source = {
        "rows": "It follows without bias from the noisy rows, which are published beside it. ",
        "reports": "It is the average of the noisy reports, which are published beside it. ",
    }.get(facts.kind, "")
    ones = " A column of ones stands first and carries the means." if facts.intercept else ""
    of = "x xᵀ"
    if facts.unit == "person":
        of = "the sum of x xᵀ over a person's rows"
        rows += "; then all rows of a person were scaled together, to squares that sum to 1 at most"
    return source + (
        f"'Covariance' here means the second moment of the normalised rows: the average of {of}, "
        f"where the columns of x were centred and scaled by public constants, and {rows}."
        f"{ones}"
    )


def _undone(radius: float) -> str:
    return f"(multiply the matrix by {radius * radius:.4g} to return to scaled columns)"


def shown_name(name: str) -> str:
    """A column's name, for a table."""
    return "(all rows)" if name == INTERCEPT else name
