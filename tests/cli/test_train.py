"""``onlearn train``, end to end: what it writes, what it says, how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import onlearn
from onlearn.cli import run


def svm(path, rows=400, seed=0):
    rng = np.random.default_rng(seed)
    with open(path, "w") as file:
        for _ in range(rows):
            x = rng.normal(size=4)
            file.write(f"{'yes' if x[0] > 0 else 'no'} " + " ".join(f"{j}:{v:.4f}" for j, v in enumerate(x)) + "\n")
    return str(path)


def mails(path, rows=200, seed=0):
    rng = np.random.default_rng(seed)
    with open(path, "w") as file:
        for _ in range(rows):
            spam = bool(rng.integers(2))
            words = rng.choice(["buy", "now", "cheap"] if spam else ["see", "you", "soon"], 4)
            file.write(json.dumps({"text": f"hello {' '.join(words)} bye", "label": "spam" if spam else "ham"}) + "\n")
    return str(path)


def command(*arguments, **options):
    environment = {**os.environ, "COLUMNS": "200"}
    return subprocess.run(
        [sys.executable, "-m", "onlearn.cli", *arguments],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
        **options,
    )


def report(capsys, *arguments):
    assert run([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_from_texts_to_a_model_with_nothing_said(tmp_path):
    out = tmp_path / "m.onl"
    done = command("train", mails(tmp_path / "a.jsonl"), "-o", str(out), "--test", mails(tmp_path / "b.jsonl", seed=1))
    assert done.returncode == 0, done.stderr
    assert "text is text" in done.stdout
    assert "accuracy 1.0000" in done.stdout
    assert done.stderr == ""
    assert list(onlearn.load(out).predict(["buy cheap", "see you"])) == ["spam", "ham"]


def test_json_holds_what_was_found(tmp_path, capsys):
    source = svm(tmp_path / "a.svm")
    found = report(capsys, "train", source, "-o", str(tmp_path / "m.onl"), "--holdout", "20%", "--passes", "2")
    assert found["labels"] == ["no", "yes"]
    assert found["rows"] == 400
    assert found["holdout"]["n"] + found["progressive"]["n"] == 400
    assert found["holdout"]["accuracy"] > 0.9
    assert found["passes"] == 2


def test_choices_reach_the_learner(tmp_path, capsys):
    source, out = svm(tmp_path / "a.svm"), str(tmp_path / "m.onl")
    report(capsys, "train", source, "-o", out, "--rule", "pa1(0.5)", "--stabilizer", "last", "--passes", "1")
    assert repr(onlearn.load(out).learner.choices["rule"]) == "pa1(aggressiveness=0.5)"
    report(capsys, "train", source, "-o", out, "--learner", "AveragedPerceptron", "--class-weight", "balanced")
    assert onlearn.load(out).learner.name == "AveragedPerceptron"
    report(capsys, "train", source, "-o", out, "--learner", "scinol")
    assert onlearn.load(out).learner.name == "ScInOL"
    spelled = "LogisticRegression(rate=0.5)"
    report(capsys, "train", source, "-o", out, "--learner", spelled, "--class-weight", "balanced")
    assert onlearn.load(out).learner.get_params().items() >= {"rate": 0.5, "class_weight": "balanced"}.items()
    plain = report(capsys, "train", source, "-o", out, "--passes", "3")["learner"]
    given = "--geometry", "adagrad(0.1)", "--passes", "3"
    assert report(capsys, "train", source, "-o", out, *given)["learner"] == plain


def test_the_first_pass_of_regression_is_told_in_units_of_the_target(tmp_path, capsys):
    rows = "".join(f"{n % 7},{5000 + 300 * (n % 7)}\n" for n in range(200))
    (tmp_path / "a.csv").write_text("size,price\n" + rows)
    line = ["train", str(tmp_path / "a.csv"), "-o", str(tmp_path / "m.onl"), "--target", "price", "--task", "regress"]
    assert 10 < report(capsys, *line)["progressive"]["rmse"] < 600
    assert run(line) == 0
    told = capsys.readouterr().out
    assert "RMSE" in told and "loss" not in told


def test_resuming_goes_on(tmp_path, capsys):
    first, second = svm(tmp_path / "a.svm"), svm(tmp_path / "b.svm", seed=1)
    both, one = str(tmp_path / "both.onl"), str(tmp_path / "one.onl")
    report(capsys, "train", first, second, "-o", both, "--passes", "1")
    report(capsys, "train", first, "-o", one, "--passes", "1")
    report(capsys, "train", second, "-o", one, "--resume", one)
    np.testing.assert_array_equal(onlearn.load(both).weights()[0], onlearn.load(one).weights()[0])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nowhere.svm"], "nowhere.svm does not exist"),
        (["."], "directory"),
        (["a.svm", "--rule", "perceptrom"], "did you mean 'perceptron'"),
        (["a.svm", "--learner", "Arrow"], "did you mean AROW"),
        (["a.svm", "--learner", "AROW(s=1)"], "it has no parameter 's'"),
        (["a.svm", "--learner", "AROW(r=-1)"], "r must be"),
        (["a.svm", "--learner", "Perceptron(class_weight='balanced')", "--class-weight", "balanced"], "given twice"),
        (["a.svm", "--learner", "AROW", "--rule", "pa1"], "--rule has no use with --learner AROW"),
        (["a.svm", "--ngrams", "1-2"], "no use here"),
        (["a.svm", "--ngrams", "two"], "not a range of lengths"),
        (["a.svm", "--passes", "0"], "--passes"),
        (["a.svm", "--passes", "many"], "--passes"),
        (["a.svm", "--holdout", "150%"], "not a part of the rows"),
        (["a.svm", "--task", "cluster"], "there is no 'cluster'"),
        (["a.svm", "--frobnicate"], "No such option"),
        (["a.svm", "--interact", "a,b"], "interact"),
        (["a.jsonl", "--numeric", "age"], "there is no column 'age'; there are text"),
        (["a.jsonl", "--target", "lable"], "lable"),
        (["a.jsonl", "--resume", "none.onl"], "none.onl"),
        (["a.jsonl", "--resume", "a.svm"], "a.svm is not a model file"),
        (["empty.svm"], "empty.svm is empty"),
        (["broken.svm"], "broken.svm, line 2"),
        (["a.svm", "--format", "xls"], "there is no format 'xls'"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(tmp_path, monkeypatch, capsys, arguments, says):
    monkeypatch.chdir(tmp_path)
    svm("a.svm", rows=50)
    mails("a.jsonl", rows=50)
    (tmp_path / "empty.svm").write_text("")
    (tmp_path / "broken.svm").write_text("1 1:1\n0 1:x\n" * 5)
    before = sorted(p.name for p in tmp_path.iterdir())
    assert run(["train", *arguments, "-o", "m.onl"]) == 2
    heard = capsys.readouterr()
    assert "examples/s" not in heard.out  # decisions may have been printed, but no results
    assert says in heard.err
    assert heard.err.startswith("onlearn: ")
    assert len(heard.err.strip().splitlines()) == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == before


@pytest.mark.parametrize("place", ["folder", "other.txt", "missing/m.onl"])
def test_outputs_that_cannot_be(tmp_path, monkeypatch, capsys, place):
    monkeypatch.chdir(tmp_path)
    svm("a.svm", rows=50)
    (tmp_path / "folder").mkdir()
    (tmp_path / "other.txt").write_text("mine")
    assert run(["train", "a.svm", "-o", place]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert (tmp_path / "other.txt").read_text() == "mine"


def test_bad_rows_are_shown_and_kept(tmp_path, capsys):
    source = svm(tmp_path / "a.svm", rows=500)
    with open(source, "a") as file:
        file.write("yes 1:one\n")
    kept = tmp_path / "bad.txt"
    assert run(["train", source, "-o", str(tmp_path / "m.onl"), "--bad-rows", str(kept), "--json"]) == 0
    heard = capsys.readouterr()
    assert json.loads(heard.out)["bad_rows"] == 1
    assert "a.svm, line 501" in heard.err
    assert kept.read_text() == "yes 1:one\n"
    assert run(["train", source, "-o", str(tmp_path / "n.onl"), "--strict"]) == 2
    assert not (tmp_path / "n.onl").exists()


def test_standard_input(tmp_path):
    source = svm(tmp_path / "a.svm")
    out = str(tmp_path / "m.onl")
    with open(source) as file:
        done = command("train", "-", "--format", "svmlight", "-o", out, "--quiet", stdin=file)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert onlearn.load(out).labels == ["no", "yes"]


def test_ctrl_c_saves_what_was_learned(tmp_path):
    source, out = svm(tmp_path / "a.svm", rows=3000), tmp_path / "m.onl"
    line = [sys.executable, "-m", "onlearn.cli", "train", source, "-o", str(out), "--passes", "100000"]
    line += ["--checkpoint-every", "3000"]
    child = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(out)
    child.send_signal(signal.SIGINT)
    shown, heard = child.communicate(timeout=120)
    assert child.returncode == 130
    assert " of 100000, " in shown  # passes
    assert heard.count("stopped") == 1 and "stopped by Ctrl-C after" in heard
    assert f"the model so far is in {out}" in heard
    assert onlearn.load(out).trained["unfinished"] > 0


def test_ctrl_c_while_standard_input_is_read(tmp_path):
    """The thread that reads may wait for ever, and is not waited for."""
    line = [sys.executable, "-m", "onlearn.cli", "train", "-", "--format", "svmlight", "-o", str(tmp_path / "m.onl")]
    child = subprocess.Popen(line, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    child.stdin.write(b"1 1:1\n0 2:1\n" * 20_000)  # more than a pipe holds, so when this is over it is being read
    child.stdin.flush()
    child.send_signal(signal.SIGINT)
    try:
        assert child.wait(timeout=60) == 130
    finally:
        child.kill()
    assert child.stderr.read().count(b"stopped") == 1
    assert not (tmp_path / "m.onl").exists()


@pytest.mark.slow
def test_kill_during_a_save_leaves_a_whole_model(tmp_path):
    source, out = svm(tmp_path / "a.svm", rows=2000), tmp_path / "m.onl"
    line = [sys.executable, "-m", "onlearn.cli", "train", source, "-o", str(out), "--passes", "100000"]
    line += ["--checkpoint-every", "500", "--quiet"]
    for wait in (0.0, 0.03, 0.1, 0.2):
        child = subprocess.Popen(line)
        wait_for(out)
        time.sleep(wait)
        child.kill()
        child.wait()
        assert onlearn.load(out).labels == ["no", "yes"]
        out.unlink()


def wait_for(path, seconds=120):
    until = time.monotonic() + seconds
    while not path.exists() and time.monotonic() < until:
        time.sleep(0.01)
    assert path.exists()


def test_ctrl_c_before_anything_has_begun(tmp_path):
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt\n")  # as if it came while typer is imported
    done = subprocess.run(
        [sys.executable, "-m", "onlearn.cli", "train", "a.svm", "-o", "m.onl"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])},
        capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "onlearn: stopped\n")


def test_a_mistyped_target(tmp_path):
    (tmp_path / "a.csv").write_text("x,answer\n1,yes\n2,no\n")
    done = command("train", str(tmp_path / "a.csv"), "-o", str(tmp_path / "m.onl"), "--target", "anwser")
    assert done.returncode == 2
    assert done.stderr.endswith("has no column 'anwser' to be the target; did you mean 'answer'?\n")
