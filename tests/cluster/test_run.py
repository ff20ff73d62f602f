"""Runs over shards, done in this process: the same code as on a cluster, and every task gets what has been pickled."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

import onlearn
from cluster_examples import HereConnection, prepared, run_here, state_of, write_svmlight, write_table
from onlearn.cluster.connection import Worker
from onlearn.cluster.run import NEEDED
from onlearn.cluster.worker_memory import WorkerMemory
from onlearn.data import DataError
from onlearn.engine import reserve
from onlearn.errors import ClusterError, PlanError
from onlearn.models.training import train as train_here

LEARNERS = ["AveragedPerceptron", "PassiveAggressive", "LogisticRegression", "AROW", "LogisticRegression(l2=0.001)"]


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return write_svmlight(tmp_path / "rows.svm", 6000)


@pytest.fixture
def few(tmp_path: Path) -> Path:
    return write_svmlight(tmp_path / "few.svm")


# ---------------------------------------------------------------------- what is learned


@pytest.mark.parametrize("learner", LEARNERS)
def test_what_is_learned_from_shards_is_as_good_as_from_all_rows(rows: Path, tmp_path: Path, learner: str) -> None:
    test = write_svmlight(tmp_path / "test.svm", 2000, seed=0)
    found = run_here(rows, learner=learner, shards=4).model
    serial = train_here(rows, learner=learner, passes=10)
    X, y = onlearn.data.load(test)
    assert found.score(X, y) >= serial.score(X, y) - 0.01
    assert len(found.learner.history_["passes"]) == 10


def test_one_shard_is_one_learner(few: Path) -> None:
    """In each round the rows are learned from in an order of its own; a mean of one hypothesis is that hypothesis."""
    found = run_here(few, learner="Perceptron", shards=1, rounds=3)
    learner = onlearn.Perceptron(random_state=0)
    X, y = onlearn.data.load(few)
    for number in range(3):
        order = np.random.default_rng([0, number, 0]).permutation(400)
        learner.partial_fit(X[order], y[order], classes=["-1", "1"])
    assert np.allclose(found.model.learner.coef_, learner.coef_, atol=1e-9)


@pytest.mark.parametrize("learner", [*LEARNERS, "NaiveBayes(kind='gaussian')"])
def test_what_workers_keep_changes_nothing(few: Path, learner: str) -> None:
    """Every task finds an empty memory, as in a process that has just begun: the bits are the same."""
    kept = run_here(few, learner=learner, shards=3)
    forgotten = run_here(few, HereConnection(forgetful=True), learner=learner, shards=3)
    assert state_of(kept.model) == state_of(forgotten.model)


def test_sums_in_a_tree_are_the_same_wherever_they_are_made(rows: Path) -> None:
    a, b = (run_here(rows, HereConnection(forgetful=one), shards=40, rounds=2) for one in (False, True))
    assert len(a.shards) == 40
    assert state_of(a.model) == state_of(b.model)


def test_files_that_are_sorted_by_label_are_dealt_to_the_shards(tmp_path: Path) -> None:
    path = write_svmlight(tmp_path / "sorted.svm", 12_000, in_order=True)
    X, y = onlearn.data.load(path)
    assert run_here(path, learner="LogisticRegression", shards=4).model.score(X, y) > 0.93


@pytest.mark.parametrize("mix", ["rows", "uniform", "mistakes"])
def test_shards_count_by_their_rows_alike_or_by_their_mistakes(few: Path, mix: str) -> None:
    found = run_here(few, learner="Perceptron", shards=3, rounds=4, mix=mix)
    entry = found.model.learner.history_["passes"][-1]
    assert entry["shards"] == 3
    assert entry["mixed_mistakes"] <= entry["mistakes"]


def test_naive_bayes_counts_exactly(tmp_path: Path) -> None:
    table = write_table(tmp_path / "t.csv", 500)
    found = run_here(table, learner="NaiveBayes", shards=5, ignore="size").model
    serial = train_here(table, learner="NaiveBayes", ignore="size")
    frame = onlearn.data.load(table)[0]
    assert found.features.get_feature_names_out().tolist() != []
    assert np.array_equal(found.predict_proba(frame), serial.predict_proba(frame)) or np.allclose(
        found.predict_proba(frame), serial.predict_proba(frame), rtol=1e-12
    )
    assert found.learner.n_seen_ == serial.learner.n_seen_


def test_lbfgs_follows_the_rounds_where_there_is_a_penalty(rows: Path) -> None:
    few_rounds = run_here(rows, learner="LogisticRegression(l2=0.01)", shards=3, rounds=1)
    many = run_here(rows, learner="LogisticRegression(l2=0.01)", shards=3, rounds=6, lbfgs=60)
    assert few_rounds.iterations > 0
    assert np.allclose(few_rounds.model.learner.coef_, many.model.learner.coef_, atol=0.02)
    assert run_here(rows, learner="LogisticRegression(l2=0.01)", shards=3, rounds=1, lbfgs=0).iterations == 0
    assert run_here(rows, learner="LogisticRegression", shards=3, rounds=1).iterations == 0
    with pytest.raises(PlanError, match="not smooth"):
        run_here(rows, learner="AveragedPerceptron", lbfgs=5)


@pytest.mark.parametrize(("count", "shards"), [(600, 3), (5000, 1)])
def test_lbfgs_finds_the_minimum_with_weights_of_rows_and_classes(tmp_path: Path, count: int, shards: int) -> None:
    """That of SciPy, without the rows that are kept back for calibration, of which few rows have none."""
    rng, path, l2 = np.random.default_rng(0), tmp_path / "w.csv", 0.01
    X, weight = rng.normal(size=(count, 3)).round(3).astype(np.float32), rng.choice([0.5, 1.0, 3.0], count)
    y = np.where(X @ [1.0, -2.0, 0.5] + rng.normal(size=count) > 1.0, 1.0, -1.0)
    lines = [f"{a},{b},{c},{h},{'no' if side < 0 else 'yes'}" for (a, b, c), h, side in zip(X, weight, y)]
    path.write_text("a,b,c,w,label\n" + "\n".join(lines))
    options = {"weight": "w", "class_weight": "balanced", "scale": "none", "rounds": 2, "lbfgs": 200}
    found = run_here(path, learner=f"LogisticRegression(l2={l2})", shards=shards, **options).model.learner
    h = weight * np.where(y > 0, 0.5 / weight[y > 0].sum(), 0.5 / weight[y < 0].sum())
    kept = reserve.in_the_end(count)
    assert (len(kept) > 0) == (count == 5000)
    h[kept] = 0.0

    def objective(w: np.ndarray) -> float:
        return float(h @ np.logaddexp(0.0, -y * (X @ w[1:] + w[0])) / h.sum() + 0.5 * l2 * w[1:] @ w[1:])

    best = minimize(objective, np.zeros(4), method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-9}).x
    assert np.allclose(np.append(found.intercept_, found.coef_), best, atol=2e-5)


def test_regression(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 4))
    y = X @ [1.0, -2.0, 0.5, 3.0] + 0.1 * rng.normal(size=2000)
    path = tmp_path / "r.csv"
    lines = [",".join(f"{value:.5f}" for value in (*row, target)) for row, target in zip(X, y)]
    path.write_text("a,b,c,d,y\n" + "\n".join(lines))
    found = run_here(path, task="regress", target="y", shards=3).model
    assert found.score(onlearn.data.load(path, target="y", task="regress")[0], y) > 0.98


def test_probabilities_are_calibrated_by_rows_kept_back_until_the_last_round(rows: Path, few: Path) -> None:
    many, small = run_here(rows, shards=3, rounds=4).model, run_here(few, shards=3, rounds=4).model
    passes = many.learner.history_["passes"]
    assert [entry.get("kept_back", 0) > 0 for entry in passes] == [True, True, True, False]
    assert passes[-1]["seen"] == 6000
    assert passes[0]["seen"] + passes[0]["kept_back"] == 6000
    for model, path in ((many, rows), (small, few)):
        X, y = onlearn.data.load(path)
        chances = model.predict_proba(X)[np.arange(len(y)), [model.labels.index(one) for one in y]]
        assert -np.log(chances).mean() < 0.45


def test_the_certificate_says_which_bound_holds_for_the_run(few: Path) -> None:
    found = run_here(few, learner="Perceptron", shards=3, rounds=5)
    X, y = onlearn.data.load(few)
    classes = np.array([found.model.labels.index(one) for one in y])
    certificate = found.model.learner.certificate(X, classes)
    assert certificate.holds()
    assert {bound.name for bound in certificate.bounds if bound.applies} <= {
        "perceptron_mixed",
        "perceptron_mixed_noisy",
    }
    assert any("3 shards were mixed" in bound.why for bound in certificate.bounds)


# ---------------------------------------------------------------------- features, labels, rows


def test_names_and_their_numbers_are_merged(tmp_path: Path) -> None:
    table = write_table(tmp_path / "t.csv")
    found, serial = run_here(table, shards=4).model, train_here(table)
    names = found.features.get_feature_names_out().tolist()
    assert sorted(names) == sorted(serial.features.get_feature_names_out().tolist())
    assert found.features.n_seen_ == serial.features.n_seen_ == 300
    order = [names.index(name) for name in serial.features.get_feature_names_out()]
    mine, theirs = (one.features.extraction.documents for one in (found, serial))
    assert mine[order].tolist() == theirs[: len(order)].tolist()


def test_rare_features_are_left_out_as_on_one_machine(tmp_path: Path) -> None:
    table = write_table(tmp_path / "t.csv")
    for more in ({}, {"per_class": True}):
        found, serial = (
            run_here(table, shards=4, min_count=120, **more).model,
            train_here(table, min_count=120, **more),
        )
        assert sorted(found.features.get_feature_names_out()) == sorted(serial.features.get_feature_names_out())


def test_names_beyond_the_limit_are_hashed(tmp_path: Path) -> None:
    table = write_table(tmp_path / "t.csv")
    found = run_here(table, shards=4, max_names=5, bits=4).model
    assert found.features.n_features_out_ == 5 + 16
    assert found.learner.n_features_in_ == 21


def test_labels_of_all_shards_are_listed_in_order(tmp_path: Path) -> None:
    path = tmp_path / "l.svm"
    path.write_text("".join(f"{n // 100} {n % 7 + 1}:1 {n // 100 + 10}:1\n" for n in range(1000)))
    found = run_here(path, shards=3, rounds=3).model
    assert found.labels == [str(n) for n in range(10)]
    assert found.score(*onlearn.data.load(path)) > 0.95


def test_bad_rows_are_told_by_the_lines_of_their_file(tmp_path: Path) -> None:
    path = write_svmlight(tmp_path / "rows.svm", 5000)
    lines = path.read_text().splitlines()
    for n in (7, 2500, 4999):
        lines[n] = "1 x:y"
    path.write_text("\n".join(lines))
    kept = tmp_path / "bad.txt"
    found = prepared(path, shards=3, rounds=1, bad_rows=kept)
    found.go()
    assert found.reading.bad.count == 3
    assert [bad.line for _, bad in found.reading.bad.examples] == [8, 2501, 5000]
    assert kept.read_text().splitlines() == ["1 x:y"] * 3
    with pytest.raises(DataError, match="line 8"):
        run_here(path, shards=3, strict=True)
    with pytest.raises(DataError, match="cannot be read"):
        run_here(path, shards=3, max_bad=0.0001)


def test_rows_held_out_are_not_learned_from(rows: Path) -> None:
    run = run_here(rows, shards=3, rounds=2, holdout="20%", learner="AveragedPerceptron")
    held = sum(map(len, run.reading.held_out_batches()))
    assert 1000 < held < 1400
    assert run.model.learner.history_["passes"][-1]["seen"] + held == 6000


def test_weights_and_class_weights(tmp_path: Path) -> None:
    path = tmp_path / "w.csv"
    path.write_text("x,w,label\n" + "".join(f"{n % 10},{1 + n % 3},{'ab'[n % 10 > 6]}\n" for n in range(600)))
    found = run_here(path, weight="w", class_weight="balanced", shards=3).model
    weights = [sum(1 + n % 3 for n in range(600) if (n % 10 > 6) == which) for which in (False, True)]
    assert found.learner.task.counts[1:].tolist() == weights


def test_what_cannot_be_had_is_refused_in_a_sentence(few: Path) -> None:
    for learner, why in (
        ("VotedPerceptron", "voted"),
        ("Winnow", "winnow"),
        ("FTRL", "ftrl"),
        ("SVC", "one machine only"),
        ("Mixture", "one machine only"),
        ("AdaGrad(l1=0.1)", "l1"),
    ):
        with pytest.raises(PlanError, match=why):
            run_here(few, learner=learner)
    with pytest.raises(PlanError, match="survivor"):
        run_here(few, stabilizer="survivor")
    for options, why in (
        ({"checkpoint_every": 5, "output": "m.onl"}, "after each round"),
        ({"mix": "median"}, "median"),
        ({"rounds": 2, "passes": 3}, "leave one out"),
        ({"calibration": "holdout(0.1)"}, "holdout"),
        ({"task": "rank"}, "rank"),
    ):
        with pytest.raises(PlanError, match=why):
            run_here(few, **options)
    with pytest.raises(PlanError, match="standard input"):
        run_here("-")


# ---------------------------------------------------------------------- going on, and failures


@pytest.mark.parametrize("learner", LEARNERS)
def test_an_interrupted_run_goes_on_to_the_same_bits(rows: Path, tmp_path: Path, learner: str) -> None:
    path = tmp_path / "m.onl"
    whole = run_here(rows, learner=learner, shards=3, rounds=4)
    run = prepared(rows, learner=learner, shards=3, rounds=4, output=path)
    run.on_round = lambda one: run.interrupt() if getattr(one, "number", 0) == 2 else None
    with pytest.raises(KeyboardInterrupt):
        run.go(checkpoint=lambda: run.model.save(path))
    stopped = onlearn.load(path)
    assert stopped.trained["unfinished"] > 0
    assert stopped.trained["ended"] == 2
    assert 0.5 < stopped.score(*onlearn.data.load(rows)) <= 1.0
    again = run_here(rows, resume=path)
    assert state_of(again.model) == state_of(whole.model)
    assert again.model.trained["unfinished"] is None
    with pytest.raises(PlanError, match="cluster="):
        onlearn.train(rows, resume=path)


def test_a_finished_model_learns_more_on_a_cluster(tmp_path: Path) -> None:
    monday, tuesday = write_table(tmp_path / "monday.csv"), write_table(tmp_path / "tuesday.csv", seed=1)
    text = tuesday.read_text().replace("blue", "violet")
    tuesday.write_text(text)
    path = tmp_path / "m.onl"
    train_here(monday, path)
    names = onlearn.load(path).features.get_feature_names_out().tolist()
    more = run_here(tuesday, resume=path, shards=3).model
    assert more.features.get_feature_names_out().tolist()[: len(names)] == names
    assert any("violet" in name for name in more.features.get_feature_names_out())
    assert more.learner.n_seen_ > onlearn.load(path).learner.n_seen_
    assert more.score(*onlearn.data.load(tuesday)) > 0.9


def test_a_file_that_changes_between_rounds_is_noticed(few: Path) -> None:
    run = prepared(few, shards=3, rounds=4)

    def change(one: object) -> None:
        if one.number == 2:
            few.write_text(few.read_text().replace("1:", "2:"))

    run.on_round = change
    with pytest.raises(DataError, match=r"few\.svm changed since"):
        run.go()
    assert run.model.trained["ended"] == 2


def test_a_run_that_fails_before_learning_says_why(few: Path, tmp_path: Path) -> None:
    path, other = tmp_path / "m.onl", tmp_path / "other.svm"
    train_here(few, path)
    other.write_text("7 1:1\n8 2:1\n" * 50)
    with pytest.raises(DataError, match=r"label '[78]' is not one of the labels"):
        run_here(other, resume=path)


def test_a_file_that_is_only_touched_is_the_same(few: Path) -> None:
    import os

    run = prepared(few, shards=3, rounds=3)
    run.on_round = lambda one: os.utime(few)
    run.go()
    assert state_of(run.model) == state_of(run_here(few, shards=3, rounds=3).model)


def test_workers_too_small_for_the_model_are_told_before_learning(few: Path) -> None:
    run = prepared(few, HereConnection(memory=10_000), shards=3)
    with pytest.raises(ClusterError, match=r"the worker here may use 10.0 kB of memory"):
        run.go()
    assert run.model.learner.n_seen_ == 0


def test_threads_of_a_worker_share_its_memory(few: Path) -> None:
    model = prepared(few, shards=3, rounds=1)
    model.go()
    needed = NEEDED * sum(array.nbytes for array in model.model.learner._pack()[1].values())
    for threads in (1, 2):
        connection = HereConnection(memory=needed)
        connection.workers = lambda fresh=False, n=threads: [Worker("here", n, needed)]  # type: ignore[method-assign]
        connection.wait_for_workers = connection.workers  # type: ignore[method-assign]
        run = prepared(few, connection, shards=3, rounds=1)
        if threads == 1:
            run.go()
        else:
            with pytest.raises(ClusterError, match=r"in 2 threads takes about .* or one thread"):
                run.go()


def test_only_changed_weights_travel(tmp_path: Path) -> None:
    """Ten times as many columns that no row has cost next to nothing; ten times as many that change cost as much."""
    sizes = {}
    for touched, width in ((100, 1000), (100, 100_000), (1000, 100_000)):
        path = tmp_path / f"{touched}-{width}.svm"
        rng = np.random.default_rng(0)
        lines = [f"{'+-'[rng.integers(2)]}1 {rng.integers(touched) + 1}:1" for _ in range(20_000)]
        path.write_text("\n".join([f"+1 1:1 {width}:0.5", *lines]))
        connection = HereConnection()
        run = run_here(path, connection, learner="Perceptron", shards=4, rounds=3)
        sizes[touched, width] = run.told[1].nbytes
    assert sizes[100, 100_000] < 1.2 * sizes[100, 1000]
    assert 3 < sizes[1000, 100_000] / sizes[100, 100_000] < 15


def test_weights_that_do_not_change_do_not_travel(tmp_path: Path) -> None:
    """Zeros would take few bytes anyway; so here all weights were learned before, and rows then have a few of them."""
    rng, path, model = np.random.default_rng(0), tmp_path / "all.svm", tmp_path / "m.onl"
    lines = [f"{'+-'[n % 2]}1 {n + 1}:{rng.normal():.9g}" for n in range(20_000)]
    path.write_text("\n".join(lines))
    train_here(path, model, learner="AdaGrad", passes=1)
    path.write_text("\n".join(lines[:200] * 2))
    run = run_here(path, shards=2, rounds=3, resume=model)
    assert run.told[0].nbytes > 8 * 20_000  # the whole state, once
    assert max(run.told[1].nbytes, run.told[2].nbytes) < 0.1 * run.told[0].nbytes


def test_the_report_tells_of_the_rounds(few: Path, tmp_path: Path) -> None:
    from onlearn.models.run_report import run_report

    run = run_here(few, shards=3, rounds=2)
    report = run_report(run, None, 1.0, stopped=False)
    assert report["cluster"]["shards"] == 3
    assert [one["number"] for one in report["cluster"]["rounds"]] == [1, 2]
    assert str(run.told[0]).startswith("round 1 of 2: loss 0.")


def test_worker_memory_keeps_what_came_first() -> None:
    memory = WorkerMemory()
    for n in range(5):
        memory.keep(("run", n), n, 10, room=30)
    assert [memory.find(("run", n)) for n in range(5)] == [0, 1, 2, None, None]
    memory.keep(("run", "state"), "x", 20, room=30, first=True)
    assert [memory.find(("run", n)) for n in range(3)] == [0, None, None]
    assert memory.nbytes == 30
    memory.keep(("another", 0), 0, 30, room=30)
    assert memory.find(("run", 0)) is None
    assert memory.nbytes == 30
    memory.forget("another")
    assert memory.nbytes == 0
    memory.keep(("run", "huge"), 0, 100, room=30)
    assert memory.find(("run", "huge")) is None
