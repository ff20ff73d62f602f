"""Two backends, one result; and whatever fails in the fast one, the portable one takes its place.

This file is also the script that computes the results in another process.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import cases
import onlearn
from onlearn import OnlineClassifier, data, kernels
from onlearn.compiler import INTERPRETED, Compiled, backends, object_code, pointer
from onlearn.features import Features
from onlearn.features.extractors import Category, Number
from onlearn.features.interactions import Interaction
from onlearn.features.text import Text

pytestmark = pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")

FEW = [*cases.BINARY_COVERING[::12], *cases.MANY_COVERING[::12]]
ALL = [*cases.BINARY_COVERING, *cases.MANY_COVERING]
# Loops may reorder sums, and LLVM reorders those of these geometries otherwise where Numba counts references to arrays.
REORDERED = ("exponentiated-", "arow-")
FILES = {
    "rows.svm": "1 2:0.5 7:1e-3\n-1 3:0.1234567890123\n",
    "wide.svm": "1 3000000000:1\n",
    "rows.vw": "1 |f ä:0.5 b |g c\n-1 |f b:2.25\n",
    "rows.csv": "a,b,label\n1.5,x,x\n2,y,y\n",
    "rows.jsonl": '{"label": "x", "a": "ä", "n": 0.1}\n{"label": "y", "a": "b", "n": -3}\n',
}
VECTORS = ("polynomial(2)", "gaussian", "laplacian", "normalize(subsets)")


# ------------------------------------------------------------------------------------------------ the same results


def results(combinations: list[cases.Case]) -> dict[str, Any]:
    """All that is computed, in numbers that JSON keeps exactly, or digests of them."""
    found: dict[str, Any] = {str(case): learned(case) for case in combinations}
    return {**found, **read(), **compared(), **extracted(), "dual": dual(), "own rule": own_rule()}


def learned(case: cases.Case) -> list[Any]:
    rows = cases.data("binary" if case.output == "binary" else "multiclass", case.group == "winnow")
    X = cases.LAYOUTS[case.layout](rows.X)
    geometry, _ = cases.example_geometry(case.group)
    rule = "logistic" if case.output == "softmax" else "pa1(0.2)"
    multiclass = "auto" if case.output == "binary" else case.output
    model = OnlineClassifier(rule, geometry, case.stabilizer, multiclass, random_state=0, epochs=2).fit(X, rows.y)
    return [model.decision_function(X).tolist(), model.predict_proba(X).tolist(), model.n_updates_]


def read() -> dict[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        for name, text in FILES.items():
            Path(folder, name).write_text(text, encoding="utf-8")
        return {name: digest(data.load(Path(folder, name))) for name in FILES}


def compared() -> dict[str, str]:
    dense = np.random.default_rng(0).normal(size=(9, 40)) * (np.arange(40) % 5 == 0)
    found = {}
    for dtype in ("float64", "float32"):
        for name in VECTORS:
            X = dense.astype(dtype)
            found[f"{name} {dtype}"] = digest([kernels.get(name)(X), kernels.get(name)(sp.csr_matrix(X))])
    found["monomials"] = digest(kernels.get("monomials")(dense > 0))
    found["substrings"] = digest(kernels.get("substrings(2, 3)")(["abab", "bab", "ab" * 50]))
    found["trees"] = digest(kernels.get("trees")(["(S (NP a) (VP b))", "(S (NP a))", "(NP a)"]))
    return found


def extracted() -> dict[str, str]:
    table: dict[str, Any] = {"t": ["a b", "é a", None], "n": [1.0, 2.0, None], "c": ["x", "y", None]}
    columns = [Text("t", chars=(2, 3)), Number("n", missing="indicator"), Category("c"), Interaction("n", "c")]
    return {"features": digest(Features(columns).fit_transform(table))}


def dual() -> list[float]:
    rows = cases.data("binary", False)
    model = onlearn.KernelClassifier("gaussian", "perceptron", "averaged", epochs=2, random_state=0)
    return list(model.fit(rows.X, rows.y).decision_function(rows.X))


def own_rule() -> list[Any]:
    @onlearn.rule
    def halfway(score, y, sqnorm, part=0.5):
        return part * (y - score) / sqnorm if score * y < 1 else 0.0

    rows = cases.data("binary", False)
    return OnlineClassifier(halfway(0.3), random_state=0).fit(rows.X, rows.y).coef_.tolist()


def digest(value: Any) -> str:
    """A digest of arrays, matrices and tables, and of what holds them."""
    hashed = hashlib.sha256()

    def add(one: Any) -> None:
        if isinstance(one, np.ndarray):
            hashed.update(f"{one.dtype} {one.shape}".encode())
            hashed.update(one.tobytes() if one.dtype != object else repr(one.tolist()).encode())
        elif sp.issparse(one):
            add([one.data, one.indices, one.indptr])
        elif isinstance(one, (tuple, list)):
            for member in one:
                add(member)
        elif hasattr(one, "to_pydict"):
            hashed.update(repr(one.to_pydict()).encode())
        elif hasattr(one, "__dict__") and not isinstance(one, type):
            add(list(vars(one).values()))
        else:
            hashed.update(repr(one).encode())

    add(value)
    return hashed.hexdigest()


def in_another_process(backend: str, which: str) -> dict[str, Any]:
    folders = [str(Path(onlearn.__file__).parents[1]), str(Path(__file__).parents[1])]
    environment = {**os.environ, "ONLEARN_BACKEND": backend, "PYTHONPATH": os.pathsep.join(folders)}
    done = subprocess.run(
        [sys.executable, __file__, which],
        env=environment,
        capture_output=True,
        text=True,
        timeout=3000,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def same(which: str) -> None:
    fast, portable = (in_another_process(backend, which) for backend in ("object_code", "numba"))
    assert fast.keys() == portable.keys()
    different = [name for name in fast if fast[name] != portable[name]]
    assert [name for name in different if not name.startswith(REORDERED)] == []
    for name in different:
        (scores, probabilities, updates), others = fast[name], portable[name]
        np.testing.assert_allclose(scores, others[0], rtol=1e-12, atol=1e-15, err_msg=name)
        np.testing.assert_allclose(probabilities, others[1], rtol=1e-6, err_msg=name)  # fitted by iteration
        assert updates == others[2]


def test_both_backends_compute_the_same_bits():
    same("few")


@pytest.mark.slow
def test_both_backends_compute_the_same_bits_in_every_combination():
    same("all")


# ------------------------------------------------------------------------------------------------ failures


@pytest.fixture(autouse=True)
def _fresh(monkeypatch):
    """No failure is known yet, and none is forced."""
    monkeypatch.delenv("ONLEARN_BACKEND", raising=False)
    monkeypatch.setattr(backends, "_state", backends._State())


def clearing(value: float) -> Compiled:
    """A function that is kept nowhere, so it is compiled now; LLVM makes ``memset`` of its loop."""

    def clear(x):
        for k in range(len(x)):
            x[k] = 0.0
        return x[0] + value

    return Compiled(clear, {})


def no_module(monkeypatch):
    monkeypatch.setitem(sys.modules, "onlearn.compiler.emit", None)


def no_part_of_numba(monkeypatch):
    monkeypatch.delitem(sys.modules, "onlearn.compiler.emit", raising=False)
    monkeypatch.setitem(sys.modules, "numba.core.caching", None)


def changed_part_of_numba(monkeypatch):
    monkeypatch.setattr("onlearn.compiler.emit.cpu_target", object())


def linker_that_refuses(monkeypatch):
    def refuse():
        raise RuntimeError("this linker links nothing")

    monkeypatch.setattr(object_code, "_linker", refuse)


def unknown_symbol(monkeypatch):
    found = object_code.is_resolvable
    monkeypatch.setattr(object_code, "is_resolvable", lambda name: name != "memset" and found(name))


def other_object_files(monkeypatch):
    monkeypatch.setattr(object_code, "MAGIC", b"\xcf\xfa\xed\xfe")


FAILURES = (
    no_module,
    no_part_of_numba,
    changed_part_of_numba,
    linker_that_refuses,
    unknown_symbol,
    other_object_files,
)


@pytest.mark.parametrize("break_it", FAILURES, ids=lambda failure: failure.__name__)
def test_a_failure_is_logged_once_and_the_work_is_done(break_it, monkeypatch, caplog):
    with caplog.at_level(logging.WARNING, "onlearn.compiler"):
        assert clearing(3.0)(np.ones(4)) == 3.0
        assert caplog.records == []
        break_it(monkeypatch)
        for value in (4.0, 5.0):
            x = np.ones(4)
            assert clearing(value)(x) == value
            assert not x.any()
    assert len(caplog.records) == 1
    assert "object code cannot be used" in caplog.text
    assert "\n" not in caplog.records[0].getMessage()


@pytest.mark.parametrize("break_it", FAILURES, ids=lambda failure: failure.__name__)
def test_forced_object_code_fails_aloud(break_it, monkeypatch):
    monkeypatch.setenv("ONLEARN_BACKEND", "object_code")
    break_it(monkeypatch)
    with pytest.raises((ImportError, AttributeError, RuntimeError)):
        clearing(3.0)(np.ones(4))


def test_pointers_and_callers_may_be_of_different_backends(monkeypatch):
    signature = "float64", ("float64", "float64[]")

    def step(s, p):
        return 10 * s + p[1]

    def call(rule, p):
        return rule(2.0, p) + offset

    offset, p = 0.5, np.array([0.0, 4.0])
    for keep in (True, False):
        made = []
        for backend in backends.BACKENDS:
            monkeypatch.setenv("ONLEARN_BACKEND", backend)
            made.append(pointer(step, *signature, keep=keep))
        for backend in backends.BACKENDS:
            monkeypatch.setenv("ONLEARN_BACKEND", backend)
            assert [Compiled(call, {})(rule, p) for rule in made] == [24.5, 24.5]


def test_a_platform_that_was_not_tried_is_no_failure(monkeypatch, caplog):
    monkeypatch.setattr(backends, "is_tried", lambda: False)
    monkeypatch.setitem(sys.modules, "onlearn.compiler.emit", None)
    with caplog.at_level(logging.WARNING, "onlearn.compiler"):
        assert clearing(3.0)(np.ones(4)) == 3.0
    assert caplog.records == []


def test_what_no_backend_compiles_is_the_errors_own(caplog):
    def wrong(x):
        return x.no_such_attribute

    with pytest.raises(Exception, match="no_such_attribute"):
        Compiled(wrong, {})(np.ones(3))
    assert caplog.records == []


def test_an_unknown_backend_is_named(monkeypatch):
    monkeypatch.setenv("ONLEARN_BACKEND", "fortran")
    with pytest.raises(ValueError, match="ONLEARN_BACKEND must be one of numba, object_code"):
        clearing(1.0)(np.ones(1))


def test_the_time_that_compiling_takes_is_counted():
    before = backends.compile_seconds()
    assert clearing(1.0)(np.ones(2)) == 1.0
    after = backends.compile_seconds()
    assert after > before


if __name__ == "__main__":
    print(json.dumps(results(FEW if sys.argv[1] == "few" else ALL)))
