"""The forms in which sequences and labels are given."""

from __future__ import annotations

import numpy as np
import pytest

from onlearn.sequence.inputs import GivenAttributes, as_sentences, flat_labels


def test_strings_are_the_column_form():
    sentences = as_sentences([["The", "dog"], [], ("Go",)])
    assert sentences.columns["form"].tolist() == ["The", "dog", "Go"]
    assert sentences.offsets.tolist() == [0, 2, 2, 3]
    assert as_sentences(sentences) is sentences


def test_tuples_are_numbered_columns():
    sentences = as_sentences([[("The", "DT")], [("dog", "NN")]])
    assert {name: column.tolist() for name, column in sentences.columns.items()} == {
        "c0": ["The", "dog"],
        "c1": ["DT", "NN"],
    }


def test_attributes_as_crfsuite_takes_them():
    token = {"a": "b", "on": True, "off": np.bool_(False), "n": 2, "in": {"f": "g", "h": ["x"]}, "s": {"z", "y"}}
    given = as_sentences([[token, ["p", "a:b"]], []])
    assert isinstance(given, GivenAttributes) and len(given) == 2 and given.tokens == 2
    assert given.names == ["a:b", "on", "off", "n", "in:f:g", "in:h:x", "s:y", "s:z", "p", "a:b"]
    assert given.values.tolist() == [1, 1, 0, 2, 1, 1, 1, 1, 1, 1]
    assert given.indptr.tolist() == [0, 8, 10]
    assert len(as_sentences([[["a"], ["b", "a"]]]).values) == 0  # all 1


def test_crfsuite_makes_the_same_attributes():
    crfsuite = pytest.importorskip("pycrfsuite")
    token = {"a": "b", "on": True, "off": False, "n": 2.5, "in": {"f": "g", "h": ["x"]}, "w": "日本"}
    given = as_sentences([[token]])
    assert dict(zip(given.names, given.values.tolist())) == crfsuite.ItemSequence([token]).items()[0]


@pytest.mark.parametrize("empty", [[], [[]], [[], []], ()])
def test_no_tokens(empty):
    sentences = as_sentences(empty)
    assert len(sentences) == len(empty) and sentences.offsets[-1] == 0


@pytest.mark.parametrize(
    ("X", "says"),
    [
        ("abc", "X is one string"),
        (["a", "b"], r"X\[0\] is a string, and should be a list of tokens: give one sentence as \[X\]"),
        (5, "X is int 5"),
        ([5], r"X\[0\] is int 5"),
        ([{"a": 1}], r"X\[0\] is dict"),
        ([["a", 1]], r"X\[0\]\[1\] is int 1: a token is"),
        ([["a"], [None]], r"X\[1\]\[0\] is None"),
        ([[float("nan")]], r"X\[0\]\[0\] is float nan"),
        ([["a"], [{"a": 1}]], r"X\[1\]\[0\] is dict .*, but the first token is str 'a'"),
        ([[("a", "b")], [("c",)]], r"X\[1\]\[0\] has 1 columns and the first token 2"),
        ([[("a", "b"), ()]], r"X\[0\]\[1\] is an empty tuple"),
        ([[()]], r"X\[0\]\[0\] is an empty tuple"),
        ([[("a", 1)]], r"X\[0\]\[0\] has int 1 where a string should be"),
        ([["a", "\ud800"]], r"X\[0\]\[1\] is '\\ud800', which is not valid Unicode"),
        ([[["\ud800"]]], r"X\[0\]\[0\] .* not valid Unicode"),
        ([[{"a": None}]], r"X\[0\]\[0\] has None as the value of 'a'"),
        ([[{1: 2}]], r"X\[0\]\[0\] has the key int 1"),
        ([[["a", 1]]], r"X\[0\]\[0\] has the attribute int 1"),
        ([[["a"]], [["b"], {"c": float("inf")}]], r"X\[1\]\[1\] has the attribute 'c' with the value inf"),
        ([[{"c": 10**400}]], r"X\[0\]\[0\] has the attribute 'c' with the value inf"),
    ],
)
def test_what_cannot_be_says_where(X, says):
    with pytest.raises(ValueError, match=says):
        as_sentences(X)


SENTENCES = as_sentences([["a", "b"], [], ["c"]])


@pytest.mark.parametrize(
    "y", [[["A", "B"], [], ["C"]], ["A", "B", "C"], np.array(["A", "B", "C"]), (("A", "B"), np.array([]), ["C"])]
)
def test_labels(y):
    labels = flat_labels(y, SENTENCES, False)
    assert labels.dtype == object and labels.tolist() == ["A", "B", "C"]
    assert {type(label) for label in labels} <= {str, np.str_}


def test_labels_become_strings_and_may_lack():
    assert flat_labels(np.array([1, 2, 3]), SENTENCES, False).tolist() == ["1", "2", "3"]
    assert flat_labels([["A", None], [], ["C"]], SENTENCES, True).tolist() == ["A", None, "C"]


@pytest.mark.parametrize(
    ("y", "says"),
    [
        (None, "y is missing"),
        ("ABC", "y is str 'ABC'"),
        ([["A", "B"], ["C"]], "labels for 2 sequences, X has 3"),
        ([["A"], [], ["C"]], r"y\[0\] has 1 labels, and X\[0\] has 2 tokens"),
        (["A", "B"], "y has 2 labels, and X has 3 tokens"),
        ([["A", "B"], "C", []], r"y\[1\] is str 'C'"),
        ([["A", "B"], [], [None]], "token 0 of sequence 2 has no label"),
        (["A", float("nan"), "C"], "the label of token 1 of sequence 0 is float nan"),
        ([["A", ["B"]], [], ["C"]], "the label of token 1 of sequence 0 is list"),
    ],
)
def test_labels_that_cannot_be(y, says):
    with pytest.raises(ValueError, match=says):
        flat_labels(y, SENTENCES, False)
