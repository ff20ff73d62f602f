"""Rules that users write: ``@rule`` makes one of a scalar function, and says in a sentence what is wrong with it.

Compiled code cannot tell the loop that called it why it failed. So where a user's function raises, or returns what is
not a finite number, the rule's step is NaN, at which the loop stops, and what the function was called with is left in a
few places behind the rule's parameters. The Python function is then called with the same, and shows what happened.

To be ready for what a function may raise takes time in every step, so that is only done for those that may raise: a
division by zero gives infinity, as with NumPy, and of the rest the compiler knows. Only a function that catches
exceptions, or divides by whole numbers, among which there is no infinity, divides as Python does, and may raise.
"""

from __future__ import annotations

import dis
import inspect
import numbers
import re
import reprlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from onlearn.compiler import INTERPRETED, intrinsic, types
from onlearn.engine.rules import RULES, is_custom
from onlearn.engine.spec import choice, is_finite, param

STEP, LOSS = 1.0, 2.0  # which function failed; then come score, y and |x|^2 of the call
LEFT = 4  # places behind the parameters
NUMBERS = {"numpy": np.float64, "python": float}  # those that divide as a function compiled under an error model does

# What classes of rules have, or may say about themselves.
RESERVED = {
    *("name", "step", "loss", "error", "values", "written", "check", "get_params", "set_params", "self"),
    *("multiclass", "regression", "classification", "own_probabilities"),
}


def rule(function: Callable[..., float] | None = None, *, loss: Callable[..., float] | None = None) -> Any:
    """Turn a scalar function into a rule, usable wherever a rule or its name is.

    The function takes the score and y, and |x|^2 if it wants it; arguments with defaults become the
    rule's parameters. ``loss(score, y)``, if given, is what ``history_`` reports; else the share of mistakes, in
    regression the mean of \\|y - score\\|. A rule defined again under its name takes that name over: learners that were
    given the one before as a class or an object keep it, those that were given the name refuse to go on with another.

    Learners take their rule along into other processes (``GridSearchCV(n_jobs=2)``). A name among the parameters to
    search over does not: search over ``[mine()]`` there, not ``["mine"]``.

    Numbers divided by zero give infinity or NaN, as with NumPy, and a step that is infinite or NaN is refused with the
    example it was for. In a function with a ``try`` statement, or with ``//`` or ``%`` by a whole number that may be
    zero, every division by zero raises ZeroDivisionError, as in Python.

    >>> import onlearn
    >>> @onlearn.rule
    ... def cautious(score, y, sqnorm, C=0.5):
    ...     return y * min(C, 1 / sqnorm) if score * y <= 0 else 0.0
    >>> cautious(C=0.1)
    cautious(C=0.1)
    >>> onlearn.OnlineClassifier(rule="cautious(0.1)").fit([[0.0], [1.0]], [0, 1]).predict([[1.0]])
    array([1])
    """
    if function is None:
        return lambda f: rule(f, loss=loss)
    written = Written(_python(function), None if loss is None else _python(loss))
    own = written.parameters()
    body = {
        "__doc__": function.__doc__,
        "__module__": function.__module__,
        "__qualname__": function.__qualname__,
        "__annotations__": {a.name: float for a in own},
        **{a.name: param(a.default, "") for a in own},
        "regression": True,
        "values": _values,
        "written": written,
    }
    return choice(RULES, function.__name__)(type(function.__name__, (), body))


def _values(rule: Any) -> list[float]:
    return [*rule.get_params().values(), *[0.0] * LEFT]


def _mistake(s, y, sqnorm, p):
    return 1.0 if s * y <= 0.0 else 0.0


def _absolute_error(s, y, sqnorm, p):
    return abs(y - s)


def _python(function: Any) -> Any:
    """The Python function, also of one that is compiled already."""
    function = getattr(function, "py_func", function)
    if not isinstance(function, FunctionType):
        raise TypeError(f"a rule is made of a function, not of {function!r}")
    return function


@dataclass(eq=False)
class Written:
    """What the user wrote: the function, and a loss or None."""

    function: Any
    given: Any

    def __reduce__(self) -> Any:
        """Another process compiles anew: what was compiled here cannot be sent."""
        return Written, (self.function, self.given)

    @property
    def name(self) -> str:
        return self.function.__name__

    @cached_property
    def arguments(self) -> list[inspect.Parameter]:
        return list(inspect.signature(self.function).parameters.values())

    @cached_property
    def plain(self) -> int:
        """How many of score, y and |x|^2 the function takes."""
        return sum(a.default is a.empty for a in self.arguments)

    @property
    def count(self) -> int:
        """How many parameters the rule has."""
        return len(self.arguments) - self.plain

    def parameters(self) -> list[inspect.Parameter]:
        """The arguments that are the rule's parameters; or a sentence that says what is wrong with the function."""
        if self.name == "<lambda>":
            raise TypeError("a rule is known by its name, which a lambda has not: write it with def")
        if self.name in RULES and not is_custom(RULES.get(self.name)):
            raise ValueError(f"the rule {self.name} is one of onlearn's own: give yours another name")
        required = [a.name for a in self.arguments if a.default is a.empty]
        wanted = f"the rule {self.name} must take (score, y) or (score, y, sqnorm), then parameters with defaults"
        if any(a.kind is not a.POSITIONAL_OR_KEYWORD for a in self.arguments):
            raise TypeError(f"{wanted}; *, / and ** are not for it")
        if len(required) not in (2, 3):
            raise TypeError(f"{wanted}; it takes ({', '.join(required)})")
        own = self.arguments[self.plain :]
        for a in own:
            if a.name in RESERVED or a.name.startswith("_") or "__" in a.name:
                raise ValueError(f"the rule {self.name} cannot have a parameter named {a.name}: call it something else")
            truth = isinstance(a.default, (bool, np.bool_))  # which is refused wherever a parameter is set
            if truth or not _is_number(a.default) or not is_finite(a.default):
                shown = reprlib.repr(a.default)
                raise TypeError(f"the rule {self.name} must have finite numbers for parameters, not {a.name}={shown}")
        if self.given is not None:
            taken = inspect.signature(self.given).parameters.values()
            if len(taken) != 2 or any(a.kind is not a.POSITIONAL_OR_KEYWORD for a in taken):
                raise TypeError(
                    f"the loss of the rule {self.name} must take (score, y), it takes ({', '.join(map(str, taken))})"
                )
        return own

    # ------------------------------------------------------------------ compiling

    @cached_property
    def compiled(self) -> Compiled:
        return _compile(f"the rule {self.name!r}", self.function, len(self.arguments))

    @cached_property
    def compiled_loss(self) -> Compiled:
        return _compile(f"the loss of the rule {self.name!r}", self.given, 2)

    @cached_property
    def step(self) -> Any:
        """The function with a rule's signature; NaN where it fails."""
        arguments = ["s", "y", "sqnorm"][: self.plain] + [f"p[{n}]" for n in range(self.count)]
        return _calling(self.compiled, arguments, STEP, self.count, np.nan)

    @cached_property
    def loss(self) -> Any:
        """The loss with a rule's signature; 0 where it fails, for the loop would not notice NaN."""
        if self.given is None:
            return _mistake
        return _calling(self.compiled_loss, ["s", "y"], LOSS, self.count, 0.0)

    @property
    def error(self) -> Any:
        """What counts as the loss in regression."""
        return _absolute_error if self.given is None else self.loss

    # ------------------------------------------------------------------ failing

    def complaint(self, params: np.ndarray) -> str | None:
        """What went wrong in the step, if something did; a sentence if it was the loss, which no row is known of."""
        which, s, y, sqnorm = params[self.count :].tolist()
        own = params[: self.count].tolist()
        if which == LOSS:
            what = _what_happens(self.given, (s, y), self.compiled_loss)
            raise ValueError(
                f"the loss of the rule {self.name!r} {what} at score {s:g} and y {y:g}; nothing was learned"
            )
        arguments = (*(s, y, sqnorm)[: self.plain], *own)
        return _what_happens(self.function, arguments, self.compiled) if which == STEP else None


class Compiled(NamedTuple):
    """A user's function compiled."""

    call: Any
    may_raise: bool
    number: type  # the kind that divides as the function does


def _compile(who: str, function: Any, arguments: int) -> Compiled:
    """A user's function compiled.

    One that cannot be compiled, or returns what is not a number, is refused with a sentence that says why.
    """
    models = ("python",) if _catches(function) else ("numpy", "python")
    if INTERPRETED:
        return Compiled(_returning_number(function, NUMBERS[models[0]]), True, NUMBERS[models[0]])
    import numba

    for model in models:
        inner = numba.njit(function, error_model=model)
        try:
            inner.compile((numba.float64,) * arguments)
        except numba.errors.NumbaError as error:
            raise ValueError(f"{who} cannot be compiled: {_reason(function, error)}") from None
        signature = inner.nopython_signatures[0]
        kind = signature.return_type
        if not isinstance(kind, (types.Float, types.Integer, types.Boolean)):
            missing = isinstance(kind, types.Optional) or kind == types.none
            raise ValueError(
                f"{who} must return a number in every case, but it "
                + ("can return None" if missing else f"returns {kind}")
            )
        code = _code_of(inner, signature.args)
        if not re.search(r"\b[su](div|rem) [^,\n]*, %", code):  # by a whole number that is not known beforehand
            break
    return Compiled(inner, re.findall(r"\bret i32 (\S+)", code) != ["0"], NUMBERS[model])


def _catches(function: Any) -> bool:
    """Whether a function has a ``try`` statement, which must see the division that failed."""
    return any(i.opname in ("PUSH_EXC_INFO", "SETUP_FINALLY") for i in dis.get_instructions(function))


def _code_of(inner: Any, signature: Any) -> str:
    """What the compiler made of a function, in LLVM's language; it returns 0 where it has not raised."""
    text, name = inner.inspect_llvm(signature), re.escape(inner.overloads[signature].fndesc.llvm_func_name)
    found = re.search(rf'^define[^\n]*@"?{name}"?\(.*?^\}}', text, re.MULTILINE | re.DOTALL)
    return found[0] if found else ""


def _calling(inner: Compiled, arguments: list[str], which: float, at: int, instead: float) -> Any:
    """A function with a rule's signature that calls a user's; ``instead`` is what it returns where that fails."""
    lines = [f"value = inner({', '.join(arguments)}) * 1.0"]
    if inner.may_raise:
        lines = ["value = nan", "try:", f"    {lines[0]}", "except Exception:", "    value = nan"]
    lines.append(f"return checked(value, instead, p, {at}, {which}, s, y, sqnorm)")
    made = {"inner": inner.call, "checked": checked, "nan": np.nan, "instead": instead}
    exec("\n    ".join(["def called(s, y, sqnorm, p):", *lines]), made)
    return made["called"]


if INTERPRETED:

    def checked(
        value: float, instead: float, p: Any, at: int, which: float, s: float, y: float, sqnorm: float
    ) -> float:
        """The value if it is finite; else leave in p what the function was called with. What failed first stays."""
        if abs(value) < np.inf:
            return value
        if p[at] != STEP:
            p[at : at + LEFT] = which, s, y, sqnorm
        return instead

else:

    @intrinsic
    def checked(
        context: Any, value: Any, instead: Any, p: Any, at: Any, which: Any, s: Any, y: Any, sqnorm: Any
    ) -> Any:
        """The value if it is finite; else leave in p what the function was called with. What failed first stays.

        Written for the compiler, because Numba counts the references to an array that is used in a branch, which takes
        as long as the rest of a step.
        """

        def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            value, instead, _, at, *call = arguments
            data = target.make_array(signature.args[2])(target, builder, arguments[2]).data
            size = builder.call(builder.module.declare_intrinsic("llvm.fabs", [value.type]), [value])
            finite = builder.fcmp_ordered("<", size, value.type(np.inf))
            with builder.if_then(builder.not_(finite), likely=False):
                first = builder.fcmp_unordered("!=", builder.load(builder.gep(data, [at])), value.type(STEP))
                with builder.if_then(first):
                    for n, told in enumerate(call):
                        builder.store(told, builder.gep(data, [builder.add(at, at.type(n))]))
            return builder.select(finite, value, instead)

        number = types.float64
        return number(number, number, p, types.int64, *[number] * LEFT), generate


def _is_number(value: Any) -> bool:
    return isinstance(value, (numbers.Real, np.bool_))


def _returning_number(function: Any, number: type) -> Any:
    """The function on numbers that divide by zero as compiled ones do; NaN for what is not a number."""

    def called(*arguments: Any) -> float:
        with np.errstate(all="ignore"):
            value = function(*map(number, arguments))
        return float(value) if _is_number(value) else np.nan

    return called


def _what_happens(function: Any, arguments: tuple[float, ...], compiled: Compiled) -> str:
    """What a function did, compiled, that a rule's should not, when it was called like this."""
    unlike = "failed when compiled" if compiled.may_raise else "returned infinity or NaN when compiled"
    try:
        with np.errstate(all="ignore"):
            value = function(*map(compiled.number, arguments))
    except Exception as error:
        if not compiled.may_raise:  # but math.log(0), say, does in Python
            return unlike
        said = str(error).partition("\n")[0]
        return f"raised {type(error).__name__}" + (f" ({said})" if said else "")
    if not _is_number(value):
        return f"must return a number in every case, but returned {value!r}"
    return unlike if np.isfinite(value) else "returned NaN" if value != value else f"returned {float(value)}"


def _reason(function: Any, error: Exception) -> str:
    """Why a function does not compile, in half a sentence."""
    found = {**inspect.getclosurevars(function).globals, **inspect.getclosurevars(function).nonlocals}
    helpers = [name for name, value in found.items() if isinstance(value, FunctionType)]
    if helpers:
        return f"it calls {helpers[0]}, which is plain Python; decorate that with numba.njit"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = next((line for line in lines if not line.startswith(("Failed in", "-", "During", "File", "[", "<"))), "")
    return f"{said.rstrip('.:')}; it may use numbers, math, NumPy and functions that numba.njit compiled"
