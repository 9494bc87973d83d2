"""The columns that a formula names. It is parsed, and never evaluated on data.

Formulas are those of R and of statsmodels: ``y ~ a + b``, ``y ~ .`` for all other columns,
``y ~ . - c``, and backticks around names that are not words. ``C(x)`` is the same as ``x``: a
column of levels is always coded by its levels. The intercept is always part of the regression.

Products and functions of columns, ``a:b`` or ``log(a)``, are refused: a second moment does not
contain them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gramercy.common.similar_names import most_similar_first
from gramercy.schemas import families, wordings
from gramercy.schemas.errors import InvalidValue
from gramercy.schemas.facts import ColumnFacts, LevelsFacts

if TYPE_CHECKING:
    from formulaic.parser.types import Term, Token


def _formula_not_parsed(formula: str, reason: str) -> InvalidValue:
    return families.FORMULA(
        "The formula '{formula}' cannot be read: {reason}.",
        "Write 'y ~ a + b', or 'y ~ .' for all other columns; put backticks around names that are "
        "not words.",
        formula=formula,
        reason=reason,
    )


_CATEGORICAL = re.compile(r"C\(\s*(?:`([^`]*)`|([^\s(),`]+))\s*\)")
_KINDS = {"lookup": "name", "python": "python", "literal": "value"}  # of factors, as of tokens
_STYLING = re.compile(r"\x1b\[[0-9;]*m|[⧛⧚]")  # how formulaic marks the place of an error


@dataclass(frozen=True)
class Terms:
    """The columns of a regression by name."""

    outcome: str  # left-hand side
    # right-hand side, in order, without repetitions; empty for an intercept alone
    predictors: tuple[str, ...]
    excluded: tuple[str, ...] = ()  # columns after a minus sign


def check_formula(formula: str) -> None:
    """Check the syntax of a formula, without knowing the columns.

    Raises InvalidValue if it cannot be parsed, or has terms that are not columns.
    """
    _terms(formula, ())


def parse_formula(formula: str, columns: Sequence[str]) -> Terms:
    """The columns in a formula.

    `formula`: such as ``y ~ a + b``. `columns`: names that ``.`` stands for, except the outcome.
    Raises InvalidValue if it cannot be parsed, or has terms that are not columns.
    """
    others = all_others(_terms(formula, columns).outcome, columns)
    return _terms(formula, others.predictors)


def all_others(outcome: str, columns: Sequence[str]) -> Terms:
    """All columns but the outcome, and but the column of which it is a level."""
    others = [name for name in columns if name != outcome and not is_level_of(outcome, name)]
    return Terms(outcome, tuple(others))


def is_level_of(name: str, column: str) -> bool:
    """Whether a name such as ``kind=a`` is that of a level of the column."""
    return name.startswith(f"{column}=")


def _terms(formula: str, columns: Sequence[str]) -> Terms:
    sides, tokens = _parsed(formula, columns)
    left, right = getattr(sides, "lhs", ()), getattr(sides, "rhs", ())
    if not hasattr(sides, "lhs") or isinstance(right, tuple) or len(left) != 1:
        raise _formula_not_parsed(formula, "it must have the form 'outcome ~ predictors'")
    (outcome,) = (_column(formula, term) for term in left)
    predictors = [_column(formula, term) for term in right]
    if outcome is None:
        raise _formula_not_parsed(formula, "its outcome must be a column")
    if None not in predictors:
        raise families.FORMULA(
            "The formula '{formula}' removes the intercept.",
            "Leave out '- 1' and '0 +': moments are about the means.",
            formula=formula,
        )
    names = tuple(dict.fromkeys(name for name in predictors if name is not None))
    if outcome in names:
        raise wordings.outcome_predicts_itself(outcome)
    mentioned = [_name(token.token, token.kind.value) for token in tokens]
    excluded = [name for name in mentioned if name is not None and name not in (outcome, *names)]
    return Terms(outcome, names, tuple(dict.fromkeys(excluded)))


def _parsed(formula: str, columns: Sequence[str]) -> tuple[Any, list[Token]]:
    from formulaic.errors import FormulaicError  # takes half a second to import
    from formulaic.parser import DefaultFormulaParser

    available = {"__formulaic_variables_available__": list(columns)}
    parser = DefaultFormulaParser()
    try:
        return parser.get_terms(formula, context=available), list(parser.get_tokens(formula))
    except (FormulaicError, SyntaxError) as error:
        reason = _STYLING.sub("", str(error)).partition("\n")[0].rstrip(".")
    raise _formula_not_parsed(formula, reason)


def _column(formula: str, term: Term) -> str | None:
    """The column that a term names; None for the intercept."""
    factors = [(str(factor.expr), str(factor.eval_method.value)) for factor in term.factors]
    if factors == [("1", "literal")]:
        return None
    name = _name(factors[0][0], _KINDS[factors[0][1]]) if len(factors) == 1 else None
    if name is None:
        raise families.FORMULA(
            "'{term}' in the formula '{formula}' is not a column: a second moment contains no "
            "products and no other functions of columns.",
            "Use columns as they are. The curator can publish such a term as a column of its own.",
            formula=formula,
            term=":".join(text for text, _ in factors),
        )
    return name


def _name(text: str, kind: str) -> str | None:
    """The column in ``x`` or ``C(x)``; None if a token names no column."""
    if kind == "name":
        return text
    categorical = _CATEGORICAL.fullmatch(text) if kind == "python" else None
    return categorical[1] or categorical[2] if categorical else None


# From the columns of a regression to the columns of the released matrix.
#
# A column of levels is a column of zeros and ones for each level but the first one declared, the
# reference. Rows without a declared level count with the reference.

Facts = ColumnFacts | LevelsFacts | None


@dataclass(frozen=True)
class Design:
    """The columns of the matrix that a regression uses."""

    outcome: int  # index of the outcome
    regressors: tuple[int, ...]  # indices of the k regressors, without the intercept
    # the reference level of each predictor with levels
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

    `terms`: columns by name. A level such as ``kind=a`` may be named too. `names`, `columns`: names
    of the matrix columns, and the table column of each. Raises RequestError if a column is unknown,
    the outcome has levels, or the outcome is also a predictor.
    """
    table = predictor_names(columns)
    known = [*table, *(name for name in names[1:] if name not in table)]
    for name in (terms.outcome, *terms.predictors, *terms.excluded):
        if name not in known:
            raise families.ANALYSIS(
                "The release has no column '{column}'.",
                "Its columns, most similar first: {known}.",
                column=name,
                known=most_similar_first(name, known),
            )
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
