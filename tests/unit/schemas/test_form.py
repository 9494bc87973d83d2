"""The JSON schema of a release request, from which Prefect makes a form."""

from __future__ import annotations

import re

from gramercy import estimators, mechanisms
from gramercy.application.request_model import Request


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


def test_version_pattern_is_in_the_form_schema() -> None:
    version = Request.model_json_schema()["properties"]["version"]
    assert version["type"] == "string"
    matches = re.compile(version["pattern"]).fullmatch
    assert all(matches(each) for each in ("2026", "%G-W%V", "{period}", "{period}.2", "v-{period}"))
    assert not any(matches(each) for each in ("", "-2026", "{month}", "{period}.", "../etc"))
