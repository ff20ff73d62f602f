"""Raw sentences."""

from __future__ import annotations

import pytest

from onlearn.data import BadRows, DataError, load, read


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
