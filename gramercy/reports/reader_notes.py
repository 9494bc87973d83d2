"""Notes at the top of a page, and explanations of numbers, for readers new to privacy.

The verdict on the correlations of a release is about noise and bias together. Where a release
publishes what clipping took away, it follows from bounds of the errors: see
`estimators.accuracy.clipped_accuracy`. Otherwise the bias is simulated for several laws of the
rows, and green is shown only where that is conservative: where rows were clipped, not divided by
their length, means are known, and the shares of missing cells are published.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from scipy.special import ndtr, ndtri

from gramercy.archive.bundles.bundle_kinds import ReleaseBundle
from gramercy.common.notation import message_in_symbols, significant
from gramercy.estimators.accuracy.clipped_accuracy import (
    LOST_SHARE,
    ClippedAccuracy,
    traceless_rows,
)
from gramercy.estimators.accuracy.correlation_accuracy import (
    CorrelationAccuracy,
    correlation_accuracy,
)
from gramercy.estimators.caveats import Kind, caveats, decisive
from gramercy.estimators.lost_moments import clipped_moments
from gramercy.estimators.noise.spectrum import Spectrum, spectrum
from gramercy.estimators.table_units import weight_lost
from gramercy.reports.correlations import NOISE_BAND
from gramercy.schemas import families, wordings
from gramercy.schemas.column import INTERCEPT
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts, GuaranteeFacts
from gramercy.schemas.manifest import ReleaseManifest
from gramercy.schemas.model import finite_or_none
from gramercy.schemas.noise import Family
from gramercy.schemas.normalisation import Clip
from gramercy.schemas.problem import Notice

_MOST_LISTED, _MOST_IN_HEAD = 8, 3  # columns in a text, and in a heading

Level = Literal["good", "warning", "danger"]
Colour = Literal["green", "orange", "red"]
_COLOURS: dict[Level, Colour] = {"good": "green", "warning": "orange", "danger": "red"}


@dataclass(frozen=True)
class Note:
    """A note for readers of a release."""

    level: Level  # ``good`` (green), ``warning`` (orange) or ``danger`` (red)
    # A heading, and the full text
    head: str
    text: str
    code: str = ""  # Code of a warning, such as ``GRM-920``
    numbers: tuple[tuple[str, str], ...] = ()  # Of a table under the text, by name
    facts: Mapping[str, Any] = field(default_factory=dict)  # its numbers for programs, by name
    plain: str = ""  # the text without symbols, if it has some

    @property
    def colour(self) -> Colour:
        """What a page shows the level as."""
        return _COLOURS[self.level]

    def described(self) -> dict[str, Any]:
        """A verdict as plain data, in the form of the verdict on a plan."""
        text = f"{self.head}. {self.plain or self.text}"
        return {
            "level": self.colour,
            "text": text,
            "code": self.code,
            "facts": dict(self.facts),
        }


def warning(head: str, notice: Notice, level: Level = "warning") -> Note:
    """A warning with this heading."""
    return Note(level, head, message_in_symbols(notice), notice.code, plain=notice.message)


def listed(names: Sequence[str], last: str = ", ") -> str:
    """The first of these columns, and how many more there are; `last` is before the last one."""
    more = len(names) - _MOST_LISTED
    if more > 0:
        return f"{', '.join(names[:_MOST_LISTED])} and {more} more"
    return last.join([", ".join(names[:-1])] * (len(names) > 1) + list(names[-1:]))


_GREEN_TYPICAL, _GREEN_LARGEST, _GREEN_LOST = 0.05, 0.08, 0.05
_RED_TYPICAL, _RED_LOST = 0.2, 0.5
_DOMINANT = 0.5  # share of the trace in one direction that suggests centres that are off
_LONG = 1.15  # standard deviation of the rows relative to the released one
_MOST_SIMULATED = 4
# The accuracy of the latest releases of this process, by the digest of what it depends on.
_simulated: dict[str, CorrelationAccuracy | None] = {}


def accuracy_notes(bundle: ReleaseBundle, spectrum: Spectrum) -> list[Note]:
    """How far the correlations of a release, or the entries of its matrix, can be used."""
    notes = _accuracy_notes(bundle, spectrum)
    return [_as_it_stands(bundle, each) for each in notes[:1]] + notes[1:]


def _as_it_stands(bundle: ReleaseBundle, verdict: Note) -> Note:
    """A verdict without green where the numbers are accurate, and not what they seem."""
    return _if_rows_stay(bundle.manifest, _if_cells_are_usual(bundle, verdict))


def _if_cells_are_usual(bundle: ReleaseBundle, note: Note) -> Note:
    """A note without green where a few cells, or those that are missing, decide the numbers."""
    if note.level != "good" or not bundle.manifest.publication.is_moment:
        return note
    found = decisive(bundle.evidence)
    if not found:
        return note
    first, kind = found[0].notice, found[0].kind
    columns = [str(each.column) for each in found if each.kind == kind]
    notice = families.catalogue()[first.code](
        "{verdict} {reason}",
        "{remedy}",
        reason=first.sentence,
        verdict=note.plain or note.text,
        remedy=first.hint,
    )
    names = listed(columns, " and ") if len(columns) <= _MOST_IN_HEAD else f"{len(columns)} columns"
    head = f"{_DECISIVE[kind]}: {names}"
    return replace(warning(head, notice), numbers=note.numbers, facts=note.facts)


_DECISIVE: dict[Kind, str] = {
    "far cells": "A value far from all others decides the numbers",
    "missing": "Many cells are missing or could not be read",
}


def _if_rows_stay(facts: ReleaseManifest, note: Note) -> Note:
    """A note without green where later readings may have found other rows in earlier steps.

    Nothing that is published says how many rows were added late, corrected or deleted, and each of
    them counts in part; see `PrefixSums.shares`.
    """
    step = facts.cumulative
    if note.level != "good" or step is None or step.step == 1:
        return note
    notice = families.READING(
        "{sentence} That is so if no rows of earlier steps were added, corrected or deleted after "
        "their step: they count in part.",
        "The section 'A step of a series' has the shares; the curator knows how many there are.",
        sentence=note.plain or note.text,
    )
    head = f"{note.head}, if rows did not change"
    return replace(warning(head, notice), numbers=note.numbers, facts=note.facts)


def _accuracy_notes(bundle: ReleaseBundle, spectrum: Spectrum) -> list[Note]:
    facts = bundle.manifest
    if not facts.names:
        return []
    if facts.publication.is_moment:
        bounded = ClippedAccuracy.of(bundle.evidence)
        if bounded is not None:
            return [bounded_note(bounded, bundle.evidence), *limits_notes(bundle.evidence)]
    noise, signal = (float(np.linalg.norm(each)) for each in (bundle.deviations, bundle.repaired))
    sizes = (
        ("size of the noise (Frobenius norm)", f"about {noise:.2g}"),
        (f"size of the {bundle.repair} matrix", f"{signal:.2g}"),
        ("eigenvalues above the noise", f"{spectrum.above_noise} of {len(facts.names)}"),
    )
    lost = facts.intercept and weight_lost(bundle.unbiased, bundle.deviations)
    if noise > signal or spectrum.above_noise == 0 or lost:
        notice = families.NOISE(
            "Most of its numbers cannot be distinguished from noise.",
            "Read single entries with great care, and use the {repair} matrix.",
            repair=bundle.repair,
        )
        return [replace(warning("This matrix is mostly noise", notice, "danger"), numbers=sizes)]
    accuracy = None
    if facts.publication.is_moment:
        evidence = bundle.evidence
        accuracy = _accuracy(bundle, evidence)
    if accuracy is not None:
        limits = [*long_tails_notes(accuracy, evidence), *limits_notes(evidence)]
        verdict = correlation_note(accuracy, evidence)
        return [replace(verdict, numbers=verdict.numbers + sizes), *limits]
    if 2 * noise > signal:
        notice = families.NOISE("Large structure is reliable; single small entries are not.")
        return [
            replace(warning("The noise is about as large as the matrix", notice), numbers=sizes)
        ]
    text = f"The noise is {100 * noise / signal:.2g} % as large as the matrix."
    return [Note("good", "The structure is well above the noise", text, numbers=sizes)]


def spectrum_of(bundle: ReleaseBundle) -> Spectrum:
    """Eigenvalues in the metric in which the matrix was drawn, where noise is spherical."""
    facts = bundle.manifest
    return spectrum(bundle.drawn, bundle.in_metric(bundle.repaired), facts.noise, facts.rows.value)


def verdict_note(bundle: ReleaseBundle) -> Note | None:
    """The verdict on a release, the first note on its accuracy; None without a matrix."""
    facts = bundle.manifest
    if not facts.publication.has_matrix:
        return None
    bounded = ClippedAccuracy.of(bundle.evidence) if facts.publication.is_moment else None
    if bounded is not None:
        return _as_it_stands(bundle, bounded_note(bounded, bundle.evidence))
    eigenvalues = spectrum_of(bundle)
    return next(iter(accuracy_notes(bundle, eigenvalues)), None)


def bounded_note(accuracy: ClippedAccuracy, evidence: Evidence) -> Note:
    """The verdict on correlations whose errors are bounded, in one sentence and its numbers."""
    shown = accuracy.accurate
    apart = [name for name, is_one in zip(shown.names, accuracy.apart, strict=True) if is_one]
    facts = {
        "typical": finite_or_none(shown.typical),
        "largest": finite_or_none(shown.largest),
        "noise": finite_or_none(shown.noise),
        "clipping": finite_or_none(shown.clipping),
        "missing": finite_or_none(shown.together),
        "lost_share": shown.lost_share,
        "excepted": list(accuracy.excepted),
        "apart": apart,
    }
    return replace(_bounded_note(accuracy, evidence), facts=facts)


def _bounded_note(accuracy: ClippedAccuracy, evidence: Evidence) -> Note:
    level, without, shown = accuracy.level, accuracy.excepted, accuracy.accurate
    of_rest = " of the other columns" if without else ""
    sentence = (
        f"Correlations{of_rest} are typically within {shown.typical:.2g} of the table's own, and "
        f"none is off by more than about {shown.largest:.2g}."
    )
    numbers = tuple(_numbers(shown, evidence))
    if level == "good":
        names = listed(without, " and ")
        head = "The correlations are accurate" + (
            f", except for those of {names}" if without else ""
        )
        return Note(level, head, sentence, numbers=numbers)
    if math.isinf(shown.typical):
        sentence = "The noise hides the correlations of all pairs of columns."
    elif level == "warning":
        sentence = (
            f"Correlations are typically within {shown.typical:.2g} of the table's own, but some "
            f"may be off by {shown.largest:.2g}: rely on those that are clearly larger."
        )
    else:
        sentence = f"Correlations are typically off by {shown.typical:.2g}: do not rely on them."
    notice = families.NOISE("{sentence}", "{remedy}", sentence=sentence, remedy=_remedy(shown))
    return replace(warning(_HEADS[level], notice, level), numbers=numbers)


_HEADS = {
    "warning": "The correlations are uncertain",
    "danger": "The correlations are unreliable",
}


def _numbers(accuracy: ClippedAccuracy, evidence: Evidence) -> Iterator[tuple[str, str]]:
    """The numbers of a verdict, for the table under it."""
    if math.isfinite(accuracy.typical):
        yield "typical error of a correlation", significant(accuracy.typical, 2)
        yield "by noise", significant(accuracy.noise, 2)
        yield "by clipping of long rows", significant(accuracy.clipping, 2)
        if accuracy.missing.any():
            yield "by missing cells", significant(accuracy.together, 2)
        yield "largest error, as far as this release can tell", significant(accuracy.largest, 2)
    yield "pairs of columns hidden by the noise", f"{100 * accuracy.lost_share:.3g} %"
    apart = [name for name, is_one in zip(accuracy.names, accuracy.apart, strict=True) if is_one]
    if apart:
        yield "columns that this is not about", listed(apart)
    rows = traceless_rows(evidence)
    if rows is not None:
        of_all = f"{min(rows, evidence.rows):,.0f} of {evidence.rows:,.0f}"
        yield "rows that may be unlike all others and leave no trace", f"up to {of_all}"


def _remedy(accuracy: ClippedAccuracy) -> str:
    """What would help most against the largest part of the errors."""
    causes = {
        "noise": accuracy.noise,
        "clipping": accuracy.clipping,
        "together": accuracy.together,
    }
    if accuracy.lost_share > LOST_SHARE or math.isinf(accuracy.typical):
        return "More rows, a larger epsilon or fewer columns would show more of them."
    names = listed(accuracy.least_accurate)
    worst = f" The least accurate are those of {names}." if names else ""
    return {
        "noise": f"More rows, a larger epsilon or fewer columns make them more accurate.{worst}",
        "clipping": f"Long rows are clipped, and the noise hides a part of what they lose.{worst}",
        "together": f"They depend on which cells are missing, and why.{worst}",
    }[max(causes, key=causes.__getitem__)]


_LIMITS: dict[Kind, str] = {
    "sign": "Columns that nearly always have the same value",
    "constant": "Columns that are constant as far as the noise can tell",
    "clamped": "Columns with clamped cells",
    "tail": "Columns with long tails",
    "far cells": "Cells that may be codes for missing values",
    "missing": "Columns with many missing cells",
    "missing together": "Columns with missing cells",
    "not at random": "Columns whose cells are not missing at random",
    "count": "The number of rows in the contract seems to be wrong",
    "tables differ": "The pooled tables are unlike each other",
}


def limits_notes(evidence: Evidence) -> list[Note]:
    """A note on the columns of every kind of caveat; the section on columns has all of them."""
    found = caveats(evidence)
    notes = []
    for kind, head in _LIMITS.items():
        same = [each.notice for each in found if each.kind == kind]
        names = [each.column for each in found if each.kind == kind and each.column is not None]
        if len(same) == 1:
            notes.append(warning(head, same[0]))
        elif same:
            text = f"{listed(names)}. The section 'Columns' says what is known of each."
            notes.append(Note("warning", head, text, same[0].code))
    return notes


def long_tails_notes(accuracy: CorrelationAccuracy, evidence: Evidence) -> list[Note]:
    """A note that names the columns whose standard deviations are too small, if there are some."""
    columns = evidence.columns[1:] if _has_intercept(evidence) else evidence.columns
    names = [
        each.name
        for each, spread in zip(columns, accuracy.spread, strict=True)
        if isinstance(each, ColumnFacts) and spread > _LONG
    ]
    if not names:
        return []
    notice = families.TAILS(
        "Columns with long tails: {columns}.",
        "Long rows count less, so the standard deviations are probably too small, by a tenth or "
        "more. Where cells are positive and of many sizes, as incomes are, their logarithm has "
        "shorter tails.",
        columns=listed(names),
    )
    return [warning("Columns with long tails", notice)]


def _accuracy(bundle: ReleaseBundle, evidence: Evidence) -> CorrelationAccuracy | None:
    """The accuracy of the correlations, simulated once for a report and a page of the catalogue."""
    digest = hashlib.sha256(f"{bundle.sha256} {bundle.manifest.model_dump_json()}".encode())
    for matrix in (evidence.raw, evidence.repaired):
        digest.update(np.ascontiguousarray(matrix).tobytes())
    key = digest.hexdigest()
    if key not in _simulated:
        facts, per_person = bundle.manifest, 1  # rows that are normalised together
        if facts.privacy_unit == "person":
            per_person = max(1, round(facts.dataset.rows / facts.dataset.count))
        found = correlation_accuracy(evidence, per_person)
        if len(_simulated) >= _MOST_SIMULATED:
            _simulated.clear()
        _simulated[key] = found
        return found
    return _simulated[key]


def correlation_note(accuracy: CorrelationAccuracy, evidence: Evidence) -> Note:
    """The verdict on correlations whose bias is simulated, in one sentence and its numbers."""
    facts = {
        "typical": finite_or_none(accuracy.typical_error),
        "largest": finite_or_none(accuracy.largest_error),
        "noise": finite_or_none(accuracy.typical_noise),
        "normalisation": finite_or_none(accuracy.typical_bias),
        "lost_share": accuracy.lost_share,
    }
    if not _has_intercept(evidence):
        facts["if_centres_are_off"] = finite_or_none(_with_centres(accuracy))
    numbers = tuple(_simulated_numbers(accuracy, evidence))
    return replace(_correlation_note(accuracy, evidence), facts=facts, numbers=numbers)


def _with_centres(accuracy: CorrelationAccuracy) -> float:
    """The typical error of a correlation about public centres that are not the means."""
    return max(accuracy.error_if_centres_are_off, accuracy.typical_error)


def _simulated_numbers(
    accuracy: CorrelationAccuracy, evidence: Evidence
) -> Iterator[tuple[str, str]]:
    """The numbers of a verdict, for the table under it."""
    if math.isinf(accuracy.typical_error):
        return
    yield "typical error of a correlation", significant(accuracy.typical_error, 2)
    yield "by noise", significant(accuracy.typical_noise, 2)
    by = "by normalisation, in simulations of a few laws" if evidence.unit else "by normalisation"
    yield by, significant(accuracy.typical_bias, 2)
    if not _has_intercept(evidence):
        yield "by centres, if they are off", significant(accuracy.error_if_centres_are_off, 2)
    yield "largest error", significant(accuracy.largest_error, 2)
    yield "pairs of columns hidden by the noise", f"{100 * accuracy.lost_share:.3g} %"
    if not _missing_known(evidence):
        yield "not in these numbers", "missing cells, if a column has more than 5 %"


def _correlation_note(accuracy: CorrelationAccuracy, evidence: Evidence) -> Note:
    level = correlation_level(accuracy, evidence)
    typical, largest = accuracy.typical_error, accuracy.largest_error
    if level == "good":
        text = f"A correlation is typically off by {typical:.2g}, at most by about {largest:.2g}."
        return Note(level, "The correlations are accurate", text)
    head = _HEADS[level]
    if not _has_intercept(evidence):
        notice = families.READING(
            "Without an intercept, these are correlations about the public centres: if those are "
            "not the means, a correlation is typically off by {error:.2g}.",
            "Write 'intercept: true' in the contract of the next data set.",
            error=_with_centres(accuracy),
        )
        return warning(head, notice, level)
    sentence = "The noise hides the correlations of all pairs of columns."
    if math.isfinite(typical):
        sentence = f"A correlation is typically off by {typical:.2g}, some by up to {largest:.2g}."
    remedy = "Rely on correlations that are clearly larger than that."
    if level == "danger":
        remedy = "Do not rely on single correlations."
    notice = families.NOISE("{sentence}", "{remedy}", sentence=sentence, remedy=remedy)
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


def _has_intercept(evidence: Evidence) -> bool:
    return bool(evidence.columns) and evidence.columns[0] is None


def _missing_known(evidence: Evidence) -> bool:
    """Whether shares of missing cells are published; levels have no missing cells."""
    return bool(evidence.present) or not any(
        isinstance(column, ColumnFacts) for column in evidence.columns
    )


def best_attacker_accuracy(guarantee: GuaranteeFacts) -> float:
    """Upper bound of the accuracy of guessing which of two neighbouring tables was used.

    Phi(mu/2) + delta0 when both are equally likely, and 1 / (1 + e^-epsilon) for pure epsilon;
    rounded up to a thousandth. Blind guessing has 0.5.
    """
    accuracy = float(ndtr(guarantee.mu / 2)) + guarantee.delta0
    if guarantee.pure_epsilon is not None:
        accuracy = min(accuracy, 1 / (1 + math.exp(-guarantee.pure_epsilon)))
    return min(1.0, math.ceil(1000 * accuracy) / 1000)


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


def meaning_notes(bundle: ReleaseBundle) -> list[Note]:
    """What a reader must know about the meaning of the numbers."""
    evidence, facts = bundle.evidence, bundle.manifest
    if not evidence.unit:
        return []
    notice = wordings.unit_rows(f"{facts.dataset.id}/{facts.release}")
    return [warning("Associations of directions, not correlations of the table", notice)]


def reader_notes(bundle: ReleaseBundle, spectrum: Spectrum) -> list[Note]:
    """What a reader should know before using a release, most important first."""
    facts = bundle.manifest
    p = len(facts.names)
    accuracy = accuracy_notes(bundle, spectrum)
    return [
        *accuracy[:1],
        protection_note(facts.guarantee),
        *meaning_notes(bundle),
        *accuracy[1:],
        *_lost_columns(bundle),
        *_few_rows(facts, p),
        *_noisy_divisor(facts),
    ]


def _lost_columns(bundle: ReleaseBundle) -> list[Note]:
    facts, clipped = bundle.manifest, clipped_moments(bundle.evidence)
    if clipped is not None:
        special = {each.column for each in caveats(bundle.evidence)}
        known = dict(zip(facts.names[1:], clipped.known.tolist(), strict=True))
        lost = [name for name in facts.names[1:] if not known[name] and name not in special]
    else:
        diagonals = zip(
            facts.names, np.diag(bundle.unbiased), np.diag(bundle.deviations), strict=True
        )
        lost = [name for name, entry, sd in diagonals if entry <= NOISE_BAND * sd]
    if not lost:
        return []
    what, remedy = "precision", "Publish the second moment instead: it shows more."
    if facts.publication.is_moment:
        what, remedy = "variation", "A level with few rows cannot be seen."
        if clipped is None:
            remedy = "A smaller public 'scale' gives a numeric column more weight; a level with "
            remedy += "few rows cannot be seen."
    names = listed([*map(display_name, lost)])
    notice = families.NOISE(
        "Columns whose own {own} is within the noise: {columns}.",
        "{remedy}",
        own=what,
        columns=names,
        remedy=remedy,
    )
    count = "One column is" if len(lost) == 1 else f"{len(lost)} columns are"
    return [warning(f"{count} within the noise", notice)]


def _few_rows(facts: ReleaseManifest, p: int) -> list[Note]:
    count, unit = facts.rows.value, facts.count_key
    if count >= 10 * p:
        return []
    found = "sampling alone makes many entries uncertain"
    if count < p and unit == "rows":  # persons may have several rows each
        found = "the matrix is singular"
    notice = families.NOISE(
        "{count:.0f} {unit} for {columns} columns: {found}.",
        "Use penalised estimates only; the intervals here cover the noise alone.",
        count=count,
        unit=unit,
        columns=p,
        found=found,
    )
    return [warning(f"Few {unit} for so many columns", notice)]


def _noisy_divisor(facts: ReleaseManifest) -> list[Note]:
    if facts.rows.status == "public":
        return []
    share = facts.rows.sd / facts.rows.value
    if share < 0.02:
        return []
    notice = families.NOISE(
        "This number is private, and known to about {percent:.0f} %. All entries share that error.",
        "Correlations are not affected.",
        percent=100 * share,
    )
    return [warning(f"The number of {facts.count_key} is uncertain", notice)]


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
    if not facts.publication.is_moment:
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
    elif isinstance(normalisation, Clip) and facts.is_whitened:
        rows = (
            "long rows were shortened in the metric of a pilot matrix, and all rows were divided "
            f"by {normalisation.length:g} {_rescaling_hint(normalisation.length)}"
        )
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
