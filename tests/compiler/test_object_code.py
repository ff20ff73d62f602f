"""Compiled code without its compiler: what goes in, what comes out, and what is refused."""

from __future__ import annotations

import copy
import importlib.util
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlearn.compiler import INTERPRETED, Compiled, borrow, give_back, object_code, pointer, prefetch, scratch
from onlearn.data.batch import hash_bytes
from onlearn.kernels.boolean import own_subsets

pytestmark = pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")


class Pair(NamedTuple):
    first: np.ndarray
    rest: tuple[int, float]


class Swapped(NamedTuple):
    rest: tuple[int, float]
    first: np.ndarray


@pytest.fixture(autouse=True)
def _no_fallback(monkeypatch):
    monkeypatch.setenv("ONLEARN_BACKEND", "object_code")


def made(function: Any, **options: Any) -> Compiled:
    return Compiled(function, options)


def weighted(rows, factor, shift, negative):
    total = 0.0
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            total += rows[i, j] * (i + 1) * (2 * j + 1)
    total = total * factor + shift
    return -total if negative else total


compiled_weighted = made(weighted)


@given(
    st.sampled_from(["float64", "float32", "int64", "int32", "uint8", "bool"]),
    st.integers(0, 4),
    st.integers(0, 4),
    st.sampled_from(["C", "F", "every other", "backwards", "turned"]),
    st.booleans(),
    st.integers(-3, 3),
    st.booleans(),
)
def test_arrays_of_all_layouts(dtype, rows, columns, layout, writeable, shift, negative):
    X = np.arange(rows * columns).reshape(rows, columns).astype(dtype)
    if layout == "F":
        X = np.asfortranarray(X)
    elif layout == "every other":
        X = np.repeat(X, 2, axis=1)[:, ::2]
    elif layout == "backwards":
        X = X[::-1, ::-1]
    elif layout == "turned":
        X = X.T
    X.flags.writeable = writeable
    assert compiled_weighted(X, 0.5, shift, negative) == weighted(X.astype(float), 0.5, shift, negative)


@pytest.mark.parametrize(
    "value",
    [
        *(np.int8(-3), np.uint8(250), np.int16(-300), np.uint16(65_000), np.int32(-70_000), np.uint32(4_000_000_000)),
        *(np.int64(-(2**62)), np.uint64(2**63 + 5), 7, -7, 2.5, np.float32(0.1), np.float64(-0.1)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_numbers_of_all_types(value):
    def negated(x):
        return x, -x, x > 0

    same, other, positive = made(negated)(value)
    assert same == value
    assert positive is bool(value > 0)
    if not isinstance(value, np.unsignedinteger):
        assert other == -value


@pytest.mark.parametrize("value", [True, False, np.bool_(True), np.bool_(False)], ids=repr)
def test_truth(value):
    def turned(x):
        return not x

    assert made(turned)(value) is (not value)


def test_tuples_within_tuples_and_nothing():
    def visit(pair, both, nothing):
        pair.first[0] = pair.rest[0]
        return both[0] + both[1][0], pair.rest[1]

    first = np.zeros(2)
    assert made(visit)(Pair(first, (3, 0.5)), (1, (2.5,)), None) == (3.5, 0.5)
    assert first.tolist() == [3.0, 0.0]


def test_what_returns_nothing():
    def fill(x, value):
        x[:] = value

    x = np.zeros((2, 3), dtype=np.float32)
    assert made(fill)(x, 2) is None
    assert (x == 2).all()


def test_functions_call_each_other():
    inner = made(lambda x: x * 2.0)

    def outer(x):
        return inner(x) + 1.0

    outer.__globals__["inner"] = inner
    try:
        assert made(outer)(3.0) == 7.0
        assert inner(3.0) == 6.0
    finally:
        del outer.__globals__["inner"]


def test_copies_are_the_thing_itself():
    for thing in (hash_bytes, prefetch, own_subsets):
        assert copy.deepcopy(thing) is thing
        assert pickle.loads(pickle.dumps(thing)) is thing


def test_what_makes_arrays_or_returns_them_is_refused():
    def makes(n):
        return np.zeros(n).sum()

    with pytest.raises(Exception, match=r"zeros|NRT"):
        made(makes)(3)

    def returns(x):
        return x

    with pytest.raises(TypeError, match="return numbers and tuples of them"):
        made(returns)(np.zeros(3))


def test_an_error_in_compiled_code_is_told():
    def fails(x):
        if x > 0:
            raise ValueError
        return x

    assert made(fails)(-1) == -1
    with pytest.raises(RuntimeError, match="ended with status"):
        made(fails)(1)


def test_borrowed_memory_is_zero_and_apart():
    def borrows(n):
        a, b = borrow(n), borrow(n)
        total = 0.0
        for k in range(n):
            total += a[k] + b[k]
            a[k] = 1.0
            total += b[k]
        give_back(a)
        give_back(b)
        return total

    assert [made(borrows)(n) for n in (0, 1, 1000)] == [0.0] * 3


def test_scratch_is_the_functions_own():
    def turns(x):
        room, total = scratch(4), 0.0
        for n in range(3):  # the same room each time
            other = scratch(4)
            for k in range(4):
                room[k] = x + k
                other[k] = n
            for k in range(4):
                total += room[k] * other[k]
        return total

    assert made(turns)(1.0) == 10.0 * (0 + 1 + 2)


def test_pointers():
    def steps(s, y, q, p):
        return s + 10 * y + 100 * q + 1000 * p[1]

    signature = "float64", ("float64", "float64", "float64", "float64[]")

    def call(rule, p):
        return rule(1.0, 2.0, 3.0, p)

    calling, p = made(call), np.array([0.0, 4.0])
    for keep in (True, False):
        assert calling(pointer(steps, *signature, keep=keep), p) == 4321.0


def test_a_pointer_that_raises_is_nan():
    def fails(s, y, q, p):
        if s > 0:
            raise ValueError
        return s

    def call(rule, s, p):
        return rule(s, 0.0, 0.0, p)

    rule = pointer(fails, "float64", ("float64", "float64", "float64", "float64[]"), keep=True)
    assert np.isnan(made(call)(rule, 1.0, np.zeros(1)))
    assert made(call)(rule, -1.0, np.zeros(1)) == -1.0


def test_threads_that_meet_new_code_together_find_it_once():
    def heavy(x):
        total = 0.0
        for k in range(len(x)):
            total += x[k]
        return total

    function, found = made(heavy), []
    find = function._dispatch.find
    function._dispatch.find = lambda given: (found.append(given), find(given))[1]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda _: function(np.ones(9)), range(32))) == [9.0] * 32
    assert len(found) == 1


def test_what_is_filed_apart():
    """Kinds that Numba compiles differently have different names; those that it does not share one."""
    square = np.ones((2, 2))
    readonly = np.ones((2, 2))
    readonly.flags.writeable = False
    kinds = [
        *(
            (square,),
            (np.ones((2, 4))[:, ::2],),
            (square[0],),
            (readonly,),
            (square.astype("f4"),),
            (np.asfortranarray(square),),
        ),
        *((np.frombuffer(b"a" * 33, np.uint8)[1:].view(np.float64)[:4],), (Swapped((1, 2.0), square),)),
        *((1,), (1.0,), (True,), (np.int32(1),), (None,), ((1, 2),), ((1,), 2), (Pair(square, (1, 2.0)),)),
    ]
    assert len({object_code.type_names(one) for one in kinds}) == len(kinds)
    row = np.ones((1, 3))  # in C's order and in Fortran's
    assert object_code.type_names((row,)) == object_code.type_names((np.ones((2, 3)),))


def elf(*names: str) -> bytes:
    """An object file that needs functions of these names."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    calls = "\n".join(f"call void @{name}()" for name in names)
    text = "\n".join(f"declare void @{name}()" for name in names) + f"\ndefine void @entry() {{\n{calls}\nret void\n}}"
    module = llvm.parse_assembly(text)
    return llvm.Target.from_default_triple().create_target_machine().emit_object(module)


def test_the_symbols_that_an_object_file_needs():
    assert set(object_code.undefined_symbols(elf("exp", "no_such_function"))) == {"exp", "no_such_function"}
    assert object_code.undefined_symbols(elf()) == []
    whole = elf("exp")
    for damaged in (b"", b"text", whole[:30], whole[: len(whole) // 2]):
        with pytest.raises(object_code.LinkError):
            object_code.undefined_symbols(damaged)


def test_symbols_that_llvm_adds_are_among_them():
    """The intermediate code of this function names none; LLVM makes ``memset`` of the loop."""

    def clear(x):
        for k in range(len(x)):
            x[k] = 0.0

    from onlearn.compiler.emit import emit

    code = emit("entry_of_clear", clear, (np.ones(3),), {}).code
    assert object_code.undefined_symbols(code) == ["memset"]


def test_an_unknown_symbol_does_not_end_the_process():
    with pytest.raises(object_code.LinkError, match="no_such_function"):
        object_code.link("entry", elf("exp", "no_such_function"))


def test_the_file_says_when_it_is_damaged():
    whole = object_code.ObjectFile("(qd)", elf("exp", "log") + b"\n\nmore")
    content = whole.packed()
    assert object_code.unpacked(content) == whole
    for cut in range(len(content)):
        assert object_code.unpacked(content[:cut]) is None


def test_code_that_calls_a_missing_function_is_compiled_anew():
    assert object_code.is_resolvable("exp")
    assert not object_code.is_resolvable("NRT_Allocate")
    assert object_code.unpacked(object_code.ObjectFile("q", elf("no_such_function")).packed()) is None
    assert object_code.unpacked(object_code.ObjectFile("q", b"no object file").packed()) is None


def test_functions_of_one_name_are_kept_apart(tmp_path):
    (tmp_path / "a.py").write_text("def f(x):\n    return x + 1\n")
    (tmp_path / "b.py").write_text("def f(x):\n    return x + 100\n")
    found = []
    for name in ("a", "b"):
        spec = importlib.util.spec_from_file_location(name, tmp_path / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found.append(made(module.f)(1))
    assert found == [2, 101]

    pair = [made(f) for f in (lambda x: x + 3, lambda x: x + 5)]
    assert [f(1) for f in pair] == [4, 6]

    def adding(n):
        return made(lambda x: x + n)

    assert [adding(n)(1) for n in (1, 5)] == [2, 6]


def test_whole_numbers_that_are_too_large():
    """They are refused, and leave nothing behind that others of their type would be calculated with."""

    def positive(x):
        return x > 0

    for _ in range(2):
        with pytest.raises(OverflowError, match="too large"):
            made(positive)(2**63)
        assert made(positive)(-5) is False


def test_memory_that_cannot_be_borrowed():
    def borrows(n):
        room = borrow(n)
        room[0] = 1.0
        total = room[0] + room[n - 1]
        give_back(room)
        return total

    function = made(borrows)
    with pytest.raises(MemoryError):
        function(1 << 58)
    assert function(2) == 1.0


def test_learning_imports_no_compiler(tmp_path):
    """Once everything is compiled, a process that learns and predicts does so without Numba."""
    program = (
        "import sys, numpy as np, scipy.sparse as sp, onlearn\n"
        "X = np.eye(4)\n"
        "for rows in (X, sp.csr_matrix(X)):\n"
        "    onlearn.LogisticRegression(random_state=0).fit(rows, [0, 1, 0, 1]).predict_proba(rows)\n"
        "print('numba' in sys.modules)"
    )
    told = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()
        for _ in range(2)
    ]
    assert told[1] == "False"
