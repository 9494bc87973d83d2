"""From the columns of a regression to the columns of the released matrix.

A column of levels is a column of zeros and ones for each level but the first one declared, the
reference. Rows without a declared level count with the reference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gramercy.estimators.linear.formula import Terms, checked_name, is_level_of
from gramercy.schemas import families, wordings
from gramercy.schemas.facts import ColumnFacts, LevelsFacts

Facts = ColumnFacts | LevelsFacts | None


@dataclass(frozen=True)
class Design:
    """The columns of the matrix that a regression uses.

    Parameters
    ----------
    outcome
        Index of the outcome.
    regressors
        Indices of the k regressors, without the intercept.
    references
        The reference level of each predictor with levels.
    """

    outcome: int
    regressors: tuple[int, ...]
    references: Mapping[str, str] = field(default_factory=dict)

    @property
    def columns(self) -> list[int]:
        """The outcome and the regressors, shape (1 + k,)."""
        return [self.outcome, *self.regressors]


def predictor_names(columns: Sequence[Facts]) -> list[str]:
    """Names of the table's columns, in order: what ``.`` stands for."""
    return list(dict.fromkeys(facts.name for facts in columns if facts is not None))


def design(terms: Terms, names: Sequence[str], columns: Sequence[Facts]) -> Design:
    """The design of a regression.

    Parameters
    ----------
    terms
        Columns by name. A level such as ``kind=a`` may be named too.
    names, columns
        Names of the matrix columns, and the table column of each.

    Raises
    ------
    RequestError
        If a column is unknown, the outcome has levels, or the outcome is also a predictor.
    """
    table = predictor_names(columns)
    known = [*table, *(name for name in names[1:] if name not in table)]
    for name in (terms.outcome, *terms.predictors, *terms.excluded):
        checked_name(name, known)
    outcome = _indices(terms.outcome, names, columns)
    if len(outcome) != 1 or names[outcome[0]] != terms.outcome:
        raise families.ANALYSIS(
            "The outcome '{column}' has levels.",
            "Name one level, for the share of rows that have it: {levels}.",
            column=terms.outcome,
            levels=tuple(names[i] for i in outcome),
        )
    regressors, references = list[int](), dict[str, str]()
    for name in terms.predictors:
        indices = _indices(name, names, columns)
        if names[indices[0]] != name:  # a column of levels, not one of its levels
            references[name] = names[indices[0]].removeprefix(f"{name}=")
            indices = indices[1:]
        regressors += indices
    regressors = list(dict.fromkeys(regressors))
    named = any(is_level_of(terms.outcome, name) for name in references)
    if outcome[0] in regressors or named:
        raise wordings.outcome_predicts_itself(terms.outcome)
    return Design(outcome[0], tuple(regressors), references)


def _indices(name: str, names: Sequence[str], columns: Sequence[Facts]) -> list[int]:
    """The matrix columns of a table column, or the one of a level."""
    of_table = [i for i, facts in enumerate(columns) if facts is not None and facts.name == name]
    return of_table or [list(names).index(name)]
