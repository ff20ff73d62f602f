"""A word among many numbers is a bad row, wherever it stands; a column of words stays one."""

from __future__ import annotations

from onlearn.data import BadRows, load, read


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


def test_rows_of_another_width_deep_in_a_block_of_numbers(tmp_path):
    """PyArrow reads such a block in parts, and numbers its rows through all of them."""
    lines = [f"{n},{n % 7}.5,{n % 2}" for n in range(200_000)]
    lines[100_000], lines[190_000] = "1,2", "1,2,3,4"
    path = tmp_path / "numbers.csv"
    path.write_text("a,b,label\n" + "\n".join(lines) + "\n")
    bad = BadRows()
    table, _ = load(path, bad=bad, workers=0, block_size=1 << 20)
    assert [one.line for _, one in bad.examples] == [100_002, 190_002]
    assert table.column("a").to_pylist() == [n for n in range(200_000) if n not in (100_000, 190_000)]
