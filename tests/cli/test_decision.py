"""``predict --top``, ``--threshold`` and ``--positive``; ``evaluate --threshold`` and ``--best-threshold``."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

import onlearn
from onlearn import data
from onlearn.models import open_model


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


def jsonl(text):
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize(("model", "file"), [("table_onl", "table_csv"), ("text_onl", "text_jsonl")])
@pytest.mark.parametrize("k", [1, 2, 99])
def test_top_labels_in_both_formats(model, file, k, kit, run):
    opened = open_model(kit.__getattr__(model))
    X, _ = data.load(kit.__getattr__(file), **opened.reading)
    expected = opened.predict_top(X, k)
    arguments = "predict", kit.__getattr__(model), kit.__getattr__(file), "--top", k
    count = min(k, len(opened.labels))
    rows = table(run(*arguments))
    names = [f"{what}{n + 1}" for n in range(count) for what in ("label", "proba")]
    assert list(rows[0]) == ["id", "prediction", *names]
    for row, best in zip(rows, expected, strict=True):
        assert row["prediction"] == row["label1"] == best[0][0]
        assert [row[f"label{n + 1}"] for n in range(count)] == [label for label, _ in best]
        np.testing.assert_allclose([float(row[f"proba{n + 1}"]) for n in range(count)], [p for _, p in best])
    rows = jsonl(run(*arguments, "--scores", "--format-out", "jsonl"))
    for row, best in zip(rows, expected, strict=True):
        assert [one["label"] for one in row["top"]] == [label for label, _ in best]
        assert all(one.keys() == {"label", "proba", "score"} for one in row["top"])
        scores = [one["score"] for one in row["top"]]
        assert scores == sorted(scores, reverse=True)


def test_a_threshold_of_two_labels(kit, run):
    rows = table(run("predict", kit.text_onl, kit.text_jsonl, "--proba"))
    for positive, other in (("spam", "ham"), ("ham", "spam")):
        p = np.array([float(row[f"proba:{positive}"]) for row in rows])
        at = float(np.median(p))
        found = table(run("predict", kit.text_onl, kit.text_jsonl, "--threshold", at, "--positive", positive))
        assert [row["prediction"] for row in found] == np.where(p >= at, positive, other).tolist()
        report = json.loads(
            run("evaluate", kit.text_onl, kit.text_jsonl, "--threshold", at, "--positive", positive, "--json")
        )
        answers = np.array([row["prediction"] for row in found])
        _, gold = data.load(kit.text_jsonl)
        assert report["accuracy"] == np.mean(answers == gold)
        assert report["threshold"]["recall"] == np.mean(answers[gold == positive] == positive)
        assert report["threshold"]["positive"] == positive
    assert [row["prediction"] for row in table(run("predict", kit.text_onl, kit.text_jsonl, "--threshold", 0))] == [
        "spam"
    ] * 40


def test_no_label_below_the_threshold(kit, run):
    rows = table(run("predict", kit.table_onl, kit.table_csv, "--proba"))
    best = np.array([max(float(value) for name, value in row.items() if name.startswith("proba:")) for row in rows])
    at = float(np.median(best))
    arguments = "predict", kit.table_onl, kit.table_csv, "--threshold", at
    expected = [row["prediction"] if p >= at else None for row, p in zip(rows, best)]
    assert [row["prediction"] or None for row in table(run(*arguments))] == expected
    assert [row["prediction"] for row in jsonl(run(*arguments, "--format-out", "jsonl"))] == expected
    report = json.loads(run("evaluate", kit.table_onl, kit.table_csv, "--threshold", at, "--json"))
    assert report["rejected"] == expected.count(None)
    assert report["threshold"]["answered"] == pytest.approx(1 - expected.count(None) / 300)
    assert "answered" in run("evaluate", kit.table_onl, kit.table_csv, "--threshold", at)


def test_the_best_threshold(kit, run, tmp_path):
    file = tmp_path / "rare.csv"
    rng = np.random.default_rng(0)
    gold = rng.random(1500) < 0.1
    rows = [f"{x:.4f},{'yes' if one else 'no'}" for x, one in zip(rng.normal(size=1500) + 1.5 * gold, gold)]
    file.write_text("\n".join(["x,label", *rows]) + "\n")
    model = tmp_path / "m.onl"
    run("train", file, "-o", model, "-q", "--passes", 2)
    report = json.loads(run("evaluate", model, file, "--best-threshold", "f1", "--json"))
    best = report["best_threshold"]
    assert best["criterion"] == "f1" and best["positive"] == "yes"
    at = json.loads(run("evaluate", model, file, "--threshold", best["probability"], "--json"))
    for name in ("precision", "recall", "f1"):
        assert at["threshold"][name] == pytest.approx(best[name])
    assert best["f1"] > report["per_class"]["yes"]["f1"]
    assert "best threshold by cost(1,9)" in run("evaluate", model, file, "--best-threshold", "cost(1, 9)")

    said = json.loads(run("train", file, "-o", model, "--threshold", "f1", "--passes", 2, "--json", "--seed", 1))
    assert said["threshold"]["positive"] == "yes"
    kept = table(run("predict", model, file))
    given = table(run("predict", model, file, "--threshold", said["threshold"]["probability"]))
    assert kept == given
    assert json.loads(run("evaluate", model, file, "--json"))["threshold"]["f1"] > report["per_class"]["yes"]["f1"]
    run("train", file, "-o", model, "--resume", model, "-q")
    assert open_model(model).threshold.probability == said["threshold"]["probability"]


def test_what_is_refused(kit, refused):
    text, numbers, many = kit.text_onl, kit.numbers_onl, kit.table_onl
    assert "regression" in refused("predict", numbers, kit.numbers_csv, "--top", 2)
    assert "regression" in refused("predict", numbers, kit.numbers_csv, "--threshold", 0.5)
    assert "leave --proba out" in refused("predict", text, kit.text_jsonl, "--top", 2, "--proba")
    assert "--threshold" in refused("predict", text, kit.text_jsonl, "--positive", "spam")
    assert "did you mean 'spam'" in refused("predict", text, kit.text_jsonl, "--threshold", 0.1, "--positive", "spm")
    assert "two labels" in refused("predict", many, kit.table_csv, "--threshold", 0.1, "--positive", "rose")
    assert "two labels" in refused("evaluate", many, kit.table_csv, "--best-threshold", "f1")
    assert "is not f1" in refused("evaluate", text, kit.text_jsonl, "--best-threshold", "f3")
    refused("predict", text, kit.text_jsonl, "--threshold", 1.5)
    refused("predict", text, kit.text_jsonl, "--top", 0)


def test_taggers_have_no_such_options(refused, tmp_path):
    file, model = tmp_path / "a.conll", tmp_path / "t.onl"
    file.write_text("the DT\ndog NN\n\na DT\ncat NN\n" * 3)
    onlearn.train(file, model)
    for option in (("--top", 2), ("--threshold", 0.5), ("--positive", "NN")):
        assert "labels the tokens of sentences" in refused("predict", model, file, *option)
    assert "labels the tokens of sentences" in refused("evaluate", model, file, "--best-threshold", "f1")
