"""What numbers mean, in words for people who do not read formulas."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from archive.release import ReleaseBundle
from estimators.spectrum import Spectrum
from schemas.contract import INTERCEPT
from schemas.manifest import ReleaseManifest
from schemas.request import Unit


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


def best_guess(mu: float) -> float:
    """How often the best attacker is right: Phi(mu/2), where blind guessing has a half.

    They know all rows but one, and for that one two candidates, equally likely.
    """
    return float(ndtr(mu / 2))


def protection(mu: float) -> Note:
    """How strong a guarantee is."""
    right = 100 * best_guess(mu)
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
        protection(facts.guarantee.mu),
        _noise(bundle, found),
        *_lost_columns(bundle),
        *_few_rows(facts.rows.value, p),
        *_noisy_divisor(facts),
    ]


def noise_norm(bundle: ReleaseBundle) -> float:
    """Expected Frobenius norm of the noise (root mean square)."""
    law, p = bundle.manifest.noise, len(bundle.manifest.names)
    return math.sqrt(p * law.sd_diagonal**2 + p * (p - 1) * law.sd_off_diagonal**2)


def _noise(bundle: ReleaseBundle, found: Spectrum) -> Note:
    signal = float(np.linalg.norm(bundle.denoised))
    noise, p = noise_norm(bundle), len(bundle.manifest.names)
    sizes = f"The noise has a Frobenius norm of about {noise:.2g}, the denoised matrix of "
    sizes += f"{signal:.2g}; {found.beyond} of {p} eigenvalues stand out of the noise."
    if noise > signal or found.beyond == 0:
        return Note(
            "warning",
            "This matrix is mostly noise",
            f"{sizes} Read single entries with great care, and use the denoised matrix.",
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
        for name, entry in zip(facts.names, np.diag(bundle.raw), strict=True)
        if entry <= 2 * facts.noise.sd_diagonal
    ]
    if not lost:
        return []
    listed = ", ".join(lost[:8]) + (f" and {len(lost) - 8} more" if lost[8:] else "")
    return [
        Note(
            "warning",
            f"{len(lost)} columns are lost in the noise",
            f"Their own variation is inside the noise: {listed}. A smaller public 'scale' in the "
            "contract would give them more weight.",
        )
    ]


def _few_rows(rows: float, p: int) -> list[Note]:
    if rows >= 10 * p:
        return []
    words = f"{rows:.0f} rows for {p} columns: "
    words += "fewer rows than columns, so the matrix is singular" if rows < p else "sampling alone"
    words += "; " if rows < p else " makes many entries uncertain; "
    words += "penalised estimates are the only ones to use, and intervals here hold the noise alone"
    return [Note("warning", "Few rows for so many columns", f"{words}.")]


def _noisy_divisor(facts: ReleaseManifest) -> list[Note]:
    if facts.rows.status == "public":
        return []
    share = facts.rows.sd / facts.rows.value
    if share < 0.02:
        return []
    return [
        Note(
            "warning",
            "The number of rows is uncertain",
            f"It is private, and known up to about {100 * share:.0f} %; every entry carries that "
            "common error. Correlations do not.",
        )
    ]


def what_it_is(facts: ReleaseManifest) -> str:
    """What the matrix holds, said before anybody calls it a covariance."""
    if isinstance(facts.normalisation, Unit):
        rows = "each row was divided by its own length, so the diagonal adds up to one"
    else:
        radius = facts.normalisation.radius
        rows = (
            f"rows longer than {radius:g} were shortened to it, and all divided by {radius:g} "
            f"(multiply the matrix by {radius * radius:.4g} to return to scaled columns)"
        )
    ones = " A column of ones stands first and carries the means." if facts.intercept else ""
    return (
        "'Covariance' here means the second moment of the normalised rows: the average of x xᵀ, "
        f"where the columns of x were centred and scaled by public constants, and {rows}."
        f"{ones}"
    )


def shown_name(name: str) -> str:
    """A column's name, for a table."""
    return "(all rows)" if name == INTERCEPT else name
