"""Races on the workers of a cluster: the oracle is the race in threads, with which all results agree to the bit."""

from __future__ import annotations

import copy
import json
import os
import pickle
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("distributed")

import joblib
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

import onlearn
from cluster_contestants import ROWS, Failing, Killing, Summing, Waiting
from onlearn.cli import run
from onlearn.cluster import races
from onlearn.cluster.connection import Connection
from onlearn.cluster.options import ClusterOptions
from onlearn.cluster.races import ClusterField, Part, Progress, advance
from onlearn.cluster.tuned_run import ClusterTunedRun
from onlearn.engine import registry
from onlearn.errors import ClusterError
from onlearn.models import file_race, training
from onlearn.models.train_options import TrainOptions
from onlearn.models.tuned_run import TunedRun
from onlearn.tune import Tuner
from onlearn.tune.field import ArrayContestant, Field, Threads
from onlearn.tune.race import Race, Stopwatch

VALUES = np.random.default_rng(0).normal(size=ROWS)
HALVES = [(np.arange(ROWS // 2), np.arange(ROWS // 2, ROWS)), (np.arange(ROWS // 2, ROWS), np.arange(ROWS // 2))]
SPACE = ["learner=AROW,Perceptron,FTRL", "interact=default,pairs"]
SPACED = [word for one in SPACE for word in ("--space", one)]
LEARNERS = (
    *("Perceptron", "VotedPerceptron", "PassiveAggressive", "Winnow", "AROW", "FTRL", "AdaGrad", "LogisticRegression"),
    *("LinearSVM", "NaiveBayes", "KernelClassifier", "Mixture", "MLPClassifier"),
)


def made(rng_seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(rng_seed)
    X = np.abs(rng.normal(size=(1200, 6)))
    return X, (X @ [3.0, -2.0, 0, 0, 1.0, -1.0] + 0.3 * rng.normal(size=1200) > 0.5).astype(int)


def raced(field: Field, make, count: int, **options):
    """A race of two parts: its standings with all figures, and who wins."""
    race = Race([make(n) for n in range(count)], keep=2, field=field, **options)
    race.run(np.random.default_rng(1).permutation(ROWS))
    race.finals(HALVES, lambda number, fold: make(number), lambda n: (1, 2, 3), lambda n: 2, seed=5, keep=1)
    return [
        (one.number, one.rungs, one.why, one.dropped_at, one.passes, one.rank) for one in race.finish()
    ], race.winner


def levels(number: int) -> Summing:
    return Summing([1.0, 0.8, 0.9, 1.2, 0.7, 1.1][number], VALUES)


class Pickling:
    """A field in which a contestant is pickled before each turn, and each turn is taken twice."""

    def enter(self, contestant):
        beginning = copy.copy(contestant)
        beginning.rows = None
        return [beginning, contestant.rows]

    def take_turns(self, turns, over):
        found = []
        for place, turn in turns:
            parts = [None if one is None else Part(*one[1:]) for one in turn]
            orders = [None if one is None else one.order for one in turn]
            before = pickle.dumps(place[0])
            first = advance(place[1], place[0], orders, parts)
            again = advance(place[1], pickle.loads(before), orders, parts)
            assert pickle.dumps(first.outcome) == pickle.dumps(again.outcome)
            assert isinstance(first, Progress)
            found.append(first.outcome)
            place[0] = again
        return found


# ---------------------------------------------------------------------- the same result


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_that_was_pickled_between_turns_learns_the_same(name):
    X, y = made()

    def result(field):
        race = Race([ArrayContestant(learner(name), X, y, classes=np.array([0, 1]))], field=field)
        race.run(np.random.default_rng(0).permutation(1200))
        race.finals([(np.arange(900), np.arange(900, 1200))], lambda number, fold: ArrayContestant(
            learner(name), X, y, classes=np.array([0, 1])), lambda n: (1, 2), lambda n: 1)  # fmt: skip
        assert race.standings[0].why is None
        return race.standings[0].rungs

    assert result(Pickling()) == result(Threads(1))


def learner(name: str):
    given = {"kernel": "gaussian(1)"} if name == "KernelClassifier" else {}
    seed = {"random_state": 0} if "random_state" in registry.composition_of(name).parameters else {}
    return registry.make_learner(name, **given, **seed)


@pytest.mark.parametrize("workers", ["one_worker", "cluster"])
def test_the_race_is_that_of_threads(workers, request):
    field = ClusterField(Connection(request.getfixturevalue(workers)))
    assert raced(field, levels, 6) == raced(Threads(2), levels, 6)


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Path:
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=1500), rng.normal(size=1500)
    labels = np.where((first * second > 0) ^ (rng.random(1500) < 0.05), "yes", "no")
    path = tmp_path_factory.mktemp("races") / "signs.csv"
    rows = [f"{x:.3f},{z:.3f},{label}" for x, z, label in zip(first, second, labels, strict=True)]
    path.write_text("\n".join(["size,weight,label", *rows]) + "\n")
    return path


def decided(options: TrainOptions, **given):
    made = TunedRun(options, training.raced_files(options), **given).decide()
    assert made["why_not"] is None
    return {**made, "seconds": 0}


@pytest.mark.parametrize("workers", ["one_worker", "cluster"])
@pytest.mark.parametrize("large", [False, True])
def test_the_table_of_files_is_that_of_one_machine(large, workers, table, request, monkeypatch):
    if large:  # so that there is a race over a sample before the finals
        monkeypatch.setattr(file_race, "SMALL", 1)
        monkeypatch.setattr(file_race, "MEDIUM", 1)
    options = TrainOptions(sources=[table], learner="auto", space=SPACE, passes=2, seed=2)
    field = ClusterField(Connection(request.getfixturevalue(workers)))
    assert decided(options, field=field) == decided(options)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a9a/a9a.svm", "adult/adult.data"])
def test_the_table_of_real_data_is_that_of_one_machine(name, cluster, data):
    options = TrainOptions(sources=[data(name)], learner="auto")
    assert decided(options, field=ClusterField(Connection(cluster))) == decided(options)


def test_the_winner_is_trained_by_the_run_of_its_own(cluster, table):
    """With an ordinary run in place of one on the cluster, the model is that of one machine."""
    connection, seen = Connection(cluster), []

    def prepare(options, given):
        assert given is connection
        seen.append(options)
        return training.prepare(options.without_cluster())

    options = ClusterOptions(sources=[table], learner="auto", cluster=cluster, space=SPACE, rounds=2)
    tuned = ClusterTunedRun(options, connection, prepare)
    assert [one.learner for one in seen] == [None]  # what the default refuses is refused before the race
    model = tuned.go()
    plain = onlearn.train(table, learner="auto", space=SPACE, passes=2)
    assert (model.weights()[0] == plain.weights()[0]).all()
    assert f"--cluster {connection.address}" in tuned.tuning["command"]


# ---------------------------------------------------------------------- what goes wrong


def test_a_contestant_that_raises_is_dropped_with_the_reason(cluster):
    def make(number):
        return Failing(0.1, VALUES, 2) if number == 1 else levels(number)

    found = raced(ClusterField(Connection(cluster)), make, 4)
    assert found == raced(Threads(2), make, 4)
    assert [why for number, _, why, *_ in found[0] if number == 1] == ["FloatingPointError: the weights are too large"]


def test_a_race_whose_time_is_over_ends_in_the_middle_of_a_turn(cluster, tmp_path):
    clock = Stopwatch(0.5)
    waiting = Waiting(0.5, VALUES, tmp_path / "over")
    race = Race([levels(0), waiting], over=clock, field=ClusterField(Connection(cluster)))
    race.run(np.arange(ROWS))
    waiting.path.touch()
    assert race.ended_early
    assert (race.winner, race.examples) == (0, 0)


def test_the_command_on_a_cluster_that_is_not_there(table, capfd):
    for name in ("tcp://127.0.0.1:1", "nowhere"):
        assert run(["tune", str(table), "--cluster", name, "--patience", "0.5"]) == 2
        out, err = capfd.readouterr()
        assert out == ""
        assert err.count("\n") == 1
        assert name in err


def test_a_cluster_without_workers_ends_the_race(table, capfd):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=0, processes=False, dashboard_address="127.0.0.1:0") as empty:
        assert run(["tune", str(table), "--cluster", empty.scheduler_address, "--patience", "0.3", "--quiet"]) == 1
        err = capfd.readouterr().err
        assert "had no worker for 0.3 s" in err
        assert err.count("\n") == 1
        with pytest.raises(ClusterError, match="no worker"), races.on(empty.scheduler_address, patience=0.3):
            Tuner(random_state=0).fit(*made())


# ---------------------------------------------------------------------- the command


def test_the_command_prints_the_table_of_one_machine(cluster, table, capfd):
    address = cluster.scheduler.address
    words = ["tune", str(table), "--json", "--passes", "2", *SPACED]
    assert run(words) == 0
    plain = json.loads(capfd.readouterr().out)
    assert run([*words, "--cluster", address, "--patience", "30"]) == 0
    assert {**json.loads(capfd.readouterr().out), "seconds": 0} == {**plain, "seconds": 0}


@pytest.fixture
def train(cluster, table, capfd):
    """Train by a race on the cluster; the exit code and the report."""
    pytest.importorskip("onlearn.cluster.training", exc_type=ImportError)

    def call(output, *words):
        words = ["--learner", "auto", *SPACED, "--rounds", "2", "--shards", "3", "--json", *words]
        code = run(["train", str(table), "-o", str(output), "--cluster", cluster.scheduler.address, *words])
        return code, json.loads(capfd.readouterr().out)

    return call


def test_the_model_of_a_race_on_a_cluster_is_that_of_its_command(train, tmp_path):
    auto, plain = tmp_path / "auto.onl", tmp_path / "plain.onl"
    code, report = train(auto)
    words = shlex.split(report["tuning"]["command"])
    assert code == 0
    assert {"--cluster", "--shards"} <= set(words)
    assert "auto" not in words
    words[words.index("-o") + 1] = str(plain)
    assert run([*words[1:], "--quiet"]) == 0
    assert auto.read_bytes() == plain.read_bytes()


def test_after_ctrl_c_in_the_race_the_best_so_far_learns_on_this_machine(train, table, tmp_path, monkeypatch):
    real, path = ClusterField.take_turns, tmp_path / "m.onl"

    def pressed(self, *given):
        found = real(self, *given)
        signal.raise_signal(signal.SIGINT)
        return found

    monkeypatch.setattr(ClusterField, "take_turns", pressed)
    code, report = train(path)
    assert code == 130
    assert report["tuning"]["ended_early"]
    assert report["examples"] == 1500
    assert run(["train", str(table), "--resume", str(path), "-o", str(path), "--quiet"]) == 0


def test_what_the_command_refuses(table, capfd):
    for words, message in (
        (["--patience", "3"], "--patience is about --cluster"),
        (["--cluster", "local:2", "--learner", "SVC"], "--cluster is about a race"),
    ):
        assert run(["tune", str(table), *words]) == 2
        assert message in capfd.readouterr().err


def test_ctrl_c_ends_the_race_of_the_command(cluster, table, capfd, monkeypatch):
    """In the middle of the third turn; the table is that of the turns before."""
    real, turns = ClusterField.take_turns, []

    def pressed(self, *given):
        turns.append(1)
        if len(turns) == 3:
            signal.raise_signal(signal.SIGINT)
        return real(self, *given)

    monkeypatch.setattr(ClusterField, "take_turns", pressed)
    assert run(["tune", str(table), "--cluster", cluster.scheduler.address]) == 130
    out, err = capfd.readouterr()
    assert "ended early" in out
    assert "stopped by Ctrl-C during the race; the best so far is shown" in err


PRESSED = """
import os, signal, sys
from onlearn.cluster.races import ClusterField
real, turns = ClusterField.take_turns, []
def pressed(self, *given):
    turns.append(1)
    if len(turns) == 3:
        os.killpg(os.getpgid(0), signal.SIGINT)
    return real(self, *given)
ClusterField.take_turns = pressed
from onlearn.cli import main
main()
"""


@pytest.mark.slow
def test_ctrl_c_on_a_terminal_ends_the_command_and_its_workers(table):
    environment = {**os.environ, "PYTHONPATH": str(Path(onlearn.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", PRESSED, "tune", str(table), "--cluster", "local:2"],
        capture_output=True, text=True, timeout=120, start_new_session=True, env=environment,
    )  # fmt: skip
    assert done.returncode == 130, done.stderr
    assert "ended early" in done.stdout
    first, last = done.stderr.splitlines()
    assert first.startswith("onlearn: cluster tcp://127.0.0.1:")
    assert "2 workers" in first
    assert last == "onlearn: stopped by Ctrl-C during the race; the best so far is shown"


# ---------------------------------------------------------------------- in Python


def test_the_tuner_races_on_a_cluster_within_a_context(cluster):
    X, y = made()
    tuner = Tuner(n_configurations=4, max_passes=2, random_state=0)
    plain = clone(tuner).fit(X, y)
    with races.on(cluster):
        found = clone(tuner).fit(X, y)
    assert {**found.results_, "seconds": 0} == {**plain.results_, "seconds": 0}
    assert found.best_params_ == plain.best_params_
    assert (found.predict_proba(X) == plain.predict_proba(X)).all()


def test_training_by_a_race_uses_the_cluster_of_the_context(cluster, table, monkeypatch):
    turns = []
    real = ClusterField.take_turns
    monkeypatch.setattr(ClusterField, "take_turns", lambda self, *given: turns.append(1) or real(self, *given))
    options = {"learner": "auto", "passes": 2, "space": SPACE}
    plain = onlearn.train(table, **options)
    assert not turns
    with races.on(cluster):
        found = onlearn.train(table, **options)
    assert turns
    assert (found.weights()[0] == plain.weights()[0]).all()


def test_searches_of_scikit_learn_on_dask_give_the_same(cluster):
    X, y = made()
    search = GridSearchCV(onlearn.AROW(random_state=0), {"r": [0.1, 1.0, 10.0]}, cv=3)
    plain, scores = clone(search).fit(X, y), cross_val_score(onlearn.LogisticRegression(random_state=0), X, y, cv=4)
    with joblib.parallel_config(backend="dask", client=cluster):
        found = clone(search).fit(X, y)
        again = cross_val_score(onlearn.LogisticRegression(random_state=0), X, y, cv=4)
    assert found.best_params_ == plain.best_params_
    assert (found.cv_results_["mean_test_score"] == plain.cv_results_["mean_test_score"]).all()
    assert (found.predict(X) == plain.predict(X)).all()
    assert (again == scores).all()


# ---------------------------------------------------------------------- workers that are killed
# These tests are the last ones: it takes seconds until a new worker has imported everything.


def test_a_worker_that_is_killed_in_the_middle_changes_nothing(cluster, tmp_path):
    def make(number):
        killing = Killing(1.0, VALUES, tmp_path / "killed", 1, after=2)
        return killing if number == 0 and field is not None else levels(number)

    field = ClusterField(Connection(cluster))
    found = raced(field, make, 4)
    assert (tmp_path / "killed").read_bytes() == b"x"
    field = None
    assert found == raced(Threads(2), make, 4)


def test_a_worker_that_is_killed_between_rungs_changes_nothing(cluster):
    killed = []

    def kill(race):
        if not killed:
            killed.append(min(cluster.run(os.getpid).values()))
            os.kill(killed[0], signal.SIGKILL)

    assert raced(ClusterField(Connection(cluster)), levels, 6, on_rung=kill) == raced(Threads(2), levels, 6)


@pytest.mark.slow
def test_all_workers_that_are_killed_change_nothing(cluster):
    def kill(race):
        if len(killed) < 3:
            killed.append(race.examples)
            for one in cluster.run(os.getpid).values():
                os.kill(one, signal.SIGKILL)

    killed: list[int] = []
    assert raced(ClusterField(Connection(cluster)), levels, 6, on_rung=kill) == raced(Threads(2), levels, 6)
    assert len(killed) == 3


@pytest.mark.slow
def test_a_contestant_whose_workers_are_killed_each_time_is_dropped(cluster, tmp_path):
    def make(number):
        return Killing(1.0, VALUES, tmp_path / "killed", 1000) if number == 2 else levels(number)

    contestants = [make(n) for n in range(4)]
    race = Race(contestants, keep=2, field=ClusterField(Connection(cluster)))
    race.run(np.random.default_rng(1).permutation(ROWS))
    assert race.standings[2].why == "its worker processes ended again and again, as with too little memory"
    plain = Race([*contestants[:2], "no", contestants[3]], keep=2)
    plain.run(np.random.default_rng(1).permutation(ROWS))
    assert [one.rungs for one in race.standings] == [one.rungs for one in plain.standings]
