"""Indices too large for a weight each: in buckets of their own, counted, told of, and stored."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import onlearn
from onlearn.engine.csr import CSR
from onlearn.errors import PlanError
from onlearn.models import Model, far_indices, open_model
from onlearn.models.explain import explain
from onlearn.models.far_indices import FoldedFar, HashedFar
from onlearn.models.plan import Plan
from onlearn.models.run import Run


@pytest.fixture(autouse=True)
def few_columns(monkeypatch):
    monkeypatch.setattr(far_indices, "WIDEST", 64)


def rows(path, count=200):
    """Two labels, each with a column and a far index that are its own."""
    path.write_text("".join(f"{n % 2} {20 + n % 2}:1 {10**11 + n % 2}:1 {10**12 + n % 10}:1\n" for n in range(count)))
    return str(path)


def test_a_far_index_shares_no_weight_with_a_column(tmp_path):
    path = tmp_path / "a.svm"
    # each column of the file is where a far index would be, were they hashed into the columns
    X = sp.csr_matrix(([1.0] * 50, ([0] * 50, 10**11 + np.arange(50))), shape=(1, 10**12))
    folded = FoldedFar().narrow(CSR.of(X)).indices
    lines = [f"1 {k}:1\n0 {10**11 + n}:1\n" for n in range(50) for k in folded]
    path.write_text("".join(lines))
    run = Run(Plan([str(path)], passes=1))
    model = run.go()
    batch = next(model.read(str(path)))
    assert np.mean(model.predict(batch) == batch.y) == 1.0
    assert model.features.n_features_out_ == 64 + (1 << 22)


def test_what_is_told_of_them(tmp_path):
    run = Run(Plan([rows(tmp_path / "a.svm")], bits=12, passes=2))
    model = run.go()
    assert model.far.values == 400  # counted once, however many passes
    assert model.far.collisions() == {
        "features": pytest.approx(12, abs=0.1),
        "buckets": 12,
        "collisions": pytest.approx(0, abs=0.1),
    }
    assert run.report.notes[-1] == (
        "400 values have an index beyond 63: about 12 such indices share 4,096 weights behind the others, "
        "with about 0 collisions"
    )
    named = [part.feature for part in explain(model, next(model.read(rows(tmp_path / "b.svm", 1)))).parts]
    assert "20" in named and sum("an index beyond 63, bucket" in name for name in named) == 2


def test_a_far_index_that_was_not_learned_from_is_left_out(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1\n0 2:1\n" * 50)
    run = Run(Plan([str(tmp_path / "a.svm")]))
    model = run.go()
    assert model.matrix(sp.csr_matrix(([1.0, 5.0], ([0, 0], [1, 10**9])), shape=(1, 10**10))).toarray().tolist() == [
        [0, 1, 0]
    ]
    assert model.far.values == 0 and not any("index" in note for note in run.report.notes)


def test_the_rows_that_are_given_stay_as_they_are(tmp_path):
    model = Run(Plan([rows(tmp_path / "a.svm")], bits=4)).go()
    X = sp.csr_matrix((np.arange(1.0, 31), ([0] * 30, 10**11 + np.arange(30) * 977)), shape=(1, 10**12))
    before = X.copy()
    assert model.matrix(X).sum() == X.sum()
    assert (before != X).nnz == 0


def test_stored_with_the_model_and_gone_on_with(tmp_path):
    source = rows(tmp_path / "a.svm")
    whole = Run(Plan([source], passes=2, holdout=0.1)).go()
    halted = Run(Plan([source], passes=2, holdout=0.1))

    def checkpoint():
        halted.model.save(tmp_path / "half.onl")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        halted.go(checkpoint=checkpoint, every=150)
    resumed = Run(Plan([source]), onlearn.load(tmp_path / "half.onl")).go()
    assert resumed.far.values == whole.far.values > 0
    np.testing.assert_array_equal(resumed.far.seen, whole.far.seen)
    np.testing.assert_array_equal(resumed.weights()[0], whole.weights()[0])
    more = Run(Plan([source], passes=1), resumed).go()
    assert more.far.values == whole.far.values + 400


def test_a_model_of_before_predicts_as_it_did(tmp_path):
    source = rows(tmp_path / "a.svm")
    run = Run(Plan([source], passes=1))
    run.model.far = FoldedFar()
    model = run.go()
    facts, arrays = model._pack()
    del facts["model"]["far"]  # as it was
    again = Model()
    again._unpack(facts, arrays)
    batch = next(again.read(source))
    assert again.features.n_features_out_ == 64
    np.testing.assert_array_equal(again.scores(batch), model.scores(batch))
    np.testing.assert_array_equal(again.matrix(batch).toarray(), FoldedFar().narrow(batch.parsed).toarray())


def test_a_learner_saved_from_python_has_all_its_columns(tmp_path):
    X = sp.csr_matrix(np.eye(100)[[70, 80] * 20])
    onlearn.Perceptron(random_state=0).fit(X, [0, 1] * 20).save(tmp_path / "m.onl")
    model = open_model(tmp_path / "m.onl")
    assert list(model.predict(X[:2])) == ["0", "1"]
    assert explain(model, X[:1]).parts[0].feature == "70"


@pytest.mark.parametrize("wrong", [{"way": "sideways"}, {"way": "behind", "bits": 3, "values": 1}])
def test_facts_that_contradict_the_buckets(tmp_path, wrong):
    facts, arrays = Run(Plan([rows(tmp_path / "a.svm")])).go()._pack()
    facts["model"]["far"] = wrong
    with pytest.raises(ValueError, match=r"far\.way|far indices"):
        Model()._unpack(facts, arrays)


def test_few_buckets_for_many(tmp_path):
    far = HashedFar(bits=3)
    X = sp.csr_matrix((np.ones(1000), ([0] * 1000, 10**6 + np.arange(1000))), shape=(1, 10**7))
    made = far.narrow(CSR.of(X), learn=True)
    assert made.shape == (1, 64 + 8) and made.data.sum() == 1000
    assert far.collisions()["buckets"] == 8 and far.collisions()["collisions"] > 8


def test_far_indices_of_parts_of_the_data():
    X = CSR.of(sp.csr_matrix((np.ones(100), (np.arange(100), 10**6 + 977 * np.arange(100))), shape=(100, 10**7)))
    whole, base = HashedFar(bits=8), HashedFar(bits=8)
    base.narrow(X.between(0, 10), learn=True)
    whole.narrow(X, learn=True)
    for start, stop in ((10, 40), (40, 40), (40, 100)):
        part = base.unfitted()
        part.narrow(X.between(start, stop), learn=True)
        base.include(part)
    assert base.values == whole.values == 100
    np.testing.assert_array_equal(base.seen, whole.seen)
    fresh = HashedFar(bits=8)
    fresh.include(base)
    fresh.include(base)
    assert fresh.values == 200 and base.values == 100
    with pytest.raises(PlanError, match="use the same bits="):
        base.include(HashedFar(bits=9))
    FoldedFar().include(FoldedFar())
