"""Inlining: a loop written with verbs becomes one plain function for the types of its arguments.

A loop calls *verbs*, whose body depends on the types of its NamedTuple arguments, and *helpers*, which are plain
functions. To compile each of those calls as a function of its own costs Numba seconds for each combination, nearly all
of it bookkeeping. So their bodies are pasted into the loop first, as source text: Numba then sees the fused loop that
one would have written by hand, in a file one can read, and the compile time falls by a factor of three to five. The
file is in the cache folder, with the machine code beside it.

Inlining itself takes tens of milliseconds, so the text in the cache folder is used for as long as no file of the
package changes, unless a verb has a body from elsewhere.

What can be inlined: a body whose only ``return`` is its last statement, and calls that are not inside a lambda, a
comprehension, a ``while`` condition or the right-hand side of ``and`` and ``or``. With ``NUMBA_DISABLE_JIT=1``
nothing is inlined: verbs look up their body at run time and the loop runs as it is written.
"""

from __future__ import annotations

import ast
import builtins
import copy
import hashlib
import inspect
import linecache
import os
import re
import sys
import textwrap
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from onlearn.compiler import cache as files
from onlearn.compiler import shipped
from onlearn.compiler.cache import PACKAGE, cache_folder, cache_folders
from onlearn.compiler.functions import INTERPRETED, REORDER, Identity, Replaced, code
from onlearn.compiler.object_code import Call, Dispatch

Kinds = tuple[type, ...]
Function = Callable[..., Any]

INLINED_BY = "# Inlined by the package whose files have the digest "
OPTIONS = {"fastmath": REORDER}
_foreign: list[Function] = []  # bodies of verbs that are not of this package


class Verb:
    """A function whose body is chosen by the types of its NamedTuple arguments, in their order.

    ``@name.on(Kind, ...)`` registers a body; a kind of ``object`` stands for any type, and the body with the
    fewest of those wins.
    """

    __name__: str

    def __init__(self, signature: Callable[..., Any]) -> None:
        self.__name__, self.__doc__ = signature.__name__, signature.__doc__
        self.table: dict[Kinds, Function] = {}

    def on(self, *kinds: type) -> Callable[[Function], Function]:
        def register(body: Function) -> Function:
            self.table[kinds] = body
            if not _is_ours(body):
                _foreign.append(body)
            return body

        return register

    def body(self, kinds: Kinds) -> Function:
        fitting = [
            key
            for key in self.table
            if len(key) == len(kinds) and all(k in (object, kind) for k, kind in zip(key, kinds, strict=True))
        ]
        if not fitting:
            raise TypeError(f"{self.__name__} is not defined for ({', '.join(kind.__name__ for kind in kinds)})")
        return self.table[min(fitting, key=lambda key: key.count(object))]

    def is_usual(self, *kinds: type) -> bool:
        """Whether no body is registered for these types: they have the one for any."""
        return self.body(kinds) is self.table[(object,) * len(kinds)]

    def __call__(self, *arguments: Any) -> Any:
        return self.body(kinds_of(arguments))(*arguments)


def helper(function: Any) -> Any:
    """A plain function for use inside loops."""
    function.inlined = True
    return function


def kinds_of(arguments: tuple[Any, ...]) -> Kinds:
    return tuple(type(a) for a in arguments if hasattr(a, "_fields"))


class Loop:
    """A loop with verbs: inlined for each combination of NamedTuples, and compiled for the types, it is called with."""

    __name__: str

    def __init__(self, function: Function) -> None:
        self.function = function
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self._dispatch = Dispatch(self._code)

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments) if INTERPRETED else self._dispatch(arguments)

    def bind(self, *arguments: Any) -> Callable[[], Any]:
        """A call with these very arguments, prepared once: for loops that are done sooner than arguments are passed.

        Arrays may change their content between calls. Python's lock is kept during a call, so it should be short.
        """
        return partial(self.function, *arguments) if INTERPRETED else self._dispatch.bind(arguments)

    def _code(self, arguments: tuple[Any, ...]) -> Call:
        names = inspect.signature(self.function).parameters
        typed = {n: type(a) for n, a in zip(names, arguments, strict=True) if hasattr(a, "_fields")}
        name = "_".join([self.__name__, *(kind.__name__ for kind in typed.values())])
        text = self._text(name, typed)
        digest = _digest(text)
        who = Identity(f"{name} {digest}", digest is not None)

        def inlined() -> Any:
            return getattr(_module(name, text), self.__name__)

        def for_numba() -> Any:
            from onlearn.compiler.numba_backend import dispatcher

            file = None if digest is None else _source_file(f"{name}-{digest}.py", text)
            made = getattr(_module(name, text, file), self.__name__)
            return dispatcher(made, OPTIONS, digest if file else None)

        return code(inlined, who, arguments, OPTIONS, for_numba)

    def _text(self, name: str, typed: dict[str, type]) -> str:
        ours = not _foreign and all(map(_is_ours, (self.function, *typed.values())))
        if not ours:
            return source(self.function, typed)
        text = shipped.text(name) or _kept(name, _stamp())
        if text is None:
            text = source(self.function, typed)
            _keep(name, text, _stamp())
        shipped.write_text(name, text)
        return text


def source(function: Function, kinds: dict[str, type]) -> str:
    """The text of a loop with all verbs and helpers pasted in, for arguments of the given types."""
    inliner = _Inliner()
    tree = copy.copy(_tree(function))
    names: dict[str, ast.expr] = {a.arg: ast.Name(a.arg, ast.Load()) for a in tree.args.args}
    scope = _Scope(function, names, kinds)
    for name in _assigned(tree):
        scope.names.setdefault(name, ast.Name(name, ast.Load()))
    body: list[ast.stmt] = []
    for statement in _statements(tree):
        inliner.statement(statement, scope, body)
    tree.body = body
    tree.args = ast.arguments([], [ast.arg(a.arg) for a in tree.args.args], None, [], [], None, [])
    tree.returns, tree.decorator_list = None, []
    module = ast.Module([*inliner.imports(), tree], [])
    title = f'"""{function.__name__} for {", ".join(kind.__name__ for kind in kinds.values())}."""\n'
    return title + ast.unparse(ast.fix_missing_locations(module)) + "\n"


class _Scope:
    """The names of one function being pasted: what stands for each, and the types that are known."""

    def __init__(self, function: Function, names: dict[str, ast.expr], kinds: dict[str, type]) -> None:
        self.function, self.names, self.kinds = function, names, kinds

    def lookup(self, name: str) -> Any:
        return self.function.__globals__.get(name, getattr(builtins, name, None))


class _Inliner:
    def __init__(self) -> None:
        self.count = 0
        self.needed: dict[str, Any] = {}

    def imports(self) -> list[ast.stmt]:
        lines = []
        for name, value in self.needed.items():
            if isinstance(value, ModuleType):
                lines.append(f"import {value.__name__} as {name}")
            else:
                lines.append(f"from {value.__module__} import {value.__name__} as {name}")
        return ast.parse("\n".join(lines)).body

    def statement(self, node: ast.stmt, scope: _Scope, out: list[ast.stmt]) -> None:
        if isinstance(node, ast.Expr):
            value = self.expression(node.value, scope, out)
            if isinstance(value, ast.Call):
                out.append(ast.Expr(value))
        elif isinstance(node, (ast.If, ast.While)):
            if isinstance(node, ast.While) and self.inlines(node.test, scope):
                raise SyntaxError(f"a while condition in {scope.function.__qualname__} calls a verb")
            test = self.expression(node.test, scope, out)
            out.append(type(node)(test, self.block(node.body, scope), self.block(node.orelse, scope, empty=True)))
        elif isinstance(node, ast.For):
            target, steps = self.expression(node.target, scope, out), self.expression(node.iter, scope, out)
            out.append(ast.For(target, steps, self.block(node.body, scope), []))
        elif not isinstance(node, ast.Pass):
            node = copy.copy(node)
            for field, value in ast.iter_fields(node):
                if isinstance(value, ast.expr):
                    setattr(node, field, self.expression(value, scope, out))
                elif isinstance(value, list):
                    setattr(node, field, [self.expression(v, scope, out) for v in value])
            out.append(node)

    def block(self, statements: list[ast.stmt], scope: _Scope, empty: bool = False) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for statement in statements:
            self.statement(statement, scope, out)
        return out if out or empty else [ast.Pass()]

    def inlines(self, node: ast.AST, scope: _Scope) -> bool:
        """Whether a verb or helper is called somewhere in the expression."""
        functions = (n.func for n in ast.walk(node) if isinstance(n, ast.Call))
        names = (f.id for f in functions if isinstance(f, ast.Name) and f.id not in scope.names)
        return any(_is_inlined(scope.lookup(name)) for name in names)

    def expression(self, node: ast.expr, scope: _Scope, out: list[ast.stmt]) -> ast.expr:
        if isinstance(node, ast.Name):
            return self.name(node, scope)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id not in scope.names:
            called = scope.lookup(node.func.id)
            if _is_inlined(called):
                return self.paste(called, [self.expression(a, scope, out) for a in node.args], scope, out)
        if isinstance(node, ast.IfExp) and (self.inlines(node.body, scope) or self.inlines(node.orelse, scope)):
            return self.branches(node, scope, out)
        if isinstance(node, ast.BoolOp) and any(self.inlines(v, scope) for v in node.values[1:]):
            raise SyntaxError(f"'and' or 'or' in {scope.function.__qualname__} calls a verb on its right")
        node = copy.copy(node)
        for field, value in ast.iter_fields(node):
            if isinstance(value, ast.expr):
                setattr(node, field, self.expression(value, scope, out))
            elif isinstance(value, list):
                setattr(
                    node,
                    field,
                    [self.expression(v, scope, out) if isinstance(v, ast.expr) else v for v in value],
                )
        return node

    def name(self, node: ast.Name, scope: _Scope) -> ast.expr:
        if node.id in scope.names:
            found = copy.copy(scope.names[node.id])
            if isinstance(found, ast.Name):
                found.ctx = node.ctx
            return found
        value = scope.lookup(node.id)
        if isinstance(value, (bool, int, float)):
            return ast.Constant(value)
        if isinstance(value, np.generic):
            self.needed["np"] = np
            kind = ast.Attribute(ast.Name("np", ast.Load()), type(value).__name__, ast.Load())
            return ast.Call(kind, [ast.Constant(value.item())], [])
        if not hasattr(builtins, node.id) and self.needed.setdefault(node.id, value) is not value:
            raise SyntaxError(f"{node.id} means two things in one loop")
        return node

    def branches(self, node: ast.IfExp, scope: _Scope, out: list[ast.stmt]) -> ast.expr:
        """``a if test else b`` as an if statement, so that only one side is evaluated."""
        test = self.expression(node.test, scope, out)
        self.count += 1
        result = f"either_{self.count}"
        sides: list[list[ast.stmt]] = [[], []]
        for side, value in zip(sides, (node.body, node.orelse), strict=True):
            done = self.expression(value, scope, side)
            side.append(ast.Assign([ast.Name(result, ast.Store())], done))
        out.append(ast.If(test, *sides))
        return ast.Name(result, ast.Load())

    def paste(self, called: Any, arguments: list[ast.expr], scope: _Scope, out: list[ast.stmt]) -> ast.expr:
        """Paste the body of a verb or helper; returns the expression for its result."""
        function = called
        known = [scope.kinds.get(a.id) for a in arguments if isinstance(a, ast.Name)]
        if isinstance(called, Verb):
            function = called.body(tuple(kind for kind in known if kind is not None))
        self.count += 1
        mark, tree = self.count, _tree(function)
        assigned = _assigned(tree)
        inner = _Scope(function, {}, scope.kinds)
        for parameter, argument in zip([a.arg for a in tree.args.args], arguments, strict=True):
            if isinstance(argument, (ast.Name, ast.Constant)) and parameter not in assigned:
                inner.names[parameter] = argument
            else:
                inner.names[parameter] = ast.Name(f"{parameter}_{mark}", ast.Load())
                out.append(ast.Assign([ast.Name(f"{parameter}_{mark}", ast.Store())], argument))
        for local in assigned:
            inner.names.setdefault(local, ast.Name(f"{local}_{mark}", ast.Load()))
        statements = _statements(tree)
        if any(isinstance(n, ast.Return) for s in statements[:-1] for n in ast.walk(s)):
            raise SyntaxError(f"{function.__qualname__} in {function.__module__} returns before its last statement")
        for statement in statements:
            if not isinstance(statement, ast.Return):
                self.statement(statement, inner, out)
                continue
            result = self.expression(statement.value or ast.Constant(None), inner, out)
            if len(statements) == 1:
                return result
            out.append(ast.Assign([ast.Name(f"result_{mark}", ast.Store())], result))
            return ast.Name(f"result_{mark}", ast.Load())
        return ast.Constant(None)


def _is_inlined(called: Any) -> bool:
    return isinstance(called, Verb) or hasattr(called, "inlined")


@cache
def _tree(function: Function) -> ast.FunctionDef:
    """The function as it is written; shared by all who paste it, so nodes are copied before they are changed."""
    return ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]  # type: ignore[return-value]


def _statements(tree: ast.FunctionDef) -> list[ast.stmt]:
    """The body without its docstring."""
    return tree.body[1:] if ast.get_docstring(tree) is not None else tree.body


def _assigned(tree: ast.FunctionDef) -> list[str]:
    stored = (n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    return list(dict.fromkeys(stored))


def _is_ours(thing: Any) -> bool:
    return bool(thing.__module__.partition(".")[0] == __name__.partition(".")[0])


@cache
def _stamp() -> str:
    """What changes when a file of the package does."""
    digest = hashlib.blake2b(digest_size=16)
    for folder, inner, names in os.walk(PACKAGE):
        inner[:] = sorted(set(inner) - {"__pycache__"})
        for name in sorted(names):
            facts = os.stat(os.path.join(folder, name))
            digest.update(f"{folder}/{name} {facts.st_mtime_ns} {facts.st_size}\n".encode())
    return digest.hexdigest()


def _digest(text: str) -> str | None:
    """A digest of a text and of the functions it imports; None if these are not of this package, and may change."""
    parts = [text]
    for module, name in re.findall(r"^(?:from|import) (\S+)(?: import (\w+))?", text, re.MULTILINE):
        if module.partition(".")[0] not in ("math", "numpy", "onlearn"):
            return None
        value = getattr(import_module(module), name, None) if module.startswith("onlearn.") else None
        if isinstance(value, Replaced):
            found = files.function_digest(value)
            if found is None:
                return None
            parts.append(found)
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=8).hexdigest()


def _kept(name: str, stamp: str) -> str | None:
    """The text that the package, as it is now, has inlined before; None if it has not."""
    for folder in cache_folders():
        with suppress(OSError, UnicodeDecodeError):
            first, _, text = files.read(folder, f"{name}.py").decode().partition("\n")
            if first == INLINED_BY + stamp:
                return text
    return None


def _keep(name: str, text: str, stamp: str) -> None:
    """Write the text to a file, for later processes and for whoever wants to read it."""
    folder = cache_folder()
    if folder is not None:
        with suppress(OSError):  # the disk is full, say
            files.write(folder, f"{name}.py", f"{INLINED_BY}{stamp}\n{text}".encode())


def _source_file(name: str, text: str) -> str | None:
    """The path of a file with just this text, which Numba's disk cache asks for."""
    folder = cache_folder()
    if folder is None:
        return None
    with suppress(OSError):
        if files.read(folder, name) == text.encode():
            return str(Path(folder, name))
    try:
        files.write(folder, name, text.encode())
    except OSError:
        return None
    return str(Path(folder, name))


def _module(name: str, text: str, path: str | None = None) -> ModuleType:
    """A module of the given source."""
    full = f"onlearn._inlined_{name}"
    if path is None:
        path = f"<{full}>"
        linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    module = ModuleType(full)
    sys.modules[full] = module
    exec(compile(text, path, "exec"), module.__dict__)
    return module
