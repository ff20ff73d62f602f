"""Kernels as text and as stored data.

``get("0.5*gaussian(2) + poly(2)")`` reads a formula. ``pack`` turns a kernel, and ``pack_data`` its examples, into
plain facts (JSON) and arrays for the model file; ``unpack`` and ``unpack_data`` read them back. Formulas and stored
data are parsed, never evaluated.
"""

from __future__ import annotations

import ast
import copy
import difflib
import operator
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any

import numpy as np

from onlearn.engine.csr import CSR
from onlearn.kernels.base import Kernel
from onlearn.kernels.family import HOMES, MEMBERS, member
from onlearn.kernels.products import is_scipy, numeric
from onlearn.model_schema import COUNT, TEXT, Arrays, ListOf, OrMissing, Record, as_arrays, check_facts, one_of

Facts = dict[str, Any]
Made = dict[str, np.ndarray]

SIGNS = {ast.Add: operator.add, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.Pow: operator.pow}
OPERATORS = ("sum", "product", "scale", "power")  # written as signs, not by name
# Names that other libraries use.
OTHER_NAMES = {"rbf": "gaussian", "tanh": "sigmoid", "cosine": "normalize(linear)", "spectrum": "substrings"}
DEEPEST = 100  # levels of brackets, or of kernels inside kernels
LONGEST = 60  # characters of a formula that an error message quotes


def get(kernel: Any) -> Kernel:
    """A kernel from its formula, its class, or itself.

    >>> get("0.5*gaussian(2) + poly(3)")
    0.5*gaussian(sigma=2.0) + polynomial(3)
    """
    if isinstance(kernel, str):
        return read(kernel)
    if isinstance(kernel, type) and issubclass(kernel, Kernel):
        return kernel()
    if isinstance(kernel, Kernel):
        return kernel
    function = callable(kernel) and not isinstance(kernel, type)
    raise TypeError(
        f"a kernel must be a formula such as 'gaussian(2)' or an object of onlearn.kernels, not {_short(repr(kernel))}"
        + (": kernels.Callable(function) makes one of a function of two examples" if function else "")
    )


def copied(kernel: Any) -> Kernel:
    """A copy of a kernel, inner kernels too: later changes of one do not reach the other."""
    kernel = get(kernel)
    made = copy.copy(kernel)
    for name, part in kernel.get_params(deep=False).items():
        if isinstance(part, Kernel):
            made.__dict__[name] = copied(part)  # which was checked when the kernel was made
    return made


def read(text: str) -> Kernel:
    """A new kernel from its formula."""

    def refuse(why: str) -> ValueError:
        return ValueError(f"cannot read the kernel {_short(text)!r}: {why}")

    if "<" in text:
        raise refuse("functions and large matrices cannot be written in a formula: build the kernel in Python")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise refuse("write a formula such as '0.5*gaussian(2) + poly(2)'") from None
    made = _build(tree, refuse, 0)
    if not isinstance(made, Kernel):
        raise refuse("it contains no kernel" if isinstance(tree, ast.BinOp) else "it is not a kernel")
    return made


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def _build(node: ast.expr, refuse: Callable[[str], ValueError], depth: int) -> Any:
    """The kernel or the number that a part of a formula means."""
    if depth > DEEPEST:
        raise refuse(f"its brackets are nested more than {DEEPEST} deep")
    if isinstance(node, (ast.Call, ast.Name)):
        return _call(node, refuse, depth)
    if isinstance(node, ast.BinOp) and type(node.op) in SIGNS:
        left, right = (_build(side, refuse, depth + 1) for side in (node.left, node.right))
        power = isinstance(node.op, ast.Pow)  # of a kernel only
        numbers = all(type(side) in (int, float) for side in (left, right))  # 0.1*0.2*linear
        if isinstance(left, Kernel) or (not power and (numbers or isinstance(right, Kernel))):
            try:
                return SIGNS[type(node.op)](left, right)
            except (TypeError, OverflowError, ZeroDivisionError):  # a word, a complex number, one that overflows
                raise refuse(f"{_short(ast.unparse(node))!r} cannot be computed") from None
        raise refuse(f"{_short(ast.unparse(node))!r} contains no kernel that the sign could apply to")
    if isinstance(node, ast.BinOp):
        raise refuse("kernels can be combined by the signs +, *, / and **")
    return _literal(node, refuse)


def _call(node: ast.Call | ast.Name, refuse: Callable[[str], ValueError], depth: int) -> Kernel:
    call = node if isinstance(node, ast.Call) else ast.Call(node, [], [])
    if not isinstance(call.func, ast.Name):
        raise refuse(f"{_short(ast.unparse(call.func))!r} is not a name")
    name = call.func.id
    if name == "poly" and not (call.args and _is_kernel(call.args[0])) and not any(w.arg == "k" for w in call.keywords):
        name = "polynomial"
    cls: Any = member(name)
    if cls is None:
        known = [n for n in {**MEMBERS, **HOMES} if n not in OPERATORS]
        close = [OTHER_NAMES[name]] if name in OTHER_NAMES else difflib.get_close_matches(name, known, n=1)
        raise refuse(
            f"unknown kernel {_short(name)!r}: " + (f"did you mean {close[0]!r}?" if close else ", ".join(known))
        )
    names = [f.name for f in fields(cls)]
    if len(call.args) > len(names):
        raise refuse(f"{name} takes {len(names)} parameters ({', '.join(names) or 'none'})")
    given: dict[str, Any] = {}
    pairs = [*zip(names, call.args, strict=False), *((word.arg, word.value) for word in call.keywords)]
    for key, value in pairs:
        if key not in names:
            raise refuse(f"{name} has no parameter {_short(repr(key))}; it has {', '.join(names) or 'none'}")
        if key in given:
            raise refuse(f"{key!r} is given twice")
        given[key] = _build(value, refuse, depth + 1) if _is_kernel(value) else _literal(value, refuse)
    missing = [f.name for f in fields(cls) if f.name not in given and _required(f)]
    if missing:
        raise refuse(f"{name} needs {' and '.join(missing)}")
    return cls(**given)


def _required(field: Any) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _is_kernel(node: ast.expr) -> bool:
    """Whether a parameter is a kernel: it has the name of one in it, not only numbers and words."""
    if isinstance(node, ast.BinOp):
        return _is_kernel(node.left) or _is_kernel(node.right)
    if isinstance(node, ast.Call):
        return True
    return isinstance(node, ast.Name) and node.id in {*MEMBERS, *HOMES} - {*OPERATORS}


def _literal(node: ast.expr, refuse: Callable[[str], ValueError]) -> Any:
    if isinstance(node, ast.Name):  # a bare word is a string: kind=subset
        return node.id
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, MemoryError, RecursionError):
        raise refuse(f"{_short(ast.unparse(node))!r} is neither a kernel nor a number, word or list") from None


# -- stored kernels


KERNEL = Record(name=TEXT)  # and its parameters, which its class checks


def pack(kernel: Kernel) -> tuple[Facts, Made]:
    """A kernel as facts and arrays; an error if it holds a Python function, since that is code."""
    arrays: Made = {}
    return _packed(kernel, arrays), arrays


def _packed(kernel: Kernel, arrays: Made) -> Facts:
    facts: Facts = {"name": kernel.name}
    for key, value in kernel.get_params(deep=False).items():
        if isinstance(value, Kernel):
            facts[key] = {"kernel": _packed(value, arrays)}
        elif isinstance(value, np.ndarray):
            name = f"kernel.{len(arrays)}"
            arrays[name] = value
            facts[key] = {"array": name}
        elif value is None or isinstance(value, (bool, int, float, str)):
            facts[key] = value
        elif isinstance(value, (list, tuple)):
            facts[key] = [float(v) for v in value]
        else:
            raise ValueError(
                f"{kernel} cannot be saved: its {key} is a Python function, and a model file holds no code; "
                "use a function that has a name, or save what you need to build it again"
            )
    return facts


def unpack(facts: Any, arrays: Mapping[str, np.ndarray]) -> Kernel:
    """The kernel that ``pack`` stored."""
    return _unpacked(facts, as_arrays(arrays), 0)


def _unpacked(facts: Any, arrays: Arrays, depth: int) -> Kernel:
    if depth > DEEPEST:
        raise ValueError("this is not the description of a kernel: it is nested too deeply")
    check_facts(facts, KERNEL, "kernel")
    cls: Any = member(facts["name"])
    if cls is None:
        raise ValueError(f"unknown kernel {facts['name']!r}: it may come from a newer version")
    known = {f.name for f in fields(cls)}
    values: Facts = {}
    for key, value in facts.items():
        if key == "name":
            continue
        if key not in known:
            raise ValueError(f"the kernel {facts['name']} has no parameter {key!r}: it may come from a newer version")
        if isinstance(value, dict) and "kernel" in value:
            value = _unpacked(value["kernel"], arrays, depth + 1)
        elif isinstance(value, dict):
            check_facts(value, Record(array=TEXT), key)
            value = arrays[value["array"]]
        values[key] = value
    try:
        return cls(**values)
    except TypeError as error:
        raise ValueError(f"the description of the kernel {facts['name']} is not complete: {error}") from error
    except OverflowError as error:
        raise ValueError(f"the kernel {facts['name']} is damaged: its parameters are too large") from error


# -- stored examples


def pack_data(X: Any) -> tuple[Facts, Made]:
    """Examples as facts and arrays: dense or sparse rows, strings or bytes, trees (as bracketed strings)."""
    X = X.tocsr() if is_scipy(X) else X
    if is_scipy(X) or isinstance(X, CSR):
        return {"kind": "csr", "shape": list(X.shape)}, {"data": X.data, "indices": X.indices, "indptr": X.indptr}
    if isinstance(X, np.ndarray) and X.dtype.kind in "biuf":
        return {"kind": "dense"}, {"data": np.ascontiguousarray(X)}
    items = X.tolist() if isinstance(X, np.ndarray) else X
    if isinstance(items, (list, tuple)) and all(
        isinstance(item, (str, bytes, tuple)) or _is_tree(item) for item in items
    ):
        if items and isinstance(items[0], bytes):
            return _pack_texts("bytes", [_only(item, bytes) for item in items])
        return _pack_texts("strings", [_text(item).encode("utf-8", "surrogatepass") for item in items])
    return pack_data(numeric(X, "a model file"))


def _pack_texts(kind: str, texts: list[bytes]) -> tuple[Facts, Made]:
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    return {"kind": kind}, {"text": np.frombuffer(b"".join(texts), np.uint8), "ends": ends}


def _only(item: Any, kind: type) -> Any:
    if not isinstance(item, kind):
        raise TypeError(f"examples must all be of one kind, but there are {kind.__name__} and {type(item).__name__}")
    return item


def _text(item: Any) -> str:
    return bracketed(item) if isinstance(item, (tuple, list)) else str(_only(item, str))


def _is_tree(item: Any) -> bool:
    """Whether it is a tree of nested lists, and not a row of numbers."""
    return isinstance(item, list) and bool(item) and isinstance(item[0], str)


def bracketed(tree: Any) -> str:
    """A tree of nested tuples, ``("S", ("NP", "we"), ("VP", "sleep"))``, as text: ``(S (NP we) (VP sleep))``.

    There is no recursion, since trees may be deeper than Python's stack.
    """
    words: list[str] = []
    left = [tree]  # a stack of what is still to be written; None closes a bracket
    while left:
        part = left.pop()
        if part is None:
            words.append(")")
        elif isinstance(part, str):
            if not part or any(c.isspace() or c in "()" for c in part):
                raise ValueError(
                    f"the label {part!r} cannot be written in brackets: it is empty or has spaces or brackets"
                )
            words.append(part)
        elif not isinstance(part, (tuple, list)) or not part or not isinstance(part[0], str):
            raise ValueError(f"a tree is a label or a tuple of a label and trees, not {reprlib.repr(part)}")
        else:
            left += [None, *part[:0:-1], part[0]]
            words.append("(")
    return " ".join(words).replace("( ", "(").replace(" )", ")")


EXAMPLES = Record(kind=one_of("csr", "dense", "strings", "bytes"), shape=OrMissing(ListOf(COUNT, "sizes", length=2)))
OF_NUMBERS = ("bool", *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)), "float32", "float64")


def unpack_data(facts: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """The examples that ``pack_data`` stored; sparse rows as a SciPy matrix."""
    found = unpack_rows(facts, arrays)
    return found.to_scipy() if isinstance(found, CSR) else found


def unpack_rows(facts: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """The examples that ``pack_data`` stored; sparse rows as CSR."""
    check_facts(facts, EXAMPLES, "examples")
    kind, arrays = facts["kind"], as_arrays(arrays)
    if kind == "dense":
        data = arrays["data"]
        if data.ndim != 2 or data.dtype.name not in OF_NUMBERS:
            raise ValueError(f"dense examples need rows and columns of numbers, but are {data.dtype.name} {data.shape}")
        return data
    return _unpack_csr(facts, arrays) if kind == "csr" else _unpack_texts(kind, arrays)


def _unpack_texts(kind: str, arrays: Arrays) -> list[Any]:
    text, ends = arrays["text"], arrays["ends"]
    sound = text.dtype == np.uint8 and ends.dtype == np.int64 and text.ndim == ends.ndim == 1
    if not sound or (np.diff(ends, prepend=0) < 0).any() or (ends[-1] if len(ends) else 0) != len(text):
        raise ValueError("the stored strings do not fit their lengths: the file is damaged")
    whole = text.tobytes()
    pieces = [whole[start:end] for start, end in zip([0, *ends.tolist()], ends.tolist())]
    if kind == "bytes":
        return pieces
    try:
        return [piece.decode("utf-8", "surrogatepass") for piece in pieces]
    except UnicodeDecodeError:
        raise ValueError("the stored strings are not text in UTF-8: the file is damaged") from None


def _unpack_csr(facts: Facts, arrays: Arrays) -> CSR:
    data, indices, indptr = (arrays[name] for name in ("data", "indices", "indptr"))
    shape = facts.get("shape")
    if shape is None:
        problem = "there is no shape"
    elif (
        data.ndim != 1 or data.dtype.name not in OF_NUMBERS or any(a.dtype.kind not in "iu" for a in (indices, indptr))
    ):
        problem = "the values must be numbers, and the indices whole numbers"
    elif indices.shape != data.shape or indptr.shape != (shape[0] + 1,):
        problem = f"there are {data.size} values, {indices.size} columns and {indptr.size} ends of {shape[0]} rows"
    elif indptr[0] != 0 or (np.diff(indptr.astype(np.int64)) < 0).any() or indptr[-1] > len(data):
        problem = "the rows do not follow one another"
    elif ((indices < 0) | (indices >= shape[1])).any():
        problem = f"a column is not below {shape[1]}"
    else:
        kind = np.int32 if max(*shape, len(data)) < 2**31 else np.int64
        used = int(indptr[-1])
        return CSR(data[:used], indices[:used].astype(kind, copy=False), indptr.astype(kind, copy=False), tuple(shape))
    raise ValueError(f"the stored sparse examples do not fit together: {problem}")
