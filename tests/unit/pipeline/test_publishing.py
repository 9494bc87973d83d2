"""A release is the second moment plus the stated noise; it is sealed once, and private."""

from __future__ import annotations

import json
import os
import re
import stat
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gramercy.api.catalogue import Catalogue
from gramercy.archive.bundles.bundle_kinds import read_release
from gramercy.archive.store.opening import Witness, open_archive
from gramercy.archive.store.storage import FolderStore
from gramercy.common.disk import make_folder
from gramercy.common.home import Home
from gramercy.estimators.ridge import Ridge
from gramercy.ledger import Charge, Ledger
from gramercy.mechanisms.accounting.gdp import gdp_mu
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.gaussian import Gaussian
from gramercy.mechanisms.mechanism import COUNT_WEIGHT
from gramercy.pipeline.catalogue.catalogue_pages import write_site
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.budget_preview import Decision, decide
from gramercy.pipeline.plan.calibration import guarantee_facts
from gramercy.pipeline.plan.checking import check_table, check_table_header
from gramercy.pipeline.progress import (
    PROGRESS_VARIABLE,
    announce_step,
    rows_bar,
    steps_bar,
)
from gramercy.pipeline.publish.attachments import fit, seal_once, withdraw
from gramercy.pipeline.verify.auditing import check_ledger, new_audit_folder
from gramercy.pipeline.verify.verification import verify_release
from gramercy.schemas import families
from gramercy.schemas.errors import TableError
from gramercy.schemas.ledger_history import ChargeState
from tests.support.factories import (
    as_flow_step,
    contract_facts,
    read_plan,
    run_pipeline,
    run_release,
    write_request,
    write_table,
    write_yaml,
)
from tests.support.problems import raises

ROWS, P = 3000, 40
NORMALISATIONS = {"unit": "unit", "clip": {"kind": "clip", "radius": 5.0}}


def exact_gram(folder: Path, how: str) -> np.ndarray:
    """The exact Gram matrix, computed by numpy from the table and the public constants."""
    scaled = pd.read_csv(folder / "table.csv").to_numpy().clip(-5, 5) / 5
    norms = np.linalg.norm(scaled, axis=1, keepdims=True)
    rows = scaled / norms if how == "unit" else scaled * np.minimum(1, 5 / norms) / 5
    return rows.T @ rows


@pytest.mark.slow
@pytest.mark.parametrize("how", list(NORMALISATIONS))
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_released_noise_has_the_stated_law(
    neighbours: str, how: str, tmp_path: Path, home: Path
) -> None:
    write_table(tmp_path / "table.csv", ROWS, P)
    facts = contract_facts(rows=ROWS if neighbours == "replace-one" else 2000, p=P)
    request = {"normalisation": NORMALISATIONS[how]}
    run_release(write_request(tmp_path, request=request, **facts | {"neighbours": neighbours}))

    release = Catalogue(home / "archive")["toy/v1-r1"]
    law, rows = release.noise, release.manifest.rows
    assert rows.status == ("public" if neighbours == "replace-one" else "noisy")
    assert abs(rows.value - ROWS) <= 5 * rows.sd + 1e-9
    noise = release.second_moment.to_numpy() - exact_gram(tmp_path, how) / rows.value
    off = noise[np.triu_indices(P, 1)] / law.sd_off_diagonal
    on = np.diag(noise) / law.sd_diagonal
    # 780 and 40 standard normal values, if the noise has the stated law.
    assert abs(off.var() - 1) < 5.5 * np.sqrt(2 / off.size)
    assert 0.25 < on.var() < 2.5
    assert abs(off.mean()) < 5.5 / np.sqrt(off.size)

    scale = release.manifest.calibration.constants["scale"]
    assert law.sd_diagonal == pytest.approx(scale / rows.value, rel=2e-3)
    assert law.sd_off_diagonal == pytest.approx(law.sd_diagonal / np.sqrt(2), rel=1e-12)
    denoised = release.denoised.to_numpy()
    truth = exact_gram(tmp_path, how) / ROWS
    assert np.linalg.norm(denoised - truth) < np.linalg.norm(release.second_moment - truth)
    archive, ledger = open_archive(home / "archive"), Ledger(Home.default().ledger)
    assert len(verify_release(archive, "toy", "v1-r1", ledger).checks) == 9


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("wrong", [0.7, 1.0, 1.3])
def test_noise_has_the_stated_scale(neighbours: str, wrong: float) -> None:
    """The check passes at the true scale, and fails if the scale is wrong by 30 %."""
    p = 150
    made = Gaussian.calibrated(
        p=p, n=1000, neighbours=neighbours, epsilon=1.0, delta=1e-6, publishes_noisy_count=True
    )
    scaled = replace(made, scale=made.scale * wrong)
    zero = np.zeros((p, p), dtype=np.int64)
    noise = scaled.perturb(zero, 0).gram / scaled.lattice.divisor
    law = made.law
    off = noise[np.triu_indices(p, 1)] / law.sd_off_diagonal
    on = np.diag(noise) / law.sd_diagonal
    close = abs(off.var() - 1) < 0.06 and abs(on.var() - 1) < 0.55
    assert close == (wrong == 1.0)


def test_noisy_row_count_raises_the_noise_scale() -> None:
    arguments = {"p": 5, "n": 1000, "neighbours": "add-remove", "epsilon": 1.0, "delta": 1e-6}
    plain, counted = (
        Gaussian.calibrated(**arguments),
        Gaussian.calibrated(**arguments, publishes_noisy_count=True),
    )
    assert counted.scale / plain.scale == pytest.approx(np.sqrt(1 + COUNT_WEIGHT**2), rel=1e-12)
    assert counted.guarantee.epsilon(1e-6) <= 1
    zero = np.zeros((5, 5), dtype=np.int64)
    counts = [counted.perturb(zero, 1000).rows for _ in range(400)]
    assert np.std(counts) == pytest.approx(counted.scale / COUNT_WEIGHT, rel=0.2)
    assert plain.perturb(zero, 1000).rows is None


def test_bundles_of_two_tables_differ_only_by_noise(tmp_path: Path, home: Path) -> None:
    """Publish two tables with one request: only the noise and what depends on it differ."""
    public = []
    for seed in (1, 2):
        folder = tmp_path / str(seed)
        folder.mkdir()
        write_table(folder / "table.csv", seed=seed)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("GRAMERCY_HOME", str(folder / "home"))
            run_release(write_request(folder))
        text = (folder / "home/archive/toy/v1-r1/release/datapackage.json").read_text()
        facts = json.loads(text)
        for resource in facts["resources"]:
            if resource["path"].startswith("second_moment"):
                resource.pop("hash")
                resource.pop("bytes", None)
        # Each home has its own ledger, whose entries are salted.
        assert facts["dp"]["ledger"].pop("ledger") != facts["dp"]["ledger"].pop("hash")
        public.append(facts)
        assert str(folder) not in text
    assert public[0] == public[1]


@pytest.mark.slow
def test_row_counts_stay_private_under_add_remove(tmp_path: Path, home: Path) -> None:
    """The true row count is neither published nor compared with the contract's."""
    run_release(write_request(tmp_path, neighbours="add-remove", rows=31))
    manifest = Catalogue(home / "archive")["toy/v1-r1"].manifest
    assert manifest.rows.value != 40
    assert manifest.rows.sd > 1


@pytest.mark.slow
def test_terms_are_checked_before_the_table_is_read(tmp_path: Path) -> None:
    run_release(write_request(tmp_path))
    (tmp_path / "table.csv").unlink()
    with raises(families.TERMS, dataset="toy", terms=("budget.epsilon",)):
        run_release(write_request(tmp_path, budget={"epsilon": 9.0, "delta": 1e-5}))


@pytest.mark.slow
def test_budget_is_checked_before_the_table_is_read(tmp_path: Path, home: Path) -> None:
    run_release(write_request(tmp_path, budget={"epsilon": 1.0, "delta": 1.2e-6}))
    (tmp_path / "table.csv").unlink()
    request = write_request(
        tmp_path, request={"version": "v2"}, budget={"epsilon": 1.0, "delta": 1.2e-6}
    )
    (tmp_path / "table.csv").unlink()
    with raises(families.EXCEEDED):
        run_release(request)
    assert [p.name for p in (home / "archive/toy").iterdir()] == ["v1-r1"]


@pytest.mark.slow
def test_contracts_in_the_home_are_found_by_id(tmp_path: Path, home: Path) -> None:
    write_request(tmp_path)
    (home / "contracts").mkdir(parents=True)
    text = (tmp_path / "contract.yaml").read_text()
    named = text.replace("table.csv", str(tmp_path / "table.csv"))
    (home / "contracts/toy.yaml").write_text(named)
    (home / "contracts/other.yaml").write_text(named)
    assert run_release(write_request(tmp_path, request={"dataset": "toy"})) == "v1-r1"
    with raises(families.REQUEST_FILE, dataset="other", id="toy"):
        run_release(write_request(tmp_path, request={"dataset": "other"}))


def test_headerless_csv_does_not_leak_first_row(tmp_path: Path) -> None:
    """Without a header, the first row is read as the header; errors must not quote it."""
    write_request(tmp_path)
    plan = read_plan(tmp_path / "request.yaml")
    for first in ("63.12345678,1,2.5", "63.12345678,63.12345678,2.5"):
        (tmp_path / "table.csv").write_text(first + "\n1,2,3\n")
        with pytest.raises(TableError) as caught:
            as_flow_step(check_table_header)(plan.contract)
        assert "63.1" not in str(caught.value)
        assert caught.value.facts["file"].endswith("table.csv")


@pytest.mark.slow
def test_cell_values_never_refuse_a_release(tmp_path: Path) -> None:
    """Invalid cells are counted for the steward, and never stop the release."""
    (tmp_path / "table.csv").write_text("c0,c1,c2\n1e999,x,\n-1e9,nan,2\n" + "?,,\n" * 38)
    plan = read_plan(write_request(tmp_path))
    checked = check_table(plan.contract).columns
    assert [column.missing for column in checked] == [39, 40, 39]
    assert [column.clamped for column in checked] == [1, 0, 0]
    assert run_release(tmp_path / "request.yaml") == "v1-r1"


@pytest.mark.slow
def test_indefinite_estimate_is_refused(tmp_path: Path, home: Path) -> None:
    run_release(write_request(tmp_path))
    bundle = read_release(home / "archive/toy/v1-r1/release")
    indefinite = replace(bundle, raw=np.diag([1.0, 0.5, -1.0]))
    with raises(families.ESTIMATE, estimator="ridge"):
        fit(indefinite, Ridge(penalty=1e-320, input="raw"))
    assert fit(indefinite, Ridge(penalty=1e-3, input="raw"))[0].tuning == {"penalty": 1e-3}


@pytest.mark.slow
def test_abandoned_staging_folder_is_removed(tmp_path: Path, home: Path) -> None:
    left = home / "archive/.staging/toy.left"
    other = home / "archive/.staging/other.busy"
    for folder in (left, other):
        folder.mkdir(parents=True)
    run_release(write_request(tmp_path))
    assert not left.exists()
    assert other.exists()


def test_an_existing_bundle_is_found_without_its_lock(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder of locks may be read-only, and a lock may be held for an hour."""
    context = Context.default()
    place = context.archive.estimate("toy", "v1-r1", "ridge-1")
    with seal_once(context, place) as staged:
        assert staged is not None
        (staged / "a.csv").write_text("1\n")
    (lock,) = context.home.locks.iterdir()
    before = lock.stat().st_mtime_ns
    monkeypatch.setattr("gramercy.common.process_lock.FileLock", None)
    with seal_once(context, place) as staged:
        assert staged is None
    assert lock.stat().st_mtime_ns == before


@dataclass(frozen=True)
class _CountedStore(FolderStore):
    """The store of a witness, which counts how often each file is read."""

    reads: Counter[str] = field(default_factory=Counter)

    def names(self, under: str = "") -> list[str]:
        self.reads["names"] += 1
        return super().names(under)

    def read(self, name: str, most: int | None = None) -> bytes | None:
        self.reads[name] += 1
        return super().read(name, most)


@pytest.mark.slow
def test_the_witness_is_read_once(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAMERCY_WITNESS_URL", str(tmp_path / "witness"))
    run_release(write_request(tmp_path))
    context, store = Context.default(), _CountedStore(tmp_path / "witness")
    witness = Witness(store, context.home.keys)
    check = check_ledger(context.ledger, context.archive, [], witness)
    assert not check.problems
    assert check.anchors["witness"] == 2
    assert len(store.reads) == 3
    assert set(store.reads.values()) == {1}


@pytest.fixture
def open_umask() -> Iterator[None]:
    earlier = os.umask(0)
    yield
    os.umask(earlier)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.mark.usefixtures("open_umask")
def test_home_and_archive(home: Path, tmp_path: Path) -> None:
    run_pipeline(write_request(tmp_path, request={"estimates": [{"name": "ridge"}]}))
    withdraw(Context.default(), "toy", "v1-r1", "a mistake")
    write_site(Context.default())
    make_folder(new_audit_folder(Context.default().home), 0o700)
    assert mode(home) == 0o700
    paths = [path for path in home.rglob("*") if not path.is_symlink()]
    writable = [path for path in paths if mode(path) & (stat.S_IWGRP | stat.S_IWOTH)]
    assert len(paths) > 20
    assert writable == []
    readable = [path for path in (home / "archive").rglob("*") if ".staging" not in path.parts]
    folders = {mode(path) for path in readable if path.is_dir() and ".ledger" not in path.parts}
    assert folders == {0o755}


@pytest.mark.usefixtures("open_umask")
def test_parents_of_a_private_folder_are_private(tmp_path: Path) -> None:
    make_folder(tmp_path / "a/b", 0o700)
    assert [mode(tmp_path / "a"), mode(tmp_path / "a/b")] == [0o700, 0o700]


def test_an_existing_folder_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir(mode=0o750)
    make_folder(tmp_path / "a", 0o700)
    assert mode(tmp_path / "a") == 0o750


DELTA = 1e-6
ASKED = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0)


def test_calibrated_noise_states_the_epsilon_that_was_asked_for() -> None:
    exact = [Guarantee(gdp_mu(epsilon, DELTA)) for epsilon in ASKED]
    assert any(each.epsilon(DELTA) != asked for each, asked in zip(exact, ASKED, strict=True))
    for each, asked in zip(exact, ASKED, strict=True):
        assert guarantee_facts(each, DELTA, asked).epsilon == asked
        assert each.delta(asked) <= DELTA


def test_an_epsilon_that_does_not_hold_is_not_stated() -> None:
    asked = 4.0
    weaker = Guarantee(gdp_mu(asked, DELTA) * (1 + 1e-13))
    assert weaker.delta(asked) > DELTA
    assert guarantee_facts(weaker, DELTA, asked).epsilon > asked


def test_more_noise_than_asked_for_states_its_own_epsilon() -> None:
    stronger = Guarantee(gdp_mu(4.0, DELTA) * (1 - 1e-6))
    assert guarantee_facts(stronger, DELTA, 4.0).epsilon == stronger.epsilon(DELTA) < 4.0


@pytest.mark.parametrize("request_keys", [{}, {"scaling": "private"}], ids=["declared", "private"])
def test_plans_state_the_epsilon_that_was_asked_for(
    request_keys: dict[str, Any], tmp_path: Path
) -> None:
    mechanism = {"name": "gaussian", "epsilon": 16.0, "delta": DELTA}
    normalisation = {"kind": "clip"} if request_keys else {"kind": "unit"}
    keys = {"mechanism": mechanism, "normalisation": normalisation, **request_keys}
    plan = read_plan(write_request(tmp_path, request=keys, intercept=True, rows=9_000))
    assert plan.guarantee.epsilon(DELTA) < 16.0
    assert plan.facts()["epsilon"] == 16.0


SECONDS = re.compile(r"\d+\.\d+")


@pytest.mark.parametrize("variable", ["", "FORCE_COLOR", "TTY_COMPATIBLE"])
def test_files_get_neither_counts_nor_durations(
    variable: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if variable:
        monkeypatch.setenv(variable, "1")
    with rows_bar("summing", 3000) as on_rows:
        on_rows(2917)
    with steps_bar("drawing") as on_steps:
        on_steps(1, 2)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setenv(PROGRESS_VARIABLE, "1")
    with announce_step("accumulate"):
        pass
    out, err = capsys.readouterr()
    assert "accumulate" in err
    assert not out
    assert not SECONDS.search(err)


@pytest.mark.usefixtures("on_terminal")
def test_terminals_get_counts_and_durations(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(PROGRESS_VARIABLE, "1")
    with announce_step("accumulate"), rows_bar("summing", 3000) as on_rows:
        on_rows(2917)
    err = capsys.readouterr().err
    assert "2917/3000" in err
    assert SECONDS.search(err)


def without_key(folder: Path, version: str) -> Path:
    """A request whose contract does not state the intercept."""
    request = write_request(folder, request={"version": version, "estimates": []})
    facts = contract_facts()
    del facts["intercept"]
    write_yaml(folder / "contract.yaml", facts)
    return request


def test_new_data_sets_have_an_intercept(tmp_path: Path) -> None:
    plan = read_plan(without_key(tmp_path, "v1"))
    assert plan.contract.intercept
    assert plan.columns == 4


@pytest.mark.slow
def test_stated_intercept_that_differs_from_the_registered_one_is_refused(tmp_path: Path) -> None:
    run_release(write_request(tmp_path, intercept=False, request={"estimates": []}))
    with raises(families.TERMS, terms=("intercept",)):
        run_release(
            write_request(tmp_path, intercept=True, request={"version": "v2", "estimates": []})
        )


@pytest.mark.parametrize(
    ("state", "repeated", "renewed"),
    [
        ("reserved", Decision.REFUSE, Decision.CHARGE),
        ("drawn", Decision.REFUSE, Decision.CHARGE),
        ("sealed", Decision.FINISH, Decision.FINISH),
        ("published", Decision.ANSWER, Decision.ANSWER),
        ("spent", Decision.REFUSE, Decision.CHARGE),
        ("withdrawn", Decision.REFUSE, Decision.CHARGE),
    ],
)
def test_charge_decides_what_a_request_leads_to(
    home: Path, tmp_path: Path, state: str, repeated: Decision, renewed: Decision
) -> None:
    plan = read_plan(write_request(tmp_path))
    charge = Charge("v1-r1", "v1", "", plan.guarantee, "", "", ChargeState(state))
    assert decide(plan, None) is Decision.CHARGE
    for new_charge, decision in ((None, repeated), ("v1-r0", repeated), ("v1-r1", renewed)):
        request = plan.request.model_copy(update={"new_charge": new_charge})
        assert decide(replace(plan, request=request), charge) is decision
