"""Streams through the estimators: the state is that of learning row by row, and drift policies swap it whole."""

import random
import warnings

import numpy as np
import pytest

import onlearn
from onlearn import stream
from onlearn.streaming import DriftWarning

CHANGE = 2000


def rows(count, seed=0, change=10**9):
    """Three numbers; the label is the sign of the first, after the change that of its opposite."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 3))
    return list(zip(X, ((X[:, 0] > 0) ^ (np.arange(count) >= change)).tolist()))


def mappings(count, seed=0, change=10**9):
    """Names that go on coming: the word of a row is one of ever more."""
    draw = random.Random(seed)
    for n in range(count):
        x = {"a": draw.gauss(0, 1), "word": f"w{draw.randint(0, 3 + n // 100)}", "new": draw.random() < 0.5}
        yield x, ["no", "yes"][(x["a"] > 0) ^ (n >= change)]


def last(source, model, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DriftWarning)
        *_, record = stream(source, model, **options)
    return record


def same(one, other):
    """Whether two estimators would write the same file."""
    (facts, arrays), (others, further) = one._pack(), other._pack()
    assert repr(facts) == repr(others)
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, further[name], err_msg=name)


def test_a_stream_is_learning_row_by_row():
    data, model = rows(300), onlearn.LogisticRegression(random_state=0)
    record = last(data, model, metrics=["accuracy", "log_loss"])
    other, right, losses = onlearn.LogisticRegression(random_state=0), [], []
    for n, (x, y) in enumerate(data):
        if n:
            right.append(other.predict(x[None])[0] == y)
            losses.append(-np.log(other.predict_proba(x[None])[0, int(y)]))
        other.partial_fit(x[None], [y], classes=[False, True])
    same(model, other)
    assert (record.rows, record.scored) == (300, 299)  # the first row came before anything was learned
    assert record.mean["accuracy"] == np.mean(right)
    assert record.mean["log_loss"] == pytest.approx(np.mean(losses), rel=1e-9)


@pytest.mark.parametrize("make", [
    lambda: onlearn.LogisticRegression(grow=True, random_state=0),
    lambda: onlearn.AROW(grow=True, random_state=0),
])  # fmt: skip
@pytest.mark.parametrize("stop", [1, 130, 299])
def test_a_stream_that_is_stopped_saved_loaded_and_goes_on(tmp_path, make, stop):
    data, whole, part = list(mappings(300)), make(), make()
    last(data, whole)
    last(data[:stop], part)
    part.save(tmp_path / "m.onl")
    loaded = onlearn.load(tmp_path / "m.onl")
    last(data[stop:], loaded)
    same(loaded, whole)


def test_saving_between_records(tmp_path):
    data, model = list(mappings(300)), onlearn.LogisticRegression(grow=True, random_state=0)
    records = stream(iter(data), model, every=100)
    next(records)
    model.save(tmp_path / "m.onl")
    loaded = onlearn.load(tmp_path / "m.onl")
    assert loaded.n_seen_ == 100
    assert sum(1 for _ in records) == 2
    last(data[100:], loaded)
    same(loaded, model)


@pytest.mark.parametrize("on_drift", ["reset", "replace"])
@pytest.mark.parametrize(
    "make",
    [
        lambda: onlearn.LogisticRegression(grow=True, random_state=0),
        lambda: onlearn.AveragedPerceptron(random_state=0),
        lambda: onlearn.KernelClassifier("gaussian(1)", budget=30, random_state=0),
    ],
)
def test_after_a_drift_the_model_is_one_that_learned_since(make, on_drift):
    data = rows(2600, change=CHANGE)
    first = np.array([x for x, _ in data[:2]]), [False, True]
    model, other = (make().partial_fit(*first, classes=[False, True]) for _ in range(2))
    record = last(data, model, drift="adwin", on_drift=on_drift)
    assert len(record.drifts) == 1 and CHANGE < record.drifts[0] <= CHANGE + 200
    since = record.warnings[-1] if on_drift == "replace" else record.drifts[0]
    assert CHANGE < since <= record.drifts[0]
    other = other.renewed()
    for x, y in data[since - 1 :]:
        other.learn_one(x, y)
    same(model, other)


@pytest.mark.parametrize("make", [
    lambda: onlearn.AveragedPerceptron(random_state=0),
    lambda: onlearn.KernelClassifier("gaussian(1)", budget=20, random_state=0),
])  # fmt: skip
def test_a_model_that_has_just_started_anew_has_probabilities(make):
    data = rows(2300, change=CHANGE)
    model = make().partial_fit(np.array([x for x, _ in data[:2]]), [False, True], classes=[False, True])
    record = last(data, model, metrics=["log_loss", "brier"], drift="adwin", on_drift="reset")
    assert len(record.drifts) == 1 and 0 < record.mean["log_loss"] < 5 and 0 < record.mean["brier"] < 2


def test_replace_is_better_than_warn_after_the_change():
    for seed in range(3):
        window = {}
        for on_drift in ("warn", "replace"):
            model = onlearn.AveragedPerceptron(random_state=0)
            record = last(rows(3000, seed, CHANGE), model, drift="adwin", on_drift=on_drift)
            window[on_drift] = record.window["accuracy"]
        assert window["replace"] > window["warn"] + 0.1


def test_a_challenger_takes_in_names_and_keeps_those_known():
    model = onlearn.LogisticRegression(grow=True, random_state=0)
    record = last(mappings(4000, change=CHANGE), model, drift="adwin", on_drift="replace")
    assert len(record.drifts) == 1
    names = list(model.feature_names_in_)
    assert names[:1] == ["a"] and "word=w0" in names and "word=w30" in names and len(set(names)) == len(names)
    assert model.n_features_in_ == len(names) == model.coef_.shape[1]
    assert model.n_seen_ == 4000 - record.warnings[-1] + 1
    assert model.predict_one({"a": 3.0}) == "no"


def test_regression_with_drift():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 2))
    y = np.where(np.arange(4000) < CHANGE, 3.0 * X[:, 0], -3.0 * X[:, 0]) + 0.1 * rng.normal(size=4000)
    window = {}
    for on_drift in ("warn", "reset", "replace"):
        model = onlearn.OnlineRegressor(random_state=0)
        record = last(zip(X, y.tolist()), model, drift="adwin", on_drift=on_drift)
        assert CHANGE < record.drifts[0] <= CHANGE + 200
        window[on_drift] = record.window["absolute_error"]
    assert window["replace"] < window["warn"] and window["reset"] < window["warn"]


def test_classes_must_be_known_or_grow():
    with pytest.raises(ValueError, match=r"row 1 of the stream: the first label is 'a'.*grow=True"):
        last([([1.0], "a")], onlearn.LogisticRegression())


def test_the_name_of_a_bad_feature_is_said():
    model = onlearn.LogisticRegression(grow=True)
    with pytest.raises(ValueError, match="row 3 of the stream: the feature 'a' is NaN"):
        last([({"a": 1.0}, 0), ({"a": 2.0}, 1), ({"a": float("nan")}, 1)], model)
    assert model.n_seen_ == 2


def test_svmlight_rows_that_get_wider(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("yes 1:1 3:1\nno 2:1\n" * 50 + "yes 1:1 9:1\nno 12:1\n" * 50)
    from onlearn import data

    model = onlearn.LogisticRegression(grow=True, random_state=0)
    with data.read(path, block_size=128) as reader:
        record = last(reader, model)
    assert (record.rows, record.learned, model.n_features_in_) == (200, 200, 13)
    assert record.mean["accuracy"] > 0.9
