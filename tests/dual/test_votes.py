"""The votes of all hypotheses in the dual, against sums of fractions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from onlearn.dual.learner import DualLearner
from onlearn.dual.votes import exact_votes
from onlearn.engine.stabilizers import VotedState


def shares(values: np.ndarray, bias: float, st: Any, outputs: int) -> np.ndarray:
    """The shares of the votes by exact sums of these kernel values."""
    out = np.zeros((len(values), outputs))
    ends = [*st.start[1 : st.used[1] + 1].tolist(), int(st.used[0])]
    for i, line in enumerate(values):
        x = [Fraction(bias), *(Fraction(float(v)) for v in line)]
        sums, first = [Fraction(0)] * outputs, 0
        for h, end in enumerate(ends):
            for n in range(first, end):
                sums[st.at[n] % outputs] += Fraction(float(st.change[n])) * x[st.at[n] // outputs]
            first = end
            if outputs == 1:
                out[i, 0] += st.votes[h] if sums[0] > 0 else -st.votes[h]
            else:
                out[i, sums.index(max(sums))] += st.votes[h]
    return out / st.votes[: st.used[1] + 1].sum()


TABLES = {
    "tenths": lambda rng: rng.integers(-2, 3, size=(60, 4)) / 10,
    "signs": lambda rng: rng.choice([-1.0, 1.0], size=(60, 4)),
    "single": lambda rng: (rng.integers(-2, 3, size=(60, 4)) / 10).astype(np.float32),
}


@pytest.mark.parametrize("rule", ["perceptron", "pa1(0.3)"])
@pytest.mark.parametrize(
    "kernel",
    ["linear", *(pytest.param(one, marks=pytest.mark.slow) for one in ("polynomial(2)", "normalize(polynomial(3))"))],
)
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("classes", [2, 3])
def test_small_sums_are_not_lost(table: str, kernel: str, rule: str, classes: int) -> None:
    X = TABLES[table](np.random.default_rng(0))
    y = (X[:, 0] * X[:, 1] > 0).astype(int) + (classes > 2) * (X[:, 2] > 0)
    learner = DualLearner(kernel=kernel, rule=rule, stabilizer="voted", epochs=4, random_state=0).fit(X, y)
    training, values = learner._trained(), learner.kernel_values(X)
    expected = shares(values, training.bias, training.st, training.outputs)
    found = learner.decision_function(X)
    np.testing.assert_allclose(found if classes > 2 else found[:, None], expected, atol=1e-12)


def test_values_near_the_largest_float() -> None:
    changes = np.array([1, 2]), np.array([1.0, -1.0]), np.array([0, 0, 1])
    st = VotedState(np.zeros(3), *changes, np.array([1.0, 2.0, 5.0]), np.ones(3), np.zeros(1), np.array([2, 2]))
    assert exact_votes(np.array([[8e307, 7e307], [7e307, 8e307]]), 1.0, 0.0, st, 1).ravel().tolist() == [0.75, -0.5]
