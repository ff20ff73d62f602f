"""Cosines and sines in turns, against NumPy's in radians."""

import numpy as np
import pytest

from onlearn.estimators.kitchen_sinks import to_waves


@pytest.mark.parametrize(("dtype", "close"), [(np.float32, 4e-7), (np.float64, 1e-14)])
@pytest.mark.parametrize("size", [0.3, 3.0, 40.0])
def test_they_are_cosines_and_sines(dtype, close, size):
    turns = (np.random.default_rng(0).uniform(-size, size, (300, 64))).astype(dtype)
    out = np.hstack([turns, np.full_like(turns, 7)])
    to_waves(out, 1.0)
    whole = turns.astype(np.longdouble)
    angles = (whole - np.round(whole)) * 2 * np.pi
    assert out.dtype == dtype
    np.testing.assert_allclose(out[:, :64], np.cos(angles).astype(float), atol=close)
    np.testing.assert_allclose(out[:, 64:], np.sin(angles).astype(float), atol=close)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_at_quarter_turns_they_are_exact(dtype):
    turns = np.array([-1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0, 1e6, 0.125], dtype)
    out = np.concatenate([turns, turns])[None]
    to_waves(out, 2.0)
    half = np.sqrt(2)
    np.testing.assert_allclose(out[0, :11], [2, 0, -2, 0, 2, 0, -2, 0, 2, 2, half], atol=1e-6)
    np.testing.assert_allclose(out[0, 11:], [0, 2, 0, -2, 0, 2, 0, -2, 0, 0, half], atol=1e-6)
    assert np.abs(out).max() <= 2 * (1 + 2e-7)
