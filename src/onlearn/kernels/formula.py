"""Kernels from text: ``get("0.5*gaussian(2) + poly(2)")``. The text is parsed, never evaluated."""

from __future__ import annotations

import ast
import difflib
import operator
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any

from onlearn.kernels.base import Kernel
from onlearn.kernels.family import HOMES, MEMBERS, member

SIGNS = {ast.Add: operator.add, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.Pow: operator.pow}
OPERATORS = ("sum", "product", "scale", "power")  # written with signs, not by name
ELSEWHERE = {"rbf": "gaussian", "tanh": "sigmoid", "cosine": "normalize(linear)", "spectrum": "substrings"}
DEEPEST = 100
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
        + (": of a function of two examples, kernels.Callable(function) makes one" if function else "")
    )


def read(text: str) -> Kernel:
    """A new kernel from its formula."""

    def refuse(why: str) -> ValueError:
        return ValueError(f"cannot read the kernel {_short(text)!r}: {why}")

    if "<" in text:
        raise refuse("functions and large matrices have no spelling; build it in Python")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise refuse("write a formula such as '0.5*gaussian(2) + poly(2)'") from None
    made = _build(tree, refuse, 0)
    if not isinstance(made, Kernel):
        raise refuse("there is no kernel in it" if isinstance(tree, ast.BinOp) else "it is not a kernel")
    return made


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def _build(node: ast.expr, refuse: Callable[[str], ValueError], depth: int) -> Any:
    """What a piece of a formula stands for: a kernel or a number."""
    if depth > DEEPEST:
        raise refuse("its brackets are too deep")
    if isinstance(node, (ast.Call, ast.Name)):
        return _call(node, refuse, depth)
    if isinstance(node, ast.BinOp) and type(node.op) in SIGNS:
        left, right = (_build(side, refuse, depth + 1) for side in (node.left, node.right))
        power = isinstance(node.op, ast.Pow)  # of a kernel only
        numbers = all(type(side) in (int, float) for side in (left, right))  # 0.1*0.2*linear
        if isinstance(left, Kernel) or (not power and (numbers or isinstance(right, Kernel))):
            try:
                return SIGNS[type(node.op)](left, right)
            except (TypeError, OverflowError, ZeroDivisionError):  # a word, a complex number, one beyond all others
                raise refuse(f"{_short(ast.unparse(node))!r} cannot be worked out") from None
        raise refuse(f"{_short(ast.unparse(node))!r} has no kernel in it that the sign could work on")
    if isinstance(node, ast.BinOp):
        raise refuse("kernels know the signs +, *, / and **")
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
        close = [ELSEWHERE[name]] if name in ELSEWHERE else difflib.get_close_matches(name, known, n=1)
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
