"""Parsed rows that are kept from one reading to the next."""

from __future__ import annotations

import gzip
import json
import os
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from onlearn import data
from onlearn.data import row_store
from onlearn.data.batch import NamedRows
from onlearn.data.row_store import cache_path


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
    monkeypatch.setattr(row_store, "code", lambda: "another version")
    assert not used() and used()


def test_a_file_that_changes_while_it_is_read_is_not_kept(tmp_path):
    source = files(tmp_path) / "a.svm"
    reader = data.read(source, block_size=1500, bad=data.BadRows(limit=0.5), cache=True)
    next(reader)
    os.utime(source, ns=(1, 1))
    list(reader)
    assert "changed while" in reader.kept.said and not cache_path([source], None).exists()
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
        assert not reader.kept.used and path.read_bytes() == whole


def change(arrays, name, place, value):
    arrays[name] = arrays[name].copy()
    arrays[name][place] = value


FORGED = {
    "a.svm": [
        lambda facts, arrays: change(arrays, "rows.indices", 3, 10**6),
        lambda facts, arrays: change(arrays, "rows.indices", 3, -1),
        lambda facts, arrays: change(arrays, "rows.indptr", 1, 10**6),
        lambda facts, arrays: change(arrays, "rows.indptr", -1, 10**6),
        lambda facts, arrays: change(arrays, "rows.indptr", 0, 1),
        lambda facts, arrays: change(arrays, "codes", 0, 99),
        lambda facts, arrays: change(arrays, "codes", 0, -2),
        lambda facts, arrays: facts.update(shape=[1, 10**9]),
        lambda facts, arrays: facts.update(shape="large"),
        lambda facts, arrays: facts.update(names=[1, 2, 3]),
        lambda facts, arrays: facts.update(bad=[["a"]]),
        lambda facts, arrays: facts.pop("names"),
        lambda facts, arrays: facts["types"].update({"rows.data": "<U9"}),
        lambda facts, arrays: facts["types"].update({"rows.indices": "<f8"}),
        lambda facts, arrays: arrays.update({"rows.data": arrays["rows.data"][:-1]}),
        lambda facts, arrays: arrays.update({"lines": arrays["lines"][:-1]}),
        lambda facts, arrays: arrays.pop("rows.indptr"),
    ],
    "a.vw": [
        lambda facts, arrays: change(arrays, "rows.starts", 0, 2**62),
        lambda facts, arrays: change(arrays, "rows.starts", 0, -1),
        lambda facts, arrays: change(arrays, "rows.lengths", 0, 2**62),
        lambda facts, arrays: change(arrays, "rows.lengths", 0, -(2**62)),
        lambda facts, arrays: change(arrays, "rows.groups", 0, 60_000),
        lambda facts, arrays: facts.update(prefixes=[]),
        lambda facts, arrays: arrays.update({"rows.text": arrays["rows.text"][:5]}),
    ],
    "a.csv": [
        lambda facts, arrays: change(arrays, "rows.table", slice(0, 400), 0xFF),
        lambda facts, arrays: change(arrays, "rows.table", slice(-900, -100), 0xFF),
        lambda facts, arrays: arrays.update({"rows.table": arrays["rows.table"][:300]}),
        lambda facts, arrays: facts.update(ids=["only one"]),
    ],
}


@pytest.mark.parametrize(("name", "number"), [(name, n) for name, all_ in FORGED.items() for n in range(len(all_))])
def test_forged_is_not_believed_though_its_checksums_are_right(tmp_path, name, number):
    source, options = files(tmp_path) / name, OPTIONS.get(name, {})
    plain, _ = all_of(source, **options)
    true = row_store.pack

    def forge(parsed):
        facts, arrays = true(parsed)
        FORGED[name][number](facts, arrays)
        return facts, arrays

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_store, "pack", forge)
        assert all_of(source, cache=True, **options)[1].kept.written
    found, reader = all_of(source, cache=True, **options)
    assert found == plain and not reader.kept.used and reader.kept.written
    assert all_of(source, cache=True, **options)[1].kept.used


def test_what_others_can_write_to_is_not_used(tmp_path):
    source = files(tmp_path) / "a.svm"
    path = all_of(source, cache=True)[1].kept.path
    assert path.stat().st_mode & 0o022 == 0
    for mode in (0o664, 0o646):
        path.chmod(mode)
        assert not all_of(source, cache=True)[1].kept.used
        assert all_of(source, cache=True)[1].kept.used  # written anew, as it should be


def test_what_belongs_to_others_is_not_used(tmp_path, monkeypatch):
    source = files(tmp_path) / "a.svm"
    path = all_of(source, cache=True)[1].kept.path
    own = os.getuid()
    if own == 0:
        os.chown(path, 12345, -1)
    else:
        monkeypatch.setattr(os, "getuid", lambda: own + 1)
    assert not all_of(source, cache=True)[1].kept.used


def test_links_are_neither_written_nor_read_through(tmp_path):
    """As another user may plant in a shared folder."""
    source = files(tmp_path) / "a.svm"
    plain, _ = all_of(source)
    kept = cache_path([source], None)
    victim = tmp_path / "victim"
    victim.write_text("precious")
    foretold = [tmp_path / f"{kept.name}.{os.getpid()}.tmp", tmp_path / f"{kept.name}.tmp", kept]
    for link in foretold:
        link.symlink_to(victim)
    found, reader = all_of(source, cache=True)
    assert found == plain and reader.kept.written and victim.read_text() == "precious"
    assert kept.is_file() and not kept.is_symlink()
    kept.rename(tmp_path / "elsewhere")
    kept.symlink_to(tmp_path / "elsewhere")
    found, reader = all_of(source, cache=True)
    assert found == plain and not reader.kept.used
    kept.unlink()
    kept.mkdir()
    found, reader = all_of(source, cache=True)
    assert found == plain and "not kept" in reader.kept.said
    assert not [one for one in os.listdir(tmp_path) if one.endswith(".tmp") and not (tmp_path / one).is_symlink()]


def test_temporary_names_cannot_be_foretold(tmp_path):
    source = files(tmp_path) / "a.svm"
    names = set()
    for _ in range(2):
        with data.read(source, block_size=1500, cache=True) as reader:
            next(reader)
            names |= {name for name in os.listdir(tmp_path) if name.endswith(".tmp")}
    assert len(names) == 2


def test_stopped_leaves_nothing(tmp_path):
    source = files(tmp_path) / "a.svm"
    before = sorted(os.listdir(tmp_path))
    with data.read(source, block_size=1500, cache=True) as reader:
        next(reader)
        assert any(name.endswith(".tmp") for name in os.listdir(tmp_path))
    assert sorted(os.listdir(tmp_path)) == before


def test_what_a_killed_run_left_is_removed(tmp_path):
    source = files(tmp_path) / "a.svm"
    left = [tmp_path / f".a.svm.onlearn-cache.{more}.tmp" for more in ("abcdefgh", "x_9az123")]
    for path in left:
        path.write_text("half")
    all_of(source, cache=True)
    assert not any(path.exists() for path in left) and cache_path([source], None).exists()


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


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="names of files are UTF-8")
def test_names_that_are_not_utf_8(tmp_path):
    source = os.path.join(os.fsencode(tmp_path), b"\xff.svm")
    with open(source, "wb") as file:
        file.write(b"1 1:1\n0 2:1\n")
    assert not all_of(os.fsdecode(source), cache=tmp_path)[1].kept.used
    assert all_of(os.fsdecode(source), cache=tmp_path)[1].kept.used


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
    monkeypatch.setattr(row_store, "write_arrays", full)
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
