"""CoNLL columns and CoNLL-U."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlearn.data import BadRows, DataError, load, read

COLUMNS = "Confidence NN B-NP\nin IN B-PP\n\n-DOCSTART- -X- O\n\nthe DT B-NP\n"
UNIVERSAL = """# sent_id = 1
1-2\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tdo\tdo\tAUX\tVB\t_\t0\troot\t_\t_
2\tnot or\tnot\tPART\tRB\t_\t1\tadvmod\t_\t_
2.1\tx\t_\t_\t_\t_\t_\t_\t_\t_

1\tgo\tgo\tVERB\tVB\t_\t0\troot\t_\t_
"""


def test_columns(tmp_path):
    (tmp_path / "a.conll").write_text(COLUMNS)
    for size in (1, 1000):
        sentences, y = load(tmp_path / "a.conll", block_size=size)
        assert sentences.words.tolist() == ["Confidence", "in", "the"]
        assert sentences.offsets.tolist() == [0, 2, 3] and len(sentences) == 2
        assert y.tolist() == ["B-NP", "B-PP", "B-NP"]
    (batch,) = read(tmp_path / "a.conll", target=1)
    assert batch.y.tolist() == ["NN", "IN", "DT"] and batch.lines.tolist() == [1, 6]
    _, second = batch.split(1)
    assert second.y.tolist() == ["DT"] and second.rows.words.tolist() == ["the"]


def test_what_is_refused(tmp_path):
    (tmp_path / "a.conll").write_text(COLUMNS)
    with pytest.raises(DataError, match=r"a.conll has no column 'pos' to be the target"):
        load(tmp_path / "a.conll", target="pos")
    with pytest.raises(DataError, match=r"a.conll holds sentences: their labels are tags"):
        load(tmp_path / "a.conll", task="regress")
    with pytest.raises(DataError, match=r"a.conll: weight= has no use here: the rows are sentences"):
        load(tmp_path / "a.conll", weight=1)
    (batch,) = read(tmp_path / "a.conll", target="pos", labels="optional")
    assert batch.y is None


def test_universal(tmp_path):
    (tmp_path / "a.conllu").write_text(UNIVERSAL)
    sentences, y = load(tmp_path / "a.conllu")
    assert sentences.words.tolist() == ["do", "not or", "go"] and sentences.offsets.tolist() == [0, 2, 3]
    assert y.tolist() == ["AUX", "PART", "VERB"]


def test_a_bad_line_makes_its_sentence_bad(tmp_path):
    (tmp_path / "a.conll").write_bytes(b"a X\nb Y\n\nc\nd Y\n\ne \xff\n\nf Z\n")
    bad = BadRows(limit=1.0)
    (batch,) = read(tmp_path / "a.conll", bad=bad)
    assert batch.rows.words.tolist() == ["a", "b", "f"]
    assert [(one.line, one.reason) for _, one in bad.examples] == [
        (4, "there are 1 columns and not 2"),
        (7, "byte 3 of the line is not UTF-8"),
    ]


@given(content=st.text("ab \t\n#1-.", max_size=60).map(str.encode) | st.binary(max_size=60), size=st.integers(1, 60))
def test_any_bytes(tmp_path_factory, content, size):
    path = tmp_path_factory.getbasetemp() / "any.conll"
    path.write_bytes(b"a X\n\n" + content)
    counts = []
    for block in (size, 10_000):
        bad = BadRows(limit=1.0)
        try:
            counts.append(sum(len(batch) for batch in read(path, bad=bad, block_size=block, workers=0)) + bad.count)
        except DataError as error:
            counts.append(str(error))
    assert counts[0] == counts[1]


def plain(text):
    """Sentences of two columns, as words and labels; None for one that cannot be read."""
    lines = [line.rstrip("\r") for line in text.split("\n")]
    tokens = [line for line in lines if line.strip() and not re.match("# |#[ \\t\\r]*$", line)]
    pattern = "\t" if tokens and "\t" in tokens[0] else "[ \t\r\f\v]+"
    found, rows = [], []
    for line in [*lines, ""]:
        if not re.sub("[ \t\r\f\v]", "", line):
            if rows:
                found.append(list(zip(*rows)) if all(len(row) == 2 for row in rows) else None)
            rows = []
            continue
        row = re.split(pattern, line if pattern == "\t" else line.strip(" \t\r\f\v"))
        comment = re.match("# |#[ \\t\\r]*$", line) and len(row) != 2
        if rows or not comment:
            rows.append(row)
    return found


@given(
    first=st.sampled_from(["a X\n", "a\tX\n", "# b\n\na X\n"]),
    content=st.text("ab#\xa0é\x85 \t\n\r", max_size=40) | st.lists(st.sampled_from(
        ["a X", "# X", "# a b", "#", "a", "", "#\tX", "a b\tY", "é\xa0 Z", "\t"]), max_size=12).map("\n".join),
    size=st.sampled_from([1, 10_000]),
)  # fmt: skip
def test_as_a_plain_parser_reads_it(tmp_path_factory, first, content, size):
    path = tmp_path_factory.getbasetemp() / "plain.conll"
    path.write_bytes((first + content).encode())
    bad = BadRows(limit=1.0)
    found = []
    for batch in read(path, bad=bad, block_size=size, workers=0):
        for one in batch.split(1):
            found.append([tuple(one.rows.columns["c0"]), tuple(one.rows.columns["c1"])])
    expected = plain(first + content)
    assert found == [one for one in expected if one is not None] and bad.count == expected.count(None)


def test_real_sentences(data):
    sentences, y = load(data("conll2000") / "train.txt.gz")
    assert len(sentences) == 8936 and len(y) == 211_727
    sentences, _ = load(data("ud_english_ewt") / "dev.conllu.gz")
    assert len(sentences) == 2001


@pytest.mark.parametrize(
    ("content", "words", "labels"),
    [
        ("10\xa0000 CD\ndogs NNS\n\n", ["10\xa0000", "dogs"], ["CD", "NNS"]),
        ("10 000\tCD\ndogs\tNNS\n\n", ["10 000", "dogs"], ["CD", "NNS"]),
        ("a\x85b  X \r\nc\td\n", ["a\x85b", "c"], ["X", "d"]),  # blanks first: any ASCII white space
        ("a\tX\r\nb\t\r\n\r\n", ["a", "b"], ["X", ""]),
    ],
)
def test_what_separates_columns(tmp_path, content, words, labels):
    (tmp_path / "a.conll").write_bytes(content.encode())
    sentences, y = load(tmp_path / "a.conll")
    assert (sentences.words.tolist(), y.tolist()) == (words, labels)


def test_every_file_has_its_own_separator(tmp_path):
    (tmp_path / "a.conll").write_text("10 000\tCD\n\n")
    (tmp_path / "b.conll").write_text("dogs NNS\n\n")
    for names in (["a.conll", "b.conll"], ["b.conll", "a.conll"]):
        sentences, _ = load([tmp_path / name for name in names])
        assert sorted(sentences.words.tolist()) == ["10 000", "dogs"]


@pytest.mark.parametrize("size", [1, 1000])
def test_comments_of_columns(tmp_path, size):
    path = tmp_path / "a.conll"
    path.write_text("# # O\n£ # B\n\n# sent_id = 1\n#\n# one\n# newdoc\na X O\n# # B\n\n# # O\n")
    sentences, y = load(path, block_size=size)
    assert sentences.words.tolist() == ["#", "£", "a", "#", "#"] and y.tolist() == ["O", "B", "O", "B", "O"]
    path.write_text("# sent_id = 1\na X Y O\n\n")  # of four columns, as the comment
    assert load(path, block_size=size)[0].words.tolist() == ["a"]
    path.write_text("# c only\n\n# c only\n")
    with pytest.raises(DataError, match="there are no rows"):
        load(path, block_size=size)
    path.write_text("a X\n# no comment here\n\nb Y\n")
    with pytest.raises(DataError, match="4 columns and not 2: comments stand before a sentence"):
        load(path, block_size=size, strict=True)


def test_lines_that_are_no_tokens_are_kept_if_asked(tmp_path):
    (tmp_path / "a.conllu").write_text("1\tbad\n# of it\n\n" + UNIVERSAL + "\n# behind\n")
    (batch,) = read(tmp_path / "a.conllu", comments=True, bad=BadRows(limit=1.0))
    kept = [(aside.sentence, aside.token, aside.line.split("\t")[0]) for aside in batch.rows.asides]
    assert kept == [(0, 0, "# sent_id = 1"), (0, 0, "1-2"), (0, 2, "2.1"), (2, 3, "# behind")]
    first, second = batch.split(1)
    assert [aside.sentence for aside in first.rows.asides] == [0, 0, 0]
    assert [(aside.sentence, aside.token) for aside in second.rows.asides] == [(1, 1)]
    (batch,) = read(tmp_path / "a.conllu", bad=BadRows(limit=1.0))
    assert not batch.rows.asides
