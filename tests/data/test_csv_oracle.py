"""CSV by blocks through PyArrow, against a plain loop over every byte of the text."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from onlearn.data import BadRows, DataError, read
from onlearn.data.formats import csv as csv_format
from onlearn.data.formats.csv_layout import guess_quotes
from plain_text import plain_text

MISSING = ("", "?", "NA", "N/A", "NaN", "nan", "null", "NULL")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
FINE, WIDTH = "", "there are {} cells and not {}"
OPEN, AFTER = "a quote is opened and never closed", "there is text after a closing quote"


def scan(text: bytes, delimiter: int, quote: int, width: int):
    """Each row: start, stop, line, number of cells, what is wrong, cells (where they start, what they hold)."""
    newline, stop = 10, len(text)
    leading, trailing = {32, 9} - ({9} if delimiter == 9 else set()), {32, 13, 9} - {delimiter}
    p, line = 0, 0
    while p < stop:
        begin, wrong, cells, inner, second, ended = p, FINE, [], 0, 0, False
        while not ended:
            while p < stop and text[p] in leading:
                p += 1
            first, cell, quoted = p, b"", p < stop and text[p] == quote
            if quoted:
                p, first, closed = p + 1, p + 1, False
                while p < stop and not closed:
                    if text[p] == quote and p + 1 < stop and text[p + 1] == quote:
                        cell += b'"'
                        p += 2
                        continue
                    if text[p] == quote:
                        closed = True
                    elif text[p] == newline:
                        inner += 1
                        second = second or p + 1
                    if not closed:
                        cell += text[p : p + 1]
                    p += 1
                if not closed:
                    wrong = OPEN
                    break
                while p < stop and text[p] in trailing:
                    p += 1
                if p < stop and text[p] not in (delimiter, newline):
                    wrong = AFTER
            after = p
            while p < stop and text[p] not in (delimiter, newline):
                p += 1
            if not quoted:
                cell = text[after:p].rstrip(bytes(trailing))
            cells.append((first, cell))
            ended = text[p] == newline
            p += 1
        if wrong == FINE and width and len(cells) != width:
            wrong = WIDTH
        if wrong != FINE and second:
            p, inner = second, 0
        if wrong == OPEN or len(cells) != 1 or text[begin:p].strip(b" \t\r\n"):
            yield begin, p, line, len(cells), wrong, cells
        line += inner + 1


def oracle(text: bytes, delimiter: str, numeric: set[int]):
    """Lines and cells of good rows, and bad ones as (line, column, reason, bytes), both with lines from 1."""
    text = plain_text(text)
    if text and not text.endswith(b"\n"):
        text += b"\n"
    lines = [line.decode("utf-8", "replace") for line in text.splitlines() if line.strip()]
    dialect = ord(delimiter), ord('"') if guess_quotes(lines, delimiter) else -1
    widths = [row[3] for row in scan(text, *dialect, 0) if row[3]][:100]
    width = Counter(widths).most_common(1)[0][0] if widths else 1
    good, bad = [], []
    for start, stop, line, cells_found, wrong, cells in scan(text, *dialect, width):
        raw = text[start:stop]
        if wrong:
            bad.append((line + 1, 0, wrong.format(cells_found, width), raw))
            continue
        try:
            raw.decode()
        except UnicodeDecodeError as error:
            bad.append((line + 1, error.start + 1, f"byte {error.start + 1} of the row is not UTF-8", raw))
            continue
        row = []
        for n, (place, cell) in enumerate(cells):
            value = None if cell.decode() in MISSING else cell.decode()
            if n in numeric and value is not None:
                if not NUMBER.fullmatch(value) or np.isinf(float(value)):
                    try:
                        infinite = np.isinf(float(cell))
                    except ValueError:
                        infinite = False
                    what = "is infinite" if infinite else "is not a number, as it was in the first rows"
                    bad.append((line + 1, place - start + 1, f"'c{n}' {what}", raw))
                    break
                value = float(value)
            row.append(value)
        else:
            good.append((line + 1, row))
    return good, bad


def ours(path, delimiter: str, numeric: set[int], width: int, size: int):
    kinds = {f"c{n}": "number" if n in numeric else "string" for n in range(width)}
    bad = BadRows(limit=1.0, shown=10_000)
    options = dict(labels="optional", header=False, types=kinds, delimiter=delimiter, block_size=size, workers=0)
    good = []
    for batch in read(path, format="csv", bad=bad, target=width - 1 if width > 1 else None, **options):
        columns = [column.to_pylist() for column in batch.rows.columns]
        targets = [] if batch.y is None else [batch.y.tolist()]
        good += [(line, list(row)) for line, *row in zip(batch.lines.tolist(), *columns, *targets)]
    return good, [(one.line, one.column, one.reason, one.raw) for _, one in bad.examples]


cells = st.sampled_from(
    ["1", "-2.5", "3e4", "+7", "007", "5.", ".5", "", "?", "NA", "nan", "NAN", "inf", "1e999", "a", "b c", "é", "x"]
    + ['"1"', '" 2"', '"a"', '""', '"NA"', '" NA "', '"a""b"', '""""', '"a\nb"', '"a\r\nb"', '"1\n"', '"a\rb"', '"a,b"']
    + ['a"b', '"a', 'a"', '"a" b', ' "a" ', "\t1 ", " a\t", "a\rb", "\r", '5" x', '6"', " ", '"\n"', "\ufeff", "\x01"]
)


@st.composite
def texts(draw):
    delimiter = draw(st.sampled_from([",", ";", "\t", "|", " "]))
    width = draw(st.integers(1, 4))
    rows = draw(
        st.lists(
            st.lists(cells, min_size=width, max_size=width)
            | st.lists(cells, min_size=width, max_size=width)
            | st.lists(cells, max_size=5),
            min_size=1,
            max_size=15,
        )
    )
    ends = draw(
        st.lists(st.sampled_from(["\n", "\n", "\n", "\r\n", " \n", "\n\n"]), min_size=len(rows), max_size=len(rows))
    )
    text = "".join(delimiter.join(row) + end for row, end in zip(rows, ends))
    if draw(st.booleans()):
        text = text.rstrip("\n")
    raw = text.replace(",", delimiter).encode()
    if draw(st.integers(0, 9)) == 0:
        place = draw(st.integers(0, len(raw)))
        raw = raw[:place] + b"\xff" + raw[place:]
    return raw, delimiter


@given(
    text=texts() | st.tuples(st.text('ab1,"\t\n\r ;?', min_size=1, max_size=60).map(str.encode), st.just(",")),
    width=st.integers(1, 4),
    size=st.sampled_from([1, 2, 5, 17, 50, 301, 402, 503, 610, 100_000]),
    numeric=st.sets(st.integers(0, 2), max_size=2),
)
@example((b'"a\n"\n1\n', ","), 1, 1, set())
@example((b'1, "2" ,3\n1 ,"a, b", 3\n', ","), 3, 1000, {0, 2})
@example((b'1,"x\n2,y\n3,"\n', ","), 2, 405, {0})
@example((b'"1,x\n2,y\n3,z\n', ","), 2, 405, {0})
def test_as_read_byte_by_byte(tmp_path_factory, text, width, size, numeric):
    """However the text is cut into blocks. A hundred plain rows before it say how many cells a row has."""
    raw, delimiter = text
    raw = (delimiter.join("1" * width) + "\n").encode() * 100 + raw
    numeric = {n for n in numeric if n < width - 1}  # the last column is the target: as it is written
    path = tmp_path_factory.getbasetemp() / "oracle.csv"
    path.write_bytes(raw)
    assert ours(path, delimiter, numeric, width, size) == oracle(raw, delimiter, numeric)


@given(text=texts())
def test_as_read_byte_by_byte_from_the_start(tmp_path_factory, text):
    """The first rows say how many cells a row has."""
    raw, delimiter = text
    if raw.startswith(b"\xff\xfe") or not plain_text(raw).strip():
        return
    path = tmp_path_factory.getbasetemp() / "oracle.csv"
    path.write_bytes(raw)
    good, bad = oracle(raw, delimiter, set())
    if good:
        assert ours(path, delimiter, set(), len(good[0][1]), 100_000) == (good, bad)
    else:
        with pytest.raises(DataError, match="not one of the first rows"):
            ours(path, delimiter, set(), 1, 100_000)


@given(text=texts(), width=st.integers(1, 4))
def test_row_by_row_if_pyarrow_refuses(tmp_path_factory, text, width):
    raw, delimiter = text
    raw = (delimiter.join("1" * width) + "\n").encode() * 100 + raw
    path = tmp_path_factory.getbasetemp() / "oracle.csv"
    path.write_bytes(raw)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_format, "read_table", lambda *_: None)
        assert ours(path, delimiter, {0} - {width - 1}, width, 300) == oracle(raw, delimiter, {0} - {width - 1})


def test_text_with_every_control_character_between_tabs(tmp_path):
    """Then no sign is left for PyArrow to enclose cells with."""
    path = tmp_path / "a.tsv"
    odd = bytes(range(1, 9)).decode() + '"x'
    path.write_text(f'{odd}\tb\n"lone\rreturn\tc\n', newline="")
    (batch,) = read(path, header=False, labels="optional", target=1)
    assert batch.rows.column("c0").to_pylist() == [odd, '"lone\rreturn']


def test_bytes_are_never_read_as_numbers_by_other_rules(tmp_path):
    """Numbers are spelled the same way whether a block has bad cells or not."""
    spellings = ["1", "+1", "-1.5", "1.", ".5", "1e3", "1E-3", "4.9e-324", "1e-400", "0.1", "9007199254740993", "1e308"]
    path = tmp_path / "a.csv"
    for stray in ([], ["oops"], ["inf"], ['" 1"']):
        path.write_text("x,label\n" + "".join(f"{cell},a\n" for cell in [*spellings, *stray]))
        bad = BadRows(limit=1.0)
        (batch,) = read(path, header=True, types={"x": "number"}, bad=bad)
        assert batch.rows.column("x").to_pylist() == [float(cell) for cell in spellings]
        assert bad.count == len(stray)
