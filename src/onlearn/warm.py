"""Compiling ahead of time: the loops that learners will need, before anyone waits for them.

A loop is compiled when a combination of geometry, stabilizer, output and rows is first used, and kept on disk. Here
each combination is used on purpose, by training on three rows; several processes share the work.
"""

from __future__ import annotations

import signal
import threading
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle, groupby, product
from multiprocessing import connection, get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from onlearn.compiler.cache import ADVICE
from onlearn.engine.csr import CSR
from onlearn.features.assemble import rows_of_names
from onlearn.features.extractors import Category, Number
from onlearn.features.feature_map import FeatureMap
from onlearn.features.interactions import Interaction
from onlearn.features.text import Text

# ----------------------------------------------------------------------------------------------------
# Kernels: the loops of the dual, and the functions of kernels and approximations.
#
# Each is used on purpose: by learning from a few examples that no hypothesis predicts right, so that several passes
# make steps; and by having every kernel compare a few rows.


ROWS = 150  # several blocks
VECTORS = (
    "linear",
    "polynomial(2)",
    "gaussian",
    "laplacian",
    "poly(linear, [0, 1, 2])",
    "normalize(linear)",
    "normalize(subsets)",
)
BOOLEAN = ("monomials", "conjunctions", "subsets")
SPELLED = {
    "substrings": ["abab", "bab", "a"],
    "substrings(2, 3)": ["abab", "bab", "ab" * 50],
    "trees": ["(S (NP a) (VP b))", "(S (NP a))", "(NP a)"],
}


def dual_combinations(everything: bool) -> list[tuple[str, str, str, str | None, str, str, str]]:
    """Rule, geometry, stabilizer, output, layout, number type and type of indices of the loops of the dual.

    Those of plain steps; or with ``everything`` also of weights that shrink, and of all kinds of multiclass.
    """
    from onlearn.engine.loops import OUTPUTS
    from onlearn.engine.stabilizers import STABILIZERS

    geometries = ("additive", "additive(l2=0.01)") if everything else ("additive",)
    outputs = (None, *OUTPUTS) if everything else (None, "true")
    return [
        ("logistic" if output == "softmax" else "perceptron", geometry, stabilizer, output, "dual", dtype, "")
        for dtype, output, geometry, stabilizer in product(
            ("float64", "float32"), outputs, geometries, STABILIZERS.members
        )
        if not ("l2" in geometry and stabilizer == "voted")  # every example would make a new hypothesis
    ]


def learn_in_the_dual(rule: str, geometry: str, stabilizer: str, output: str | None, dtype: str) -> None:
    """Take a few passes over examples that each occur with every label."""
    from onlearn.estimators.kernel import KernelClassifier

    labels = np.arange(ROWS) % (2 if output is None else 3)
    X = np.repeat(np.eye(ROWS // 6, dtype=dtype), 6, axis=0)
    model = KernelClassifier(
        "gaussian", rule, stabilizer, geometry=geometry, multiclass=output or "auto", epochs=4, random_state=0
    )
    model.fit(X, labels).predict_proba(X)
    model.partial_fit(X, labels)


def compare(dtype: str) -> None:
    """Have every kernel compare a few rows, dense and sparse, and every approximation make features of them."""
    import scipy.sparse as sp

    import onlearn
    from onlearn import kernels

    few = 2 * np.eye(8, 400, dtype=dtype)  # so few values that sparse rows are compared as such
    for X in (few, sp.csr_matrix(few)):
        kernels.get("gaussian(0.001)")(X)  # so narrow that differences must be taken one by one
        for name in VECTORS:
            kernels.get(name)(X)
            kernels.get(name).diag(X)
        approximations = (
            onlearn.RandomKitchenSinks("gaussian", 6, random_state=0),
            onlearn.RandomKitchenSinks("polynomial(2)", 6, random_state=0),
            onlearn.Nystroem("gaussian", 3, random_state=0),
            onlearn.RandomProjection(3, random_state=0),
            onlearn.FeatureHasher(16),
        )
        for one in approximations:
            one.fit_transform(X)
    for name in BOOLEAN:
        kernels.get(name)(few[:, :70] > 0)
    for rows in ([{"a": 1.0}, {"b": 2.0}], [["a", "a"], ["b"]]):
        onlearn.FeatureHasher(16, dtype=dtype).fit_transform(rows)
    for name, examples in SPELLED.items():
        kernel = kernels.get(name)
        kernel(examples)
        kernel.diag(examples)
        if hasattr(kernel, "merged"):
            points = kernel.points(examples)
            merged = kernel.merged(points, np.ones((len(examples), 1)))
            if merged is not None:
                merged.scores(points)


# ----------------------------------------------------------------------------------------------------
# Compiling for wheels.


def ship(folder: str, level: str) -> None:
    """Put code of the named learners, the readers and the features into a folder, for a level of processors.

    Numba compiles for that level if NUMBA_CPU_NAME says so when the process starts: see ``hatch_build.py``.
    """
    from onlearn import data
    from onlearn.compiler import shipped

    shipped.ship_to(Path(folder), level)
    data.warm()
    for _ in compile_features():
        pass
    for loop in [*named_loops(), *mixture_loops(), *bayes_loops(), *network_loops(), *neighbor_loops()]:
        compile_loop(loop)


# ----------------------------------------------------------------------------------------------------
# Features: every step of extraction is done once to a few rows.


def compile_features() -> Iterator[str]:
    """Compile, or find in the disk cache, all loops; yields the name of each step before it is taken."""
    table: dict[str, Any] = {"t": ["a b", "é a", None], "n": [1.0, 2.0, None], "c": ["x", "y", None]}
    columns = [Text("t", chars=(2, 3)), Number("n", missing="indicator"), Category("c")]
    for dtype in ("float32", "float64"):
        yield f"features of columns, {dtype}"
        features = FeatureMap(columns, dtype=dtype)
        features.learn_transform(table)
        features.transform(table)
        features.learn_transform(table, ordered=False)
        yield f"named features, {dtype}"
        FeatureMap(dtype=dtype).learn_transform(rows_of_names([["a"], ["b"]]))
    yield "interactions"
    FeatureMap([*columns, Interaction("n", "c")]).learn_transform(table)
    yield "names beyond the limit, and fewer names"
    full = FeatureMap([Text("t")], max_names=1, bits=4)
    full.learn(table)
    full.vocabulary_.collisions()
    full.keep(np.array([0]))


WHY_NOT = (
    f"there is nothing to compile: NUMBA_DISABLE_JIT is set, or no folder for compiled code can be written to; {ADVICE}"
)


class Loop(NamedTuple):
    """A combination, by its spelling, so that it can be sent to another process."""

    rule: str
    geometry: str
    stabilizer: str
    output: str | None  # None: two classes
    layout: str  # "dense" or "sparse"; or "dual"; or "kernels" for what these compute with
    dtype: str
    indices: str  # their type, in sparse rows


def can_keep() -> bool:
    """Whether compiled code outlives the process."""
    from onlearn.compiler import INTERPRETED, cache_folder

    return not INTERPRETED and cache_folder() is not None


MIXTURE = "mixture"  # in place of a geometry: those of a mixture of rates
BAYES = "naive bayes"  # in place of a geometry: counting
NEIGHBORS = "neighbors"  # in place of a geometry: the search
NETWORK = "network"  # in place of a geometry: back-propagation


def named_loops(learners: Iterable[str] | None = None) -> list[Loop]:
    """The loops of the named learners: dense and sparse rows, float64 and float32, two classes and several."""
    from onlearn.engine.compositions import NAMED
    from onlearn.engine.learner import Learner

    parts = [Learner(name).choices for name in (NAMED if learners is None else learners)]
    return _distinct(
        (choices["rule"], choices["geometry"], choices["stabilizer"], output, layout, dtype, "int32")
        for layout, dtype in product(("dense", "sparse"), ("float64", "float32"))
        for choices in parts
        for output in (None, choices["rule"].multiclass)
    )


def mixture_loops() -> list[Loop]:
    """The loops of the usual mixture, by its banks of logistic regressions."""
    return [
        Loop("logistic", MIXTURE, "last", output, layout, dtype, "int32")
        for layout, dtype in product(("dense", "sparse"), ("float64", "float32"))
        for output in (None, "softmax")
    ]


def bayes_loops() -> list[Loop]:
    """The loops of naive Bayes."""
    return [
        Loop("", BAYES, "", None, layout, dtype, "int32")
        for layout, dtype in product(("dense", "sparse"), ("float64", "float32"))
    ]


def neighbor_loops() -> list[Loop]:
    """The loops of k nearest neighbours."""
    return [
        Loop("", NEIGHBORS, "", None, layout, dtype, "int32")
        for layout, dtype in product(("dense", "sparse"), ("float64", "float32"))
    ]


def network_loops() -> list[Loop]:
    """The loops of multi-layer perceptrons with their usual optimizer, in batches and on-line."""
    return [
        Loop("", NETWORK, "", output, layout, dtype, "int32")
        for layout, dtype in product(("dense", "sparse"), ("float64", "float32"))
        for output in (None, "softmax", "regression")
    ]


def kernel_loops(everything: bool = False) -> list[Loop]:
    """The loops of learning with kernels, besides."""
    passes = [Loop("perceptron", "additive", "last", None, "kernels", dtype, "") for dtype in ("float64", "float32")]
    return passes + [Loop(*combination) for combination in dual_combinations(everything)]


def all_loops() -> list[Loop]:
    """Every combination, also those that no named learner uses."""
    from onlearn.engine.geometry import GEOMETRIES
    from onlearn.engine.loops import OUTPUTS
    from onlearn.engine.rules import RULES, is_custom
    from onlearn.engine.stabilizers import STABILIZERS

    geometries = [made for kind in GEOMETRIES.members.values() for made in _variants(kind)]
    stabilizers = [made for kind in STABILIZERS.members.values() for made in _variants(kind)]
    plain = [rule for rule in (kind() for kind in RULES.members.values()) if not is_custom(rule)]
    # A loop is the same for all rules, so they take turns; softmax goes with one only.
    turn = cycle(rule for rule in plain if rule.classification)
    logistic = RULES.get("logistic")
    layouts = [("dense", "int32"), ("sparse", "int32"), ("sparse", "int64")]
    return _distinct(
        (logistic if output == "softmax" else next(turn), geometry, stabilizer, output, layout, dtype, index)
        for (layout, index), dtype, output in product(layouts, ("float64", "float32"), (None, *OUTPUTS))
        for geometry, stabilizer in product(geometries, stabilizers)
        if not (geometry.drifts and stabilizer.every_hypothesis) and not (geometry.lazy and stabilizer.fades)
    )


def _variants(kind: Any) -> Iterator[Any]:
    """A choice by default and with each penalty or window it has, for these may be states of another kind."""
    yield kind()
    for name, value in (("l1", 0.01), ("l2", 0.01), ("window", 10.0)):
        if name in kind().get_params():
            yield kind(**{name: value})


def _distinct(combinations: Iterable[Any]) -> list[Loop]:
    """Those that need a loop or a rule that none before them needs."""
    found: list[Loop] = []
    known: set[Any] = set()
    for rule, geometry, stabilizer, *rest in combinations:
        g = geometry.start(2, 1)
        needs = {rule.name, (type(g), type(stabilizer.start(g.w, 1)), *rest)}
        if not needs <= known:
            known |= needs
            found.append(Loop(repr(rule), repr(geometry), repr(stabilizer), *rest))
    return found


def compile_loop(loop: Loop) -> bool:
    """Compile the loops that learn and predict in this combination; returns whether any was not compiled before."""
    from onlearn.compiler.object_code import made

    before = len(made)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few examples teach nothing
        if loop.layout in ("dual", "kernels"):
            _compile_for_kernels(loop)
        elif loop.geometry == MIXTURE:
            _compile_for_mixtures(loop)
        elif loop.geometry == NETWORK:
            _compile_for_networks(loop)
        elif loop.geometry == BAYES:
            _compile_for_bayes(loop)
        elif loop.geometry == NEIGHBORS:
            _compile_for_neighbors(loop)
        else:
            _compile_for_features(loop)
    return len(made) > before


def _compile_for_features(loop: Loop) -> None:
    from onlearn.engine.learner import Learner

    X = sample(loop)
    choices: dict[str, Any] = dict(rule=loop.rule, geometry=loop.geometry, stabilizer=loop.stabilizer)
    model = Learner("OnlineClassifier", **choices, multiclass=loop.output or "auto", epochs=1)
    model.fit(X, [0, 1, 1] if loop.output is None else [0, 1, 2])
    model.predict(X)
    model.predict_proba(X)
    if loop.output is None and loop.geometry.startswith("additive"):
        model.certificate(X, [0, 1, 1])  # which looks for the maximum margin
    if loop.indices == "int32":  # single rows have such indices, whatever the others have
        model.predict_one(X[0] if loop.layout == "dense" else CSR.of(X[:1]))


def _compile_for_mixtures(loop: Loop) -> None:
    from onlearn.engine.mixture import MixtureLearner

    X = sample(loop)
    MixtureLearner(epochs=1).fit(X, [0, 1, 1] if loop.output is None else [0, 1, 2]).predict_proba(X)


def _compile_for_networks(loop: Loop) -> None:
    from onlearn.mlp.learner import MLPClassifierLearner, MLPRegressorLearner

    X = sample(loop, width=40)  # so that rows that are sparse stay so
    made: Any = MLPRegressorLearner if loop.output == "regression" else MLPClassifierLearner
    for batch in (1, 2):
        model = made(hidden_layer_sizes=2, batch_size=batch, epochs=1)
        y = [0, 1, 1] if loop.output is None else [0, 1, 2]
        model.fit(X, y).predict(X)
        kinds = {} if loop.output == "regression" else {"classes": sorted(set(y))}
        made(hidden_layer_sizes=2, batch_size=batch).partial_fit(X, y, **kinds)


def _compile_for_bayes(loop: Loop) -> None:
    from onlearn.bayes.learner import BayesLearner

    X = abs(sample(loop))
    for kind in ("multinomial", "bernoulli", "complement", "gaussian"):
        for progressive in (False, True):
            BayesLearner(kind=kind, progressive=progressive).fit(X, [0, 1, 2]).predict_proba(X)
    grouped = BayesLearner()
    grouped.take_sources(np.arange(X.shape[1]) % 2, [("text", "a"), ("text", "b")])
    grouped.fit(X, [0, 1, 2])


def _compile_for_neighbors(loop: Loop) -> None:
    from onlearn.neighbors.distances import METRICS
    from onlearn.neighbors.learner import KNNClassifierLearner, KNNRegressorLearner

    X = sample(loop)
    for metric, weights in product(METRICS, ("uniform", "distance")):
        for scaled in (X, 2 * X):  # Booleans, and numbers
            KNNClassifierLearner(k="auto", weights=weights, metric=metric).fit(scaled, [0, 1, 2]).predict(scaled)
    KNNRegressorLearner(k="auto").fit(X, [0.0, 1.0, 2.0]).predict(X)
    if loop.layout == "dense":
        KNNClassifierLearner(k=1, categorical=[0]).fit(X, [0, 1, 2]).predict(X)


def _compile_for_kernels(loop: Loop) -> None:
    if loop.layout == "kernels":
        compare(loop.dtype)
    else:
        learn_in_the_dual(*loop[:4], loop.dtype)


def sample(loop: Loop, width: int = 3) -> Any:
    """Three rows of the loop's kind."""
    import scipy.sparse as sp

    X = np.eye(3, width, dtype=loop.dtype)
    if loop.layout == "dense":
        return X
    sparse = sp.csr_matrix(X)
    sparse.indices, sparse.indptr = sparse.indices.astype(loop.indices), sparse.indptr.astype(loop.indices)
    return sparse


def warm(loops: Sequence[Loop], jobs: int | None = None) -> Iterator[tuple[Loop, bool]]:
    """Compile in several processes; yields each loop when it is compiled, and whether it was not before."""
    from onlearn.threads import cores

    jobs = min(jobs or min(cores(), 8), len(loops))
    context = get_context("spawn")
    pipes: list[Any] = []
    workers = []
    try:
        with _ignoring_ctrl_c():
            for share in _shares(loops, jobs):
                ours, theirs = context.Pipe(duplex=False)
                worker = context.Process(target=_work, args=(share, theirs), daemon=True)
                worker.start()
                theirs.close()
                pipes.append(ours)
                workers.append(worker)
        while pipes:
            for pipe in connection.wait(pipes):
                message = _received(pipe)
                if message is None:
                    pipes.remove(pipe)
                elif isinstance(message, str):
                    raise RuntimeError(message)
                else:
                    yield message
        for worker in workers:
            worker.join()
            if worker.exitcode:
                raise RuntimeError(f"a process that compiles ended with exit code {worker.exitcode}")
    finally:
        for worker in workers:
            worker.terminate()


def _shares(loops: Sequence[Loop], jobs: int) -> list[list[Loop]]:
    """The loops, shared out so that no two processes compile for one geometry and stabilizer."""

    def state(loop: Loop) -> tuple[str, str]:
        return loop.geometry.partition("(")[0], loop.stabilizer

    shares: list[list[Loop]] = [[] for _ in range(jobs)]
    groups = [list(group) for _, group in groupby(sorted(loops, key=state), key=state)]
    for group in sorted(groups, key=len, reverse=True):
        min(shares, key=len).extend(group)
    return [share for share in shares if share]


def _received(pipe: Any) -> Any:
    try:
        return pipe.recv()
    except EOFError:
        return None


def _work(loops: Sequence[Loop], pipe: Any) -> None:
    """In another process: compile, and report each loop, or why it cannot be compiled."""
    for loop in loops:
        try:
            message: Any = (loop, compile_loop(loop))
        except Exception as error:
            message = f"cannot compile {', '.join(str(part) for part in loop)}: {error}"
        pipe.send(message)


@contextmanager
def _ignoring_ctrl_c() -> Iterator[None]:
    """Processes that are started here ignore Ctrl-C; this one ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
