"""The choice of landmarks: blocks have the distribution of one by one."""

import numpy as np
import pytest

from onlearn import kernels
from onlearn.estimators import nystroem

RNG = np.random.default_rng(0)
WAYS = [nystroem.uniform, nystroem.kmeans_plus_plus, nystroem.rpcholesky]


def chosen(way, X, count, seed=0, text="gaussian(sigma=1)"):
    kernel = kernels.get(text)
    return way(kernel, kernel.points(X), count, np.random.default_rng(seed))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", [1, 7, 100, 500])
def test_as_many_as_asked_for_and_each_once(way, dtype, count):
    X = RNG.normal(size=(300, 4)).astype(dtype) * 3
    found = chosen(way, X, count)
    assert len(found) == len(set(found)) <= min(count, 300)
    if count <= 100:
        assert len(found) == count


@pytest.mark.parametrize("way", WAYS[1:])
def test_it_stops_when_no_residual_is_left(way):
    X = np.repeat(np.eye(5), 20, axis=0)
    found = chosen(way, X, 50)
    assert sorted(np.argmax(X[found], axis=1)) == [0, 1, 2, 3, 4]


def one_by_one(K, count, rng, way):
    """The plain algorithms, on a small matrix."""
    n = len(K)
    if way is nystroem.rpcholesky:
        R, picked = K.copy(), []
        for _ in range(count):
            d = np.clip(np.diag(R), 0, None)
            picked.append(rng.choice(n, p=d / d.sum()))
            R = R - np.outer(R[:, picked[-1]], R[picked[-1]]) / R[picked[-1], picked[-1]]
        return picked
    picked = [rng.integers(n)]
    apart = np.add.outer(np.diag(K), np.diag(K)) - 2 * K
    for _ in range(count - 1):
        d = apart[:, picked].min(axis=1)
        d[picked] = 0
        picked.append(rng.choice(n, p=d / d.sum()))
    return picked


@pytest.mark.parametrize("way", WAYS[1:])
def test_the_distribution_is_that_of_one_by_one(way):
    """How often each of 6 points, and each pair, is among the 3 chosen."""
    X = np.array([[0.0], [0.1], [0.2], [1.0], [1.5], [3.0]])
    kernel = kernels.get("gaussian(sigma=0.7)")
    K, P = kernel(X), kernel.points(X)
    rng, turns = np.random.default_rng(1), 800
    pairs = np.zeros((2, 6, 6))
    for _ in range(turns):
        for k, picked in enumerate((way(kernel, P, 3, rng), one_by_one(K, 3, rng, way))):
            pairs[k][np.ix_(picked, picked)] += 1 / turns
    np.testing.assert_allclose(pairs[0], pairs[1], atol=0.08)


def test_rpcholesky_finds_rare_rows_that_uniform_misses():
    """Nine hundred examples alike and a few far apart: uniform landmarks miss most of the few."""
    X = np.vstack([RNG.normal(size=(900, 3)) * 0.01, RNG.normal(size=(30, 3)) * 10])
    found = chosen(nystroem.rpcholesky, X, 30)
    assert (found >= 900).sum() > 20 > (chosen(nystroem.uniform, X, 30) >= 900).sum() + 10


def test_beyond_its_memory_rpcholesky_takes_a_sample(monkeypatch):
    monkeypatch.setattr(nystroem, "MOST_NUMBERS", 1000)
    found = chosen(nystroem.rpcholesky, RNG.normal(size=(300, 4)), 20)
    assert len(set(found)) == 20 and max(found) < 300
