"""``onlearn stream``: the figures are those of ``onlearn.stream``, and the model goes on."""

from __future__ import annotations

import io
import json
import random
import sys
import warnings

import pytest

import onlearn
from onlearn import cli
from onlearn.models import open_model
from onlearn.streaming import DriftWarning


@pytest.fixture
def visits(tmp_path):
    """A file whose labels are turned around after 2,000 rows."""
    draw, lines = random.Random(0), ["id,size,colour,label"]
    for n in range(3000):
        size = draw.gauss(0, 1)
        lines.append(f"{n},{size:.4f},{draw.choice(['red', 'blue'])},{'small' if (size > 0) ^ (n < 2000) else 'big'}")
    path = tmp_path / "visits.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def records(out):
    return [json.loads(line) for line in out.splitlines()]


def test_the_figures_are_those_of_python(visits, tmp_path, run):
    found = records(run("stream", visits, "-o", tmp_path / "m.onl", "--json", "--every", 700, "--metric", "accuracy",
                        "--metric", "log_loss", "--window", 50, "--delay", 10))  # fmt: skip
    model = onlearn.Model()
    expected = list(onlearn.stream(visits, model, ["accuracy", "log_loss"], 700, 10, 50))
    assert [one["rows"] for one in found] == [700, 1400, 2100, 2800, 3000]
    for one, record in zip(found, expected, strict=True):
        assert (one["mean"], one["window"], one["faded"]) == (record.mean, record.window, record.faded)
        assert (one["scored"], one["learned"], one["pending"]) == (record.scored, record.learned, record.pending)
    assert found[-1]["notes"] == ["the features were chosen by the first 100 rows, which were not scored"]
    stored = open_model(tmp_path / "m.onl")
    assert stored.learner.coef_.tolist() == model.learner.coef_.tolist()


def test_records_are_lines(visits, tmp_path, run):
    out = run("stream", visits, "-o", tmp_path / "m.onl", err=f"the model is in {tmp_path / 'm.onl'}")
    assert [line.split(" rows,")[0] for line in out.splitlines()] == ["1,000", "2,000", "3,000"]
    assert "accuracy 0." in out
    assert run("stream", visits, "-o", tmp_path / "m.onl", "--quiet") == ""


def test_drift(visits, tmp_path, run):
    arguments = ["stream", visits, "-o", tmp_path / "m.onl", "--json", "--drift", "adwin"]
    last = records(run(*arguments, "--on-drift", "replace"))[-1]
    assert len(last["drifts"]) == 1 and 2000 < last["drifts"][0] < 2200 and last["warnings"]
    assert last["window"]["accuracy"] > 0.8
    with warnings.catch_warnings():
        warnings.simplefilter("always", DriftWarning)
        run(*arguments, err="onlearn: warning: drift: the mean loss has risen, as detected at row 2")


def test_a_model_goes_on(visits, tmp_path, run, kit):
    lines = visits.read_text().splitlines(keepends=True)
    (tmp_path / "a.csv").write_text("".join(lines[:1501]))
    (tmp_path / "b.csv").write_text("".join([lines[0], *lines[1501:]]))
    whole, part = tmp_path / "whole.onl", tmp_path / "part.onl"
    run("stream", visits, "-o", whole, "--quiet")
    run("stream", tmp_path / "a.csv", "-o", part, "--quiet")
    run("stream", tmp_path / "b.csv", "-o", part, "--resume", part, "--quiet")
    assert open_model(part).learner.coef_.tolist() == open_model(whole).learner.coef_.tolist()
    run("stream", kit.table_csv, "-o", tmp_path / "t.onl", "--resume", kit.table_onl, "--quiet")
    assert run("evaluate", tmp_path / "t.onl", kit.table_csv)


def test_standard_input(visits, tmp_path, run, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(visits.read_bytes())))
    assert records(run("stream", "-", "--format", "csv", "-o", tmp_path / "m.onl", "--json"))[-1]["rows"] == 3000


def test_regression_and_answers_by_key(tmp_path, run, kit):
    found = records(
        run("stream", kit.numbers_csv, "--target", "y", "--task", "regress", "-o", tmp_path / "m.onl", "--json")
    )
    assert found[-1]["mean"]["absolute_error"] < 10
    lines = ["id,size,label"]
    for n in range(200):
        lines += [f"{n},{n % 2},", f"{n},,{'ab'[n % 2]}"]
    (tmp_path / "q.csv").write_text("\n".join([*lines, "900,1,"]) + "\n")
    last = records(run("stream", tmp_path / "q.csv", "-o", tmp_path / "q.onl", "--delay", "id", "--json"))[-1]
    assert (last["rows"], last["learned"], last["scored"], last["pending"]) == (401, 200, 100, 1)
    assert last["mean"]["accuracy"] == 1.0


def test_what_is_refused(visits, tmp_path, refused, kit):
    output = tmp_path / "m.onl"
    assert "did you mean 'accuracy'" in refused("stream", visits, "-o", output, "--metric", "acuracy")
    assert "did you mean 'adwin'" in refused("stream", visits, "-o", output, "--drift", "adwyn")
    assert "did you mean 'reset'" in refused("stream", visits, "-o", output, "--on-drift", "rest")
    assert "neither classify nor regress" in refused("stream", visits, "-o", output, "--task", "sort")
    assert "without features" in refused("stream", visits, "-o", output, "--resume", kit.bare_onl)
    assert "was trained to classify" in refused(
        "stream", visits, "-o", output, "--resume", kit.table_onl, "--task", "regress"
    )
    assert "does not exist" in refused("stream", tmp_path / "none.csv", "-o", output)
    (tmp_path / "one.csv").write_text("a,label\n1,x\n2,x\n")
    assert "only one label" in refused("stream", tmp_path / "one.csv", "-o", output)
    assert not output.exists()


def test_ctrl_c_keeps_the_model(visits, tmp_path, capsys, monkeypatch):
    from onlearn.models.model import Model

    learn, count = Model.learn_one, [0]

    def interrupted(self, x, y, weight=1.0):
        count[0] += 1
        if count[0] == 50:
            raise KeyboardInterrupt
        return learn(self, x, y, weight)

    monkeypatch.setattr(Model, "learn_one", interrupted)
    assert cli.run(["stream", str(visits), "-o", str(tmp_path / "m.onl"), "--every", "60"]) == 130
    assert "stopped by Ctrl-C after 120 rows or more" in capsys.readouterr().err
    assert open_model(tmp_path / "m.onl").learner.n_seen_ == 149
