"""The kernel regressor as users meet it: good with nothing said, saved and loaded, its smaller forms, bad input."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

import onlearn
from onlearn import KernelClassifier, KernelRegressor
from onlearn.model_file import ModelFileError, read_file, write_arrays

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 10, (200, 1))
Y = np.sin(X[:, 0])
NEW = np.linspace(0.2, 9.8, 300)[:, None]


@pytest.mark.parametrize("rows", [30, 100, 1000])
def test_a_sine_with_nothing_said(rows):
    x = np.linspace(0, 10, rows)[:, None]
    model = KernelRegressor().fit(x, np.sin(x[:, 0]))
    inside = NEW[20:-20]
    assert model.score(inside, np.sin(inside[:, 0])) > 0.99


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("level", [0.0, 1000.0, -1e6])
def test_neither_scale_nor_level_of_y_matters(scale, level):
    model = KernelRegressor(random_state=0).fit(X, scale * (Y + level))
    assert model.score(NEW, scale * (np.sin(NEW[:, 0]) + level)) > 0.98


def test_noise_is_averaged_out():
    noisy = Y + RNG.normal(0, 0.3, len(Y))
    averaged, last = (KernelRegressor(stabilizer=s, random_state=0).fit(X, noisy) for s in ("averaged", "last"))
    truth = np.sin(NEW[:, 0])
    assert averaged.score(NEW, truth) > 0.95 > last.score(NEW, truth)


@pytest.mark.parametrize("data", ["friedman", "diabetes"])
def test_as_good_as_ridge_and_support_vectors(data):
    if data == "friedman":
        rows, y = make_friedman1(600, 5, noise=1.0, random_state=0)
    else:
        rows, y = load_diabetes(return_X_y=True)
    rows = StandardScaler().fit_transform(rows)
    part, gamma = len(y) * 2 // 3, 0.05
    ridge = KernelRidge(kernel="rbf", gamma=gamma).fit(rows[:part], y[:part] - y[:part].mean())
    best = 1 - np.mean((ridge.predict(rows[part:]) + y[:part].mean() - y[part:]) ** 2) / np.var(y[part:])
    best = max(best, SVR(gamma=gamma).fit(rows[:part], y[:part]).score(rows[part:], y[part:]))
    kernel = f"gaussian(gamma={gamma})"
    assert KernelRegressor(kernel, random_state=0).fit(rows[:part], y[:part]).score(rows[part:], y[part:]) > best - 0.03
    tube = f"pa_epsilon({0.1 * y.std()})"
    found = KernelRegressor(kernel, tube, random_state=0).fit(rows[:part], y[:part])
    assert found.score(rows[part:], y[part:]) > best - 0.06


def test_errors_inside_of_the_tube_need_no_support_example():
    tube = KernelRegressor(rule="pa_epsilon(0.2)", random_state=0).fit(X, Y)
    assert tube.n_support_ < KernelRegressor(random_state=0).fit(X, Y).n_support_ == 200
    assert np.abs(tube.predict(NEW) - np.sin(NEW[:, 0])).max() < 0.4


def test_attributes():
    model = KernelRegressor(keep_stages=True, epochs=4, random_state=0).fit(X, Y)
    assert model.dual_coef_.shape == (1, 200) and model.support_examples_.shape == (200, 1)
    assert model.representation_ == "dual" and model.n_features_in_ == 1 and model.intercept_.shape == (1,)
    K = onlearn.kernels.Gaussian()(NEW, model.support_examples_)
    np.testing.assert_allclose(K @ model.dual_coef_[0] + model.intercept_, model.predict(NEW), rtol=1e-9)
    stages = list(model.staged_predict(NEW))
    assert len(stages) == 4
    np.testing.assert_allclose(stages[-1], model.predict(NEW), rtol=1e-12)
    assert model.estimate(X).supports > 0
    for name in ("classes_", "n_mistakes_", "predict_proba", "decision_function"):
        assert not hasattr(model, name)


def test_clone_pickle_and_search():
    model = KernelRegressor(onlearn.kernels.Gaussian(0.7), random_state=0)
    assert clone(model).get_params() == model.get_params()
    model.fit(X, Y)
    back = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(back.predict(NEW), model.predict(NEW))
    search = GridSearchCV(KernelRegressor("gaussian", random_state=0), {"kernel__sigma": [0.05, 1.0]}, cv=3).fit(X, Y)
    assert search.best_params_ == {"kernel__sigma": 1.0}


@pytest.mark.parametrize(
    "settings",
    [
        {},
        dict(rule="pa_epsilon(0.05)", budget=30),
        dict(budget=30, budget_policy="merge"),
        dict(kernel="polynomial(3)", geometry="additive(0.5, l2=1e-4)", stabilizer="last"),
        dict(kernel="polynomial(3)", representation="primal"),
    ],
    ids=str,
)
def test_train_save_load_train_is_train_train_bit_for_bit(settings, tmp_path):
    first = KernelRegressor(random_state=0, **settings).partial_fit(X[:90], Y[:90])
    first.save(tmp_path / "m.onl")
    loaded = onlearn.load(tmp_path / "m.onl")
    assert type(loaded) is KernelRegressor and loaded.get_params() == first.get_params()
    first.partial_fit(X[90:], Y[90:])
    loaded.partial_fit(X[90:], Y[90:])
    np.testing.assert_array_equal(loaded.predict(NEW), first.predict(NEW))
    for model, name in ((first, "a.onl"), (loaded, "b.onl")):
        model.save(tmp_path / name)
    assert (tmp_path / "a.onl").read_bytes() == (tmp_path / "b.onl").read_bytes()


def test_damaged_files_are_refused(tmp_path):
    KernelRegressor(random_state=0).fit(X, Y).save(tmp_path / "m.onl")
    header, arrays = read_file(tmp_path / "m.onl")

    def broken(change, **other):
        facts = copy.deepcopy(header)
        change(facts)
        write_arrays(str(tmp_path / "n.onl"), {**arrays, **other}, {"onlearn": json.dumps({**facts, "format": 1})})
        with pytest.raises(ModelFileError):
            onlearn.load(tmp_path / "n.onl")

    broken(lambda facts: facts.pop("mean_length"))
    broken(lambda facts: facts.update(mean_length=[1.0, "x"]))
    broken(lambda facts: facts.update(learner="KernelClassifier"))
    broken(lambda facts: None, **{"training.g.w": arrays["training.g.w"][:-1]})


class TestReduce:
    def test_projection_loses_next_to_nothing(self):
        model = KernelRegressor(random_state=0).fit(X, Y)
        small = model.reduce(40, X, Y)
        assert small.n_support_ <= 40 and small.reduction_.lost < 1e-3 and small.reduction_.by == "projection"
        assert small.reduction_.accuracy_after == pytest.approx(small.reduction_.accuracy_before, abs=1e-4)

    @pytest.mark.parametrize("stabilizer", ["last", "averaged"])
    def test_by_weight_keeps_the_largest_as_they_are(self, stabilizer):
        model = KernelRegressor(stabilizer=stabilizer, random_state=0).fit(X, Y)
        alpha, examples = model.dual_coef_[0], model.support_examples_
        small = model.reduce(50, X, Y, by="weight")
        kept = np.sort(np.argsort(-np.abs(alpha), kind="stable")[:50])
        np.testing.assert_allclose(small.dual_coef_[0], alpha[kept], rtol=1e-12)
        np.testing.assert_array_equal(small.support_examples_, examples[kept])
        np.testing.assert_array_equal(small.intercept_, model.intercept_)
        K = onlearn.kernels.Gaussian()(examples)
        gone = np.where(np.isin(np.arange(200), kept), 0.0, alpha)
        found = small.reduction_
        assert found.lost == pytest.approx(np.sqrt((gone @ K @ gone) / (alpha @ K @ alpha)), rel=1e-6)
        assert (found.before, found.after, found.by) == (200, 50, "weight")
        assert found.accuracy_after == small.score(X, Y) < found.accuracy_before
        small.partial_fit(X[:5], Y[:5])  # and goes on

    def test_more_than_there_are(self):
        model = KernelRegressor(random_state=0).fit(X, Y)
        whole = model.reduce(500, by="weight")
        assert whole.reduction_.lost == 0.0 and whole.n_support_ == 200
        np.testing.assert_allclose(whole.predict(NEW), model.predict(NEW), rtol=1e-12)

    def test_of_classes(self, tmp_path):
        rows, labels = RNG.normal(size=(150, 2)), RNG.integers(3, size=150)
        model = KernelClassifier(random_state=0).fit(rows, labels)
        small = model.reduce(20, by="weight")
        size = np.sum(model.dual_coef_**2, axis=0)
        kept = np.sort(np.argsort(-size, kind="stable")[:20])
        np.testing.assert_allclose(small.dual_coef_, model.dual_coef_[:, kept], rtol=1e-12)
        assert small.reduction_.lost > 0 and model.reduce(20).reduction_.lost < small.reduction_.lost
        small.save(tmp_path / "m.onl")
        assert onlearn.load(tmp_path / "m.onl").reduction_ == small.reduction_

    def test_strings(self):
        model = KernelRegressor("substrings(1, 2)", random_state=0).fit(
            ["aa", "ab", "bb", "abab"], [0.0, 1.0, 0.0, 2.0]
        )
        assert model.reduce(2, by="weight").n_support_ == 2

    def test_what_is_wrong(self):
        model = KernelRegressor(random_state=0).fit(X, Y)
        with pytest.raises(ValueError, match="by must be 'projection' or 'weight', not 'size'"):
            model.reduce(3, by="size")
        with pytest.raises(ValueError, match="at least 1"):
            model.reduce(0, by="weight")
        with pytest.raises(ValueError, match="has a budget already"):
            KernelRegressor(budget=9, random_state=0).fit(X, Y).reduce(3)
        voted = KernelClassifier(stabilizer="voted", random_state=0).fit(X, Y > 0)
        with pytest.raises(ValueError, match="voted"):
            voted.reduce(3, by="weight")


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (dict(rule="perceptron"), "is for classification; regression has 'lms', 'nlms', 'epsilon' and 'pa_epsilon'"),
        (dict(rule="nlsm"), "nlms"),
        (dict(stabilizer="voted"), "counts mistakes"),
        (dict(geometry="adagrad"), "learns additively"),
        (dict(geometry="additive(l1=0.1)"), "learns additively"),
        (dict(epochs=None), "epochs=None needs tol"),
        (dict(init="first"), "init must be"),
        (dict(damping="max"), "damping must be"),
        (dict(damping=-1), "damping must be"),
        (dict(budget=5, keep_stages=True), "keep_stages has no use"),
        (dict(kernel="gausian"), "gaussian"),
    ],
)
def test_wrong_parameters_are_refused(settings, why):
    with pytest.raises(ValueError, match=why):
        KernelRegressor(**settings).fit(X, Y)


def test_wrong_data_are_refused():
    for y, why in ((Y[:-1], "inconsistent"), (np.where(Y > 0.9, np.nan, Y), "NaN"), (["a"] * 200, "not a number")):
        with pytest.raises(ValueError, match=why):
            KernelRegressor().fit(X, y)
    with pytest.raises(TypeError, match="gaussian works on rows of numbers, not on strings"):
        KernelRegressor().fit(["a", "b"], [1.0, 2.0])
    model = KernelRegressor(random_state=0).partial_fit(X, Y)
    with pytest.raises(ValueError, match="init was 'mean' when learning began"):
        model.set_params(init="zeros").partial_fit(X, Y)
    with pytest.raises(ValueError, match="the rule nlms is for regression"):
        KernelClassifier(rule="nlms").fit(X, Y > 0)


@pytest.mark.filterwarnings("ignore:the weights grew")
def test_rates_that_do_not_suit_the_kernel_are_told_of():
    with pytest.warns(UserWarning, match=r"mean squared error .* is more than the variance of y"):
        model = KernelRegressor("polynomial(3)", rule="lms", epochs=3, random_state=0).fit(X, Y)
    assert np.isfinite(model.predict(NEW)).all()


def test_one_row_and_equal_rows():
    assert KernelRegressor(random_state=0).fit([[1.0]], [3.0]).predict([[1.0]]) == pytest.approx([3.0])
    same = KernelRegressor(random_state=0).fit(np.zeros((6, 1)), [1, 2, 3, 1, 2, 3])
    assert same.predict([[0.0]]) == pytest.approx([2.0], abs=0.3)
    assert KernelRegressor(random_state=0).fit(X, np.full(200, 4.0)).predict(NEW) == pytest.approx(np.full(300, 4.0))
