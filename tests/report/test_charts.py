"""Charts: well-formed SVG whatever the numbers, ticks within the axes, and the same numbers for the script."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlearn.report.charts import Chart, HeatMap, Series, ticks

NUMBERS = st.floats(-1e6, 1e6, allow_nan=False) | st.sampled_from([0.0, 1e-12, math.nan, math.inf])


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.tuples(st.floats(0, 1e9), st.none() | NUMBERS), min_size=1, max_size=30), st.booleans(), st.booleans()
)
def test_any_numbers_make_a_chart(points, x_log, y_log):
    points = sorted(points, key=lambda point: point[0])
    series = [Series("s", [x for x, _ in points], [y for _, y in points])]
    chart = Chart("c", "<title>", "&", "x", "y", series, x_log, y_log)
    root = ElementTree.fromstring(chart.svg)
    for element in root.iter():
        for value in element.attrib.values():
            assert "nan" not in value and "inf" not in value
    assert len(chart.rows) <= 60
    chart.data()


@settings(deadline=None)
@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_are_within(low, width):
    found = ticks(low, low + width, False)
    assert 1 <= len(found) <= 12
    assert all(low - 1e-6 * width <= tick <= low + width * (1 + 1e-6) for tick in found)


@pytest.mark.parametrize(("low", "high"), [(1, 10), (3, 8), (0.001, 5e8), (40, 60)])
def test_logarithmic_ticks(low, high):
    found = ticks(low, high, True)
    assert found and all(low * 0.999 <= tick <= high * 1.001 for tick in found)


def test_series_differ_by_more_than_colour():
    series = [Series(str(k), [0, 1], [k, k], place=k) for k in range(5)]
    svg = Chart("c", "t", "d", "x", "y", series).svg
    lines = [one for one in ElementTree.fromstring(svg).iter() if "line" in one.get("class", "").split()]
    assert len({one.get("stroke-dasharray") for one in lines}) == 5


def test_heat_map():
    made = HeatMap("h", "t", "d", ["<a>", "b"], [[5, 0], [1, 20_000]])
    told = [one.text for one in ElementTree.fromstring(made.svg).iter("title")]
    assert "<a> predicted as <a>: 5 (100.0 %)" in told and "b predicted as <a>: 1 (0.0 %)" in told
    ElementTree.fromstring(HeatMap("h", "t", "d", [], []).svg)
