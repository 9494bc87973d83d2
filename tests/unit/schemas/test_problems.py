"""Problem types: codes are unique, facts are typed, errors survive copies and processes."""

from __future__ import annotations

import copy
import pickle
import pkgutil
import re
from importlib import import_module
from itertools import pairwise

import pytest

from gramercy.schemas import problems
from gramercy.schemas.contract import Contract
from gramercy.schemas.errors import ContractError, GramercyError, InvalidValue, RequestError
from gramercy.schemas.model import parse
from gramercy.schemas.problem import Notice, Problem, problem
from gramercy.schemas.problems import catalogue, contract, keys
from tests.support.problems import raises


@problem("GRM-998", RequestError, "{file} has {rows:,} rows of {names}.", "See {limit:.2f}.")
def example(file: str, rows: int, names: tuple[str, ...], limit: float = 0.5) -> None:
    """Only for tests."""


def test_catalogue_is_ordered_and_explained() -> None:
    listed = catalogue()
    assert len(listed) > 40
    assert all(a < b for a, b in pairwise(listed))
    for code, each in listed.items():
        facts = each.described()
        assert facts["code"] == code
        assert facts["cause"].endswith((".", ":"))
        assert not re.search(r"\{\w+[:}]", facts["message"].replace("{year}", ""))


def test_codes_are_in_the_range_of_their_module() -> None:
    for info in pkgutil.iter_modules(problems.__path__, f"{problems.__name__}."):
        module = import_module(info.name)
        stated = re.search(r"codes (\d{3}) to (\d{3})\.", module.__doc__ or "")
        assert stated, info.name
        for each in vars(module).values():
            if isinstance(each, Problem):
                assert stated[1] <= each.code.removeprefix("GRM-") <= stated[2], each.code


def test_facts_fill_the_sentence_and_are_kept() -> None:
    error = example("a.csv", 12345, ("x", "y"))
    assert str(error) == "GRM-998: a.csv has 12,345 rows of x, y. See 0.50."
    assert error.facts == {"file": "a.csv", "rows": 12345, "names": ("x", "y"), "limit": 0.5}
    assert isinstance(error, RequestError)


def test_control_characters_in_names_are_escaped() -> None:
    error = example("\x1b]0;a\u202e.csv", 1, ("\n",))
    assert str(error).isprintable()
    assert error.facts["file"].isprintable()


def test_unknown_placeholder_in_a_declaration_is_refused() -> None:
    with pytest.raises(TypeError):

        @problem("GRM-999", Notice, "{missing}")
        def wrong(file: str) -> None:
            """Only for tests."""


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
    with raises(keys.wrong_type, key="rows") as found:
        parse(Contract, facts, "c.yaml", ContractError)
    assert found.value.code == keys.contract_not_valid.code
    assert found.value.facts["file"] == "c.yaml"
    with raises(contract.bounds_reversed, key="columns.a"):
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
