"""Parsed rows that are kept from one reading to the next."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from onlearn import data
from onlearn.data import kept as kept_module
from onlearn.data.kept import place
from onlearn.data.named_rows import NamedRows
from onlearn.data.packing import restored, squeezed


def files(folder):
    """A file of each kind, with some bad rows."""
    rng = np.random.default_rng(0)
    svm, vw, table, objects = [], [], ["a,b,key,label,heavy"], []
    for n in range(400):
        y = "yes" if n % 3 else "no"
        svm.append(f"{y} qid:{n // 4} " + " ".join(f"{k}:{rng.normal():.3g}" for k in rng.integers(1, 90, 5)))
        vw.append(f"{2 * (n % 2) - 1} {1 + n % 3} 'tag{n}|a w{n % 7}:{n / 8} x |b y{n % 5}")
        table.append(f"{rng.random():.3f},{'?' if n % 11 == 0 else f'w{n % 4}'},k{n},{y},{1 + n % 2}")
        objects.append(json.dumps({"label": y, "text": f"words {n}", "size": n / 4}))
    svm[7], vw[9], table[50], objects[60] = "yes 1:oops", "1 |a x:y:z:0", "1,2", "{"
    made = {"a.svm": svm, "a.vw": vw, "a.csv": table, "a.jsonl": objects}
    for name, lines in made.items():
        (folder / name).write_text("\n".join(lines) + "\n")
    (folder / "b.svm.gz").write_bytes(gzip.compress(("\n".join(svm) + "\n").encode()))
    return folder


OPTIONS = {"a.csv": {"id": "key", "weight": "heavy"}}


def all_of(source, **options):
    """Batches, bad rows, notes and what was found out, comparable with ==; and the reader."""
    bad = data.BadRows(limit=0.5, shown=100)
    batches = []
    with data.read(source, bad=bad, block_size=1500, **options) as reader:
        for batch in reader:
            whole = [batch.file, list(batch.label_names or ())]
            for array in (batch.codes, batch.y, batch.weight, batch.ids, batch.groups, batch.lines):
                whole.append(None if array is None else (array.dtype.str, array.tolist()))
            rows = batch.rows
            if isinstance(rows, NamedRows):
                whole += [(a.dtype.str, a.tolist()) if isinstance(a, np.ndarray) else a for a in rows]
            elif sp.issparse(rows):
                whole += [rows.shape, rows.has_sorted_indices, rows.has_canonical_format]
                whole += [(a.dtype.str, a.tolist()) for a in (rows.data, rows.indices, rows.indptr)]
            else:
                whole.append((str(rows.schema), rows.to_pydict()))
            batches.append(whole)
    return (batches, bad.rows, bad.examples, reader.notes, reader.found()), reader


@pytest.mark.parametrize("name", ["a.svm", "a.vw", "a.csv", "a.jsonl", "b.svm.gz"])
def test_the_same_rows_without_parsing(tmp_path, monkeypatch, name):
    source, options = str(files(tmp_path) / name), OPTIONS.get(name, {})
    plain, _ = all_of(source, **options)
    first, reader = all_of(source, cache=True, **options)
    assert reader.kept.written and not reader.kept.used
    assert first == plain and len(plain[0]) > 3
    assert plain[2], "a bad row is among them"
    monkeypatch.setattr(data.Reader, "_pieces", lambda self: pytest.fail("parsed again"))
    for workers in (0, 2):
        again, reader = all_of(source, cache=True, workers=workers, **options)
        assert reader.kept.used and again == plain
    assert f".{name}.onlearn-cache" in os.listdir(tmp_path)


def test_bad_rows_count_again(tmp_path):
    source = str(files(tmp_path) / "a.svm")
    all_of(source, cache=True)
    with pytest.raises(data.DataError, match="line 8, column 7"):
        list(data.read(source, strict=True, block_size=1500, cache=True))
    bad = data.BadRows(tmp_path / "bad.txt", limit=0.5)
    list(data.read(source, bad=bad, block_size=1500, cache=True))
    assert (tmp_path / "bad.txt").read_text() == "yes 1:oops\n"


def test_not_used_with_other_options_or_a_changed_file(tmp_path, monkeypatch):
    source = str(files(tmp_path) / "a.csv")

    def used(**options):
        return all_of(source, cache=True, **options)[1].kept.used

    assert not used() and used()
    assert not used(target="b") and used(target="b")
    assert not used()
    os.utime(source, ns=(1, 1))
    assert not used() and used()
    with open(source, "a") as file:
        file.write("1,w1,k,yes,1\n")
    assert not used() and used()
    os.utime(source, ns=(5, 5))
    assert not used()
    other = files(tmp_path / "other" if (tmp_path / "other").mkdir() is None else tmp_path) / "a.csv"
    with open(other, "a") as file:
        file.write("1,w1,k,yess,1\n"[: os.path.getsize(source) - os.path.getsize(other)])
    os.utime(other, ns=(5, 5))
    os.replace(other, source)  # the same name, size and time
    assert not used()
    monkeypatch.setattr(kept_module, "code", lambda: "another version")
    assert not used() and used()


def test_a_file_that_changes_while_it_is_read_is_not_kept(tmp_path):
    source = files(tmp_path) / "a.svm"
    reader = data.read(source, block_size=1500, bad=data.BadRows(limit=0.5), cache=True)
    next(reader)
    os.utime(source, ns=(1, 1))
    list(reader)
    assert "changed while" in reader.kept.said and not place([source], None).exists()
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".tmp")]


def test_damaged_is_rebuilt_and_never_believed(tmp_path):
    source = files(tmp_path) / "a.svm"
    plain, reader = all_of(source, cache=True)
    path, rng = reader.kept.path, np.random.default_rng(1)
    whole = path.read_bytes()
    damaged = [b"", whole[:-1], whole[: len(whole) // 2], whole[100:], b"x" * 500, whole + b"x"]
    for place_ in rng.integers(0, len(whole), 25).tolist():
        damaged.append(whole[:place_] + bytes([whole[place_] ^ 0x41]) + whole[place_ + 1 :])
    for raw in damaged:
        path.write_bytes(raw)
        found, reader = all_of(source, cache=True)
        assert found == plain
        assert reader.kept.used or path.read_bytes() == whole  # a changed byte between two arrays does no harm


def test_stopped_leaves_nothing(tmp_path):
    source = files(tmp_path) / "a.svm"
    before = sorted(os.listdir(tmp_path))
    with data.read(source, block_size=1500, cache=True) as reader:
        next(reader)
        assert any(name.endswith(".tmp") for name in os.listdir(tmp_path))
    assert sorted(os.listdir(tmp_path)) == before


def test_what_a_killed_run_left_is_removed(tmp_path):
    source = files(tmp_path) / "a.svm"
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    left = tmp_path / f".a.svm.onlearn-cache.{gone.stdout.strip()}.tmp"
    left.write_text("half")
    all_of(source, cache=True)
    assert not left.exists() and place([source], None).exists()


def test_several_files_in_a_folder(tmp_path):
    files(tmp_path)
    folder = tmp_path / "kept"
    folder.mkdir()
    named = [str(tmp_path / "a.svm"), str(tmp_path / "b.svm.gz")]
    plain, _ = all_of(named)
    assert all_of(named, cache=folder)[0] == plain
    again, reader = all_of(named, cache=folder)
    assert again == plain and reader.kept.used
    assert not all_of(named[::-1], cache=folder)[1].kept.used  # another order, other rows
    assert len(os.listdir(folder)) == 2


def test_without_a_place_it_is_just_read(tmp_path):
    source = tmp_path / ("x" * 245 + ".svm")  # rights would not stop root, but the cache's name is too long
    source.write_text("1 1:1\n0 2:1\n")
    reader = data.read(source, cache=True)
    assert sum(map(len, reader)) == 2
    assert "not kept" in reader.kept.said and os.listdir(tmp_path) == [source.name]


def test_disk_full_is_no_error(tmp_path, monkeypatch):
    source = files(tmp_path) / "a.svm"

    def full(*_):
        raise OSError(28, "No space left on device")

    reader = data.read(source, block_size=1500, bad=data.BadRows(limit=0.5), cache=True)
    next(reader)
    monkeypatch.setattr(kept_module, "squeezed", full)
    assert len(list(reader)) > 3
    assert reader.kept.said == "not kept: No space left on device"
    assert not any("cache" in name for name in os.listdir(tmp_path))


def test_as_private_as_the_source(tmp_path):
    source = files(tmp_path) / "a.svm"
    source.chmod(0o600)
    _, reader = all_of(source, cache=True)
    assert reader.kept.path.stat().st_mode & 0o777 == 0o600


def test_sentences_and_formats_of_ones_own_are_not_kept(tmp_path, monkeypatch):
    path = tmp_path / "a.conll"
    path.write_text("a X\nb Y\n\nc X\n\n")
    reader = data.read(path, task="tag", cache=True)
    assert sum(map(len, reader)) == 2 and "sentences" in reader.kept.said
    monkeypatch.setitem(data.registry.READERS, "own", type("Own", (), {}))
    reader = data.read(files(tmp_path) / "a.svm", bad=data.BadRows(limit=0.5), cache=True)
    assert sum(map(len, reader)) == 399 and "of your own" in reader.kept.said
    assert not any("cache" in name for name in os.listdir(tmp_path))


@given(
    hnp.arrays(
        st.sampled_from([np.int64, np.int32, np.uint64, np.uint16, np.uint8, np.float64, np.float32]),
        st.integers(0, 200),
        elements=st.one_of(st.sampled_from([0, 1]), st.integers(0, 255)),
    ),
    st.sampled_from(["as it is", "sorted", "steps", "wild"]),
    st.integers(0, 2**32 - 1),
)
def test_squeezing_keeps_every_bit(array, kind, seed):
    if kind == "sorted":
        array = np.sort(array)
    elif kind == "steps":
        array = np.arange(len(array)).astype(array.dtype)
    elif kind == "wild":
        raw = np.random.default_rng(seed).integers(0, 256, array.nbytes, dtype=np.uint8)
        array = raw.view(array.dtype) if seed % 2 else np.where(array > 1, -array.astype(np.float64), np.nan)
    how, stored = squeezed(array)
    made = restored(json.loads(json.dumps(how)), stored)
    assert made.dtype == array.dtype and made.tobytes() == array.tobytes()
    assert stored.nbytes <= array.nbytes
