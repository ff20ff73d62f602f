"""Which representation is chosen, by given costs: nothing is timed here."""

from __future__ import annotations

import numpy as np
import pytest

from onlearn.dual import collapse
from onlearn.dual.collapse import Costs, cheaper, dual_seconds

NS = 1e-9


@pytest.mark.parametrize(
    ("rows", "width", "value", "mapping", "expected"),
    [
        (1500, 8, 2.3 * NS, 0.4e-3, "primal"),  # as measured: 2 ms in the primal, 20 ms in the dual
        (5000, 30, 2.6 * NS, 6e-3, "primal"),  # 9 ms, 90 ms
        (2000, 400, 8 * NS, 0.3, "dual"),  # 80,601 features
        (60_000, 8, 2.3 * NS, 15e-3, "primal"),
        (300, 2, 0.01e-3, 0.1e-3, "primal"),  # a user's function that takes long
    ],
)
def test_the_cheaper_form_is_chosen(rows: int, width: int, value: float, mapping: float, expected: str) -> None:
    features = (width + 1) * (width + 2) // 2  # of polynomial(2)
    choice = cheaper(Costs(mapping, value), rows, features, 5)
    assert choice.name == expected
    assert f"with {features} features" in choice.reason and f"10% of {rows} examples" in choice.reason


def test_the_estimate_is_near_what_was_measured() -> None:
    """Seconds of 5 passes in the dual with so many support examples, on a quiet machine (kernel_passes.py)."""
    for rows, supports, value, measured in ((1500, 330, 2.3 * NS, 0.020), (5000, 1200, 2.6 * NS, 0.09)):
        assert 0.5 < dual_seconds(value, rows, supports, 5) / measured < 2.0


def test_more_of_anything_takes_longer() -> None:
    usual = dual_seconds(2 * NS, 1000, 100, 5)
    assert dual_seconds(4 * NS, 1000, 100, 5) > usual
    assert dual_seconds(2 * NS, 2000, 100, 5) > usual
    assert dual_seconds(2 * NS, 1000, 200, 5) > usual
    assert dual_seconds(2 * NS, 1000, 100, 6) > usual


def test_the_measured_costs_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    """``representation="auto"`` measures both, and takes the cheaper one."""
    from onlearn import KernelClassifier

    X = np.random.default_rng(0).normal(size=(400, 6))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    for taken, expected in (([1e-5, 1e-4], "primal"), ([10.0, 1e-4], "dual")):
        times = iter(taken)  # of the features, of the kernel values
        monkeypatch.setattr(collapse, "seconds", lambda work, times=times: next(times))
        model = KernelClassifier("polynomial(2)", representation="auto", random_state=0).fit(X, y)
        assert model.representation_ == expected
