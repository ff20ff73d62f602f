"""``onlearn explain``: the parts are those of the model's own score."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import onlearn
from onlearn import data
from onlearn.features import Text
from onlearn.models import open_model
from sample_models import trained


def report(run, *arguments):
    found = json.loads(run("explain", *arguments, "--json"))
    sizes = [abs(part["contribution"]) for part in found["features"]]
    assert sizes == sorted(sizes, reverse=True)
    if len(sizes) == found["n_features"]:
        parts = sum(part["contribution"] for part in found["features"])
        assert parts + found["intercept"] == pytest.approx(found["total"], rel=1e-9)
        for part in found["features"]:
            assert part["value"] * part["weight"] == pytest.approx(part["contribution"], rel=1e-9)
    return found


def test_text(kit, run):
    found = report(run, kit.text_onl, "--text", "cheap pills, my friend")
    model = open_model(kit.text_onl)
    row = [{"text": "cheap pills, my friend"}]
    assert found["total"] == pytest.approx(float(model.scores(row)[0]), rel=1e-5)
    assert found["prediction"] == model.predict(row)[0]
    assert (found["favours"], found["against"]) == ("spam", "ham")
    parts = {part["feature"]: part["contribution"] for part in found["features"]}
    assert parts["cheap"] > 0 > parts["my"]
    assert found["probability"] == pytest.approx(model.predict_proba(row).max())


def test_several_classes_against_the_runner_up(kit, run):
    model = open_model(kit.table_onl)
    X, _ = data.load(kit.table_csv, id="key")
    for line in (2, 3, 4, 200):
        found = report(run, kit.table_onl, "--at", f"{kit.table_csv}:{line}")
        scores = model.scores(X)[line - 2]
        best, second = np.argsort(-scores)[:2]
        assert (found["prediction"], found["against"]) == (model.labels[best], model.labels[second])
        assert found["total"] == pytest.approx(scores[best] - scores[second], rel=1e-4, abs=1e-6)


def test_a_row_as_json(kit, run):
    found = report(run, kit.table_onl, '{"size": 0.3, "place": "high"}')
    assert {part["feature"] for part in found["features"]} == {"size", "place=high"}
    found = report(run, kit.table_onl, '{"place": "low"}')  # what is not there is missing
    assert {part["feature"] for part in found["features"]} == {"place=low"}


def test_regression_adds_up_to_the_prediction(kit, run):
    found = report(run, kit.numbers_onl, '{"a": 0.5, "b": 0.25}')
    expected = float(open_model(kit.numbers_onl).predict([{"a": 0.5, "b": 0.25}])[0])
    assert found["prediction"] == found["total"] == pytest.approx(expected, rel=1e-5)
    assert found["favours"] is None and found["probability"] is None
    assert "from these features" in run("explain", kit.numbers_onl, '{"a": 0.5, "b": 0.25}')


def test_amounts_add_up_as_printed_however_large_the_mean(kit, run, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.random((300, 2))
    file = tmp_path / "far.csv"
    file.write_text("\n".join(["a,b,y", *(f"{a:.4f},{b:.4f},{1e9 + 3 * a - b:.4f}" for a, b in x)]) + "\n")
    model, y = trained(file, task="regress"), 1e9 + 3 * x[:, 0] - x[:, 1]
    model.save(tmp_path / "far.onl")
    assert np.abs(model.predict({"a": x[:, 0], "b": x[:, 1]}) - y).mean() < 0.5 * np.std(y)
    out = run("explain", tmp_path / "far.onl", '{"a": 0.9, "b": 0.1}')
    *amounts, total = (float(line.split()[-1]) for line in out.splitlines()[4:] if line)
    assert len(amounts) == 3 and sum(amounts) == pytest.approx(total, abs=0.002, rel=0)
    assert float(out.split(",")[0]) == total


def test_lines_of_svmlight_and_vw(kit, run):
    for line in ("+1 1:1 3:2", "1:1 3:2", "1:1 3:2 99:1"):
        found = report(run, kit.sparse_onl, line)
        assert found["features"][0]["feature"] == "1" and found["n_features"] == 2
    assert "intercept" in run("explain", kit.sparse_onl, "--", "-1 1:1 3:2")
    for line in ("1 |a sun |b x:2", "|a sun |b x:2"):
        found = report(run, kit.named_onl, line)
        assert {part["feature"]: part["value"] for part in found["features"]} == {"a^sun": 1, "b^x": 2}


def test_a_learner_saved_from_python(kit, run):
    found = report(run, kit.bare_onl, "1:1 2:1")
    learner = onlearn.load(kit.bare_onl)
    row = np.zeros((1, 9))
    row[0, [1, 2]] = 1
    assert found["total"] == pytest.approx(float(learner.decision_function(row)[0]))


@pytest.mark.parametrize("learner", [onlearn.KNNClassifier(k=3), onlearn.NaiveBayes()])
def test_a_learner_saved_from_python_with_texts_for_labels(learner, run, tmp_path):
    X = np.eye(2)[np.arange(20) % 2]
    learner.fit(X, np.where(X[:, 0] > 0, "first", "second")).save(tmp_path / "m.onl")
    assert json.loads(run("explain", str(tmp_path / "m.onl"), "1:1", "--json"))["prediction"] == "second"


def test_for_people(kit, run):
    out = run("explain", kit.text_onl, "--text", "cheap pills and lunch with my friend", "--top", "2")
    assert "\x1b" not in out and "more features" in out and "intercept" in out and "total" in out
    assert out.splitlines()[0].startswith(("spam, with probability", "ham, with probability"))


def test_spaces_at_the_edge_of_a_name_are_seen(tmp_path, run):
    file = tmp_path / "names.csv"
    file.write_text("name,label\n" + "ann,f\ntom,m\n" * 20)
    trained(file, extractors=[Text("name", ngrams=None, chars=(2, 3))]).save(tmp_path / "m.onl")
    assert "'name:chars:nn '" in run("explain", tmp_path / "m.onl", '{"name": "ann"}')
    assert "'name:chars:nn '" in run("inspect", tmp_path / "m.onl")


def test_a_row_without_a_known_feature(kit, run):
    found = report(run, kit.text_onl, "--text", "xyzzy")
    assert found["features"] == [] and found["total"] == found["intercept"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["text.onl"], "what is to be explained is missing"),
        (["text.onl", "{}", "--text", "x"], "cannot go together"),
        (["table.onl", "some words"], "give a JSON object with the columns size, place"),
        (["text.onl", "{text: 1}"], "it is not JSON"),
        (["text.onl", '{"words": 1}'], "no column that the model knows: text"),
        (["table.onl", "--text", "x"], "its columns are size, place"),
        (["sparse.onl", "--text", "x"], "it takes a matrix"),
        (["sparse.onl", '{"1": 2}'], "give a line of its file"),
        (["sparse.onl", "+1 1:x"], "the row, column"),
        (["sparse.onl", ""], "ROW"),
        (["sparse.onl", "+1 1:1\n-1 2:1\n"], "more than one line"),
        (["text.onl", "--at", "text.jsonl"], "not a file and a line"),
        (["text.onl", "--at", "text.jsonl:0"], "not a file and a line"),
        (["text.onl", "--at", "text.jsonl:41"], "there is no row on line 41"),
        (["text.onl", "--at", "none.jsonl:1"], "does not exist"),
        (["text.onl", "--text", "x", "--format", "csv"], "--format"),
        (["voted.onl", "1:1"], "many hypotheses"),
        (["numbers.onl", '{"a": "many"}'], "is not a number"),
        (["none.onl", "--text", "x"], "there is no model file"),
    ],
)
def test_what_is_refused(arguments, reason, kit, refused, monkeypatch):
    monkeypatch.chdir(kit.folder)
    assert reason in refused("explain", *arguments)


def test_weights_of_regression_are_in_the_units_of_the_target(tmp_path, run):
    """``inspect`` and ``explain`` speak of one model."""
    rng = np.random.default_rng(0)
    points = rng.random((300, 2))
    rows = [f"{a:.4f},{b:.4f},{1000 + 300 * a - 200 * b:.3f}" for a, b in points]
    (tmp_path / "r.csv").write_text("\n".join(["a,b,y", *rows]) + "\n")
    run("train", tmp_path / "r.csv", "-o", tmp_path / "m.onl", "--task", "regress", "--scale", "none", "-q")
    told = json.loads(run("inspect", tmp_path / "m.onl", "--json"))
    found = json.loads(run("explain", tmp_path / "m.onl", '{"a": 1, "b": 1}', "--json"))
    weights = {one["feature"]: one["weight"] for one in told["top"]["target"]}
    assert weights == {one["feature"]: one["weight"] for one in found["features"]}
    assert weights["a"] > 100 and told["intercepts"] == [found["intercept"]]


def test_objects_within_a_row(tmp_path, run):
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({"st": {"a": n % 2 + n / 100}, "y": n % 2}) + "\n" for n in range(60)))
    model = trained(path)
    model.save(tmp_path / "a.onl")
    found = report(run, tmp_path / "a.onl", '{"st": {"a": 1.5}}')
    assert [part["feature"] for part in found["features"]] == ["st.a"]
    row = {"st": {"a": 1.5}}
    for rows in ([row], [{"st.a": 1.5}], pd.DataFrame([row])):
        assert model.scores(rows)[0] == pytest.approx(found["total"], rel=1e-6)


def test_texts_of_one_word_in_a_fasttext_file(tmp_path, run):
    """They are text, though they look like identifiers; and a row is the text as it is, with or without a label."""
    rng = np.random.default_rng(0)
    strands = ["".join(rng.choice(list("acgt"), 30)) for _ in range(60)]
    (tmp_path / "dna.txt").write_text("".join(f"__label__{'acg' in dna} {dna}\n" for dna in strands))
    trained = ["train", tmp_path / "dna.txt", "-o", tmp_path / "m.onl", "--json"]
    assert "cut into 2 to 5 characters" in json.loads(run(*trained))["notes"][-1]
    assert json.loads(run("data", "describe", tmp_path / "dna.txt", "--json"))["columns"]["text"]["role"] == "text"
    run(*trained, "--chars", "2-4")
    found = report(run, tmp_path / "m.onl", "acgt", "--top", 99)
    assert "chars:acg" in [part["feature"] for part in found["features"]]
    for same in (["--text", "acgt"], ["__label__True acgt"]):
        assert report(run, tmp_path / "m.onl", *same, "--top", 99) == found


def test_a_row_needs_no_weight(tmp_path, run):
    path, rng = tmp_path / "w.csv", np.random.default_rng(0)
    path.write_text("a,w,y\n" + "".join(f"{n % 2 + rng.random():.2f},{n % 3},{n % 2}\n" for n in range(60)))
    (tmp_path / "new.csv").write_text("a\n0.5\n")
    for task in ("classify", "regress"):
        trained(path, task=task, weight="w").save(tmp_path / "w.onl")
        found = report(run, tmp_path / "w.onl", '{"a": 0.5}')
        assert found == report(run, tmp_path / "w.onl", "--at", f"{tmp_path / 'new.csv'}:2")
        assert found == report(run, tmp_path / "w.onl", '{"a": 0.5, "w": 7}')


def test_a_row_is_read_as_files_are(tmp_path, run):
    """What stands for a missing value in a file does so in a row."""
    rows = [f"{n % 7 or '?'},{'NA' if n % 3 else 'x'},{'yes' if n % 2 else 'no'}" for n in range(60)]
    (tmp_path / "r.csv").write_text("\n".join(["num,cat,target", *rows]) + "\n")
    run("train", tmp_path / "r.csv", "-o", tmp_path / "m.onl", "--missing", "indicator", "-q")
    row = '{"num": "?", "cat": "NA"}'
    (tmp_path / "one.jsonl").write_text(row + "\n")
    by_file = run("explain", tmp_path / "m.onl", "--at", f"{tmp_path / 'one.jsonl'}:1", "--json")
    assert run("explain", tmp_path / "m.onl", row, "--json") == by_file
    assert {part["feature"] for part in json.loads(by_file)["features"]} == {"num=missing", "cat=missing"}
