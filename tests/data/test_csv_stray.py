"""A word among many numbers is a bad row, wherever it stands; a column of words stays one."""

from __future__ import annotations

from onlearn.data import BadRows, read


def test_a_stray_word_makes_a_bad_row_and_no_column_of_words(tmp_path):
    rows = [f"{n / 7:.3f},{'yes' if n % 2 else 'no'}" for n in range(1000)]
    for place in (3, 500, 999):
        lines = list(rows)
        lines[place] = "oops,yes"
        (tmp_path / "a.csv").write_text("x,label\n" + "\n".join(lines) + "\n")
        bad = BadRows()
        batches = list(read(tmp_path / "a.csv", bad=bad))
        assert str(batches[0].rows.schema.field("x").type) == "double"
        assert sum(map(len, batches)) == 999
        assert [(one.line, one.column) for _, one in bad.examples] == [(place + 2, 1)]


def test_words_here_and_there_stay_words(tmp_path):
    (tmp_path / "a.csv").write_text("x,label\n" + "".join(f"{n if n % 50 else 'A1'},y{n % 2}\n" for n in range(1000)))
    (batch,) = read(tmp_path / "a.csv")
    assert str(batch.rows.schema.field("x").type) == "string"
