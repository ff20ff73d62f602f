"""Parameters, stated once; and choices: small objects that own their parameters, and their spelling as text.

A rule, a geometry, a stabilizer or a calibration is a *choice*: a class whose fields are its
parameters, each with a default, a range and a meaning stated once, here in the field. A choice has a
short spelling, ``"pa1"`` or ``"margin(1.0, m_minus=0.5)"``, used on the command line, in model files
and in reports. Reading it back runs no code: it is parsed, never evaluated.
"""

from __future__ import annotations

import ast
import copy
import difflib
import inspect
import math
import numbers
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np

# ----------------------------------------------------------------------------------------------------
# What somebody may have meant who wrote a name that is not there.


SHOWN = 12


def did_you_mean(name: str, there: Sequence[str]) -> str:
    """The end of a sentence that says that a name is not there.

    >>> did_you_mean("colour", ["color", "size"])
    "; did you mean 'color'?"
    >>> did_you_mean("weight", ["color", "size"])
    '; there are color, size'
    """
    small = {one.lower(): one for one in there}
    close = difflib.get_close_matches(name.lower(), small, n=1, cutoff=0.6)
    if close:
        return f"; did you mean {small[close[0]]!r}?"
    more = f" and {len(there) - SHOWN} more" if len(there) > SHOWN else ""
    return f"; there are {', '.join(there[:SHOWN])}{more}" if there else ""


class Family:
    """All choices of one kind, by name: ``RULES.get("pa1(0.5)")`` is ``PA1(aggressiveness=0.5)``.

    ``usual`` is the protocol of the kind: a choice has each of its facts and methods that it does not state itself.
    """

    kind: str
    usual: type | None

    def __init__(self, kind: str, usual: type | None = None) -> None:
        self.kind, self.usual = kind, usual
        self.members: dict[str, type] = {}
        self.known: dict[str, Any] = {}  # spellings met before, for a choice is asked for at every prediction

    def __iter__(self) -> Iterator[str]:
        return iter(self.members)

    def add(self, name: str, cls: type) -> type:
        cls._family = self.kind  # type: ignore[attr-defined]  # its name, which another process knows it by
        self.members[name] = cls
        return cls

    def owns(self, cls: type) -> bool:
        """Whether a class is a member, or was until another took its name over."""
        return getattr(cls, "_family", None) == self.kind

    def get(self, value: Any) -> Any:
        """A fresh choice from its spelling, its class, or another choice of this family."""
        if isinstance(value, str):
            found = self.known.get(value)
            if found is None or self.members.get(found.name) is not type(found):
                found = self.known[value] = self._parse(value)
            return copy.copy(found)
        if isinstance(value, type) and self.owns(value):
            return value()
        if self.owns(type(value)):
            return type(value)(**value.get_params())
        raise TypeError(f"{self.kind} must be a name such as {next(iter(self))!r} or a choice, not {value!r}")

    def _parse(self, text: str) -> Any:
        def refuse(why: str) -> ValueError:
            return ValueError(f"cannot read the {self.kind} {text!r}: {why}")

        try:
            tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError):
            raise refuse('write a name, or a name with parameters such as "name(1.0, other=2)"') from None
        call = tree if isinstance(tree, ast.Call) else ast.Call(tree, [], [])
        if not isinstance(call.func, ast.Name):
            raise refuse("it does not start with a name")
        name = call.func.id
        if name not in self.members:
            close = _nearest(name, self.members)
            hint = f"did you mean {close!r}?" if close else f"known are {', '.join(self.members)}"
            raise ValueError(f"unknown {self.kind} {name!r}: {hint}")
        cls = self.members[name]
        known = [f.name for f in fields(cls)]
        if len(call.args) > len(known):
            raise refuse(f"{name} takes {len(known)} parameters ({', '.join(known) or 'none'})")
        given = dict(zip(known, (_constant(a, refuse) for a in call.args), strict=False))
        for keyword in call.keywords:
            if keyword.arg not in known:
                raise refuse(f"{name} has no parameter {keyword.arg!r}; it has {', '.join(known) or 'none'}")
            if keyword.arg in given:
                raise refuse(f"{keyword.arg!r} is given twice")
            given[keyword.arg] = _constant(keyword.value, refuse)
        return cls(**given)


def _nearest(name: str, known: Iterable[str]) -> str | None:
    """The name that was meant, most likely; short words are alike by chance, but for those that begin alike."""
    alike = difflib.get_close_matches(name, [other for other in known if other[:1] == name[:1]], n=1)
    return next(iter(alike or difflib.get_close_matches(name, known, n=1, cutoff=0.8)), None)


def _constant(node: ast.expr, refuse: Callable[[str], ValueError]) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        if isinstance(node, ast.Name):  # a bare word is a string: schedule=constant
            return node.id
        raise refuse(f"{ast.unparse(node)!r} is not a number, a word or a quoted text") from None


def param(
    default: Any,
    meaning: str,
    *,
    above: float = -math.inf,
    at_least: float = -math.inf,
    below: float = math.inf,
    words: tuple[Any, ...] = (),
    kind: str = "",
    allowed: str = "",
) -> Any:
    """A parameter: its default, its meaning, and what it may be (a number in a range, or one of some words).

    ``kind`` is for parameters of learners: "number", "whole", "truth", the kind of a choice such as "rule", or "other",
    which is checked where it is used. ``allowed`` says in words what that may be.
    """
    return field(
        default=default,
        metadata=dict(
            meaning=meaning, above=above, at_least=at_least, below=below, words=words, kind=kind, allowed=allowed
        ),
    )


class Parameter(NamedTuple):
    """A parameter of a choice or a learner, as docstrings and messages tell of it."""

    name: str
    default: Any
    rules: Mapping[str, Any]

    @property
    def meaning(self) -> str:
        return str(self.rules["meaning"])

    @property
    def allowed(self) -> str:
        """What it may be."""
        rules, kind = self.rules, self.rules["kind"]
        if rules["allowed"]:
            return str(rules["allowed"])
        if kind == "truth":
            return "True, False or 'features'" if rules["words"] else "True or False"
        words = [repr(word) for word in rules["words"]]
        limits = _limits(rules)
        if kind == "whole":
            number = f"a whole number {limits}"
            return f"{number}, or {words[0]}" if words else number
        if kind == "number" or limits or not words:
            words = [f"a number {limits}".strip(), *words]
        return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)

    def check(self, value: Any) -> None:
        """Refuse a value that it cannot have."""
        if not self._fits(value):
            raise ValueError(f"{self.name} must be {self.allowed}, not {value!r}")

    def _fits(self, value: Any) -> bool:
        rules, kind = self.rules, self.rules["kind"]
        if isinstance(value, (str, type(None))):
            return value in rules["words"] or kind == "other"
        if kind == "truth":
            exact = isinstance(value, bool)
            alike = isinstance(value, np.bool_) or (isinstance(value, numbers.Integral) and value in (0, 1))
            return exact or (alike and not rules["words"])
        if kind not in ("whole", "number"):
            return kind == "other"
        if kind == "whole" and rules["at_least"] == 0 and isinstance(value, (bool, np.bool_)):
            return True
        number = isinstance(value, numbers.Integral if kind == "whole" else numbers.Real)
        if not number or isinstance(value, bool) or value != value:
            return False
        within = rules["above"] < value and rules["at_least"] <= value and value <= rules["below"]
        return bool(within and (is_finite(value) or not _limits(rules)))


def parameters(owner: type) -> dict[str, Parameter]:
    """The parameters of a choice, or of any other class of ``param`` fields, by name."""
    return {f.name: Parameter(f.name, f.default, f.metadata) for f in fields(owner) if f.metadata}


def _limits(rules: Mapping[str, Any]) -> str:
    """A range in words."""
    signs = (("above", "above"), ("at_least", "of at least"), ("below", "below"))
    return " and ".join(f"{sign} {rules[key]:g}" for key, sign in signs if math.isfinite(rules[key]))


def is_finite(value: Any) -> bool:
    """Whether a number is one that a float can hold."""
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number may be larger
        return False


def _check(owner: str, name: str, value: Any, rules: Any) -> Any:
    """The value, as a plain float or word; or a sentence that says what it should have been."""
    if value in rules["words"] if isinstance(value, (str, type(None))) else False:
        return value
    number = isinstance(value, (numbers.Real, np.number)) and not isinstance(value, bool)
    numeric = not rules["words"] or math.isfinite(rules["above"]) or math.isfinite(rules["at_least"])
    good = number and numeric and is_finite(value)
    if good and rules["above"] < value and rules["at_least"] <= value < rules["below"]:
        return float(value)
    wanted = [repr(word) for word in rules["words"]]
    if numeric:
        limits = _limits(rules)
        wanted.append(f"a number {limits}" if limits else "a finite number")
    raise ValueError(f"{owner}: {name} must be {' or '.join(wanted)}, not {value!r}")


def choice(family: Family, name: str) -> Callable[[type], type]:
    """Make a class of ``param`` fields a member of a family, spelled ``name``."""

    def decorate(cls: type) -> type:
        methods = {
            "name": name,
            "__post_init__": _validate,
            "__repr__": _repr,
            "get_params": _get_params,
            "set_params": _set_params,
        }
        for attribute, value in methods.items():
            setattr(cls, attribute, value)
        for attribute, value in {"check": _no_check, **(vars(family.usual) if family.usual else {})}.items():
            stated = hasattr(cls, attribute) or attribute in inspect.get_annotations(cls)
            if not attribute.startswith("_") and not stated:
                setattr(cls, attribute, value)
        return family.add(name, dataclass(repr=False)(cls))

    return decorate


def _validate(self: Any) -> None:
    for f in fields(self):
        if f.metadata:
            setattr(self, f.name, _check(self.name, f.name, getattr(self, f.name), f.metadata))
    self.check()


def _no_check(self: Any) -> None:
    """What a choice says of parameters that do not go together: nothing."""


def _repr(self: Any) -> str:
    changed = [
        f"{f.name}={getattr(self, f.name)!r}"
        for f in fields(self)
        if f.default is MISSING or getattr(self, f.name) != f.default
    ]
    return f"{self.name}({', '.join(changed)})" if changed else str(self.name)


def _get_params(self: Any, deep: bool = True) -> dict[str, Any]:
    """scikit-learn's protocol, so that ``rule__aggressiveness`` can be searched over."""
    return {f.name: getattr(self, f.name) for f in fields(self)}


def _set_params(self: Any, **values: Any) -> Any:
    for name, value in values.items():
        if name not in self.get_params():
            raise ValueError(f"{self.name} has no parameter {name!r}; it has {', '.join(self.get_params()) or 'none'}")
        setattr(self, name, value)
    self.__post_init__()
    return self
