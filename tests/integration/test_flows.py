"""The flows on a real Prefect server: what they run, and what they store."""

from __future__ import annotations

import copyreg
import datetime
import itertools
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from prefect import Task
from prefect.cache_policies import INPUTS
from prefect.client.schemas.objects import FlowRun
from prefect.settings import get_current_settings

from gramercy.archive.store.opening import open_archive
from gramercy.common.home import Home
from gramercy.ledger import Ledger
from gramercy.pipeline.verify.verification import verify_release
from gramercy.schemas import families
from gramercy.schemas.errors import GramercyError, RequestError
from gramercy.tasks.history import ledger_tag
from gramercy.tasks.policy import private_flow, private_task, typed_errors_only
from tests.support.factories import bundle_bytes, read_registered, write_request
from tests.support.histogram_tables import marginals_request
from tests.support.leaks import prefect_results, prefect_texts
from tests.support.problems import raises

pytestmark = pytest.mark.usefixtures("prefect_server")

SECRET = 271828.182845
NAME = "Mnemosyne-0"


def tag_of_ledger() -> str:
    return ledger_tag(Ledger.of(Home.default()).head().ledger)


def last_run(flow: str) -> FlowRun:
    """The last run of a flow."""
    from prefect import get_client
    from prefect.client.schemas.filters import FlowFilter, FlowFilterName
    from prefect.client.schemas.sorting import FlowRunSort

    with get_client(sync_client=True) as client:
        last = client.read_flow_runs(
            flow_filter=FlowFilter(name=FlowFilterName(any_=[flow])),
            sort=FlowRunSort.START_TIME_DESC,
            limit=1,
        )
    return last[0]


def tags_of(flow: str) -> set[str]:
    """Tags of the last run of a flow."""
    return set(last_run(flow).tags)


@pytest.mark.slow
def test_a_series_publishes_its_missing_steps_in_order(tmp_path: Path, home: Path) -> None:
    """One pass over the table gives the sums of all of them."""
    from gramercy.flows.release import release

    days = [f"2026-{month:02}-{day}" for month in (1, 2, 3) for day in range(10, 28)]
    table = pd.DataFrame({"c0": np.arange(len(days)) / 20, "c1": 1.0, "visited": days})
    table.to_csv(tmp_path / "table.csv", index=False)
    request = read_registered(
        write_request(
            tmp_path,
            request={"version": "{period}", "cumulative": "month", "period": "2026-Q1-03"},
            columns={name: {"lower": -5.0, "upper": 5.0} for name in ("c0", "c1")},
            budget={"epsilon": 3.0, "delta": 1e-5, "per": "quarter"},
            neighbours="add-remove",
            period={"column": "visited"},
        )
    )
    names = [f"toy/2026-Q1-0{k}-r1" for k in (1, 2, 3)]
    assert release(request) == names
    assert {f"release:{name}" for name in names} <= tags_of("release")
    ledger = Ledger.of(Home.default())
    assert [each.version for each in ledger.charges("toy")] == [
        "2026-Q1-01",
        "2026-Q1-02",
        "2026-Q1-03",
    ]
    assert release(request) == names[-1:]
    assert len(ledger.charges("toy")) == 3


def test_runs_are_named_by_data_set_and_version(tmp_path: Path) -> None:
    from gramercy.flows.audit import audit
    from gramercy.flows.estimate import estimate
    from gramercy.flows.release import release
    from gramercy.flows.report import report

    request = read_registered(write_request(tmp_path, request={"version": "%Y-%m"}))
    at = datetime.datetime(2026, 11, 23, tzinfo=datetime.UTC)
    with pytest.MonkeyPatch.context() as patch:
        for function in ("scheduled_time", "utc_now"):
            patch.setattr(f"gramercy.flows.release.{function}", lambda: at)
        (made,) = release(request)
    assert last_run("release").name == "toy 2026-11"
    for flow in (estimate, report):
        flow(made, ())
        assert last_run(flow.__name__).name == "toy 2026-11-r1"
    audit()
    assert last_run("audit").name.startswith("audit 20")


def test_runs_that_fail_early_are_found_by_their_data_set(tmp_path: Path) -> None:
    from gramercy.flows.release import release

    late = read_registered(write_request(tmp_path, request={"version": "v1"}))
    with raises(families.PERIOD, dataset="toy"):
        release(late.model_copy(update={"version": "{period}"}))
    failed = last_run("release")
    assert (failed.name, "dataset:toy" in failed.tags) == ("toy {period}", True)


@pytest.mark.slow
def test_release_then_estimate(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from prefect.artifacts import Artifact

    from gramercy.flows.estimate import estimate
    from gramercy.flows.release import release
    from gramercy.flows.report import report

    request = read_registered(write_request(tmp_path))
    clock = itertools.count(step=1000.0)  # every step seems to take long
    monkeypatch.setattr(
        "gramercy.pipeline.progress.time", SimpleNamespace(monotonic=lambda: next(clock))
    )
    (release_id,) = release(request)
    assert release_id == "toy/v1-r1"
    sealed = bundle_bytes(home / "archive/toy/v1-r1/release")
    assert release(request) == [release_id]
    assert bundle_bytes(home / "archive/toy/v1-r1/release") == sealed

    estimate_names = estimate(release_id, request.estimates)
    bundles = [home / "archive/toy/v1-r1/estimates" / name for name in estimate_names]
    first_bytes = [bundle_bytes(path) for path in bundles]
    assert estimate(release_id, request.estimates) == estimate_names
    assert [bundle_bytes(path) for path in bundles] == first_bytes
    for path in bundles:
        assert np.linalg.eigvalsh(np.load(path / "precision.npy")).min() > 0

    report_id = report(release_id, request.estimates)
    report_folder = home / "archive/toy/v1-r1/reports" / report_id
    report_bytes = bundle_bytes(report_folder)
    assert report(release_id, request.estimates) == report_id
    assert bundle_bytes(report_folder) == report_bytes
    assert report_id in (home / "archive" / release_id / "index.html").read_text()

    # The report omits an estimate that cannot be computed; the run of the estimate states why.
    def refuse(*_: object, **__: object) -> None:
        raise families.NO_MINIMISER("No minimiser.", penalty=0.1, feasible=0.2)

    monkeypatch.setattr("gramercy.estimators.graphical_lasso.graphical_lasso", refuse)
    unsolvable = request.estimates[1].model_copy(update={"input": "raw"})
    with raises(families.ESTIMATES_FAILED, estimates=("graphical-lasso",)) as failed:
        estimate(release_id, (unsolvable,))
    assert families.NO_MINIMISER.code in failed.value.facts["failures"]
    assert report(release_id, (*request.estimates, unsolvable)) == report_id

    assert Artifact.get("rows-toy") is None  # the speed of reading depends on the cells
    artifact = Artifact.get("privacy-toy")
    assert artifact is not None
    logged = {row["parameter"]: row["value"] for row in json.loads(str(artifact.data))}
    manifest = json.loads((home / "archive/toy/v1-r1/release/datapackage.json").read_text())["dp"]
    assert logged["release"] == release_id
    assert float(logged["mu"]) == manifest["guarantee"]["mu"]
    assert float(logged["scale"]) == manifest["calibration"]["constants"]["scale"]
    budget = Artifact.get("budget-toy")
    assert budget is not None
    spending = {row["parameter"]: float(row["value"]) for row in json.loads(str(budget.data))}
    assert spending["spent before"] == 0
    assert 0 < spending["spent after"] < manifest["guarantee"]["epsilon"]  # at a larger delta
    assert spending["remaining after"] < spending["remaining before"]
    noise = Artifact.get("noise-toy")
    assert noise is not None
    assert len(json.loads(str(noise.data))) > 2
    for key, path in (("bundle", "release"), ("report", "report.html")):
        link = Artifact.get(f"{key}-toy")
        assert link is not None
        assert path in str(link.data)
    assert (
        tags_of("release") - {tag_of_ledger()}
        == tags_of("estimate")
        == tags_of("report")
        == {"dataset:toy", "release:toy/v1-r1"}
    )
    text = "\n".join(prefect_texts())
    for step in ("replay", "validate", "accumulate", "publish"):
        assert step in text


@pytest.mark.slow
def test_release_of_marginals_then_report(tmp_path: Path, home: Path) -> None:
    from prefect.artifacts import Artifact

    from gramercy.flows.estimate import estimate
    from gramercy.flows.release import release
    from gramercy.flows.report import report

    request = read_registered(marginals_request(tmp_path, id="histograms"))
    (name,) = release(request)
    assert release(request) == [name]
    assert estimate(name, ()) == []
    made = report(name, ())
    assert (home / "archive" / name / "reports" / made / "report.html").exists()
    artifact = Artifact.get("privacy-histograms")
    assert artifact is not None
    stated = {row["parameter"] for row in json.loads(str(artifact.data))}
    assert {"mu", "scale", "scale_lengths"} <= stated
    assert "sd_diagonal" not in stated
    assert Artifact.get("noise-histograms") is None
    assert Artifact.get("bundle-histograms") is not None


def test_deployments_pass_plain_data(tmp_path: Path) -> None:
    """Parameters are JSON, as from a schedule or the user interface."""
    from gramercy.flows.release import release

    request = read_registered(write_request(tmp_path))
    assert release(request.model_dump(mode="json")) == ["toy/v1-r1"]


def test_refusal_is_typed_and_stores_no_values(tmp_path: Path) -> None:
    from gramercy.flows.release import release

    request = write_request(tmp_path, rows=41)
    frame = pd.read_csv(tmp_path / "table.csv")
    frame.loc[0] = SECRET
    frame.iloc[:40].to_csv(tmp_path / "table.csv", index=False)
    with raises(families.ROW_COUNT, rows=40, declared=41) as caught:
        release(read_registered(request))
    assert tags_of("release") == {"dataset:toy", tag_of_ledger()}
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
    assert not any(str(SECRET) in text for text in prefect_texts())


def test_unknown_failure_shows_only_its_type() -> None:
    @private_task
    def step(value: float) -> float:
        raise ValueError(f"cannot use {value}")

    @private_flow
    def leaky() -> float:
        return step(SECRET)

    @private_flow
    def leaky_itself() -> float:
        raise KeyError(str(SECRET))

    with raises(families.STEP_FAILED, step="step", error="ValueError") as caught:
        leaky()
    assert caught.value.__context__ is None
    with raises(families.STEP_FAILED, step="leaky_itself", error="KeyError"):
        leaky_itself()
    assert not any(str(SECRET) in text for text in prefect_texts())


def test_error_loses_its_context_even_if_dask_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask registers a reducer by which copies of an exception keep their context."""
    tblib = pytest.importorskip("tblib.pickling_support")
    monkeypatch.setitem(copyreg.dispatch_table, RequestError, tblib.pickle_exception)

    @typed_errors_only
    def step() -> None:
        try:
            raise ValueError(SECRET)
        except ValueError:
            raise families.USAGE("Not text.") from None

    with raises(families.USAGE) as caught:
        step()
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


def test_private_task_keeps_its_policy_under_options() -> None:
    @private_task
    def double(value: float) -> float:
        return 2 * value

    renamed = double.with_options(name="twice", tags=["x"])

    @private_flow
    def runs() -> list[float]:
        return [double(SECRET), renamed(SECRET), renamed.submit(SECRET).result()]

    assert isinstance(renamed, Task)
    assert (renamed.name, renamed.tags) == ("twice", {"x"})
    assert double.fn(2.0) == 4.0
    assert runs() == [2 * SECRET] * 3
    for task in (double, renamed):
        assert (task.persist_result, task.retries, task.log_prints) == (False, 0, False)
        for option in ({"retries": 1}, {"persist_result": True}, {"cache_policy": INPUTS}):
            with pytest.raises(TypeError):
                task.with_options(**option)
        with pytest.raises(TypeError):
            task.map([1.0])
        with pytest.raises(TypeError):
            task.delay(1.0)
    assert not any(str(SECRET) in text or str(2 * SECRET) in text for text in prefect_texts())


def test_leak_search_finds_a_stored_result() -> None:
    """The search of the other tests finds a task that stores its result."""
    from prefect import flow, task

    @task(persist_result=True, result_storage_key="leak")
    def leak() -> np.ndarray:
        return np.full(3, SECRET)

    @flow
    def leaking() -> None:
        leak()

    leaking()
    arrays = [x for x in prefect_results() if isinstance(x, np.ndarray)]
    assert len(arrays) == 1
    for file in Path(get_current_settings().results.local_storage_path).rglob("*leak*"):
        file.unlink()


@pytest.mark.slow
@pytest.mark.parametrize("persons", [None, 8])
def test_private_values_are_not_stored_or_published(
    tmp_path: Path, home: Path, persons: int | None
) -> None:
    """The digits of a cell and the name of a person are neither stored nor published."""
    from gramercy.flows.release import release

    request = write_request(
        tmp_path, **({"privacy_unit": "who", "persons": persons} if persons else {})
    )
    frame = pd.read_csv(tmp_path / "table.csv")
    frame.loc[3, "c1"] = SECRET
    frame["who"] = [NAME.replace("0", str(k % 8)) for k in range(len(frame))]
    frame.to_csv(tmp_path / "table.csv", index=False)
    abandoned = home / "tables" / "copy.0123"  # of a database, by a process that was killed
    abandoned.mkdir(parents=True)
    (abandoned / "table.parquet").write_text(str(SECRET))
    (done,) = release(read_registered(request))
    release_id = done.removeprefix("toy/")
    assert not verify_release(open_archive(home / "archive"), "toy", release_id, None).unchecked
    assert all(isinstance(each, GramercyError) for each in prefect_results())
    for secret in (str(SECRET), NAME[:-1]):
        for file in home.rglob("*"):
            assert not file.is_file() or secret.encode() not in file.read_bytes(), file
        assert not any(secret in text for text in prefect_texts())
