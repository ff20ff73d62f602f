"""The compiled svmlight parser against a plain one, and against hostile files."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from onlearn.data import BadRows, DataError, load, read
from plain_text import CONTROL, is_utf16, plain_text

NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
SMALL = st.sampled_from([1, 5, 17, 64, 1000])


def plain(content: bytes, regress: bool = False) -> tuple[list, list[int]]:
    """Rows as (line, label, qid, features), and the lines of bad ones."""
    rows, bad = [], []
    for line, text in enumerate(plain_text(content).split(b"\n"), 1):
        words = [word for word in re.split(rb"[ \t\r]+", text) if word]
        if not words or words[0].startswith(b"#"):
            continue
        row = plain_row(words, regress)
        if row is None:
            bad.append(line)
        else:
            rows.append((line, *row))
    return rows, bad


def plain_row(words: list[bytes], regress: bool) -> tuple | None:
    label, qid, features = words[0], -1, []
    if b":" in label:
        return None
    if regress:
        if not NUMBER.fullmatch(label) or np.isinf(float(label)):
            return None
        label = float(label)
    else:
        if CONTROL.search(label):
            return None
        try:
            label = label.decode()
        except UnicodeDecodeError:
            return None
    for word in words[1:]:
        if word.startswith(b"#"):
            break
        word, comment, _ = word.partition(b"#")
        name, colon, value = word.partition(b":")
        if name == b"qid" and colon and not comment and re.fullmatch(rb"0*\d{1,18}", value):
            qid = int(value)
            continue
        if not re.fullmatch(rb"0*\d{1,18}", name) or not colon:
            return None
        if re.fullmatch(rb"[+-]?nan", value, re.I):
            continue  # a missing value is an absent feature
        if not NUMBER.fullmatch(value) or np.isinf(float(value)):
            return None
        features.append((int(name), float(value)))
        if comment:
            break
    features.sort(key=lambda feature: feature[0])
    return label, qid, features


def parsed(path, regress: bool = False, **options) -> tuple[list, list[int]]:
    bad = BadRows(limit=1.0, shown=10**6)
    rows = []
    try:
        for batch in read(path, bad=bad, task="regress" if regress else "classify", **options):
            X = batch.rows
            assert X.has_sorted_indices
            qids = np.full(len(batch), -1) if batch.groups is None else batch.groups
            for n, label in enumerate(batch.y.tolist()):
                at = slice(X.indptr[n], X.indptr[n + 1])
                features = list(zip(X.indices[at].tolist(), X.data[at].tolist()))
                rows.append((int(batch.lines[n]), label, int(qids[n]), features))
    except DataError as error:
        if not re.search("no rows|is empty|is compressed by", str(error)):
            raise
    return rows, [one.line for _, one in bad.examples]


def same(first: tuple, second: tuple) -> bool:
    """Equal, -0.0 and 0.0 told apart."""
    return repr(first) == repr(second)


floats = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(0, 1).map(lambda x: f"{x:.6g}"),
    st.from_regex(r"[+-]?[0-9]{0,25}\.?[0-9]{0,25}(e[+-]?[0-9]{1,3})?", fullmatch=True),
    st.integers(-(10**20), 10**20).map(str),
    st.sampled_from(
        ["1", "0", "-0", "nan", "NaN", "inf", "-inf", "1e400", "4.9e-324", "", "x", "1_0", "0x1", "1e", "."]
    ),
)
indices = st.one_of(
    st.integers(0, 200).map(str),
    st.integers(0, 2**63).map(str),
    st.sampled_from(["007", "-1", "1.5", "999999999999999999", "9999999999999999999999", "2147483647", "2147483646"]),
)
features = st.tuples(indices, floats).map(":".join) | st.sampled_from(
    ["qid:3", "qid:", "qid:x", "qid:7#", "# 1:2", "1:2#c"]
)
labels = st.sampled_from(["1", "-1", "+1", "spam", "ümlaut", "a,b", "2.50", "1:1", "#no"]) | floats.filter(bool)
separators = st.sampled_from([" ", "  ", "\t", " \r", " \t "])
lines = st.builds(
    lambda start, words, gap, end: (start + gap.join(words) + end).encode(),
    st.sampled_from(["", " ", "\t"]),
    st.builds(lambda label, features: [label, *features], labels, st.lists(features, max_size=6)) | st.just([]),
    separators,
    st.sampled_from(["\n", "\r\n", " \n", ""]),
)
files = st.lists(lines, max_size=12).map(b"".join)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("svmlight") / "file.svm"


@given(content=files, size=SMALL, regress=st.booleans())
def test_equals_the_plain_parser(path, content, size, regress):
    path.write_bytes(content)
    assert same(parsed(path, regress, workers=0, block_size=size), plain(content, regress))


@given(content=st.binary(max_size=200), size=SMALL)
def test_any_bytes(path, content, size):
    assume(not is_utf16(content))
    path.write_bytes(content)
    assert same(parsed(path, workers=0, block_size=size), plain(content))


@given(words=st.lists(floats.filter(lambda text: NUMBER.fullmatch(text.encode())), min_size=1, max_size=50))
def test_numbers_are_correctly_rounded(path, words):
    words = [word for word in words if not np.isinf(float(word))] or ["0"]
    path.write_text("1 " + " ".join(f"{n}:{word}" for n, word in enumerate(words)) + "\n")
    X, _ = load(path, workers=0)
    assert list(map(repr, X.data.tolist())) == [repr(float(word)) for word in words]


def test_round_trip_with_scikit_learn(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 30)) * (rng.random((200, 30)) < 0.3)
    y = rng.integers(3, size=200)
    file = tmp_path / "made.svm"
    dump_svmlight_file(X, y, str(file), zero_based=True)
    loaded, labels = load(file, block_size=1000)
    theirs, _ = load_svmlight_file(str(file), n_features=30, zero_based=True)
    loaded.resize(200, 30)
    assert (loaded != theirs).nnz == 0
    assert labels.tolist() == [str(label) for label in y]


def test_duplicates_stay_and_sum_when_made_canonical(tmp_path):
    (tmp_path / "a.svm").write_text("1 3:1 2:5 3:2.5\n")
    X, _ = load(tmp_path / "a.svm")
    assert X.indices.tolist() == [2, 3, 3] and not X.has_canonical_format
    X.sum_duplicates()
    assert X.toarray().tolist() == [[0, 0, 5, 3.5]]


def test_wide_indices_are_int64(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1\n0 3000000000:1\n")
    X, _ = load(tmp_path / "a.svm")
    assert X.indices.dtype == np.int64 and X.shape == (2, 3_000_000_001)


def test_labels_are_optional_for_predicting(tmp_path):
    (tmp_path / "a.svm").write_text("1:1 2:1\nyes 3:1\n")
    (batch,) = read(tmp_path / "a.svm", labels="optional")
    assert batch.y.tolist() == [None, "yes"] and batch.codes.tolist() == [-1, 0]


def test_missing_values(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:nan 2:1\n" * 200 + "1 3:1\n")
    X, _ = load(tmp_path / "a.svm")
    assert X.nnz == 201
    with pytest.raises(DataError, match="line 1, column 5: the value is missing"):
        load(tmp_path / "a.svm", missing="error", strict=True)


def test_many_labels_and_long_tokens(tmp_path):
    names = [f"label-{n}" for n in range(5000)]
    text = "".join(f"{name} 1:1\n" for name in names) + "x" * (1 << 20) + " 1:1\n" + "0 1:" + "0" * (1 << 20) + "1\n"
    (tmp_path / "a.svm").write_text(text)
    for size in (1 << 12, 1 << 22):
        X, y = load(tmp_path / "a.svm", block_size=size)
        assert y.tolist() == [*names, "x" * (1 << 20), "0"]
        assert X.data[-1] == 1.0


def test_label_codes_are_the_same_across_batches(tmp_path):
    (tmp_path / "a.svm").write_text("b 1:1\na 1:1\nc 1:1\nb 1:1\n")
    reader = read(tmp_path / "a.svm", block_size=5)
    codes = [batch.codes.tolist() for batch in reader]
    assert codes == [[0], [1], [2], [0]] and reader.label_names == ["b", "a", "c"]


def test_real_file(data):
    X, y = load(data("a9a") / "a9a.svm", block_size=100_000)
    theirs, labels = load_svmlight_file(str(data("a9a") / "a9a.svm"), zero_based=True)
    assert (theirs != X).nnz == 0 and np.array_equal(y.astype(float), labels)
