"""Attributes of tokens, against plain extraction of their names."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlearn.sequence.attributes import NamedFeatures
from onlearn.sequence.extraction import TemplateFeatures
from onlearn.sequence.inputs import as_sentences
from onlearn.sequence.templates import Template
from onlearn.sequence.views import view_of

MACROS = ["%x[{},{}]", "%X[{},{}]", "%suffix2[{},{}]", "%Prefix1[{},{}]", "%shape[{},{}]", '%m[{},{},"b+"]']
WORDS = st.sampled_from(["a", "b", "Ab", "bbA", "é1-x", "", "_B-1", "日本"])


def plain(template: Template, columns: list[str], sentence: list[tuple[str, ...]]) -> list[list[str]]:
    """The names of the attributes of each token, one by one."""
    made = []
    for t in range(len(sentence)):
        row = []
        for line, names in zip(template.lines, template.resolved(columns)):
            values = []
            for macro, name in zip(line.macros, names):
                at = t + macro.row
                if at < 0:
                    values.append(f"_B{at}")
                elif at >= len(sentence):
                    values.append(f"_B+{at - len(sentence) + 1}")
                else:
                    values.append(view_of(sentence[at][columns.index(name)], macro.view))
            if None not in values:
                row.append(line.name(values))
        made.append(row)
    return made


@st.composite
def templates(draw):
    lines = []
    for n in range(draw(st.integers(1, 5))):
        macros = draw(st.lists(st.tuples(st.sampled_from(MACROS), st.integers(-3, 3), st.integers(0, 1)), max_size=3))
        prefix = draw(st.sampled_from([f"U{n}:", "U:"]))
        lines.append(prefix + "/".join(macro.format(row, column) for macro, row, column in macros))
    return Template.parse("\n".join(lines))


def rows_as_names(features, rows):
    return [features.names(rows.indices[a:b]) for a, b in zip(rows.indptr[:-1], rows.indptr[1:])]


sequences = st.lists(st.lists(st.tuples(WORDS, WORDS), max_size=6), max_size=6)


@given(templates(), sequences, sequences, st.integers(0, 6))
def test_names_are_those_of_plain_extraction(template, X, other, cut):
    columns = ["c0", "c1"]
    expected = [names for sentence in X for names in plain(template, columns, sentence)]
    features = TemplateFeatures(template, columns)
    rows = features.learn_transform(as_sentences(X))
    assert rows_as_names(features, rows) == expected
    again = features.transform(as_sentences(X))
    assert all(np.array_equal(a, b) for a, b in zip(rows, again))
    # numbers are given in order of first appearance, however the sentences are cut
    seen = list(dict.fromkeys(rows.indices.tolist()))
    assert seen == list(range(features.size))
    parts = TemplateFeatures(template, columns)
    halves = [parts.learn_transform(as_sentences(half)) for half in (X[:cut], X[cut:])]
    assert np.array_equal(np.concatenate([half.indices for half in halves]), rows.indices)
    for a, b in zip(features.pack()[1].values(), parts.pack()[1].values()):
        assert np.array_equal(a, b)
    # unknown attributes are left out; the model file and pickles change nothing
    known = set(features.names(range(features.size)))
    found = features.transform(as_sentences(other))
    wanted = [[name for name in names if name in known] for s in other for names in plain(template, columns, s)]
    assert rows_as_names(features, found) == wanted
    for twin in (TemplateFeatures.unpack(*features.pack()), pickle.loads(pickle.dumps(features))):
        assert all(np.array_equal(a, b) for a, b in zip(found, twin.transform(as_sentences(other))))


@given(sequences, st.randoms(use_true_random=False))
def test_keep_renumbers_in_order(X, random):
    features = TemplateFeatures(Template.default(2), ["c0", "c1"])
    rows = features.learn_transform(as_sentences(X))
    features.transform(as_sentences(X))  # which is remembered, and must be forgotten
    mask = np.array([random.random() < 0.5 for _ in range(features.size)], dtype=bool)
    names = [name for name, kept in zip(features.names(range(features.size)), mask) if kept]
    features.keep(mask)
    assert features.names(range(features.size)) == names
    number = np.cumsum(mask) - 1
    assert features.transform(as_sentences(X)).indices.tolist() == number[rows.indices[mask[rows.indices]]].tolist()


def test_the_built_in_template_names_attributes_readably():
    features = TemplateFeatures(Template.default(["form", "xpos"]), ["form", "xpos"])
    sentences = as_sentences([[("of", "IN"), ("Running", "NN")]])
    sentences = type(sentences)(dict(zip(["form", "xpos"], sentences.columns.values())), sentences.offsets)
    rows = features.learn_transform(sentences)
    names = features.names(rows.indices[rows.indptr[1] :])
    assert {"word=Running", "lower=running", "suffix3=ing", "lower[-1]=of", "shape=Xx", "xpos[-1]|xpos=IN|NN"} <= {
        *names
    }


def test_columns_by_name():
    features = TemplateFeatures(Template.parse("U:%x[0,0]\nU1:%x[0,1]"), ["c0", "c1", "c2"], "c2")
    features.learn_transform(as_sentences([[("a", "b", "L")]]))
    assert features.columns == ["c0", "c1"]
    assert features.transform(as_sentences([[("a", "b")]])).indices.tolist() == [0, 1]  # without the label
    with pytest.raises(ValueError, match="no column 'c1', which the template needs: they have form"):
        features.transform(as_sentences([["a"]]))
    with pytest.raises(ValueError, match="was given attributes"):
        features.transform(as_sentences([[{"a": "b"}]]))
    words = TemplateFeatures(Template.parse("U:%x[0,form]"), ["form"])
    words.learn_transform(as_sentences([["a"]]))
    assert words.transform(as_sentences([[("a", "b")]])).indices.tolist() == [0]
    with pytest.raises(IndexError, match="no attribute 1"):
        words.names([1])


def test_many_words_long_words_and_a_long_sequence(monkeypatch):
    monkeypatch.setattr("onlearn.sequence.extraction.REMEMBERED", 100)
    features = TemplateFeatures(Template.default(["form"]), ["form"])
    X = [[f"w{n % 3000}" for n in range(10_000)], ["x" * 1000 + end for end in "ab"]]
    rows = features.learn_transform(as_sentences(X))
    for _ in range(2):  # more words than are remembered
        assert np.array_equal(features.transform(as_sentences(X)).indices, rows.indices)
        assert np.array_equal(features.transform(as_sentences(X[:1])).indices, rows.indices[: rows.indptr[10_000]])
    again = TemplateFeatures.unpack(*features.pack())
    assert np.array_equal(again.transform(as_sentences(X)).indices, rows.indices)


@pytest.mark.parametrize("name", ["kinds", "parts", "lengths", "text", "long"])
def test_damaged_arrays_are_refused(name):
    features = TemplateFeatures(Template.default(["form"]), ["form"])
    features.learn_transform(as_sentences([["a", "bc"]]))
    facts, arrays = features.pack()
    for damage in (lambda a: a[:-1], lambda a: np.append(a, a[:1] if len(a) else 1), lambda a: a.astype(np.float64)):
        broken = {**copy.deepcopy(arrays), name: damage(arrays[name])}
        if len(broken[name]) == len(arrays[name]) == 0 and broken[name].dtype == arrays[name].dtype:
            continue
        with pytest.raises(ValueError, match="contradict"):
            TemplateFeatures.unpack(facts, broken)
    with pytest.raises(ValueError, match="template"):
        TemplateFeatures.unpack({**facts, "template": 5}, arrays)
    with pytest.raises(ValueError, match="contradict"):
        TemplateFeatures.unpack(facts, {**arrays, "parts": arrays["parts"] + 1000})


ATTRIBUTES = st.lists(st.sampled_from(["a", "b", "c:d", "é"]), max_size=4)


@given(st.lists(st.lists(ATTRIBUTES, max_size=4), max_size=4), st.lists(st.lists(ATTRIBUTES, max_size=4), max_size=4))
def test_given_attributes(X, other):
    features = NamedFeatures()
    rows = features.learn_transform(as_sentences(X))
    assert rows_as_names(features, rows) == [token for sentence in X for token in sentence]
    known = features.names(range(features.size))
    twin = NamedFeatures.unpack(*features.pack())
    for one in (features, twin):
        found = one.transform(as_sentences(other))
        assert rows_as_names(one, found) == [[name for name in token if name in known] for s in other for token in s]
    mask = np.arange(features.size) % 2 == 0
    features.keep(mask)
    assert features.names(range(features.size)) == known[::2]


def test_given_values_follow_their_attributes():
    features = NamedFeatures()
    features.learn_transform(as_sentences([[{"a": 2, "b": 3}]]))
    rows = features.transform(as_sentences([[{"c": 4, "b": 5}], []]))
    assert (rows.indices.tolist(), rows.values.tolist(), rows.indptr.tolist()) == ([1], [5.0], [0, 1])
    with pytest.raises(ValueError, match="was given words"):
        features.transform(as_sentences([["a"]]))
