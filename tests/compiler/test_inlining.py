"""Inlining: the inlined text does what the loop as written does, and says so when it cannot."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from onlearn.compiler import inlining
from onlearn.compiler.inlining import Loop, Verb, helper, source
from onlearn.engine import csr
from onlearn.engine.geometry.additive import AdditiveState
from onlearn.engine.loops import Audit, learn_output
from onlearn.engine.rows import Sparse
from onlearn.engine.stabilizers import AveragedState, LastState

LIMIT = 2.5
STEP = np.uint64(1)


class Red(NamedTuple):
    a: np.ndarray


class Blue(NamedTuple):
    a: np.ndarray


@Verb
def paint(x, k):
    """Chosen by the type of x."""


@paint.on(object)
def _(x, k):
    return x.a[k]


@paint.on(Blue)
def _(x, k):
    v = x.a[k]
    x.a[k] = v + 1.0
    return v * LIMIT


@helper
def clip(v):
    v = min(v, LIMIT)
    return v


@helper
def nothing(x):
    pass


def loop(x, n):
    total = 0.0
    for i in range(n):
        v = clip(paint(x, STEP) + paint(x, i)) if i > 1 else paint(x, i)
        nothing(x)
        total += v
    return total


def run(kind, n=4):
    text = source(loop, {"x": kind})
    space = {}
    exec(text, space)
    inlined, plain = kind(np.arange(6.0)), kind(np.arange(6.0))
    return space["loop"](inlined, n), loop(plain, n), inlined.a, plain.a, text


@pytest.mark.parametrize("kind", [Red, Blue])
def test_inlined_text_does_what_the_loop_does(kind):
    result, wanted, after, wanted_after, text = run(kind)
    assert result == wanted
    np.testing.assert_array_equal(after, wanted_after)
    assert "paint" not in text and "clip" not in text and "nothing" not in text


def test_only_the_side_of_a_conditional_that_is_taken_runs():
    *_, after, wanted_after, text = run(Blue, n=2)
    np.testing.assert_array_equal(after, wanted_after)
    assert after[1] == 2.0 and "if i > 1" in text


def test_a_stabilizer_that_remembers_nothing_costs_nothing():
    """The line that keeps the average is in the inlined loop of ``averaged``, and gone from that of ``last``."""
    kinds = {"rows": Sparse, "g": AdditiveState, "audit": Audit}
    assert "st.u[" in source(learn_output.function, {**kinds, "st": AveragedState})
    assert " st." not in source(learn_output.function, {**kinds, "st": LastState})


def early(x):
    if x.a[0] > 0:
        return 1.0
    return 2.0


def calls_early(x):
    return helper(early)(x)


def test_what_cannot_be_inlined_is_refused():
    hasty = helper(early)

    def uses_hasty(x):
        return hasty(x)

    uses_hasty.__globals__["hasty"] = hasty

    def conditional_and(x):
        return x.a[0] > 0.0 and paint(x, 0) > 0.0

    def waits(x):
        while paint(x, 0) > 0.0:
            x.a[0] -= 1.0

    with pytest.raises(SyntaxError, match="returns before its last statement"):
        source(uses_hasty, {"x": Red})
    with pytest.raises(SyntaxError, match="calls a verb on its right"):
        source(conditional_and, {"x": Red})
    with pytest.raises(SyntaxError, match="while condition"):
        source(waits, {"x": Red})
    with pytest.raises(TypeError, match="paint is not defined for"):
        paint(1, 2)


def test_without_a_cache_folder_loops_still_compile(monkeypatch):
    monkeypatch.setattr(inlining, "cache_folder", lambda: None)
    monkeypatch.setattr("onlearn.compiler.cache.cache_folder", lambda: None)
    fresh = inlining.Loop(loop)
    assert fresh(Red(np.arange(6.0)), 4) == loop(Red(np.arange(6.0)), 4)


def test_threads_that_meet_a_new_loop_together_inline_it_once():
    fresh, inlined = inlining.Loop(loop), []
    find_once = fresh._dispatch.find
    fresh._dispatch.find = lambda given: (inlined.append(given), find_once(given))[1]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: fresh(Red(np.arange(6.0)), 4), range(32)))
    assert found == [loop(Red(np.arange(6.0)), 4)] * 32
    assert len(inlined) == 1


def test_inlined_text_is_used_again(monkeypatch):
    """Until a file of the package changes, or somebody else gives a verb a body."""

    def again() -> bool:
        return bool(Loop(csr.all_finite.function)(np.ones(3)))

    def no_more(*arguments):
        raise AssertionError("inlined")

    monkeypatch.setattr(inlining, "_foreign", [])
    assert again()
    monkeypatch.setattr(inlining, "source", no_more)
    assert again()
    for changed in ({"_stamp": lambda: "another"}, {"_foreign": [no_more]}):
        with monkeypatch.context() as patch:
            for name, value in changed.items():
                patch.setattr(inlining, name, value)
            with pytest.raises(AssertionError, match="inlined"):
                again()


def test_what_others_write_is_not_left_for_the_package(monkeypatch):
    """A verb with a body from elsewhere is inlined in this process alone; its text is nobody else's."""
    function = csr.all_finite.function
    name, folder = function.__name__, Path(inlining.cache_folder())
    monkeypatch.setattr(inlining, "_foreign", [])
    assert Loop(function)(np.ones(3))
    before = (folder / f"{name}.py").read_text()
    monkeypatch.setattr(inlining, "_foreign", [paint])
    monkeypatch.setattr(inlining, "source", lambda *given: f"def {name}(x):\n    return False\n")
    assert not Loop(function)(np.ones(3))
    assert (folder / f"{name}.py").read_text() == before


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("import numpy as np\nfrom onlearn.compiler import prefetch as prefetch\ndef f(): pass\n", True),
        ("import math as math\n", True),
        ("from mine import helper as helper\n", False),
    ],
)
def test_a_text_that_does_not_show_all_it_does_is_not_kept(text, kept):
    assert (inlining._digest(text) is not None) is kept
