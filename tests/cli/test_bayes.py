"""``NaiveBayes`` on the command line: train, resume, predict, evaluate, inspect and explain; kinds of columns."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.naive_bayes import CategoricalNB, GaussianNB, MultinomialNB

import onlearn
from onlearn import cli, data
from onlearn.models.model import Model

WORDS = {"spam": ["cheap", "pills", "watch", "now"], "ham": ["lunch", "noon", "exam", "now"]}


def table(path, rows=400, seed=0, missing=True):
    """Two columns of numbers, one of them with zeros and gaps; a category with gaps; and a text."""
    rng = np.random.default_rng(seed)
    lines, made = ["size,depth,colour,note,label"], []
    for n in range(rows):
        label = ["spam", "ham"][int(rng.integers(2))]
        size, depth = rng.normal(1.0 if label == "spam" else -1.0, 2.0), float(rng.integers(0, 3))
        colour = rng.choice(["red", "blue", "green"], p=[0.6, 0.3, 0.1] if label == "spam" else [0.2, 0.3, 0.5])
        note = " ".join(rng.choice(WORDS[label] + ["the", "a"], 12))
        gap = missing and n % 7 == 3
        lines.append(f"{size:.3f},{'' if gap else depth},{'' if missing and n % 5 == 2 else colour},{note},{label}")
        made.append(
            (float(f"{size:.3f}"), None if gap else depth, None if missing and n % 5 == 2 else colour, note, label)
        )
    path.write_text("\n".join(lines) + "\n")
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("bayes")
    table(made / "a.csv")
    table(made / "b.csv", seed=1)
    line = ["train", str(made / "a.csv"), "-o", str(made / "m.onl"), "--learner", "NaiveBayes", "--quiet"]
    assert cli.run([*line, "--text", "note"]) == 0
    return made


def told(capsys, *arguments):
    assert cli.run([*map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_commands_know_it(folder, capsys):
    found = told(capsys, "train", folder / "a.csv", "-o", folder / "n.onl", "--learner", "bayes", "--text", "note")
    assert found["learner"].startswith("NaiveBayes(") and found["passes"] == 1
    assert found["described"]["features_by_kind"]["gaussian"] == 2
    assert found["progressive"]["n"] == 400 and 0.8 < found["progressive"]["accuracy"] <= 1.0
    tested = told(capsys, "evaluate", folder / "m.onl", folder / "b.csv")
    assert tested["accuracy"] > 0.9
    shown = told(capsys, "inspect", folder / "m.onl")
    assert shown["learner"] == "NaiveBayes" and "not linear" in shown["why_no_weights"]
    row = '{"size": 1.0, "depth": 0, "colour": "red", "note": "cheap pills"}'
    told_why = told(capsys, "explain", folder / "m.onl", row)
    assert told_why["prediction"] == "spam"
    parts = {part["feature"]: part for part in told_why["features"]}
    assert {"size", "depth", "colour=red", "note:cheap", "note:pills"} <= parts.keys() and parts["depth"][
        "value"
    ] == 0.0
    total = sum(part["contribution"] for part in told_why["features"]) + told_why["intercept"]
    assert total == pytest.approx(told_why["total"])
    assert cli.run(["predict", str(folder / "m.onl"), str(folder / "b.csv"), "-o", str(folder / "p.csv")]) == 0


def test_each_column_is_of_its_own_kind(folder):
    """The model is the product of scikit-learn's on each column, which skip what is missing."""
    rows = table(folder / "c.csv", seed=3)
    model = onlearn.train(folder / "c.csv", learner="NaiveBayes", text=["note"], ngrams="1")
    y = np.array([row[-1] for row in rows])
    labels = np.array(model.labels)
    logs = np.zeros((len(rows), 2))
    prior = np.log([(y == label).mean() for label in labels])
    for place in (0, 1):
        x = np.array([np.nan if row[place] is None else row[place] for row in rows])
        there = ~np.isnan(x)
        sizes = max(np.var([row[0] for row in rows]), np.var(x[there]))
        made = GaussianNB(var_smoothing=1e-9 * sizes / np.var(x[there]), priors=[0.5, 0.5]).fit(
            x[there, None], y[there]
        )
        logs[there] += made.predict_joint_log_proba(x[there, None])[:, np.argsort(np.argsort(labels))] - np.log(0.5)
    colours = ["blue", "green", "red"]
    there = np.array([row[2] is not None for row in rows])
    codes = np.array([[colours.index(row[2])] for row in rows if row[2] is not None])
    made = CategoricalNB(fit_prior=False).fit(codes, y[there])
    logs[there] += made.predict_joint_log_proba(codes) - np.log(0.5)
    words = sorted({word for row in rows for word in row[3].split()})
    counts = np.array([[row[3].split().count(word) for word in words] for row in rows])
    logs += MultinomialNB(fit_prior=False).fit(counts, y).predict_joint_log_proba(counts) - np.log(0.5)
    reader = data.read(folder / "c.csv", target="label")
    found = np.concatenate([model.scores(batch) for batch in reader])
    assert list(labels) == sorted(labels)
    joint = logs + prior
    np.testing.assert_allclose(found, joint[:, 1] - joint[:, 0], rtol=1e-4, atol=1e-4)  # features are float32


def test_kinds_of_columns_by_name(folder, capsys):
    learner = "NaiveBayes(kinds={'note': 'bernoulli', 'depth': 'gaussian'}, alpha=0.5)"
    found = told(capsys, "train", folder / "a.csv", "-o", folder / "k.onl", "--learner", learner, "--text", "note")
    assert found["described"]["features_by_kind"].keys() == {"gaussian", "multinomial", "bernoulli"}
    learner = "NaiveBayes(kind='multinomial')"
    line = ["train", str(folder / "a.csv"), "-o", str(folder / "x.onl"), "--learner", learner, "--quiet"]
    assert cli.run(line) == 2
    assert "Negative values" in capsys.readouterr().err


def test_resuming_adds_to_the_counts(folder, tmp_path):
    common = ["--quiet"]
    both = ["train", str(folder / "a.csv"), str(folder / "b.csv"), "-o", str(tmp_path / "both.onl"), "--text", "note"]
    assert cli.run([*both, "--learner", "NaiveBayes", *common]) == 0
    line = ["train", str(folder / "b.csv"), "--resume", str(folder / "m.onl"), "-o", str(tmp_path / "more.onl")]
    assert cli.run([*line, *common]) == 0
    one, other = onlearn.load(tmp_path / "both.onl").learner, onlearn.load(tmp_path / "more.onl").learner
    mine, theirs = one._pack()[1], other._pack()[1]
    for name in mine:
        if name.startswith("training.") and not name.endswith(("tally", "doubling")):
            assert mine[name].tobytes() == theirs[name].tobytes(), name


@pytest.mark.parametrize("learner", ["NaiveBayes", "NaiveBayes(kind='bernoulli')", "NaiveBayes(kind='gaussian')"])
def test_an_unfinished_run_ends_where_it_would_have(folder, tmp_path, learner):
    from onlearn.models.train_options import TrainOptions
    from onlearn.models.training import prepare

    def options(**more):
        return TrainOptions(sources=folder / "a.csv", text=["note"], **more)

    whole = onlearn.train(folder / "a.csv", learner=learner, text=["note"])
    run = prepare(options(learner=learner, output=tmp_path / "part.onl", checkpoint_every=150))

    def save():
        run.model.save(tmp_path / "part.onl")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run.go(None, save, 150)
    again = onlearn.train(folder / "a.csv", resume=tmp_path / "part.onl")
    (facts, mine), (others, theirs) = whole.learner._pack(), again.learner._pack()
    assert facts == others
    for name in mine:
        assert mine[name].tobytes() == theirs[name].tobytes(), name


def test_matrices_and_named_rows(tmp_path, capsys):
    rng = np.random.default_rng(0)
    svm, vw = tmp_path / "a.svm", tmp_path / "a.vw"
    with open(svm, "w") as one, open(vw, "w") as other:
        for _ in range(200):
            y = int(rng.integers(3))
            words = [2 * y + 1, 2 * y + 2, 7] if rng.random() < 0.8 else [7, 8]
            one.write(f"{y} " + " ".join(f"{k}:{rng.integers(1, 4)}" for k in words) + "\n")
            other.write(f"{y + 1} | " + " ".join(f"w{k}" for k in words) + "\n")
    for path in (svm, vw):
        found = told(capsys, "train", path, "-o", tmp_path / "m.onl", "--learner", "NaiveBayes", "--test", path)
        assert found["described"]["features_by_kind"].keys() == {"multinomial"}
        assert found["test"]["accuracy"] > 0.7
        shown = told(capsys, "inspect", tmp_path / "m.onl")
        assert all(listed for listed in shown["top"].values())


def test_models_learn_row_by_row(folder):
    model = onlearn.load(folder / "m.onl")
    assert isinstance(model, Model)
    row = {"size": 1.0, "depth": 0, "colour": "violet", "note": "brandnew words"}
    before = model.learner.n_features_in_
    model.partial_fit([row], ["spam"])
    assert model.learner.n_features_in_ == before + 4 and model.predict_one(row) == "spam"
    assert model.explain(row).prediction == "spam"


def test_kinds_of_single_columns_of_a_table(folder, capsys):
    line = "train", folder / "a.csv", "-o", folder / "k.onl", "--text", "note", "--learner"
    told(capsys, *line, "NaiveBayes(kinds={'depth': 'bernoulli', 'note': 'bernoulli'})")
    model = onlearn.load(folder / "k.onl")
    kinds = dict(zip(model.features.get_feature_names_out(), model.learner.kinds_))
    assert (kinds["size"], kinds["depth"], kinds["colour=red"]) == ("gaussian", "bernoulli", "multinomial")
    assert kinds["note:cheap"] == "bernoulli"


@pytest.mark.parametrize(
    ("kinds", "why"), [({"breadth": "gaussian"}, "none of colour, depth"), (["gaussian"], "a dict")]
)
def test_kinds_that_do_not_go_with_a_table(folder, capsys, kinds, why):
    arguments = ["train", str(folder / "a.csv"), "-o", str(folder / "k.onl"), "--learner", f"NaiveBayes(kinds={kinds})"]
    assert cli.run(arguments) != 0
    assert why in capsys.readouterr().err
