"""Learners that forget: the average over a window, and AdaGrad whose sums fade."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import cases
import onlearn
import reference as ref
from cases import GEOMETRIES, LAYOUTS, RULES, example_geometry
from onlearn import KernelClassifier, OnlineClassifier

LAZY = ["truncated", "penalised", "sparse adagrad"]
PROMPT = [group for group in GEOMETRIES if group not in LAZY]
STABILIZER, WINDOW = "averaged(window=8)", 8.0


def classifier(rule, geometry, stabilizer=STABILIZER, **others):
    return OnlineClassifier(rule, geometry, stabilizer, **{"shuffle": False, "epochs": 2, **others})


def learned(model):
    return np.column_stack([model.intercept_, model.coef_])


def assert_handed(model, trail, window=WINDOW, rtol=1e-9):
    coef, intercept = trail.split(ref.averaged_over(window, trail))
    wanted = np.column_stack([intercept, coef])
    np.testing.assert_allclose(learned(model), wanted, rtol=rtol, atol=rtol * max(1.0, np.abs(wanted).max()))


# ---------------------------------------------------------------- the average over a window


@pytest.mark.parametrize("group", PROMPT)
def test_two_classes_as_the_reference(group):
    data = cases.data("binary", group == "winnow")
    X = LAYOUTS["csr" if PROMPT.index(group) % 2 else "dense"](data.X)
    for geometry, reference in GEOMETRIES[group].items():
        for rule, step in RULES.items():
            trail = ref.learn(step, reference(), "binary", data.X, data.signs, epochs=2)
            model = classifier(rule, geometry).fit(X, data.y)
            assert model.n_mistakes_ == trail.mistakes
            assert_handed(model, trail)


@pytest.mark.parametrize(
    ("group", "output", "layout"),
    [("plain", "true", "csr"), ("decayed", "one-vs-all", "dense"), ("exponentiated", "true", "dense"),
     pytest.param("scinol", "softmax", "csr", marks=pytest.mark.slow), ("fading", "softmax", "dense")],
)  # fmt: skip
def test_more_classes_as_the_reference(group, output, layout):
    data = cases.data("multiclass", False)
    rule = "logistic" if output == "softmax" else "perceptron"
    for geometry, reference in GEOMETRIES[group].items():
        trail = ref.learn(RULES[rule], reference(), output, data.X, data.y, outputs=3, epochs=2)
        assert_handed(classifier(rule, geometry, multiclass=output).fit(LAYOUTS[layout](data.X), data.y), trail)


@pytest.mark.parametrize("window", [2.0, 3.0, 50.0])
@pytest.mark.parametrize("group", ["plain", "decayed", "exponentiated"])
def test_weights_are_divided_again_and_again_without_a_trace(group, window):
    """The weight of a hypothesis grows by a constant factor, so over 4000 examples it would overflow many times."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(4000, 4)) * (rng.random((4000, 4)) < 0.3)
    y = (X @ [1.0, -2.0, 0.3, 0.0] + 0.5 * rng.normal(size=4000) > 0).astype(int)
    geometry, reference = example_geometry(group)
    trail = ref.learn(ref.Logistic(), reference(), "binary", X, 2 * y - 1.0)
    model = classifier("logistic", geometry, f"averaged(window={window})", epochs=1).fit(X, y)
    assert 1.0 / window < model._training.st.pace[0] < 2.0**101
    assert_handed(model, trail, window, rtol=1e-8)


def test_a_window_of_two_by_hand():
    """Perceptron steps on x = 1, 2: hypotheses 1 and -1 (labels +, -). The first weighs half of the second."""
    model = classifier("perceptron", "additive", "averaged(window=2)", epochs=1, fit_intercept=False)
    model.partial_fit([[1.0], [2.0]], [1, 0], classes=[0, 1])
    assert model.coef_[0, 0] == (0.5 * 1.0 + 1.0 * -1.0) / 1.5


def test_without_a_window_it_is_the_average_of_old():
    """The same spelling, state and file as before there were windows."""
    assert repr(onlearn.stabilizers.STABILIZERS.get("averaged(window=None)")) == "averaged"
    data = cases.data("binary", False)
    model = classifier("perceptron", "additive", "averaged").fit(data.X, data.y)
    assert type(model._training.st).__name__ == "AveragedState" and len(model._training.st) == 3
    for wrong in ("1.5", "0", "'all'"):
        with pytest.raises(ValueError, match=r"window must be None or a number of at least 2"):
            classifier("perceptron", "additive", f"averaged(window={wrong})").fit(data.X, data.y)


@pytest.mark.parametrize("group", LAZY)
def test_lazy_penalties_are_refused(group):
    data = cases.data("binary", False)
    for geometry in GEOMETRIES[group]:
        with pytest.raises(ValueError, match="a window counts time otherwise; use 'averaged'"):
            classifier("perceptron", geometry).fit(data.X, data.y)


@settings(max_examples=10)
@pytest.mark.parametrize(("geometry", "stabilizer"), [
    ("additive(0.1, l2=0.2)", STABILIZER), ("scinol", STABILIZER), ("exponentiated(0.4)", STABILIZER),
    ("fading_adagrad(0.3, memory=4)", STABILIZER), ("fading_adagrad(0.3, memory=4)", "last"),
])  # fmt: skip
@given(stream=st.data(), rule=st.sampled_from(sorted(RULES)), sparse=st.booleans())
def test_chunks_files_and_looks_change_nothing(geometry, stabilizer, stream, rule, sparse, tmp_path_factory):
    """Cut anywhere, looked at, saved and loaded in between: the same state, bit for bit."""
    rows = stream.draw(st.integers(2, 24))
    X = stream.draw(arrays(np.int8, (rows, 3), elements=st.integers(-3, 3))) * 0.37
    X = sp.csr_array(X) if sparse else X
    y = stream.draw(arrays(np.int64, rows, elements=st.integers(0, 1)))
    cuts = stream.draw(st.sets(st.integers(1, rows - 1), max_size=3))
    whole, parts = (classifier(rule, geometry, stabilizer) for _ in range(2))
    whole.partial_fit(X, y, classes=[0, 1])
    path = tmp_path_factory.mktemp("models") / "m.onl"
    for start, stop in pairwise([0, *sorted(cuts), rows]):
        parts.partial_fit(X[start:stop], y[start:stop], classes=[0, 1])
        parts.decision_function(X)
        parts.save(path)
        parts = onlearn.load(path)
    for mine, theirs in zip((*parts._training.g, *parts._training.st), (*whole._training.g, *whole._training.st)):
        assert np.array_equal(mine, theirs)
    assert np.array_equal(parts.decision_function(X), whole.decision_function(X))


def test_features_and_classes_may_come_late():
    data = cases.data("multiclass", False)
    X, y = data.X.copy(), data.y
    X[:15, 4:] = 0.0
    there, late = (
        classifier("perceptron", "fading_adagrad(0.3, memory=4)", multiclass="true", grow=True) for _ in "ab"
    )
    there.partial_fit(X, y, classes=[0, 1, 2])
    late.partial_fit(X[:15, :4], y[:15], classes=[0, 1, 2]).partial_fit(X[15:], y[15:])
    np.testing.assert_allclose(learned(late), learned(there), rtol=1e-12, atol=1e-12)
    y = np.where(np.arange(cases.ROWS) < 20, np.minimum(y, 1), y)  # the third class comes in the second call
    grown = classifier("perceptron", "additive", multiclass="true", grow=True)
    grown.partial_fit(data.X[:20], y[:20]).partial_fit(data.X[20:], y[20:])
    geometry, rule = ref.Additive(), ref.Perceptron()
    trail = ref.learn(rule, geometry, "true", data.X[:20], y[:20], outputs=2)
    fresh = geometry.add_output()
    trail.hypotheses = [np.hstack([w, fresh]) for w in trail.hypotheses]
    for x, label in zip(ref.with_constant(data.X[20:], 1.0), y[20:]):
        ref.learn_example(rule, geometry, ref.true_multiclass, x, label, 1.0, trail)
    assert_handed(grown, trail)


def test_kernels_average_over_a_window_too():
    data = cases.data("binary", False)
    dual = KernelClassifier("linear", stabilizer=STABILIZER, shuffle=False, epochs=3).fit(data.X, data.y)
    primal = classifier("perceptron", "additive", epochs=3).fit(data.X, data.y)
    np.testing.assert_allclose(dual.decision_function(data.X), primal.decision_function(data.X), rtol=1e-9)


# ---------------------------------------------------------------- after a change


def changed_stream(rows, seed=0):
    """Half of the stream by one concept, half by its opposite; a tenth of the labels are wrong."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2 * rows, 8))
    y = X @ rng.normal(size=8) > 0
    y[rows:] = ~y[rows:]
    return X, (y ^ (rng.random(2 * rows) < 0.1)).astype(int)


def mistakes_after(make, X, y, rows, chunk=50):
    """Mistakes of the hypothesis handed out on the rows after the change, each chunk before it is learned from."""
    model, wrong = make(), 0
    for start in range(0, len(y), chunk):
        part = slice(start, start + chunk)
        if start >= rows:
            wrong += np.count_nonzero(model.predict(X[part]) != y[part])
        model.partial_fit(X[part], y[part], classes=[0, 1])
    return wrong


@pytest.mark.parametrize("seed", range(3))
def test_a_window_follows_a_change(seed):
    """After 4000 rows of one concept, 1000 of its opposite, of which about 100 have a wrong label."""
    X, y = changed_stream(4000, seed)
    X, y = X[:5000], y[:5000]
    make = partial(OnlineClassifier, "logistic", "additive(0.05)")
    plain = mistakes_after(partial(make, "averaged"), X, y, 4000)
    fading = mistakes_after(partial(make, "averaged(window=100)"), X, y, 4000)
    assert fading < 0.5 * plain


@pytest.mark.parametrize("seed", range(3))
def test_fading_sums_follow_a_change(seed):
    """8000 rows of either concept, so that AdaGrad's rates have fallen a long way; some 800 labels are wrong."""
    X, y = changed_stream(8000, seed)
    plain, fading = (
        mistakes_after(partial(OnlineClassifier, "logistic", geometry, "last"), X, y, 8000)
        for geometry in ("adagrad(0.1)", "fading_adagrad(0.1, memory=100)")
    )
    assert fading < 0.7 * plain


def test_a_memory_of_one_makes_steps_of_one_size():
    """Then the sum is the present gradient's square: every feature of an example moves by the rate."""
    model = classifier("perceptron", "fading_adagrad(0.25, memory=1)", "last", epochs=1, fit_intercept=False)
    model.partial_fit([[1e-3, -50.0, 0.0], [1e5, 0.0, 3.0]], [1, 0], classes=[0, 1])
    np.testing.assert_allclose(model.coef_[0], [0.0, -0.25, -0.25], atol=1e-15)
