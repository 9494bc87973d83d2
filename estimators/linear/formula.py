"""The terms that a formula names. It is parsed, and never evaluated on data.

Formulas are those of R and of statsmodels: ``y ~ a + b``, ``y ~ .`` for all other columns,
``y ~ . - c``, and backticks or ``Q("a b")`` around names that are not words. ``C(x)`` is the same
as ``x``: a column of levels is always coded by its levels. ``C(x, Treatment("B"))`` compares them
with B. The intercept is always part of the regression.

Functions and products of columns, such as ``log1p(a)``, ``a:b``, ``a*b`` and ``I(a > 1000)``, are
columns that a contract can derive: `linear.design` finds those that a release has.
"""

from __future__ import annotations

import ast
import contextlib
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gramercy.schemas import families, wordings
from gramercy.schemas.derived import TRANSFORMS, transform_of
from gramercy.schemas.errors import InvalidValue

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


_STYLING = re.compile(r"\x1b\[[0-9;]*m|[⧛⧚]")  # how formulaic marks the place of an error
_QUOTED = re.compile(r"`([^`]*)`")
_NAMED_BY_Q = re.compile(r"""\bQ\(\s*("[^"]*"|'[^']*')\s*\)""")
_CODED = re.compile(
    r"""(?P<other>`[^`]*`)|\bC\(\s*(?P<name>`[^`]*`|\w+)\s*"""
    r"""(?:,\s*(?P<coding>[^()]*(?:\((?:"[^"]*"|'[^']*'|[^()"'])*\))?)\s*)?\)"""
)
_REFERENCE = re.compile(
    r"""(?:contr\.)?[Tt]reatment(?:\(\s*(?:(?:reference|base)\s*=\s*)?"""
    r"""(?P<level>"[^"]*"|'[^']*'|[-+\w.]*)\s*\))?"""
)
_OTHER_NAMES = {"arcsinh": "asinh", "isnan": "is missing", "isna": "is missing"}
_FUNCTIONS = tuple(name for name, each in TRANSFORMS.items() if each.inputs == 1)
_SIGNS = {ast.Gt: ">", ast.GtE: ">=", ast.Lt: "<", ast.LtE: "<="}
_PARAMETERS = {"spline": ", knots: [30, 50, 65]", "polynomial": ", degree: 3"}  # as an example
_OF_ZERO = {ast.Eq: "is zero", ast.NotEq: "is not zero"}
_OPERATORS = {ast.Mult: "product", ast.Div: "ratio", ast.Sub: "difference"}
_IN_NAMES = {">": "above", ">=": "from", "<": "below", "<=": "to"}


@dataclass(frozen=True)
class Function:
    """A function of columns, as a formula or a proposal names it.

    Parameters
    ----------
    transform
        As a contract states it, such as ``log1p``, ``product`` or ``> 1000``.
    inputs
        Names of columns, or of levels such as ``sex=F``.
    """

    transform: str
    inputs: tuple[str, ...]

    @property
    def in_words(self) -> str:
        """As a formula names it, such as ``log1p(income)`` or ``age:sex``."""
        function = TRANSFORMS.get(self.transform) or transform_of(self.transform)
        return function.in_words(*self.inputs)

    @property
    def name(self) -> str:
        """A name for it in a contract."""
        if len(self.inputs) > 1:
            between = {"ratio": "_per_", "difference": "_minus_"}.get(self.transform, "_")
            return between.join(self.inputs)
        sign, _, number = self.transform.partition(" ")
        (column,) = self.inputs
        if sign in _IN_NAMES:
            written = number.replace("-", "minus_").replace(".", "_")
            return f"{column}_{_IN_NAMES[sign]}_{written}"
        endings = {"log1p": "log", "is not zero": "any", "is missing": "missing"}
        return f"{column}_{endings.get(self.transform, self.transform.replace(' ', '_'))}"

    @property
    def line(self) -> str:
        """What a contract says, under ``columns``, to publish it."""
        names = [_yaml(each) for each in self.inputs]
        of = names[0] if len(names) == 1 else f"[{', '.join(names)}]"
        more = _PARAMETERS.get(self.transform, "")
        return f"{_yaml(self.name)}: {{from: {of}, transform: {_yaml(self.transform)}{more}}}"


def _yaml(text: str) -> str:
    """A text as a flow of YAML states it."""
    plain = re.fullmatch(r"[^\W\d][\w ]*", text) and text.lower() not in ("yes", "no", "on", "off")
    return text if plain else json.dumps(text, ensure_ascii=False)


Named = str | Function  # a column, or a function of columns


@dataclass(frozen=True)
class Terms:
    """The columns of a regression, by name or as functions of columns."""

    outcome: Named  # left-hand side
    # right-hand side, in order, without repetitions; empty for an intercept alone
    predictors: tuple[Named, ...]
    excluded: tuple[Named, ...] = ()  # columns after a minus sign
    all_others: bool = False  # whether `.` is among the predictors
    # the level with which others are compared, of a column whose first level it is not
    references: Mapping[str, str] = field(default_factory=dict)


def parse_formula(formula: str, columns: Sequence[str] = ()) -> Terms:
    """The terms of a formula.

    `formula`: such as ``y ~ a + b``. `columns`: names that ``.`` stands for. Raises InvalidValue if
    it cannot be parsed, or has terms that no release can have.
    """
    references, formula = _references(formula), uncoded(formula)
    sides, tokens = _parsed(formula, columns)
    left, right = getattr(sides, "lhs", ()), getattr(sides, "rhs", ())
    if not hasattr(sides, "lhs") or isinstance(right, tuple) or len(left) != 1:
        raise _formula_not_parsed(formula, "it must have the form 'outcome ~ predictors'")
    (outcome,) = (_term(formula, term) for term in left)
    predictors = [_term(formula, term) for term in right]
    if outcome is None:
        raise _formula_not_parsed(formula, "its outcome must be a column")
    if None not in predictors:
        raise families.FORMULA(
            "The formula '{formula}' removes the intercept.",
            "Leave out '- 1' and '0 +': moments are about the means. In place of the coefficient "
            "of every level, test such sums as 'Intercept + `ward=B`'.",
            formula=formula,
        )
    named = tuple(dict.fromkeys(each for each in predictors if each is not None))
    if outcome in named:
        raise wordings.outcome_predicts_itself(in_words(outcome))
    of_functions = (term.inputs for term in (outcome, *named) if isinstance(term, Function))
    used = {outcome, *named, *itertools.chain.from_iterable(of_functions)}
    mentioned = [each for each in _mentioned(formula, tokens) if each not in used]
    dot = any((token.token, token.kind.value) == (".", "operator") for token in tokens)
    return Terms(outcome, named, tuple(dict.fromkeys(mentioned)), dot, references)


def uncoded(formula: str) -> str:
    """A formula in which columns have their names alone, without ``C()`` and ``Q()``."""
    return _CODED.sub(lambda found: found["other"] or found["name"], _quoted(formula))


def _quoted(formula: str) -> str:
    return _NAMED_BY_Q.sub(lambda found: f"`{found[1][1:-1]}`", formula)


def _references(formula: str) -> dict[str, str]:
    """The levels with which ``C(x, Treatment("B"))`` compares, by column."""
    references = dict[str, str]()
    for found in _CODED.finditer(_quoted(formula)):
        coding = found["coding"] and _REFERENCE.fullmatch(found["coding"].strip())
        if found["coding"] and not coding:
            raise families.FORMULA(
                "'{term}' in the formula '{formula}' is not a coding of levels that a regression "
                "has.",
                "Write C({name}, Treatment('B')) to compare levels with one of them, and "
                "compare others by .t_test().",
                formula=formula,
                term=found[0],
                name=found["name"],
            )
        if coding and coding["level"]:
            name, level = found["name"].strip("`"), coding["level"].strip("\"'")
            if references.setdefault(name, level) != level:
                raise families.FORMULA(
                    "The formula '{formula}' compares the levels of '{name}' with several of them.",
                    "Write one of {levels} everywhere, and compare others by .t_test().",
                    formula=formula,
                    name=name,
                    levels=(references[name], level),
                )
    return references


def in_words(term: Named) -> str:
    """The term as a formula names it."""
    return term if isinstance(term, str) else term.in_words


def _mentioned(formula: str, tokens: Sequence[Token]) -> Iterator[Named]:
    """The columns and functions of columns among the tokens of a formula."""
    for token in tokens:
        kind = token.kind.value
        if kind == "name":
            yield token.token
        elif kind == "python":
            yield _function(formula, token.token)


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


def _term(formula: str, term: Term) -> Named | None:
    """The column that a term names, or of which it is a function; None for the intercept."""
    factors = [(str(factor.expr), str(factor.eval_method.value)) for factor in term.factors]
    if factors == [("1", "literal")]:
        return None
    found = [text if kind == "lookup" else _function(formula, text) for text, kind in factors]
    if len(found) == 1:
        return found[0]
    columns = tuple(each for each in found if isinstance(each, str))
    if len(columns) != len(found) or len(columns) > 2:
        raise _unknown_function(formula, ":".join(text for text, _ in factors))
    return Function("product", columns)


def _function(formula: str, text: str) -> Named:
    """The function of columns in a text such as ``log1p(x)`` or ``I(x > 1000)``."""
    quoted = _QUOTED.findall(text)
    plain = re.sub(_QUOTED, lambda match: f"quoted_{quoted.index(match[1])}_", text)
    names = {f"quoted_{k}_": name for k, name in enumerate(quoted)}
    found = None
    with contextlib.suppress(SyntaxError, RecursionError, MemoryError):
        found = _named(ast.parse(plain.strip(), mode="eval").body, names)
    if found is None:
        raise _unknown_function(formula, text)
    return found


def _named(node: ast.expr | None, names: dict[str, str]) -> Named | None:
    """A column or a function of columns; None for anything else."""
    transform, inputs = None, list[ast.expr]()
    match node:
        case ast.Name(id=name):
            return names.get(name, name)
        case ast.Call(func=ast.Name(id="I"), args=[inner], keywords=[]):
            return _named(inner, names)
        case ast.Call(func=function, args=[inner], keywords=[]):
            transform, inputs = _called(function), [inner]
        case ast.Compare(left=inner, ops=[sign], comparators=[limit]):
            transform, inputs = _condition(sign, _number(limit)), [inner]
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=2)):
            transform, inputs = "square", [left]
        case ast.BinOp(left=left, op=sign, right=right):
            transform, inputs = _OPERATORS.get(type(sign)), [left, right]
    columns = [_named(each, names) for each in inputs]
    known = tuple(each for each in columns if isinstance(each, str))
    return Function(transform, known) if transform and len(known) == len(inputs) else None


def _called(function: ast.expr) -> str | None:
    """The transform of a function's name, with or without that of a library."""
    match function:
        case ast.Name(id=name) | ast.Attribute(value=ast.Name(id="np" | "numpy"), attr=name):
            found = _OTHER_NAMES.get(name, name)
            return found if found in _FUNCTIONS else None
    return None


def _condition(sign: ast.cmpop, limit: float | None) -> str | None:
    """The transform of a comparison with a number."""
    if limit == 0 and type(sign) in _OF_ZERO:
        return _OF_ZERO[type(sign)]
    if limit is None or type(sign) not in _SIGNS:
        return None
    return f"{_SIGNS[type(sign)]} {str(limit).removesuffix('.0')}"


def _number(node: ast.expr) -> float | None:
    with contextlib.suppress(ValueError, TypeError, OverflowError):
        value = ast.literal_eval(node)
        return float(value) if type(value) in (int, float) else None
    return None


def _unknown_function(formula: str, text: str) -> InvalidValue:
    return families.FORMULA(
        "'{term}' in the formula '{formula}' is not a column, nor a function of columns that a "
        "release can have.",
        "Functions of a column are {known}, comparisons such as I(a > 1000), and products of two, "
        "such as a:b. In place of log(a), use log1p(a), the logarithm of 1 + a; in place of bs(a) "
        "and poly(a), spline(a) and polynomial(a). Anything else must be a column of the table "
        "itself.",
        formula=formula,
        term=text,
        known=tuple(f"{name}(a)" for name in _FUNCTIONS if name.isidentifier()),
    )
