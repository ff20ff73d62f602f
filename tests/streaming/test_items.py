"""Files as streams: rows, labels, weights, keys and places."""

import pytest

from onlearn import data, stream
from streaming_models import PlainLogistic, PlainMean


class Recorder:
    """Learns nothing, and keeps what it is given."""

    def __init__(self):
        self.rows = []

    def predict_one(self, x):
        return "no"

    def predict_proba_one(self, x):
        return {"no": 1.0}

    def learn_one(self, x, y, weight=1.0):
        self.rows.append((x, y, weight))


def write(folder, name, text):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def last(source, model, **options):
    *_, record = stream(source, model, **options)
    return record


def test_rows_of_a_table_are_mappings(tmp_path):
    path = write(tmp_path, "a.csv", "size,colour,label\n1.5,red,yes\n2,,no\n,blue,no\n")
    model = Recorder()
    record = last(path, model)
    assert model.rows == [
        ({"size": 1.5, "colour": "red"}, "yes", 1.0),
        ({"size": 2.0}, "no", 1.0),
        ({"colour": "blue"}, "no", 1.0),
    ]
    assert record.mean["accuracy"] == 2 / 3


def test_rows_of_other_formats(tmp_path):
    named, sparse = Recorder(), Recorder()
    last(write(tmp_path, "a.vw", "yes 2.0 |f a:0.5 b a:1\nno |g a\n"), named)
    assert named.rows == [({"f^a": 1.5, "f^b": 1.0}, "yes", 2.0), ({"g^a": 1.0}, "no", 1.0)]
    last(write(tmp_path, "a.svm", "yes 0:0.5 3:2\nno 1:1\n"), sparse)
    assert [(x.toarray().tolist(), y) for x, y, _ in sparse.rows] == [([[0.5, 0, 0, 2]], "yes"), ([[0, 1, 0, 0]], "no")]


def test_options_of_reading_patterns_and_lists(tmp_path):
    one = write(tmp_path, "a.csv", "y,w,a\nno,2,1\n")
    other = write(tmp_path, "b.csv", "y,w,a\nyes,3,2\n")
    for source in (str(tmp_path / "*.csv"), [one, str(other)]):
        model = Recorder()
        last(source, model, target="y", weight="w")
        assert model.rows == [({"a": 1.0}, "no", 2.0), ({"a": 2.0}, "yes", 3.0)]


def test_an_open_reader_stays_the_caller_s(tmp_path):
    path = write(tmp_path, "a.svm", "".join(f"{n % 2} 1:{n}\n" for n in range(10)))
    with data.read(path, batch_rows=3) as reader:
        records = stream(reader, Recorder(), every=3)
        assert next(records).rows == 3
        records.close()
        assert len(next(reader)) == 3
    with pytest.raises(TypeError, match="target= is for files that are not open yet"):
        stream(reader, Recorder(), target="y")


def test_regression(tmp_path):
    path = write(tmp_path, "a.csv", "a,y\n1,2\n1,4\n1,6\n")
    record = last(path, PlainMean(), target="y", metrics=["absolute_error"])
    assert (record.scored, record.mean["absolute_error"]) == (2, (2 + 3) / 2)


def test_answers_by_key_in_a_file(tmp_path):
    text = "id,a,label\nq1,1.0,\nq2,2.0,\nq1,,yes\nq3,3.0,no\nq2,,no\nq4,4.0,\n"
    model = Recorder()
    record = last(write(tmp_path, "a.csv", text), model, delay="id")
    assert model.rows == [({"a": 1.0}, "yes", 1.0), ({"a": 3.0}, "no", 1.0), ({"a": 2.0}, "no", 1.0)]
    assert (record.rows, record.scored, record.pending) == (6, 3, 1)


def test_answers_by_key_of_numbers(tmp_path):
    text = '{"id": 7, "a": 1.0}\n{"id": 8, "a": 2.0}\n{"id": 7, "a": 1.0, "label": 3.5}\n{"id": 8, "label": 1.0}\n'
    record = last(write(tmp_path, "a.jsonl", text), PlainMean(), delay="id")
    assert (record.rows, record.learned, record.pending) == (4, 2, 0)


def test_a_bad_row_is_named_with_its_place(tmp_path):
    path = write(tmp_path, "a.csv", "a,label\n1,0\n2,maybe\n")
    with pytest.raises(ValueError, match=r"row 1 of the stream \(.*a\.csv, line 2\): the label '0' is not known"):
        last(path, PlainLogistic())


def test_sentences_are_refused(tmp_path):
    path = write(tmp_path, "a.conll", "Anna B-PER\nsings O\n\n")
    with pytest.raises(data.DataError, match="holds sentences"):
        last(path, Recorder())


def test_ids_that_are_not_there(tmp_path):
    path = write(tmp_path, "a.csv", "a,label\n1,x\n2,y\n")
    with pytest.raises(data.DataError, match="id"):
        last(path, Recorder(), delay="id")
