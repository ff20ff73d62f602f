"""Prediction and evaluation on two worker processes: the bytes and the figures of one machine."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import onlearn
from onlearn import cli
from onlearn.data import DataError
from onlearn.errors import PlanError
from onlearn.features import Text
from onlearn.models import open_model
from sample_models import MESSAGES, trained

pytest.importorskip("distributed")

from onlearn.cluster import prediction, prediction_tasks
from onlearn.cluster.connection import Connection, Task
from onlearn.cluster.prediction import Shards, evaluate, predict
from onlearn.cluster.scheduler import connect
from onlearn.errors import ClusterError

SOURCES = str(Path(onlearn.__file__).parents[1])
ENVIRONMENT = {**os.environ, "PYTHONPATH": SOURCES}
FLOWERS = ["rose", 'the "old" lily', "iris, blue"]


@pytest.fixture(scope="module")
def kit(tmp_path_factory):
    """A folder of models, with data of the same name."""
    folder = tmp_path_factory.mktemp("kit")
    rng = np.random.default_rng(0)

    text = folder / "text.jsonl"
    text.write_text("".join(json.dumps({"label": y, "text": x}) + "\n" for y, x in MESSAGES * 50))
    trained(text, extractors=[Text("text", prefix="")]).save(folder / "text.onl")

    table, kinds = folder / "table.csv", rng.integers(0, 3, 300)
    rows = []
    for n, k in enumerate(kinds):
        flower = '"' + FLOWERS[k].replace('"', '""') + '"'
        key = f'"k\n{n}"' if n % 7 == 0 else f"k{n}" if n < 200 or n % 3 else ""  # some of the later ones lack a key
        rows.append(f"{k / 10 + rng.random():.3f},{'low' if k else 'high'},{key},{flower}")
    table.write_text("\n".join(["size,place,key,label", *rows]) + "\n")
    trained(table, id="key").save(folder / "table.onl")

    sparse, X = folder / "sparse.svm", rng.integers(0, 2, (500, 8))
    y = rng.choice([-1, 1], 500)
    X[:, 0] = (y > 0) ^ (rng.random(500) < 0.1)
    sparse.write_text(
        "".join(f"{y[n]:+d} " + " ".join(f"{k + 1}:{v}" for k, v in enumerate(X[n]) if v) + "\n" for n in range(500))
    )
    trained(sparse).save(folder / "sparse.onl")

    named = folder / "named.vw"
    tags = [f"'tag{n}" if n < 60 or n % 5 else "" for n in range(200)]
    named.write_text("".join(f"{1 if k else -1} {tags[n]}|a {'sun' if k else 'rain'} day |b x:{n % 3}\n"
                             for n, k in enumerate(rng.integers(0, 2, 200))))  # fmt: skip
    trained(named).save(folder / "named.onl")

    numbers, x = folder / "numbers.csv", rng.random((400, 2))
    numbers.write_text("\n".join(["a,b,y", *(f"{a:.4f},{b:.4f},{100 + 30 * a - 10 * b:.4f}" for a, b in x)]) + "\n")
    trained(numbers, task="regress").save(folder / "numbers.onl")
    return folder


@pytest.fixture
def run(cluster, capsys):
    """Run a command, on the cluster if it names shards; the exit code, and what it printed."""

    def call(*arguments, **options):
        where = ("--cluster", cluster.scheduler.address, "--quiet") if "--shards" in arguments else ()
        code = cli.run([str(one) for one in (*arguments, *where)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def same_output(run, *arguments, shards=7):
    """What a command prints on one machine, after checking that it prints the same on the cluster."""
    alone, spread = run(*arguments, "--quiet"), run(*arguments, "--shards", shards)
    assert spread == alone
    return alone


# ---------------------------------------------------------------------- prediction


@pytest.mark.parametrize(
    ("model", "file", "options"),
    [
        ("text", "text.jsonl", "--proba --scores --format-out jsonl"),
        ("text", "text.jsonl", "--threshold 0.2 --positive ham"),
        ("table", "table.csv", "--proba --scores"),  # ids, cells that need quotes, and cells of several lines
        ("table", "table.csv", "--top 2 --scores --format-out jsonl"),
        ("table", "table.csv", "--id place --threshold 0.6"),
        ("sparse", "sparse.svm", "--proba"),
        ("sparse", "sparse.svm", "--scores --format-out jsonl"),
        ("named", "named.vw", "--top 1"),  # tags, which later rows may lack
        ("named", "named.vw", "--format-out jsonl"),
        ("numbers", "numbers.csv", ""),
        ("sparse", "sparse.svm", "--spreadsheet-safe --proba"),
    ],
)
def test_the_same_bytes(model, file, options, kit, run):
    code, out, _ = same_output(run, "predict", kit / f"{model}.onl", kit / file, *options.split())
    assert code == 0 and len(out.splitlines()) >= 200


def test_several_files_some_compressed_one_empty(kit, run, tmp_path):
    lines = (kit / "sparse.svm").read_text().splitlines(keepends=True)
    (tmp_path / "a.svm").write_text("".join(lines[:200]))
    (tmp_path / "b.svm").write_text("")
    (tmp_path / "c.svm.gz").write_bytes(gzip.compress("".join(lines[200:300]).encode()))
    (tmp_path / "d.svm").write_text("".join(lines[300:]))
    found = same_output(run, "predict", kit / "sparse.onl", tmp_path / "*.svm*", tmp_path / "a.svm", shards=9)[1]
    rows = [line.split(",") for line in found.splitlines()[1:]]
    assert [int(row[1]) for row in rows] == [n + 1 for count in (200, 100, 200, 200) for n in range(count)]


def test_a_file_is_written(kit, cluster, tmp_path):
    alone, spread = tmp_path / "alone.jsonl", tmp_path / "spread.jsonl"
    assert cli.run(["predict", str(kit / "table.onl"), str(kit / "table.csv"), "-o", str(alone), "--proba"]) == 0
    asked = {"proba": True, "client": cluster, "shards": 5}
    assert predict(kit / "table.onl", str(kit / "table.csv"), spread, **asked) == {"rows": 300, "bad_rows": 0}
    assert spread.read_bytes() == alone.read_bytes()


def test_the_number_of_shards_does_not_matter(kit, cluster, tmp_path):
    model, made = open_model(kit / "named.onl"), set()
    for shards in (1, 2, 40):
        predict(model, kit / "named.vw", tmp_path / "out.csv", client=cluster, shards=shards)
        made.add((tmp_path / "out.csv").read_bytes())
    assert len(made) == 1


def test_lines_are_counted_only_where_they_are_needed(kit, cluster, tmp_path, monkeypatch):
    counted, in_order = [], Connection.in_order

    def watched(self, following, make, what, most):
        for key, result in in_order(self, following, make, what, most):
            counted.append(key)
            yield key, result

    monkeypatch.setattr(Connection, "in_order", watched)
    out = tmp_path / "out.csv"
    predict(kit / "sparse.onl", kit / "sparse.svm", out, client=cluster, shards=20)
    works = [n for kind, n in counted if kind == prediction.WORK]
    assert works == list(range(20)) and len(counted) == 39  # the lines of the last shard say nothing
    counted.clear()
    evaluate(kit / "sparse.onl", kit / "sparse.svm", client=cluster, shards=20)
    assert len(counted) == 20
    counted.clear()
    tagged = tmp_path / "tagged.vw"
    tagged.write_text("".join(f"'t{n}|a sun\n" for n in range(200)))
    predict(kit / "named.onl", tagged, out, client=cluster, shards=20)
    assert len(counted) == 20


def test_a_rule_of_the_users_own(kit, cluster, tmp_path):
    @onlearn.rule
    def gentle(score, y, sqnorm, C=0.25):
        return y * min(C, 1 / sqnorm) if score * y <= 0 else 0.0

    trained(kit / "sparse.svm", onlearn.OnlineClassifier(rule=gentle(), random_state=0)).save(tmp_path / "m.onl")
    predict(tmp_path / "m.onl", kit / "sparse.svm", tmp_path / "spread.csv", client=cluster, scores=True)
    assert cli.run(["predict", str(tmp_path / "m.onl"), str(kit / "sparse.svm"), "--scores", "-o",
                    str(tmp_path / "alone.csv")]) == 0  # fmt: skip
    assert (tmp_path / "spread.csv").read_bytes() == (tmp_path / "alone.csv").read_bytes()


def test_partitions_of_a_data_frame(kit, cluster):
    dask_frame = pytest.importorskip("dask.dataframe")
    frame = pytest.importorskip("pandas").read_csv(kit / "table.csv", dtype={"key": str})
    model = open_model(kit / "table.onl")
    spread = dask_frame.from_pandas(frame, npartitions=4).map_partitions(model.predict, meta=np.array([], dtype=object))
    found = np.concatenate(cluster.gather([cluster.compute(part) for part in spread.to_delayed().ravel()]))
    assert found.tolist() == model.predict(frame).tolist()

    with pytest.raises(PlanError, match="map_partitions"):
        evaluate(model, dask_frame.from_pandas(frame, npartitions=2), client=cluster)


def test_workers_of_several_threads(kit, tmp_path):
    """They share one model."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=4, processes=False, dashboard_address="127.0.0.1:0", silence_logs=50
        ) as threads,
        distributed.Client(threads, set_as_default=False) as client,
    ):
        for name, file in (("text", "text.jsonl"), ("table", "table.csv"), ("named", "named.vw")):
            spread, alone = (tmp_path / f"{name}-{end}.csv" for end in ("spread", "alone"))
            model = str(kit / f"{name}.onl")
            predict(model, kit / file, spread, client=client, shards=30, proba=True)
            assert cli.run(["predict", model, str(kit / file), "--proba", "-o", str(alone)]) == 0
            assert spread.read_bytes() == alone.read_bytes()


@pytest.mark.parametrize(("model", "file"), [("table", "table.csv"), ("sparse", "sparse.svm")])
def test_files_without_rows_are_no_mistake_beside_others(kit, run, tmp_path, model, file):
    blank, heading = tmp_path / "blank.csv", tmp_path / "heading.csv.gz"
    blank.write_text("\n\n")
    heading.write_bytes(gzip.compress(b"size,place,key,label\n"))
    others = [blank, heading] if model == "table" else [blank]
    assert same_output(run, "predict", kit / f"{model}.onl", *others, kit / file)[0] == 0
    code, report, _ = run("evaluate", kit / f"{model}.onl", *others, kit / file, "--json", "--shards", 3)
    assert (code, json.loads(report)["n"]) == (0, 300 if model == "table" else 500)
    assert same_output(run, "predict", kit / f"{model}.onl", blank)[0] == 2


# ---------------------------------------------------------------------- evaluation


def figures(value):
    """A report with lists of its numbers, to be compared."""
    if isinstance(value, dict):
        return {key: figures(one) for key, one in value.items()}
    if isinstance(value, list):
        return [figures(one) for one in value]
    return pytest.approx(value, rel=1e-9, abs=1e-12) if isinstance(value, float) else value


@pytest.mark.parametrize(
    ("model", "file", "options"),
    [
        ("text", "text.jsonl", "--best-threshold f1"),
        ("sparse", "sparse.svm", "--best-threshold cost(1,3) --positive -1"),
        ("sparse", "sparse.svm", "--threshold 0.9"),
        ("table", "table.csv", "--threshold 0.5"),
        ("named", "named.vw", ""),
        ("numbers", "numbers.csv", ""),
    ],
)
def test_the_same_figures(model, file, options, kit, run):
    arguments = ("evaluate", kit / f"{model}.onl", kit / file, "--json", *options.split())
    alone, spread = run(*arguments, "--quiet"), run(*arguments, "--shards", 6)
    assert alone[0] == spread[0] == 0 and spread[2] == ""
    assert json.loads(spread[1]) == figures(json.loads(alone[1]))


def test_several_labels_a_row_and_rows_to_rank(run, tmp_path):
    rng = np.random.default_rng(0)
    several, ranked = tmp_path / "several.svm", tmp_path / "ranked.svm"
    X = rng.random((300, 4)).round(2)
    several.write_text(
        "".join(f"{','.join(c for c, x in zip('abc', row) if x > 0.6)} 1:{row[0]} 2:{row[1]} 3:{row[2]}\n" for row in X)
    )
    ranked.write_text("".join(f"{int(4 * row[0])} qid:{n // 13} 1:{row[0]} 2:{row[3]}\n" for n, row in enumerate(X)))
    for file, task in ((several, "multilabel"), (ranked, "rank")):
        model = tmp_path / f"{task}.onl"
        assert run("train", file, "-o", model, "--task", task, "--quiet")[0] == 0
        same_output(run, "predict", model, file, *(["--proba"] if task == "multilabel" else []))
        alone, spread = (run("evaluate", model, file, "--json", *more) for more in (["--quiet"], ["--shards", 7]))
        assert json.loads(spread[1]) == figures(json.loads(alone[1]))
        assert json.loads(spread[1])["n"] == 300


def test_unknown_and_missing_labels(kit, run, tmp_path):
    rows = [*MESSAGES * 20, ("eggs", "some eggs"), (None, "no label")] * 2
    file = tmp_path / "new.jsonl"
    file.write_text("".join(json.dumps({"label": y, "text": x}) + "\n" for y, x in rows))
    arguments = ("evaluate", kit / "text.onl", file, "--json")
    alone, spread = run(*arguments, "--quiet"), run(*arguments, "--shards", 9)
    found = json.loads(spread[1])
    assert found == figures(json.loads(alone[1]))
    assert (found["unknown_labels"], found["unlabelled"]) == ({"eggs": 2}, 2)


def test_the_report_page(kit, run, tmp_path):
    found = {}
    for name, more in (("alone", ["--quiet"]), ("spread", ["--shards", 6])):
        page = tmp_path / f"{name}.json"
        assert run("evaluate", kit / "sparse.onl", kit / "sparse.svm", "--report", page, *more)[0] == 0
        found[name] = json.loads(page.read_text())
    for one in found.values():
        one.pop("command", None)
        one.pop("written", None)
    assert found["spread"].keys() == found["alone"].keys()
    assert found["spread"]["evidence"] == figures(found["alone"]["evidence"])


def test_in_python(kit, cluster):
    model = open_model(kit / "sparse.onl")
    found = evaluate(model, kit / "sparse.svm", client=cluster, best_threshold="f1", positive="+1")
    assert found["n"] == 500 and found["best_threshold"]["positive"] == "+1"
    again = evaluate(model, kit / "sparse.svm", client=cluster, best_threshold="f1", positive="+1", shards=8)
    assert again == found  # 8 is the usual number
    with pytest.raises(PlanError, match="not given"):
        evaluate(model, kit / "sparse.svm", client=cluster, positive="+1")
    with pytest.raises(PlanError, match="model"):
        evaluate(3, kit / "sparse.svm", client=cluster)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["adult/adult.data", "a9a/a9a.svm", "sms_spam/SMSSpamCollection.tsv"])
def test_real_data(name, data, run, cluster, tmp_path):
    file, model = data(name), tmp_path / "m.onl"
    how = ["--format", "csv"] if file.suffix == ".data" else []
    assert run("train", file, "-o", model, "--quiet", "--passes", 1, *how)[0] == 0
    for options in ([], ["--proba", "--scores", "--format-out", "jsonl"]):
        code, out, _ = same_output(run, "predict", model, file, *how, *options, shards=23)
        assert code == 0 and len(out.splitlines()) > 5000
    alone, spread = (run("evaluate", model, file, "--json", *how, *more) for more in (["--quiet"], ["--shards", 23]))
    assert json.loads(spread[1]) == figures(json.loads(alone[1]))


# ---------------------------------------------------------------------- bad rows


@pytest.fixture
def broken(kit, tmp_path):
    lines = (kit / "sparse.svm").read_text().splitlines()
    for n in (3, 250, 251, 499):
        lines[n] = f"+1 oops{n}"
    file = tmp_path / "broken.svm"
    file.write_text("\n".join(lines) + "\n")
    return file


def test_bad_rows_are_told_by_their_lines(kit, cluster, broken, tmp_path, capsys):
    heard = []
    for name, more in (("alone", []), ("spread", ["--cluster", cluster.scheduler.address, "--shards", "9"])):
        kept, out = tmp_path / f"{name}.txt", tmp_path / f"{name}.csv"
        arguments = ["predict", str(kit / "sparse.onl"), str(broken), "-o", str(out), "--bad-rows", str(kept)]
        assert cli.run([*arguments, "--max-bad", "2%", *more]) == 0
        told = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("onlearn: cluster ")]
        heard.append((told, kept.read_text(), out.read_bytes()))
    assert heard[0] == heard[1]
    assert "line 252" in "".join(heard[0][0]) and heard[0][1].splitlines()[-1] == "+1 oops499"


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_the_limit_holds_over_all_shards(command, kit, run, broken):
    for options in (["--strict"], ["--max-bad", "0.5%"]):
        code, out, err = run(command, kit / "sparse.onl", broken, *options, "--shards", 9)
        assert code == 2 and err.count("\n") == 1 and f"{broken}, line 4" in err
        assert ("4 of 500 rows" in err) == ("--strict" not in options)
        assert command == "predict" or not out
    assert run(command, kit / "sparse.onl", broken, "--max-bad", "1%", "--shards", 9)[0] == 0


# ---------------------------------------------------------------------- failures


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("predict text.onl nowhere.jsonl --shards 2", "nowhere.jsonl does not exist"),
        ("predict text.onl nothing*.jsonl --shards 2", "no file matches"),
        ("predict text.onl - --shards 2", "standard input"),
        ("predict text.onl empty.jsonl --shards 2", "empty.jsonl is empty"),
        ("predict text.onl text.jsonl --shards 2 -o text.jsonl", "read from"),
        ("predict text.onl text.jsonl --shards 2 -o none/out.csv", "there is no directory none"),
        ("predict text.onl sparse.svm --shards 2", "cannot be used with this model: these features were learned from"),
        ("predict sparse.onl sparse.svm --shards 2 --id name", "it has no columns"),
        ("predict numbers.onl numbers.csv --shards 2 --proba", "numbers only"),
        ("predict text.onl text.jsonl --shards 2 --format-out xml", "'xml' is not csv or jsonl"),
        ("predict table.onl text.jsonl --shards 2", "no column"),
        ("evaluate text.onl unlabelled.jsonl --shards 2", "no row has a label"),
        ("evaluate table.onl table.csv --shards 2 --best-threshold f1", "it is for models of two labels"),
    ],
)
def test_what_is_refused(arguments, reason, kit, run, monkeypatch):
    monkeypatch.chdir(kit)
    (kit / "empty.jsonl").write_text("")
    (kit / "unlabelled.jsonl").write_text('{"text": "cheap pills"}\n' * 20)
    before = {path.name: path.stat().st_mtime_ns for path in kit.iterdir()}
    code, out, err = run(*arguments.split())
    assert code == 2 and out == "" and err.startswith("onlearn: ") and err.count("\n") == 1
    assert reason in err
    assert {path.name: path.stat().st_mtime_ns for path in kit.iterdir()} == before


@pytest.mark.parametrize("option", ["--shards 3", "--patience 1"])
def test_options_about_a_cluster_without_one(option, kit, capsys):
    assert cli.run(["predict", str(kit / "text.onl"), str(kit / "text.jsonl"), *option.split()]) == 2
    assert "it is about --cluster, which is not given" in capsys.readouterr().err


def test_there_is_no_such_cluster(kit, capsys, tmp_path):
    arguments = ["predict", str(kit / "text.onl"), str(kit / "text.jsonl"), "-o", str(tmp_path / "out.csv")]
    assert cli.run([*arguments, "--cluster", "tcp://127.0.0.1:1", "--patience", "1"]) in (1, 2)
    heard = capsys.readouterr().err
    assert "there is no scheduler at tcp://127.0.0.1:1" in heard and heard.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_tagger_works_on_one_machine(cluster, tmp_path, run):
    file = tmp_path / "a.conll"
    file.write_text("Confidence NN\nin IN\n\nthe DT\npound NN\n\n" * 10)
    assert run("train", file, "-o", tmp_path / "t.onl", "--quiet")[0] == 0
    for command in ("predict", "evaluate"):
        code, _, err = run(command, tmp_path / "t.onl", file, "--shards", 2)
        assert code == 2 and "--cluster" in err
    with pytest.raises(ValueError, match="works on one machine"):
        evaluate(tmp_path / "t.onl", file, client=cluster)


def test_no_worker_in_time(kit, tmp_path):
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=0, processes=False, dashboard_address="127.0.0.1:0", silence_logs=50
        ) as empty,
        distributed.Client(empty, set_as_default=False) as client,
        pytest.raises(ClusterError, match=r"no worker for 0\.3 s"),
    ):
        predict(kit / "text.onl", kit / "text.jsonl", tmp_path / "out.csv", client=client, patience=0.3)
    assert not list(tmp_path.iterdir())


def test_a_worker_that_does_not_see_the_file(kit, cluster, tmp_path):
    gone = tmp_path / "gone.svm"
    gone.write_text((kit / "sparse.svm").read_text())
    shards = Shards(open_model(kit / "sparse.onl"), gone, count=3)
    gone.unlink()
    output = prediction_tasks.Output()
    with connect(cluster) as connection, pytest.raises(DataError, match=r"gone\.svm is not there for the worker tcp"):
        list(prediction.predicted(shards, connection, output))


def slowly(job, shard):
    """The task of a shard, which takes long enough for a worker to be killed meanwhile."""
    time.sleep(0.15)
    return prediction_tasks.predict_shard(job, shard)


@pytest.mark.parametrize("victims", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_workers_that_are_killed(victims, kit, cluster, tmp_path):
    """With both, the model is lost as well, and shared once more."""
    model, output = open_model(kit / "sparse.onl"), prediction_tasks.Output(proba=True)
    shards = Shards(model, kit / "sparse.svm", count=16)
    with connect(cluster) as connection:
        alone = list(prediction.predicted(Shards(model, kit / "sparse.svm", count=1), connection, output))
        pids = list(cluster.run(os.getpid).values())
        job, found = shards.job(output=output), []
        for part, _ in shards.parts(connection, slowly, job, numbered=True, what="prediction"):
            if len(found) == 3:
                for pid in pids[:victims]:
                    os.kill(pid, signal.SIGKILL)
            found.append(bytes(part.made))
    assert b"".join(found) == bytes(alone[1])
    cluster.wait_for_workers(2, timeout=60)


def double(n):
    return 2 * n


def test_results_in_order_a_few_at_a_time(cluster):
    asked, taken = [], []

    def following():
        assert len(asked) - len(taken) < 3
        if len(asked) == 5 and len(taken) < 5:
            return None  # until all of these have been taken
        asked.append(len(asked))
        return asked[-1] if len(asked) <= 12 else None

    with connect(cluster) as connection:
        for key, result in connection.in_order(following, lambda n: Task(n, double, (n,)), "doubling", lambda: 3):
            taken.append(key)
            assert result == 2 * key
    assert taken == list(range(12))


def test_whoever_stops_reading_cancels_the_rest(kit, cluster):
    shards = Shards(open_model(kit / "sparse.onl"), kit / "sparse.svm", count=30)
    with connect(cluster) as connection:
        lines = prediction.predicted(shards, connection, prediction_tasks.Output())
        assert bytes(next(lines)) == b"id,prediction\n"
        lines.close()
    assert not [future for future in cluster.futures.values() if future.status == "pending"]


@pytest.mark.parametrize("how", ["Ctrl-C", "closed pipe"])
def test_a_command_that_is_ended(how, kit, cluster, tmp_path):
    many = tmp_path / "many.svm"
    many.write_text((kit / "sparse.svm").read_text() * 4000)
    out = tmp_path / "out.csv"
    command = [sys.executable, "-m", "onlearn.cli", "predict", str(kit / "sparse.onl"), str(many), "--proba",
               "--cluster", cluster.scheduler.address, "--shards", "200"]  # fmt: skip
    if how == "Ctrl-C":
        command += ["-o", str(out)]
    child = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if how == "Ctrl-C":
        assert child.stderr.readline().startswith("onlearn: cluster tcp://")
        child.send_signal(signal.SIGINT)
        _, heard = child.communicate(timeout=60)
        assert (child.returncode, heard) == (130, "onlearn: stopped\n")
        assert [path.name for path in tmp_path.iterdir()] == ["many.svm"]
    else:
        assert child.stdout.readline() == "id,prediction,proba:+1,proba:-1\n"
        child.stdout.close()
        heard = child.stderr.read()
        child.stderr.close()
        assert child.wait(60) == 1 and heard.count("\n") == 1  # the line about the cluster
