"""The card of a release."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gramercy.archive.bundles.bundle_kinds import read_release, release_card
from gramercy.archive.bundles.card import dp_card
from gramercy.archive.bundles.package import markdown_text
from gramercy.archive.store.opening import open_archive
from gramercy.common.home import Home
from gramercy.reports.release_report import release_page
from gramercy.schemas.database import ASSERTION, RowSelection
from gramercy.schemas.neighbours import Neighbours
from tests.support.factories import run_release, write_request

PUBLIC = (
    ". A row is replaced within this selection: whether a row is in it is public and not protected"
)


@pytest.mark.slow
def test_card_and_report_show_what_was_read_from_a_database(tmp_path: Path) -> None:
    name = run_release(write_request(tmp_path))
    bundle = read_release(open_archive(Home.default().archive).release("toy", name))
    query = "SELECT x, y FROM visits\n  WHERE age < 18"
    where = RowSelection(table="visits", where="age < 18\n AND site = 'A'")
    rows = "the rows of the table 'visits', where age < 18 AND site = 'A'"
    for selection, change, expected in [
        (where, {}, rows + PUBLIC),
        (where, {"neighbours": Neighbours.ADD_REMOVE}, rows),
        (where, {"privacy_unit": "person"}, rows),
        (RowSelection(table="visits"), {}, "the rows of the table 'visits'"),
        (RowSelection(view="visits"), {}, "the rows of the view 'visits'" + PUBLIC),
        (
            RowSelection(query=query, assertion=ASSERTION),
            {},
            "the rows of the query: SELECT x, y FROM visits WHERE age < 18. The curator asserts: "
            + ASSERTION.removesuffix(".")
            + PUBLIC,
        ),
    ]:
        facts = bundle.manifest.model_copy(update={"selection": selection, **change})
        card = dp_card(facts, facts.publication, facts.calibration, facts.guarantee, facts.noise)
        facts = facts.model_copy(update={"card": card})
        assert f"\n- **source**: {markdown_text(expected)}\n" in release_card(facts)
        escaped = expected.replace("<", "&lt;").replace("'", "&#39;")
        page = release_page(replace(bundle, manifest=facts), [])
        assert f"Read from a database: {escaped}.</p>" in page
    assert "source" not in bundle.manifest.card
