"""Schemes of spans, their constraints, and span figures by the definition of conlleval."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlearn.data import load
from onlearn.sequence.lattice import Lattice
from onlearn.sequence.spans import Constraints, convert, detect_scheme, read_spans, span_figures, write_tags

ANNA = {  # from the module's own table
    "BIO": "B-P I-P O B-P I-P B-P",
    "IOB1": "I-P I-P O I-P I-P B-P",
    "BIOES": "B-P E-P O B-P E-P S-P",
    "BILOU": "B-P L-P O B-P L-P U-P",
}
TYPES = ["P", "Q"]
ALL = {name: ["O", *(f"{a}-{k}" for k in TYPES for a in name if a != "O" and a != "1")] for name in ANNA}


def oracle_spans(tags):
    """Spans one token after another, by conlleval's questions: does one end before this token, does one start?"""

    def split(tag):
        return ("O", "") if tag == "O" else tuple(tag.split("-", 1))

    def ends(before, tag):
        (a, x), (b, y) = before, tag
        return (
            (a, b) in {("B", "B"), ("B", "O"), ("I", "B"), ("I", "O")}
            or (a in "BI" and b in "SU")
            or a in "ESLU"
            or (a != "O" and x != y)
        )

    def starts(before, tag):
        (a, x), (b, y) = before, tag
        return (
            (a, b) in {("B", "B"), ("I", "B"), ("O", "B"), ("O", "I"), ("E", "E"), ("E", "I"), ("O", "E")}
            or (a in "OESLU" and b in "BIESLU")
            or b in "BSU"
            or (b != "O" and x != y)
        )

    found, start, kind, before = [], None, "", ("O", "")
    for t, tag in enumerate([*map(split, tags), ("O", "")]):
        if start is not None and ends(before, tag):
            found.append((start, t, kind))
            start = None
        if tag[0] != "O" and starts(before, tag):
            start, kind = t, tag[1]
        before = tag
    return found


def sequences(scheme, most=6):
    return st.lists(st.lists(st.sampled_from(ALL[scheme]), max_size=most), max_size=4)


@pytest.mark.parametrize("scheme", ANNA)
def test_the_table_of_the_module(scheme):
    spans = [(0, 2, "P"), (3, 5, "P"), (5, 6, "P")]
    tags = ANNA[scheme].split()
    assert read_spans(tags, scheme) == spans and write_tags(spans, 6, scheme) == tags
    for other in ANNA:
        assert convert(tags, scheme, other) == ANNA[other].split()


@pytest.mark.parametrize("scheme", ANNA)
def test_spans_are_those_of_the_definition(scheme):
    @given(st.lists(st.sampled_from(ALL[scheme]), max_size=8))
    def check(tags):
        spans = read_spans(tags, scheme)
        assert spans == oracle_spans(tags)
        for other in ANNA:
            assert read_spans(write_tags(spans, len(tags), other), other) == spans

    check()


@pytest.mark.parametrize("scheme", ANNA)
def test_figures_are_those_of_the_definition(scheme):
    labels = ALL[scheme]

    @given(st.data(), sequences(scheme))
    def check(data, gold):
        made = [data.draw(st.lists(st.sampled_from(labels), min_size=len(one), max_size=len(one))) for one in gold]
        offsets = np.cumsum([0, *map(len, gold)])
        codes = [np.array([labels.index(tag) for one in side for tag in one], dtype=np.int64) for side in (gold, made)]
        found = span_figures(*codes, labels, offsets)
        there, predicted = (
            {(n, *span) for n, one in enumerate(side) for span in oracle_spans(one)} for side in (gold, made)
        )
        right = there & predicted
        assert (found["gold"], found["predicted"], found["right"]) == (len(there), len(predicted), len(right))
        assert found["f1"] == (2 * len(right) / (len(there) + len(predicted)) if there or predicted else 0)
        for kind in TYPES:
            mine = [sum(one[-1] == kind for one in side) for side in (there, predicted, right)]
            if mine[0] or mine[1]:
                one = found["by_type"][kind]
                assert [one["gold"], one["predicted"], one["right"]] == mine
                assert one["precision"] == (mine[2] / mine[1] if mine[1] else 0)
                assert one["recall"] == (mine[2] / mine[0] if mine[0] else 0)
            else:
                assert kind not in found["by_type"]

    check()


def test_malformed_predictions_count():
    labels = ["O", "B-P", "I-P", "I-Q"]
    gold, made = [1, 2, 0, 1, 2, 0], [2, 2, 0, 1, 3, 0]  # I-P I-P O B-P I-Q O has the spans P, P and Q
    found = span_figures(gold, made, labels, [0, 6])
    assert (found["right"], found["predicted"], found["gold"]) == (1, 3, 2)
    assert found["precision"] == 1 / 3 and found["recall"] == 0.5 and found["f1"] == pytest.approx(0.4)
    assert found["by_type"]["Q"] == {"precision": 0, "recall": 0, "f1": 0, "gold": 0, "predicted": 1, "right": 0}
    assert span_figures([1, 2], [1, 2], labels, [0, 1, 2])["gold"] == 2  # a span ends with its sentence
    assert span_figures([-1, 1], [1, -1], labels, [0, 2])["gold"] == 1  # no label: outside
    assert span_figures([], [], labels, [0])["f1"] == 0


def test_detection():
    assert detect_scheme(["O", "B-NP", "I-NP"]) == detect_scheme(["B", "I", "O"]) == "BIO"
    assert detect_scheme(["O", "I-NP"]) == "IOB1"
    assert detect_scheme(["O", "B-NP", "I-NP", "E-NP"]) == detect_scheme(["S-X"]) == "BIOES"
    assert detect_scheme(["O", "B-NP", "L-NP"]) == "BILOU"
    for labels in ([], ["O"], ["NN", "VB"], ["O", "B-NP", "NN"], ["-LRB-", "NN"], ["B", "I"], ["B-", "O"],
                   ["E-X", "L-X"], ["O-X", "B-X"], ["I", "O"]):  # fmt: skip
        assert detect_scheme(labels) is None
    labels = ["O", "B-P", "I-P"]
    assert detect_scheme(labels, [2, 2, 0, 2, 1], [0, 5]) == "IOB1"
    assert detect_scheme(labels, [2, 2, 0, 1, 2], [0, 5]) == "BIO"  # B after O
    assert detect_scheme(labels, [1, 2, 0], [0, 3]) == detect_scheme(labels, [0], [0, 1]) == "BIO"
    assert detect_scheme(labels, [2, 1], [0, 1, 2]) == "BIO"  # B at the beginning of a sentence
    assert detect_scheme(labels, [], [0]) == "BIO"


@pytest.mark.parametrize("scheme", ANNA)
def test_constraints_allow_just_what_the_scheme_writes(scheme):
    labels = ALL[scheme]
    allowed = Constraints.of(labels, scheme)
    for length in (1, 2, 3):
        for path in product(range(len(labels)), repeat=length):
            ok = allowed.initial[path[0]] and allowed.final[path[-1]]
            ok = ok and all(allowed.transitions[a, b] for a, b in pairwise(path))
            tags = [labels[n] for n in path]
            assert ok == (convert(tags, scheme, scheme) == tags)


def test_constraints_fit_a_lattice():
    labels = ALL["BIOES"]
    emissions = np.random.default_rng(1).normal(size=(40, len(labels)))
    lattice = Lattice(np.zeros((len(labels), len(labels))))
    path, _ = lattice.constrained(*Constraints.of(labels, "IOBES")).best(emissions, [0, 15, 40])
    for a, b in ((0, 15), (15, 40)):
        tags = [labels[n] for n in path[a:b]]
        assert convert(tags, "BIOES", "BIOES") == tags


def test_what_is_refused():
    with pytest.raises(ValueError, match="there is no scheme 'IOE': there are BIO, IOB1"):
        read_spans(["O"], "IOE")
    with pytest.raises(ValueError, match=r"the tag 'E-P' is not one of BIO: those are O, and B, I with a type"):
        read_spans(["E-P"], "BIO")
    with pytest.raises(ValueError, match="the tag 'NN' is not one of BIOES"):
        Constraints.of(["NN"], "BIOES")
    for spans in ([(0, 2, "P"), (1, 3, "P")], [(0, 0, "P")], [(3, 5, "P")]):
        with pytest.raises(ValueError, match="is empty, overlaps another, or leaves the sequence"):
            write_tags(spans, 4, "BIO")
    for codes in ([0], [0, 3], [0, -2]):
        with pytest.raises(ValueError, match="a code from -1 to 0 for each of 2 tokens"):
            span_figures(codes, codes, ["O"], [0, 2])


def test_chunks_of_conll_2000(data):
    sentences, y = load(data("conll2000") / "test.txt.gz")
    labels = sorted(set(y.tolist()))
    codes = np.searchsorted(np.array(labels), y.astype(str))
    assert detect_scheme(labels, codes, sentences.offsets) == "BIO"
    found = span_figures(codes, codes, labels, sentences.offsets)
    assert found["gold"] == found["right"] == 23_852 and found["f1"] == 1.0
    assert found["by_type"]["NP"]["gold"] == 12_422
