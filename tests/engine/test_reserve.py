"""Rows kept back for calibration: which, and what becomes of them."""

import numpy as np
import pytest
import scipy.sparse as sp

import onlearn
from onlearn.engine import reserve
from onlearn.engine.training import Training

RNG = np.random.default_rng(0)
ROWS = 6000
X = RNG.normal(size=(ROWS, 5))
Y = np.digitize(X @ [2.0, -1.0, 0.5, 0.0, 1.0] + RNG.normal(size=ROWS), [-1.0, 1.0])


def test_a_stream_keeps_back_all_that_is_kept_in_the_end():
    for rows in (5000, 9000, 40_000, 300_000):
        read = np.concatenate([reserve.while_reading(n, min(n + 777, rows)) for n in range(0, rows, 777)])
        np.testing.assert_array_equal(read, reserve.while_reading(0, rows))
        kept = reserve.in_the_end(rows, reserve.FEWEST_ROWS)
        assert np.isin(kept, np.flatnonzero(read)).all()
        assert read.mean() <= reserve.LARGEST_SHARE


def test_few_rows_are_all_learned_from():
    model = onlearn.AveragedPerceptron(epochs=3, random_state=0).fit(X[:4000], Y[:4000])
    assert model.n_seen_ == 12_000
    assert not any("kept_back" in entry for entry in model.history_["passes"])


def test_rare_classes_and_rows_without_weight_are_not_kept_back():
    codes = np.zeros(10_000, dtype=int)
    codes[:5] = 1
    weight = np.ones(10_000)
    weight[5000:] = 0.0
    kept = reserve.of_rows(codes, weight)
    assert len(kept) > 100 and (kept < 5000).all() and (kept >= 5).all()


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("classes", [2, 3])
def test_rows_kept_back_are_learned_from_at_the_end(kind, classes):
    rows, labels = kind(X), np.minimum(Y, classes - 1)
    model = onlearn.AveragedPerceptron(epochs=3, random_state=0).fit(rows, labels)
    kept = len(reserve.of_rows(labels, None))
    assert kept > 300
    assert [entry["seen"] for entry in model.history_["passes"]] == [ROWS - kept, ROWS - kept, ROWS]
    assert model.n_seen_ == 3 * ROWS - 2 * kept
    without = onlearn.AveragedPerceptron(epochs=3, random_state=0, calibration="own").fit(rows, labels)
    assert without.n_seen_ == 3 * ROWS
    assert abs(model.score(rows, labels) - without.score(rows, labels)) < 0.02


def test_a_certificate_is_that_of_the_rows_learned_from():
    two = (Y > 0).astype(int)
    model = onlearn.Perceptron(epochs=3, random_state=0).fit(X, two)
    assert "other" not in str(model.certificate(X, two))
    assert str(model.certificate(X, two)) != str(model.certificate(X[:5000], two[:5000]))


def test_a_saved_model_has_the_same_probabilities_and_goes_on_alike(tmp_path):
    model = onlearn.PassiveAggressive(random_state=0, epochs=2).fit(X, Y)
    model.save(tmp_path / "m.onl")
    again = onlearn.load(tmp_path / "m.onl")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    for one in (model, again):
        one.partial_fit(X[:3000], Y[:3000])
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_damaged_scores_of_rows_kept_back_are_refused():
    training = onlearn.PassiveAggressive(random_state=0, epochs=2).fit(X, Y)._learner.training
    facts, arrays = training.pack()
    assert Training.unpack(facts, arrays).reserved == training.reserved > 0
    with pytest.raises(ValueError, match=r"audit\.gold does not have the shape"):
        Training.unpack({**facts, "reserved": 10**6}, arrays)
    for wrong in (-1, "all", 1.5):
        with pytest.raises(ValueError, match=r"training\.reserved, which must be a whole number"):
            Training.unpack({**facts, "reserved": wrong}, arrays)
    with pytest.raises(ValueError, match=r"audit\.scores does not have the shape"):
        Training.unpack(facts, {**arrays, "audit.scores": arrays["audit.scores"][:-1]})


def test_files_of_earlier_versions_have_a_ring_of_the_usual_size():
    training = onlearn.PassiveAggressive(random_state=0, epochs=2).fit(X[:500], Y[:500])._learner.training
    facts, arrays = training.pack()
    assert "reserved" not in facts
    assert Training.unpack(facts, arrays).reserved == 0


@pytest.mark.parametrize("share", [0.001, 0.3, 0.999])
def test_a_share_is_of_one_row_or_more_and_never_of_all(share):
    for rows in (2, 3, 8, 20, 100):
        for classes in (1, 2, 3):
            codes = np.arange(rows) % classes
            weight = (np.arange(rows) != 0) + 0.0
            assert 1 <= len(reserve.of_rows(codes, None, share)) < rows
            kept = reserve.of_rows(codes, weight, share)
            assert len(kept) < max(1, rows - 1)
            assert len(kept) >= (rows > 2)
            assert 0 not in kept
    assert not len(reserve.of_rows(np.zeros(1, dtype=int), None, share))
    rare = np.array([1, *[0] * 30])
    assert 0 not in reserve.of_rows(rare, None, 0.999)
