"""The trial before training: rates and passes by rows held out."""

from __future__ import annotations

import numpy as np
import pytest

import onlearn
from onlearn.engine.csr import CSR
from onlearn.engine.learner import Learner
from onlearn.models import trial
from onlearn.models.passes import Passes
from onlearn.models.plan import Plan
from onlearn.models.training import run_of


def rows_of(rng, rows, columns, noise):
    X = rng.normal(size=(rows, columns))
    y = (X[:, 0] + noise * rng.normal(size=rows) > 0).astype(np.int64)
    made = CSR(
        X.ravel().astype(np.float32),
        np.tile(np.arange(columns, dtype=np.int32), rows),
        np.arange(0, rows * columns + 1, columns, dtype=np.int32),
        X.shape,
    )
    return made, y, None


def maker(columns):
    def make(rate):
        learner = Learner("OnlineClassifier", rule="logistic", geometry=f"adagrad({rate})", stabilizer="averaged")
        learner._start(columns, np.ones(2), np.float32)
        return learner

    return make


def test_every_row_is_held_out_once_in_small_tables():
    order = np.random.default_rng(0).permutation(203)
    parts = trial.folds(order)
    assert len(parts) == 5
    assert np.array_equal(np.sort(np.concatenate([held for _, held in parts])), np.arange(203))
    for kept, held in parts:
        assert np.array_equal(np.sort(np.concatenate([kept, held])), np.arange(203))


def test_one_tenth_of_large_tables_is_held_out():
    [(kept, held)] = trial.folds(np.arange(20_000))
    assert len(held) == 2_000 and len(kept) == 18_000


def test_few_passes_at_a_small_rate_over_noise_and_many_over_what_can_be_learned():
    noisy = trial.choose(maker(60), rows_of(np.random.default_rng(1), 300, 60, 4.0), 0.1, 20, seed=0)
    clear = trial.choose(maker(5), rows_of(np.random.default_rng(2), 1000, 5, 0.0), 0.1, 20, seed=0)
    assert noisy.passes <= 5 and noisy.rate <= 0.1
    assert clear.passes >= 10 and clear.rate > 0.1


def test_without_other_rates_only_the_passes_are_chosen():
    found = trial.choose(maker(5), rows_of(np.random.default_rng(2), 1000, 5, 0.0), 0.2, 20, 0, rates=())
    assert found.rate == 0.2 and 2 <= found.passes <= 20


def test_too_few_rows_tell_nothing():
    assert trial.choose(maker(5), rows_of(np.random.default_rng(2), 60, 5, 0.0), 0.1, 20, seed=0) is None


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(500, 12)).round(3)
    y = np.where(X[:, 0] - X[:, 1] + 2 * rng.normal(size=500) > 0, "yes", "no")
    lines = [",".join([*map(str, x), label]) for x, label in zip(X, y)]
    path = tmp_path / "t.csv"
    path.write_text(",".join([*(f"x{n}" for n in range(12)), "label"]) + "\n" + "\n".join(lines) + "\n")
    return path


def test_what_is_chosen_is_told_and_the_same_again(table, tmp_path):
    first = onlearn.train(table, tmp_path / "a.onl")
    again = onlearn.train(table, tmp_path / "b.onl")
    note = next(note for note in first.report_["notes"] if "held out for a trial" in note)
    passes = first.report_["passes"]
    assert f"{passes} passes" in note
    assert np.array_equal(first.weights()[0], again.weights()[0])
    said = onlearn.train(table, passes=passes, geometry=first.learner.choices["geometry"])
    assert np.array_equal(first.weights()[0], said.weights()[0])  # the trial leaves no trace but its choice


def test_a_run_that_was_stopped_keeps_the_choice(table, tmp_path, monkeypatch):
    whole = run_of(Plan([str(table)])).go()
    run, make, made = run_of(Plan([str(table)])), Passes.make, []

    def stopped(self, rows, turn):
        if len(made) == 2:
            raise KeyboardInterrupt
        made.append(turn)
        make(self, rows, turn)

    monkeypatch.setattr(Passes, "make", stopped)
    with pytest.raises(KeyboardInterrupt):
        run.go()
    monkeypatch.undo()
    run.model.save(tmp_path / "part.onl")
    tries = []
    monkeypatch.setattr("onlearn.models.trial.choose", lambda *given: tries.append(given))
    resumed = run_of(Plan([str(table)]), onlearn.load(tmp_path / "part.onl")).go()
    assert not tries
    assert whole.trained["passes"] == resumed.trained["passes"] > 2
    assert np.array_equal(whole.weights()[0], resumed.weights()[0])


def test_given_passes_are_made_without_a_trial(table):
    model = onlearn.train(table, passes=4)
    assert model.report_["passes"] == 4
    assert not any("trial" in note for note in model.report_["notes"])
    assert model.learner.choices["geometry"].rate == 0.1
