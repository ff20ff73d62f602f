"""Raw sentences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlearn.data import BadRows, DataError, load, read
from onlearn.data.formats.sentences import tokens_of


def test_one_a_line(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"A dog barks .\n\n  It\tdoes\r\nso")
    sentences, y = load(tmp_path / "a.txt", format="sentences")
    assert y is None and list(sentences.columns) == ["form"] and sentences.offsets.tolist() == [0, 4, 6, 7]
    assert sentences.words.tolist() == ["A", "dog", "barks", ".", "It", "does", "so"]
    (batch,) = read(tmp_path / "a.txt", format="sentences")
    assert batch.lines.tolist() == [1, 3, 4]


def test_what_is_bad(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"a\n\xff\nb\n")
    bad = BadRows(limit=1.0)
    (batch,) = read(tmp_path / "a.txt", format="sentences", bad=bad)
    assert batch.rows.words.tolist() == ["a", "b"]
    assert [(one.line, one.reason) for _, one in bad.examples] == [(2, "byte 1 of the line is not UTF-8")]
    with pytest.raises(DataError, match="target= has no use here: the rows are sentences without columns"):
        load(tmp_path / "a.txt", format="sentences", target="x")


def test_a_space_that_does_not_break_is_part_of_a_word(tmp_path):
    (tmp_path / "a.txt").write_text("10\xa0000 dogs\x85\n\x0b\n")
    sentences, _ = load(tmp_path / "a.txt", format="sentences")
    assert sentences.words.tolist() == ["10\xa0000", "dogs\x85"] and sentences.offsets.tolist() == [0, 2]


@given(st.lists(st.text("ab \t\r\f\v\x1c\x85\xa0é", max_size=8), max_size=4))
def test_any_text(tmp_path_factory, lines):
    path = tmp_path_factory.getbasetemp() / "any.txt"
    path.write_bytes("\n".join(["first", *lines]).encode())
    sentences, _ = load(path, format="sentences", workers=0)
    expected = [tokens for tokens in map(tokens_of, ["first", *lines]) if tokens]
    assert [sentences.between(n, n + 1).words.tolist() for n in range(len(sentences))] == expected
