"""``Model.partial_fit``, ``score`` and ``explain`` on rows at hand."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp

import onlearn
from onlearn import data
from onlearn.models import Model
from onlearn.models.plan import Plan
from onlearn.models.run import Run
from sample_models import MESSAGES

TEXTS, LABELS = [text for _, text in MESSAGES * 5], [label for label, _ in MESSAGES * 5]


def rows_of_numbers(n=200, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    return x, np.where(x[:, 0] > 0, "up", "down")


@pytest.fixture
def table(tmp_path):
    x, y = rows_of_numbers()
    path = tmp_path / "a.csv"
    path.write_text("a,b,c,label\n" + "".join(f"{p},{q},{r},{label}\n" for (p, q, r), label in zip(x, y)))
    return path


def test_rows_at_hand_are_learned_from_as_rows_of_files(table, tmp_path):
    first = Run(Plan([str(table)], passes=1)).go()
    first.save(tmp_path / "m.onl")
    by_rows = onlearn.load(tmp_path / "m.onl")
    by_file = Run(Plan([str(table)], passes=1), onlearn.load(tmp_path / "m.onl")).go()
    X, y = data.load(table)
    by_rows.partial_fit(X, y)
    np.testing.assert_array_equal(by_rows.weights()[0], by_file.weights()[0])
    assert by_rows.trained["examples"] == 400
    by_rows.save(tmp_path / "n.onl")
    assert onlearn.load(tmp_path / "n.onl").learner.n_seen_ == 400


@pytest.mark.parametrize("kind", ["table", "dicts", "columns", "array", "sparse"])
def test_a_new_model_takes_every_kind_of_rows(kind):
    x, y = rows_of_numbers()
    columns = {name: x[:, k] for k, name in enumerate("abc")}
    rows = {
        "table": pa.table(columns),
        "dicts": [dict(zip("abc", row)) for row in x.tolist()],
        "columns": columns,
        "array": x,
        "sparse": sp.csr_matrix(x),
    }[kind]
    model = Model().partial_fit(rows, y)
    assert model.partial_fit(rows, y) is model
    assert model.learner.n_seen_ == 400
    assert model.score(rows, y) > 0.9
    assert model.score(rows, y) == np.mean(model.predict(rows) == y)


def test_texts_and_new_words(tmp_path):
    model = Model().partial_fit(TEXTS, LABELS)
    before = model.features.n_features_out_
    model.partial_fit(["a lottery ticket"] * 5, ["spam"] * 5)
    assert model.features.n_features_out_ > before
    assert model.predict(["lottery"]).tolist() == ["spam"]
    model.save(tmp_path / "m.onl")
    assert onlearn.load(tmp_path / "m.onl").score(TEXTS, LABELS) == 1.0


def test_labels_that_are_new():
    x, _ = rows_of_numbers(90)
    y = np.tile([1, 2, 3], 30)
    model = Model().partial_fit(x, y)
    model.partial_fit(x[:4], [4, 4, 4, 4])
    assert model.labels == ["1", "2", "3", "4"]
    two = Model().partial_fit(TEXTS, LABELS)
    with pytest.raises(ValueError, match="does not know the label 'eggs'; it knows ham, spam"):
        two.partial_fit(TEXTS[:1], ["eggs"])
    with pytest.raises(ValueError, match="only one label: name all labels with classes="):
        Model().partial_fit(TEXTS[:1], LABELS[:1])
    named = Model().partial_fit(TEXTS[:1], LABELS[:1], classes=["spam", "ham"])
    assert named.labels == ["ham", "spam"]


def test_regression():
    x, _ = rows_of_numbers()
    y = 100 + 20 * x[:, 0]
    model = Model()
    model.task = "regress"
    for _ in range(20):
        model.partial_fit(x, y)
    assert model.score(x, y) > 0.95
    found = model.explain(x[:1])
    assert found.total == pytest.approx(float(model.predict(x[:1])[0]))


def test_weights_of_rows():
    x, y = rows_of_numbers()
    weight = np.where(np.arange(200) < 100, 1.0, 0.0)
    model = Model().partial_fit(x, y, sample_weight=weight)
    assert model.learner.n_seen_ == 100
    assert model.score(x, y, sample_weight=weight) == model.score(x[:100], y[:100])


def test_explaining_one_row():
    x, y = rows_of_numbers()
    model = Model().partial_fit([dict(zip("abc", row)) for row in x.tolist()], y)
    one = {"a": 2.0, "b": 0.1, "c": None}
    found = model.explain(one)
    assert found.prediction == "up" and found.parts[0].feature == "a"
    assert found.total == pytest.approx(float(model.scores([one])[0]))
    assert model.explain([one]) == found
    with pytest.raises(ValueError, match="one row is explained at a time"):
        model.explain([one, one])


def test_what_is_refused(table):
    model = onlearn.train(table, kernel="polynomial(2)")
    x, y = rows_of_numbers(3)
    with pytest.raises(ValueError, match="KernelClassifier does not learn row by row"):
        model.partial_fit(x, y)
    with pytest.raises(ValueError, match="there are no rows"):
        Model().partial_fit([], [])
    with pytest.raises(ValueError, match="3 rows but 2 entries"):
        Model().partial_fit(*rows_of_numbers()).score(x, y[:2])
