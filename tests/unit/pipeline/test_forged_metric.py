"""Releases in the metric of a pilot matrix: everything that is forged and sealed again is refused.

Everything that does not follow from the forged number is left as it was, and the description lists
the files as they are.
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from gramercy.archive.bundles.bundle_kinds import (
    METRIC,
    PILOT,
    WHITENED,
    ReleaseBundle,
    read_release,
    stems,
    write_release,
)
from gramercy.archive.seal.bundle import SEAL, seal
from gramercy.pipeline.context import Context
from gramercy.pipeline.verify.verification import verify_release
from gramercy.schemas.errors import GramercyError
from gramercy.schemas.evidence import Histogram
from gramercy.schemas.manifest import ReleaseManifest
from tests.support.factories import home_at, run_release, write_request

pytestmark = pytest.mark.slow

Array = NDArray[np.float64]
ROWS, COLUMNS = 4_000, 6
MATRIX, LISTED, BINS = "second_moment", "datapackage.json", "marginals.parquet"
DENOISED, PROJECTED = f"{MATRIX}_denoised", f"{MATRIX}_projected"


@dataclass
class Content:
    """What is in the files of a release."""

    manifest: ReleaseManifest
    matrices: dict[str, Array]  # by file stem
    histograms: list[Histogram]

    @classmethod
    def of(cls, bundle: ReleaseBundle) -> Content:
        assert bundle.whitening is not None
        assert bundle.denoised is not None
        matrices = [bundle.raw, bundle.projected, bundle.denoised, *bundle.further.values()]
        matrices += [bundle.whitening.pilot, bundle.whitening.metric]
        matrices += [] if bundle.root is None else [bundle.drawn]
        named = dict(zip(stems(bundle.manifest), matrices, strict=True))
        return cls(bundle.manifest, named, [*bundle.histograms])

    def write(self, place: Path) -> None:
        """Into an empty folder, and seal it."""
        write_release(place, self.manifest, [*self.matrices.values()], self.histograms)
        seal(place)

    def scaling(self, **facts: Any) -> None:
        assert self.manifest.scaling is not None
        scaling = self.manifest.scaling.model_copy(update=facts)
        self.manifest = self.manifest.model_copy(update={"scaling": scaling})


def series(rows: int, seed: int, correlation: float) -> pd.DataFrame:
    root = np.linalg.cholesky(correlation ** np.abs(np.subtract.outer(*[range(COLUMNS)] * 2)))
    cells = np.random.default_rng(seed).normal(size=(rows, COLUMNS)) @ root.T
    return pd.DataFrame(cells, columns=[f"c{k}" for k in range(COLUMNS)])


def published(folder: Path, seed: int, correlation: float = 0.9, **facts: Any) -> Path:
    folder.mkdir(parents=True)
    series(ROWS, seed, correlation).to_csv(folder / "table.csv", index=False)
    mechanism = {"name": "gaussian", "epsilon": 8.0, "delta": 1e-6}
    request = {"scaling": "private", "mechanism": mechanism, "estimates": []}
    columns = {f"c{k}": {"lower": -8.0, "upper": 8.0} for k in range(COLUMNS)}
    defaults = {"rows": ROWS, "columns": columns, "intercept": True}
    budget = {"epsilon": 80.0, "delta": 1e-5}
    name = run_release(write_request(folder, request=request, budget=budget, **defaults | facts))
    return Context.default().archive.release("toy", name)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Releases in a metric, of two tables, under both relations; and one that stays plain."""
    folder = tmp_path_factory.mktemp("releases")
    kinds: dict[str, dict[str, Any]] = {
        "own": {"seed": 1},
        "other": {"seed": 2, "correlation": 0.5},
        "add-remove": {"seed": 1, "neighbours": "add-remove"},
    }
    made = dict[str, Path]()
    for kind, facts in kinds.items():
        with home_at(folder / kind / "home"):
            made[kind] = published(folder / kind / "files", **facts)
            bundle = read_release(made[kind])
            assert bundle.root is not None
    return made


@pytest.fixture
def other(places: dict[str, Path]) -> Content:
    return Content.of(read_release(places["other"]))


def scaled(stem: str, factor: float) -> Callable[[Content, Content], None]:
    def forge(own: Content, _: Content) -> None:
        own.matrices[stem] = own.matrices[stem] * factor

    return forge


def exchanged(*chosen: str) -> Callable[[Content, Content], None]:
    def forge(own: Content, other: Content) -> None:
        own.matrices |= {stem: other.matrices[stem] for stem in chosen}

    return forge


def entry(stem: str, change: float) -> Callable[[Content, Content], None]:
    def forge(own: Content, _: Content) -> None:
        own.matrices[stem] = own.matrices[stem].copy()
        own.matrices[stem][1, 2] += change
        own.matrices[stem][2, 1] += change

    return forge


def constant(stem: str, value: float) -> Callable[[Content, Content], None]:
    return lambda own, _: own.matrices.update({stem: np.full_like(own.matrices[stem], value)})


def diagonal(stem: str, value: float) -> Callable[[Content, Content], None]:
    return lambda own, _: own.matrices.update({stem: value * np.eye(len(own.matrices[stem]))})


def lengths(which: int, **facts: Any) -> Callable[[Content, Content], None]:
    def forge(own: Content, _: Content) -> None:
        histogram = own.histograms[which]
        changed = {name: change(getattr(histogram, name)) for name, change in facts.items()}
        own.histograms[which] = replace(histogram, **changed)

    return forge


def counts_of_scaled_rows(own: Content, _: Content) -> None:
    scaled_rows, turned = own.histograms[-2:]
    counts = np.zeros_like(turned.count)
    counts[: scaled_rows.count.size] = scaled_rows.count[: counts.size]
    own.histograms[-1] = replace(turned, count=counts)


def other_radius(own: Content, _: Content) -> None:
    assert own.manifest.metric_radius is not None
    own.scaling(metric_radius=1.1 * own.manifest.metric_radius)


def stays_plain(own: Content, _: Content) -> None:
    own.scaling(metric_radius=None)
    del own.matrices[WHITENED]


def half_a_unit(own: Content, other: Content) -> None:
    """Of the whole numbers in which the metric is exact."""
    entry(METRIC, 2.0**-40)(own, other)


def moved(edges: Array) -> Array:
    changed = edges.copy()
    changed[2] *= 1 + 1e-5
    return changed


def moved_ends(edges: Array) -> Array:
    changed = edges.copy()
    changed[1] *= 1 + 1e-5
    return changed


FORGERIES: dict[str, tuple[Callable[[Content, Content], None], set[str]]] = {
    "pilot of zeros": (scaled(PILOT, 0.0), {METRIC, PILOT}),
    "scaled pilot": (scaled(PILOT, 2.0), {METRIC, PILOT}),
    "pilot of another table": (exchanged(PILOT), {METRIC, PILOT}),
    "pilot off its lattice": (entry(PILOT, 1e-9), {PILOT}),
    "huge pilot": (constant(PILOT, 1e308), {PILOT}),
    "metric of another table": (exchanged(METRIC), {METRIC}),
    "pilot and metric of another table": (exchanged(PILOT, METRIC), {METRIC}),
    "scaled metric": (scaled(METRIC, 2.0), {METRIC}),
    "identity as the metric": (diagonal(METRIC, 1.0), {METRIC}),
    "negative metric": (scaled(METRIC, -1.0), {METRIC}),
    "metric of zeros": (scaled(METRIC, 0.0), {METRIC}),
    "singular metric": (constant(METRIC, 0.5), {METRIC}),
    "huge metric": (diagonal(METRIC, 1e300), {METRIC}),
    "tiny metric": (diagonal(METRIC, 1e-300), {METRIC}),
    "metric of other digits": (half_a_unit, {METRIC}),
    "metric that is nearly the same": (entry(METRIC, 2.0**-20), {METRIC}),
    "scaled whitened": (scaled(WHITENED, 0.5), {WHITENED}),
    "whitened of zeros": (scaled(WHITENED, 0.0), {WHITENED}),
    "whitened of another table": (exchanged(WHITENED), {WHITENED}),
    "whitened off its lattice": (entry(WHITENED, 1e-11), {WHITENED}),
    "huge whitened": (constant(WHITENED, 1e308), {WHITENED}),
    "matrix that does not follow": (entry(MATRIX, 1e-4), {MATRIX}),
    "huge matrix": (constant(MATRIX, 1e308), {MATRIX}),
    "denoised that does not follow": (entry(DENOISED, 1e-4), {DENOISED}),
    "projected that does not follow": (entry(PROJECTED, 1e-4), {PROJECTED}),
    "huge lost": (constant("lost_moments", 1e308), {"lost_moments"}),
    "lost of zeros": (scaled("lost_moments", 0.0), {"lost_moments"}),
    "other radius": (other_radius, {LISTED}),
    "huge radius": (lambda own, _: own.scaling(metric_radius=1e300), {METRIC}),
    "tiny radius": (lambda own, _: own.scaling(metric_radius=1e-300), {LISTED}),
    "no radius": (stays_plain, {LISTED}),
    "other share of the pilot": (lambda own, _: own.scaling(pilot=0.05), {LISTED}),
    "other share of its lengths": (lambda own, _: own.scaling(turned=0.05), {LISTED}),
    "longer rows": (lengths(-1, count=lambda each: np.roll(each, 2)), {LISTED}),
    "lengths of scaled rows": (counts_of_scaled_rows, {LISTED}),
    "noise of lengths": (lengths(-1, sd=lambda sd: 1.5 * sd), {BINS}),
    "edges of lengths": (lengths(-1, lower=moved, upper=moved_ends), {BINS}),
}


def files_of(error: GramercyError) -> set[str]:
    """The stems of the files that an error names, in its facts or in those of its details."""
    facts = [fact for each in (error, *error.details) for fact in each.facts.values()]
    names = {Path(str(fact)).name for fact in facts}
    return {name if name in (LISTED, BINS) else name.split(".")[0] for name in names}


@pytest.mark.parametrize("kind", ["own", "add-remove"])
@pytest.mark.parametrize("forgery", list(FORGERIES))
def test_forged_metrics_are_refused(
    kind: str, forgery: str, places: dict[str, Path], other: Content, monkeypatch: Any
) -> None:
    place, (forge, named) = places[kind], FORGERIES[forgery]
    monkeypatch.setenv("GRAMERCY_HOME", str(place.parents[3]))
    bundle, archive = read_release(place), Context.default().archive
    content, genuine = Content.of(bundle), place.with_name("genuine")
    forge(content, other)
    place.rename(genuine)
    try:
        place.mkdir()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            content.write(place)
            with suppress(GramercyError):  # opened without verification
                assert np.isfinite(read_release(place).evidence.deviations).all()
            with pytest.raises(GramercyError) as caught:
                verify_release(archive, "toy", place.parent.name, None)
        assert named <= files_of(caught.value), caught.value
        assert "reason" not in caught.value.facts  # nothing that was not expected
    finally:
        shutil.rmtree(place)
        genuine.rename(place)


def test_rewritten_release_is_verified(places: dict[str, Path], monkeypatch: Any) -> None:
    place = places["own"]
    monkeypatch.setenv("GRAMERCY_HOME", str(place.parents[3]))
    content = Content.of(read_release(place))
    for path in place.iterdir():
        path.chmod(0o644)
        path.unlink()
    content.write(place)
    assert {path.name for path in place.iterdir()} >= SEAL
    verify_release(Context.default().archive, "toy", place.parent.name, None)
