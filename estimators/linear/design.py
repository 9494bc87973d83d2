"""From the terms of a regression to the columns of the released matrix.

A column of levels is a column of zeros and ones for each level but the first one declared, the
reference. Rows without a declared level count with this one. A function of columns, such as
``log1p(a)`` or ``a:b``, is the column of the release that is derived so, under any name; a
product with a column of levels is a column for each level but the reference.

With another reference, the regression is the same one, and its coefficients are those of the first
reference in other words: see `Recoding`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gramercy.common.similar_names import most_similar_first
from gramercy.estimators.linear.formula import Function, Named, Terms, in_words
from gramercy.schemas import families, wordings
from gramercy.schemas.derived import DerivedFacts, transform_of
from gramercy.schemas.errors import RequestError
from gramercy.schemas.facts import ColumnFacts, LevelsFacts

Array = NDArray[np.float64]
Facts = ColumnFacts | LevelsFacts | None
_SEVERAL_TERMS = ("spline", "polynomial")


@dataclass(frozen=True)
class Design:
    """The columns of the matrix that a regression uses."""

    outcome: int  # index of the outcome
    regressors: tuple[int, ...]  # indices of the k regressors, without the intercept
    # the reference level of each predictor with levels
    references: Mapping[str, str] = field(default_factory=dict)
    # columns that `.` leaves out, because they are computed from others, or from the outcome
    left_out: tuple[str, ...] = ()

    @property
    def columns(self) -> list[int]:
        """The outcome and the regressors, shape (1 + k,)."""
        return [self.outcome, *self.regressors]


@dataclass(frozen=True)
class Recoding:
    """The coefficients of a design as differences from other reference levels.

    With the coefficients b_l of levels, zero for the first one, and the reference r, the others are
    b_l - b_r, and b_r is added to the coefficient of what the levels multiply: the intercept, or
    the number of a product.
    """

    design: Design
    linear: Array  # from the coefficients of the first references, shape (1 + k, 1 + k)


@dataclass(frozen=True)
class ReleasedColumns:
    """The columns of a released matrix, by what an analyst may call them.

    Parameters
    ----------
    names, columns
        Names of the matrix columns, and the table column of each; None for the intercept.
    """

    names: Sequence[str]
    columns: Sequence[Facts]

    @property
    def table(self) -> list[str]:
        """Names of the table's columns, in order."""
        return list(dict.fromkeys(facts.name for facts in self.columns if facts is not None))

    def design(self, terms: Terms, left_out: Sequence[str] = ()) -> Design:
        """The design of a regression.

        `terms`: columns by name, a level such as ``kind=a``, or functions of columns. `left_out`:
        see `others`. Raises RequestError if a column is unknown or not released, the outcome has
        levels, or the outcome is also a predictor.
        """
        (outcome, *others), removed = self.indices(terms.outcome), set[int]()
        if others or self._has_levels(terms.outcome):
            raise families.ANALYSIS(
                "The outcome '{column}' has levels.",
                "Name one level, for the share of rows that have it: {levels}.",
                column=in_words(terms.outcome),
                levels=tuple(self.names[i] for i in (outcome, *others)),
            )
        for term in terms.excluded:
            removed.update(self.indices(term))
        regressors, references = list[int](), dict[str, str]()
        for term in terms.predictors:
            indices = self.indices(term, terms.predictors)
            if isinstance(term, str) and self._has_levels(term):
                references[term] = self.names[indices[0]].removeprefix(f"{term}=")
                indices = indices[1:]
            regressors += [index for index in indices if index not in removed]
        regressors = list(dict.fromkeys(regressors))
        named = any(is_level_of(self.names[outcome], name) for name in references)
        if outcome in regressors or named:
            raise wordings.outcome_predicts_itself(self.names[outcome])
        names = {self.names[index] for index in regressors}
        return Design(
            outcome, tuple(regressors), references, tuple(n for n in left_out if n not in names)
        )

    def recoding(self, references: Mapping[str, str], design: Design) -> Recoding | None:
        """The design with other references; None if they are the first levels.

        `references`: a level for each column. Raises RequestError if one is not a level of its
        column.
        """
        shown, named = [0, *design.regressors], dict(design.references)  # 0 is the intercept
        linear = np.eye(len(shown))
        for column, level in references.items():
            levels = self._levels(column)
            number = self._number_of(column, level, levels)
            for parent in list(shown):
                every = [self._times(index, parent) for index in levels]
                if not number or every[number] not in shown or every[0] in shown:
                    continue
                if every[0] is None:
                    names = (self.names[parent], self.names[levels[0]])
                    raise self._missing(Function("product", names))
                own, step = shown.index(every[number] or 0), np.eye(len(shown))
                step[[k for k, each in enumerate(shown) if each in every], own] = -1.0
                step[shown.index(parent), own] = 1.0
                linear, shown[own] = step @ linear, every[0]
            if column in named:
                named[column] = self.names[levels[number]].removeprefix(f"{column}=")
        if shown[1:] == list(design.regressors):
            return None
        return Recoding(replace(design, regressors=tuple(shown[1:]), references=named), linear)

    def _times(self, level: int, other: int) -> int | None:
        """The product of a level and another column, which may be the intercept."""
        names = [self.names[level], self.names[other]]
        return self._derived_from("product", names) if other else level

    def _number_of(self, column: str, level: str, levels: Sequence[int]) -> int:
        """The number of a level among those of its column."""
        names = [self.names[k].removeprefix(f"{column}=") for k in levels]
        wanted = [level, level.lower(), level.removesuffix(".0")]
        if found := [names.index(each) for each in wanted if each in names]:
            return found[0]
        raise families.ANALYSIS(
            "'{level}' is not a level of '{column}'.",
            "Its levels, most similar first: {known}.",
            level=level,
            column=column,
            known=most_similar_first(level, names),
        )

    def others(self, outcome: Named) -> tuple[list[str], list[str]]:
        """The columns that ``.`` stands for, and those that it leaves out.

        These are the columns that are computed from others of the release, and all that share an
        input with the outcome: the logarithm of a column next to the column explains
        little, and products are used only where a formula asks for them.
        """
        (at, *_) = self.indices(outcome)
        name = self.names[at]
        own, released = set(self._sources(at)), set(self.table)
        used, left_out = list[str](), list[str]()
        for each in self.table:
            if each == name or is_level_of(name, each):
                continue
            (first, *_) = self.indices(each)
            sources, derived = self._sources(first), first in self._derived
            related = bool(own.intersection(sources)) and (derived or at in self._derived)
            from_released = derived and released.issuperset(sources)
            (left_out if related or from_released else used).append(each)
        return used, left_out

    def indices(self, term: Named, among: Sequence[Named] = ()) -> list[int]:
        """The matrix columns of a table column, of a level, or of a function of columns.

        `among`: other terms. If the number in a product with levels is among them, the reference
        has no column: the others are differences from it. Otherwise each level has its own.
        """
        if isinstance(term, str):
            return self._of_name(term, among)
        if found := list(self._of_function(term, among)):
            return found
        known = {*self.table, *self.names[1:], *self._inputs}
        for column in term.inputs:
            if column not in known:
                raise self._unknown(column)
        raise self._missing(term)

    def _missing(self, term: Function) -> RequestError:
        return families.ANALYSIS(
            "The release has no column for '{term}'.",
            "The curator can publish it, by this line under 'columns' in the contract: {line}",
            term=in_words(term),
            line=term.line,
        )

    @property
    def _inputs(self) -> Iterator[str]:
        """The columns from which others are computed; they need not be released themselves."""
        for index in range(len(self.columns)):
            yield from self._sources(index)

    def _of_name(self, name: str, among: Sequence[Named]) -> list[int]:
        of_table = [k for k, each in enumerate(self.columns) if each and each.name == name]
        if of_table:
            return of_table
        if name in self.names[1:]:
            return [list(self.names).index(name)]
        # Products with a column of levels, and splines, are several columns of one name.
        several = re.compile(re.escape(name) + r"(=.*|_[0-9]+)")
        found = [k for k, facts in self._derived.items() if several.fullmatch(self.names[k])]
        if not found:
            raise self._unknown(name)
        facts = self._derived[found[0]]
        if facts.transform != "product":
            return found
        sources = tuple(self._sources(found[0]))
        return list(self._of_function(Function("product", sources), among)) or found

    def _unknown(self, name: str) -> RequestError:
        known = [*self.table, *(each for each in self.names[1:] if each not in self.table)]
        return families.ANALYSIS(
            "The release has no column '{column}'.",
            "Its columns, most similar first: {known}.",
            column=name,
            known=most_similar_first(name, known),
        )

    def _of_function(self, term: Function, among: Sequence[Named]) -> Iterator[int]:
        """The columns that are derived as the term says; none unless there is one for each level.

        A spline or a polynomial is the column itself, and the terms that are derived from it.
        """
        if term.transform in _SEVERAL_TERMS:
            found = [
                index
                for index, facts in self._derived.items()
                if (facts.transform.split()[0], facts.inputs) == (term.transform, term.inputs)
            ]
            yield from [k for k, name in enumerate(self.names) if (name,) == term.inputs and found]
            yield from found
            return
        inputs = []
        for own in term.inputs:
            others = {each for each in term.inputs if each != own}
            levels = [self.names[k] for k in self._levels(own)]
            inputs.append(levels[bool(others.intersection(among)) :] or [own])
        parts = [self._derived_from(term.transform, each) for each in itertools.product(*inputs)]
        if None not in parts:
            yield from (each for each in parts if each is not None)

    def _derived_from(self, transform: str, inputs: Sequence[str]) -> int | None:
        wanted = transform_of(transform)
        for index, facts in self._derived.items():
            own = list(facts.inputs)
            same = own == list(inputs) or (transform == "product" and sorted(own) == sorted(inputs))
            if same and facts.function.declared == wanted:
                return index
        return None

    @cached_property
    def _derived(self) -> dict[int, DerivedFacts]:
        """How the columns that are computed from others are computed."""
        columns = enumerate(self.columns)
        return {k: x.derived for k, x in columns if isinstance(x, ColumnFacts) and x.derived}

    def _sources(self, index: int) -> list[str]:
        """The table columns that a matrix column is computed from; itself if it is in the table."""
        facts = self.columns[index]
        if index not in self._derived:
            return [] if facts is None else [facts.name]
        levels = {
            name: each.name
            for name, each in zip(self.names, self.columns, strict=True)
            if isinstance(each, LevelsFacts)
        }
        return [levels.get(each, each) for each in self._derived[index].inputs]

    def _levels(self, column: str) -> list[int]:
        """The indices of the levels of a column; none if it has no levels."""
        columns = enumerate(self.columns)
        return [k for k, x in columns if isinstance(x, LevelsFacts) and x.name == column]

    def _has_levels(self, term: Named) -> bool:
        return isinstance(term, str) and bool(self._levels(term))


def is_level_of(name: str, column: str) -> bool:
    """Whether a name such as ``kind=a`` is that of a level of the column."""
    return name.startswith(f"{column}=")
