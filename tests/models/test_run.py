"""Training runs: what is learned does not depend on how the run is cut up."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

import onlearn
from onlearn import data
from onlearn.engine.tasks import Classification
from onlearn.models.plan import Plan
from onlearn.models.run import Run
from onlearn.models.run_reading import held_out

WORDS = ["good", "fine", "great", "awful", "dull", "poor", "film", "plot", "actor", "scene", "music", "end"]


def reviews(path, rows=300, seed=0):
    """Texts of two kinds, which share most words."""
    rng = np.random.default_rng(seed)
    with open(path, "w") as file:
        for _ in range(rows):
            kind = int(rng.integers(2))
            words = [*rng.choice(WORDS[6:], 6), *rng.choice(WORDS[:3] if kind else WORDS[3:6], 2)]
            file.write(json.dumps({"label": "pos" if kind else "neg", "text": " ".join(words)}) + "\n")
    return str(path)


def numbers(path, rows=400, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    with open(path, "w") as file:
        for _ in range(rows):
            x = rng.normal(size=5)
            k = int(np.argmax(x[:classes])) if classes > 2 else int(x[0] > 0)
            file.write(f"{k} " + " ".join(f"{j + 1}:{v:.4f}" for j, v in enumerate(x)) + "\n")
    return str(path)


def same(first, second):
    """Whether two models hold the same, bit for bit."""
    a, b = (model._pack()[1] for model in (first, second))
    assert a.keys() == b.keys()
    for key in a:
        np.testing.assert_array_equal(a[key], b[key], err_msg=key)


def test_a_text_classifier_with_nothing_said(tmp_path):
    run = Run(Plan([reviews(tmp_path / "a.jsonl")]))
    model = run.go()
    assert model.labels == ["neg", "pos"]
    assert any("text is text" in note for note in model.trained["notes"])
    assert list(model.predict(["a great film", "an awful plot"])) == ["pos", "neg"]
    path = tmp_path / "m.onl"
    model.save(path)
    again = onlearn.load(path)
    same(model, again)
    np.testing.assert_array_equal(model.predict_proba(["good"]), again.predict_proba(["good"]))


def test_a_text_in_a_column_that_is_read_as_numbers_is_told_with_its_file(tmp_path):
    path = tmp_path / "a.csv"
    cells = ["1", "2"] * 50 + ["12345678901234567890", "-1e999"]  # the first of these makes it a column of strings
    path.write_text("n,label\n" + "".join(f"{cell},{'pq'[n % 2]}\n" for n, cell in enumerate(cells)))
    with pytest.raises(
        data.DataError, match=r"a\.csv cannot be used with this model: column 'n', row 101: -inf is not"
    ):
        onlearn.train(path)


@pytest.mark.parametrize("passes", [1, 3])
@pytest.mark.parametrize("left_off", [1, 137, 300])
def test_an_unfinished_run_goes_on_as_if_never_stopped(tmp_path, passes, left_off):
    source = reviews(tmp_path / "a.jsonl")
    plan = Plan([source], passes=passes)
    whole = Run(plan).go()
    kept = []
    halted = Run(plan)

    def checkpoint():
        kept.append(halted.lessons.learned)
        halted.model.save(tmp_path / "half.onl")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        halted.go(checkpoint=checkpoint, every=left_off)
    assert kept == [left_off]
    resumed = Run(plan, onlearn.load(tmp_path / "half.onl"))
    resumed.go()
    same(whole, resumed.model)
    assert whole.learner.history_ == resumed.model.learner.history_


@pytest.mark.parametrize("passes", [None, 2])
def test_a_run_that_went_on_from_a_model_can_be_left_off_too(tmp_path, passes):
    """Its features are numbered after those of the model it went on from, when it is taken up again as well."""
    first, second = reviews(tmp_path / "a.jsonl"), reviews(tmp_path / "b.jsonl", seed=1)
    lines = (tmp_path / "b.jsonl").read_text().replace("film", "movie").replace("plot", "story")
    (tmp_path / "b.jsonl").write_text(lines)
    Run(Plan([first], passes=1)).go().save(tmp_path / "a.onl")
    whole = Run(Plan([second], passes=passes), onlearn.load(tmp_path / "a.onl")).go()
    halted = Run(Plan([second], passes=passes), onlearn.load(tmp_path / "a.onl"))

    def checkpoint():
        halted.model.save(tmp_path / "half.onl")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        halted.go(checkpoint=checkpoint, every=137)
    resumed = Run(Plan([second]), onlearn.load(tmp_path / "half.onl")).go()
    same(whole, resumed)
    assert whole.learner.history_ == resumed.learner.history_
    assert resumed.before is None


def test_passes_are_decided_when_all_rows_are_read(tmp_path):
    source = numbers(tmp_path / "a.svm", rows=300)
    plan = {"memory": 1000, "cache": False}  # too little to read all before learning

    halted = Run(Plan([source], **plan))

    def checkpoint():
        halted.model.save(tmp_path / "half.onl")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        halted.go(checkpoint=checkpoint, every=137)
    assert (halted.passes.count, halted.passes.ended) == (3, 0)
    whole, resumed = Run(Plan([source], **plan)), Run(Plan([source], **plan), onlearn.load(tmp_path / "half.onl"))
    saved = []
    same(whole.go(), resumed.go(checkpoint=lambda: saved.append(resumed.lessons.learned), every=137))
    assert saved == list(range(2 * 137, 6001, 137))  # not again where it was left off
    assert whole.passes.count == resumed.passes.count == 20
    assert Run(Plan([source], passes=2, **plan)).go().trained["passes"] == 2


def test_one_file_then_another_is_both_in_one_go(tmp_path):
    first, second = reviews(tmp_path / "a.jsonl"), reviews(tmp_path / "b.jsonl", seed=1)
    both = Run(Plan([first, second], passes=1)).go()
    Run(Plan([first], passes=1)).go().save(tmp_path / "a.onl")
    resumed = Run(Plan([second], passes=1), onlearn.load(tmp_path / "a.onl")).go()
    a, b = both._pack()[1], resumed._pack()[1]
    for key in a:
        if "doubling" not in key:
            np.testing.assert_array_equal(a[key], b[key], err_msg=key)


def test_how_the_file_is_packed_makes_no_difference(tmp_path):
    plain = numbers(tmp_path / "a.svm")
    with open(plain, "rb") as file, gzip.open(tmp_path / "b.svm.gz", "wb") as packed:
        packed.write(file.read())
    first = Run(Plan([plain], passes=2)).go()
    second = Run(Plan([str(tmp_path / "b.svm.gz")], passes=2)).go()
    same(first, second)


def test_small_memory_keeps_rows_in_a_file(tmp_path):
    source = numbers(tmp_path / "a.svm", rows=2000)
    model = Run(Plan([source], passes=3, memory=1000, cache=False)).go()
    X, y = data.load(source)
    assert np.mean(model.predict(X) == y) > 0.95
    assert [path.name for path in tmp_path.iterdir()] == ["a.svm"]


def test_classes_that_come_late(tmp_path):
    three = numbers(tmp_path / "c.svm", classes=3)
    model = Run(Plan([three])).go()
    assert model.labels == ["0", "1", "2"]
    with open(tmp_path / "d.svm", "w") as file:
        file.write("a 1:1\nb 2:1\n" * 10)
    late = str(tmp_path / "e.svm")
    with open(late, "w") as file:
        file.write("a 1:1\nc 3:1\n")
    with pytest.raises(data.DataError, match=r"e\.svm, line 2: the label 'c' is not one of .*classes="):
        Run(Plan([str(tmp_path / "d.svm"), late], passes=1)).go()
    for plan in ({"labels": ["a", "b", "c"], "passes": 1}, {"passes": 3}):  # by name, or by reading all before learning
        assert Run(Plan([str(tmp_path / "d.svm"), late], **plan)).go().labels == ["a", "b", "c"]


def test_rows_sorted_by_label(tmp_path):
    numbers(tmp_path / "a.svm", classes=3)
    lines = sorted((tmp_path / "a.svm").read_text().splitlines(True))
    (tmp_path / "sorted.svm").write_text("".join(lines))
    model = Run(Plan([str(tmp_path / "sorted.svm")], passes=3, memory=1000, cache=False)).go()
    assert any("come in an order" in note for note in model.trained["notes"])
    assert model.labels == ["0", "1", "2"]
    X, y = data.load(str(tmp_path / "a.svm"))
    assert np.mean(model.predict(X) == y) > 0.9


def test_a_pass_that_was_cut_short_is_none_of_the_next_run(tmp_path):
    first, second = reviews(tmp_path / "a.jsonl"), reviews(tmp_path / "b.jsonl", rows=100, seed=1)
    halted = Run(Plan([first], passes=1))

    def checkpoint():
        halted.model.save(tmp_path / "half.onl")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        halted.go(checkpoint=checkpoint, every=137)
    run = Run(Plan([second], passes=1), onlearn.load(tmp_path / "half.onl"))
    model = run.go()
    assert any("other data" in note for note in run.report.notes)
    assert run.report.progressive()["seen"] == 100
    assert [entry["seen"] for entry in model.learner.history_["passes"]] == [137, 100]


@pytest.mark.parametrize("extra", [{"min_count": 2}, {"holdout": 0.3}])
def test_unfinished_runs_of_other_kinds(tmp_path, extra):
    source = reviews(tmp_path / "a.jsonl")
    whole = Run(Plan([source], passes=2, **extra)).go()
    halted = Run(Plan([source], passes=2, **extra))

    def checkpoint():
        halted.model.save(tmp_path / "half.onl")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        halted.go(checkpoint=checkpoint, every=250)
    same(whole, Run(Plan([source]), onlearn.load(tmp_path / "half.onl")).go())


def test_one_label_only(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1\n1 2:1\n")
    with pytest.raises(data.DataError, match="only one label, '1'"):
        Run(Plan([str(tmp_path / "a.svm")])).go()


def test_a_long_label_is_not_quoted_as_a_whole(tmp_path):
    (tmp_path / "a.csv").write_text("label,x\n" + f"{'long' * 1000},1\n" * 3)
    with pytest.raises(data.DataError, match="only one label") as caught:
        Run(Plan([str(tmp_path / "a.csv")])).go()
    assert len(str(caught.value)) < 500


def test_held_out_rows_are_not_learned_from(tmp_path):
    source = numbers(tmp_path / "a.svm")
    run = Run(Plan([source], passes=1, holdout=0.25))
    model = run.go()
    held = sum(map(len, run.reading.held_out_batches()))
    assert model.learner.n_seen_ + held == 400
    assert 60 < held < 140
    np.testing.assert_array_equal(held_out(0, 100, 0.3, 5)[40:], held_out(40, 60, 0.3, 5))


def test_features_that_are_rare_are_left_out(tmp_path):
    with open(tmp_path / "a.jsonl", "w") as file:
        for n in range(40):
            file.write(json.dumps({"label": n % 2, "text": f"{'yes' if n % 2 else 'no'} word{n} it is so"}) + "\n")
    model = Run(Plan([str(tmp_path / "a.jsonl")], min_count=2, text={"ngrams": (1, 1)})).go()
    assert sorted(model.features.vocabulary_.names()) == ["is", "it", "no", "so", "yes"]
    assert list(model.predict(["yes it is", "no it is"])) == ["1", "0"]


def test_weights_that_are_small_are_let_go(tmp_path):
    plan = Plan([reviews(tmp_path / "a.jsonl")], prune_weights=0.2)
    whole = Run(Plan([reviews(tmp_path / "a.jsonl")])).go()
    model = Run(plan).go()
    weights, _ = model.weights()
    assert 0 < weights.shape[1] < whole.weights()[0].shape[1]
    assert np.abs(weights).max(axis=0).min() > 0.2
    assert list(model.predict(["good fine great"])) == ["pos"]


def test_regression(tmp_path):
    rng = np.random.default_rng(0)
    with open(tmp_path / "a.csv", "w") as file:
        file.write("size,colour,price\n")
        for _ in range(2000):
            size, red = rng.normal(), rng.integers(2)
            file.write(f"{size:.3f},{'red' if red else 'blue'},{5000 + 300 * size + 100 * red:.1f}\n")
    model = Run(Plan([str(tmp_path / "a.csv")], task="regress", reading={"target": "price"}, passes=5)).go()
    rows = [{"size": 1.0, "colour": "red"}, {"size": 0.0, "colour": "blue"}]
    np.testing.assert_allclose(model.predict(rows), [5400, 5000], atol=30)


def test_columns_that_are_not_there(tmp_path):
    with pytest.raises(ValueError, match="there is no column 'sise'; there are text"):
        Run(Plan([reviews(tmp_path / "a.jsonl")], roles={"sise": "numeric"})).go()
    with pytest.raises(ValueError, match="have no use here"):
        Run(Plan([numbers(tmp_path / "a.svm")], text={"ngrams": (1, 2)})).go()


def test_a_file_without_labels_is_read_as_the_one_learned_from(tmp_path):
    rng = np.random.default_rng(0)
    rows = [(f"{rng.normal():.3f}", "red" if rng.integers(2) else "blue") for _ in range(200)]
    (tmp_path / "a.csv").write_text("".join(f"{x},{c},{'yes' if c == 'red' else 'no'}\n" for x, c in rows))
    (tmp_path / "b.csv").write_text("0.5,red\n-1,blue\n")
    model = Run(Plan([str(tmp_path / "a.csv")])).go()
    assert model.reading["target"] == "c2"
    assert model.reading["header"] is False
    (batch,) = model.read(str(tmp_path / "b.csv"))
    assert list(model.predict(batch)) == ["yes", "no"]


@pytest.mark.parametrize("weighted", [False, True])
def test_a_checkpoint_costs_no_look_at_all_labels(tmp_path, monkeypatch, weighted):
    path = tmp_path / "a.vw"
    path.write_text("".join(f"{n % 2 * 2 - 1} {1 + weighted * (n % 3)} |a w{n % 5} x:{n}\n" for n in range(400)))
    whole = Run(Plan([str(path)], passes=3)).go()
    sizes, numbers = [], Classification.numbers

    def watched(self, y, weight):
        sizes.append((len(y), len(weight)))
        return numbers(self, y, weight)

    monkeypatch.setattr(Classification, "numbers", watched)
    cut_up = Run(Plan([str(path)], passes=3)).go(checkpoint=lambda: None, every=7)
    assert max(sizes) == (7, 7) and sum(size for size, _ in sizes) == 1200
    same(whole, cut_up)


def test_rows_from_python_are_taken_as_files_are(tmp_path):
    rng = np.random.default_rng(0)
    cells = [(rng.choice(["31", "54", "?"]), rng.choice(["clerk", "NA"]), rng.choice(["a", "b"])) for _ in range(100)]
    path = tmp_path / "a.csv"
    path.write_text("age,job,label\n" + "".join(",".join(row) + "\n" for row in cells))
    indicated = {"missing": "indicator"}
    model = Run(Plan([str(path)], passes=1, number=indicated, category=indicated)).go()
    written = np.concatenate([model.scores(batch) for batch in model.read(path)])
    spoken = [{"age": age, "job": job} for age, job, _ in cells]
    np.testing.assert_array_equal(model.scores(spoken), written)
    unknown = [
        {"age": age if age != "?" else None, "job": job if job != "NA" else float("nan")} for age, job, _ in cells
    ]
    np.testing.assert_array_equal(model.scores(unknown), written)
    with pytest.raises(TypeError, match="put the dict of a row in a list"):
        model.predict({"age": 31.0, "job": "clerk"})
    with pytest.raises(ValueError, match="there are no rows"):
        model.predict([])
    assert repr(model) == "<Model of 2 labels (a, b) by OnlineClassifier, from 4 features of a table>"


def test_the_order_of_a_file_does_not_change_the_scales(tmp_path):
    """Numbers of a small file are scaled by all rows, also those in its first batches."""
    rng = np.random.default_rng(0)
    sizes = np.sort(rng.gamma(2.0, 10.0, 3000))
    labels = np.where(rng.random(3000) < 1 / (1 + np.exp(20 - sizes)), "large", "small")
    path = tmp_path / "sorted.csv"
    path.write_text("size,label\n" + "".join(f"{x:.4f},{y}\n" for x, y in zip(sizes, labels)))
    run = Run(Plan([str(path)], number={"scale": "standard"}, reading={"block_size": 1 << 12}, passes=2))
    seen = [X.toarray()[:, 0] for X, _, _ in run.reading.examples()]
    values = np.concatenate(seen)
    assert len(seen) > 5
    np.testing.assert_allclose([values.mean(), values.std()], [0.0, 1.0], atol=1e-3)
    np.testing.assert_allclose(values, (sizes - sizes.mean()) / sizes.std(), atol=1e-3)
