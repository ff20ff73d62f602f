"""One row at a time: the state of the path of many rows to the last bit, checks, growing, threads, memory."""

from __future__ import annotations

import copy
import pickle
import sys
import threading
from itertools import cycle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import cases
import onlearn
from onlearn.engine.base_learner import BaseLearner
from onlearn.engine.csr import CSR
from onlearn.engine.feature_names import FeatureNames, named_values
from onlearn.engine.learner import Learner
from onlearn.models.resident_memory import MemoryGrowth


def state_of(learner):
    """Everything that further learning depends on, as bytes."""
    training = learner.training if isinstance(learner, BaseLearner) else learner._training
    facts, arrays = training.pack()
    return facts, {name: (array.dtype.str, array.tobytes()) for name, array in arrays.items()}


def row_of(X, n):
    return CSR.of(X[[n]]) if sp.issparse(X) else X[n]


def learner_for(case, rule, **more):
    spelled, _ = cases.example_geometry(case.group)
    if case.output != "binary":
        more["multiclass"] = case.output
    return Learner("OnlineClassifier", rule=rule, geometry=spelled, stabilizer=case.stabilizer, random_state=0, **more)


def compare(case, rule):
    """Learn the same rows in both ways; each is asked for predictions on the way, which must not change anything."""
    positive = case.group in ("winnow", "exponentiated")
    data = cases.data("binary" if case.output == "binary" else "multiclass", positive)
    X, y = cases.LAYOUTS[case.layout](data.X), data.y
    one, many = learner_for(case, rule), learner_for(case, rule)
    one.partial_fit(X[:5], y[:5], classes=np.unique(data.y))
    many.partial_fit(X[:5], y[:5], classes=np.unique(data.y))
    for n in range(5, len(y)):
        weight = 2.0 if n % 7 == 0 else 1.0
        score = one.score_one(row_of(X, n))
        expected = many.decision_function(X[n : n + 1])[0]
        found = list(score.values()) if isinstance(score, dict) else score
        np.testing.assert_allclose(found, expected, rtol=1e-5 if X.dtype == np.float32 else 1e-9, atol=1e-9)
        one.predict_one(row_of(X, n))
        one.learn_one(row_of(X, n), y[n].item(), weight)
        many.partial_fit(X[n : n + 1], y[n : n + 1], sample_weight=[weight])
    assert state_of(one) == state_of(many)
    assert one.history_ == many.history_
    for n in range(len(y)):
        assert one.predict_one(row_of(X, n)) == many.predict(X[[n, 0]])[0]


COVERING = [*cases.BINARY_COVERING, *cases.MANY_COVERING]
FEW = [*cases.BINARY_COVERING[::2], *cases.MANY_COVERING[1::2]]  # each loop takes a second to compile


@pytest.mark.parametrize(
    "case", [case if case in FEW else pytest.param(case, marks=pytest.mark.slow) for case in COVERING], ids=str
)
def test_learn_one_leaves_the_state_of_partial_fit(case):
    compare(case, "logistic" if case.output == "softmax" else "pa1(0.2)")


EVERY_RULE = [
    (case, rule) for case in COVERING for rule in cases.RULES if case.output != "softmax" or rule == "logistic"
]


@pytest.mark.slow
@pytest.mark.parametrize(("case", "rule"), EVERY_RULE, ids=str)
def test_learn_one_leaves_the_state_of_partial_fit_for_every_rule(case, rule):
    compare(case, rule)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "rule"), list(zip([*cases.BINARY_OTHER, *cases.MANY_OTHER], cycle(cases.RULES))), ids=str
)
def test_learn_one_leaves_the_state_of_partial_fit_for_every_output_and_layout(case, rule):
    compare(case, "logistic" if case.output == "softmax" else rule)


@pytest.mark.parametrize("layout", ["dense32", "csr32"])
def test_single_precision_stays_single_precision(layout):
    compare(cases.Case("plain", "averaged", "binary", layout), "logistic")


@pytest.mark.parametrize("rule", cases.REGRESSION_RULES)
@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_regression(rule, layout):
    data = cases.data("regression", False)
    X = cases.LAYOUTS[layout](data.X)
    one, many = (Learner("OnlineRegressor", rule=rule, random_state=0) for _ in range(2))
    one.partial_fit(X[:1], data.y[:1])
    many.partial_fit(X, data.y)
    for n in range(1, len(data.y)):
        one.learn_one(row_of(X, n), float(data.y[n]))
    assert state_of(one) == state_of(many)
    assert one.predict_one(row_of(X, 3)) == pytest.approx(many.predict(X)[3])
    with pytest.raises(AttributeError, match="regression has no probabilities"):
        one.predict_proba_one(row_of(X, 3))


names = st.text("abc", min_size=1, max_size=2)
values = st.one_of(st.floats(-9, 9), st.integers(-9, 9), st.booleans(), st.sampled_from(["red", "blue"]))
rows = st.lists(st.tuples(st.dictionaries(names, values, max_size=5), st.sampled_from("uvw")), min_size=1, max_size=25)


@given(rows, st.sampled_from(["perceptron", "logistic"]), st.sampled_from([1 << 21, 4]))
def test_mappings_are_rows_of_a_matrix_whose_columns_are_the_names(stream, rule, max_names):
    """The oracle writes the columns down by hand, and gives all rows known so far their final width."""
    one = Learner("OnlineClassifier", rule=rule, grow=True, max_names=max_names, random_state=0)
    many = Learner("OnlineClassifier", rule=rule, grow=True, random_state=0)
    table = FeatureNames((), max_names)
    for row, y in stream:
        features = {}
        for key, value in row.items():
            name, number = (f"{key}={value}", 1.0) if isinstance(value, str) else (key, float(value))
            features[name] = features.get(name, 0.0) + number
        width = max(1, table.add(features))
        columns = [table.column(name) for name in features]
        ends = np.array([0, len(columns)], np.int32)
        X = CSR(np.array([*features.values()], float), np.array(columns, np.int32), ends, (1, width))
        many.partial_fit(X, [y])
        if one.training is not None:
            one.predict_one(row)  # which must not take anything in
        one.learn_one(row, y)
    assert state_of(one) == state_of(many)
    assert one.classes_.tolist() == many.classes_.tolist()
    if table.width:
        assert one.feature_names_in_.tolist() == table.array().tolist()
    for row, _ in stream:
        probabilities = one.predict_proba_one(row)
        assert sum(probabilities.values()) == pytest.approx(1)
        assert probabilities[one.predict_one(row)] == max(probabilities.values())


def test_names_beyond_the_limit_share_columns():
    model = onlearn.LogisticRegression(grow=True, max_names=3)
    for n in range(40):
        model.learn_one({f"n{n % 9}": 1.0, "x": 2.0}, n % 2)
    assert model.feature_names_in_[:3].tolist() == ["n0", "x", "n1"]
    assert model.n_features_in_ == 3 + 4
    assert model.score_one({"n7": 1.0}) != model.score_one({})


def test_a_stream_that_is_saved_and_resumed_in_the_middle(tmp_path):
    def example(n):
        return {f"word{n * n % 17}": 1.0, "size": n % 5, "colour": ["red", "blue"][n % 2]}, ["a", "b", "c"][n % 3]

    whole, part = (onlearn.AROW(grow=True, max_names=12, random_state=0) for _ in range(2))
    for n in range(100):
        whole.learn_one(*example(n))
    for n in range(50):
        part.learn_one(*example(n))
    part.save(tmp_path / "m.onl")
    rest = onlearn.load(tmp_path / "m.onl")
    for n in range(50, 100):
        rest.learn_one(*example(n))
    whole.save(tmp_path / "whole.onl")
    rest.save(tmp_path / "rest.onl")
    assert (tmp_path / "whole.onl").read_bytes() == (tmp_path / "rest.onl").read_bytes()


def test_learning_goes_on_in_copies_pickles_and_after_single_rows():
    X, y = cases.data("binary", False).X, cases.data("binary", False).y
    model = onlearn.LogisticRegression(random_state=0).partial_fit(X, y, classes=[0, 1])
    model.learn_one(X[0], 1)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        other.learn_one(X[1], 0)
        assert other.n_seen_ == model.n_seen_ + 1 and other.coef_.tolist() != model.coef_.tolist()
    before = model.coef_.tolist()
    model.partial_fit(X[:1], y[:1])
    assert model.coef_.tolist() != before
    assert model.predict(X[:1])[0] == model.predict_one(X[0])


def test_parameters_that_change_are_noticed():
    X, y = cases.data("binary", False).X, cases.data("binary", False).y
    model = onlearn.LogisticRegression(random_state=0).partial_fit(X, y, classes=[0, 1]).learn_one(X[0], 1)
    with pytest.raises(ValueError, match="cannot change to adagrad"):
        model.set_params(rate=0.5).learn_one(X[0], 1)
    model.rate = 0.1
    model.class_weight = {0: 1.0, 1: 3.0}
    twin = copy.deepcopy(model).partial_fit(X[:1], y[:1])
    model.learn_one(X[0], int(y[0]))
    assert model.coef_.tolist() == twin.coef_.tolist()
    model.set_params(class_weight="balanced").learn_one(X[0], 1)


@pytest.mark.parametrize("name", ["VotedPerceptron", "LinearSVM", "AdaGrad"])
def test_learners_that_need_all_or_lazy_weights(name):
    X, y = cases.data("binary", False).X, cases.data("binary", False).y
    more = {"l1": 0.01} if name == "AdaGrad" else {}
    one, many = (getattr(onlearn, name)(random_state=0, **more) for _ in range(2))
    for learner in (one, many):
        learner.partial_fit(X[:1], y[:1], classes=[0, 1])
    for n in range(1, len(y)):  # as many calls: room for votes is made in each
        one.predict_proba_one(X[n])
        one.learn_one(X[n], int(y[n]))
        many.partial_fit(X[n : n + 1], y[n : n + 1], sample_weight=[1.0])
    assert state_of(one) == state_of(many)


def test_rules_of_the_user():
    @onlearn.rule
    def careful(score, y, sqnorm, C=0.5):
        return y * min(C, 1 / sqnorm) if score * y <= 0 else 0.0

    X, y = cases.data("binary", False).X, cases.data("binary", False).y
    one, many = (onlearn.OnlineClassifier("careful(0.3)", random_state=0) for _ in range(2))
    one.partial_fit(X[:1], y[:1], classes=[0, 1])
    many.partial_fit(X, y, classes=[0, 1])
    for n in range(1, len(y)):
        one.learn_one(X[n], y[n])
    assert state_of(one) == state_of(many)


def test_first_labels():
    model = onlearn.LogisticRegression()
    with pytest.raises(ValueError, match=r"the first label is 'spam'.*set grow=True"):
        model.learn_one([1.0, 2.0], "spam")
    assert model.learn_one([1.0, 2.0], True).classes_.tolist() == [False, True]
    assert model.predict_one([1.0, 2.0]) is True
    grown = onlearn.LogisticRegression(grow=True).learn_one({"a": 1}, "spam")
    assert grown.predict_one({"a": 1}) == "spam" and grown.predict_proba_one({}) == {"spam": 1.0}
    assert grown.learn_one({"b": 1}, "ham").predict_one({"b": 9}) == "ham"


WRONG = [
    ({"a": float("nan"), "new": 1.0}, ValueError, "the feature 'a' is NaN"),
    ({"new": float("-inf")}, ValueError, "the feature 'new' is infinity"),
    ({"a": None}, TypeError, r"the feature 'a' is None .*leave it out"),
    ({"a": [1.0]}, TypeError, r"the feature 'a' is \[1.0\]"),
    ({"a": 1j}, TypeError, "the feature 'a' is 1j"),
    ({"a": 10**400}, ValueError, "the feature 'a' holds a number that float64 cannot"),
    ({3: 1.0}, TypeError, "the names of features are strings, not 3"),
    ("text", TypeError, "texts are for onlearn.Model"),
    ([1.0, float("nan")], ValueError, r"NaN in row 0, column 1 \('b'\)"),
    (["1", "2"], TypeError, "must hold numbers"),
    (np.zeros((2, 2)), ValueError, "one row"),
]


@pytest.mark.parametrize(("row", "error", "sentence"), WRONG)
def test_wrong_rows_are_refused_by_name_and_leave_the_learner_as_it_is(row, error, sentence):
    learner = Learner("LogisticRegression", grow=True, random_state=0)
    for n in range(6):
        learner.learn_one({"a": n, "b": 1.0}, n % 2)
    before, width = state_of(learner), learner.n_features_in_
    with pytest.raises(error, match=sentence):
        learner.learn_one(row, 1)
    with pytest.raises(error, match=sentence):
        learner.predict_one(row)
    assert state_of(learner) == before and learner.n_features_in_ == width and len(learner.feature_names) == 2
    assert learner.learn_one({"a": 1.0, "b": 2.0}, 1).n_seen_ == 7


def test_wrong_labels_and_weights_are_refused_and_take_in_no_names():
    learner = Learner("LogisticRegression", grow="features", random_state=0).learn_one({"a": 1.0}, True)
    before = state_of(learner)
    for y, weight in ((3, 1.0), ("x", 1.0), (float("nan"), 1.0), ([1], 1.0), (True, -1.0), (True, float("inf"))):
        with pytest.raises(ValueError, match=r"label|weight|labels"):
            learner.learn_one({"new": 1.0}, y, weight)
        assert state_of(learner) == before and len(learner.feature_names) == 1
    learner.learn_one({"a": 1.0}, True, 0.0)  # as if it were not there
    assert learner.n_seen_ == 1


def test_a_learner_that_does_not_grow_names_what_it_does_not_know():
    import pandas as pd

    frame = pd.DataFrame({"size": [1.0, 2.0, 3.0], "age": [3.0, 1.0, 2.0]})
    model = onlearn.LogisticRegression(random_state=0).fit(frame, [0, 1, 0])
    assert model.predict_one({"size": 2.0}) in (0, 1) and model.predict_one(frame.iloc[0]) in (0, 1)
    for call in (lambda x: model.learn_one(x, 1), model.predict_one):
        with pytest.raises(ValueError, match=r"'sice' is not among those learned from.*did you mean 'size'"):
            call({"sice": 2.0})
    plain = onlearn.LogisticRegression(random_state=0).fit(frame.to_numpy(), [0, 1, 0])
    with pytest.raises(TypeError, match="knows its features by number"):
        plain.learn_one({"size": 1.0}, 1)
    with pytest.raises(ValueError, match="X has 3 features"):
        plain.learn_one([1.0, 2.0, 3.0], 1)


def test_negative_values_are_refused_before_names_are_taken_in():
    model = onlearn.Winnow(grow=True).learn_one({"a": 1, "b": 1}, "p").learn_one({"a": 1, "c": 1}, "n")
    with pytest.raises(ValueError, match="Negative values"):
        model.learn_one({"a": -1, "d": 2}, "n")
    assert model.n_features_in_ == 3


def test_values_too_large_for_a_sum_are_learned_as_in_a_matrix():
    X = np.array([[1e308, 1e308], [1.0, 2.0]])
    one, many = (Learner("LogisticRegression", random_state=0) for _ in range(2))
    for learner in (one, many):
        learner.partial_fit(X[1:], [1], classes=[0, 1])
    one.learn_one(X[0], 1)
    many._partial_fit(X[:1], [1])
    assert state_of(one) == state_of(many)
    assert np.isfinite(one.score_one(X[0]))


def test_repeated_names_and_empty_rows():
    assert named_values({"a=b": 2.0, "a": "b"}) == {"a=b": 3.0}
    model = onlearn.LogisticRegression(grow=True).learn_one({}, 1).learn_one({"a=b": 2.0, "a": "b"}, 0)
    assert model.feature_names_in_.tolist() == ["a=b"]
    assert model.learn_one({}, 1).n_seen_ == 3


def test_kernels():
    X, y = cases.data("binary", False).X, cases.data("binary", False).y
    one, many = (onlearn.KernelClassifier("gaussian(2)", random_state=0) for _ in range(2))
    one.partial_fit(X[:1], y[:1], classes=[0, 1])
    many.partial_fit(X, y, classes=[0, 1])
    for n in range(1, len(y)):
        one.learn_one(X[n], y[n])
    np.testing.assert_allclose(one.decision_function(X), many.decision_function(X), atol=1e-12)
    assert one.score_one(X[0]) == pytest.approx(one.decision_function(X)[0])
    assert one.predict_one(X[0]) == one.predict(X)[0]
    words = onlearn.KernelClassifier("substrings(1, 3)", random_state=0).fit(["abc", "bcd", "xyz", "xxy"], [0, 0, 1, 1])
    assert words.predict_one("abd") == 0 and words.learn_one("abx", 1).n_seen_ == 21
    primal = onlearn.KernelClassifier("polynomial(2)", representation="primal", random_state=0).fit(X, y)
    assert primal.score_one(X[0]) == pytest.approx(primal.decision_function(X)[0])


def test_raw_rows_of_a_model():
    from onlearn.models import Model

    rows = [{"size": 1.5 + n % 3, "colour": ["red", "green"][n % 2], "note": f"word{n % 5}"} for n in range(40)]
    y = ["apple" if n % 3 else "melon" for n in range(40)]
    one, many = (Model().partial_fit(rows[:20], y[:20]) for _ in range(2))
    for row, label in zip(rows[20:], y[20:]):
        one.learn_one(row, label)
        many.partial_fit([row], [label])
    assert state_of(one.learner) == state_of(many.learner)
    assert one.predict_one(rows[0]) == many.predict(rows[:1])[0]
    assert one.score_one(rows[0]) == pytest.approx(many.scores(rows[:1])[0], rel=1e-5)
    assert list(one.predict_proba_one(rows[0]).values()) == pytest.approx(many.predict_proba(rows[:1])[0], rel=1e-5)
    texts = Model().partial_fit(["cheap pills", "see you at lunch"] * 4, ["spam", "ham"] * 4)
    assert texts.learn_one("more pills", "spam").predict_one("pills") == "spam"
    numbers = Model().partial_fit(np.eye(3), ["a", "b", "b"])
    assert numbers.learn_one(np.array([0.0, 0.0, 1.0]), "b").predict_one(sp.csr_matrix([[0.0, 0.0, 1.0]])) == "b"


def test_a_refused_row_leaves_lazy_weights_as_they_are():
    X, y = cases.data("binary", False).X, cases.data("binary", False).y
    for geometry in ("adagrad(l1=0.01)", "adagrad(l2=0.01)", "additive(l1=0.01)"):
        learner = Learner(geometry=geometry, random_state=0).partial_fit(X, y, classes=[0, 1])
        before = state_of(learner)
        for row in (np.array([1, np.nan, 1, 0, 0, 0]), CSR.of(np.array([[1, np.inf, 1, 0, 0, 0]]))):
            with pytest.raises(ValueError, match="X contains"):
                learner.learn_one(row, 1)
        assert state_of(learner) == before


def test_growing_that_is_interrupted_is_undone(monkeypatch):
    learner = Learner(grow=True, random_state=0).learn_one({"a": 1.0}, "x").learn_one({"a": 2.0}, "y")
    before = state_of(learner)
    for place in ("grow", "_start"):

        def interrupted(*_):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(type(learner.training), place, interrupted)
            with pytest.raises(KeyboardInterrupt):
                learner.learn_one({f"n{k}": 1.0 for k in range(1000)}, "x")
        assert state_of(learner) == before and learner.features == len(learner.feature_names) == 1
    assert learner.learn_one({"b": 1.0}, "x").features == 2


def test_names_that_a_table_has_twice(tmp_path):
    import pyarrow as pa

    X = cases.data("binary", False).X[:4]
    table = pa.table([pa.array(X[:, k]) for k in range(3)], names=["a", "a", "b"])
    model = onlearn.OnlineClassifier(random_state=0).fit(table, [0, 1, 0, 1])
    model.save(tmp_path / "m.onl")
    again = onlearn.load(tmp_path / "m.onl")
    assert again.feature_names_in_.tolist() == ["a", "a", "b"]
    assert again.predict(table).tolist() == model.predict(table).tolist()


def test_saving_changes_nothing():
    learner = Learner(grow=True, random_state=0)
    for n in range(50):
        learner.learn_one({f"n{n}": 1.0}, n % 2)
    g = learner.training.g
    facts, arrays = learner.training.pack()
    assert learner.training.g is g and facts["capacity"] == facts["features"] == 50 < learner.training.capacity
    assert arrays["g.w"].size == 51 * 2


def test_choices_that_are_changed_in_place_are_noticed():
    X, y = cases.data("binary", False).X, cases.data("binary", False).y
    geometry = onlearn.geometry.Additive()
    model = onlearn.OnlineClassifier(geometry=geometry, random_state=0).partial_fit(X, y, classes=[0, 1])
    model.learn_one(X[0], 1).note = np.zeros(3)  # an attribute of the user's is nobody's business
    model.learn_one(X[0], 1).note = np.ones(3)
    model.learn_one(X[0], 1)
    geometry.rate = 7.0
    for call in (lambda: model.learn_one(X[0], 1), lambda: model.partial_fit(X, y)):
        with pytest.raises(ValueError, match="geometry was additive when learning began"):
            call()
    assert model.predict(X[:1])[0] == model.predict_one(X[0])  # what was learned still predicts
    geometry.rate = 1.0
    assert model.learn_one(X[0], 1).n_seen_ == len(y) + 4


def test_rows_without_names_cannot_widen_rows_with_names():
    learner = Learner(grow=True).learn_one({"a": 1.0, "b": 2.0}, "x").learn_one({"a": 1.0}, "y")
    with pytest.raises(ValueError, match="3 columns without names"):
        learner.learn_one(np.ones(3), "x")
    assert learner.predict_one({"a": 1.0}) in ("x", "y")


def test_numbers_of_numpy_take_the_short_path(monkeypatch):
    data = cases.data("regression", False)
    model = Learner("OnlineRegressor", random_state=0).partial_fit(data.X, data.y)
    monkeypatch.setattr(model.path, "_learn_as_one_of_many", None)
    for y, weight in ((data.y[0], 1.0), (np.float64(1.5), np.float64(2.0)), (np.int64(3), 1)):
        model.learn_one(data.X[0], y, weight)
        model.learn_one(data.X[0].tolist(), y, weight)
        model.learn_one(list(data.X[0]), y, weight)
        model.learn_one(sp.csr_matrix(data.X[:1]), y, weight)
    monkeypatch.undo()
    with pytest.raises(ValueError, match="too large"):
        model.learn_one(data.X[0], 10**400)


def test_mappings_of_other_kinds():
    from collections import OrderedDict, UserDict

    models = [onlearn.LogisticRegression(grow=True) for _ in range(3)]
    for n in range(20):
        row = {"a": n % 3, "b": 1.5}
        for model, kind in zip(models, (dict, OrderedDict, UserDict)):
            model.learn_one(kind(row), n % 2)
    assert models[0].coef_.tolist() == models[1].coef_.tolist() == models[2].coef_.tolist()


# ------------------------------------------------------------------ threads


def whole(learner, by_rows, seconds=1.5):
    """Read while another thread learns; every hypothesis that is seen must be one whose two weights are equal.

    All rows have two equal features, so that in every hypothesis between two examples their weights are equal, too.
    """
    problems, stop = [], threading.Event()
    rng = np.random.default_rng(0)
    size = 4000
    X = np.repeat(rng.normal(size=(size, 1)), 2, axis=1)
    y = (X[:, 0] + rng.normal(size=size) > 0).astype(int)
    learner.partial_fit(X[:50], y[:50], classes=[0, 1])

    def read():
        both = np.array([[1.0, 0.0], [0.0, 1.0]])
        while not stop.is_set():
            first, second = learner.decision_function(both)
            third = learner.score_one(both[0]) if by_rows else first
            if first != second or not np.isfinite(third):
                problems.append((first, second))
            learner.predict(both)
            learner.predict_proba(both)

    threads = [threading.Thread(target=read) for _ in range(3)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        timer = threading.Timer(seconds, stop.set)
        timer.start()
        while not stop.is_set():
            if by_rows:
                for n in range(200):
                    learner.learn_one(X[n], int(y[n]))
            else:
                learner.partial_fit(X, y)
    finally:
        stop.set()
        sys.setswitchinterval(interval)
        for thread in threads:
            thread.join()
    assert not problems


@pytest.mark.parametrize("by_rows", [True, False])
@pytest.mark.parametrize("name", ["AveragedPerceptron", "LinearSVM", "Perceptron"])
def test_predictions_see_a_whole_hypothesis_while_another_thread_learns(name, by_rows):
    whole(getattr(onlearn, name)(random_state=0), by_rows)


def test_predictions_while_another_thread_takes_in_names_and_classes():
    model = onlearn.AveragedPerceptron(grow=True, random_state=0).learn_one({"a": 1.0}, 0).learn_one({"b": 1.0}, 1)
    stop, problems = threading.Event(), []

    def read():
        try:
            while not stop.is_set():
                assert sum(model.predict_proba_one({"a": 1.0, "c": 2.0}).values()) == pytest.approx(1.0)
                model.predict_one({"a": 1.0})
                scores = model._as_learner().decision_function(CSR.of(np.ones((1, 2))))
                assert np.isfinite(scores).all()
        except Exception as error:
            problems.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    for n in range(3000):
        model.learn_one({f"n{n}": 1.0, "a": n % 3}, n % 50)
    stop.set()
    thread.join()
    assert not problems


def test_files_and_pickles_made_while_another_thread_learns_hold_one_state(tmp_path):
    model = onlearn.AveragedPerceptron(grow=True, random_state=0).learn_one({"a": 1.0}, 0).learn_one({"b": 1.0}, 1)
    stop = threading.Event()

    def write():
        n = 0
        while not stop.is_set():
            model.learn_one({f"n{n}": 1.0, "a": n % 3}, n % 2)
            n += 1

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for n in range(20):
            model.save(tmp_path / "m.onl")
            for other in (onlearn.load(tmp_path / "m.onl"), pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
                training = other._training
                assert training.st.seen[0] == training.n_seen
                assert other.n_features_in_ == len(other.feature_names_in_) == training.features
                other.learn_one({f"m{n}": 1.0}, 1)
    finally:
        stop.set()
        thread.join()
    assert model.learn_one({"more": 1.0}, 0).predict_one({"more": 1.0}) in (0, 1)


def test_a_failed_call_does_not_disturb_readers():
    X, y = cases.data("binary", False).X, cases.data("binary", False).y
    model = onlearn.AveragedPerceptron(random_state=0).partial_fit(X, y, classes=[0, 1])
    stop, problems = threading.Event(), []

    def read():
        try:
            while not stop.is_set():
                model.predict(X)
        except Exception as error:
            problems.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    for _ in range(200):
        with pytest.raises(ValueError):
            model.partial_fit(X[:3], [0, 1, 7])
    stop.set()
    thread.join()
    assert not problems


# ------------------------------------------------------------------ memory


def grown_by(model, rows, first, last):
    """How much more memory the process needs at most, in KiB, for learning from the rows of a range."""
    with MemoryGrowth() as growth:
        for n in range(first, last):
            model.learn_one(*rows(n))
    if growth.peak is None:
        pytest.skip("the memory of the process cannot be read")
    return growth.peak >> 10


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dense", "mapping"])
def test_a_million_rows_need_no_more_memory_than_the_first(kind):
    X = np.random.default_rng(0).normal(size=(500, 20))
    y = (X[:, 0] > 0).tolist()
    dicts = [{f"f{k}": value for k, value in enumerate(row)} for row in X.tolist()]
    some = X if kind == "dense" else dicts
    model = onlearn.LogisticRegression(grow="features", random_state=0)
    grown_by(model, lambda n: (some[n % 500], y[n % 500]), 0, 50_000)
    assert grown_by(model, lambda n: (some[n % 500], y[n % 500]), 50_000, 1_000_000) < 2000
    assert model.n_seen_ == 1_000_000
