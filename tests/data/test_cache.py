"""The spool of sparse batches."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from onlearn.data import Cache, DataError
from onlearn.engine.csr import in_one


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
    cache.finish()


def same(cache, made):
    assert len(cache) == len(made) and cache.rows == sum(X.shape[0] for X, *_ in made)
    for _ in range(2):
        for (X, codes, weight), (Y, theirs, weights) in zip(cache, made, strict=True):
            assert X.shape == Y.shape and (X != Y).nnz == 0 and X.dtype == Y.dtype
            assert np.array_equal(codes, theirs)
            assert (weight is None) == (weights is None) and (weight is None or np.array_equal(weight, weights))


def test_in_memory():
    with Cache() as cache:
        fill(cache, batches())
        same(cache, batches())
        assert cache.path is None


@pytest.mark.parametrize("memory", [0, 5000])
def test_in_a_temporary_file(memory):
    with Cache(memory) as cache:
        fill(cache, batches())
        same(cache, batches())
        folder = cache.path.parent
        assert folder.exists()
    assert not folder.exists()


def test_complete_or_not():
    cache = Cache(memory=0)
    for rows in batches():
        cache.append(*rows)
    with pytest.raises(ValueError, match="not complete"):
        list(cache)
    cache.finish()
    with pytest.raises(ValueError, match="is complete"):
        cache.append(*batches(1)[0])
    cache.close()


def test_disk_full():
    cache = Cache(memory=0)
    X, codes, weight = batches(1)[0]

    class Full:
        def tell(self):
            return 0

        def write(self, raw):
            raise OSError(28, "No space left on device")

        def close(self):
            pass

    cache.append(X, codes, weight)
    folder = cache.path.parent
    cache._file.close()
    cache._file = Full()
    with pytest.raises(DataError, match=r"cannot write the cache .*: No space left on device"):
        cache.append(X, codes, weight)
    assert not folder.exists()


def test_of_no_rows():
    for memory in (0, 100):
        with Cache(memory) as cache:
            cache.append(sp.csr_matrix((0, 3)), np.empty(0, dtype=np.int64))
            cache.finish()
            ((X, codes, _),) = list(cache)
            assert X.shape == (0, 3) and len(codes) == 0


def test_rows_in_memory_lie_one_behind_another():
    batches = [sp.random(7, 30, density=0.3, format="csr", random_state=n) for n in range(4)]
    whole = sp.vstack(batches, format="csr")
    with Cache() as cache:
        for X in batches:
            cache.append(X.copy())
        cache.finish()
        held = [X for X, _, _ in cache]
    for name in ("data", "indices"):
        parts = [getattr(X, name) for X in held]
        one = in_one(parts)
        np.testing.assert_array_equal(one, getattr(whole, name))
        assert all(np.shares_memory(one, part) for part in parts)


@pytest.mark.parametrize("order", [[1, 0], [0, 2], [0, 1, 1]])
def test_what_does_not_lie_so_is_copied(order):
    base = np.arange(12)
    parts = [base[4 * n : 4 * n + 4] for n in order]
    np.testing.assert_array_equal(in_one(parts), np.concatenate(parts))


def test_neither_are_numbers_seen_in_bytes_nor_every_second_one():
    raw = np.arange(64, dtype=np.uint8)
    floats = [raw[:32].view(np.float64), raw[32:].view(np.float64)]
    assert in_one(floats).dtype == np.float64
    steps = [raw[0:8:2], raw[8:16:2]]
    np.testing.assert_array_equal(in_one(steps), np.concatenate(steps))
