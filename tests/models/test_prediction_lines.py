"""The lines of predictions: the same for a row, whichever others come with it."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlearn.data import Batch
from onlearn.errors import PlanError
from onlearn.models import Model
from onlearn.models.evaluation import Predictions
from onlearn.models.prediction_lines import WRITERS, Answers, check_asked, format_of

LABELS = ["plain", 'a "quoted" one', "iris, blue", "two\nlines", ""]
CELLS = st.text(st.sampled_from('ab",\n\r é'), max_size=4)


@pytest.fixture(scope="module")
def model():
    made = Model()
    made.labels = LABELS
    return made


@given(
    ids=st.lists(st.none() | CELLS, min_size=1, max_size=12),
    cut=st.integers(0, 12),
    tagged=st.booleans(),
    files=st.booleans(),
    seed=st.integers(0, 99),
)
def test_batches_do_not_matter(model, ids, cut, tagged, files, seed):
    rng, count = np.random.default_rng(seed), len(ids)
    named = np.empty(count, dtype=object)
    named[:] = ids
    batch = Batch([""] * count, ids=named if tagged else None, file="a,b.csv", lines=np.arange(count) + 7)
    codes, proba = rng.integers(-1, len(LABELS), count), rng.random((count, len(LABELS))).astype(np.float32)
    for name, kind in WRITERS.items():
        writer = kind(model, files=files)

        def lines(start, stop, writer=writer):
            some = slice(start, stop)
            if start == stop:
                return b""
            return bytes(writer.lines(batch.slice(start, stop), Answers(Predictions(codes[some], None, proba[some]))))

        whole = lines(0, count)
        assert whole == lines(0, min(cut, count)) + lines(min(cut, count), count)
        shown = [str(n + 7) if not tagged or one is None else one for n, one in enumerate(ids)]
        answers = [LABELS[code] if code >= 0 else None for code in codes]
        if name == "csv":
            text = (writer.header(False, True, None) + whole).decode()
            rows = list(csv.reader(io.StringIO(text, newline="")))
            assert [row[files] for row in rows[1:]] == shown
            assert [row[files + 1] for row in rows[1:]] == [one or "" for one in answers]
            np.testing.assert_array_equal(np.array([row[files + 2 :] for row in rows[1:]], np.float32), proba)
        else:
            objects = [json.loads(line) for line in whole.decode().split("\n")[:-1]]
            assert [str(one["id"]) for one in objects] == shown
            assert [one["prediction"] for one in objects] == answers


def test_formats():
    assert [format_of(None, out) for out in (None, "a.csv", "a.JSONL", "a.txt")] == ["csv", "csv", "jsonl", "csv"]
    assert format_of("csv", "a.jsonl") == "csv"
    with pytest.raises(PlanError, match="'xml' is not csv or jsonl"):
        format_of("xml", None)


def test_what_a_model_has_not(model):
    check_asked(model, True, False, 3)
    with pytest.raises(PlanError, match="leave proba= out"):
        check_asked(model, False, True, 3)
    with pytest.raises(PlanError, match="numbers only"):
        check_asked(Model(), False, True, None)
