"""Probabilities: calibrated, and never at odds with predict."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

import onlearn
from onlearn.engine import calibration as calibrate
from onlearn.estimators.linear import NAMED

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4000, 5))
LOGITS = X @ [1.0, -1.0, 0.5, 0.0, 2.0] - 0.5
Y = (RNG.random(4000) < expit(LOGITS)).astype(int)
SCORES = st.floats(-1e6, 1e6, allow_nan=False)


def log_loss(p, y):
    return -np.log(np.maximum(p[np.arange(len(y)), y], 1e-12)).mean()


@given(arrays(float, st.integers(1, 30), elements=SCORES), st.floats(1e-6, 1e3), st.floats(-20, 20))
def test_binary_probabilities_agree_with_the_sign_and_rise_with_the_score(s, a, b):
    p = calibrate.binary(s, a, b)
    np.testing.assert_array_equal(p.argmax(axis=1), (s > 0).astype(int))
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert (np.diff(p[np.argsort(s, kind="stable"), 1]) >= -1e-12).all()


@given(arrays(float, (5, 4), elements=SCORES), st.floats(1e-9, 1e3), st.floats(-20, 20))
@pytest.mark.parametrize("link", ["softmax", "normalized"])
def test_class_probabilities_agree_with_the_largest_score(link, s, a, b):
    p = calibrate.several(s, a, b, link)
    np.testing.assert_array_equal(p.argmax(axis=1), s.argmax(axis=1))
    np.testing.assert_allclose(p.sum(axis=1), 1)


def test_the_formula_holds_where_it_does_not_contradict_predict():
    s = np.array([0.5, 1.0, 3.0])
    np.testing.assert_allclose(calibrate.sigmoid(s, 2.0, 0.7), expit(2 * s + 0.7))
    np.testing.assert_allclose(calibrate.sigmoid(-s, 2.0, -0.7), expit(-2 * s - 0.7))


def test_a_and_b_minimise_platts_objective():
    s = 3 * LOGITS[:500] + 1
    y = Y[:500] == 1
    target = np.where(y, (y.sum() + 1) / (y.sum() + 2), 1 / ((~y).sum() + 2))

    def cost(ab):
        z = ab[0] * s + ab[1]
        return np.sum(np.logaddexp(0, z) - target * z)

    best = minimize(cost, [0.1, 0.0]).x
    np.testing.assert_allclose(calibrate.fit_sigmoid(s, y), best, atol=2e-3)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
def test_scores_that_tell_the_contrary_give_the_share_of_the_positive(share, weighted):
    """A cannot be below zero, and B is the best for the A there is: not that of the curve that falls."""
    rng = np.random.default_rng(1)
    positive = rng.random(2000) < share
    s = 5.0 - 2.0 * positive + 0.1 * rng.normal(size=2000)  # far from zero: B of the falling curve is large
    w = rng.choice([0.5, 2.0], size=2000) if weighted else None
    a, b = calibrate.fit_sigmoid(s, positive, w)
    assert 0 < a * np.abs(s).max() < 1e-5
    np.testing.assert_allclose(expit(a * s + b), np.average(positive, weights=w), atol=2e-3)


@pytest.mark.parametrize("name", sorted(set(NAMED) - {"Winnow", "NormalizedWinnow"}))
def test_every_learners_probabilities_are_near_the_truth(name):
    model = NAMED[name](random_state=0).fit(X[:3000], Y[:3000])
    p = model.predict_proba(X[3000:])
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X[3000:]))
    truth = np.column_stack([1 - expit(LOGITS[3000:]), expit(LOGITS[3000:])])
    assert log_loss(p, Y[3000:]) < log_loss(truth, Y[3000:]) + (0.25 if name == "Perceptron" else 0.1)


@pytest.mark.parametrize("calibration", ["online", "holdout(0.2)", "own", 'online(link="normalized")', "auto"])
@pytest.mark.parametrize("multiclass", ["true", "one-vs-all"])
def test_every_calibration_goes_with_every_multiclass(calibration, multiclass):
    classes = np.digitize(LOGITS, [-1, 1])
    model = onlearn.OnlineClassifier(multiclass=multiclass, calibration=calibration, random_state=0)
    p = model.fit(X[:3000], classes[:3000]).predict_proba(X[3000:])
    np.testing.assert_array_equal(p.argmax(axis=1), model.predict(X[3000:]))
    assert log_loss(p, classes[3000:]) < (30 if calibration == "own" else 1.0)


def test_held_out_rows_are_not_learned_from():
    model = onlearn.OnlineClassifier(calibration="holdout(0.25)", random_state=0, epochs=2).fit(X, Y)
    assert model.n_seen_ == 2 * 3000
    held = model.predict_proba(X)
    assert log_loss(held, Y) < 0.6
    online = model.set_params(calibration="online").predict_proba(X)
    assert (online != held).any()
    np.testing.assert_array_equal(model.set_params(calibration="holdout(0.25)").predict_proba(X), held)
    with pytest.raises(ValueError, match=r"needs 0\.5 of the rows held out, and the last call held out 0\.25"):
        model.set_params(calibration="holdout(0.5)").predict_proba(X)
    model.set_params(calibration="online").partial_fit(X[:10], Y[:10])
    with pytest.raises(ValueError, match="needs rows that the last call held out"):
        model.set_params(calibration="holdout").predict_proba(X)


def test_logistic_uses_its_own_probabilities_unless_asked_otherwise():
    own = onlearn.LogisticRegression(random_state=0).fit(X, Y)
    np.testing.assert_allclose(own.predict_proba(X)[:, 1], expit(own.decision_function(X)))
    asked = onlearn.LogisticRegression(calibration="online", random_state=0).fit(X, Y)
    assert (asked.predict_proba(X) != own.predict_proba(X)).any()


def test_only_scores_from_before_learning_are_used():
    """The labels are noise: training scores would look sure, scores from before do not."""
    wide = RNG.normal(size=(400, 600))
    noise = RNG.integers(0, 2, 400)
    model = onlearn.Perceptron(epochs=10, random_state=0).fit(wide, noise)
    assert model.score(wide, noise) > 0.95
    assert np.abs(model.predict_proba(RNG.normal(size=(200, 600)))[:, 1] - 0.5).mean() < 0.2


def test_votes_of_several_passes_are_calibrated_as_those_of_one():
    """Shares of votes do not grow with the hypotheses: probabilities are as good as those from rows held out."""
    rows, labels = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    train, test = order[:400], order[400:]
    rows = StandardScaler().fit(rows[train]).transform(rows)
    online, held_out = (
        log_loss(
            onlearn.VotedPerceptron(epochs=5, calibration=calibration, random_state=0)
            .fit(rows[train], labels[train])
            .predict_proba(rows[test]),
            labels[test],
        )
        for calibration in ("auto", "holdout(0.2)")
    )
    assert online < 1.5 * held_out


@pytest.mark.parametrize("classes", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_votes_are_not_taken_for_log_odds(classes):
    labels = (LOGITS > 0).astype(int) if classes == 2 else np.digitize(LOGITS, [-1, 1])
    for kind, rows in ((onlearn.OnlineClassifier, 3000), (onlearn.KernelClassifier, 300)):
        more = {} if kind is onlearn.OnlineClassifier else {"kernel": "linear"}
        model = kind(rule="logistic", stabilizer="voted", random_state=0, **more).fit(X[:rows], labels[:rows])
        p = model.predict_proba(X[3000:])
        np.testing.assert_array_equal(p.argmax(axis=1), model.predict(X[3000:]))
        assert p.max() > 0.9
        online = model.set_params(calibration="online").predict_proba(X[3000:])
        np.testing.assert_array_equal(online.argmax(axis=1), p.argmax(axis=1))
        assert online.max() > 0.9
        with pytest.raises(ValueError, match="shares of votes"):
            model.set_params(calibration="own").predict_proba(X[3000:])


def test_a_few_right_scores_do_not_make_certain():
    scores = np.eye(3)[np.arange(9) % 3]
    p = calibrate.several(scores, calibrate.fit_temperature(scores, np.arange(9) % 3), 0.0, "softmax")
    np.testing.assert_allclose(p.max(axis=1), (9 + 1 / 3) / 10, rtol=1e-3)  # one example in ten was of any class


METHODS = ["temperature", "sigmoid", "isotonic"]
HUGE = st.floats(-1e300, 1e300, allow_nan=False)


@given(arrays(float, (12, 1), elements=HUGE), arrays(float, 9, elements=HUGE), st.integers(0, 2**12 - 1))
@pytest.mark.parametrize("method", METHODS)
def test_curves_of_two_classes_rise_and_agree_with_the_sign(method, scores, new, labels):
    gold = np.array([labels >> k & 1 for k in range(12)])
    curve = calibrate.curve_of(scores, gold, method)
    new = np.sort(np.concatenate([new, scores[:, 0], [0.0]]))
    p = curve.probabilities(new)
    assert np.isfinite(p).all() and (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_array_equal(p.argmax(axis=1), (new > 0).astype(int))
    assert (np.diff(p[:, 1]) >= -1e-12).all()
    one = [curve.probability(float(s)) for s in new]
    np.testing.assert_allclose(one, p[:, 1], rtol=1e-12)


@given(arrays(float, (12, 4), elements=HUGE), arrays(float, (5, 4), elements=HUGE), st.integers(0, 2**24 - 1))
@pytest.mark.parametrize("method", METHODS)
def test_curves_of_several_classes_agree_with_the_highest_score(method, scores, new, labels):
    gold = np.array([labels >> 2 * k & 3 for k in range(12)])
    for curve in (calibrate.curve_of(scores, gold, method), calibrate.best_curve(scores, gold, None, cautious=True)):
        p = curve.probabilities(new)
        assert np.isfinite(p).all() and (p >= 0).all()
        np.testing.assert_allclose(p.sum(axis=1), 1)
        np.testing.assert_array_equal(p.argmax(axis=1), new.argmax(axis=1))


def test_a_constant_added_to_the_scores_of_a_row_does_not_matter():
    scores = RNG.normal(size=(500, 5))
    gold = np.array([RNG.choice(5, p=row) for row in calibrate.softmax(2 * scores)])
    for method in ("temperature", "isotonic"):
        plain = calibrate.curve_of(scores, gold, method)
        moved = calibrate.curve_of(scores - 1e6, gold, method)
        np.testing.assert_allclose(moved.probabilities(scores - 1e6), plain.probabilities(scores), atol=1e-6)


def test_the_temperature_minimises_the_smoothed_loss():
    scores = 3 * RNG.normal(size=(800, 4))
    gold = np.array([RNG.choice(4, p=row) for row in calibrate.softmax(0.7 * scores)])

    def cost(a):
        logs = a * scores - np.log(np.exp(a * scores).sum(axis=1, keepdims=True))
        return -(800 * logs[np.arange(800), gold].mean() + logs.mean()) / 801

    assert calibrate.fit_temperature(scores, gold) == pytest.approx(minimize(cost, 1.0, tol=1e-10).x[0], rel=1e-3)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("epochs", [1, 4])
@pytest.mark.parametrize("calibration", ["auto", "online", "online(method='isotonic')", "online(method='sigmoid')"])
def test_calibration_improves_the_log_loss_in_expectation(calibration, epochs, classes):
    gains = []
    for seed in range(4):
        rng = np.random.default_rng([seed, classes])
        rows = rng.normal(size=(6000, 8))
        noisy = rows @ rng.normal(size=(8, classes)) + rng.gumbel(size=(6000, classes))
        labels = noisy.argmax(axis=1)
        make = onlearn.AveragedPerceptron(epochs=epochs, calibration=calibration, random_state=0)
        model = make.fit(rows[:5000], labels[:5000])
        after = log_loss(model.predict_proba(rows[5000:]), labels[5000:])
        before = log_loss(model.set_params(calibration="own").predict_proba(rows[5000:]), labels[5000:])
        gains.append(before - after)
    assert np.mean(gains) > 0.05


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("name", ["AveragedPerceptron", "PassiveAggressive", "LogisticRegression", "BalancedWinnow"])
def test_several_passes_are_calibrated_nearly_as_well_as_in_hindsight(name, classes):
    rng = np.random.default_rng(classes)
    rows = rng.normal(size=(9000, 8))
    labels = (rows @ rng.normal(size=(8, classes)) + rng.gumbel(size=(9000, classes))).argmax(axis=1)
    model = NAMED[name](random_state=0).fit(rows[:6000], labels[:6000])
    scores, gold = model.decision_function(rows[6000:]), labels[6000:]
    columns = scores[:, None] if classes == 2 else scores
    best = min(log_loss(calibrate.curve_of(columns, gold, way).probabilities(scores), gold) for way in METHODS[:2])
    assert log_loss(model.predict_proba(rows[6000:]), gold) < 1.03 * best


def test_logistic_probabilities_that_are_too_flat_are_mended():
    """A small rate and many features: the scores have not grown to what they are worth."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(8000, 30)) / 6
    labels = (rng.random(8000) < expit(rows @ rng.normal(size=30) * 8)).astype(int)
    model = onlearn.LogisticRegression(rate=0.001, epochs=2, random_state=0).fit(rows[:6000], labels[:6000])
    mended = log_loss(model.predict_proba(rows[6000:]), labels[6000:])
    assert mended < 0.8 * log_loss(model.set_params(calibration="own").predict_proba(rows[6000:]), labels[6000:])


def test_given_rows_count_until_more_is_learned(tmp_path):
    model = onlearn.Perceptron(random_state=0).fit(X[:500], Y[:500])
    before = model.predict_proba(X)
    noise = RNG.integers(0, 2, 2000)
    assert np.abs(model.calibrate(X[:2000], noise).predict_proba(X)[:, 1] - 0.5).max() < 0.2
    model.save(tmp_path / "m.onl")
    np.testing.assert_array_equal(onlearn.load(tmp_path / "m.onl").predict_proba(X), model.predict_proba(X))
    with pytest.raises(ValueError, match="row 1 has the label 7, which was not learned"):
        model.calibrate(X[:2], [0, 7])
    model.partial_fit(X[:1], Y[:1])
    assert np.abs(model.predict_proba(X) - before).max() < 0.2


@pytest.mark.parametrize("name", ["PassiveAggressive", "LogisticRegression"])
def test_curves_are_fitted_to_rows_that_count_alike_whatever_the_weights_of_classes(name):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(6000, 4))
    rare = (rng.random(6000) < expit(rows @ [1.0, -1.0, 0.5, 1.0] - 3)).astype(int)
    model = NAMED[name](class_weight="balanced", epochs=2, random_state=0).fit(rows[:5000], rare[:5000])
    p = model.predict_proba(rows[5000:])
    np.testing.assert_array_equal(p.argmax(axis=1), model.predict(rows[5000:]))
    assert log_loss(p, rare[5000:]) < log_loss(
        model.set_params(calibration="own").predict_proba(rows[5000:]), rare[5000:]
    )
