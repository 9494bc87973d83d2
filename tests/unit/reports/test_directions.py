"""What a report says of the directions that a pilot matrix showed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gramercy.archive.bundles.bundle_kinds import ReleaseBundle, read_release
from gramercy.archive.bundles.card import noise_description
from gramercy.reports.directions import directions
from gramercy.reports.reader_notes import spectrum_of
from gramercy.reports.release_report import release_page
from tests.support.factories import home_at, run_command, run_json, run_release, write_request
from tests.support.noisy_matrices import goe

ROWS = 20_000
P = 6


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of a release whose last column is nearly the sum of the first two."""
    folder = tmp_path_factory.mktemp("whitened")
    table = np.random.default_rng(0).normal(size=(ROWS, P))
    table[:, -1] = table[:, 0] + table[:, 1] + 0.08 * table[:, -1]
    names = [f"c{k}" for k in range(P)]
    pd.DataFrame(table, columns=names).to_csv(folder / "table.csv", index=False)
    with home_at(folder / "home") as home:
        mechanism = {"name": "gaussian", "epsilon": 4.0, "delta": 1e-6}
        place = write_request(
            folder,
            request={"scaling": "private", "estimates": [], "mechanism": mechanism},
            rows=ROWS,
            columns={name: {"lower": -20.0, "upper": 20.0} for name in names},
            intercept=True,
            budget={"epsilon": 9.0, "delta": 1e-5},
        )
        run_release(place)
    return home / "archive"


@pytest.fixture(scope="module")
def whitened(archive: Path) -> ReleaseBundle:
    return read_release(archive / "toy/v1-r1/release")


def without_metric(bundle: ReleaseBundle) -> ReleaseBundle:
    """The same as if the pilot had shown no direction worth a metric."""
    scaling, whitening = bundle.manifest.scaling, bundle.whitening
    assert scaling is not None
    assert whitening is not None
    update = {"scaling": scaling.model_copy(update={"metric_radius": None})}
    manifest = bundle.manifest.model_copy(update=update)
    return replace(bundle, manifest=manifest, whitening=replace(whitening, drawn=None))


@pytest.mark.slow
def test_noise_in_a_direction_is_that_of_the_released_matrix(whitened: ReleaseBundle) -> None:
    found, root, matrix = directions(whitened), whitened.root, whitened.repaired
    assert found is not None
    assert root is not None
    radius = whitened.manifest.radius
    assert radius is not None
    means = matrix[0, 1:] / matrix[0, 0]
    about = matrix[1:, 1:] - matrix[0, 0] * np.outer(means, means)
    values, vectors = np.linalg.eigh(about)
    assert found.variance == pytest.approx(values[::-1] * radius**2, rel=1e-9)
    stream, sd = np.random.default_rng(1), whitened.manifest.noise.sd_off_diagonal
    for k in (0, P - 1):
        v = np.append(-means @ vectors[:, -1 - k], vectors[:, -1 - k])
        drawn = [v @ root @ goe(stream, P + 1, sd) @ root.T @ v for _ in range(4000)]
        assert found.noise[k] == pytest.approx(radius**2 * np.std(drawn), rel=0.06)
    # The direction that varies least has far less noise than without a metric.
    assert found.noise[-1] < 0.15 * found.plain
    assert found.seen == (P, P - 1)


@pytest.mark.slow
def test_report_shows_the_directions_of_a_whitened_release(whitened: ReleaseBundle) -> None:
    page = release_page(whitened, [])
    assert len(page.split("<svg")) == 1 + len(
        release_page(without_metric(whitened), []).split("<svg")
    )
    assert all(f"<code>{name}</code>" in page for name in ("pilot", "metric", "whitened"))


@pytest.mark.slow
def test_report_says_that_no_metric_was_worth_it(whitened: ReleaseBundle) -> None:
    plain = without_metric(whitened)
    assert directions(plain) is None
    page = release_page(plain, [])
    assert "<h2>Directions</h2>" in page
    assert "<code>whitened</code>" not in page


def test_spectrum_is_that_of_the_matrix_as_drawn(whitened: ReleaseBundle) -> None:
    """Spherical noise has known eigenvalues in the metric, and not in scaled columns."""
    found = spectrum_of(whitened)
    assert found.released == pytest.approx(np.linalg.eigvalsh(whitened.drawn)[::-1], rel=1e-9)
    assert found.above_noise >= P


@pytest.mark.slow
def test_card_and_commands_state_the_metric(
    archive: Path, whitened: ReleaseBundle, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = whitened.manifest
    assert facts.scaling is not None
    assert f"{facts.scaling.metric_radius:g}" in facts.card["pre_processing"]
    assert "pilot" in facts.card["mechanism"]
    assert "metric" in noise_description(facts)
    words = ("show", "toy/v1-r1", "--archive", archive)
    shown = run_json(*words, capsys=capsys)
    assert shown["scaling"]["metric_radius"] == facts.scaling.metric_radius
    text = " ".join(run_command(*words, capsys=capsys)[1].split())
    assert "directions" in text
    # The noise is stated in the units of the second moment.
    assert f"sd {whitened.evidence.law.sd_off_diagonal:.3g} off the diagonal" in text
