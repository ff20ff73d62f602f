"""Kernels in other processes: interpreted, from the disk cache, after a fork, unpickled.

This file is also the script that the other processes run.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from onlearn import kernels
from onlearn import threads as shared
from onlearn.compiler import INTERPRETED, object_code
from onlearn.kernels import tiles

FORMULAS = [
    "polynomial(4)",
    "polynomial(7)",
    "gaussian(0.5)",
    "gaussian(gamma=1e15)",
    "laplacian(0.5)",
    "poly(linear, [1, 0, 2])*normalize(linear)",
    "subsets",
    "normalize(subsets)",
    "compose(monomials + conjunctions(2, monotone=True), binary)",
]


def values() -> dict[str, list]:
    rng = np.random.default_rng(0)
    X = rng.random((6, 5)) * (rng.random((6, 5)) < 0.6)
    X[:, 0] = 0.5
    layouts = {"dense": X, "sparse": sp.csr_matrix(X), "single": X.astype(np.float32)}
    return {f"{name} {layout}": kernels.get(name)(A).tolist() for name in FORMULAS for layout, A in layouts.items()}


def run(**settings: str) -> dict:
    source = str(Path(kernels.__file__).parents[2])
    environment = {**os.environ, **settings, "PYTHONPATH": source}
    done = subprocess.run([sys.executable, __file__], env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_interpreted_code_gives_the_same():
    compiled, interpreted = values(), run(NUMBA_DISABLE_JIT="1")["values"]
    for name, wanted in compiled.items():
        rtol = 1e-5 if "single" in name else 1e-12
        np.testing.assert_allclose(interpreted[name], wanted, rtol=rtol, atol=1e-30, err_msg=name)


def test_a_second_process_compiles_nothing():
    if INTERPRETED:
        pytest.skip("nothing is compiled")
    values()  # whatever is not in the cache yet
    assert run()["compiled"] == []


def test_a_forked_process_has_pool_of_its_own():
    if "fork" not in multiprocessing.get_all_start_methods() or shared.cores() < 2:
        pytest.skip("no fork, or no helpers")
    tiles.in_threads(lambda start, stop: None, 100, 1 << 40)
    assert shared._pool
    child = os.fork()
    if not child:
        os._exit(0 if not shared._pool else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_the_blas_has_all_its_threads_back_after_use_in_several_threads(monkeypatch):
    class Blas:  # a real one may forget what it was told when the process was forked
        number = 4

        def get_num_threads(self) -> int:
            return self.number

        def set_num_threads(self, number: int) -> None:
            self.number = number

    blas, first, second = Blas(), threading.Event(), threading.Event()
    monkeypatch.setattr(tiles, "_blas", lambda: [blas])

    def stay() -> None:  # comes first, goes first
        with tiles._single_blas:
            first.set()
            second.wait(10)

    other = threading.Thread(target=stay)
    other.start()
    assert first.wait(10)
    with tiles._single_blas:
        assert blas.number == 1
        second.set()
        other.join()
        assert blas.number == 1
    assert blas.number == 4


def test_any_thread_keeps_the_blas_to_one_thread():
    """So that what several threads learn at once is what one learns, to the last bit."""
    seen = []

    def ask() -> None:
        with tiles._single_blas:
            seen.append({library.get_num_threads() for library in tiles._blas()})

    ask()  # the one that came first
    other = threading.Thread(target=ask)
    other.start()
    other.join()
    assert len(seen) == 2 and all(numbers <= {1} for numbers in seen)


def test_all_rows_are_covered_once():
    for rows, cost in ((1, 1 << 40), (5, 0), (1000, 1 << 40), (0, 1 << 40)):
        met = np.zeros(rows, int)

        def work(start: int, stop: int, met: np.ndarray = met) -> None:
            met[start:stop] += 1

        tiles.in_threads(work, rows, cost)
        assert (met == 1).all()


def test_errors_of_pool_come_through():
    def fail(start: int, stop: int) -> None:
        raise KeyError(start)

    with pytest.raises(KeyError):
        tiles.in_threads(fail, 100, 1 << 40)


@pytest.mark.parametrize("name", [*FORMULAS, "bilinear([[1, 0], [0, 2]])"])
def test_pickling(name):
    k = kernels.get(name)
    assert pickle.loads(pickle.dumps(k)) == k


if __name__ == "__main__":
    told = {"values": values(), "compiled": object_code.made}
    json.dump(told, sys.stdout)
