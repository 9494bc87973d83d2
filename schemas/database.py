"""A table of a database as a contract's source: the public part of how it is read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from gramercy.schemas import families
from gramercy.schemas.model import Model, single_line
from gramercy.schemas.notation import NumberNotation
from gramercy.schemas.periods import placeholders_in
from gramercy.schemas.url import has_secrets

if TYPE_CHECKING:
    from sqlglot.expressions import Expr


ASSERTION = (
    "Each protected record decides at most one result row, and neither the values nor the presence "
    "of others."
)

SQLITE = "sqlite:///"  # before the path of a file
_VARIABLE = re.compile(r"env:([A-Za-z_][A-Za-z0-9_]*)")
_URL = re.compile(r"[a-z][a-z0-9+]*:///?[^\s]*")
_SELECT = re.compile(r"\s*(select|with)\b", re.IGNORECASE)

Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(single_line)]


class RowSelection(Model):
    """What is read from a database: public, and part of the manifest.

    Parameters
    ----------
    table, view
        Name of the table or the view, with its schema if it is not the default one
        (``schema.name``). A view must satisfy `ASSERTION` like a query.
    where
        A condition on the cells of each row, as in SQL: comparisons of a column with values,
        IN, BETWEEN, LIKE, IS NULL, AND, OR, NOT. Under ``replace-one``, whether a row satisfies it
        is public and not protected, because the number of such rows is public.
    query
        Instead of a table, any SELECT statement that satisfies `ASSERTION`.
    assertion
        For a query: the words of `ASSERTION`, by which the curator asserts it.
    """

    table: Name | None = None
    view: Name | None = None
    where: Annotated[str, Field(min_length=1, max_length=10_000)] | None = None
    query: Annotated[str, Field(min_length=1, max_length=100_000)] | None = None
    assertion: str | None = None

    @model_validator(mode="after")
    def _check_selection(self) -> Self:
        if sum(each is not None for each in (self.table, self.view, self.query)) != 1:
            raise families.DATABASE(
                "A database needs exactly one of 'table', 'view' and 'query'.",
                "Write for example: source: {{url: 'env:CLINIC_DB', table: visits}}.",
            )
        if (self.assertion if self.query is None else self.where) is not None:
            raise families.DATABASE(
                "'where' and 'assertion' cannot be combined like this: 'where' belongs to a "
                "'table' or a 'view', and 'assertion' to a 'query'.",
                "Remove the one that does not belong.",
            )
        is_query = self.query is not None
        if is_query and " ".join((self.assertion or "").split()) != ASSERTION:
            raise families.DATABASE(
                "A free 'query' needs 'assertion', with exactly these words: {words}",
                "Assert it if it is true of the query. Otherwise name a 'table' or a 'view', with "
                "'where'.",
                words=ASSERTION,
            )
        if self.query is not None and (not _SELECT.match(self.query) or ";" in self.query):
            raise families.DATABASE(
                "A query must be one SELECT statement, without semicolons.",
                "Start it with SELECT or WITH.",
            )
        if placeholders_in(f"{self.where} {self.view} {self.query}"):
            raise families.DATABASE(
                "A placeholder such as '{{year}}' may stand in 'table' only.",
                "Make a table for each period, or declare the column of dates as 'period'.",
            )
        return self

    @model_serializer(mode="wrap")
    def _without_missing_keys(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in handler(self).items() if value is not None}

    @property
    def kind(self) -> Literal["table", "view", "query"]:
        """What is read."""
        return "table" if self.table else "view" if self.view else "query"

    @property
    def relation(self) -> str:
        """Name of the table or view; empty for a query."""
        return self.table or self.view or ""


def _is_public(url: str) -> str:
    """A URL that may stand in a contract, or the name of an environment variable."""
    if not _VARIABLE.fullmatch(url) and (not _URL.fullmatch(url) or has_secrets(url)):
        raise families.DATABASE(
            "The URL of a database must be 'env:' and the name of an environment variable, or a "
            "URL without user, password and query.",
            "Put the URL into an environment variable of the machine that reads the table.",
        )
    return url


class DatabaseTable(RowSelection, NumberNotation):
    """Rows of a table, a view or a query of a database.

    Parameters
    ----------
    url
        ``env:NAME``: the environment variable that contains the URL of the database, such as
        ``postgresql://user:password@host/name``; or a URL without credentials, such as
        ``sqlite:////srv/clinic.db``. It is not published.
    table, view
        Name of the table or the view, with its schema if it is not the default one
        (``schema.name``). With a budget per period, the name of a table has placeholders. By naming
        a view, the curator asserts of it what `assertion` says.
    where
        A condition on the cells of each row, as in SQL: comparisons of a column with values,
        IN, BETWEEN, LIKE, IS NULL, AND, OR, NOT. Under ``replace-one``, whether a row satisfies it
        is public and not protected, because the number of such rows is public.
    query
        Instead of a table, one SELECT statement, for which the curator asserts `assertion`.
    assertion
        For a query, exactly these words: "Each protected record decides at most one result row, and
        neither the values nor the presence of others."
    decimal, thousands, percent, units, accounting
        How numbers are written in columns of text, as in files.
    """

    url: Annotated[str, AfterValidator(_is_public)]

    @model_validator(mode="after")
    def _check_condition(self) -> Self:
        _ = self.condition
        return self

    @property
    def condition(self) -> Expr | None:
        """The condition on rows. Only contracts have it parsed, which needs sqlglot."""
        if self.where is None:
            return None
        from gramercy.schemas.row_condition import parse_condition

        return parse_condition(self.where)

    @property
    def variable(self) -> str | None:
        """The environment variable that contains the URL; None if the contract states the URL."""
        found = _VARIABLE.fullmatch(self.url)
        return None if found is None else found[1]

    @property
    def selection(self) -> RowSelection:
        """The public part."""
        return RowSelection(**{name: getattr(self, name) for name in RowSelection.model_fields})

    @property
    def location(self) -> str:
        """The part that may have placeholders for the period."""
        return self.relation

    def at(self, location: str) -> Self:
        """The same with another table or view."""
        return self.model_copy(update={self.kind: location} if self.relation else {})

    @property
    def display_name(self) -> str:
        """The table in messages."""
        return f"{self.url} ({self.kind}{' ' if self.relation else ''}{self.relation})"

    @property
    def identity(self) -> str:
        """What is equal for data sets that read the same table, whichever rows of it."""
        return f"{self.url} {self.kind} {self.relation or self.query}"


class CopiedTable(DatabaseTable):
    """A table of a database that was copied to a private place; never in a contract.

    Parameters
    ----------
    copied_to
        Folder of the copy; see `tables.formats.private_copy`.
    """

    copied_to: str
