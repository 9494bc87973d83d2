"""``gramercy export``: registry entries and data packages, as other tools read them."""

from __future__ import annotations

import csv
import errno
import json
import os
import re
import shutil
import signal
import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from ruamel.yaml import YAML

from gramercy.api.release import Release
from gramercy.archive.bundles.bundle_kinds import read_release
from gramercy.archive.export.registry_entry import RegistryAnswers, entry_text, registry_entry
from gramercy.archive.store.opening import archive_of
from gramercy.cli import export as exports
from gramercy.common.home import Home
from gramercy.ledger import Ledger
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.pipeline.context import Context
from gramercy.pipeline.publish.attachments import withdraw
from gramercy.schemas import families
from gramercy.schemas.budget import Budget
from gramercy.schemas.deployments_registry import RegistryEntry
from gramercy.schemas.ledger_history import ChargeState
from gramercy.schemas.problem import Family
from tests.support.conformance import CASES
from tests.support.factories import (
    MECHANISM,
    contract_facts,
    run_command,
    run_json,
    run_pipeline,
    run_release,
    write_request,
)
from tests.support.ledgers import charge, contract
from tests.support.public_formats import croissant_errors, registry_errors

with warnings.catch_warnings():
    # Importing frictionless causes warnings of its dependencies; it reports problems by value.
    warnings.simplefilter("ignore", DeprecationWarning)
    import frictionless

STATED = ("--curator-type", "Nonprofit", "--region", "NO")
TIER_3 = """
    dp_variant: data_domain unprotected_quantities
    privacy_loss: privacy_unit_details number_of_privacy_units privacy_parameters_details
    deployment_model: trust_assumptions access_type_details
    implementation: preprocessing_and_hyperparameter_tuning mechanisms composition
        post_processing justification utility additional_information
"""


def publish_with(name: str, folder: Path) -> Path:
    """Publish a release with this mechanism."""
    case = CASES[name]
    mechanism: dict[str, Any] = {"name": name, "epsilon": 1.0, **case.keys}
    if not case.pure:
        mechanism["delta"] = 1e-6
    columns = contract_facts()["columns"]
    if case.normalisation == "whole":
        columns = {k: {"lower": -5.0, "upper": 5.0, "centre": 0, "scale": 1} for k in columns}
    request = {"mechanism": mechanism, "normalisation": case.normalisation, "estimates": []}
    budget = {"epsilon": 9.0, "delta": 1e-5}
    given = {"columns": columns, "budget": budget, "neighbours": case.neighbours[-1]}
    name = run_release(write_request(folder, request=request, **given))
    return Context.default().archive.release("toy", name)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_registry_entry_of_every_mechanism(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = publish_with(name, tmp_path)
    assert package_errors(place / "datapackage.json") == []
    facts = read_release(place).manifest
    folder = tmp_path / "entries"
    done = run_json(
        "export", "--registry", folder, *STATED, "--sector", "Healthcare", capsys=capsys
    )
    (path,) = map(Path, done["registry"])
    assert re.fullmatch(r"[a-z0-9_]+\.yaml", path.name)
    entry = yaml.safe_load(path.read_text(encoding="utf-8"))  # YAML 1.1, as the registry reads it
    assert entry == YAML(typ="safe", pure=True).load(path)
    RegistryEntry.model_validate_json(json.dumps(entry))
    assert registry_errors(entry) == []
    deployment = entry["deployment"]
    assert list(deployment) == list(
        RegistryEntry.model_fields["deployment"].annotation.model_fields
    )  # type: ignore[union-attr]
    loss, guarantee = deployment["privacy_loss"], facts.guarantee
    stated = loss["privacy_parameters"]
    if CASES[name].pure:
        assert deployment["dp_variant"]["variant_name"] == "Pure DP"
        assert stated.keys() == {"epsilon"}
        assert guarantee.pure_epsilon is not None
        assert guarantee.pure_epsilon <= stated["epsilon"] <= guarantee.pure_epsilon * (1 + 1e-5)
    else:
        assert deployment["dp_variant"]["variant_name"] == "Approximate DP"
        assert stated["delta"] == guarantee.delta == 1e-6
        assert guarantee.epsilon <= stated["epsilon"] <= guarantee.epsilon * (1 + 1e-5)
    assert deployment["deployment_model"]["model_name"] == (
        "Local" if name == "local" else "Central"
    )
    rows = facts.kind in {"rows", "reports"}
    kind = "Dataset" if rows else "Summary statistics"
    assert deployment["basic"]["data_product_type"] == kind
    assert deployment["basic"]["publication_date"] == facts.published
    assert deployment["basic"]["data_product_region"] == "NO"  # the region NO is not read as False
    public = "the number of rows" in deployment["dp_variant"]["unprotected_quantities"]
    assert public == (facts.neighbours == "replace-one")
    if public:
        assert loss["number_of_privacy_units"] == 40
    assert deployment["administrative"] == {
        "status": "Draft",
        "registry_authors": ["A curator"],
        "tier": 3,
    }
    for part, keys in yaml.safe_load(TIER_3).items():
        assert all(deployment[part][key] for key in keys.split())


@pytest.mark.slow
def test_text_survives_a_yaml_round_trip(tmp_path: Path) -> None:
    name = run_release(write_request(tmp_path, title="yes", curator="1e3 # *x*: |"))
    read = read_release(Context.default().archive.release("toy", name))
    stated = RegistryAnswers("Government", "2026-01-01\nnull", None, ("~", "007"))
    entry = registry_entry(read.manifest, read.sha256, stated, None)
    for parsed in (yaml.safe_load(entry_text(entry)), YAML(typ="safe").load(entry_text(entry))):
        basic = parsed["deployment"]["basic"]
        assert basic["name"] == "yes, version v1"
        assert basic["data_curators"][0]["data_curator_name"] == "1e3 # *x*: |"
        assert basic["data_product_region"] == "2026-01-01\nnull"
        assert parsed["deployment"]["administrative"]["registry_authors"] == ["~", "007"]


@pytest.mark.slow
def test_export_checks_its_options_before_writing(
    tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, full = tmp_path / "entries", tmp_path / "full"
    empty = run_command("export", "--registry", folder, *STATED, capsys=capsys)
    assert (empty[0], families.UNKNOWN_RELEASE.code in empty[2]) == (2, True)
    run_release(write_request(tmp_path))
    full.mkdir()
    (full / "mine.txt").write_text("mine")
    both = ("--registry", folder, "--package")
    refused: list[tuple[tuple[object, ...], Family[Any], dict[str, Any]]] = [
        ((), families.EXPORT, {}),
        (("--registry", folder), families.EXPORT, {"option": "--curator-type"}),
        (("--registry", folder, *STATED[:2]), families.EXPORT, {"option": "--region"}),
        (
            ("--registry", folder, "--curator-type", "Club"),
            families.USAGE,
            {"option": "--curator-type", "choices": ["Government", "Industry", "Nonprofit"]},
        ),
        (
            ("--registry", folder, *STATED, "--sector", "Cheese"),
            families.USAGE,
            {"option": "--sector", "value": "Cheese"},
        ),
        (("--package", folder, "--archive", tmp_path / "nowhere"), families.NOT_AN_ARCHIVE, {}),
        (("--package", full), families.EXPORT, {"path": str(full)}),
        (("--package", full / "mine.txt/x"), families.OUTPUT, {"option": "--package"}),
        (("--registry", full / "mine.txt", *STATED), families.OUTPUT, {"option": "--registry"}),
        ((*both, folder, *STATED), families.EXPORT, {}),
        ((*both, tmp_path, *STATED), families.EXPORT, {}),
        ((*both, folder / "y/z", *STATED), families.EXPORT, {}),
    ]
    for words, problem, facts in refused:
        code, out, _ = run_command("export", *words, "--json", capsys=capsys)
        error = json.loads(out)
        assert code == 2, words
        assert error["code"] == problem.code, words
        assert facts.items() <= error["facts"].items(), words
    code, _, err = run_command("export", "--registry", folder, *STATED, "other", capsys=capsys)
    assert code == 2
    assert "'other'" in err
    damaged = home / "archive/toy/v1-r1/release/second_moment.csv"
    damaged.chmod(0o644)
    damaged.write_text("0")
    code, _, err = run_command("export", "--package", folder, capsys=capsys)
    assert code == 2
    assert "second_moment.csv" in err
    assert not folder.exists()
    assert [each.name for each in full.iterdir()] == ["mine.txt"]


def package_errors(descriptor: Path) -> list[str]:
    """Errors that frictionless finds in a data package: descriptor, contents, sizes and digests.

    The package is validated twice: as any user does, and with its Parquet files as files, because
    frictionless checks no digest of a Parquet file that it reads as a table.
    """
    facts = json.loads(descriptor.read_text(encoding="utf-8"))
    as_files = [
        {k: each[k] for k in ("name", "path", "hash")} | {"type": "file"}
        for each in facts["resources"]
        if each["format"] == "parquet"
    ]
    errors = [error.message for error in frictionless.Package.metadata_validate(facts)]
    reports = [frictionless.validate(str(descriptor))]
    if as_files:
        package = frictionless.Package.from_descriptor(
            {"resources": as_files}, basepath=str(descriptor.parent)
        )
        reports.append(package.validate())
    for report, entries in zip(reports, (facts["resources"], as_files), strict=False):
        assert [task.name for task in report.tasks] == [each["name"] for each in entries]
        errors += [error.message for error in report.errors]
        errors += [
            f"{task.name}: {text}"
            for task in report.tasks
            for text in [*task.warnings, *(error.message for error in task.errors)]
        ]
    return errors


@pytest.mark.slow
def test_every_bundle_is_a_valid_data_package(tmp_path: Path, home: Path) -> None:
    columns = contract_facts()["columns"] | {"ward": {"levels": ["A", "B"]}}
    write_request(tmp_path)
    frame = pd.read_csv(tmp_path / "table.csv").assign(ward=["A", "B"] * 20)
    frame.to_csv(tmp_path / "table.csv", index=False)
    names = ("ridge", "graphical-lasso", "neighbourhood", "thresholded", "intervals", "discoveries")
    estimates = [{"name": name} for name in names] + [{"name": "discriminant", "classes": "ward"}]
    ample = {"mechanism": MECHANISM | {"epsilon": 50.0}, "estimates": estimates, "folds": 2}
    budget = {"epsilon": 90.0, "delta": 1e-5}
    request = write_request(tmp_path, request=ample, columns=columns, intercept=True, budget=budget)
    folder = run_pipeline(request)
    withdraw(Context.default(), "toy", "v1-r1", "a column was shifted")
    descriptors = sorted(folder.rglob("datapackage.json"))
    assert len(descriptors) == 1 + len(estimates) + 1 + 1  # release, estimates, report, notice
    for descriptor in descriptors:
        assert package_errors(descriptor) == [], descriptor
    # The check detects a changed file.
    moment = folder / "release/second_moment.parquet"
    moment.chmod(0o644)
    moment.write_bytes(moment.read_bytes()[:-1] + b"\0")
    assert any("hash" in each for each in package_errors(folder / "release/datapackage.json"))


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.slow
def test_catalogue_is_exported_as_a_data_package(
    tmp_path: Path, any_home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    for version in ("v1", "V.2"):
        run_release(
            write_request(tmp_path, request={"version": version}, title='A "toy", of course')
        )
    withdraw(Context.default(), "toy", "V.2-r1", "a column was shifted")
    ledger = Ledger.of(any_home)
    failed = ledger.charge(
        contract(title='A "toy", of course'), "v3", "request", Guarantee(0.1, 2e-7), "of the files"
    )
    ledger.mark("toy", failed.release, ChargeState.SPENT, reason="the disk was full")
    ledger.change_budget("toy", Budget(epsilon=3.0, delta=1e-7), "fewer failures", lower=True)
    charge(ledger, "v1", terms=contract(id="unpublished-study"))
    folder = tmp_path / "package"
    done = run_json("export", "--package", folder, capsys=capsys)
    assert done["package"] == str(folder / "datapackage.json")
    assert package_errors(folder / "datapackage.json") == []

    withdrawn_release, published_release = rows(folder / "releases.csv")
    keys = ("release", "state", "reason")
    expected = ["toy/V.2-r1", "withdrawn", "a column was shifted"]
    assert [withdrawn_release[key] for key in keys] == expected
    assert [published_release[key] for key in keys] == ["toy/v1-r1", "published", ""]
    assert published_release["withdrawn"] == ""
    release = Release(archive_of(any_home), "toy", "v1-r1")
    assert float(published_release["mu"]) == release.guarantee.mu
    assert published_release["title"] == 'A "toy", of course'
    matrix = release.path / "second_moment.parquet"
    assert (folder / published_release["matrix"]).read_bytes() == matrix.read_bytes()
    assert published_release["sha256"] == read_release(release.path).sha256
    budgets = rows(folder / "budgets.csv")
    assert [each["what"] for each in budgets] == ["registered", *["charged"] * 3, "lowered"]
    assert [each["release"] for each in budgets[1:4]] == ["toy/v1-r1", "toy/V.2-r1", "toy/v3-r1"]
    assert budgets[3]["state"] == "spent"
    assert float(budgets[2]["spent_epsilon"]) > float(budgets[1]["spent_epsilon"]) > 0
    assert budgets[-1]["spent_epsilon"] == "INF"
    content = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    for private in (b"of the files", b"unpublished-study", b"fewer failures"):
        assert private not in content
    assert all(re.fullmatch(r"\d{4}-\d{2}-\d{2}", each["at"]) for each in budgets)
    assert [each["reason"] for each in budgets] == [
        *("", "", "a column was shifted", "the disk was full", "")
    ]
    (charged, *_) = ledger.charges("toy")
    assert charged.fingerprint.encode() not in content
    described = json.loads((folder / "datapackage.json").read_text())
    paths = {each["path"] for each in described["resources"]}
    paths |= {"datapackage.json", "croissant.json"}
    files = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}
    assert paths == files

    assert croissant_errors(folder / "croissant.json") == []
    croissant = json.loads((folder / "croissant.json").read_text(encoding="utf-8"))
    assert {each["@id"] for each in croissant["distribution"]} == paths - {
        *("datapackage.json", "croissant.json")
    }
    assert croissant["datePublished"] == release.manifest.published
    statements = croissant["rai:personalSensitiveInformation"]
    assert f"toy/v1-r1: {release.manifest.card['statement']}" in statements
    assert "toy/V.2-r1 is withdrawn: a column was shifted" in croissant["rai:dataLimitations"]

    twice, again = tmp_path / "twice", tmp_path / "again"
    run_json("export", "--package", twice, capsys=capsys)
    assert all((twice / name).read_bytes() == (folder / name).read_bytes() for name in files)
    run_json("export", "toy/v1-r1", "--package", again, capsys=capsys)
    assert [each["release"] for each in rows(again / "releases.csv")] == ["toy/v1-r1"]
    # The check detects a changed state.
    text = (folder / "releases.csv").read_text()
    (folder / "releases.csv").write_text(text.replace(",withdrawn,20", ",forgotten,20"))
    assert any("enum" in each for each in package_errors(folder / "datapackage.json"))
    assert "releases.csv: sha256" in croissant_errors(folder / "croissant.json")


@pytest.mark.slow
def test_interrupted_package_export_leaves_nothing(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_release(write_request(tmp_path))
    folder = tmp_path / "packages/one"

    def fill_disk(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    for stop, code in ((fill_disk, 2), (interrupt, 130)):
        with monkeypatch.context() as disk:
            disk.setattr(shutil, "copyfile", stop)
            done, _, err = run_command("export", "--package", folder, capsys=capsys)
        assert done == code
        assert list(folder.parent.iterdir()) == []
        assert code != 2 or families.OUTPUT.code in err
    folder.mkdir()  # an existing empty folder may be used
    run_json("export", "--package", folder, capsys=capsys)
    assert [each.name for each in folder.parent.iterdir()] == ["one"]
    assert package_errors(folder / "datapackage.json") == []


@pytest.mark.slow
def test_registry_entry_with_epsilon_zero(
    tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hardly = {"name": "gaussian", "mu": 0.001, "delta": 0.01}
    budget = {"epsilon": 50.0, "delta": 0.01}
    run_release(write_request(tmp_path, request={"mechanism": hardly}, budget=budget))
    done = run_json("export", "--registry", tmp_path / "entries", *STATED, capsys=capsys)
    parsed = yaml.safe_load(Path(done["registry"][0]).read_text(encoding="utf-8"))
    stated = parsed["deployment"]["privacy_loss"]["privacy_parameters"]
    assert stated == {"epsilon": 0.0, "delta": 0.01}


@pytest.mark.slow
def test_export_of_a_foreign_archive(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_release(write_request(tmp_path))
    withdraw(Context.default(), "toy", "v1-r1", "a column was shifted.")
    charge(Ledger.of(Home.default()), "v2")
    key = next((home / "keys").glob("*.pub"))
    monkeypatch.setenv("GRAMERCY_HOME", str(tmp_path / "another"))
    folder, entries = tmp_path / "package", tmp_path / "entries"
    entries.mkdir()
    (entries / "another.yaml").write_text("kept")
    arguments = ("--archive", home / "archive", "--package", folder, "--registry", entries, *STATED)
    done = run_json("export", *arguments, "--key", key, "--author", "An Auditor", capsys=capsys)
    assert done["releases"] == ["toy/v1-r1"]
    assert not (folder / "budgets.csv").exists()  # without a ledger, budgets are unknown
    assert package_errors(folder / "datapackage.json") == []
    deployment = yaml.safe_load((entries / "toy__v1_r1.yaml").read_text())["deployment"]
    assert deployment["basic"]["name"] == "A toy, version v1 (withdrawn)"
    assert deployment["basic"]["description"].startswith("Withdrawn by its curator on 2")
    assert "a column was shifted. " in deployment["basic"]["description"]
    assert deployment["administrative"]["registry_authors"] == ["An Auditor"]
    assert (entries / "another.yaml").read_text() == "kept"
    assert not (tmp_path / "another").exists()


def test_what_a_killed_export_has_left_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(folder: Path, *rest: object) -> None:
        (folder / "datapackage.json").write_text("{}")
        os.kill(os.getpid(), signal.SIGKILL)

    pid = os.fork()
    if pid == 0:
        monkeypatch.setattr(exports, "write_collection", killed)
        exports.write_package(tmp_path / "package", [], None)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    assert not (tmp_path / "package").exists()
    monkeypatch.setattr(exports, "write_collection", lambda folder, *rest: None)
    exports.write_package(tmp_path / "package", [], None)
    assert [each.name for each in tmp_path.iterdir()] == ["package"]
