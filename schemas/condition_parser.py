"""Parse conditions on one row: a small part of SQL that cannot do harm.

The parser accepts nothing else: no subquery, function, aggregate, window, cast, calculation,
comment or second statement.
"""

from __future__ import annotations

import re

from gramercy.schemas.problems import source as problems
from gramercy.schemas.row_condition import (
    Comparator,
    Comparison,
    Condition,
    IsNull,
    Joined,
    Like,
    Literally,
    Named,
    Negated,
    Operand,
    Within,
    columns_of,
)

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<number>-?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
      | '(?P<text>(?:[^'\\]|'')*)'
      | "(?P<quoted>(?:[^"\\]|"")+)"
      | (?P<word>[A-Za-z_][A-Za-z0-9_]*+(?!\s*\())
      | (?P<mark><>|!=|<=|>=|[=<>(),])
    )""",
    re.VERBOSE | re.ASCII,
)
_CALLABLE = re.compile(r"\s*(in|and|or|not)\b", re.IGNORECASE)  # a parenthesis may follow
_KEYWORDS = {"and", "between", "false", "in", "is", "like", "not", "null", "or", "true"}
_RESERVED = _KEYWORDS | {
    *("select", "from", "where", "union", "intersect", "except", "limit", "offset", "order"),
    *("group", "having", "exists", "any", "all", "some", "case", "when", "cast", "collate"),
    *("over", "with", "values", "escape", "similar", "ilike", "glob", "regexp", "match"),
}
_MAX_DEPTH = 50


def parse_condition(text: str) -> Condition:
    """A condition on one row.

    Parameters
    ----------
    text
        The condition, as in SQL.

    Raises
    ------
    InvalidValue
        If it is anything else; the problem states where.

    Examples
    --------
    >>> parse_condition("age >= 18").comparator
    '>='
    """
    parser = _Parser(text)
    condition = parser.disjunction()
    if parser.kind != "end":
        raise parser.problem()
    return condition


class _Parser:
    """Reads a condition from left to right."""

    def __init__(self, text: str) -> None:
        self._text, self._next, self._depth = text, 0, 0
        self._advance()

    def problem(self) -> Exception:
        """What the condition has here is not part of the language."""
        return problems.condition_not_understood(self._start + 1)

    def _advance(self) -> None:
        rest = self._text[self._next :]
        self._start = self._next + len(rest) - len(rest.lstrip())
        if not rest.strip():
            self.kind, self.value = "end", ""
            return
        keyword = _CALLABLE.match(rest)
        if keyword is not None:
            self.kind, self.value = keyword[1].lower(), keyword[1]
            self._next += keyword.end()
            return
        token = _TOKEN.match(rest)
        if token is None or token.lastgroup is None:
            raise self.problem()
        self.kind, self.value = token.lastgroup, token[token.lastgroup]
        if self.kind == "word" and self.value.lower() in _RESERVED:
            self.kind = self.value.lower()
        elif self.kind == "mark":
            self.kind = "<>" if self.value == "!=" else self.value
        self._next += token.end()

    def _take(self, kind: str) -> str:
        value = self.value
        if self.kind != kind:
            raise self.problem()
        self._advance()
        return value

    def _found(self, kind: str) -> bool:
        if self.kind != kind:
            return False
        self._advance()
        return True

    def disjunction(self) -> Condition:
        parts = [self._conjunction()]
        while self._found("or"):
            parts.append(self._conjunction())
        return parts[0] if len(parts) == 1 else Joined("or", tuple(parts))

    def _conjunction(self) -> Condition:
        parts = [self._negation()]
        while self._found("and"):
            parts.append(self._negation())
        return parts[0] if len(parts) == 1 else Joined("and", tuple(parts))

    def _negation(self) -> Condition:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise self.problem()
        try:
            if self._found("not"):
                return Negated(self._negation())
            if not self._found("("):
                return self._predicate()
            inner = self.disjunction()
            self._take(")")
            return inner
        finally:
            self._depth -= 1

    def _predicate(self) -> Condition:
        """A predicate about one column: two columns may have no comparison that cannot fail."""
        start = self._start
        predicate = self._any_predicate()
        if len(list(columns_of(predicate))) != 1:
            raise problems.condition_not_understood(start + 1)
        return predicate

    def _any_predicate(self) -> Condition:
        first = self._operand()
        comparators: tuple[Comparator, ...] = ("=", "<>", "<", "<=", ">", ">=")
        for comparator in comparators:
            if self._found(comparator):
                return Comparison(comparator, first, self._operand())
        if self._found("is"):
            negated = self._found("not")
            self._take("null")
            return IsNull(first, negated)
        negated = self._found("not")
        if self._found("like"):
            return Like(first, Literally(self._text_value()), negated)
        if self._found("between"):
            low = self._operand()
            self._take("and")
            return Within(first, (low, self._operand()), True, negated)
        self._take("in")
        self._take("(")
        values = [self._operand()]
        while self._found(","):
            values.append(self._operand())
        self._take(")")
        return Within(first, tuple(values), False, negated)

    def _text_value(self) -> str:
        return self._take("text").replace("''", "'")

    def _operand(self) -> Operand:
        if self.kind == "text":
            return Literally(self._text_value())
        if self.kind == "number":
            return Literally(self._take("number"), is_number=True)
        if self.kind == "quoted":
            return Named(self._take("quoted").replace('""', '"'))
        for word, value in (("true", True), ("false", False), ("null", None)):
            if self._found(word):
                return Literally(value)
        return Named(self._take("word"))
