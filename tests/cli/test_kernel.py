"""Kernels on the command line: train, and all that is done with the model."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import onlearn
from onlearn import KernelClassifier, cli
from onlearn.models.kernel_run import MemoryRows

ENDINGS = {"latin": ["us", "um", "it", "or"], "greek": ["os", "on", "ph", "ai"]}


def disc(path, rows=200, seed=0):
    """Points inside or outside of a circle, with a colour that says nothing."""
    rng = np.random.default_rng(seed)
    lines = ["x,y,colour,label"]
    for x, y in rng.uniform(-1, 1, (rows, 2)):
        lines.append(f"{x:.3f},{y:.3f},{rng.choice(['red', 'blue'])},{'in' if x * x + y * y < 0.5 else 'out'}")
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def words(path, rows=120, seed=0):
    rng = np.random.default_rng(seed)
    with open(path, "w") as file:
        for n in range(rows):
            kind = ["latin", "greek"][rng.integers(2)]
            row = {"label": kind, "word": "".join(rng.choice(ENDINGS[kind], 5)), "n": n}
            file.write(json.dumps(row) + "\n")
    return str(path)


def svm(path, X, y):
    lines = [f"{c} " + " ".join(f"{k}:{v:.6g}" for k, v in enumerate(x)) for x, c in zip(X, y, strict=True)]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Data, and a model of each kind."""
    made = tmp_path_factory.mktemp("kernel")
    disc(made / "a.csv")
    disc(made / "b.csv", seed=1)
    words(made / "w.jsonl")
    line = ["train", str(made / "a.csv"), "-o", str(made / "m.onl"), "--kernel", "poly(2)", "--quiet"]
    assert cli.run(line) == 0
    line = ["train", str(made / "w.jsonl"), "-o", str(made / "s.onl"), "--kernel", "substrings(2, 4)"]
    assert cli.run([*line, "--text", "word", "--quiet"]) == 0
    return made


def test_a_circle_is_learned(folder, run):
    """What no linear learner can tell apart; the report says what was learned."""
    out = folder / "n.onl"
    options = ["--kernel", "polynomial(2)", "--test", folder / "b.csv", "--holdout", "20%", "--passes", "4", "--json"]
    report = json.loads(run("train", folder / "a.csv", "-o", out, *options))
    assert report["kernel"] == "polynomial(2)"
    assert 0 < report["support_examples"] <= report["progressive"]["n"]
    assert report["progressive"]["n"] + report["holdout"]["n"] == 200
    assert report["examples"] == 4 * report["progressive"]["n"]
    assert report["progressive"]["accuracy"] < report["test"]["accuracy"]
    assert report["test"]["accuracy"] > 0.9
    assert report["features"] == 4
    model = onlearn.load(out)
    assert list(model.predict({"x": [0.0, 0.9], "y": [0.1, 0.9], "colour": ["red", "green"]})) == ["in", "out"]


def test_the_learner_is_the_one_of_python(tmp_path, run):
    """Learned in pieces and from a file, with choices of all kinds, it is what the class learns in the same order."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 3)).round(4)
    y = np.where((X**2).sum(1) < 2, "a", np.where(X[:, 0] > 0, "b", "c"))
    source, out = svm(tmp_path / "a.svm", X, y), tmp_path / "m.onl"
    choices = {"rule": "pa1(0.5)", "stabilizer": "last", "kernel": "gaussian(1.5)"}
    options = [part for name, value in choices.items() for part in (f"--{name}", value)]
    run("train", source, "-o", out, *options, "--passes", "2", "--seed", "3", "--cache-mb", "1", "--quiet")
    found = onlearn.load(out).learner
    peer = KernelClassifier(**choices, random_state=3)
    codes = np.searchsorted(["a", "b", "c"], y)
    for turn in range(2):
        order = np.random.default_rng([3, turn]).permutation(1500)
        peer.partial_fit(X[order], codes[order], classes=[0, 1, 2])
    assert (found.n_seen_, found.settings.cache_mb) == (3000, 1)
    assert found.n_mistakes_ == peer.n_mistakes_
    np.testing.assert_allclose(found.decision_function(X), peer.decision_function(X), atol=1e-9)


def test_rare_features_and_sorted_labels(tmp_path, run):
    """Features are pruned before the first example is learned from, and labels may come in any order."""
    rows = [
        {"label": label, "text": f"{word} once{n}"} for label, word in (("b", "sun"), ("a", "rain")) for n in range(30)
    ]
    source, out = tmp_path / "a.jsonl", tmp_path / "m.onl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = ["--kernel", "linear", "--text", "text", "--min-count", "5", "--stabilizer", "last"]
    report = json.loads(run("train", source, "-o", out, *options, "--json"))
    assert (report["features"], report["labels"]) == (2, ["a", "b"])
    assert list(onlearn.load(out).predict(["sun", "rain"])) == ["b", "a"]


def test_predict_evaluate_inspect(folder, run):
    lines = run("predict", folder / "m.onl", folder / "b.csv", "--proba").splitlines()
    assert lines[0] == "id,prediction,proba:in,proba:out"
    assert len(lines) == 201
    assert json.loads(run("evaluate", folder / "m.onl", folder / "b.csv", "--json"))["accuracy"] > 0.9
    found = json.loads(run("inspect", folder / "m.onl", "--json"))
    assert found["kernel"] == "polynomial(2)"
    assert found["support_examples"] == found["weights"]["all"] > 0
    assert found["top"]["in"][0].keys() == {"example", "weight"}
    shown = run("inspect", folder / "m.onl", "--top", "2")
    assert re.search(r"kernel +polynomial\(2\)", shown)
    assert re.search(rf"support examples +{found['support_examples']}\b", shown)


def test_explaining_by_support_examples(folder, run):
    """They add up to the score, as features do."""
    row = '{"x": 0.1, "y": 0.2, "colour": "red"}'
    found = json.loads(run("explain", folder / "m.onl", row, "--json", "--top", "1000"))
    model = onlearn.load(folder / "m.onl")
    table = {"x": [0.1], "y": [0.2], "colour": ["red"]}
    assert found["prediction"] == "in"
    assert found["n_examples"] == model.learner.n_support_ == len(found["examples"])
    assert found["total"] == pytest.approx(float(model.scores(table)[0]), rel=1e-3)
    assert found["total"] == pytest.approx(
        found["intercept"] + sum(one["kernel"] * one["weight"] for one in found["examples"]), rel=1e-6
    )
    assert all(
        a["contribution"] ** 2 >= b["contribution"] ** 2 for a, b in zip(found["examples"], found["examples"][1:])
    )
    shown = run("explain", folder / "m.onl", row, "--top", "2")
    assert "like" in shown
    assert "more examples" in shown
    assert re.search(r"colour=(red|blue)", shown)


def test_texts_as_they_are(folder, run):
    out = run("explain", folder / "s.onl", "--text", "usumitus", "--top", "1")
    assert out.startswith("latin")
    assert json.loads(run("evaluate", folder / "s.onl", folder / "w.jsonl", "--json"))["accuracy"] > 0.95
    assert "texts as they are" in run("inspect", folder / "s.onl")
    model = onlearn.load(folder / "s.onl")
    assert list(model.predict(["umumor", "phaion"])) == ["latin", "greek"]
    assert list(model.predict({"word": [None, "phaion"]}))[1] == "greek"
    with pytest.raises(ValueError, match="there is no column 'word'"):
        model.predict({"work": ["umumor"]})


def test_the_text_is_found_if_there_is_one(tmp_path, run):
    source = tmp_path / "a.jsonl"
    rows = [("spam", "win cash now, buy cheap pills"), ("ham", "see you at lunch tomorrow")] * 10
    told = [{"label": label, "said": f"{text}, the {n}th time", "n": n} for n, (label, text) in enumerate(rows)]
    source.write_text("".join(json.dumps(row) + "\n" for row in told))
    report = json.loads(run("train", source, "-o", tmp_path / "m.onl", "--kernel", "substrings(3, 3)", "--json"))
    assert "said is the text that is compared; nothing else is looked at" in report["notes"]
    assert report["features"] is None


def test_a_learner_of_strings_saved_from_python(tmp_path, run):
    model = KernelClassifier("substrings(2, 3)", random_state=0)
    model.fit(["umusit", "orusum", "phaios", "onosai"] * 3, ["l", "l", "g", "g"] * 3).save(tmp_path / "m.onl")
    source = tmp_path / "a.jsonl"
    source.write_text('{"text": "ususum"}\n{"text": "aiaiph"}\n')
    assert run("predict", tmp_path / "m.onl", source).splitlines()[1:] == ["1,l", "2,g"]


def test_weights_of_features_that_have_no_names(tmp_path, run, refused):
    model = KernelClassifier("polynomial(2)", representation="primal", random_state=0)
    model.fit(np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5), [0, 1, 1, 0] * 5).save(tmp_path / "m.onl")
    assert "have no names" in refused("explain", tmp_path / "m.onl", "0:1 1:1")
    assert "have no names" in json.loads(run("inspect", tmp_path / "m.onl", "--json"))["why_no_weights"]
    source = svm(tmp_path / "a.svm", [[1.0, 1.0], [1.0, 0.0]], [0, 1])
    assert json.loads(run("evaluate", tmp_path / "m.onl", source, "--json"))["n"] == 2


def test_a_voted_kernel_learner_is_not_explained(folder, run, refused):
    out = folder / "v.onl"
    run("train", folder / "a.csv", "-o", out, "--kernel", "gaussian", "--stabilizer", "voted", "--quiet")
    assert "many hypotheses" in refused("explain", out, '{"x": 0.1}')
    assert json.loads(run("evaluate", out, folder / "b.csv", "--json"))["accuracy"] > 0.8


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--kernel", "polynomal(2)"], "did you mean 'polynomial'"),
        (["--kernel", "gaussian(-1)"], "sigma must be"),
        (["--kernel", "gaussian(2"], "cannot read the kernel"),
        (["--kernel", "precomputed"], "use it from Python"),
        (["--kernel", "exp(1000*linear)"], "Invalid value: exp(1000.0*linear) of row"),
        (["--kernel", "linear", "--learner", "AROW"], "--kernel has no use with --learner AROW"),
        (["--kernel", "linear", "--task", "regress", "--target", "x", "--rule", "pa1"], "is for classification"),
        (["--kernel", "linear", "--task", "regress", "--multiclass", "true"], "--multiclass has no use in regression"),
        (["--kernel", "linear", "--prune-weights", "0.1"], "--prune-weights has no use with --kernel"),
        (["--kernel", "linear", "--geometry", "winnow"], "learns additively"),
        (["--kernel", "linear", "--rule", "pa7"], "unknown rule 'pa7'"),
        (["--kernel", "linear", "--budget", "0"], "--budget"),
        (["--kernel", "linear", "--budget-policy", "merge"], "--budget-policy is about --budget"),
        (["--kernel", "linear", "--cache-mb", "-1"], "--cache-mb"),
        (["--kernel", "conjunctions"], "works on rows of 0 and 1"),
        (["--budget", "10"], "--budget is about --kernel"),
        (["--cache-mb", "10"], "--cache-mb is about --kernel"),
        (["--kernel", "substrings", "--scale", "none"], "--scale has no use with substrings"),
        (["--kernel", "substrings", "--min-count", "2"], "--min-count has no use"),
        (["--kernel", "substrings"], "name its column with --text"),
        (["--kernel", "substrings", "--text", "color"], "there is no column 'color'; did you mean 'colour'?"),
        (["--kernel", "substrings", "--text", "x", "--text", "y"], "--text names 2 columns"),
        (["--resume", "m.onl", "--kernel", "linear"], "--kernel has no use with --resume"),
        (["--resume", "m.onl", "--budget", "9"], "--budget has no use with --resume"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(folder, refused, monkeypatch, options, says):
    monkeypatch.chdir(folder)
    assert says in refused("train", "a.csv", "-o", "none.onl", *options)
    assert not (folder / "none.onl").exists()


def test_bits_stay_bits(tmp_path, run):
    """Numbers are scaled by default, but not where a kernel counts columns of 0 and 1."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, (60, 3))
    lines = ["a,b,c,label", *(f"{a},{b},{c},{'yes' if a != b else 'no'}" for a, b, c in bits)]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    line = ["train", tmp_path / "a.csv", "-o", tmp_path / "m.onl", "--kernel", "conjunctions(2)", "--json"]
    report = json.loads(run(*line))
    assert "3 columns of 0 and 1 are not scaled, for conjunctions(2)" in " ".join(report["notes"])
    assert list(onlearn.load(tmp_path / "m.onl").predict({"a": [0, 1], "b": [1, 1], "c": [0, 0]})) == ["yes", "no"]


def test_a_text_that_cannot_be_normalised_is_named_with_its_line(folder, tmp_path, run, refused):
    source, out = words(tmp_path / "w.jsonl", rows=60), tmp_path / "m.onl"
    line = ["train", source, "-o", out, "--text", "word", "--kernel", "normalize(substrings(2, 3))", "--quiet"]
    run(*line)
    with open(source, "a") as file:
        file.write('{"label": "greek", "word": "", "n": 60}\n')
    told = r"w\.jsonl, line 61: an empty text"
    assert re.search(told, refused(*line)) and re.search(told, refused("predict", out, source))


def test_a_tree_that_cannot_be_read_is_named_with_its_line(tmp_path, run, refused):
    good, bad, out = tmp_path / "good.txt", tmp_path / "bad.txt", tmp_path / "m.onl"
    good.write_text("__label__a (S x)\n__label__b (S (NP y))\n" * 20)
    bad.write_text("__label__a (S x)\n__label__b (S (NP x)\n")
    line = ["--kernel", "trees(decay=0.4)", "-o", out, "--quiet"]
    run("train", good, *line)
    told = r"bad\.txt, line 2: not a tree for trees\(decay=0\.4\): position 0: this bracket is never closed"
    for command in (["train", bad, *line], ["train", good, "--test", bad, *line], ["predict", out, bad]):
        assert re.search(told, refused(*command))
    assert re.search(told, refused("evaluate", out, bad))


def test_strings_need_columns(folder, refused, tmp_path):
    source = svm(tmp_path / "a.svm", [[1.0], [2.0]], ["a", "b"])
    said = refused("train", source, "-o", tmp_path / "m.onl", "--kernel", "substrings")
    assert "compares texts, but the rows have no columns" in said


def test_rows_that_do_not_fit_into_memory():
    with pytest.raises(onlearn.data.DataError, match="this learner needs all of them at once"):
        MemoryRows(100).append(["a" * 80], np.zeros(1))


def test_ctrl_c_saves_what_was_learned(folder, tmp_path):
    out = tmp_path / "m.onl"
    line = [sys.executable, "-m", "onlearn.cli", "train", str(folder / "a.csv"), "-o", str(out), "--passes", "100000"]
    line += ["--kernel", "gaussian", "--checkpoint-every", "200"]
    child = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 120
    while not out.exists() and time.monotonic() < until:
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    _, heard = child.communicate(timeout=120)
    assert child.returncode == 130
    assert "stopped by Ctrl-C after" in heard
    model = onlearn.load(out)
    assert model.trained["unfinished"] == model.learner.n_seen_ > 0
    assert list(model.predict({"x": [0.0], "y": [0.1], "colour": ["red"]})) == ["in"]


def test_a_model_is_gone_on_with(folder, tmp_path, run):
    """Over the rows of another file, with a colour that the first did not have."""
    text = (folder / "b.csv").read_text().replace("red", "green")
    (tmp_path / "c.csv").write_text(text)
    out = tmp_path / "n.onl"
    report = json.loads(run("train", tmp_path / "c.csv", "-o", out, "--resume", folder / "m.onl", "--json"))
    assert (report["passes"], report["features"], report["progressive"]["n"]) == (1, 5, 200)
    assert report["progressive"]["accuracy"] > 0.85  # it knew already
    assert onlearn.load(out).learner.n_seen_ == onlearn.load(folder / "m.onl").learner.n_seen_ + 200


@pytest.mark.slow
def test_a_budget_holds(folder, tmp_path, run, refused):
    out = tmp_path / "m.onl"
    options = ["--kernel", "poly(2)", "--budget", "12", "--budget-policy", "remove(oldest)"]
    report = json.loads(run("train", folder / "a.csv", "-o", out, *options, "--json"))
    assert report["support_examples"] == 12
    assert json.loads(run("inspect", out, "--json"))["parameters"]["budget"] == 12
    assert json.loads(run("explain", out, '{"x": 0.1}', "--json"))["n_examples"] == 12
    said = refused(
        "train", folder / "a.csv", "-o", out, "--kernel", "poly(2)", "--budget", "9", "--budget-policy", "drop"
    )
    assert "drop" in said
