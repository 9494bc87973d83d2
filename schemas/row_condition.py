"""Conditions on one row of a database's table: a small part of SQL that cannot do harm.

sqlglot parses the text, and everything is refused that is not listed here: a subquery, function,
cast, calculation, comment or second statement. A condition cannot read another row, so each record
decides only on its own row. It cannot compute, and each predicate names one column: PostgreSQL
converts cells to compare columns of different types, which can fail. So no cell makes a condition
fail.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import ParseError, Parser, Token, TokenError, Tokenizer, TokenType, exp

from gramercy.schemas import families
from gramercy.schemas.errors import InvalidValue


def _condition_not_understood(position: int) -> InvalidValue:
    return families.WHERE(
        "'where' is not a condition on one row, from character {position} on.",
        "It may compare one column at a time with values, not with other columns: = <> < <= > >=, "
        "IN, BETWEEN, LIKE, IS NULL, joined by AND, OR, NOT and parentheses. Names with other "
        "characters than letters, digits and _ are in double quotes.",
        position=position,
    )


_GRAMMAR = {
    *("and", "between", "false", "in", "is", "like", "not", "null", "or", "true"),
    *("=", "<>", "!=", "<", "<=", ">", ">=", "(", ")", ",", "-"),
}
_NAME = re.compile(r"[a-z_][a-z0-9_]*", re.ASCII | re.IGNORECASE)
_NUMBER = re.compile(r"\d+\.?\d*(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_JOINS = (exp.And, exp.Or, exp.Not, exp.Paren)
_PREDICATES = (
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE),
    *(exp.In, exp.Between, exp.Like, exp.Is),
)
_ARGUMENTS = {"this", "expression", "expressions", "low", "high", "negate"}  # of predicates
_MAX_DEPTH = 20  # levels of parentheses; sqlglot calls itself about 20 times for each


def parse_condition(text: str) -> exp.Expr:
    """A condition on one row.

    Examples
    --------
    >>> print(parse_condition("age >= 18 AND Ward LIKE 'A%'").sql("postgres"))
    "age" >= 18 AND "Ward" LIKE 'A%'
    """
    tokens = _tokens(text)
    try:
        (condition,) = Parser().parse_into(exp.Condition, tokens, text)
    except ParseError as error:
        places = {(each["line"], each["col"]) for each in error.errors}
        starts = [token.start for token in tokens if (token.line, token.col) in places]
        raise _condition_not_understood(min(starts, default=0) + 1) from None
    if condition is None:
        raise _condition_not_understood(1)
    todo = [condition]
    while todo:
        node = todo.pop()
        if isinstance(node, _JOINS):
            todo += node.iter_expressions()
        elif not _is_predicate(node):
            # sqlglot keeps where names and values begin, and not where others do.
            starts = [each.meta["start"] for each in node.walk() if "start" in each.meta]
            raise _condition_not_understood(min(starts, default=0) + 1)
    # sqlglot accepts more than it writes: a missing value, BETWEEN without AND.
    if sorted(_grammar(text)) != sorted(_grammar(condition.sql())):
        raise _condition_not_understood(1)
    return condition


def columns_of(condition: exp.Expr) -> list[str]:
    """Names of the columns that a condition uses."""
    return [column.name for column in condition.find_all(exp.Column, bfs=False)]


def _tokens(text: str) -> list[Token]:
    """The words of a condition; those that are not of the grammar are names of columns.

    So it does not matter which words sqlglot knows in addition.
    """
    try:
        tokens = Tokenizer().tokenize(text)
    except TokenError:  # a quote without its end
        raise _condition_not_understood(max(map(text.rfind, "'\"")) + 1) from None
    before, depth = "", 0
    for token in tokens:
        source, kind = text[token.start : token.end + 1], token.token_type
        word = source.lower()
        if word in _GRAMMAR or kind == TokenType.DOT:
            depth += (word == "(") - (word == ")") + (word == before == "not")
            is_known = depth <= _MAX_DEPTH and (before, word) != ("not", "is")
        elif kind in {TokenType.STRING, TokenType.NUMBER, TokenType.IDENTIFIER}:
            is_known = "\\" not in source
        else:
            is_known = _NAME.fullmatch(source) is not None
            token.token_type = TokenType.IDENTIFIER
        if not is_known or token.comments:
            raise _condition_not_understood(token.start + 1)
        before = word
    return tokens


def _grammar(text: str) -> Iterator[str]:
    """The words and signs of a condition without its values and names."""
    for token in Tokenizer().tokenize(text):
        word = text[token.start : token.end + 1].lower()
        if word in _GRAMMAR:
            yield "<>" if word == "!=" else word


def _is_predicate(node: exp.Expr) -> bool:
    """Whether it compares one column, and nothing that is computed, with constants."""
    operands = list(node.iter_expressions())
    columns = [each for each in operands if _is_column(each)]
    return (
        type(node) in _PREDICATES
        and _ARGUMENTS.issuperset(_stated(node))
        and (not isinstance(node, exp.Is) or isinstance(node.expression, exp.Null))
        and (not isinstance(node, exp.Like) or node.expression.is_string)
        and len(operands) > len(columns) == 1
        and all(each is columns[0] or _is_constant(each) for each in operands)
    )


def _is_column(node: exp.Expr) -> bool:
    is_name = isinstance(node, exp.Column) and _stated(node) == ["this"]
    return is_name and bool(node.name) and bool(node.this.args.get("quoted"))


def _is_constant(node: exp.Expr) -> bool:
    number = node.this if isinstance(node, exp.Neg) else node
    if isinstance(number, exp.Literal) and number.is_number:
        return _NUMBER.fullmatch(number.name) is not None
    return node.is_string or isinstance(node, exp.Null | exp.Boolean)


def _stated(node: exp.Expr) -> list[str]:
    return [name for name, value in node.args.items() if value]
