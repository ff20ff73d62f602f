"""Streams through ``Model``: raw rows in memory and in files, features chosen by the first rows, drift, resumption."""

import random
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest

import onlearn
from onlearn import data, stream
from onlearn.models.model import Model

CHANGE = 1500


def mails(count, seed=0, change=10**9):
    """Texts whose first word tells the label; after the change, the other one."""
    draw = random.Random(seed)
    for n in range(count):
        spam = draw.random() < 0.5
        words = [draw.choice(["cheap", "free"] if spam else ["lunch", "meeting"])]
        words += [f"word{draw.randint(0, 20)}" for _ in range(3)]
        yield " ".join(words), "spam" if spam ^ (n >= change) else "ham"


def table(count, seed=0):
    """The lines of a CSV file."""
    draw = random.Random(seed)
    lines = ["id,size,colour,label"]
    for n in range(count):
        size = draw.gauss(0, 1)
        lines.append(f"r{n},{size:.3f},{draw.choice(['red', 'blue', ''])},{'big' if size > 0 else 'small'}")
    return "\n".join(lines) + "\n"


def last(source, model, **options):
    *_, record = stream(source, model, **options)
    return record


def same(one, other):
    """Whether two models would write the same file, but for how they read."""
    (facts, arrays), (others, further) = one._pack(), other._pack()
    for found in (facts, others):
        found["model"].pop("reading"), found["model"].pop("trained")
    assert repr(facts) == repr(others)
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, further[name], err_msg=name)


def test_the_first_rows_choose_the_features():
    rows, model, other = list(mails(300)), Model(), Model()
    record = last(rows, model)
    texts, labels = zip(*rows)
    other.partial_fit(list(texts[:100]), labels[:100])
    right = 0
    for text, label in rows[100:]:
        right += other.predict([text])[0] == label
        other.partial_fit([text], [label])
    same(model, other)
    assert (record.rows, record.scored, record.learned) == (300, 200, 300)
    assert record.mean["accuracy"] == right / 200
    assert record.notes == ("the features were chosen by the first 100 rows, which were not scored",)


def test_few_rows_and_rows_of_one_label():
    assert last(list(mails(20)), model := Model()).learned == 20
    assert model.predict(["cheap"]).tolist() == ["spam"]
    rows = [("lunch", "ham")] * 150 + list(mails(150))
    record = last(rows, Model())
    assert 151 <= record.rows - record.scored <= 170
    with pytest.raises(ValueError, match="only one label"):
        last([("lunch", "ham")] * 30, Model())


def test_labels_that_are_numbers_are_those_of_files():
    model = Model()
    record = last([(np.array([n % 2, 1.0]), n % 2) for n in range(200)], model)
    assert model.labels == ["0", "1"] and record.mean["accuracy"] == 1.0


def test_sparse_rows_and_regression():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    model = Model()
    model.task = "regress"
    record = last(zip(X, (X[:, 0] * 5 + 100).tolist()), model, metrics=["absolute_error", "squared_error"])
    assert record.scored == 300 and record.window["absolute_error"] < 5


@pytest.mark.parametrize("stop", [100, 150, 299])
def test_a_stream_that_is_stopped_saved_loaded_and_goes_on(tmp_path, stop):
    rows, whole, part = list(mails(300)), Model(), Model()
    last(rows, whole)
    last(rows[:stop], part)
    part.save(tmp_path / "m.onl")
    loaded = onlearn.load(tmp_path / "m.onl")
    last(rows[stop:], loaded)
    same(loaded, whole)


@pytest.mark.parametrize("on_drift", ["reset", "replace"])
def test_drift(on_drift):
    model = Model()
    record = last(mails(2000, change=CHANGE), model, drift="adwin", on_drift=on_drift)
    assert len(record.drifts) == 1 and CHANGE < record.drifts[0] <= CHANGE + 150
    since = record.drifts[0] if on_drift == "reset" else record.warnings[-1]
    assert model.learner.n_seen_ == 2000 - since + 1
    assert model.predict(["cheap"]).tolist() == ["ham"]


# ------------------------------------------------------------------ files


def test_a_file_is_learned_as_its_batches(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(table(300))
    model, other = Model(), Model()
    record = last(path, model, id="id")
    with data.read(path, id="id") as reader:
        batch = next(reader)
    other.partial_fit(batch.slice(0, 100), batch.y[:100])
    right = 0
    for n in range(100, 300):
        right += other.predict(batch.slice(n, n + 1))[0] == batch.y[n]
        other.partial_fit(batch.slice(n, n + 1), batch.y[n : n + 1])
    same(model, other)
    assert record.mean["accuracy"] == right / 200
    # It reads further files as it read these: the id is no feature, the label is where it was.
    assert model.reading["id"] == "id" and model.reading["target"] == "label"
    more = last(path, model)
    assert (more.rows, more.scored) == (300, 300)
    model.save(tmp_path / "m.onl")
    assert onlearn.load(tmp_path / "m.onl").reading == model.reading


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("a.svm", lambda n: f"{'ab'[n % 2]} {1 + n % 2}:1 {3 + n % 50}:0.5"),
        ("a.vw", lambda n: f"{'ab'[n % 2]} |f x{n % 2} y{n % 50}:0.5"),
        ("a.txt", lambda n: f"__label__{'ab'[n % 2]} {'yes' if n % 2 else 'no'} word{n % 50}"),
        ("a.jsonl", lambda n: f'{{"label": "{"ab"[n % 2]}", "size": {n % 2}, "note": "some words{n % 50}"}}'),
    ],
)
def test_formats(tmp_path, name, line):
    path = tmp_path / name
    path.write_text("\n".join(map(line, range(300))) + "\n")
    for options in ({}, {"delay": 5}):
        record = last(path, Model(), **options)
        assert (record.rows, record.learned) == (300, 300)
        assert record.window["accuracy"] > 0.95


@pytest.mark.parametrize("kind", ["csv", "vw"])
def test_questions_do_not_keep_the_memory_of_their_batches(tmp_path, kind):
    """One question in 500 rows waits for ever; what it holds of its batch must be the row alone."""
    path, rows = tmp_path / f"a.{kind}", 20_000
    labels = ["" if n % 500 == 0 else "ab"[n % 2] for n in range(rows)]
    words = ["xyz"[n % 3] * 300 + str(n % 9) for n in range(rows)]
    if kind == "csv":
        lines = ["id,text,label", *(f"{n},{words[n]},{labels[n]}" for n in range(rows))]
    else:
        lines = [f"{labels[n] + ' 1 ' if labels[n] else ''}'n{n}|f {words[n]}" for n in range(rows)]
    path.write_text("\n".join(lines) + "\n")
    options = {"id": "id"} if kind == "csv" else {}

    class Silent(Model):
        """Neither predicts nor learns."""

        def __init__(self):
            super().__init__()
            self.learner = "none"

        def predict_one(self, x):
            return "a"

        def learn_one(self, x, y, weight=1.0):
            return self

    seen, pending = [], []
    with data.read(path, labels="optional", block_size=1 << 16, workers=0, **options) as reader:
        tracemalloc.start()
        for record in stream(reader, Silent(), delay="id", every=5000):
            seen.append(tracemalloc.get_traced_memory()[0] + pa.total_allocated_bytes())
            pending.append(record.pending)
        tracemalloc.stop()
    assert pending == [10, 20, 30, 40]
    assert seen[-1] - seen[0] < 1 << 19  # the file has 6 MB
