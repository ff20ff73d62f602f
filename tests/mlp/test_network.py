"""Forward and back-propagation against the textbook's, and against numeric gradients."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import plain_network
from onlearn.mlp.network import (
    ERROR,
    LOSSES,
    MISTAKES,
    REGRESSION,
    SEEN,
    UNITS,
    Layout,
    Workspace,
    backward,
    bound_of,
    forward,
    initialise,
    judge_rows,
)

KINDS = {"regression": REGRESSION, **LOSSES}
networks = st.fixed_dictionaries(
    {
        "unit": st.sampled_from(list(UNITS)),
        "loss": st.sampled_from(list(KINDS)),
        "hidden": st.lists(st.integers(1, 5), max_size=3),
        "classes": st.integers(2, 4),
        "rows": st.integers(1, 4),
        "seed": st.integers(0, 2**32 - 1),
    }
)


def made(unit, loss, hidden, classes, rows, seed):
    """A network with biases, and examples with weights."""
    rng = np.random.default_rng(seed)
    outputs = 1 if loss == "regression" or (classes == 2 and loss != "softmax") else classes
    layout = Layout((3, *hidden, outputs))
    w = rng.normal(size=layout.size)
    X = rng.normal(size=(rows, 3))
    y = rng.normal(size=rows) if loss == "regression" else rng.integers(0, classes, rows).astype(float)
    return layout, w, X, y, rng.uniform(0.5, 2.0, rows)


@given(networks)
def test_gradients_are_those_of_the_textbook_and_of_small_differences(network):
    layout, w, X, y, weight = made(**network)
    unit, loss = network["unit"], network["loss"]
    W, b = layout.views(w)
    gradient, space, tally = np.empty_like(w), Workspace(layout, len(X), np.float64), np.zeros(3)
    s = forward(UNITS[unit], W, b, X, space)
    np.testing.assert_allclose(s, [plain_network.scores(unit, W, b, x) for x in X], rtol=1e-9, atol=1e-12)
    wrong = np.sum((s[:, 0] > 0 if s.shape[1] == 1 else s.argmax(axis=1)) != y)
    judge_rows(KINDS[loss], s.reshape(-1), s.shape[1], y, weight, tally)
    dW, db = layout.views(gradient)
    backward(UNITS[unit], W, X, space, dW, db)

    def mean_error():
        return sum(
            c * plain_network.error(loss, plain_network.scores(unit, W, b, x), t) for x, t, c in zip(X, y, weight)
        )

    assert tally[ERROR] == pytest.approx(mean_error()) and tally[SEEN] == len(X)
    assert tally[MISTAKES] == (0 if loss == "regression" else wrong)
    plain = np.zeros_like(w)
    for x, t, c in zip(X, y, weight):
        parts = plain_network.gradients(unit, loss, W, b, x, t)
        plain += c / len(X) * np.concatenate([one.ravel() for one in (*parts[0], *parts[1])])
    np.testing.assert_allclose(gradient, plain, rtol=1e-8, atol=1e-10)
    step, kinks = 1e-6, 0
    for k in range(len(w)):
        before = w[k]
        ends = []
        for w[k] in (before - step, before + step):
            ends.append(mean_error() / len(X))
        w[k] = before
        kinks += abs((ends[1] - ends[0]) / (2 * step) - gradient[k]) > 1e-5 * max(1.0, abs(gradient[k]))
    assert kinks == 0 or (unit == "relu" and kinks <= len(w) // 2)  # where a unit is about to fire


def test_numeric_gradients_agree_for_every_unit_loss_and_depth_away_from_kinks():
    for unit in ("tanh", "logistic"):
        for loss in KINDS:
            for depth in range(4):
                network = dict(unit=unit, loss=loss, hidden=[4] * depth, classes=3, rows=5, seed=depth)
                test_gradients_are_those_of_the_textbook_and_of_small_differences.hypothesis.inner_test(network)


def test_scores_far_out_have_finite_errors():
    for loss in KINDS.values():
        for size in (1e3, 1e30):
            s, tally = np.array([[size, -size, 0.0]]), np.zeros(3)
            judge_rows(loss, s.reshape(-1), 3, np.array([1.0]), np.ones(1), tally)
            assert np.isfinite(s).all() and np.isfinite(tally).all()


def test_weights_begin_within_their_bounds_and_depend_on_the_seed_alone():
    layout = Layout((50, 20, 10))
    for unit in UNITS.values():
        w, again, other = (np.empty(layout.size) for _ in range(3))
        initialise(unit, layout, w, 5)
        initialise(unit, layout, again, 5)
        initialise(unit, layout, other, 6)
        np.testing.assert_array_equal(w, again)
        assert (w != other)[: layout.biases].all() and not w[layout.biases :].any()
        for one, last in zip(layout.views(w)[0], (False, True)):
            bound = bound_of(unit, *one.shape, hidden=not last)
            assert 0.9 * bound < np.abs(one).max() <= bound and abs(one.mean()) < 0.1 * bound


def test_weights_of_features_do_not_depend_on_how_many_follow():
    few, many = Layout((3, 4, 2)), Layout((3, 4, 5))
    w, v = np.empty(few.size), np.empty(many.size)
    initialise(UNITS["relu"], few, w, 1)
    initialise(UNITS["relu"], many, v, 1)
    np.testing.assert_array_equal(few.views(w)[0][0], many.views(v)[0][0])
