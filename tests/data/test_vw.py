"""The compiled Vowpal Wabbit parser against a plain one, and against hostile files."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from onlearn.compiler import compiled
from onlearn.compiler.intrinsics import LINE, ends_among
from onlearn.data import BadRows, DataError, load, read
from onlearn.data.batch import START, hash_name
from plain_text import CONTROL, is_utf16, plain_text

NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
MISSING = re.compile(rb"[+-]?nan", re.I)


def plain(content: bytes) -> tuple[list, list[int]]:
    """Rows as (line, label, weight, tag, features), and the lines of bad ones."""
    rows, bad = [], []
    for line, text in enumerate(plain_text(content).split(b"\n"), 1):
        text = text.strip(b" \t\r")
        if text:
            row = plain_row(text)
            if row is None:
                bad.append(line)
            else:
                rows.append((line, *row))
    return rows, bad


def plain_number(text: bytes) -> float | None:
    return float(text) if NUMBER.fullmatch(text) and not np.isinf(float(text)) else None


def plain_factor(text: bytes) -> float | None:
    """A scale or an importance: numbers at the edges of what a float can hold are refused."""
    value = plain_number(text)
    return None if value and not 1e-307 < abs(value) < 8e307 else value


def plain_row(text: bytes) -> tuple | None:
    try:
        text.decode()
    except UnicodeDecodeError:
        return None
    if b"\0" in text:
        return None
    before, bar, rest = text.partition(b"|")
    words = [word for word in re.split(rb"[ \t\r]+", before) if word]
    tag = None
    if words and (before[-1:] not in (b" ", b"\t", b"\r") or words[-1].startswith(b"'")):
        tag = words.pop().removeprefix(b"'").decode() or None
    if not bar or not 1 <= len(words) <= 3 or CONTROL.search(words[0]):
        return None
    numbers = [plain_number(word) for word in words[1:]]
    if None in numbers or (numbers and numbers[0] < 0):
        return None
    features = []
    for part in rest.split(b"|"):
        space, scale = "", 1.0
        words_here = [word for word in re.split(rb"[ \t\r]+", part) if word]
        if part[:1] not in (b"", b" ", b"\t", b"\r"):
            name, colon, value = words_here.pop(0).partition(b":")
            space = name.decode()
            scale = plain_factor(value) if colon else 1.0
            if scale is None:
                return None
        for word in words_here:
            name, colon, value = word.partition(b":")
            if not name:
                return None
            if colon and MISSING.fullmatch(value):
                continue
            number = plain_number(value) if colon else 1.0
            if number is None or np.isinf(number * scale):
                return None
            features.append(((space + "^" if space else "") + name.decode(), number * scale))
    return words[0].decode(), (numbers[0] if numbers else 1.0), tag, features


def parsed(path, **options) -> tuple[list, list[int]]:
    bad = BadRows(limit=1.0, shown=10**6)
    rows = []
    try:
        for batch in read(path, bad=bad, **options):
            named = batch.rows
            weights = np.ones(len(batch)) if batch.weight is None else batch.weight
            ids = [None] * len(batch) if batch.ids is None else batch.ids
            for n in range(len(batch)):
                at = range(named.indptr[n], named.indptr[n + 1])
                features = [(named.name(k), float(named.values[k])) for k in at]
                rows.append((int(batch.lines[n]), batch.y[n], float(weights[n]), ids[n], features))
                for k in at:
                    prefix = named.prefixes[named.groups[k]]
                    seed = hash_name(prefix) if prefix else START
                    assert named.hashes[k] == hash_name(named.name(k).removeprefix(prefix), seed)
    except DataError as error:
        if not re.search("no rows|is empty|is compressed by", str(error)):
            raise
    return rows, [one.line for _, one in bad.examples]


numbers = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.from_regex(r"-?[0-9]{0,2}\.[0-9]{0,10}", fullmatch=True),
    st.sampled_from(["1", "0.5", "-2", "1e3", "nan", "inf", "1e999", "x", "", "123456789012345678901234567890", "1:2"]),
)
names = st.sampled_from(
    ["a", "b", "word", "a^b", "größe", "long-name-of-sixteen", "x" * 29, "x" * 40, "1", "'q", "a=b", "\x01"]
)
features = names | st.tuples(names, numbers).map(":".join) | st.just(":1")
spaces = st.sampled_from(
    ["", " ", "f", "f ", "long_namespace ", "f:2 ", "g:0.5 ", "g:1e300 ", "g:x ", "größe ", "12345678 "]
)
starts = st.sampled_from(
    [
        "1 ",
        "-1 ",
        "spam ",
        "1 2.0 ",
        "1 2 0.5 ",
        "1 'tag ",
        "1 tag",
        "1 2.5 'tag",
        "",
        "tag",
        "1 -1 ",
        "1 x ",
        "1 2 3 4 ",
    ]
)
lines = st.builds(
    lambda start, parts, end: (start + "".join(f"|{space}{' '.join(words)} " for space, words in parts) + end).encode(),
    starts,
    st.lists(st.tuples(spaces, st.lists(features, max_size=4)), max_size=3),
    st.sampled_from(["\n", "\r\n", " \t\n", ""]),
)
SMALL = st.sampled_from([1, 5, 17, 64, 1000])


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("vw") / "file.vw"


@given(content=st.lists(lines, max_size=10).map(b"".join), size=SMALL)
def test_equals_the_plain_parser(path, content, size):
    path.write_bytes(content)
    assert repr(parsed(path, workers=0, block_size=size)) == repr(plain(content))


@given(content=st.text("1 |'ab:.\t\r\nü\x00", max_size=60).map(str.encode) | st.binary(max_size=100), size=SMALL)
def test_any_bytes(path, content, size):
    assume(not is_utf16(content))
    path.write_bytes(content)
    assert repr(parsed(path, workers=0, block_size=size)) == repr(plain(content))


@compiled
def ends(base, place, limit, first, second):
    return ends_among(base, place, limit, first, second)


@given(content=st.binary(min_size=64, max_size=64), place=st.integers(0, 32))
def test_ends_are_found_many_at_a_time(content, place):
    text = np.frombuffer(content, np.uint8)
    found = int(ends(np.uint64(text.ctypes.data), *map(np.uint64, (place, 33, 58, 124))))
    assert found == sum((c <= 32 or c in b":|") << n for n, c in enumerate(content[place : place + LINE]))


def test_blocks_may_hold_many_times_what_those_before_them_did(tmp_path):
    few, many = "1 |f " + "a" * 1000 + "\n", "1 |f" + " a" * 500 + "\n" + "1 |\n" * 200
    (tmp_path / "a.vw").write_text(few * 3000 + many * 1500 + few * 3000)
    named, y = load(tmp_path / "a.vw", block_size=1 << 20 | 1 << 14)
    assert np.diff(named.indptr).tolist() == [1] * 3000 + ([500] + [0] * 200) * 1500 + [1] * 3000
    assert len(y) == 6000 + 201 * 1500


def test_batches_with_different_namespaces_load_together(tmp_path):
    (tmp_path / "a.vw").write_text("1 |a x y\n2 |b x | z\n1 |a:2 x:3\n")
    named, y = load(tmp_path / "a.vw", block_size=10)
    assert [named.name(k) for k in range(5)] == ["a^x", "a^y", "b^x", "z", "a^x"]
    assert named.values.tolist() == [1, 1, 1, 1, 6] and named.indptr.tolist() == [0, 2, 4, 5]
    assert y.tolist() == ["1", "2", "1"]
    assert named.hashes[0] == named.hashes[4]


def test_regression_and_optional_labels(tmp_path):
    (tmp_path / "a.vw").write_text("0.25 |a x\n|a y\n")
    (batch,) = read(tmp_path / "a.vw", task="regress", labels="optional")
    assert batch.y[0] == 0.25 and np.isnan(batch.y[1])


def test_a_word_that_touches_the_bar_is_a_tag(tmp_path):
    (tmp_path / "a.vw").write_text("1|a x\n")
    with pytest.raises(DataError, match="a word that touches the bar is a tag"):
        load(tmp_path / "a.vw")


def test_many_namespaces(tmp_path):
    (tmp_path / "a.vw").write_text("".join(f"1 |n{n} x\n" for n in range(70_000)))
    batch = next(read(tmp_path / "a.vw"))
    assert len(batch) == 70_000 and batch.rows.name(69_999) == "n69999^x"


def test_an_initial_prediction_is_noted(tmp_path):
    (tmp_path / "a.vw").write_text("1 1 0.5 |a x\n")
    reader = read(tmp_path / "a.vw")
    list(reader)
    assert any("initial predictions" in note for note in reader.notes)


def test_infinity_in_full_is_infinite_too(tmp_path):
    path = tmp_path / "a.vw"
    path.write_text("1 | x:1\n1 | x:-Infinity\n1 | x:inf\n1 | x:infinitely\n")
    bad = BadRows(limit=1.0)
    list(read(path, bad=bad))
    infinite, other = "the value is infinite", "the value is not a number"
    assert [one.reason for _, one in bad.examples] == [infinite, infinite, other]
