"""Progressive validation against simulations by hand; means against plain formulas; delayed labels; errors."""

import io
import math
import random
import sys
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onlearn
from onlearn import StreamRecord, stream
from onlearn.streaming.metrics import METRICS, Means
from streaming_models import PlainLogistic, PlainMean


def rows(count, seed=0, noise=0.1):
    """Rows of three numbers; the label is the sign of the first, most often."""
    draw = random.Random(seed)
    made = []
    for _ in range(count):
        x = {name: draw.gauss(0, 1) for name in "abc"}
        made.append((x, int((x["a"] > 0) != (draw.random() < noise))))
    return made


def last(source, model, **options):
    *_, record = stream(source, model, **options)
    return record


# ------------------------------------------------------------------ predict, score, learn


def test_each_row_is_predicted_scored_learned():
    data, model = rows(300), PlainLogistic()
    record = last(data, model, metrics=["accuracy", "error", "log_loss", "brier"])
    other, right, losses, briers = PlainLogistic(), [], [], []
    for x, y in data:
        p = other.predict_proba_one(x)
        right.append(other.predict_one(x) == y)
        losses.append(-math.log(p[y]))
        briers.append(sum((p[label] - (label == y)) ** 2 for label in p))
        other.learn_one(x, y)
    assert model.weights == other.weights
    assert (record.rows, record.scored, record.learned, record.pending) == (300, 300, 300, 0)
    assert record.mean["accuracy"] == sum(right) / 300
    assert record.mean["error"] == 1 - sum(right) / 300 or record.mean["error"] == (300 - sum(right)) / 300
    assert record.mean["log_loss"] == pytest.approx(sum(losses) / 300, rel=1e-12)
    assert record.mean["brier"] == pytest.approx(sum(briers) / 300, rel=1e-12)


def test_records_come_every_so_often_and_at_the_end():
    def seen(count, every):
        return [record.rows for record in stream(rows(count), PlainLogistic(), every=every)]

    assert seen(10, 4) == [4, 8, 10]
    assert seen(8, 4) == [4, 8]
    assert seen(3, 4) == [3]
    assert seen(0, 4) == [0]


def test_nothing_happens_before_the_records_are_asked_for():
    model = PlainLogistic()
    records = stream(iter(rows(10)), model, every=5)
    assert model.log == []
    assert next(records).rows == 5
    assert len(model.log) == 10


def test_an_empty_stream_has_no_means():
    record = last([], PlainLogistic())
    assert math.isnan(record.mean["accuracy"]) and math.isnan(record.window["accuracy"])


def test_weights_reach_learner_and_means():
    model = PlainLogistic()
    data = [({"a": 1.0}, 0, 3.0), ({"a": 1.0}, 1, 1.0), ({"a": 1.0}, 0)]
    record = last(data, model)
    assert [call[-1] for call in model.log if call[0] == "learn"] == [3.0, 1.0, 1.0]
    assert record.mean["accuracy"] == 4 / 5  # right, wrong, right


def test_what_cannot_predict_yet_is_not_scored():
    record = last([({}, 2.0), ({}, 4.0), ({}, 9.0)], PlainMean(), metrics=["absolute_error", "squared_error"])
    assert (record.rows, record.scored, record.learned) == (3, 2, 3)
    assert record.mean == {"absolute_error": (2 + 6) / 2, "squared_error": (4 + 36) / 2}


def test_functions_are_metrics():
    def misses(y, predicted):
        return 10 * (y != predicted)

    record = last(rows(50), PlainLogistic(), metrics=["error", misses, ("signed", lambda y, p: y - p)])
    assert record.mean["misses"] == pytest.approx(10 * record.mean["error"])
    assert list(record.mean) == list(record.window) == list(record.faded) == ["error", "misses", "signed"]


@pytest.mark.parametrize(
    ("metrics", "sentence"),
    [
        (["acuracy"], "there is no metric 'acuracy'; did you mean 'accuracy'?"),
        (["absolute_error"], "is for regression; this model has accuracy"),
        (["error", "error"], "'error' twice"),
        ([3], "not 3"),
        (("accuracy", max), "'accuracy' is a metric already"),
    ],
)
def test_wrong_metrics_are_refused(metrics, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        stream([], PlainLogistic(), metrics=metrics)


def test_a_label_never_met_costs_no_more_than_the_least_probability():
    assert METRICS["log_loss"].value("new", {"a": 1.0}) == pytest.approx(-math.log(1e-15))
    assert METRICS["brier"].value("new", {"a": 0.5, "b": 0.5}) == 1.5


# ------------------------------------------------------------------ means


@given(
    st.lists(st.tuples(st.floats(0, 8), st.floats(0.1, 5)), min_size=1, max_size=50),
    st.integers(1, 20),
    st.floats(0.5, 1.0),
)
def test_means_are_those_of_the_formulas(values, window, fading):
    means = Means(["m"], window, fading)
    for value, weight in values:
        means.add([value], weight)
    latest = values[-window:]
    ages = range(len(values) - 1, -1, -1)
    fades = [weight * fading**age for (_, weight), age in zip(values, ages)]
    assert means.mean()["m"] == pytest.approx(sum(v * w for v, w in values) / sum(w for _, w in values), rel=1e-9)
    assert means.windowed()["m"] == pytest.approx(sum(v * w for v, w in latest) / sum(w for _, w in latest), rel=1e-9)
    assert means.faded()["m"] == pytest.approx(
        sum(v * f for (v, _), f in zip(values, fades)) / sum(fades), rel=1e-9, abs=1e-12
    )


def test_the_window_is_exact_after_a_long_stream():
    means = Means(["m"], 3, 0.9)
    for n in range(10_000):
        means.add([0.1 * (n % 7)], 1.0)
    assert means.windowed()["m"] == math.fsum(0.1 * (n % 7) for n in (9997, 9998, 9999)) / 3


# ------------------------------------------------------------------ delayed labels


def simulate(data, delay):
    """The calls that a learner gets whose labels are so many rows late."""
    calls = []
    for n, (x, _) in enumerate(data):
        calls.append(("predict", x))
        if n >= delay:
            calls.append(("learn", *data[n - delay], 1.0))
    return calls + [("learn", *row, 1.0) for row in data[max(0, len(data) - delay) :]]


@given(st.integers(0, 12), st.integers(0, 30), st.integers(1, 7))
@settings(max_examples=40, deadline=None)
def test_labels_that_are_rows_late(delay, count, every):
    data, model = rows(count), PlainLogistic()
    records = list(stream(data, model, delay=delay, every=every))
    assert model.log == simulate(data, delay)
    assert all(record.pending == min(delay, record.rows) for record in records[:-1])
    assert (records[-1].scored, records[-1].learned, records[-1].pending) == (count, count, 0)


def test_scores_of_late_labels_are_those_of_the_predictions_then_made():
    data, other, right = rows(200), PlainLogistic(), []
    for n, (x, y) in enumerate(data):
        right.append(other.predict_one(x) == y)
        if n >= 20:
            other.learn_one(*data[n - 20])
    assert last(data, PlainLogistic(), delay=20).mean["accuracy"] == sum(right) / 200


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from([None, 0, 1])), max_size=40), st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_answers_by_key(events, seed):
    draw = random.Random(seed)
    data = [({"id": key, "a": draw.gauss(0, 1)}, y) for key, y in events]
    model, other, asked, right = PlainLogistic(), PlainLogistic(), {}, []
    for row, y in data:
        x, key = {"a": row["a"]}, row["id"]
        if y is None:
            asked[key] = x, other.predict_one(x)
            continue
        x, predicted = asked.pop(key) if key in asked else (x, other.predict_one(x))
        right.append(predicted == y)
        other.learn_one(x, y)
    record = last(data, model, delay="id")
    assert model.log == other.log
    assert (record.rows, record.scored, record.learned) == (len(data), len(right), len(right))
    assert record.pending == len(asked)
    assert record.mean["accuracy"] == pytest.approx(sum(right) / len(right) if right else math.nan, nan_ok=True)


def test_the_oldest_questions_are_forgotten():
    questions = [({"id": n, "a": 1.0}, None) for n in range(5)]
    record = last([*questions, ({"id": 0, "a": 1.0}, 1), ({"id": 4}, 1)], PlainLogistic(), delay="id", max_pending=3)
    assert (record.pending, record.forgotten, record.learned) == (2, 2, 2)


def test_an_answer_may_bring_its_weight_and_nothing_else():
    model = PlainLogistic()
    last([({"id": 1, "a": 2.0}, None), ({"id": 1}, 1, 4.0)], model, delay="id")
    assert model.log[-1] == ("learn", {"a": 2.0}, 1, 4.0)


# ------------------------------------------------------------------ errors, interruptions


@pytest.mark.parametrize(
    ("item", "kind", "sentence"),
    [
        (({"a": 1.0}, 7), ValueError, "row 6 of the stream: the label 7 is not known"),
        (({"a": 1.0}, None), ValueError, "row 6 of the stream: it has no label"),
        (({"a": "x"}, 1), TypeError, "row 6 of the stream: "),
        ("ab", TypeError, r"row 6 of the stream: an item of a stream is \(x, y\) or \(x, y, weight\), not 'ab'"),
    ],
)
def test_a_bad_row_is_named_and_those_before_it_are_learned(item, kind, sentence):
    data, model, other = rows(5), PlainLogistic(), PlainLogistic()
    with pytest.raises(kind, match=sentence):
        list(stream([*data, item, *data], model))
    last(data, other)
    assert model.weights == other.weights


def test_a_bad_label_that_is_late_names_its_own_row():
    data = rows(10)
    data[3] = (data[3][0], 5)
    with pytest.raises(ValueError, match="row 4 of the stream: the label 5"):
        list(stream(data, PlainLogistic(), delay=4))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"every": 0}, "every must be a whole number of at least 1"),
        ({"window": 2.5}, "window must be a whole number"),
        ({"delay": -1}, "delay must be a whole number of at least 0 or the name of a field"),
        ({"fading": 0}, "fading must be a number above 0"),
        ({"on_drift": "rest"}, "did you mean 'reset'?"),
        ({"drift": "adwyn"}, "did you mean 'adwin'?"),
        ({"drift": 3}, "drift must be a detector"),
        ({"target": "y"}, "target= is about files"),
    ],
)
def test_wrong_parameters_are_refused_at_once(options, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        stream([], PlainLogistic(), **options)


def test_a_key_that_is_not_there():
    with pytest.raises(ValueError, match="row 1 of the stream: x has no 'id', which delay= names; it has a"):
        list(stream([({"a": 1.0}, 1)], PlainLogistic(), delay="id"))
    with pytest.raises(TypeError, match="is a mapping that has this key"):
        list(stream([([1.0], 1)], PlainLogistic(), delay="id"))


def test_ctrl_c_is_raised_and_the_model_is_whole():
    def interrupted():
        yield from rows(10)
        raise KeyboardInterrupt

    model, other = PlainLogistic(), PlainLogistic()
    with pytest.raises(KeyboardInterrupt):
        list(stream(interrupted(), model))
    last(rows(10), other)
    assert model.log == other.log


# ------------------------------------------------------------------ records and the terminal


def test_the_record_in_one_line():
    record = StreamRecord(2000, 1900, 1900, 7, 0, {"error": 0.25}, {"error": 0.5}, {"error": 0.5}, (1500,), (), 0.5)
    assert record.rows_per_second == 4000
    assert repr(record) == (
        "<2,000 rows, 4,000 rows/s, error 0.2500 (0.5000), 7 pending, 1 drift, the last at row 1,500>"
    )


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("progress", "file", "shown"), [
    (None, io.StringIO, False), (None, Terminal, True), (True, io.StringIO, True), (False, Terminal, False)
])  # fmt: skip
def test_a_line_in_the_terminal(monkeypatch, progress, file, shown):
    written = file()
    monkeypatch.setattr(sys, "stderr", written)
    last(rows(20), PlainLogistic(), progress=progress)
    text = written.getvalue()
    assert bool(text) == shown
    if shown:
        assert text.startswith("\r") and text.endswith("\n") and text.count("\n") == 1 and "20 rows" in text


def test_seconds_between_records_do_not_count(monkeypatch):
    now = [0.0]

    def ticking():
        for row in rows(4):
            now[0] += 1.0
            yield row

    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    seconds = []
    for record in stream(ticking(), PlainLogistic(), every=2):
        seconds.append(record.seconds)
        now[0] += 100.0
    assert seconds == [2.0, 4.0]


def test_memory_does_not_grow_with_the_stream():
    class Constant:
        def predict_one(self, x):
            return 1

        def learn_one(self, x, y):
            return self

    def endless():
        for n in range(60_000):
            yield {"a": 1.0}, n % 2

    def held():
        """The bytes that the package holds, whatever other threads of the test run do."""
        traces = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, "*/onlearn/*")])
        return sum(trace.size for trace in traces.statistics("filename"))

    seen = []
    tracemalloc.start()
    for _ in stream(
        endless(), Constant(), metrics=("gap", lambda y, p: p - y), drift="adwin", every=20_000, window=100
    ):
        seen.append(held())
    tracemalloc.stop()
    assert seen[-1] - seen[0] < 20_000  # bytes, for 40,000 rows


def test_the_public_names():
    assert onlearn.stream is stream and onlearn.StreamRecord is StreamRecord
    assert callable(onlearn.stream)
