"""Several labels a row, from files to predictions: every format, resuming, new labels, and scikit-learn's figures."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

import onlearn
from onlearn import data
from onlearn.data.label_sets import labels_in, set_name
from onlearn.models import Model, open_model
from onlearn.models.multilabel_evaluation import MultilabelEvaluation

WORDS = {"a": ["apple", "tree"], "b": ["boat", "sea"], "c": ["car", "road"]}
NUMBERS = {"a": "1", "b": "2", "c": "10"}


def rows_of(count=150, seed=0, labels="abc"):
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        mine = [label for label in labels if rng.random() < 0.4]
        words = [*(str(rng.choice(WORDS[label])) for label in mine), *rng.choice(["the", "of", "and"], 2).tolist()]
        made.append((mine, " ".join(words)))
    return [(["b", "a"], "apple boat"), *made]


ROWS = rows_of()
TEXTS = [text for _, text in ROWS]


def written(path, rows=ROWS):
    """A file of these rows in the format of its extension."""
    kind = path.suffix
    if kind == ".txt":
        lines = [f"{' '.join('__label__' + one for one in labels)} {text}" for labels, text in rows]
    elif kind == ".jsonl":
        lines = [json.dumps({"text": text, "label": labels}) for labels, text in rows]
    elif kind == ".csv":
        lines = ["text,label", *(f"{text},{' ;'.join(labels)}" for labels, text in rows)]
    elif kind == ".vw":
        lines = [f"{','.join(NUMBERS[one] for one in labels)} | {text}" for labels, text in rows]
    elif kind == ".svm":
        every = sorted({word for _, text in ROWS for word in text.split()})
        lines = []
        for labels, text in rows:
            features = sorted({every.index(word) + 1 for word in text.split()})
            lines.append(f"{','.join(NUMBERS[one] for one in labels)} {' '.join(f'{n}:1' for n in features)}")
    else:
        import pyarrow as pa
        from pyarrow import parquet

        parquet.write_table(pa.table({"text": [t for _, t in rows], "label": [one for one, _ in rows]}), path)
        return path
    path.write_text("\n".join(lines) + "\n")
    return path


FORMATS = [".txt", ".jsonl", ".csv", ".vw", ".svm", ".parquet"]


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format(kind, tmp_path):
    path = written(tmp_path / f"rows{kind}")
    more = {"label_separator": ";"} if kind == ".csv" else {}
    names = NUMBERS if kind in (".vw", ".svm") else dict.fromkeys("abc") | {k: k for k in "abc"}
    _, y = data.load(path, task="multilabel", **more)
    assert [sorted(one) for one in y] == [sorted(names[label] for label in labels) for labels, _ in ROWS]
    model = onlearn.train(path, tmp_path / "m.onl", passes=4, **more)
    assert model.task == "multilabel"
    assert model.labels == (["1", "2", "10"] if kind in (".vw", ".svm") else ["a", "b", "c"])
    X, _ = data.load(path, labels="optional", **model.reading, task="multilabel")
    if kind != ".vw":  # named rows are for readers only
        assert model.score(X, y) > 0.85
        found = model.predict_proba(X)
        assert found.shape == (len(ROWS), 3)
        again = onlearn.load(tmp_path / "m.onl")
        np.testing.assert_array_equal(again.predict_proba(X), found)
    with open_model(tmp_path / "m.onl").read(path) as reader:
        report = onlearn.models.evaluate(model, reader).report()
    assert report["micro_f1"] > 0.9
    assert report["n"] == len(ROWS)


@given(st.lists(st.text("ab ,;", max_size=4), max_size=4), st.sampled_from([",", ";", ", "]))
@settings(max_examples=60, deadline=None)
def test_names_of_sets(labels, separator):
    expected = sorted({part.strip() for label in labels for part in label.split(separator)} - {""})
    assert list(labels_in(set_name(separator.join(labels), separator))) == expected


def test_one_label_a_row_is_still_one(tmp_path):
    path = tmp_path / "one.txt"
    path.write_text("__label__a x y\n__label__b z w\n" * 5)
    assert onlearn.train(path).task == "classify"
    model = onlearn.train(path, task="multilabel")
    assert model.predict(["x y", "z w"]).tolist() == [["a"], ["b"]]
    numbers = tmp_path / "numbers.svm"
    numbers.write_text("1 1:1\n-1 2:1\n" * 5)
    assert onlearn.train(numbers).task == "classify"


def test_each_label_is_that_of_a_binary_run(tmp_path):
    """The model of one label, taken out, is the model of a file that says whether a row has it."""
    path = written(tmp_path / "rows.jsonl")
    model = onlearn.train(path, learner="AROW", passes=3)
    for place, label in enumerate(model.labels):
        binary = tmp_path / "binary.jsonl"
        rows = [json.dumps({"text": text, "label": str(int(label in labels))}) for labels, text in ROWS]
        binary.write_text("\n".join(rows) + "\n")
        alone = onlearn.train(binary, learner="AROW", passes=3)
        np.testing.assert_array_equal(model.scores(TEXTS)[:, place], alone.scores(TEXTS))
        np.testing.assert_allclose(model.predict_proba(TEXTS)[:, place], alone.predict_proba(TEXTS)[:, 1], rtol=1e-6)


def test_resumed_runs_and_new_labels(tmp_path):
    first = written(tmp_path / "first.jsonl", rows_of(100, 1, "ab"))
    second = written(tmp_path / "second.jsonl", rows_of(200, 2, "abc"))
    onlearn.train(first, tmp_path / "m.onl", passes=2, text="text")
    model = onlearn.train(second, tmp_path / "m.onl", resume=tmp_path / "m.onl", passes=3)
    assert model.task == "multilabel"
    assert model.labels == ["a", "b", "c"]
    assert model.score(TEXTS, [labels for labels, _ in ROWS]) > 0.9
    assert model.report_["progressive"]["n"] == 201


def test_a_checkpoint_goes_on_to_the_same_model(tmp_path, monkeypatch):
    path = written(tmp_path / "rows.jsonl")
    whole = onlearn.train(path, passes=3)
    from onlearn.models.passes import Lessons

    usual, calls = Lessons.learn, []

    def stopping(self, *arguments, **named):
        usual(self, *arguments, **named)
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Lessons, "learn", stopping)
    with pytest.raises(KeyboardInterrupt):
        onlearn.train(path, tmp_path / "m.onl", passes=3, checkpoint_every=100)
    monkeypatch.undo()
    resumed = onlearn.train(path, tmp_path / "m.onl", resume=tmp_path / "m.onl")
    np.testing.assert_array_equal(resumed.scores(TEXTS), whole.scores(TEXTS))


def test_partial_fit_from_lists():
    model = Model().partial_fit(TEXTS[:60], [labels for labels, _ in ROWS[:60]])
    assert model.task == "multilabel"
    model.partial_fit(["zebra stripes"] * 5, [["z"]] * 5).learn_one("zebra apple", ["z", "a"])
    assert model.labels == ["a", "b", "c", "z"]
    assert "z" in model.predict_one("zebra stripes zebra")
    assert model.predict(["boat on the sea"]).tolist() == [["b"]]
    assert model.score_one("boat").keys() == model.predict_proba_one("boat").keys() == {*model.labels}
    assert model.predict_top(["boat"], 2)[0][0][0] == "b"
    with pytest.raises(ValueError, match="'a' in row 0, which is not a list"):
        model.partial_fit(["apple"], ["a"])
    with pytest.raises(ValueError, match="not explained"):
        model.explain("apple")
    fixed = Model().partial_fit(TEXTS[:9], [[] for _ in range(9)], classes=["a", "b"])
    assert fixed.predict(["apple"]).tolist() == [[]]


def test_thresholds_are_those_of_every_label(tmp_path):
    model = onlearn.train(written(tmp_path / "rows.jsonl"), passes=1)
    proba = model.predict_proba(TEXTS)
    for at in (0.01, 0.3, 0.99):
        model.set_threshold(at)
        expected = [[label for label, p in zip(model.labels, row) if p >= at] for row in proba]
        assert model.predict(TEXTS).tolist() == expected
    model.save(tmp_path / "m.onl")
    assert onlearn.load(tmp_path / "m.onl").predict(TEXTS).tolist() == expected
    with pytest.raises(ValueError, match="it may have several"):
        model.set_threshold(0.5, "a")
    for holdout in (None, 0.3):
        chosen = onlearn.train(tmp_path / "rows.jsonl", passes=1, threshold="f1", holdout=holdout)
        assert 0 < chosen.threshold.probability < 1
        assert chosen.threshold.positive is None


def sample(rows, labels, seed):
    rng = np.random.default_rng(seed)
    gold = rng.random((rows, labels)) < 0.4
    proba = np.clip(0.5 * rng.random((rows, labels)) + 0.4 * gold, 0, 1)
    return gold, proba > 0.45, proba


@pytest.mark.parametrize("labels", [1, 2, 6])
def test_figures_are_those_of_scikit_learn(labels):
    gold, predicted, proba = sample(200, labels, labels)
    evaluation = MultilabelEvaluation([str(k) for k in range(labels)])
    for some in np.split(np.arange(200), [30, 31, 120]):
        evaluation.add(gold[some], predicted[some], proba[some])
    report = evaluation.report()
    assert report["subset_accuracy"] == pytest.approx(np.mean((gold == predicted).all(axis=1)))
    assert report["hamming_loss"] == pytest.approx(np.mean(gold != predicted))
    assert report["log_loss"] == pytest.approx(metrics.log_loss(gold.ravel(), proba.ravel()))
    for k in evaluation.top:
        best = np.argsort(-proba, axis=1)[:, :k]
        assert report[f"precision_at_{k}"] == pytest.approx(np.take_along_axis(gold, best, axis=1).mean())
    if labels == 1:
        assert report["micro_f1"] == pytest.approx(metrics.f1_score(gold[:, 0], predicted[:, 0]))
        return
    assert report["subset_accuracy"] == metrics.accuracy_score(gold, predicted)
    assert report["hamming_loss"] == pytest.approx(metrics.hamming_loss(gold, predicted))
    for average in ("micro", "macro"):
        assert report[f"{average}_f1"] == pytest.approx(metrics.f1_score(gold, predicted, average=average))
    each = metrics.precision_recall_fscore_support(gold, predicted)
    for k in range(labels):
        mine = report["per_class"][str(k)]
        for name, values in zip(("precision", "recall", "f1", "support"), each):
            assert mine[name] == pytest.approx(values[k])
    assert json.loads(json.dumps(report)) == report


def test_labels_that_the_model_does_not_know(tmp_path):
    model = onlearn.train(written(tmp_path / "rows.jsonl"), passes=3)
    other = written(tmp_path / "other.jsonl", [(["a", "new"], "apple tree"), (["b"], "boat sea")])
    with model.read(other) as reader:
        report = onlearn.models.evaluate(model, reader).report()
    assert report["unknown_labels"] == {"new": 1}
    assert report["subset_accuracy"] == 0.5
    assert report["micro_recall"] == pytest.approx(2 / 3)
    with pytest.raises(data.DataError, match="the label 'c' is not one of the labels known"):
        onlearn.train(tmp_path / "rows.jsonl", task="multilabel", classes=["a", "b"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (dict(multiclass="true"), "multiclass= has no use"),
        (dict(learner="SVC"), "must be a linear classifier"),
        (dict(learner="OnlineRegressor"), "it is not for task=multilabel"),
        (dict(task="classify", label_separator=";"), "has no use with task=classify"),
        (dict(threshold=0.5, positive="a"), "positive= has no use"),
    ],
)
def test_what_is_refused(options, said, tmp_path):
    path = written(tmp_path / "rows.jsonl")
    with pytest.raises(onlearn.errors.PlanError, match=said):
        onlearn.train(path, **{"task": "multilabel", **options})


def test_bad_rows_of_several_labels(tmp_path):
    path = tmp_path / "rows.txt"
    path.write_text("__label__a __label__b apple boat\n__label__a __label__ tree\n__label__b sea\n" * 4)
    model = onlearn.train(path, max_bad="50%")
    assert model.report_["bad_rows"] == 4
    assert model.report_["rows"] == 8
