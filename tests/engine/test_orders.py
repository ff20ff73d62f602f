"""Orders of examples: NumPy's permutation, made faster."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlearn.engine import passes as orders


@settings(max_examples=60, deadline=None)
@given(count=st.integers(0, 3000), seed=st.integers(0, 2**31), passes=st.integers(0, 50))
def test_it_is_the_permutation_numpy_makes(count, seed, passes):
    assert np.array_equal(
        orders.shuffled(count, seed, passes), np.random.default_rng([seed, passes]).permutation(count)
    )


@pytest.mark.parametrize("drawn", [1, 7, 1 << 14])
def test_words_may_run_out_at_any_place(drawn, monkeypatch):
    monkeypatch.setattr(orders, "DRAWN", drawn)
    assert np.array_equal(orders.shuffled(70_000, 3, 1), np.random.default_rng([3, 1]).permutation(70_000))
