"""Heat maps and graphs: what they show, and the order in which they show it."""

from __future__ import annotations

import base64
import io
import itertools
import re

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from gramercy.common.notation import shortened_pair
from gramercy.common.pictures import (
    changes,
    clustered,
    graph,
    heat_map,
    shortened,
    small_graphs,
    small_heat_map,
)

Array = NDArray[np.float64]


def blocks(p: int, size: int) -> tuple[Array, list[int]]:
    """Correlations of 0.8 within blocks of columns, which are shuffled; and the block of each."""
    block = np.arange(p) // size
    block = np.random.default_rng(p).permutation(block)
    matrix = np.where(block[:, None] == block, 0.8, 0.0)
    np.fill_diagonal(matrix, 1.0)
    return matrix, block.tolist()


def names_of(p: int) -> list[str]:
    return [f"v{k}" for k in range(p)]


def titles(page: str) -> list[str]:
    body = page[page.index('class="body"') :]
    return re.findall(r"<title>([^<]*)</title>", body)


def pixels(page: str) -> NDArray[np.uint8]:
    (data,) = re.findall(r"data:image/png;base64,([^\"]*)", page)
    image = Image.open(io.BytesIO(base64.b64decode(data))).convert("RGBA")
    return np.asarray(image)


@pytest.mark.parametrize("p", [14, 60, 300])
def test_clusters_are_next_to_each_other(p: int) -> None:
    matrix, block = blocks(p, 5)
    order = clustered(matrix - np.eye(p))
    assert sorted(order) == list(range(p))
    in_order = [block[k] for k in order]
    assert sum(a != b for a, b in itertools.pairwise(in_order)) == max(block)
    shaken = matrix * (1 + 1e-13 * np.random.default_rng(0).normal(size=(p, p)))
    assert clustered((shaken + shaken.T) / 2 - np.eye(p)) == order  # as on another machine


def test_few_or_unrelated_columns_stay_in_their_order() -> None:
    assert clustered(np.ones((12, 12))) == list(range(12))
    assert clustered(np.zeros((40, 40))) == list(range(40))


def test_opacity_is_the_size_of_an_entry_and_grey_is_noise() -> None:
    matrix = np.array([[1.0, -0.5, 0.01], [-0.5, 1.0, np.nan], [0.01, np.nan, 1.0]])
    hidden = np.zeros((3, 3), dtype=bool)
    hidden[1, 2] = hidden[2, 1] = True
    page = heat_map(matrix, hidden, ["a", "b<", "c"])
    shown = pixels(page)
    assert shown.shape == (3, 3, 4)
    assert shown[0, 0, 3] == 255
    assert shown[0, 1, 3] == pytest.approx(127.5, abs=1.5)
    assert shown[0, 2, 3] <= 4  # near zero: hardly any colour, and less than noise
    assert 4 < shown[1, 2, 3] < 40
    red, _, blue, _ = shown[0, 1].tolist()
    assert red > blue  # orange
    assert len(set(shown[1, 2, :3].tolist())) == 1  # grey
    assert titles(page) == [
        *("a: 1", "a with b&lt;: −0.5", "a with c: 0.01"),
        *("b&lt; with a: −0.5", "b&lt;: 1", "b&lt; with c: within the noise"),
        *("c with a: 0.01", "c with b&lt;: within the noise", "c: 1"),
    ]


@pytest.mark.parametrize("p", [65, 300])
def test_wide_map_names_every_column_and_the_strongest_pairs(p: int) -> None:
    matrix, _ = blocks(p, 5)
    matrix[3, 7] = matrix[7, 3] = 0.95
    page = heat_map(matrix, matrix == 0, names_of(p))
    assert set(names_of(p)) <= set(titles(page))
    assert "v3 with v7: 0.95" in titles(page)
    assert "v7 with v3: 0.95" in titles(page)
    assert ("Enlarge" in page) == (p == 300)
    for name in names_of(p):
        assert page.count(f"</title>{name}</text>") == 2  # above and on the left
    assert len(page) < 1_000_000


def test_there_is_no_map_of_noise_alone() -> None:
    nothing = np.ones((4, 4), dtype=bool)
    assert changes(np.zeros((4, 4)), nothing, names_of(4)) == ""
    assert heat_map(np.eye(4), nothing & ~np.eye(4, dtype=bool), names_of(4)) == ""
    one = nothing.copy()
    one[0, 0] = False
    page = changes(np.diag([-7.2, 0, 0, 0]), one, names_of(4))
    assert "v0: −7.2 standard deviations" in page
    assert ">−8<" in page  # the scale covers the largest change


def test_small_map_keeps_the_order_of_the_contract() -> None:
    matrix, _ = blocks(30, 5)
    page = small_heat_map("g", "north & south", matrix, matrix == 0, names_of(30))
    assert "north &amp; south" in page
    np.testing.assert_array_equal(pixels(page)[..., 3] > 200, matrix > 0.78)


def test_maps_of_other_colours_differ() -> None:
    matrix, _ = blocks(14, 5)
    page = heat_map(matrix, matrix == 0, names_of(14))
    assert page == heat_map(matrix + 1e-12, matrix == 0, names_of(14))
    assert page != heat_map(-matrix, matrix == 0, names_of(14))


def edges_of(page: str) -> list[str]:
    return re.findall(r"<path[^>]*><title>([^<]*)</title>", page)


def test_graph_draws_the_strongest_edges_and_says_what_it_leaves_out() -> None:
    weights = np.triu(np.random.default_rng(1).uniform(-1, 1, size=(60, 60)), 1)
    page = graph("lasso", weights + weights.T, names_of(60))
    drawn = edges_of(page)
    assert len(drawn) == 200
    assert "Only the 200 strongest of 1,770 edges are drawn" in page
    size = np.sort(np.abs(weights[weights != 0]))
    weakest = min(abs(float(each.rpartition(": ")[2].replace("−", "-"))) for each in drawn)
    assert weakest == pytest.approx(size[-200], abs=0.01)
    assert page.count("<text") == len(re.findall("<circle", page)) <= 60


@pytest.mark.parametrize("pairs", [3, 60, 200])
def test_every_drawn_column_has_a_name_inside_the_drawing(pairs: int) -> None:
    p = 2 * pairs
    weights = np.zeros((p, p))
    for k in range(pairs):
        weights[2 * k, 2 * k + 1] = weights[2 * k + 1, 2 * k] = 0.1 + 0.5 * k / pairs
    page = graph("lasso", weights, names_of(p))
    drawn = min(pairs, 50)  # at most 100 columns
    assert page.count("<text") == 2 * drawn
    assert (f"strongest of {pairs}" in page) == (pairs > drawn)
    (box,) = re.findall(r'viewBox="0 0 (\d+) (\d+)"', page)
    places = re.findall(r'<circle cx="([\d.-]+)" cy="([\d.-]+)"', page)
    assert ((np.array(places, float) > 0) & (np.array(places, float) < np.array(box, float))).all()


def test_unstable_edges_are_dashed() -> None:
    weights = np.array([[0, 0.5, 0], [0.5, 0, -0.3], [0, -0.3, 0]])
    page = graph(
        "lasso", weights, ["a", "b", "c"], np.array([[0, 0.9, 0], [0.9, 0, 0.2], [0, 0.2, 0]])
    )
    dashed = re.findall(r"dasharray[^>]*><title>([^<]*)", page)
    assert dashed == ["b with c: −0.3"]
    assert "left out" not in page


def test_long_names_keep_their_ends() -> None:
    first, second = ("systolic blood pressure at visit 1", "systolic blood pressure at visit 2")
    assert shortened(first) != shortened(second)
    assert len(shortened(first)) == 24
    assert shortened("short") == "short"


@pytest.mark.parametrize("p", [8, 30])
def test_graphs_of_several_tables_fit_side_by_side(p: int) -> None:
    """Two of them on a wide page, one on a telephone; whole names are shown on hover."""
    names = [f"a name of many characters, number {k:06}" for k in range(p)]
    chain = 0.5 * (np.abs(np.subtract.outer(np.arange(p), np.arange(p))) == 1)
    drawn = small_graphs("g", {"first": chain, "second": -chain}, names)
    widths = [float(each) for each in re.findall(r'style="width: (\d+)px"', drawn)]
    assert len(widths) == 2
    assert max(widths) <= 360
    assert all(f"<title>{name}</title>" in drawn for name in names)


def test_both_names_of_a_pair_stay_recognisable() -> None:
    first, second = "systolic blood pressure at visit 1", "fasting glucose in blood at visit 2"
    label = shortened_pair(first, second)
    assert len(label) <= 40
    for part, name in zip(label.split(", "), (first, second), strict=True):
        assert name.startswith(part.partition("…")[0])
    assert shortened_pair("age", "income") == "age, income"
