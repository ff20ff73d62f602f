"""Runs on worker processes: the same bits with any number of workers, and with workers that are killed."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onlearn
from cluster_examples import run_here, state_of, write_svmlight, write_table
from onlearn.cluster import connection
from onlearn.cluster.connection import Connection, Task, refuse_other, unable
from onlearn.cluster.options import ClusterOptions
from onlearn.cluster.scheduler import connect
from onlearn.cluster.training import prepare
from onlearn.cluster.versions import versions_here
from onlearn.errors import ClusterError
from onlearn.models.evaluation import evaluate

distributed = pytest.importorskip("distributed")

ENOUGH = 120  # seconds for a command


def run_on(client: Any, sources: Any, on_round: Callable[[Any], None] = lambda one: None, **options: Any) -> Any:
    connected = client if isinstance(client, Connection) else Connection(client)
    run = prepare(ClusterOptions(sources=sources, cluster="given", **options), connected)
    run.on_round = on_round
    run.go()
    return run


def command(*arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "onlearn", *arguments], capture_output=True, text=True, timeout=ENOUGH, **more
    )


def pids(client: Any) -> list[int]:
    return list(client.run(os.getpid).values())


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return write_svmlight(tmp_path / "rows.svm", 3000)


# ---------------------------------------------------------------------- the same bits


@pytest.mark.parametrize("learner", ["AveragedPerceptron", "LogisticRegression(l2=0.001)", "NaiveBayes"])
def test_two_workers_come_to_the_bits_of_one_process(cluster: Any, tmp_path: Path, learner: str) -> None:
    table = write_table(tmp_path / "t.csv")
    found = run_on(cluster, table, learner=learner, shards=5, rounds=3)
    assert state_of(found.model) == state_of(run_here(table, learner=learner, shards=5, rounds=3).model)
    assert found.told[0].workers == 2


def test_workers_may_run_in_other_folders(cluster: Any, rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"learner": "Perceptron", "rounds": 2, "holdout": 0.2}
    whole = run_on(cluster, rows, **options)
    monkeypatch.chdir(rows.parent)
    assert state_of(run_on(cluster, rows.name, **options).model) == state_of(whole.model)


def test_a_tree_of_sums_comes_to_the_same_bits(cluster: Any, rows: Path) -> None:
    options = {"learner": "AROW", "shards": 20, "rounds": 2}
    assert state_of(run_on(cluster, rows, **options).model) == state_of(run_here(rows, **options).model)


@pytest.mark.parametrize("victims", [1, 2])
def test_killed_workers_change_nothing(cluster: Any, rows: Path, victims: int) -> None:
    """With both workers goes all that they share: it is shared anew, and the round begins again."""
    options = {"learner": "AveragedPerceptron", "shards": 6, "rounds": 6}

    def kill(one: Any) -> None:
        if one.number == 3:
            for pid in pids(cluster)[:victims]:
                os.kill(pid, signal.SIGKILL)

    found = run_on(cluster, rows, kill, **options)
    assert state_of(found.model) == state_of(run_here(rows, **options).model)


@pytest.mark.slow
def test_one_two_and_four_workers_with_kills_at_random_places(tmp_path: Path) -> None:
    """20 kills in all, at random times while shards are surveyed, learned from, mixed, and gathered."""
    path = write_svmlight(tmp_path / "rows.svm", 60_000)
    options = {"learner": "LogisticRegression(l2=0.0001)", "shards": 8, "rounds": 8, "lbfgs": 10}
    expected = state_of(run_here(path, **options).model)
    rng, kills, wanted = random.Random(0), 0, {1: 7, 2: 14, 4: 20}
    for workers in (1, 2, 4):
        with connect(f"local:{workers}") as connected:
            client = connected.client
            assert state_of(run_on(connected, path, **options).model) == expected
            for _ in range(20):  # a run may be over before its worker is killed
                if kills == wanted[workers]:
                    break
                over = threading.Event()

                def kill(over: threading.Event = over, client: Any = client) -> None:
                    nonlocal kills
                    time.sleep(rng.random() * 1.5)
                    found = pids(client)
                    if found and not over.is_set():
                        os.kill(rng.choice(found), signal.SIGKILL)
                        kills += 1

                thread = threading.Thread(target=kill)
                thread.start()
                found = run_on(connected, path, **options)
                over.set()
                thread.join()
                assert state_of(found.model) == expected
    assert kills == 20


# ---------------------------------------------------------------------- collections


def test_collections_of_dask(cluster: Any) -> None:
    pd = pytest.importorskip("pandas")
    pytest.importorskip("dask.dataframe")
    import dask.array as da
    import dask.bag as db
    import dask.dataframe as dd

    frame = pd.DataFrame({
        "a": np.arange(900) % 7,
        "b": ["x", "y", "z"] * 300,
        "label": [None if n == 5 else "yes" if n % 7 > 3 else "no" for n in range(900)],
    })  # fmt: skip
    known = frame.dropna()
    model = onlearn.cluster.fit(None, dd.from_pandas(frame, npartitions=3), cluster, max_bad="1%")
    assert isinstance(model, onlearn.Model)
    assert model.score(known.drop(columns="label"), known.label) > 0.99
    assert model.report_["bad_rows"] == 1
    assert model.report_["cluster"]["shards"] == 3
    bag = db.from_sequence(known.to_dict("records"), npartitions=4)
    counted = onlearn.cluster.fit("NaiveBayes", bag, cluster, target="label")
    assert counted.score(known.drop(columns="label"), known.label) > 0.9

    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 6))
    y = (X @ [1, -1, 2, 0, 0, 1] > 0).astype(int) + (X[:, 0] > 1)
    arrays = da.from_array(X, chunks=(500, 3)), da.from_array(y, chunks=700)
    estimator = onlearn.cluster.fit(onlearn.AveragedPerceptron(), arrays, cluster, rounds=5)
    assert isinstance(estimator, onlearn.AveragedPerceptron)
    assert estimator.classes_.tolist() == [0, 1, 2]
    assert estimator.score(X, y) > 0.85
    assert estimator.predict(X[:3]).dtype == y.dtype
    truth = onlearn.cluster.fit(onlearn.LogisticRegression(), (arrays[0], arrays[1] > 0), cluster, shards=2, rounds=3)
    assert truth.classes_.tolist() == [False, True]
    for data, options, why in (
        ((arrays[0],), {}, "pair"),
        ((arrays[0], arrays[1][:10]), {}, "entries"),
        (dd.from_pandas(frame, npartitions=2), {"target": "lable"}, "did you mean 'label'"),
        (bag, {}, "which column"),
    ):
        with pytest.raises(ValueError, match=why):
            onlearn.cluster.fit("AROW", data, cluster, **options)


# ---------------------------------------------------------------------- what goes wrong


def test_workers_with_other_versions_are_refused(cluster: Any, rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = versions_here()
    here = there._replace(packages={**there.packages, "numpy": "1.0"})
    with pytest.raises(ClusterError, match=r"tcp://a:1 has numpy \S+, and here it is 1\.0: install the same"):
        refuse_other(here, [("tcp://a:1", there)])
    assert refuse_other(there, [("tcp://a:1", there)]) == []
    assert "2 kinds" in refuse_other(there, [("tcp://a:1", there._replace(processor="another"))])[0]
    monkeypatch.setattr(connection, "differing", lambda here, there: "has numpy 1.0, and here it is 2.0")
    with pytest.raises(ClusterError, match="install the same everywhere"):
        run_on(cluster, rows, rounds=1)


def test_a_scheduler_that_cannot_load_tasks_is_refused(
    cluster: Any, rows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacking(function: Any) -> Any:
        raise ModuleNotFoundError("No module named 'onlearn'")

    monkeypatch.setattr(cluster, "run_on_scheduler", lacking)
    with pytest.raises(ClusterError, match=r"the scheduler tcp://\S+ has no onlearn: install the same"):
        run_on(cluster, rows, rounds=1)
    other = versions_here()._replace(onlearn="0.0.1")
    monkeypatch.setattr(cluster, "run_on_scheduler", lambda function: other)
    with pytest.raises(ClusterError, match=r"the scheduler tcp://\S+ has onlearn 0\.0\.1, and here it is"):
        run_on(cluster, rows, rounds=1)
    bare = versions_here()._replace(packages={"numpy": "1.0"})  # it computes nothing
    monkeypatch.setattr(cluster, "run_on_scheduler", lambda function: bare)
    assert Connection(cluster).check_versions() == []


def test_a_cluster_without_a_worker_is_told_in_time(rows: Path) -> None:
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=None, silence_logs=60) as made,
        distributed.Client(made, set_as_default=False) as client,
    ):
        began = time.monotonic()
        with pytest.raises(ClusterError, match=r"had no worker for 0\.5 s"):
            Connection(client, patience=0.5).check_versions()
        with pytest.raises(ClusterError, match=r"a test: the cluster at tcp://\S+ had no worker for 0\.5 s"):
            list(Connection(client, patience=0.5).results(lambda: [Task(0, len, ([],))], "a test"))
        assert time.monotonic() - began < 10


def test_a_worker_with_other_versions_refuses_tasks(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one does that comes when the versions of the others have been checked."""
    there = versions_here()
    monkeypatch.setattr(connection, "versions_here", lambda: there._replace(python="3.1"))
    leaves = [Task(n, len, ([],)) for n in range(2)]
    for tasks in ([leaves[0]], [Task("sum", sum, (leaves,))]):
        with pytest.raises(ClusterError, match=r"the worker tcp://\S+ has Python \S+, and here it is 3\.1: install"):
            list(Connection(cluster).results(lambda: tasks, "a test"))  # noqa: B023


def test_a_worker_without_onlearn_is_named(tmp_path: Path) -> None:
    (tmp_path / "onlearn.py").write_text("raise ModuleNotFoundError(\"No module named 'onlearn'\")")
    with distributed.LocalCluster(n_workers=0, dashboard_address=None, silence_logs=60) as made:
        arguments = [sys.executable, "-m", "distributed.cli.dask_worker", made.scheduler_address, "--no-dashboard"]
        with subprocess.Popen(
            [*arguments, "--nworkers", "1", "--nthreads", "1", "--no-nanny"],
            env={**os.environ, "PYTHONPATH": str(tmp_path)}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        ) as process:  # fmt: skip
            try:
                with (
                    connect(made.scheduler_address) as found,
                    pytest.raises(ClusterError, match=r"the worker tcp://\S+ has no onlearn: install the same"),
                ):
                    found.check_versions()
            finally:
                process.kill()


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Exception("ModuleNotFoundError(\"No module named 'onlearn'\")"), "has no onlearn"),
        (AttributeError("no 'versions_here'"), "cannot compute with this onlearn (no 'versions_here')"),
    ],
)
def test_what_a_worker_lacks_is_said(answer: Exception, told: str) -> None:
    assert unable(answer) == told


def test_what_answers_and_says_nothing_is_no_scheduler() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        with pytest.raises(ClusterError, match="there is no scheduler at tcp://127"):
            connect(f"tcp://127.0.0.1:{silent.getsockname()[1]}", patience=0.5)
        assert time.monotonic() - began < 20


def test_a_scheduler_that_hangs_is_told_while_a_result_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hanging:
        """A client whose scheduler answers nothing."""

        status = "running"

        def gather(self, futures: Any, **options: Any) -> Any:
            time.sleep(30)

    class Ended:
        status = "finished"

    monkeypatch.setattr(connection, "ANSWER", 0.5)
    client: Any = Hanging()
    client.scheduler_info = lambda n_workers: time.sleep(30)
    with pytest.raises(ClusterError, match=r"the scheduler at .* does not answer"):
        Connection(client, stall=25)._outcome(Ended(), "a test")


def test_each_task_that_ends_is_progress(cluster: Any) -> None:
    """All leaves of a tree of sums take longer than none of them may."""
    leaves = [Task(n, time.sleep, (0.25,)) for n in range(16)]
    ((_, count),) = Connection(cluster, stall=1).results(lambda: [Task(0, len, (leaves,))], "a test")
    assert count == 16


def test_a_task_that_hangs_is_told_in_time(cluster: Any) -> None:
    with pytest.raises(ClusterError, match=r"a test: no task ended for 1 s"):
        list(Connection(cluster, stall=1).results(lambda: [Task(0, time.sleep, (5,))], "a test"))


def test_a_scheduler_that_goes_is_told() -> None:
    code = (
        "import asyncio, distributed\n"
        "async def main():\n"
        "    async with distributed.Scheduler(port=0, dashboard_address=None) as s:\n"
        "        print(s.address, flush=True)\n"
        "        await s.finished()\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        address = process.stdout.readline().decode().strip()
        with connect(address, patience=3) as connected:
            assert connected.workers() == []
            process.kill()
            process.wait()
            with pytest.raises(ClusterError, match=r"does not answer|is gone|had no worker"):
                list(connected.results(lambda: [Task(0, len, ([],))], "a test"))


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("tls://127.0.0.1:1", "tls://127.0.0.1:1 needs certificates"),
        ("local:0", "local:0 has no process"),
        ("none.json", "there is no scheduler file none.json"),
        ("list.json", "list.json is no scheduler file"),
        ("bare.json", "bare.json is no scheduler file"),
        ("text.json", "text.json is no scheduler file"),
    ],
)
def test_a_name_that_leads_nowhere_is_one_sentence(
    tmp_path: Path, name: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for file, content in (("list.json", "[1]"), ("bare.json", '{"address": 3}'), ("text.json", "tcp://a:1")):
        Path(file).write_text(content)
    with pytest.raises(ValueError, match=re.escape(why)):
        connect(name, patience=1)


@pytest.mark.parametrize(
    ("name", "why"),
    [("tcp://127.0.0.1:1", "there is no scheduler at tcp://127.0.0.1:1"), ("nowhere", "'nowhere' is no cluster")],
)
def test_a_wrong_address_is_one_sentence(rows: Path, tmp_path: Path, name: str, why: str) -> None:
    done = command("train", str(rows), "-o", str(tmp_path / "m.onl"), "--cluster", name, "--patience", "1")
    assert done.returncode == 2
    assert why in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_the_command_tells_of_rounds_and_writes_a_model(rows: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.onl"
    done = command("train", str(rows), "-o", str(path), "--cluster", "local:2", "--rounds", "3", "--json")
    assert done.returncode == 0
    assert done.stderr == ""
    report = json.loads(done.stdout)
    assert report["cluster"]["shards"] == 4
    options = {"shards": 4, "rounds": 3}
    assert state_of(onlearn.load(path)) == state_of(run_here(rows, **options).model)


def test_ctrl_c_leaves_the_model_of_the_last_round(tmp_path: Path) -> None:
    """The signal goes to all processes of the terminal: workers ignore it."""
    rows, path = write_svmlight(tmp_path / "rows.svm", 3000), tmp_path / "m.onl"
    arguments = ["train", str(rows), "-o", str(path), "--cluster", "local:2", "--rounds", "4000", "--learner", "AROW"]
    process = subprocess.Popen(
        [sys.executable, "-m", "onlearn", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    assert process.stderr is not None
    for line in process.stderr:
        if "round 3 of" in line:
            break
    os.killpg(process.pid, signal.SIGINT)
    rest = process.stderr.read()
    assert process.wait(ENOUGH) == 130
    last = rest.strip().splitlines()[-1]
    assert "stopped by Ctrl-C" in last
    assert str(path) in last
    assert "Traceback" not in rest
    model = onlearn.load(path)
    ended = model.trained["ended"]
    assert ended >= 3
    expected = run_here(rows, learner="AROW", rounds=4000, shards=4, stop_after=ended)
    assert state_of(model) == state_of(expected.model)
    done = command("train", str(rows), "-o", str(path), "--resume", str(path))
    assert done.returncode == 2
    assert "--cluster" in done.stderr


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="needs signals that can be blocked")
def test_ctrl_c_does_not_reach_local_workers_that_are_being_imported() -> None:
    def blocked() -> bool:
        return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])

    with connect("local:1") as found:
        assert list(found.client.run(blocked).values()) == [True]
        assert not blocked()


@pytest.mark.parametrize(
    ("raised", "seen"), [(KeyboardInterrupt(), KeyboardInterrupt), (OSError("no room"), ClusterError)]
)
def test_a_local_cluster_without_a_client_is_ended(
    monkeypatch: pytest.MonkeyPatch, raised: BaseException, seen: type[BaseException]
) -> None:
    ended = []

    class Started:
        def __init__(self, **options: Any) -> None: ...

        def close(self, timeout: float) -> None:
            ended.append(timeout)

    def refused(*arguments: Any, **options: Any) -> None:
        raise raised

    monkeypatch.setattr(distributed, "LocalCluster", Started)
    monkeypatch.setattr(distributed, "Client", refused)
    with pytest.raises(seen):
        connect("local:1")
    assert ended == [connection.ENDING]


def test_when_the_client_is_killed_its_workers_end(rows: Path, tmp_path: Path) -> None:
    arguments = ["train", str(rows), "-o", str(tmp_path / "m.onl"), "--cluster", "local:2", "--rounds", "100000"]
    process = subprocess.Popen(
        [sys.executable, "-m", "onlearn", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    assert process.stderr is not None
    for line in process.stderr:
        if "round 2 of" in line:
            break
    process.kill()
    process.wait()
    late = time.monotonic() + 20
    while left := members(process.pid):
        assert time.monotonic() < late, f"{len(left)} processes are left"
        time.sleep(0.2)


def members(group: int) -> list[str]:
    """The processes of a process group."""
    found = subprocess.run(["ps", "-o", "pid=", "--pgroup", str(group)], capture_output=True, text=True)
    if found.returncode > 1:
        pytest.skip("ps cannot list process groups")
    listed = subprocess.run(["ps", "-eo", "pgid=,stat="], capture_output=True, text=True).stdout.splitlines()
    return [line for line in listed if line.split()[0] == str(group) and "Z" not in line.split()[1]]


# ---------------------------------------------------------------------- real data


def test_a9a_is_learned_as_well_as_on_one_machine(cluster: Any, data: Callable[[str], Path]) -> None:
    train, test = data("a9a/a9a.svm"), data("a9a/a9a.t.svm")
    X, y = onlearn.data.load(test)
    for learner in (None, "AveragedPerceptron"):
        mixed = run_on(cluster, train, learner=learner).model.score(X, y)
        assert mixed >= onlearn.train(train, learner=learner).score(X, y) - 0.003


@pytest.mark.slow
@pytest.mark.parametrize("name", ["imdb", "20news"])
def test_texts_are_learned_as_well_as_on_one_machine(
    cluster: Any, data: Callable[[str], Path], tmp_path: Path, name: str
) -> None:
    train, test = (unpacked(data(f"{name}/{part}.jsonl.gz"), tmp_path) for part in ("train", "test"))
    scores = [accuracy(model, test) for model in (run_on(cluster, train).model, onlearn.train(train))]
    assert scores[0] >= scores[1] - 0.003


@pytest.mark.slow
@pytest.mark.parametrize("in_order", [False, True])
def test_covtype_is_learned_as_well_as_on_one_machine(
    cluster: Any, data: Callable[[str], Path], tmp_path: Path, in_order: bool
) -> None:
    """Class 2 against the rest; in the order of the file, rows from one place are alike."""
    header, *rows = unpacked(data("covtype/covtype.csv.gz"), tmp_path).read_text().splitlines()
    rng = random.Random(0)
    rows = [f"{row[: row.rindex(',')]},{'two' if row.endswith(',2') else 'other'}" for row in rows]
    order = list(range(len(rows)))
    rng.shuffle(order)
    held = set(order[: len(rows) // 5])
    train, test = tmp_path / "train.csv", tmp_path / "test.csv"
    train.write_text("\n".join([header, *(rows[n] for n in (sorted(order) if in_order else order) if n not in held)]))
    test.write_text("\n".join([header, *(rows[n] for n in held)]))
    target = header.rsplit(",", 1)[1]
    for learner in (None, "AveragedPerceptron"):
        options = {"target": target, "learner": learner}
        scores = [
            accuracy(model, test)
            for model in (run_on(cluster, train, **options).model, onlearn.train(train, **options))
        ]
        assert scores[0] >= scores[1] - 0.003


def accuracy(model: onlearn.Model, path: Path) -> float:
    return float(evaluate(model, model.read(path)).report()["accuracy"])


def unpacked(path: Path, folder: Path) -> Path:
    """A file without its compression, which shards are cut from."""
    made = folder / path.name.removesuffix(".gz")
    made.write_bytes(gzip.decompress(path.read_bytes()))
    return made
