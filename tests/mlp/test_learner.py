"""What networks learn, when they stop, and what they say."""

import _thread
import copy
import pickle
import threading
import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from onlearn import model_file
from onlearn.engine.csr import CSR
from onlearn.mlp.learner import MLPClassifierLearner as Classifier
from onlearn.mlp.learner import MLPRegressorLearner as Regressor
from onlearn.mlp.learner import layer_sizes

XOR = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]]), np.array([0, 1, 1, 0])
RNG = np.random.default_rng(0)
PLANE = RNG.uniform(-2, 2, (1000, 2))
DISC = np.where((PLANE**2).sum(axis=1) <= 1, "in", "out")
THREE = np.where(DISC == "in", "in", np.where(PLANE[:, 0] > 0, "right", "left"))
CURVE = PLANE[:, 0] * PLANE[:, 1]


def weights(learner):
    return np.concatenate([one.ravel() for one in (*learner.coefs_, *learner.intercepts_)])


@pytest.mark.parametrize("activation", ["relu", "tanh", "logistic"])
@pytest.mark.parametrize("batch_size", [1, 4])
def test_a_hidden_layer_learns_xor(activation, batch_size):
    X, y = XOR
    learner = Classifier(
        hidden_layer_sizes=8,
        activation=activation,
        optimizer="adam(0.05)",
        batch_size=batch_size,
        epochs=300,
        random_state=0,
    )
    assert learner.fit(X, y).predict(X).tolist() == y.tolist()
    assert learner.predict_proba(X)[np.arange(4), y].min() > 0.9


def test_without_a_hidden_layer_xor_cannot_be_learned():
    X, y = XOR
    learner = Classifier(hidden_layer_sizes=(), optimizer="adam(0.05)", random_state=0).fit(X, y)
    assert learner.coefs_[0].shape == (2, 1) and (learner.predict(X) == y).mean() <= 0.75


@pytest.mark.parametrize("loss", ["auto", "softmax", "squared", "logistic"])
def test_the_disc_and_three_regions_are_learned(loss):
    for y in (DISC, THREE):
        learner = Classifier(hidden_layer_sizes=(16, 8), loss=loss, optimizer="adam(0.01)", random_state=0).fit(
            PLANE, y
        )
        assert (learner.predict(PLANE) == y).mean() > 0.97
        p = learner.predict_proba(PLANE)
        np.testing.assert_allclose(p.sum(axis=1), 1.0)
        np.testing.assert_array_equal(learner.classes_[p.argmax(axis=1)], learner.predict(PLANE))
        assert learner.loss_curve_[-1] < 0.3 * learner.loss_curve_[0] and learner.stopped_ in ("tol", "epochs")


@pytest.mark.parametrize("optimizer", ["sgd(0.05, momentum=0.9)", "adagrad(0.05)", "adam(0.01)"])
def test_numbers_of_any_size_are_learned(optimizer):
    for size in (1.0, 1e9, 1e-9):
        learner = Regressor(hidden_layer_sizes=32, optimizer=optimizer, random_state=0).fit(
            PLANE * size, CURVE * size + 5 * size
        )
        assert np.corrcoef(learner.predict(PLANE * size), CURVE)[0, 1] > 0.97
        sparse = Regressor(hidden_layer_sizes=32, optimizer=optimizer, random_state=0)
        sparse.fit(CSR.of(PLANE * size), CURVE * size)
        assert np.corrcoef(sparse.predict(PLANE * size), CURVE)[0, 1] > 0.95


def test_sparse_rows_are_learned_from_as_dense_ones():
    X = RNG.normal(size=(200, 30)) * (RNG.random((200, 30)) < 0.1)
    y = X[:, 0] + X[:, 1] > X[:, 2]
    for batch_size in (1, 16):
        settings = dict(batch_size=batch_size, epochs=3, standardize=False, dtype="float64", random_state=0, l2=1e-3)
        dense, sparse = Classifier(**settings).fit(X, y), Classifier(**settings).fit(sp.csr_matrix(X), y)
        np.testing.assert_allclose(weights(dense), weights(sparse), rtol=1e-7, atol=1e-10)
        np.testing.assert_allclose(dense.decision_function(sp.csr_matrix(X)), sparse.decision_function(X), rtol=1e-7)


def test_rows_are_held_out_and_the_best_network_is_kept():
    noisy = np.where(RNG.random(1000) < 0.2, RNG.permutation(DISC), DISC)
    learner = Classifier(
        early_stopping=True, validation_fraction=0.3, patience=3, optimizer="adam(0.03)", random_state=0
    )
    learner.fit(PLANE, noisy)
    scores = learner.validation_scores_
    assert learner.stopped_ == "validation" and len(scores) == len(learner.loss_curve_) < 100
    assert max(scores[:-3]) + 1e-4 > max(scores[-3:])
    short = Classifier(**learner.get_params() | {"epochs": int(np.argmax(scores)) + 1}).fit(PLANE, noisy)
    np.testing.assert_array_equal(weights(short), weights(learner))
    assert Regressor(early_stopping=True, random_state=0).fit(PLANE, CURVE).validation_scores_[-1] > 0.9
    with pytest.raises(ValueError, match="too few"):
        Classifier(early_stopping=True).fit(*XOR)
    with pytest.raises(ValueError, match="early_stopping needs fit"):
        Classifier(early_stopping=True).partial_fit(*XOR, classes=[0, 1])


def test_learning_that_diverges_says_so_and_keeps_a_sound_network():
    wild = Regressor(optimizer="sgd(1e6)", random_state=0)
    with pytest.raises(ValueError, match=r"MLPRegressor diverged, .*: lower the rate"):
        wild.fit(PLANE, CURVE)
    assert wild.training is None
    learner = Regressor(optimizer="sgd(1e6)", batch_size=8, random_state=0)
    learner.partial_fit(PLANE[:4], CURVE[:4])  # which wait
    facts, arrays = copy.deepcopy(learner.training.pack())
    with pytest.raises(ValueError, match="diverged"):
        learner.partial_fit(PLANE[4:], CURVE[4:])
    now, kept = learner.training.pack()
    assert now == facts and all(np.array_equal(arrays[key], kept[key]) for key in arrays)
    single = Regressor(optimizer="sgd(1e8)", batch_size=1, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for x, y in zip(PLANE[:20], CURVE):
            single.partial_fit(x[None], [y])
    assert any("MLPRegressor diverges, a weight would grow beyond 1e+15" in str(one.message) for one in caught)
    assert np.isfinite(weights(single)).all()


def test_a_network_that_diverges_late_is_that_of_the_pass_before():
    settings = dict(optimizer="sgd(0.05)", activation="relu", random_state=0, warm_start=True, epochs=2)
    learner = Regressor(**settings).fit(PLANE, CURVE)
    huge = np.full(len(CURVE), 1e30)
    before = weights(learner)
    with pytest.raises(ValueError, match="diverged"):
        learner.fit(PLANE, huge)
    np.testing.assert_array_equal(weights(learner), before)


def test_passes_end_by_time_and_by_ctrl_c_with_a_network_that_predicts():
    settings = dict(hidden_layer_sizes=64, epochs=10**6, tol=0.0, patience=10**6, random_state=0)
    learner = Classifier(**settings, time_limit=0.2).fit(PLANE, DISC)
    assert learner.stopped_ == "time_limit" and (learner.predict(PLANE) == DISC).mean() > 0.8
    threading.Timer(0.3, _thread.interrupt_main).start()
    began = time.perf_counter()
    with pytest.warns(UserWarning, match="interrupted; what was learned is kept"):
        learner = Classifier(**settings, time_limit=60).fit(PLANE, DISC)
    assert learner.stopped_ == "interrupted" and (learner.predict(PLANE) == DISC).mean() > 0.8
    assert time.perf_counter() - began < 50  # it did end by Ctrl-C


def test_one_example_constant_columns_and_no_columns_that_matter():
    one = Regressor(random_state=0).fit([[1.0, 2.0]], [7.0])
    assert one.predict([[1.0, 2.0]]).tolist() == [7.0]
    X = np.column_stack([PLANE, np.full(1000, 1e9), np.zeros(1000)])
    learner = Classifier(optimizer="adam(0.01)", random_state=0).fit(X, DISC)
    assert (learner.predict(X) == DISC).mean() > 0.97
    empty = Classifier(random_state=0, epochs=3).fit(np.zeros((10, 2)), np.arange(10) < 7)
    assert empty.predict(np.zeros((1, 2))).tolist() == [True]
    assert np.isfinite(learner.decision_function(np.full((2, 4), 1e300))).all()


def test_one_seed_is_one_result_and_fits_go_on():
    settings = dict(random_state=3, epochs=4, hidden_layer_sizes=8)
    one, other = Classifier(**settings).fit(PLANE, THREE), Classifier(**settings).fit(PLANE, THREE)
    np.testing.assert_array_equal(weights(one), weights(other))
    parts = Classifier(**settings | {"epochs": 2, "warm_start": True}).fit(PLANE, THREE).fit(PLANE, THREE)
    np.testing.assert_array_equal(weights(one), weights(parts))
    assert parts.loss_curve_ == one.loss_curve_ and parts.n_seen_ == 4000
    assert not np.array_equal(weights(one), weights(Classifier(**settings | {"random_state": 4}).fit(PLANE, THREE)))
    with pytest.raises(ValueError, match="hidden_layer_sizes was"):
        parts.set_params(hidden_layer_sizes=9).fit(PLANE, THREE)


@pytest.mark.parametrize("rows", [PLANE, CSR.of(PLANE)], ids=["dense", "sparse"])
def test_files_and_copies_go_on_bit_for_bit(tmp_path, rows):
    def part(some):
        return rows[some] if isinstance(rows, np.ndarray) else rows.between(some.start, some.stop)

    whole, cut = (Classifier(random_state=0, batch_size=16) for _ in range(2))
    whole.partial_fit(rows, THREE, classes=["in", "left", "right"])
    cut.partial_fit(part(slice(0, 333)), THREE[:333], classes=["in", "left", "right"])
    cut.save(tmp_path / "cut.onl")
    loaded = model_file.load_learner(tmp_path / "cut.onl")
    for other in (cut, loaded, copy.deepcopy(loaded), pickle.loads(pickle.dumps(loaded))):
        np.testing.assert_array_equal(other.decision_function(PLANE[:50]), loaded.decision_function(PLANE[:50]))
    for other in (loaded, cut):
        other.partial_fit(part(slice(333, 1000)), THREE[333:])
        np.testing.assert_array_equal(weights(other), weights(whole))
        assert other.n_seen_ == 1000 and other.n_mistakes_ == whole.n_mistakes_
    fitted = Regressor(random_state=0, hidden_layer_sizes=[4, 3], epochs=2).fit(rows, CURVE)
    fitted.save(tmp_path / "fit.onl")
    back = model_file.load_learner(tmp_path / "fit.onl")
    assert back.settings.hidden_layer_sizes == [4, 3] or back.settings.hidden_layer_sizes == (4, 3)
    back.set_params(warm_start=True), fitted.set_params(warm_start=True)
    np.testing.assert_array_equal(weights(back.fit(rows, CURVE)), weights(fitted.fit(rows, CURVE)))


def test_damaged_files_are_refused():
    learner = Classifier(random_state=0, batch_size=16).partial_fit(PLANE[:20], DISC[:20], classes=["in", "out"])
    facts, arrays = learner._pack()

    def refused(facts=facts, match=None, **changed):
        with pytest.raises((ValueError, KeyError), match=match):
            Classifier(batch_size=16)._unpack(facts, {**arrays, **changed})

    def with_fact(**changed):
        return {**facts, "training": {**facts["training"], **changed}}

    key = "training."
    w = arrays[key + "w"]
    refused(match="w does not have the shape", **{key + "w": w[:-1]})
    refused(match="w does not have the shape", **{key + "w": w.astype(np.float64)})
    refused(match="v holds what it cannot", **{key + "v": -np.ones_like(w)})
    refused(match="last holds", **{key + "last": np.full(2, 10**6)})
    refused(match="cannot wait", **{key + "waiting.y": np.zeros(17)})
    refused(match="waiting.y holds", **{key + "waiting.y": np.full(4, 7.0)})
    refused(match="contradict", **{key + "inputs.low": np.full(2, 1e9)})
    refused(with_fact(outputs=10**9), match="w does not have")
    refused(with_fact(outputs=10**30), match="for training.outputs")
    refused({**facts, "estimator": {**facts["estimator"], "n_features_in": 10**18}}, match="w does not have")
    refused(with_fact(steps=-1), match="whole number")
    refused(with_fact(validation="none"), match="numbers")
    refused(with_fact(sparse=True))


def test_weights_of_examples_and_classes():
    kept = RNG.random(1000) < 0.5
    settings = dict(random_state=0, epochs=2, shuffle=False)
    absent = Classifier(**settings).fit(PLANE, DISC, kept.astype(float))
    np.testing.assert_array_equal(weights(absent), weights(Classifier(**settings).fit(PLANE[kept], DISC[kept])))
    few = np.arange(1000) < 50
    overlapping = RNG.normal(size=(1000, 2)) + few[:, None]
    plain = Classifier(random_state=0, epochs=20).fit(overlapping, few)
    balanced = Classifier(random_state=0, epochs=20, class_weight="balanced").fit(overlapping, few)
    heavy = Classifier(random_state=0, epochs=20, class_weight={False: 1, True: 20}).fit(overlapping, few)
    assert plain.predict(overlapping).sum() < 50 < min(one.predict(overlapping).sum() for one in (balanced, heavy))


def test_single_rows_and_names():
    learner = Classifier(random_state=0, batch_size=1, optimizer="adam(0.01)")
    learner.partial_fit(PLANE[:1], DISC[:1], classes=["in", "out"])
    whole = Classifier(random_state=0, batch_size=1, optimizer="adam(0.01)")
    whole.partial_fit(PLANE[:50], DISC[:50], classes=["in", "out"])
    for x, y in zip(PLANE[1:50], DISC[1:50]):
        learner.learn_one(x, y)
    np.testing.assert_array_equal(weights(learner), weights(whole))
    assert learner.predict_one(PLANE[0]) == whole.predict(PLANE[:1])[0]
    assert sum(learner.predict_proba_one(PLANE[0]).values()) == pytest.approx(1.0)


def test_an_explanation_is_gradient_times_input_and_says_so():
    learner = Regressor(hidden_layer_sizes=(), random_state=0, optimizer="adam(0.05)", epochs=300).fit(
        PLANE, 3 * PLANE[:, 0] + 2
    )
    found = learner.contributions(PLANE[:1])
    assert "approximation" in found.note and found.weights == pytest.approx([3, 0], abs=0.05)
    assert found.amounts.sum() + found.intercept == pytest.approx(learner.predict(PLANE[:1])[0])
    deep = Classifier(random_state=0, activation="tanh", epochs=5).fit(CSR.of(PLANE), THREE)
    found, step = deep.contributions(CSR.of(PLANE[:1])), 1e-6
    for j in range(2):
        moved = PLANE[:1] + step * np.eye(2)[j]
        change = (deep.decision_function(moved) - deep.decision_function(PLANE[:1]))[0] / step
        assert change[found.favours] - change[found.against] == pytest.approx(found.weights[j], rel=1e-3)


def test_parameters_that_cannot_be_are_refused_in_a_sentence():
    for wrong, match in (
        (dict(hidden_layer_sizes=(0,)), "hidden_layer_sizes must be"),
        (dict(hidden_layer_sizes="many"), "hidden_layer_sizes must be"),
        (dict(hidden_layer_sizes=(3.5,)), "hidden_layer_sizes must be"),
        (dict(activation="sigmoid"), "activation must be"),
        (dict(loss="hinge"), "loss must be"),
        (dict(optimizer="adma"), "did you mean 'adam'"),
        (dict(optimizer="adam(rate=-1)"), "rate must be"),
        (dict(optimizer='sgd(schedule="1/(lambda t)")'), "needs l2"),
        (dict(batch_size=0), "batch_size must be"),
        (dict(l2=-1), "l2 must be"),
        (dict(validation_fraction=1.5), "validation_fraction must be"),
        (dict(time_limit=0), "time_limit must be"),
        (dict(dtype="float16"), "dtype must be"),
    ):
        with pytest.raises((ValueError, TypeError), match=match):
            Classifier(**wrong).fit(*XOR)
    assert layer_sizes("5, 3") == layer_sizes(np.array([5, 3])) == (5, 3)
    with pytest.raises(ValueError, match="NaN in row 1"):
        Classifier().fit([[0.0], [np.nan]], [0, 1])
