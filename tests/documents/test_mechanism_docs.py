"""docs/mechanisms: a page for every mechanism, working snippets, correct numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from gramercy import mechanisms
from gramercy.mechanisms.accounting.gdp import gdp_epsilon, gdp_mu, mu_from_pure_epsilon, zcdp_delta
from gramercy.mechanisms.accounting.wishart_profile import add_remove_profile, replace_one_bound
from gramercy.mechanisms.mechanism import Mechanism, PublicParameters, SensitivityBounds
from gramercy.pipeline.plan.calibration import public_parameters
from gramercy.pipeline.plan.planning import release_spec
from gramercy.pipeline.plan.request_model import Request
from gramercy.schemas.contract import Contract
from gramercy.schemas.neighbours import Neighbours
from tests.proofs.matrix_laplace import least_mu
from tests.support.conformance import CASES, MATRICES
from tests.support.factories import contract_facts

PAGES = Path(__file__).parents[2] / "docs" / "mechanisms"
INDEX = "README"
BOTH: tuple[Neighbours, ...] = ("replace-one", "add-remove")
EPSILONS, DELTA, P, N = (0.5, 1.0, 2.0), 1e-6, 30, 1000


@cache
def text(page: str) -> str:
    path = PAGES / f"{page}.md"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def snippets() -> Iterator[Any]:
    for page in (INDEX, *mechanisms.registry):
        for block in re.findall(r"```yaml\n(mechanism:.*?)```", text(page), flags=re.DOTALL):
            facts = YAML(typ="safe", pure=True).load(block)
            yield pytest.param(page, facts, id=f"{page}-{facts['mechanism']}")


def test_every_mechanism_has_a_page_named_in_the_index() -> None:
    pages = {each.stem for each in PAGES.glob("*.md")}
    assert pages == {INDEX, *mechanisms.registry}
    for name in mechanisms.registry:
        assert text(name).startswith(f"# {name}\n")
        assert f"]({name}.md)" in text(INDEX)


def test_every_mechanism_page_has_a_snippet() -> None:
    shown = {(each.values[0], each.values[1]["mechanism"]["name"]) for each in snippets()}
    assert {(name, name) for name in mechanisms.registry} <= shown


@pytest.mark.parametrize(("page", "facts"), list(snippets()))
def test_snippets_calibrate(page: str, facts: dict[str, Any]) -> None:
    contract = Contract.model_validate(contract_facts())
    request = Request.model_validate({"dataset": "contract.yaml", "version": "v1"} | facts)
    request.check_delta(contract)
    mechanism_class = mechanisms.registry[request.mechanism.name]
    public = public_parameters(release_spec(contract, request))
    mechanism = mechanism_class.from_spec(request.mechanism, public)
    assert mechanism.constants()["scale"] > 0
    assert (mechanism.law.sd_off_diagonal > 0) == (mechanism_class.publishes.has_matrix)
    # The guarantee of wishart takes seconds.
    if request.mechanism.epsilon and mechanism_class.name != "wishart":
        assert mechanism.guarantee.delta(request.mechanism.epsilon) <= request.mechanism.delta


# Tables of the pages, row by row, as they follow from the registry.


def published(name: str, neighbours: Neighbours, epsilon: float, **keys: Any) -> Any:
    keys = {"delta": DELTA} | dict(CASES[name].keys) | keys
    mechanism: Any = mechanisms.registry[name].published(
        p=P, n=N, neighbours=neighbours, epsilon=epsilon, **keys
    )
    return mechanism


def of_cells(name: str, unit: Any, epsilon: float) -> Any:
    """Rows in a box of 30 columns with the values 0 to 10, by the noise published per cell."""
    reach = SensitivityBounds(squared_row=P * 100, squared_cell=100, squared_norm=P * 100)
    mechanism_class = mechanisms.registry[name]
    keys = {"name": name, "calibration": "published", "epsilon": epsilon, "delta": DELTA}
    spec = mechanism_class.spec.model_validate(keys)
    mechanism: Any = mechanism_class.from_spec(
        spec, PublicParameters(P, N, "replace-one", privacy_unit=unit, sensitivity_bounds=reach)
    )
    return mechanism


def by_gdp(mechanism: Mechanism) -> str:
    return f"epsilon {mechanism.guarantee.epsilon(DELTA):.3g}"


def by_zcdp(mechanism: Any, unit: str) -> str:
    reach = (
        mechanism.parameters.sensitivity_bounds.squared_cell
        if unit == "cell"
        else mechanism.parameters.sensitivity_bounds.squared_row
    )
    curve = partial(zcdp_delta, reach / (2 * mechanism.scale**2))
    low, high = 0.0, 64.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if curve(middle) > DELTA else (low, middle)
    return f"epsilon {high:.3g}"


def of_wishart(neighbours: Neighbours, epsilon: float, delta: float) -> str:
    mechanism = published("wishart", neighbours, epsilon, delta=delta)
    profile = replace_one_bound if neighbours == "replace-one" else add_remove_profile
    return f"delta {profile(mechanism.dof - P + 1, mechanism.scale, epsilon):.2g}"


def of_output(epsilon: float) -> str:
    exact = published("output", "replace-one", epsilon, delta=0.0).guarantee
    assert (exact.mu, exact.delta0) == (math.inf, 1.0)
    return f"delta {-math.expm1(-epsilon / math.sqrt(2)):.2g}, charged as 1"


def claims() -> list[tuple[str, str, list[str]]]:
    """Key, relation, and the exact guarantee at each epsilon."""

    def row(key: str, relation: str, guarantee_at: Any) -> tuple[str, str, list[str]]:
        return key, relation, [guarantee_at(epsilon) for epsilon in EPSILONS]

    iid = "gaussian-iid"
    return [
        *(
            row(key, r, lambda e, r=r, w=paper: by_gdp(published(iid, r, e, paper=w)))
            for key, paper in (("M1", "SGZ"), ("M2", "WX"), ("M3", "LW"))
            for r in BOTH
        ),
        *(
            row(
                "M4",
                r,
                lambda e, r=r: (
                    f"epsilon {published('laplace', r, e, delta=0.0).guarantee.pure:.3g}"
                ),
            )
            for r in BOTH
        ),
        row("M5", "both", lambda e: of_wishart("replace-one", e, 0.0)),
        *(row("M6", r, lambda e, r=r: of_wishart(r, e, DELTA)) for r in BOTH),
        row("M7", "replace-one", of_output),
        row("M8", "replace-one", lambda e: by_gdp(published("local", "replace-one", e))),
        row("M9", "one cell", lambda e: by_gdp(of_cells("rows", "cell", e))),
        row("M9", "one row", lambda e: by_gdp(of_cells("rows", "row", e))),
        row("M10", "one cell", lambda e: by_zcdp(of_cells("integer-rows", "cell", e), "cell")),
        row("M10", "one row", lambda e: by_zcdp(of_cells("integer-rows", "row", e), "row")),
    ]


def assert_rows_on_page(table: list[list[str]], page: str) -> None:
    """Check that the cells of every row are in one line of the page."""
    lines = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text(page).splitlines()
        if line.startswith("|")
    ]
    for row in table:
        assert any(
            row[0] == line[0] and all(cell in line[1:] for cell in row[1:]) for line in lines
        ), row


def test_claimed_and_exact_guarantees() -> None:
    rows = claims()
    for key, relation, cells in rows:
        assert_rows_on_page([[key, relation, *cells]], INDEX)
    assert of_wishart("replace-one", 1.0, 0.0) == of_wishart("add-remove", 1.0, 0.0)
    index = text(INDEX).partition("## Claimed against exact")[2]
    table = [line for line in index.splitlines() if re.match(r"\| M\d", line)]
    assert len(table) == len(rows)  # every row is recomputed


def deviations(name: str) -> list[str]:
    """Noise of an off-diagonal entry of the Gram matrix at 30 columns, epsilon 1, delta 1e-6."""
    case, row = CASES[name], [f"[{name}]({name}.md)"]
    for neighbours in BOTH:
        if neighbours not in case.neighbours:
            row.append("-")
            continue
        keys = {"delta": 0.0 if case.pure else DELTA} | dict(case.keys)
        mechanism = mechanisms.registry[name].calibrated(
            p=P, n=N, neighbours=neighbours, epsilon=1.0, **keys
        )
        row.append(f"{mechanism.law.sd_off_diagonal:.3g}")
    return row


@pytest.mark.slow
def test_noise_table_of_all_mechanisms() -> None:
    names = [name for name in MATRICES if name not in {"integer-rows", "output"}]
    assert_rows_on_page([deviations(name) for name in names], INDEX)


def by_columns(p: int) -> list[str]:
    """Deviations off the diagonal of pure mechanisms at epsilon 1, under both relations."""
    row = [f"{p}"]
    for neighbours in BOTH:
        for name in ("laplace", "k-norm", "matrix-laplace"):
            mechanism = mechanisms.registry[name].calibrated(
                p=p, n=10, neighbours=neighbours, epsilon=1.0, **CASES[name].keys
            )
            lattice: Any = mechanism.lattice
            # Without the 0.1 % that the lattice costs.
            off = mechanism.law.sd_off_diagonal * lattice.divisor / lattice.squared_radius
            row.append(f"{off:.3g}")
    return row


def test_pure_noise_table_by_columns() -> None:
    table = [by_columns(p) for p in (2, 3, 4, 10, 30, 100)]
    lines = [line.replace(" ", "") for line in text("matrix-laplace").splitlines()]
    for row in table:
        assert f"|{'|'.join(row)}|" in lines, row
        laplace, k_norm, ours = map(float, row[1:4])
        assert (ours == min(laplace, k_norm, ours)) == (int(row[0]) >= 4)
        assert float(row[6]) == min(map(float, row[4:]))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_k_norm_page_states_the_charge(epsilon: float) -> None:
    mechanism = mechanisms.registry["k-norm"].calibrated(
        p=P, n=N, neighbours="replace-one", epsilon=epsilon, **CASES["k-norm"].keys
    )
    assert f"{mechanism.guarantee.mu / epsilon:.4f} epsilon" in text("k-norm")
    assert mechanism.guarantee.delta0 == 1e-12
    assert mechanism.guarantee.mu < mu_from_pure_epsilon(epsilon) / 15


def test_discrete_gaussian_page_states_the_total_variation() -> None:
    """Its total variation at a shift of one is P[X = 0], above that of N(0, s^2)."""
    for sigma in (0.5, 1.0, 2.0, 5.0, 30.0):
        weights = [math.exp(-(j**2) / (2 * sigma**2)) for j in range(-500, 501)]
        assert 1 / math.fsum(weights) > math.erf(1 / (2 * sigma * math.sqrt(2)))
    assert "0.3989" in text("integer-rows")
    assert "0.3829" in text("integer-rows")


def test_page_states_where_the_classical_scale_fails() -> None:
    """At delta 1e-6, as stated on the page of gaussian-iid."""

    def slack(epsilon: float) -> float:
        mu = epsilon / math.sqrt(2 * math.log(1.25 / DELTA))
        return gdp_epsilon(mu, DELTA) - epsilon

    at = float(
        re.findall(r"fails at delta = 1e-6 from epsilon = ([\d.]+) on", text("gaussian-iid"))[0]
    )
    assert slack(at) > 0 > slack(at - 0.1)
    assert gdp_mu(1.0, 1e-5) * math.sqrt(2 * math.log(1.25e5)) == pytest.approx(1.30, abs=0.005)


@pytest.mark.parametrize(("neighbours", "most"), [("replace-one", 7), ("add-remove", 16)])
def test_pure_noise_is_less_for_few_columns(neighbours: Neighbours, most: int) -> None:
    """Up to the stated number of columns, at epsilon 1 and delta 1e-6."""

    def off(name: str, p: int, **keys: Any) -> float:
        mechanism = mechanisms.registry[name].calibrated(
            p=p, n=N, neighbours=neighbours, epsilon=1.0, **keys
        )
        return mechanism.law.sd_off_diagonal

    for p in (4, most, most + 1, P):
        pure = off("matrix-laplace", p, **CASES["matrix-laplace"].keys)
        assert (pure < off("gaussian", p, delta=DELTA)) == (p <= most)
    assert "up to 7 columns under `replace-one` and up to 16 under `add-remove`" in text(INDEX)
    charged = matrix_laplace(most, neighbours, epsilon=1.0).guarantee.mu
    assert f"{charged:.2f} with {most} " in text(INDEX)
    assert f"{charged / gdp_mu(1.0, DELTA):.1f} times with {most} columns" in text("gaussian")


def matrix_laplace(p: int, neighbours: Neighbours, **keys: Any) -> Any:
    mechanism_class = mechanisms.registry["matrix-laplace"]
    return mechanism_class.calibrated(p=p, n=N, neighbours=neighbours, **keys)


def test_matrix_laplace_mu_table_by_columns() -> None:
    """The mu charged at epsilon 1, and a lower bound of any mu."""
    for p in (1, 2, 3, 5, 10, 20, 30, 100):
        row = [str(p)]
        for rows, neighbours in zip((2 if p > 1 else 1, 1), BOTH, strict=True):
            charged = matrix_laplace(p, neighbours, epsilon=1.0).guarantee.mu
            row += [f"{charged:.3f}", f"{least_mu(p, 1.0, rows=rows):.3f}"]
        assert f"| {' | '.join(row)} |" in text("matrix-laplace").splitlines(), row
    assert f"{mu_from_pure_epsilon(1.0):.3f}" in text("matrix-laplace")


@pytest.mark.parametrize(("neighbours", "first"), [("replace-one", 17), ("add-remove", 24)])
@pytest.mark.parametrize("mu", [0.01, 0.25, 2.0])
def test_k_norm_has_less_noise_for_many_columns_at_equal_mu(
    neighbours: Neighbours, first: int, mu: float
) -> None:
    """Under a budget with a delta of 1e-6, of which a tenth is set aside."""

    def off(name: str, p: int) -> float:
        mechanism: Any = mechanisms.registry[name].calibrated(
            p=p, n=N, neighbours=neighbours, mu=mu, failure_share=DELTA / 10, **CASES[name].keys
        )
        lattice = mechanism.lattice
        return float(mechanism.law.sd_off_diagonal * lattice.divisor / lattice.squared_radius)

    for p in (4, first - 1, first, 100):
        assert (off("k-norm", p) < off("matrix-laplace", p)) == (p >= first)
        assert off("matrix-laplace", p) < off("laplace", p)
    for page in (INDEX, "k-norm", "matrix-laplace"):
        assert f"from {first}" in text(page)


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("p", [1, 2, 5, 30])
def test_gaussian_noise_is_least_at_equal_mu(
    p: int, epsilon: float, neighbours: Neighbours
) -> None:
    for name in ("laplace", "k-norm", "matrix-laplace"):
        mechanism = mechanisms.registry[name].calibrated(
            p=p, n=N, neighbours=neighbours, epsilon=epsilon, **CASES[name].keys
        )
        gaussian = mechanisms.registry["gaussian"].calibrated(
            p=p, n=N, neighbours=neighbours, mu=mechanism.guarantee.mu, delta=DELTA
        )
        assert gaussian.law.norm(p) < mechanism.law.norm(p)
