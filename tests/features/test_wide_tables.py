"""Tables of very many columns, of which those of numbers are read together."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlearn.features import Category, FeatureMap, Number
from onlearn.features.extraction import read_together
from onlearn.features.extractors import SCALES

CELLS = st.floats(-1e6, 1e6) | st.sampled_from([np.nan, 0.0, -0.0, 1e300, 7.25])


@given(
    columns=st.lists(st.lists(CELLS, min_size=5, max_size=5), min_size=1, max_size=6),
    scale=st.sampled_from(SCALES),
    missing=st.sampled_from(["absent", "zero", "indicator"]),
)
@settings(max_examples=60, deadline=None)
def test_columns_that_are_read_together_are_as_alone(columns, scale, missing):
    table = pa.table({f"c{n}": np.array(column) for n, column in enumerate(columns)})
    extractors = [Number(f"c{n}", scale=scale, missing=missing) for n in range(len(columns))]
    together = FeatureMap(extractors, dtype="float64")
    together.learn(table.slice(0, 2))
    made = together.learn_transform(table).toarray()
    named = dict(zip(together.get_feature_names_out().tolist(), made.T))
    for extractor in extractors:
        alone = FeatureMap(extractor, dtype="float64")
        alone.learn(table.slice(0, 2))
        X = alone.learn_transform(table)
        for name, column in zip(alone.get_feature_names_out().tolist(), X.toarray().T):
            np.testing.assert_array_equal(named.pop(name), column)
    assert not named


def test_which_columns_are_read_together():
    of = [Number("a"), Number("b", missing="zero"), Category("c"), Number("d"), Number("e", scale="none"), Number("f")]
    of += [Number("g"), Number("h", missing="error"), Number("i", missing="indicator"), Category("j")]
    assert list(read_together(of)) == [(0, 2), (2, 3), (3, 4), (4, 5), (5, 7), (7, 8), (8, 9), (9, 10)]
    assert list(read_together([])) == []


def test_more_columns_than_16_bits_can_number():
    count = 70_000
    numbers = np.arange(2.0 * count).reshape(2, count) + 1
    table = pa.table({f"c{n}": column for n, column in enumerate(numbers.T)}).append_column("z", pa.array(["u", "v"]))
    features = FeatureMap([*(Number(f"c{n}", scale="none") for n in range(count)), Category("z")], dtype="float64")
    made = features.learn_transform(table)
    assert made.shape == (2, count + 2)
    np.testing.assert_array_equal(made.toarray()[:, :count], numbers)
    assert [features.name_of(n) for n in (0, 65_536, count - 1, count + 1)] == ["c0", "c65536", "c69999", "z=v"]
    codes, sources = features.sources_from(0)
    assert [sources[codes[n]] for n in (0, count - 1, count)] == [
        ("scaled", "c0"),
        ("scaled", f"c{count - 1}"),
        ("category", "z"),
    ]


@pytest.mark.slow
def test_more_groups_than_16_bits_can_number():
    count = 70_000
    table = pa.table([pa.array([f"v{n % 7}", None]) for n in range(count)], names=[f"c{n}" for n in range(count)])
    features = FeatureMap([Category(f"c{n}") for n in range(count)])
    assert features.learn_transform(table).toarray().sum() == count
    assert features.get_feature_names_out()[[0, 65_537]].tolist() == ["c0=v0", f"c65537=v{65_537 % 7}"]
