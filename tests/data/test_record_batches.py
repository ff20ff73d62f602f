"""Columns of all layouts written out, measured and cut: slices of them too."""

import numpy as np
import pyarrow as pa
import pytest

from onlearn.data.formats.record_batches import cut, encoded, is_all_text, is_plain, plain, row_bytes

WORDS = ["short", "", None, "a rather long word, longer than fits into a view"]
TURNS = pa.array([0, 3, 2, 1, 0, None, 3, 3], pa.int8())
COLUMNS = {
    "words": pa.array(WORDS * 2),
    "large": pa.array(WORDS * 2, pa.large_string()),
    "views": pa.array(WORDS * 2, pa.string_view()),
    "bytes": pa.array([b"\xff", None] * 4, pa.binary_view()),
    "coded": pa.DictionaryArray.from_arrays(TURNS, WORDS),
    "coded_views": pa.DictionaryArray.from_arrays(TURNS, pa.array(WORDS, pa.string_view())),
    "coded_twice": pa.DictionaryArray.from_arrays(TURNS, pa.DictionaryArray.from_arrays([0, 1, 2, 3], WORDS)),
    "runs": pa.RunEndEncodedArray.from_arrays(pa.array([1, 4, 8], pa.int16()), WORDS[:3]),
    "runs_of_codes": pa.RunEndEncodedArray.from_arrays([1, 4, 8], pa.array(["a", None, "b"]).dictionary_encode()),
    "lists": pa.array([WORDS, None, [], ["x"]] * 2),
    "lists_of_views": pa.array([WORDS, None, [], ["x"]] * 2, pa.list_(pa.string_view())),
    "lists_of_codes": pa.array([WORDS, None, [], ["x"]] * 2, pa.large_list(pa.dictionary(pa.int8(), pa.string()))),
    "pairs": pa.array([["a", "b"], None, ["c", None], ["d", "e"]] * 2, pa.list_(pa.string_view(), 2)),
    "list_views": pa.array([WORDS, None, [], ["x"]] * 2, pa.list_view(pa.string())),
    "maps": pa.array([[("k", "v")], None, [], [("a", None), ("b", "cc")]] * 2, pa.map_(pa.string(), pa.string())),
    "structs": pa.array([{"a": "x", "b": 1}, None, {"a": None, "b": 2}, {"a": "y", "b": None}] * 2,
                        pa.struct([("a", pa.string_view()), ("b", pa.int8())])),
    "deep": pa.array([[{"a": ["x", None]}, None], None, [], [{"a": None}]] * 2,
                     pa.list_(pa.struct([("a", pa.list_view(pa.dictionary(pa.int8(), pa.string())))]))),
    "decimals": pa.array([1, None] * 4, pa.decimal32(3, 1)),
    "uuids": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"a" * 16, None] * 4, pa.binary(16))),
    "nulls": pa.nulls(8),
}  # fmt: skip


def said(values):
    return [getattr(value, "bytes", value) for value in values.to_pylist()]  # UUIDs as what they are stored as


@pytest.mark.parametrize("name", COLUMNS)
def test_written_out(name):
    values = COLUMNS[name]
    for start, stop in ((0, 8), (1, 8), (2, 5), (3, 4), (4, 4)):
        part = values[start:stop]
        made = plain(part)
        made.validate(full=True)
        assert is_plain(made.type) and made.to_pylist() == said(part)
        assert made.take(pa.array(range(len(made)), pa.int64())).equals(made)


@pytest.mark.parametrize("name", COLUMNS)
def test_measured(name):
    values, small = COLUMNS[name], 64  # bytes of offsets that are stored otherwise
    sizes = row_bytes(values)
    for start, stop in ((0, 8), (1, 8), (2, 5), (3, 4), (4, 4)):
        part = values[start:stop]
        assert row_bytes(part).tolist() == sizes[start:stop].tolist()
        assert np.abs(row_bytes(plain(part)) - sizes[start:stop]).max(initial=0) <= small


def test_views_that_share_their_values():
    inner = pa.array(["x" * 1000] * 10)
    views = pa.ListViewArray.from_arrays(pa.array([0, 0, 5], pa.int32()), pa.array([10, 10, 5], pa.int32()), inner)
    assert row_bytes(views).tolist() == [8 + 10040, 8 + 10040, 8 + 5020]
    assert plain(views).to_pylist() == views.to_pylist()


def test_all_rows_are_in_the_pieces():
    rng = np.random.default_rng(0)
    column = pa.array(["x" * n for n in rng.integers(0, 200, 1000)])
    table = pa.table({"a": column, "b": column.dictionary_encode(), "c": range(1000)})
    for most_rows, most_bytes in ((10_000, 1e9), (7, 1e9), (10_000, 3000), (50, 100), (1, 1)):
        pieces = list(cut(table, most_rows, most_bytes))
        assert pa.concat_tables(pieces).equals(table)
        assert max(map(len, pieces)) <= most_rows
        sizes = [sum(row_bytes(one.chunk(0)).sum() for one in piece.columns) for piece in pieces]
        assert all(size <= most_bytes for size, piece in zip(sizes, pieces) if len(piece) > 1)


def test_positions():
    distinct, positions = encoded(COLUMNS["runs"][2:7])
    assert distinct.to_pylist() == WORDS[:3] and positions.tolist() == [1, 1, 2, 2, 2]
    assert encoded(COLUMNS["coded"])[1].tolist() == [0, 3, 2, 1, 0, -1, 3, 3]


def test_damage_is_told_from_text():
    wrong = pa.array([b"\xff", b"a"]).view(pa.string())
    assert is_all_text(pa.record_batch([pa.array(["a"])], ["t"]))
    assert not is_all_text(pa.record_batch([wrong], ["t"]))
    beyond = pa.DictionaryArray.from_arrays(pa.array([0, 7]), wrong, safe=False)
    with pytest.raises(pa.ArrowInvalid, match="out of bounds"):
        is_all_text(pa.record_batch([wrong, beyond], ["t", "c"]))
