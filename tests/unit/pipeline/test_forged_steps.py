"""Steps of a cumulative series: everything that is forged and sealed again is refused.

Everything that does not follow from the forged fact is left as it was, and the description lists
the files as they are.
"""

from __future__ import annotations

import datetime
import math
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from gramercy.archive.bundles.bundle_kinds import (
    METRIC,
    WHITENED,
    ReleaseBundle,
    read_release,
    stems,
    write_release,
)
from gramercy.archive.bundles.encoded_file import ENCODED, Encoded, decode, write_encoded
from gramercy.archive.bundles.number_files import GroupMatrices
from gramercy.archive.seal.bundle import seal
from gramercy.common.prefix_sums import UNIT, PrefixSums
from gramercy.estimators.noise.denoise import denoise, project
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.calibration import calibrate
from gramercy.pipeline.publish.attachments import withdraw
from gramercy.pipeline.verify.verification import verify_release
from gramercy.schemas import families
from gramercy.schemas.errors import GramercyError
from gramercy.schemas.manifest import ReleaseManifest
from gramercy.schemas.steps import Cumulative
from tests.support.cumulative import QUARTERLY, draw_again, publish_steps, seed_noise, write_visits
from tests.support.factories import contract_facts, home_at, run_release, write_request
from tests.support.problems import like, raises

pytestmark = pytest.mark.slow

Array = NDArray[np.float64]
ROWS = 20_000
LISTED, MATRIX = "datapackage.json", "second_moment.npy"
DRAWN = "the matrix as drawn"
GROUPED = {"columns": contract_facts(p=3)["columns"] | {"ward": {"levels": [1, 2]}}}
KINDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "count": ({}, {}),
    "trace": ({}, {"normalisation": {"kind": "unit"}}),
    "public": ({"neighbours": "replace-one"}, {}),
    "groups": (GROUPED, {"by": "ward"}),
    "metric": (
        {"rows": ROWS, "budget": {"epsilon": 9.0, "delta": 1e-5, "per": "quarter"}},
        {"scaling": {"from": "2026-Q1-r1"}, "normalisation": "clip"},
    ),
}


CONSTANTS = {
    "version": "2026-Q1",
    "scaling": "private",
    "mechanism": {"name": "gaussian", "epsilon": 2.0, "delta": 1e-6},
    "estimates": [],
}


@dataclass
class Content:
    """What is in the files of a step."""

    manifest: ReleaseManifest
    matrices: dict[str, Array]  # by file stem
    groups: list[GroupMatrices]
    encoded: list[Encoded]

    @classmethod
    def of(cls, bundle: ReleaseBundle) -> Content:
        assert bundle.denoised is not None
        matrices = [bundle.raw, bundle.projected, bundle.denoised]
        if bundle.whitening is not None:
            assert bundle.whitening.drawn is not None
            matrices += [bundle.whitening.metric, bundle.whitening.drawn]
        named = dict(zip(stems(bundle.manifest), matrices, strict=True))
        return cls(bundle.manifest, named, [*bundle.groups], [*bundle.encoded])

    def write(self, place: Path) -> None:
        """Into an empty folder, and seal it."""
        write_encoded(place, self.manifest, self.encoded)
        write_release(place, self.manifest, [*self.matrices.values()], (), self.groups)
        seal(place)

    def facts(self, **facts: Any) -> None:
        self.manifest = self.manifest.model_copy(update=facts)

    def series(self, **facts: Any) -> None:
        self.facts(cumulative=series_of(self.manifest).model_copy(update=facts))


def series_of(manifest: ReleaseManifest) -> Any:
    assert manifest.cumulative is not None
    return manifest.cumulative


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    """The three steps of a series of each kind, and of another one like the first."""
    folder, made = tmp_path_factory.mktemp("series"), dict[str, list[Path]]()
    for kind, (contract, request) in {**KINDS, "other": KINDS["count"]}.items():
        files = folder / kind / "files"
        files.mkdir(parents=True)
        with home_at(folder / kind / "home"), pytest.MonkeyPatch.context() as patch:
            seed_noise(patch)  # which decides whether the metric is used
            archive = Context.default().archive
            if kind == "metric":  # in which the rows of all steps are clipped
                write_visits(files / "table.csv", ROWS)
                run_release(write_request(files, request=CONSTANTS, **QUARTERLY | contract))
            names = publish_steps(files, contract, request)
            made[kind] = [archive.release("toy", name) for name in names]
    return made


def use(places: list[Path], patch: pytest.MonkeyPatch) -> None:
    """Use the home of a series."""
    patch.setenv("GRAMERCY_HOME", str(places[0].parents[3]))


def verified(place: Path) -> Any:
    return verify_release(Context.default().archive, "toy", place.parent.name, None)


@pytest.mark.parametrize("kind", list(KINDS))
def test_honest_steps_are_verified(
    kind: str, steps: dict[str, list[Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    use(steps[kind], monkeypatch)
    for number, place in enumerate(steps[kind], 1):
        result = verified(place)
        assert f"sum: decoded again from {number} steps" in result.checks
        assert not result.unchecked


Forgery = Callable[[Content, list[Content]], None]


def entry(i: int, j: int, change: int) -> Forgery:
    """Change an entry of what the step published."""

    def forge(own: Content, _: list[Content]) -> None:
        matrix = own.encoded[0].matrix.copy()
        matrix[i, j] += change
        matrix[j, i] = matrix[i, j]
        own.encoded[0] = replace(own.encoded[0], matrix=matrix)

    return forge


def count(change: int) -> Forgery:
    def forge(own: Content, _: list[Content]) -> None:
        rows = own.encoded[0].rows
        assert rows is not None
        own.encoded[0] = replace(own.encoded[0], rows=rows + change)

    return forge


def series(change: Callable[[Any], dict[str, Any]]) -> Forgery:
    return lambda own, _: own.series(**change(series_of(own.manifest)))


def later(facts: Any) -> dict[str, Any]:
    day = datetime.timedelta(days=1)
    return {"starts": tuple(start + day for start in facts.starts)}


def weeks(own: Content, _: list[Content]) -> None:
    days = Cumulative(every="week").series("quarter", "2026-Q1")
    own.series(every="week", starts=days.starts)


def exchanged_sum(own: Content, others: list[Content]) -> None:
    own.matrices = others[1].matrices


def exchanged_numbers(own: Content, others: list[Content]) -> None:
    own.encoded = others[1].encoded


def other_version(own: Content, _: list[Content]) -> None:
    own.facts(dataset=own.manifest.dataset.model_copy(update={"version": "2026-Q1-02"}))


def scaled(name: str) -> Forgery:
    def forge(own: Content, _: list[Content]) -> None:
        noise = own.manifest.noise
        own.facts(noise=noise.model_copy(update={name: 0.9 * getattr(noise, name)}))

    return forge


def half_mu(own: Content, _: list[Content]) -> None:
    mu = own.manifest.guarantee.mu / 2
    own.facts(guarantee=own.manifest.guarantee.model_copy(update={"mu": mu}))


def other_mechanism(own: Content, _: list[Content]) -> None:
    own.facts(mechanism=own.manifest.mechanism | {"name": "gaussian-iid"})


def pure_mechanism(own: Content, _: list[Content]) -> None:
    own.facts(mechanism={"name": "laplace", "epsilon": 2.0})


def other_metric(own: Content, _: list[Content]) -> None:
    """And what is mapped back from it."""
    for stem in stems(own.manifest):
        if stem == METRIC:
            own.matrices[stem] = 2.0 * own.matrices[stem]
        elif stem != WHITENED:
            own.matrices[stem] = own.matrices[stem] / 4.0


def other_radius(own: Content, _: list[Content]) -> None:
    scaling = own.manifest.scaling
    assert scaling is not None
    assert scaling.metric_radius is not None
    radius = 1.1 * scaling.metric_radius
    own.facts(scaling=scaling.model_copy(update={"metric_radius": radius}))


def scaled_units(own: Content, _: list[Content]) -> None:
    own.matrices["second_moment"] = 1.01 * own.matrices["second_moment"]


FORGERIES: dict[str, tuple[Forgery, str]] = {
    "weights": (series(lambda f: {"weights": (*f.weights[:-1], f.weights[-1] + 1)}), LISTED),
    "fewer weights": (series(lambda f: {"weights": f.weights[:-1]}), LISTED),
    "starts": (series(later), LISTED),
    "another number of steps": (series(lambda f: {"starts": f.starts[:-1]}), LISTED),
    "weeks": (weeks, LISTED),
    "years": (series(lambda f: {"every": "quarter"}), LISTED),
    "step": (series(lambda f: {"step": f.step - 1}), LISTED),
    "version": (other_version, LISTED),
    "draws": (series(lambda f: {"draws": (2, *f.draws[1:])}), LISTED),
    "fewer draws": (series(lambda f: {"draws": f.draws[:-1]}), LISTED),
    "no draws": (series(lambda f: {"draws": ()}), LISTED),
    "order of the steps": (series(lambda f: {"earlier": f.earlier[::-1]}), LISTED),
    "a step twice": (series(lambda f: {"earlier": (f.earlier[0],) * 2}), LISTED),
    "a step left out": (series(lambda f: {"earlier": f.earlier[1:]}), LISTED),
    "digest of a step": (
        series(
            lambda f: {
                "earlier": (f.earlier[0].model_copy(update={"sha256": "0" * 64}), f.earlier[1])
            }
        ),
        LISTED,
    ),
    "no series": (lambda own, _: own.facts(cumulative=None), LISTED),
    "mu": (half_mu, LISTED),
    "noise": (scaled("sd_diagonal"), LISTED),
    "noise off the diagonal": (scaled("sd_off_diagonal"), LISTED),
    "noise of another law": (other_mechanism, LISTED),
    "mechanism without a series": (pure_mechanism, LISTED),
    "an entry": (entry(0, 1, 1 << 30), DRAWN),
    "an entry on the diagonal": (entry(1, 1, -(1 << 30)), DRAWN),
    "numbers of another step": (exchanged_numbers, DRAWN),
    "sum of another step": (exchanged_sum, DRAWN),
}
OF_KINDS: dict[str, list[tuple[str, Forgery, str]]] = {
    "count": [("count", count(1 << 13), LISTED)],
    "trace": [],
    "public": [
        ("rows", series(lambda f: {"rows": (f.rows[0] + 1, f.rows[1] - 1, f.rows[2])}), LISTED),
        ("no rows", series(lambda f: {"rows": ()}), LISTED),
        ("more rows", series(lambda f: {"rows": (*f.rows[:2], f.rows[2] + 1)}), LISTED),
    ],
    "groups": [("count", count(1 << 13), LISTED)],
    "metric": [
        ("count", count(1 << 13), LISTED),
        ("metric", other_metric, f"{METRIC}.npy"),
        ("radius in the metric", other_radius, LISTED),
        ("matrix in scaled units", scaled_units, MATRIX),
    ],
}
CASES = [(kind, name, *FORGERIES[name]) for kind in KINDS for name in FORGERIES]
CASES += [(kind, *each) for kind, cases in OF_KINDS.items() for each in cases]


def files_of(error: GramercyError) -> set[str]:
    """Names of the files in the facts of an error, or in those of its details."""
    facts = [fact for each in (error, *error.details) for fact in each.facts.values()]
    return {Path(str(fact)).name for fact in facts}


@pytest.mark.parametrize(
    ("kind", "forge", "named"),
    [(kind, forge, named) for kind, _, forge, named in CASES],
    ids=[f"{kind}, {name}" for kind, name, *_ in CASES],
)
def test_forged_steps_are_refused(
    kind: str,
    forge: Forgery,
    named: str,
    steps: dict[str, list[Path]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use(steps[kind], monkeypatch)
    contents = [Content.of(read_release(place)) for place in steps[kind]]
    place, own = steps[kind][-1], contents[-1]
    forge(own, contents)
    genuine = place.with_name("genuine")
    place.rename(genuine)
    try:
        place.mkdir()
        own.write(place)
        with pytest.raises(GramercyError) as caught:
            verified(place)
    finally:
        shutil.rmtree(place)
        genuine.rename(place)
    if named == DRAWN:
        named = f"{WHITENED}.npy" if kind == "metric" else MATRIX
    assert files_of(caught.value) & {named, Path(named).with_suffix(".parquet").name}, caught.value
    assert "reason" not in caught.value.facts  # nothing that was not expected


def write_again(content: Content, place: Path) -> None:
    """Write a step in the place of another one."""
    for path in place.iterdir():
        path.chmod(0o644)
        path.unlink()
    content.write(place)


@pytest.fixture
def copied(
    steps: dict[str, list[Path]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[Path]:
    """The steps of a series in a copy of their home."""
    home = steps["count"][0].parents[3]
    shutil.copytree(home, tmp_path / "home")
    monkeypatch.setenv("GRAMERCY_HOME", str(tmp_path / "home"))
    return [tmp_path / "home" / place.relative_to(home) for place in steps["count"]]


def test_rewritten_step_is_verified(copied: list[Path]) -> None:
    write_again(Content.of(read_release(copied[2])), copied[2])
    verified(copied[2])


@pytest.mark.parametrize("change", ["exchanged", "altered"])
def test_another_earlier_step_is_named(
    change: str, copied: list[Path], steps: dict[str, list[Path]]
) -> None:
    if change == "exchanged":  # an intact bundle of this name, of another archive
        shutil.rmtree(copied[0])
        shutil.copytree(steps["other"][0], copied[0])
    else:
        content = Content.of(read_release(copied[0]))
        entry(0, 0, 1)(content, [])
        write_again(content, copied[0])
    name = f"toy/{copied[0].parent.name}"
    for place in copied[1:]:
        with raises(families.REPLACED, path=str(place / LISTED), release=name):
            verified(place)


def test_altered_numbers_that_a_later_step_names_do_not_give_its_sum(copied: list[Path]) -> None:
    first, last = (Content.of(read_release(copied[k])) for k in (0, 2))
    entry(0, 1, 1 << 30)(first, [])
    write_again(first, copied[0])
    sha256 = read_release(copied[0]).sha256
    stated = series_of(last.manifest).earlier
    last.series(earlier=(stated[0].model_copy(update={"sha256": sha256}), stated[1]))
    write_again(last, copied[2])
    # The step between them names the genuine first one.
    with pytest.raises(GramercyError) as caught:
        verified(copied[2])
    assert LISTED in files_of(caught.value)
    middle = Content.of(read_release(copied[1]))
    middle.series(earlier=(stated[0].model_copy(update={"sha256": sha256}),))
    write_again(middle, copied[1])
    sha256s = [read_release(place).sha256 for place in copied[:2]]
    last.series(
        earlier=tuple(
            each.model_copy(update={"sha256": sha256})
            for each, sha256 in zip(stated, sha256s, strict=True)
        )
    )
    write_again(last, copied[2])
    with pytest.raises(GramercyError) as caught:
        verified(copied[2])
    assert MATRIX in files_of(caught.value)
    assert ENCODED in files_of(caught.value)


def test_numbers_that_noise_does_not_explain_are_refused(copied: list[Path]) -> None:
    """Also where the other steps are not there, and the sum cannot be decoded."""
    honest = Content.of(read_release(copied[2]))
    shutil.rmtree(copied[0])
    for forge in (entry(0, 1, 1 << 70), entry(1, 1, -(1 << 60)), count(1 << 60), count(-(1 << 40))):
        content = replace(honest, encoded=[*honest.encoded])
        forge(content, [])
        write_again(content, copied[2])
        with raises(families.CONTRADICTION, path=str(copied[2] / ENCODED)):
            verified(copied[2])


def test_a_step_alone_says_what_was_not_checked(copied: list[Path]) -> None:
    for place in copied[:2]:
        shutil.rmtree(place.parent)
    result = verified(copied[2])
    name = f"toy/{copied[0].parent.name}"
    assert [*result.unchecked] == [like(families.NOT_CHECKED, release=name)]
    assert not any(words.startswith("sum:") for words in result.checks)


def test_steps_that_were_drawn_again_are_verified(tmp_path: Path) -> None:
    """Each states all draws before it, also those of later steps, as the ledger has them."""
    first, second, third = publish_steps(tmp_path, {}, {})
    context, made = Context.default(), dict[str, tuple[int, ...]]()
    withdraw(context, "toy", third, "wrong file")
    third = draw_again(tmp_path, "2026-Q1-03", third)
    made[third] = (1, 1, 2)
    withdraw(context, "toy", second, "wrong file")
    second, withdrawn = draw_again(tmp_path, "2026-Q1-02", second), second
    made[second] = (1, 2, 2)
    for name, draws in made.items():
        facts = read_release(context.archive.release("toy", name)).manifest
        assert series_of(facts).draws == draws
        prefixes = PrefixSums(3)
        growth = prefixes.squared_norm(draws) / prefixes.squared_norm()
        once = read_release(context.archive.release("toy", first)).manifest.guarantee.mu
        assert facts.guarantee.mu == pytest.approx(once * math.sqrt(growth), rel=1e-9)
    total = context.ledger.statement("toy", "2026-Q1").total.mu
    assert total == pytest.approx(facts.guarantee.mu, rel=1e-9)
    for name in (first, second, third):
        result = verify_release(context.archive, "toy", name, context.existing_ledger)
        expected = [like(families.NOT_CHECKED, release=f"toy/{withdrawn}")]
        assert [*result.unchecked] == (expected if name == third else [])


def test_draws_that_the_ledger_has_not_charged_are_refused(tmp_path: Path) -> None:
    """Although the stated guarantee is the one of these draws."""
    first, *_, third = publish_steps(tmp_path, {}, {})
    withdraw(Context.default(), "toy", third, "wrong file")
    third = draw_again(tmp_path, "2026-Q1-03", third)
    context = Context.default()
    place = context.archive.release("toy", third)
    content, once = Content.of(read_release(place)), context.archive.release("toy", first)
    content.series(draws=(1, 1, 1))
    content.facts(guarantee=read_release(once).manifest.guarantee)
    write_again(content, place)
    with pytest.raises(GramercyError) as caught:
        verify_release(context.archive, "toy", third, context.existing_ledger)
    assert caught.value.code == families.CHARGE.code
    assert LISTED in files_of(caught.value)


def changed(number: int, table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """The table at a later reading: rows are deleted, or added late, or cells are recoded."""
    month = table.visited.str[5:7].astype(int)
    if number == 0:
        return table[(month != 1) | (rng.random(len(table)) < 0.1)]
    if number == 1:
        late = table.assign(visited="2026-01-15")
        return pd.concat([table, late, late])
    return table.assign(c0=-3 * table.c0, c1=5.0)


@pytest.mark.parametrize("kind", ["count", "trace", "groups"])
@pytest.mark.parametrize("turn", range(3))
def test_steps_of_tables_that_change_are_verified(kind: str, turn: int, tmp_path: Path) -> None:
    """A row that was added late or deleted has a share in the sum."""
    rng, (contract, request) = np.random.default_rng(turn), KINDS[kind]
    contract = contract | {
        "rows": 5000,
        "budget": {"epsilon": 50.0, "delta": 1e-5, "per": "quarter"},
    }
    request = request | {"mechanism": {"name": "gaussian", "epsilon": 20.0, "delta": 1e-6}}
    write_visits(tmp_path / "table.csv", rows=5000)
    for step in range(1, 4):
        period = {"period": f"2026-Q1-0{step}"}
        (name,) = publish_steps(tmp_path, contract, request | period)
        context = Context.default()
        result = verify_release(context.archive, "toy", name, context.existing_ledger)
        assert not result.unchecked
        table = changed((turn + step) % 3, pd.read_csv(tmp_path / "table.csv"), rng)
        table.to_csv(tmp_path / "table.csv", index=False)


def test_numbers_that_are_not_sums_of_squares_are_refused(copied: list[Path]) -> None:
    """The sum is decoded from them, so that nothing else contradicts them."""
    content = Content.of(read_release(copied[0]))
    mechanism = calibrate(content.manifest).mechanism
    divisor = mechanism.lattice.divisor
    (part,) = content.encoded
    rows = content.manifest.rows.value
    zeros, noise = np.zeros_like(part.matrix), content.manifest.noise.sd_off_diagonal
    large = round(60 * noise * rows * divisor)
    for name, matrix in {
        "without noise": zeros,
        "negative": zeros - UNIT * large * np.eye(len(zeros), dtype=int).astype(object) // 2,
        "longer rows": part.matrix + UNIT * large * np.eye(len(zeros), dtype=int).astype(object),
    }.items():
        sums, _ = decode(PrefixSums(3), mechanism.lattice.divisor, [[replace(part, matrix=matrix)]])
        own = replace(content, encoded=[replace(part, matrix=matrix)])
        raw = sums[0] / content.manifest.rows.value
        law, bound = content.manifest.noise, content.manifest.trace_bound
        denoised = denoise(raw, law, bound, rows, unit=False)
        own.matrices = dict(
            zip(stems(content.manifest), (raw, project(raw, bound), denoised), strict=True)
        )
        write_again(own, copied[0])
        with pytest.raises(GramercyError) as caught:
            verified(copied[0])
        assert ENCODED in files_of(caught.value), name
