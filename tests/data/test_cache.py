"""The spool of sparse batches."""

from __future__ import annotations

import os

import numpy as np
import pytest
import scipy.sparse as sp

from onlearn.data import Cache, DataError


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("1 1:1\n")
    return path


def batches(count=5, seed=0):
    rng = np.random.default_rng(seed)
    made = []
    for n in range(count):
        X = sp.random(20 + n, 30 + n, 0.2, format="csr", random_state=rng)
        made.append((X, rng.integers(3, size=20 + n), rng.random(20 + n) if n % 2 else None))
    return made


def fill(cache, made):
    for rows in made:
        cache.append(*rows)
    cache.finish({"labels": ["a", "b"]})


def same(cache, made):
    assert len(cache) == len(made) and cache.rows == sum(X.shape[0] for X, *_ in made)
    for _ in range(2):
        for (X, codes, weight), (Y, theirs, weights) in zip(cache, made, strict=True):
            assert X.shape == Y.shape and (X != Y).nnz == 0 and X.dtype == Y.dtype
            assert np.array_equal(codes, theirs)
            assert (weight is None) == (weights is None) and (weight is None or np.array_equal(weight, weights))


def test_in_memory(source):
    with Cache(source) as cache:
        fill(cache, batches())
        same(cache, batches())
    assert os.listdir(source.parent) == ["a.svm"]


@pytest.mark.parametrize("memory", [0, 5000])
def test_in_a_file_found_again(source, memory):
    with Cache(source, key={"bits": 18}, memory=memory) as cache:
        assert not cache.ready
        fill(cache, batches())
        same(cache, batches())
    assert sorted(os.listdir(source.parent)) == [".a.svm.onlearn-cache", "a.svm"]
    with Cache(source, key={"bits": 18}) as cache:
        assert cache.ready and cache.meta == {"labels": ["a", "b"]}
        same(cache, batches())
        for X, codes, _ in cache:  # as good as arrays of one's own, and the file stays as it is
            X.data *= 2
            codes += 1
    with Cache(source, key={"bits": 18}) as cache:
        same(cache, batches())


def test_not_used_for_another_key_or_a_changed_source(source):
    with Cache(source, key=1, memory=0) as cache:
        fill(cache, batches())
    assert not Cache(source, key=2).ready
    os.utime(source, ns=(1, 1))
    assert not Cache(source, key=1).ready


def test_damaged_files_are_not_used(source):
    with Cache(source, memory=0) as cache:
        fill(cache, batches())
        path = cache.path
    whole = path.read_bytes()
    for raw in (b"", whole[:-1], whole[: len(whole) // 2], whole[100:], b"x" * 500):
        path.write_bytes(raw)
        assert not Cache(source).ready
    with Cache(source, memory=0) as cache:
        fill(cache, batches(3))
        same(cache, batches(3))


def test_unfinished_leaves_nothing(source):
    cache = Cache(source, memory=0)
    for rows in batches():
        cache.append(*rows)
    with pytest.raises(ValueError, match="not complete"):
        list(cache)
    cache.close()
    assert os.listdir(source.parent) == ["a.svm"]


def test_without_a_place_beside_the_source(source):
    with Cache(memory=0) as cache:
        fill(cache, batches())
        same(cache, batches())
        folder = cache.path.parent
    assert not folder.exists()
    # The folder's rights would not stop root, so let the file's name be too long.
    long = source.with_name("x" * 250)
    long.write_text("")
    with Cache(long, memory=0) as cache:
        fill(cache, batches())
        same(cache, batches())


def test_disk_full(source):
    cache = Cache(source, memory=0)
    X, codes, weight = batches(1)[0]

    class Full:
        def tell(self):
            return 0

        def write(self, raw):
            raise OSError(28, "No space left on device")

        def close(self):
            pass

    cache.append(X, codes, weight)
    cache._file.close()
    cache._file = Full()
    with pytest.raises(DataError, match=r"cannot write the cache .*: No space left on device"):
        cache.append(X, codes, weight)
    assert os.listdir(source.parent) == ["a.svm"]


def test_of_no_rows(source):
    for memory in (0, 100):
        with Cache(source, memory, memory) as cache:
            cache.append(sp.csr_matrix((0, 3)), np.empty(0, dtype=np.int64))
            cache.finish()
            ((X, codes, _),) = list(cache)
            assert X.shape == (0, 3) and len(codes) == 0
