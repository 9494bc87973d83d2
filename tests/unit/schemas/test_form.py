"""The JSON schema of a release request, from which Prefect makes a form."""

from __future__ import annotations

import re
from typing import Any, get_args

import pytest
from jsonschema import Draft202012Validator

from gramercy import estimators, mechanisms
from gramercy.pipeline.plan.request_model import Request

# As they are stored with a deployment.
_NEEDED = {"pool": {"releases": ["toy/1"]}, "difference": {"between": ["A", "B"]}}
DEFAULT_SETTINGS = {
    name: estimator(name=name, **_NEEDED.get(name, {})).model_dump(mode="json")
    for name, estimator in estimators.registry.items()
}


def test_every_choice_and_key_has_a_plain_description() -> None:
    schema = Request.model_json_schema()
    choices = {each["title"]: each for each in schema["$defs"].values()}
    assert {*mechanisms.registry, *estimators.registry} <= choices.keys()
    assert {"unit", "clip", "box", "whole", "local", "dask"} <= choices.keys()
    for model in (schema, *choices.values()):
        texts = [
            model["description"],
            *(key["description"] for key in model["properties"].values()),
        ]
        assert all(text[-1] in ".:" and "`" not in text for text in texts), model["title"]
        assert not any("Parameters" in text or "----" in text for text in texts)
    gaussian = choices["gaussian"]
    assert gaussian["description"].startswith("The default; the least noise")
    assert "epsilon" in gaussian["properties"]["epsilon"]["description"]
    assert "penalty" in choices["output"]["properties"]


@pytest.mark.parametrize(
    ("key", "tag", "names"),
    [
        ("mechanism", "name", list(mechanisms.registry)),
        ("normalisation", "kind", ["unit", "clip", "box", "whole"]),
        ("scaling", "kind", ["declared", "private", "release"]),
        ("engine", "kind", ["local", "dask"]),
    ],
)
def test_choice_is_a_list_to_select_from(key: str, tag: str, names: list[str]) -> None:
    choice = Request.model_json_schema()["properties"][key]
    assert choice["type"] == "object"
    first = min(choice["properties"], key=lambda each: choice["properties"][each]["position"])
    assert first == tag
    select = choice["properties"][tag]
    assert (select["type"], select["enum"], select["default"]) == ("string", names, names[0])
    assert all(f"'{name}': " in select["description"] for name in names)
    schema = Request.model_json_schema()["$defs"]
    members = [
        schema[each["$ref"].rpartition("/")[2]]["properties"] for each in choice["then"]["oneOf"]
    ]
    for name, facts in choice["properties"].items():
        # A form sends the defaults of all keys, and other members do not know this one.
        if not all(name in member for member in members):
            assert "default" not in facts
            assert facts["description"].startswith("Only for ")


def test_tab_of_each_estimate_is_the_first_that_shares_most_keys() -> None:
    """The rule by which both of Prefect's forms choose the tab of a value."""
    schema = Request.model_json_schema()
    tabs = schema["properties"]["estimates"]["items"]["anyOf"]
    keys = [schema["$defs"][each["$ref"].rpartition("/")[2]]["properties"] for each in tabs]
    names = [each["name"]["const"] for each in keys]
    assert sorted(names) == sorted(estimators.registry)
    for name, settings in DEFAULT_SETTINGS.items():
        shared = [len(settings.keys() & each.keys()) for each in keys]
        assert names[shared.index(max(shared))] == name


@pytest.mark.parametrize(
    ("mechanism", "valid"),
    [
        ({"name": "gaussian", "epsilon": 1.0, "delta": 1e-6}, True),
        ({"name": "gaussian", "epsilon": 1.0}, False),  # delta is required
        ({"name": "laplace", "epsilon": 1.0}, True),
        ({"name": "laplace", "epsilon": 1.0, "delta": 0}, True),
        ({"name": "laplace", "epsilon": 1.0, "mean": "kept"}, False),  # a key of wishart
        ({"name": "wishart", "epsilon": 1.0, "delta": 1e-6, "mean": "kept"}, True),
        ({"name": "magic", "epsilon": 1.0, "delta": 1e-6}, False),
        ({"name": "gaussian", "epsilon": 0, "delta": 1e-6}, False),
    ],
)
def test_server_refuses_what_no_member_of_a_choice_accepts(
    mechanism: dict[str, Any], valid: bool
) -> None:
    request = {"dataset": "toy", "version": "1", "mechanism": mechanism}
    validator = Draft202012Validator(Request.model_json_schema())
    assert validator.is_valid(request) is valid


def test_keys_keep_their_order_and_need_no_null() -> None:
    schema = Request.model_json_schema()
    for model in (schema, *schema["$defs"].values()):
        positions = [each["position"] for each in model["properties"].values()]
        assert positions == sorted(set(positions))
    period = schema["properties"]["period"]
    assert period["type"] == "string"
    assert "default" not in period
    models = (Request, *(each.spec for each in mechanisms.registry.values()))
    for model_type in (*models, *estimators.registry.values()):
        for name, field in model_type.model_fields.items():
            if type(None) in get_args(field.annotation):
                assert field.default is None, name  # so that leaving it out means null


def test_version_pattern_is_in_the_form_schema() -> None:
    version = Request.model_json_schema()["properties"]["version"]
    assert version["type"] == "string"
    matches = re.compile(version["pattern"]).fullmatch
    assert all(matches(each) for each in ("2026", "%G-W%V", "{period}", "{period}.2", "v-{period}"))
    assert not any(matches(each) for each in ("", "-2026", "{month}", "{period}.", "../etc"))
