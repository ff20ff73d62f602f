"""Compiling ahead: the loops that learners will need, before anyone waits for them.

A loop is compiled when a combination of geometry, stabilizer, output and rows is first met, and kept on
disk. Here each combination is met on purpose, by training on three rows; several processes share the work.
"""

from __future__ import annotations

import signal
import threading
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle, groupby, product
from multiprocessing import connection, get_context
from typing import Any, NamedTuple

WHY_NOT = "there is nothing to compile: NUMBA_DISABLE_JIT is set, or no folder for compiled code can be written to"


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
    from onlearn.compile import INTERPRETED, cache_folder

    return not INTERPRETED and cache_folder() is not None


def named_loops(learners: Iterable[str] | None = None) -> list[Loop]:
    """What the named learners use: dense and sparse rows, float64 and float32, two classes and several."""
    from onlearn.learners import NAMED

    parts = [NAMED[name]()._choices() for name in (NAMED if learners is None else learners)]
    return _distinct(
        (choices["rule"], choices["geometry"], choices["stabilizer"], output, layout, dtype, "int32")
        for layout, dtype in product(("dense", "sparse"), ("float64", "float32"))
        for choices in parts
        for output in (None, getattr(choices["rule"], "multiclass", "true"))
    )


def kernel_loops(everything: bool = False) -> list[Loop]:
    """What learning with kernels uses, besides."""
    from onlearn.warming_kernels import dual_combinations

    passes = [Loop("perceptron", "additive", "last", None, "kernels", dtype, "") for dtype in ("float64", "float32")]
    return passes + [Loop(*combination) for combination in dual_combinations(everything)]


def all_loops() -> list[Loop]:
    """The full product, also of what no named learner uses."""
    from onlearn.geometry import GEOMETRIES
    from onlearn.outputs import OUTPUTS
    from onlearn.rules import RULES, is_custom
    from onlearn.stabilizers import STABILIZERS

    geometries = [made for kind in GEOMETRIES.members.values() for made in _variants(kind)]
    stabilizers = [kind() for kind in STABILIZERS.members.values()]
    plain = [rule for rule in (kind() for kind in RULES.members.values()) if not is_custom(rule)]
    # a loop is the same for all rules, so they take turns; softmax goes with one only
    turn = cycle(rule for rule in plain if getattr(rule, "classification", True))
    logistic = RULES.get("logistic")
    layouts = [("dense", "int32"), ("sparse", "int32"), ("sparse", "int64")]
    return _distinct(
        (logistic if output == "softmax" else next(turn), geometry, stabilizer, output, layout, dtype, index)
        for (layout, index), dtype, output in product(layouts, ("float64", "float32"), (None, *OUTPUTS))
        for geometry, stabilizer in product(geometries, stabilizers)
        if not (getattr(geometry, "drifts", False) and getattr(stabilizer, "every_hypothesis", False))
    )


def _variants(kind: Any) -> Iterator[Any]:
    """A geometry by default and with each penalty it has, for these may be states of another kind."""
    yield kind()
    for penalty in ("l1", "l2"):
        if penalty in kind().get_params():
            yield kind(**{penalty: 0.01})


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
    """Compile what learns and predicts in this combination; returns whether that was not done before."""
    from onlearn.machine import made

    before = len(made)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that so few examples teach nothing is known
        if loop.layout in ("dual", "kernels"):
            _compile_for_kernels(loop)
        else:
            _compile_for_features(loop)
    return len(made) > before


def _compile_for_features(loop: Loop) -> None:
    from onlearn.linear import OnlineClassifier

    X = sample(loop)
    model = OnlineClassifier(loop.rule, loop.geometry, loop.stabilizer, loop.output or "auto", epochs=1)
    model.fit(X, [0, 1, 1] if loop.output is None else [0, 1, 2]).predict(X)


def _compile_for_kernels(loop: Loop) -> None:
    from onlearn import warming_kernels

    if loop.layout == "kernels":
        warming_kernels.compare(loop.dtype)
    else:
        warming_kernels.learn_in_the_dual(*loop[:4], loop.dtype)


def sample(loop: Loop) -> Any:
    """Three rows of the loop's kind."""
    import numpy as np
    import scipy.sparse as sp

    X = np.eye(3, dtype=loop.dtype)
    if loop.layout == "dense":
        return X
    sparse = sp.csr_matrix(X)
    sparse.indices, sparse.indptr = sparse.indices.astype(loop.indices), sparse.indptr.astype(loop.indices)
    return sparse


def warm(loops: Sequence[Loop], jobs: int | None = None) -> Iterator[tuple[Loop, bool]]:
    """Compile in several processes; yields each loop that is done, and whether it was not done before."""
    from onlearn.threads import cores

    jobs = min(jobs or min(cores(), 8), len(loops))
    context = get_context("spawn")
    pipes: list[Any] = []
    workers = []
    try:
        with _undisturbed():
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
    """The loops dealt out so that no two processes compile what belongs to one geometry and stabilizer."""

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
    """In another process: compile, and tell about each loop, or why it could not be."""
    for loop in loops:
        try:
            message: Any = (loop, compile_loop(loop))
        except Exception as error:
            message = f"cannot compile {', '.join(str(part) for part in loop)}: {error}"
        pipe.send(message)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Processes started here leave Ctrl-C to us, who end them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
