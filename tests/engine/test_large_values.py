"""Very large values, weights, rates and radii: whatever comes in, what was learned is finite."""

import numpy as np
import pytest
import scipy.sparse as sp

from onlearn import OnlineClassifier
from onlearn.engine.csr import radius

RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(60, 5)), 2) * (RNG.random((60, 5)) < 0.7)
Y = (X @ [1, -2, 0.5, 0, 1] > 0).astype(int)

GEOMETRIES = [
    "additive",
    "additive(l2=0.1)",
    "additive(l1=0.1)",
    "adagrad",
    "adagrad(l1=0.1)",
    "arow",
    "ftrl",
    "scinol",
    "fading_adagrad",
]
MULTIPLICATIVE = ["winnow", "balanced", "exponentiated"]


@pytest.mark.parametrize("geometry", GEOMETRIES + MULTIPLICATIVE)
@pytest.mark.parametrize("rule", ["perceptron", "lms", "pa1", "aggressive", "squared_hinge", "logistic"])
@pytest.mark.filterwarnings("ignore:the weights grew beyond")
def test_enormous_values_leave_the_weights_finite(geometry, rule):
    enormous = np.abs(X)
    enormous[::7, 1] = 1e300
    enormous[3, 2] = 1e-300
    enormous[5] = 1e300
    model = OnlineClassifier(rule=rule, geometry=geometry, random_state=0)
    with np.errstate(all="ignore"):
        model.fit(enormous, Y)
        assert np.isfinite(model.coef_).all() and np.isfinite(model.intercept_).all()
        for array in (*model._training.g, *model._training.st, model._training.tally):
            assert np.isfinite(array).all()


@pytest.mark.parametrize("geometry", [*GEOMETRIES, *MULTIPLICATIVE, "exponentiated(1e250)", "additive(9e99)"])
@pytest.mark.parametrize("rule", ["lms", "aggressive", "squared_hinge", "pa1"])
@pytest.mark.filterwarnings("ignore:the weights grew beyond")
def test_the_heaviest_weights_leave_the_weights_finite(geometry, rule):
    weight = np.where(np.arange(60) % 2, 1e100, 1.0)
    model = OnlineClassifier(rule=rule, geometry=geometry, random_state=0).fit(
        np.maximum(X, 0.0), Y, weight
    )  # zeros tell infinite steps
    for array in (*model._training.g, *model._training.st, model.coef_, model.intercept_):
        assert np.isfinite(array).all()


@pytest.mark.parametrize("make", [np.array, sp.csr_matrix])
def test_the_radius_of_very_large_and_very_small_rows(make):
    for size in (1e300, 1e99, 1.0, 1e-99, 1e-300):
        assert radius(make([[3 * size, 4 * size], [size, 0.0]])) == pytest.approx(5 * size)
    assert radius(make(np.zeros((2, 2)))) == 0.0


def test_a_diverging_learner_says_so():
    with pytest.warns(UserWarning, match="lower the rate"):
        model = OnlineClassifier(rule="lms", geometry="additive(10)", epochs=50).fit(X * 100, Y)
    assert np.isfinite(model.coef_).all()


def test_strange_scores_of_sound_rows_are_learned_from():
    """A score may overflow though every value is finite; it is then learned from as if NaN had been searched for."""
    X, y = np.full((50, 3), 1e200), np.arange(50) % 2
    X[y == 1] *= -1.0
    settings = {"rule": "lms", "geometry": "additive(rate=1e99)", "epochs": 1, "random_state": 0}
    late = OnlineClassifier(**settings).fit(X, y)
    early = OnlineClassifier(**settings).fit(X, y, sample_weight=np.ones(50))
    assert late._training.checked  # a score was not finite, so the rows were searched after all
    assert late.n_seen_ == 50 and np.isfinite(late.coef_).all()
    assert np.array_equal(late.coef_, early.coef_)


@pytest.mark.parametrize("labels", [2, 3])
def test_probabilities_of_large_values_are_finite_and_can_be_saved(labels, tmp_path):
    data = X.copy()
    data[::7, 1], data[::5, 2] = 1e300, -1e300
    model = OnlineClassifier(random_state=0).fit(data, np.arange(60) % labels)
    assert np.isfinite(model.predict_proba(data)).all()
    model.save(tmp_path / "m.onl")
