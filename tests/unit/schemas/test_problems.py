"""Problems: codes are unique, facts are typed, errors survive copies and processes."""

from __future__ import annotations

import ast
import copy
import pickle
from itertools import pairwise

import pytest

from gramercy.schemas import families, wordings
from gramercy.schemas.contract import Contract
from gramercy.schemas.errors import ContractError, GramercyError, InvalidValue, RequestError
from gramercy.schemas.families import catalogue
from gramercy.schemas.model import parse
from gramercy.schemas.problem import Family
from tests.support.problems import raises
from tests.test_architecture import sources

EXAMPLE = Family("GRM-998", RequestError)


def example(file: str, rows: int, names: tuple[str, ...], limit: float = 0.5) -> RequestError:
    """A problem with facts of every kind."""
    return EXAMPLE(
        "{file} has {rows:,} rows of {names}.",
        "See {limit:.2f}.",
        file=file,
        rows=rows,
        names=names,
        limit=limit,
    )


def test_catalogue_is_ordered() -> None:
    listed = catalogue()
    assert all(a < b for a, b in pairwise(listed))
    assert all(each.described()["code"] == code for code, each in listed.items())


@pytest.mark.slow
def test_wordings_are_called_with_their_facts() -> None:
    """A missing fact would raise `ValueError` instead of the problem."""
    checked = 0
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="wordings"), attr=name)):
                    assert len(node.args) == len(getattr(wordings, name).names), ast.unparse(node)
                    assert not node.keywords, ast.unparse(node)
                    checked += 1
    assert checked > 100


def test_facts_fill_the_sentence_and_are_kept() -> None:
    error = example("a.csv", 12345, ("x", "y"))
    assert str(error) == "GRM-998: a.csv has 12,345 rows of x, y. See 0.50."
    assert error.facts == {"file": "a.csv", "rows": 12345, "names": ("x", "y"), "limit": 0.5}
    assert isinstance(error, RequestError)


def test_control_characters_in_names_are_escaped() -> None:
    error = example("\x1b]0;a\u202e.csv", 1, ("\n",))
    assert str(error).isprintable()
    assert error.facts["file"].isprintable()


@pytest.mark.parametrize("again", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))])
def test_copies_keep_code_facts_and_details(again: object) -> None:
    assert callable(again)
    with pytest.raises(ContractError) as caught:
        parse(Contract, {"rows": "3"}, "c.yaml", ContractError)
    for error in (example("a", 1, ()), caught.value):
        other = again(error)
        assert isinstance(other, GramercyError)
        assert (str(other), other.code, other.facts) == (str(error), error.code, error.facts)
        assert len(other.details) == len(error.details)


def test_renamed_error_names_the_new_location() -> None:
    error = example("/tmp/copy/a.csv", 1, ()).renamed("/tmp/copy", "s3://bucket")
    assert error.facts["file"] == "s3://bucket/a.csv"
    assert "/tmp" not in repr(error)


def test_each_wrong_key_is_a_detail() -> None:
    facts = {"id": "x", "rows": "3", "columns": {"a": {"lower": 2.0, "upper": 1.0}}}
    with raises(families.VALUE, key="rows") as found:
        parse(Contract, facts, "c.yaml", ContractError)
    assert found.value.code == families.CONTRACT_FILE.code
    assert found.value.facts["file"] == "c.yaml"
    with raises(families.BOUNDS, key="columns.a"):
        parse(Contract, facts, "c.yaml", ContractError)
    assert all(isinstance(each, InvalidValue) for each in found.value.details)


def test_error_without_history_quotes_no_private_values() -> None:
    try:
        try:
            raise KeyError("a private value")
        except KeyError as cause:
            raise example("a", 1, ()) from cause
    except RequestError as caught:
        caught.add_note("a private value")
        error = caught.without_history()
    assert error.__cause__ is error.__context__ is None
    assert not hasattr(error, "__notes__")
    assert (str(error), error.facts) == (str(example("a", 1, ())), example("a", 1, ()).facts)


def test_details_beyond_the_listed_ones_are_counted() -> None:
    columns = {f"c{i}": {"lower": 2.0, "upper": 1.0} for i in range(30)}
    with pytest.raises(ContractError) as caught:
        parse(Contract, {"columns": columns}, "c.yaml", ContractError)
    omitted = caught.value.facts["left_out"]
    assert omitted > 20
    assert str(omitted) in str(caught.value).splitlines()[-1]
