"""The estimators' manners: scikit-learn's contract, and what users of it expect."""

import pickle
import signal
import warnings
from itertools import pairwise

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import onlearn
from onlearn.engine.csr import row_batches
from onlearn.engine.inputs import encode, joined
from onlearn.engine.training import Training
from onlearn.estimators.linear import NAMED

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 6))
Y = (X @ [2, -1, 0, 0, 1, 0.5] + 0.3 * RNG.normal(size=120) > 0).astype(int)
BLOBS, COLOURS = make_blobs(n_samples=150, centers=4, n_features=5, random_state=0)

ESTIMATORS = {
    "OnlineClassifier": onlearn.OnlineClassifier,
    "OnlineRegressor": onlearn.OnlineRegressor,
    "KernelClassifier": onlearn.KernelClassifier,
    "KernelRegressor": onlearn.KernelRegressor,
    "Mixture": onlearn.Mixture,
    **NAMED,
}

ORDER = (
    "an online learner visits examples one after another, each pass in a shuffled order: a weight of 2 is one longer "
    "step, not two visits, as in scikit-learn's own SGDClassifier. That a weight of 0 is absence and that weights "
    "scale steps is tested in test_engine"
)
HEAVY = (
    "asks that a class of weight 1000 gets 87 % of three overlapping blobs of spread 20, which takes an intercept "
    "larger than the features; five passes with a constant feature of size 1 do not get there"
)
POSITIVE = "the check passes negative features to a learner whose tags say that it takes none"
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": ORDER,
    "check_sample_weight_equivalence_on_sparse_data": ORDER,
}
# the last two are excused from accuracy by their tags: without negative weights they learn only some problems
WEIGHTED_WELL = {
    "AdaGrad",
    "AROW",
    "FTRL",
    "KernelClassifier",
    "KernelRegressor",
    "OnlineRegressor",
    "ScInOL",
    "NormalizedWinnow",
    "Winnow",
}


# Each of these differs from the others in its code or its parameters; the rest, which do in their loops only, are slow.
TYPICAL = {
    "OnlineClassifier",
    "OnlineRegressor",
    "KernelClassifier",
    "KernelRegressor",
    "LogisticRegression",
    "Mixture",
}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in TYPICAL else pytest.mark.slow, id=n) for n in ESTIMATORS]
)
def test_check_estimator_passes(name):
    expected = dict(EXPECTED)
    if name not in WEIGHTED_WELL:
        expected["check_class_weight_classifiers"] = HEAVY
    if name == "Winnow":
        expected.update(check_class_weight_classifiers=POSITIVE, check_decision_proba_consistency=POSITIVE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on purpose: the checks feed data that do not converge
        results = check_estimator(ESTIMATORS[name](), expected_failed_checks=expected)
    # skipped is only what scikit-learn skips by itself for want of an environment variable
    assert {r["check_name"] for r in results if r["status"] == "skipped"} <= {"check_array_api_input"}
    # and nothing is excused that would have passed
    assert {r["check_name"] for r in results if r["status"] == "xfail"} == set(expected)


CLASSIFIERS = {
    **{name: made for name, made in ESTIMATORS.items() if hasattr(made, "predict_proba")},
    **{name: getattr(onlearn, name) for name in ("KNNClassifier", "MLPClassifier", "NaiveBayes", "SVC")},
}


@pytest.mark.parametrize("name", sorted(CLASSIFIERS))
@pytest.mark.parametrize("colours", [2, 3])
def test_logarithms_of_probabilities(name, colours):
    """Without a warning, also where a probability is 0."""
    keep = np.isin(COLOURS, range(colours))
    model = CLASSIFIERS[name]()
    rows = np.abs(BLOBS[keep])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(rows, COLOURS[keep])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = model.predict_log_proba(1e3 * rows)
    with np.errstate(divide="ignore"):
        expected = np.log(model.predict_proba(1e3 * rows))
    finite = np.isfinite(expected)
    assert found.shape == expected.shape == (len(rows), colours)
    np.testing.assert_allclose(found[finite], expected[finite], rtol=1e-9, atol=1e-12)
    assert (found[~finite] < -700).all()
    assert np.array_equal(model.classes_[found.argmax(axis=1)], model.predict(1e3 * rows))


def test_where_there_are_no_probabilities_there_are_no_logarithms():
    assert not hasattr(onlearn.SVC(calibration="none"), "predict_log_proba")
    assert hasattr(onlearn.SVC(), "predict_log_proba")
    assert not hasattr(onlearn.OnlineRegressor(), "predict_log_proba")


def test_named_learners_show_the_parameters_that_matter_flat():
    assert repr(onlearn.Winnow(alpha=1.5)) == "Winnow(alpha=1.5)"
    assert "aggressiveness" in onlearn.PassiveAggressive().get_params()
    assert "rule" not in onlearn.PassiveAggressive().get_params()
    with pytest.raises(TypeError):
        onlearn.Winnow(aggressiveness=1)


def test_a_named_learner_is_its_composition():
    pairs = [
        (onlearn.PassiveAggressive(0.1), dict(rule="pa1(0.1)")),
        (onlearn.AveragedPerceptron(), {}),
        (onlearn.LinearSVM(l2=0.01), dict(rule="hinge", geometry='additive(schedule="1/sqrt(t)", l2=0.01)')),
        (onlearn.AROW(r=2.0), dict(rule="pa2(0.25)", geometry="arow(2)")),
        (onlearn.FTRL(l1=0.1), dict(rule="logistic", geometry="ftrl(l1=0.1)", stabilizer="last")),
        (onlearn.ScInOL(epsilon=0.5), dict(rule="logistic", geometry="scinol(0.5)", stabilizer="last")),
    ]
    for named, settings in pairs:
        named.set_params(random_state=0).fit(X, Y)
        composed = onlearn.OnlineClassifier(random_state=0, **settings).fit(X, Y)
        np.testing.assert_array_equal(named.coef_, composed.coef_)


def test_choices_may_be_objects_classes_or_spellings():
    spellings = ["pa1(0.5)", onlearn.rules.PA1(0.5), onlearn.rules.PA1(aggressiveness=0.5)]
    models = [onlearn.OnlineClassifier(rule=rule, random_state=0).fit(X, Y) for rule in spellings]
    for model in models[1:]:
        np.testing.assert_array_equal(model.coef_, models[0].coef_)
    assert onlearn.OnlineClassifier(rule=onlearn.rules.PA1).fit(X, Y).score(X, Y) > 0.8


def test_nested_parameters_are_searched_over_even_when_spelled():
    search = GridSearchCV(
        onlearn.OnlineClassifier(rule="pa1", random_state=0),
        {"rule__aggressiveness": [0.01, 1.0], "geometry__rate": [0.5, 1.0]},
        cv=3,
    ).fit(X, Y)
    assert set(search.best_params_) == {"rule__aggressiveness", "geometry__rate"}
    assert search.best_estimator_.get_params()["rule__aggressiveness"] in (0.01, 1.0)
    with pytest.raises(ValueError, match="pa1 has no parameter 'speed'"):
        onlearn.OnlineClassifier(rule="pa1").set_params(rule__speed=1)


def test_clone_and_pickle_keep_everything():
    model = onlearn.OnlineClassifier(rule=onlearn.rules.Margin(2.0, 0.5), random_state=0)
    assert clone(model).get_params() == model.get_params()
    model.fit(X, Y)
    back = pickle.loads(pickle.dumps(model))
    back.partial_fit(X, Y)
    model.partial_fit(X, Y)
    np.testing.assert_array_equal(back.coef_, model.coef_)


def test_a_learner_whose_arrays_are_mapped_from_a_file_goes_on(tmp_path):
    model = onlearn.OnlineClassifier(random_state=0).fit(X, Y)
    joblib.dump(model, tmp_path / "m")
    mapped = joblib.load(tmp_path / "m", mmap_mode="r")
    partly = joblib.load(tmp_path / "m")
    partly._training.g.w.flags.writeable = False  # as joblib's workers get what is large
    model.partial_fit(X, Y)
    for other in (mapped, partly):
        np.testing.assert_array_equal(other.partial_fit(X, Y).coef_, model.coef_)


def test_pipelines_and_set_output_work():
    pipe = make_pipeline(StandardScaler(), onlearn.PassiveAggressive(random_state=0)).set_output(transform="pandas")
    assert cross_val_score(pipe, X, Y).mean() > 0.85
    pipe.fit(X, Y)
    assert list(pipe[-1].feature_names_in_) == list(pipe[0].get_feature_names_out())


def test_one_seed_gives_one_result_and_another_seed_another():
    fits = [onlearn.AveragedPerceptron(random_state=seed).fit(X, Y).coef_ for seed in (1, 1, 2)]
    np.testing.assert_array_equal(fits[0], fits[1])
    assert (fits[0] != fits[2]).any()


def test_balanced_class_weights_of_a_stream_come_from_running_counts():
    rare = (np.arange(120) % 10 == 0).astype(int)
    model = onlearn.OnlineClassifier(rule="hinge", class_weight="balanced").partial_fit(X, rare, classes=[0, 1])
    counts = np.zeros(2)
    weight = np.empty(120)
    for i, c in enumerate(rare):
        counts[c] += 1
        weight[i] = counts.sum() / (2 * counts[c])
    plain = onlearn.OnlineClassifier(rule="hinge").partial_fit(X, rare, classes=[0, 1], sample_weight=weight)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-12)
    # and fit counts the rows for what comes after it, once
    model, plain = (onlearn.OnlineClassifier(class_weight=w, random_state=0) for w in ("balanced", {0: 5 / 9, 1: 5.0}))
    one, weight = rare == 1, [121 / (2 * 13)]
    model.fit(X, rare).partial_fit(X[one][:1], rare[one][:1])
    plain.fit(X, rare).set_params(class_weight=None).partial_fit(X[one][:1], rare[one][:1], sample_weight=weight)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-12)


def test_class_weights_multiply_the_steps():
    weighted = onlearn.OnlineClassifier(rule="hinge", class_weight={0: 1, 1: 3}, random_state=0).fit(X, Y)
    by_hand = onlearn.OnlineClassifier(rule="hinge", random_state=0).fit(X, Y, sample_weight=np.where(Y, 3.0, 1.0))
    np.testing.assert_array_equal(weighted.coef_, by_hand.coef_)
    balanced = onlearn.OnlineClassifier(rule="hinge", class_weight="balanced", random_state=0).fit(X, Y)
    n = np.bincount(Y)
    by_hand.fit(X, Y, sample_weight=(120 / (2 * n))[Y])
    np.testing.assert_allclose(balanced.coef_, by_hand.coef_, rtol=1e-12)


def test_warm_start_goes_on_and_without_it_fit_begins_anew():
    warm = onlearn.OnlineClassifier(epochs=1, warm_start=True, random_state=0).fit(X, Y).fit(X, Y)
    whole = onlearn.OnlineClassifier(epochs=2, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(warm.coef_, whole.coef_)
    np.testing.assert_allclose(warm.predict_proba(X), whole.predict_proba(X), rtol=1e-9)
    again = onlearn.OnlineClassifier(epochs=2, random_state=0).fit(X, 1 - Y).fit(X, Y)
    np.testing.assert_array_equal(again.coef_, whole.coef_)


def test_going_on_holds_to_what_learning_began_with():
    """A changed rule, geometry or stabilizer would have no effect, so it is refused; a new ``fit`` takes it."""
    model = onlearn.OnlineClassifier(onlearn.rules.PA1(0.1), random_state=0, warm_start=True).fit(X, Y)
    weights = model.coef_
    for change in ({"rule__aggressiveness": 0.5}, {"stabilizer": "last"}, {"geometry": "adagrad"}):
        changed = clone(model).fit(X, Y).set_params(**change)
        for go_on in (changed.fit, changed.partial_fit):
            with pytest.raises(ValueError, match=r"was .* when learning began and cannot change to"):
                go_on(X, Y)
        np.testing.assert_array_equal(changed.coef_, weights)
    model.set_params(epochs=1, class_weight="balanced").fit(X, Y)
    line = onlearn.OnlineRegressor(random_state=0).partial_fit(X, Y).set_params(fit_intercept=False)
    with pytest.raises(ValueError, match=r"fit_intercept was True when learning began"):
        line.partial_fit(X, Y)


def test_a_certificate_is_for_the_rows_trained_on_and_how_training_began():
    model = onlearn.Perceptron(epochs=2, random_state=0).fit(X, Y)
    assert model.certificate(X, Y).best is not None
    for rows in (50, 60):  # 60 go into what was seen, but are not what a pass saw
        certificate = model.certificate(X[:rows], Y[:rows])
        assert certificate.best is None and "training saw 240 examples" in certificate.bounds[0].why
        assert "in training on 240 examples, not on these rows" in str(certificate)
    model.set_params(init="random")
    assert model.certificate(X, Y).best is not None
    with pytest.raises(ValueError, match="init was 'zeros' when learning began"):
        model.partial_fit(X, Y)


def test_history_counts_mistakes_by_pass_and_by_doubling():
    model = onlearn.OnlineClassifier(epochs=3, random_state=0).fit(X, Y)
    passes = model.history_["passes"]
    assert [p["seen"] for p in passes] == [120, 120, 120]
    assert sum(p["mistakes"] for p in passes) == model.n_mistakes_ == model.n_updates_
    doubling = model.history_["doubling"]
    assert [d["seen"] for d in doubling] == [1, 2, 4, 8, 16, 32, 64, 128, 256]
    assert all(a["mistakes"] <= b["mistakes"] for a, b in pairwise(doubling))


def test_tol_stops_early_and_epochs_none_stops_at_a_faultless_pass():
    early = onlearn.OnlineClassifier(epochs=100, tol=1e9, random_state=0).fit(X, Y)
    assert len(early.history_["passes"]) == 2
    clean = onlearn.Perceptron(epochs=None, random_state=0).fit(X, X[:, 0] > 0)
    assert clean.separable_ is True and clean.history_["passes"][-1]["mistakes"] == 0
    with pytest.warns(UserWarning, match="max_epochs=3"):
        stuck = onlearn.Perceptron(epochs=None, max_epochs=3, random_state=0).fit(X, RNG.permutation(Y))
    assert stuck.separable_ is None


def test_a_wider_row_and_a_new_class_are_taken_in():
    model = onlearn.OnlineClassifier(grow=True, random_state=0)
    model.partial_fit(BLOBS[:, :3], np.where(COLOURS < 2, "a", "b"))
    model.partial_fit(BLOBS, np.array(["a", "b", "c", "d"])[COLOURS])
    assert list(model.classes_) == ["a", "b", "c", "d"] and model.n_features_in_ == 5
    for _ in range(5):
        model.partial_fit(BLOBS, np.array(["a", "b", "c", "d"])[COLOURS])
    assert model.score(BLOBS, np.array(["a", "b", "c", "d"])[COLOURS]) > 0.9
    assert model.predict_proba(BLOBS).shape == (150, 4)
    np.testing.assert_array_equal(model.predict(np.pad(BLOBS, ((0, 0), (0, 2)))), model.predict(BLOBS))


def test_growing_is_decided_before_learning_begins(tmp_path):
    model = onlearn.OnlineClassifier(random_state=0).fit(X, Y)
    before = model.coef_
    with pytest.raises(ValueError, match=r"without grow=True, so that there is no room for more"):
        model.set_params(grow=True).partial_fit(X, Y + 1)
    np.testing.assert_array_equal(model.coef_, before)
    single = onlearn.OnlineClassifier(grow=True).partial_fit(X, np.zeros(120, int)).set_params(grow=False)
    single.save(tmp_path / "m.onl")
    assert (onlearn.load(tmp_path / "m.onl").predict(X) == 0).all()
    for wrong in (1, np.True_, "classes"):
        with pytest.raises(ValueError, match=r"grow must be True, False or 'features'"):
            onlearn.OnlineClassifier(grow=wrong).fit(X, Y)
    words = onlearn.OnlineClassifier(grow=True).partial_fit(X, np.where(Y, "yes", "no"))
    with pytest.raises(ValueError, match=r"labels like 1, but the classes so far are like 'no'"):
        words.partial_fit(X, Y * 0 + 1)
    assert list(words.classes_) == ["no", "yes"]


LARGE = 2**63 + 1
TAKEN_IN = {  # labels known, labels that come, what the classes are then
    "whole floats": ([0, 1], [1.0, 2.0], [0, 1, 2]),
    "whole numbers to floats": ([0.0, 1.0], [2], [0.0, 1.0, 2.0]),
    "a wider type": (np.array([0, 1], np.int8), [1, 300], [0, 1, 300]),
    "beyond the signed": (np.array([0, LARGE], np.uint64), np.array([5]), [0, LARGE, 5]),
    "signed before": ([0, 1], np.array([LARGE], np.uint64), [0, 1, LARGE]),
    "longer words": (["a", "b"], ["b", "long"], ["a", "b", "long"]),
    "truth and 1": ([False, True], [1, 0], [False, True]),
}
NOT_TAKEN_IN = {
    "signs": (np.array([0, LARGE], np.uint64), np.array([-1]), "label -1, but the classes so far are like 0"),
    "truth": ([False, True], [1, 2], "label 2, but the classes so far are like False"),
    "fractions": ([0, 1], [0.0, 2.5], "label 2.5"),
    "words": ([0, 1], ["a"], "strings and other labels have no order"),
}


@pytest.mark.parametrize("case", TAKEN_IN)
def test_new_labels_leave_the_known_ones_as_they_are(case):
    known, y, classes = TAKEN_IN[case]
    joint, codes = joined(np.asarray(known), np.asarray(y))
    assert joint.tolist() == classes and [type(label) for label in joint.tolist()] == [type(c) for c in classes]
    assert [classes[k] for k in encode(codes, joint)] == np.asarray(y).tolist()


@pytest.mark.parametrize("case", NOT_TAKEN_IN)
def test_labels_that_would_change_the_known_ones_are_refused(case):
    known, y, sentence = NOT_TAKEN_IN[case]
    with pytest.raises(ValueError, match=sentence):
        joined(np.asarray(known), np.asarray(y))


def test_rows_without_weight_bring_no_class():
    first, then = np.array([1.0, 1.0, 0.0]), np.array([1.0, 0.0, 1.0])
    model = onlearn.OnlineClassifier(grow=True).partial_fit(X[:3], ["a", "b", "c"], sample_weight=first)
    assert model.classes_.tolist() == ["a", "b"]
    model.partial_fit(X[:3], ["a", "e", "d"], sample_weight=then)
    assert model.classes_.tolist() == ["a", "b", "d"]
    model.partial_fit(X[:3], [7, 8, 9], sample_weight=0.0)
    assert model.classes_.tolist() == ["a", "b", "d"] and model.n_seen_ == 4
    with pytest.raises(ValueError, match="no class yet"):
        onlearn.OnlineClassifier(grow=True).partial_fit(X[:3], [0, 1, 2], sample_weight=0.0)


@pytest.mark.parametrize(
    "geometry", ["additive", "balanced", "exponentiated", "adagrad(l1=0.01)", "arow", "ftrl", "scinol"]
)
def test_growing_classes_equals_having_had_them(geometry):
    settings = dict(geometry=geometry, grow=True, random_state=0)
    early = COLOURS < 2
    later = onlearn.OnlineClassifier(**settings).partial_fit(BLOBS[early], COLOURS[early])
    assert later.decision_function(BLOBS).shape == (150,)
    later.partial_fit(BLOBS, COLOURS)
    assert later.decision_function(BLOBS).shape == (150, 4)
    assert np.isfinite(later.decision_function(BLOBS)).all()


def test_an_unfitted_estimator_says_so():
    for call in (lambda m: m.predict(X), lambda m: m.save("m.onl"), lambda m: m.certificate(X, Y)):
        with pytest.raises(NotFittedError):
            call(onlearn.OnlineClassifier())
    for attribute in ("coef_", "n_mistakes_", "history_"):
        assert not hasattr(onlearn.OnlineClassifier(), attribute)
    for wrong in ({"verbose": "x"}, {"tol": True}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
            onlearn.OnlineClassifier(**wrong).fit(X, Y)


def test_verbose_shows_progress(capsys):
    onlearn.OnlineClassifier(verbose=1, epochs=2).fit(X, Y)
    assert "240/240" in capsys.readouterr().out


@pytest.mark.parametrize("warm", [False, True])
def test_interrupting_fit_changes_nothing(monkeypatch, warm):
    passes = []

    def interrupt(training, *args, original=Training.learn, **kwargs):
        passes.append(1)
        original(training, *args, **kwargs)
        if len(passes) == 2:
            raise KeyboardInterrupt

    model = onlearn.OnlineClassifier(epochs=3, warm_start=warm, random_state=0)
    for before in (None, model.fit(X, Y).coef_):
        tried = onlearn.OnlineClassifier(epochs=3, random_state=0) if before is None else model
        passes.clear()
        with monkeypatch.context() as patch:
            patch.setattr("onlearn.engine.training.Training.learn", interrupt)
            with pytest.raises(KeyboardInterrupt):
                tried.fit(X, Y)
        if before is None:
            assert not hasattr(tried, "classes_") and not hasattr(tried, "n_seen_")
        else:
            np.testing.assert_array_equal(model.coef_, before)
            assert model.n_seen_ == 360 and len(model.history_["passes"]) == 3


def test_ctrl_c_in_partial_fit_waits_until_the_rows_are_learned(monkeypatch):
    model, whole = (onlearn.OnlineClassifier(random_state=0).partial_fit(X, Y, classes=[0, 1]) for _ in range(2))

    def interrupt(*args, original=row_batches):
        signal.raise_signal(signal.SIGINT)
        return original(*args)

    with monkeypatch.context() as patch:
        patch.setattr("onlearn.engine.training.row_batches", interrupt)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(X, Y)
        first = onlearn.OnlineClassifier(random_state=0)
        with pytest.raises(KeyboardInterrupt):
            first.partial_fit(X, Y, classes=[0, 1])
    np.testing.assert_array_equal(first.coef_, whole.coef_)
    np.testing.assert_array_equal(model.coef_, whole.partial_fit(X, Y).coef_)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_regression_learns_ridge_and_lasso():
    from sklearn.linear_model import Lasso, Ridge

    rng = np.random.default_rng(0)
    data = rng.normal(size=(2000, 5))
    target = data @ [3.0, -2.0, 0.0, 0.0, 0.05] + 1 + 0.1 * rng.normal(size=2000)
    settings = dict(epochs=60, random_state=0)
    ridge = onlearn.OnlineRegressor(geometry='additive(0.5, schedule="1/sqrt(t)", l2=0.1)', **settings).fit(
        data, target
    )
    peer = Ridge(alpha=0.1 * 2000).fit(data, target)
    np.testing.assert_allclose(ridge.coef_, peer.coef_, atol=0.02)
    lasso = onlearn.OnlineRegressor(
        geometry='additive(0.1, schedule="1/sqrt(t)", l1=0.1)', stabilizer="last", **settings
    ).fit(data, target)
    peer = Lasso(alpha=0.1).fit(data, target)
    np.testing.assert_allclose(lasso.coef_, peer.coef_, atol=0.02)
    assert (lasso.coef_ == 0).sum() >= 2
    tube = onlearn.OnlineRegressor(rule="epsilon(0.2)", geometry="adagrad", **settings).fit(data, target)
    assert np.mean(np.abs(tube.predict(data) - target)) < 0.2


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_weights_and_features_that_are_never_negative_are_warned_of(make):
    with pytest.warns(UserWarning, match="neither the features nor the weights of 'exponentiated' are ever negative"):
        onlearn.NormalizedWinnow(random_state=0).fit(make(np.abs(X)), Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        onlearn.NormalizedWinnow(random_state=0).fit(make(X), Y)
        onlearn.NormalizedWinnow(random_state=0).fit(make(np.abs(X)), np.arange(len(Y)) % 3)
        onlearn.Winnow(random_state=0).fit(make(np.abs(X)), Y)


def test_a_regression_worse_than_the_mean_of_y_is_warned_of():
    target = X @ [1.0, 2.0, 0.0, 0.0, 0.0, 0.0] + 3
    for scale, y in ((1, 1e6 * target), (1, 1e-6 * target), (1, target + 1000), (1, 1e200 * target), (1e200, target)):
        with pytest.warns(UserWarning, match="more than the variance of y.* suit the scale of X or y"):
            onlearn.OnlineRegressor(random_state=0).fit(scale * X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        onlearn.OnlineRegressor(random_state=0).fit(X, target)
        onlearn.OnlineRegressor(random_state=0).fit(X, np.full(120, 3.0))
    with pytest.raises(ValueError, match="for regression give the number"):
        onlearn.OnlineRegressor(geometry="exponentiated(eta=auto)").fit(X, target)
