"""Comparisons of learners: the same rows for all, peers, splits, pairs, failures, Ctrl-C."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.tree import DecisionTreeClassifier

import onlearn
from onlearn.data import DataError
from onlearn.errors import PlanError
from onlearn.models import comparison, peers
from onlearn.models.comparison import compare
from onlearn.models.contestants import OurLearner
from onlearn.models.peers import parse_peer


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Rows of which one column decides, but for noise."""
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=400), rng.normal(size=400)
    names = np.where(x + 0.3 * rng.normal(size=400) > 0, "good", "bad")
    path = tmp_path_factory.mktemp("compare") / "rows.csv"
    path.write_text("\n".join(["x,z,label", *(f"{a:.4f},{b:.4f},{c}" for a, b, c in zip(x, z, names))]) + "\n")
    return path


@pytest.fixture(scope="module")
def amounts(tmp_path_factory):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2))
    y = 100 + 30 * x[:, 0] - 10 * x[:, 1] + rng.normal(size=300)
    path = tmp_path_factory.mktemp("compare") / "amounts.csv"
    path.write_text("\n".join(["a,b,y", *(f"{a:.4f},{b:.4f},{c:.4f}" for (a, b), c in zip(x, y))]) + "\n")
    return path


def test_a_learner_does_as_in_training(table):
    """Held-out rows, accuracy, log-loss and mistakes are those of ``train`` with the same options."""
    found = compare(table, ["AROW"], holdout="25%", seed=3)
    report = onlearn.train(table, learner="AROW", holdout="25%", seed=3).report_
    entry = found.best
    assert entry is not None and found.test_rows == report["holdout"]["n"]
    assert entry.accuracy == report["holdout"]["accuracy"]
    assert entry.log_loss == pytest.approx(report["holdout"]["log_loss"])
    assert entry.mistakes == report["progressive"]["mistakes"] == entry.curve[-1]["mistakes"]
    assert found.rows + found.test_rows == 400 and entry.curve[-1]["seen"] == found.rows
    assert [one["seen"] for one in entry.curve[:-1]] == [2**k for k in range(len(entry.curve) - 1)]


def test_files_to_test_on(table, tmp_path):
    model = onlearn.train(table, learner="Perceptron", test=table)
    found = compare(table, ["Perceptron"], test=table)
    assert found.best.accuracy == model.report_["test"]["accuracy"] and found.rows == found.test_rows == 400
    model.save(tmp_path / "model.onl")
    assert found.best.model_bytes == pytest.approx((tmp_path / "model.onl").stat().st_size, rel=0.05)


def test_unknown_labels_of_test_files_are_errors(table, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text("x,z,label\n2.5,0,good\n-2.5,0,bad\n1,1,awful\n")
    found = compare(table, ["AROW"], peers=[LogisticRegression()], test=other)
    assert [one.accuracy for one in found.learners] == [pytest.approx(2 / 3)] * 2
    assert all(one.log_loss < 1 for one in found.learners)


def test_peers_get_our_features(table):
    """A peer predicts what it predicts when it is fitted to our features by hand."""
    found = compare(table, [], peers={"theirs": LogisticRegression()}, holdout="25%")
    features = onlearn.train(table, holdout="25%")
    rows = np.genfromtxt(table, delimiter=",", skip_header=1, usecols=(0, 1))
    labels = np.genfromtxt(table, delimiter=",", skip_header=1, usecols=2, dtype=str)
    held = comparison.held_out(0, 400, 0.25, 0)
    X = features.matrix({"x": rows[:, 0], "z": rows[:, 1]})
    fitted = LogisticRegression().fit(X[~held], labels[~held])
    entry = next(one for one in found.learners if one.name == "theirs")
    assert entry.accuracy == pytest.approx(fitted.score(X[held], labels[held]), abs=0.03)
    assert entry.peer and entry.curve and entry.model_bytes > 0


def test_all_learners_of_the_data(table):
    found = compare(table, peers=["sklearn.linear_model:SGDClassifier(loss=log_loss)", DecisionTreeClassifier()])
    assert [one.error for one in found.learners] == [None] * 7
    accuracies = [one.accuracy for one in found.learners]
    assert accuracies == sorted(accuracies, reverse=True)
    assert {pair.a for pair in found.pairs if pair.measure == "accuracy"} == {found.best.name}
    made = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert {"name", "accuracy", "log_loss", "mistakes", "seconds", "memory_bytes", "model_bytes", "curve"} <= {
        *made["learners"][0]
    }
    assert {"a", "b", "test", "p", "difference", "low", "high"} <= {*made["pairs"][0]}
    assert str(found).startswith(f"{found.rows} rows to learn from") and "no difference shown" in str(found)


def test_a_constant_loses(table):
    """A difference that is more than noise is said to be one."""

    class Constant(DecisionTreeClassifier):
        def predict(self, X, check_input=True):
            return np.zeros(X.shape[0], dtype=int)

    found = compare(table, ["AROW"], peers=[Constant()], curves=False)
    pair = found.pair("Constant")
    assert pair.a == "AROW" and pair.test == "mcnemar" and pair.shown and pair.p < 1e-4
    assert pair.low < pair.difference < pair.high and pair.verdict().startswith("worse by 0.")


def test_folds(table):
    found = compare(table, ["AROW", "Perceptron"], folds=4, peers=[LogisticRegression()])
    assert found.rows == found.test_rows == 400
    for one in found.learners:
        assert one.low < one.accuracy < one.high
    assert {pair.test for pair in found.pairs} == {"corrected-t"}
    assert "4 folds" in str(found)


def test_regression(amounts):
    found = compare(amounts, task="regress", peers=[Ridge(), "sklearn.linear_model:SGDRegressor"])
    assert [one.error for one in found.learners] == [None] * 5
    assert found.best.rmse < 2 and found.best.accuracy is None and found.best.mistakes is None
    assert {pair.measure for pair in found.pairs} == {"squared_error"}
    assert all(one.curve for one in found.learners)
    by_name = compare(amounts, ["KNNRegressor"])
    assert by_name.task == "regress"


def test_rows_at_hand(table):
    """Arrays, sparse matrices, data frames and texts, as pairs with their labels."""
    import pandas as pd
    import scipy.sparse as sp

    frame = pd.read_csv(table)
    rows, labels = frame[["x", "z"]], frame["label"]
    by_file = compare(table, ["AROW"], holdout="25%")
    found = compare((rows, labels), ["AROW"], holdout="25%")
    assert found.best.accuracy == by_file.best.accuracy and found.data == ("memory",)
    for X in (rows.to_numpy(), sp.csr_matrix(rows.to_numpy())):
        found = compare((X, labels.tolist()), ["AROW"], test=(X, labels), peers=[LogisticRegression()])
        assert found.test_rows == 400 and found.best.accuracy > 0.85
    texts = ["cheap pills", "see you at lunch"] * 30
    assert compare((texts, ["spam", "ham"] * 30)).best.accuracy == 1.0
    amounts = compare((rows, frame["x"] * 3 + 1), ["default"], task="regress", folds=3)
    assert amounts.best.rmse < 1
    with pytest.raises(DataError, match="400 rows but y has 3"):
        compare((rows, [1, 2, 3]))


def test_if_all_fail_the_first_reason_is_raised(table):
    with pytest.raises(DataError, match="no learner could be compared; Winnow: Negative"):
        compare(table, ["Winnow"])


def test_one_seed_gives_the_same_figures(table):
    runs = [compare(table, ["AROW", "Perceptron"], peers=[DecisionTreeClassifier()], seed=5) for _ in range(2)]
    first, second = (
        [
            {key: value for key, value in vars(one).items() if key not in ("seconds", "memory_bytes")}
            for one in found.learners
        ]
        for found in runs
    )
    assert first == second and runs[0].pairs == runs[1].pairs


def test_one_that_fails_is_a_row_with_the_reason(table):
    found = compare(table, ["Winnow", "AROW"], peers=["sklearn.naive_bayes:MultinomialNB"])
    assert found.learners[0].name == "AROW"
    reasons = {one.name: one.error for one in found.learners[1:]}
    assert "negative" in reasons["Winnow"].lower() and "Negative" in reasons["MultinomialNB"]
    assert "MultinomialNB" in str(found) and not found.pairs


def test_peers_that_take_no_sparse_rows_get_dense_ones(tmp_path):
    path = tmp_path / "rows.csv"
    rng = np.random.default_rng(0)
    rows = [
        f"{'abcdefghijkl'[k]},{'mnopqrstuvw'[j]},{'yes' if k > 5 else 'no'}" for k, j in rng.integers(0, 11, (200, 2))
    ]
    path.write_text("\n".join(["one,two,label", *rows]) + "\n")
    found = compare(path, ["AROW"], peers=["sklearn.discriminant_analysis:LinearDiscriminantAnalysis"])
    assert [one.error for one in found.learners] == [None, None]


def test_ctrl_c_shows_what_is_finished(table, monkeypatch):
    compete = OurLearner.compete

    def interrupted(self, split, curves):
        if self.name == "Perceptron":
            raise KeyboardInterrupt
        return compete(self, split, curves)

    monkeypatch.setattr(OurLearner, "compete", interrupted)
    found = compare(table, ["AROW", "Perceptron", "FTRL"])
    assert found.stopped and [one.name for one in found.learners] == ["AROW"]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (dict(learners=["Perzeptron"]), "did you mean Perceptron"),
        (dict(learners=["AROW", "AROW"]), "two learners are called 'AROW'"),
        (dict(peers=["nosuchpackage:Thing"]), "no module 'nosuchpackage'"),
        (dict(peers=["sklearn.linear_model:SGDClasifier"]), "did you mean 'SGDClassifier'"),
        (dict(peers=["sklearn.linear_model:SGDClassifier(los=1)"]), "did you mean 'loss'"),
        (dict(peers=["SGDClassifier"]), "module:Class"),
        (dict(peers=["os:system('true')"]), "names of parameters"),
        (dict(peers=["os:getcwd"]), "no fit and predict"),
        (dict(folds=3, holdout="10%"), "two ways of testing"),
        (dict(folds=1000), "1000 folds of 400 rows"),
        (dict(rule="pa1"), "rule="),
        (dict(task="multilabel"), "one label or number a row"),
        (dict(time_limit=3.0), "learner=auto, which is not among"),
        (dict(holdout="0%"), "leaves none"),
    ],
)
def test_errors_are_one_sentence(table, given, why):
    with pytest.raises(PlanError, match=why.replace("(", r"\(")) as caught:
        compare(table, **given)
    assert "\n" not in str(caught.value)


def test_the_spelling_of_peers():
    name, made = parse_peer("sklearn.svm:SVC(kernel=rbf, C=-1.5, class_weight={0: 1, 1: 2}, shrinking=False)")
    assert name.startswith("SVC(") and made.kernel == "rbf" and made.C == -1.5
    assert made.class_weight == {0: 1, 1: 2} and made.shrinking is False
    with pytest.raises(PlanError):
        parse_peer("sklearn.svm:SVC(C=__import__('os'))")


def test_curves_of_peers():
    """With partial_fit in blocks, without it by growing parts; counts as they are defined."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = (X[:, 0] > 0).astype(np.int64)
    rows = peers.Matrices(X, y, None, X, 2, 0.0, 0, 0)
    blocks = peers.peer_curve(parse_peer("sklearn.linear_model:SGDClassifier")[1], rows, 0)
    assert [one["seen"] for one in blocks] == [2, 4, 8, 16, 32, 64, 128, 256, 300] and blocks[0]["loss"] is None
    fits = peers.peer_curve(DecisionTreeClassifier(), rows, 0)
    assert [one["seen"] for one in fits] == [128, 256, 300] and fits[-1]["mistakes"] < 30
    tree = DecisionTreeClassifier(random_state=0).fit(X[:64], y[:64])
    assert fits[0]["mistakes"] == np.count_nonzero(tree.predict(X[64:128]) != y[64:128])
