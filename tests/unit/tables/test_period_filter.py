"""The period of a row from its date: at most one, for any cell."""

from __future__ import annotations

import datetime
import zoneinfo
from decimal import Decimal
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramercy.common.lattice import Lattice
from gramercy.mechanisms.sampling import sampler
from gramercy.scaling.column_constants import Grid
from gramercy.schemas.cells import date_notation
from gramercy.schemas.contract import Contract
from gramercy.schemas.normalisation import Unit
from gramercy.schemas.periods import SelectedPeriod, Span, label_of, last_complete
from gramercy.schemas.steps import Cumulative
from gramercy.tables.counts.counting import count_bins, count_lengths
from gramercy.tables.formats.source import open_source
from gramercy.tables.sums.exact_sums import Parts
from gramercy.tables.sums.period_filter import PeriodFilter
from gramercy.tables.sums.streaming import accumulate
from tests.support.factories import contract_facts

NOVEMBER = PeriodFilter("month", "2026-11", "UTC")
IN, OUT, NONE = 1.0, 0.0, np.nan


def codes(
    cells: Any, kind: pa.DataType | None = None, period: PeriodFilter = NOVEMBER
) -> list[Any]:
    return [None if np.isnan(x) else x for x in period.indices(pa.array(cells, kind))]


def test_years_may_be_numbers() -> None:
    """Programs write a column of years with missing cells as doubles."""
    year = PeriodFilter("year", "2026", "UTC")
    for cells in (
        ["2026.0", " 2026. ", "2026", "2025.00", "2026.5", "12026.0"],
        [Decimal("2026.0"), Decimal("2026"), Decimal("2026.00"), Decimal("2025"), None, None],
    ):
        found = codes(cells, period=year)
        assert found[:4] == [1, 1, 1, 0]
        assert found[4:] == [None, None]
    assert codes([2026.0, 2025.0, None], period=year) == [1, 0, None]
    assert codes(["2026.0"]) == [None]  # of a month


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("2026-11-01", 1),
        (" 2026-11-30 ", 1),
        ("2026-12-01", 0),
        ("2026-10-31T23:59:59", 0),
        ("2026-11-30T23:59:59.999", 1),
        ("2026-11-30 23:59", 1),
        ("2026-11-30T23:30:00-01:00", 0),  # an hour later in UTC: December
        ("2026-12-01T00:30:00+0100", 1),
        ("2026-12-01 00:30:00+01", 1),
        ("2026-11-01T00:00:00Z", 1),
        ("2026-10-31T23:59:59Z", 0),
        ("2026-11", 1),
        ("2026-10", 0),
        ("2026-11-31", None),
        ("2026-02-29", None),
        ("2026-13-01", None),
        ("2026-00-10", None),
        ("0000-11-01", None),
        ("2026-11-01T24:00", None),
        ("2026-11-01T10:00Z01:00", None),
        ("2026-11-01T10:00+", None),
        ("20261101", None),
        ("01.11.2026", None),
        ("2026-11-0１", None),
        ("2026", None),
        ("", None),
        (None, None),
        ("2026-11-01" + " " * 100, None),
    ],
)
def test_dates_in_text(text: str | None, code: int | None) -> None:
    assert codes([text], pa.string()) == [code]
    assert codes([text, "2026-11-02"], pa.large_string()) == [code, 1]
    assert list(NOVEMBER.indices(pa.array([None, text, None, text]).dictionary_encode())) == (
        pytest.approx([np.nan, np.nan if code is None else code] * 2, nan_ok=True)
    )


def test_text_that_is_not_utf8_is_not_a_date() -> None:
    broken = pa.array([b"\xff2026-11-01", b"2026-11-01", b"2026-11-01\xc3"], pa.binary())
    text = broken.view(pa.string())
    assert list(NOVEMBER.indices(text)) == pytest.approx([np.nan, 1, np.nan], nan_ok=True)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo"])
def test_times_of_arrow(unit: str, zone: str | None) -> None:
    tokyo = PeriodFilter("month", "2026-11", "Asia/Tokyo")
    first = datetime.datetime(2026, 11, 1, tzinfo=zoneinfo.ZoneInfo("Asia/Tokyo"))
    second = datetime.timedelta(seconds=1)
    times = [first - second, first, None]
    if zone is None:
        times = [each and each.replace(tzinfo=None) for each in times]
    cells = pa.array(times, pa.timestamp(unit, zone))
    assert list(tokyo.indices(cells)) == pytest.approx([0, 1, np.nan], nan_ok=True)
    least = pa.array([-(2**63) + 1, 2**63 - 1], pa.int64()).view(pa.timestamp(unit, zone))
    assert list(tokyo.indices(least)) == [0, 0]


def test_dates_of_arrow_and_other_columns() -> None:
    days = [datetime.date(2026, 10, 31), datetime.date(2026, 11, 1), None]
    for kind in (pa.date32(), pa.date64()):
        assert codes(days, kind) == [0, 1, None]
    for cells in ([202611, 1], [1.5, 2.0], [True, False], [None, None], [b"2026-11-01", b""]):
        assert codes(cells) == [None, None]
    year = PeriodFilter("year", "2026", "UTC")
    assert codes([2026, 2025, None], pa.int16(), year) == [1, 0, None]
    assert codes([2026.0, 2026.5, float("nan"), float("inf")], None, year) == [1, 0, None, 0]
    assert codes(["2026", "2025", "2026-03-01", "26"], None, year) == [1, 0, 1, None]


def test_dates_in_the_notation_of_the_source() -> None:
    def of(dates: str, span: Span = "month", label: str = "2026-11") -> PeriodFilter:
        return PeriodFilter(span, label, "Asia/Tokyo", written=date_notation(dates))

    cells = ["30.11.2026", "1.12.2026", "2026-11-01", "2026-11", "11/30/2026"]
    assert codes(cells, None, of("day.month.year")) == [1, 0, 1, 1, None]
    assert codes([20261130, 20261201, 5, None], None, of("yearmonthday")) == [1, 0, None, None]
    year = of("yearmonthday", "year", "2026")
    assert codes([20261130, 2026, 2025.0], pa.float64(), year) == [1, 1, 0]
    # The 31st of October at 15:00 in UTC is the first moment of November in Tokyo.
    seconds = of("seconds since 1970-01-01")
    assert codes([1793458800, 1793458799], None, seconds) == [1, 0]
    assert codes(["1793458800", "1793458799"], None, seconds) == [1, 0]
    # A number that counts days is not the label of a year.
    days = of("days since 1899-12-30", "year", "2026")
    assert codes(["2026", "46327.5", "2026-11"], None, days) == [0, 1, None]


MOMENTS = st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2200, 12, 31))
ZONES = st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Pacific/Apia"])


@pytest.mark.slow
@given(st.sampled_from(get_args(Span)), ZONES, MOMENTS, st.integers(-14 * 60, 14 * 60))
def test_every_time_is_in_one_period(
    span: Span, zone: str, moment: datetime.datetime, minutes: int
) -> None:
    """Of the periods around a time, and text and Arrow agree on which one it is."""
    local = moment.replace(microsecond=0)
    offset = datetime.timezone(datetime.timedelta(minutes=minutes))
    aware = local.replace(tzinfo=offset)
    there = aware.astimezone(zoneinfo.ZoneInfo(zone)).date()
    for cells, day in (
        (pa.array([local.isoformat()]), local.date()),
        (pa.array([local], pa.timestamp("ms")), local.date()),
        (pa.array([aware.isoformat()]), there),
        (pa.array([aware], pa.timestamp("us", "UTC")), there),
    ):
        near = {day + datetime.timedelta(k) for k in (-366, -93, -32, -8, -1, 0, 1, 8, 32, 93, 366)}
        labels = {label_of(span, each) for each in near} | {last_complete(span, day)}
        found = [x for x in sorted(labels) if PeriodFilter(span, x, zone).indices(cells)[0] == 1]
        assert found == [label_of(span, day)]


FACTS = contract_facts("t.csv", rows=10, p=2) | {
    "neighbours": "add-remove",
    "budget": {"epsilon": 1.0, "delta": 1e-6, "per": "month"},
    "period": {"column": "visited"},
}
LATTICE = Lattice(2, 12)
GRID = Grid(np.array([-5.0, 0.0, 5.0]))


def sums(source: Path, version: str, **changes: Any) -> tuple[Any, ...]:
    """The Gram matrix, and histograms of cells and lengths, with their numbers of rows."""
    facts = FACTS | {"source": str(source), "intercept": False} | changes
    contract = Contract.model_validate(facts).for_version(version)
    table, keys = open_source(contract.source), sampler.random_keys
    gram = accumulate(table, contract, Unit(), LATTICE)
    bins = count_bins(table, contract, [GRID, GRID], draw_keys=keys)
    lengths = count_lengths(table, contract, np.array([0.0, 1.0]))
    matrix = [] if gram.gram is None else gram.gram.tolist()
    counts = [each.tolist() for each in (*bins.counts, *lengths.counts)]
    return matrix, gram.rows, bins.units, lengths.units, counts


def test_rows_of_other_periods_change_nothing(tmp_path: Path) -> None:
    """Malformed lines and rows without a date belong to no period."""
    alone, among = tmp_path / "alone.csv", tmp_path / "among.csv"
    alone.write_text("c0,visited,c1\n1,2026-11-03,2\n3,2026-11-30,-1\n")
    among.write_text(
        "c0,visited,c1\n1,2026-11-03,2\n4,2026-10-03,2\n9,9\n"
        "3,2026-11-30,-1\n4,03.11.2026,2\n4,,2\nx,2026-12-01,x\n1,2,3,4\n"
    )
    expected = sums(alone, "2026-11")
    assert expected[1:4] == (2, 2, 2)
    assert sums(among, "2026-11") == expected
    assert sums(among, "2026-10")[1] == sums(among, "2026-12")[1] == 1
    assert sums(among, "2025-01")[1:4] == (0, 0, 0)


def test_same_sums_from_parquet_and_from_folders(tmp_path: Path) -> None:
    table = {"c0": [1.0, 4.0, 3.0], "c1": [2.0, 2.0, -1.0]}
    csv = tmp_path / "t.csv"
    csv.write_text("c0,visited,c1\n1,2026-11-03,2\n4,2026-10-03,2\n3,2026-11-30,-1\n")
    days = [datetime.date(2026, 11, 3), datetime.date(2026, 10, 3), datetime.date(2026, 11, 30)]
    pq.write_table(pa.table(table | {"visited": days}), tmp_path / "t.parquet")
    expected = sums(csv, "2026-11")
    assert expected[1] == 2
    assert sums(tmp_path / "t.parquet", "2026-11") == expected
    for month, rows in (("2026-11", [0, 2]), ("2026-10", [1])):
        folder = tmp_path / "folders" / f"visited={month}"
        folder.mkdir(parents=True)
        part = {name: [cells[k] for k in rows] for name, cells in table.items()}
        pq.write_table(pa.table(part), folder / "part.parquet")
    assert sums(tmp_path / "folders", "2026-11") == expected


def test_table_is_not_read_before_its_period_is_known() -> None:
    with pytest.raises(ValueError):  # noqa: PT011 -- without text: no input leads there
        PeriodFilter.of(Contract.model_validate(FACTS))


@pytest.mark.parametrize("span", get_args(Span))
def test_any_text_is_in_one_period_at_most(span: Span) -> None:
    """Also text that is almost a date, or the label of another kind of period."""
    stream = np.random.default_rng(11)
    starts = ["2026-11-", "2026-1", "2026-W4", "2026-Q", "2026", "2026-11-2"]
    ends = ["", "1", "8", "30", "-01", "3T00:59:00-11:30", "30 23:30Z", "T", "3", "Q4", "4-05"]
    marks = ["", "", " ", "0", "\t", "\x00", "é"]
    parts = [stream.choice(each, 3000) for each in (marks, starts, ends, marks)]
    texts = pa.array(["".join(each) for each in zip(*parts, strict=True)])
    year = [datetime.date(2025, 11, 1) + datetime.timedelta(k) for k in range(500)]
    labels = sorted({label_of(span, day) for day in year})
    near = labels if span != "day" else [x for x in labels if x.startswith(("2026-1", "2025-12"))]
    codes = np.array([PeriodFilter(span, x, "America/New_York").indices(texts) for x in near])
    assert (np.nansum(codes, axis=0) <= 1).all()
    assert (np.isnan(codes).any(axis=0) == np.isnan(codes).all(axis=0)).all()
    assert np.nansum(codes) > 100


def test_steps_of_a_series_are_disjoint_and_fill_their_window() -> None:
    """Every cell is in one step of one window, or in none; as text, date and instant alike."""
    days = [datetime.date(2026, 12, 20) + datetime.timedelta(k) for k in range(30)]
    texts = pa.array([f"{day.isoformat()}T23:59:59" for day in days])
    for window, first in (("2026", 1), ("2027", 1)):
        steps = Cumulative(every="week").series("year", window)
        period = PeriodFilter("week", window, "UTC", steps.starts)
        expected = [float(steps.step_of(day) or 0) for day in days]
        assert period.indices(texts).tolist() == expected
        assert period.indices(pa.array(days, pa.date32())).tolist() == expected
        noon = pa.array([datetime.datetime.combine(day, datetime.time(12)) for day in days])
        assert period.indices(noon).tolist() == expected
        assert max(expected) >= first


def test_a_label_of_a_week_belongs_to_the_window_of_its_first_day() -> None:
    labels = pa.array(["2026-W52", "2026-W53", "2027-W01", "2026-W00", "2026", None])
    found = {
        window: PeriodFilter(
            "week", window, "UTC", Cumulative(every="week").series("year", window).starts
        ).indices(labels)
        for window in ("2026", "2027")
    }
    assert found["2026"][:3].tolist() == [52, 53, 0]
    assert found["2027"][:3].tolist() == [0, 0, 2]
    assert np.isnan(found["2026"][4:]).all()


@pytest.mark.slow
def test_sums_of_steps_are_those_of_their_rows_alone(tmp_path: Path) -> None:
    """One pass gives the sum of every step so far, and no other row changes it."""
    path = tmp_path / "t.csv"
    stream = np.random.default_rng(3)
    first = datetime.date(2026, 1, 1)
    days = [first + datetime.timedelta(int(k)) for k in stream.integers(0, 400, 300)]
    lines = [f"{stream.normal():.3f},{day},{stream.normal():.3f}" for day in days]
    path.write_text("\n".join(["c0,visited,c1", *lines, "1,,1", "x"]) + "\n")
    own = {"source": str(path), "intercept": False}
    facts = FACTS | own | {"budget": FACTS["budget"] | {"per": "year"}}
    contract = Contract.model_validate(facts).for_version("2026")
    series = Cumulative(every="month").series("year", "2026")
    for upto in (1, 7, 12):
        starts = series.starts[: upto + 1]
        period = SelectedPeriod(column="visited", span="month", label="2026", starts=starts)
        stepped = contract.model_copy(update={"period": period})
        read = accumulate(open_source(str(path)), stepped, Unit(), LATTICE, parts=Parts(upto))
        assert len(read.part_sums) == upto
        for month, part in enumerate(read.part_sums, 1):
            monthly = Contract.model_validate(FACTS | own)
            alone = accumulate(
                open_source(str(path)),
                monthly.for_version(f"2026-{month:02}"),
                Unit(),
                LATTICE,
            )
            assert part.rows == alone.rows
            assert (part.gram == alone.gram).all()
