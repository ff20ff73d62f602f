"""Runs that keep the parsed rows of their files, and runs that find them."""

from __future__ import annotations

import gzip
import json
import os

import numpy as np
import pytest

from onlearn import data
from onlearn.models.plan import Plan
from onlearn.models.run import Run
from onlearn.models.run_report import row_cache


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(3)
    svm, vw, objects, table = [], [], [], ["size,place,label"]
    for n in range(600):
        x, kind = rng.normal(size=4), "abc"[int(rng.integers(3))]
        svm.append(f"{int(x[0] > 0)} " + " ".join(f"{j + 1}:{v:.4f}" for j, v in enumerate(x)))
        vw.append(f"{2 * int(x[0] > 0) - 1} 2 |n a:{x[0]:.3f} |w w{n % 13} {'p' if x[1] > 0 else 'q'}")
        objects.append(json.dumps({"label": kind, "text": f"word{kind} of {n % 17} and {rng.integers(9)}"}))
        table.append(f"{x[0]:.3f},{'low' if x[1] < 0 else ''},{kind}")
    svm[40] = "1 2:x"
    for name, lines in {"a.svm": svm, "a.vw": vw, "a.jsonl": objects, "a.csv": table}.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress((tmp_path / "a.jsonl").read_bytes()))
    return tmp_path


def done(path, **plan):
    """The run, and the bytes of its model file."""
    run = Run(Plan([str(path)], **plan), bad=data.BadRows(limit=0.5))
    model = path.parent / "m.onl"
    run.go().save(model)
    return run, model.read_bytes()


@pytest.mark.parametrize("name", ["a.svm", "a.vw", "a.jsonl", "a.csv", "a.jsonl.gz"])
@pytest.mark.parametrize("memory", [0, 512 << 20])
def test_the_model_is_the_same_file(folder, name, memory):
    path, shared = folder / name, {"passes": 3, "holdout": 0.1, "memory": memory, "reading": {"block_size": 2000}}
    run, plain = done(path, cache=False, **shared)
    assert row_cache(run.reading.reader) is None
    kept = folder / "kept"
    kept.mkdir()
    first, model = done(path, cache=str(kept), **shared)
    assert model == plain and row_cache(first.reading.reader)["written"]
    again, model = done(path, cache=str(kept), **shared)
    assert model == plain and row_cache(again.reading.reader)["reused"]
    assert again.reading.bad.summary() == run.reading.bad.summary()
    # Other features and another learner find the rows as well: they are kept before features are made.
    _, plain = done(path, cache=False, passes=2, reading={"block_size": 2000}, bits=18, seed=5)
    other, model = done(path, cache=str(kept), passes=2, reading={"block_size": 2000}, bits=18, seed=5)
    assert model == plain and row_cache(other.reading.reader)["reused"]


def test_what_is_kept_beside_the_file(folder):
    path, cache = folder / "a.svm", folder / ".a.svm.onlearn-cache"
    run, _ = done(path)
    assert row_cache(run.reading.reader) is None and not cache.exists()  # small: it is read anew
    run, _ = done(path, memory=80, passes=1)
    assert row_cache(run.reading.reader) is None and not cache.exists()  # one pass: nobody asked for more
    run, _ = done(path, memory=80, passes=2)
    assert row_cache(run.reading.reader)["written"] and cache.exists()
    run, _ = done(path, memory=80, passes=1)
    assert row_cache(run.reading.reader)["reused"]  # but if it is there, it is used
    assert {name for name in os.listdir(folder) if "cache" in name} == {cache.name}


def test_a_resumed_run_finds_the_rows(folder):
    path = folder / "a.vw"
    _, whole = done(path, passes=3, cache=False)
    run = Run(Plan([str(path)], passes=3, cache=str(folder)))

    def stop():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run.go(checkpoint=stop, every=700)  # in the second pass: all rows are read, and kept
    resumed = Run(Plan([str(path)], cache=str(folder)), run.model)
    resumed.go()
    assert row_cache(resumed.reading.reader)["reused"]
    resumed.report.notes.clear()  # that it was resumed
    resumed.report.record(resumed, None)
    resumed.model.save(folder / "m.onl")
    assert (folder / "m.onl").read_bytes() == whole


def test_stopped_while_reading_leaves_no_half_cache(folder):
    path = folder / "a.svm"
    run = Run(Plan([str(path)], passes=2, memory=80, reading={"block_size": 500}), bad=data.BadRows(limit=0.5))

    def stop():
        assert any(name.endswith(".tmp") for name in os.listdir(folder))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run.go(checkpoint=stop, every=50)
    del run
    assert not any("cache" in name for name in os.listdir(folder))
