"""The family of kernels: classes by name, and parameters that are declared as fields, checked, compared and printed.

Parameters follow scikit-learn's protocol (``get_params``, ``set_params``, ``sigma`` of an inner kernel as
``k1__sigma``), so a kernel can be cloned and searched over like an estimator.
"""

from __future__ import annotations

import importlib
import math
import numbers
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from onlearn.engine.spec import is_finite, param

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**facts):
        """Tells type checkers that ``kernel`` makes an ``__init__``; part of ``typing`` since Python 3.11."""
        return lambda function: function


Cls = TypeVar("Cls")

MEMBERS: dict[str, type] = {}

HUGE = 2**31  # limits of this size are those of the machine: errors mention them only for values beyond

# Kernels whose modules are imported when their name is used.
HOMES = {"substrings": "onlearn.kernels.strings", "trees": "onlearn.kernels.trees"}


def flag(default: bool, meaning: str) -> Any:
    """A parameter that is true or false."""
    rules = dict(meaning=meaning, above=-math.inf, at_least=-math.inf, below=math.inf, words=(True, False))
    return field(default=default, metadata=rules)


@dataclass_transform(eq_default=False, field_specifiers=(param, flag, field))
def kernel(name: str) -> Callable[[type[Cls]], type[Cls]]:
    """Make a class of fields the kernel that formulas call ``name``."""

    def decorate(cls: type[Cls]) -> type[Cls]:
        made = dataclass(repr=False, eq=False)(cls)
        made.name = name  # type: ignore[attr-defined]
        MEMBERS[name] = made
        return made

    return decorate


def member(name: str) -> type | None:
    """The kernel of that name, if there is one."""
    if name not in MEMBERS and name in HOMES:
        importlib.import_module(HOMES[name])
    return MEMBERS.get(name)


class Parameters:
    """Fields as parameters. A field made by ``param`` is checked; ``check`` of a subclass may check more."""

    name: ClassVar[str] = ""

    def __post_init__(self) -> None:
        for f in fields(self):  # type: ignore[arg-type]
            if f.metadata:
                whole = isinstance(f.default, int) and not isinstance(f.default, bool)
                setattr(self, f.name, _checked(self.name, f.name, getattr(self, f.name), f.metadata, whole))
        self.check()
        self._complete = True

    def check(self) -> None:
        """Refuse parameters that do not fit together."""

    def __setattr__(self, name: str, value: Any) -> None:
        """Setting a parameter later checks it as well, and derives again what depends on it."""
        if "_complete" in self.__dict__ and name in self.get_params(deep=False):
            self.set_params(**{name: value})
        else:
            super().__setattr__(name, value)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters; if ``deep``, with those of inner kernels as ``name__parameter``."""
        own = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        inner = {
            f"{name}__{key}": value
            for name, part in own.items()
            if deep and isinstance(part, Parameters)
            for key, value in part.get_params().items()
        }
        return {**own, **inner}

    def set_params(self, **values: Any) -> Any:
        """Change parameters: all of them, or none if one is wrong."""
        own = self.get_params(deep=False)
        nested: dict[str, dict[str, Any]] = {}
        for key, value in values.items():
            name, _, rest = key.partition("__")
            if name not in own or (rest and not isinstance(values.get(name, own[name]), Parameters)):
                raise ValueError(f"{self.name} has no parameter {key!r}; it has {', '.join(own) or 'none'}")
            if rest:
                nested.setdefault(name, {})[rest] = value
            else:
                own[name] = value
        for name, inner in nested.items():
            own[name] = type(own[name])(**own[name].get_params(deep=False)).set_params(**inner)
        changed = type(self)(**own)
        self.__dict__.update(changed.__dict__)
        return self

    def identity(self) -> tuple[Any, ...]:
        """What makes two kernels equal: the class and the parameters, arrays by their contents."""
        values = self.get_params(deep=False).values()
        return (type(self), *(_frozen(value) for value in values))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Parameters) and self.identity() == other.identity()

    def __hash__(self) -> int:
        return hash(self.identity())

    def __repr__(self) -> str:
        return self.formula()

    def formula(self) -> str:
        """The text that ``kernels.get`` reads back: the name, and the parameters that differ from their defaults."""
        return spelled(self.name, self.changed())

    def changed(self) -> dict[str, Any]:
        """The parameters that differ from their defaults."""
        return {
            f.name: getattr(self, f.name)
            for f in fields(self)  # type: ignore[arg-type]
            if f.default is MISSING or getattr(self, f.name) != f.default
        }


def spelled(name: str, values: dict[str, Any], *first: str) -> str:
    """A name with its parameters: first those by position, then those by name."""
    inside = ", ".join([*first, *(f"{key}={value!r}" for key, value in values.items())])
    return f"{name}({inside})" if inside else name


def _frozen(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype.str, value.tobytes()
    return tuple(value) if isinstance(value, list) else value


def _checked(owner: str, name: str, value: Any, rules: Any, whole: bool) -> Any:
    """The value as a plain number or word; or an error that says what it must be."""
    words = rules["words"]
    if value is None or isinstance(value, (str, bool, np.bool_)):
        if any(value is word or (isinstance(word, str) and value == word) for word in words):
            return value
        if isinstance(value, np.bool_) and bool(value) in words:
            return bool(value)
    elif not all(isinstance(word, bool) for word in words) or not words:
        number = isinstance(value, (numbers.Real, np.number)) and is_finite(value)
        inside = number and rules["above"] < value and rules["at_least"] <= value < rules["below"]
        if inside and whole and value == int(value):
            return int(value)
        if inside and not whole:
            return float(value)
    wanted = [repr(word) for word in words]
    if not words or words == (None,):
        huge = isinstance(value, (int, float, np.integer, np.floating)) and value >= HUGE
        limits = [
            f"{sign} {rules[key]:.15g}"
            for key, sign in (("above", "above"), ("at_least", "of at least"), ("below", "below"))
            if math.isfinite(rules[key]) and (huge or rules[key] < HUGE)
        ]
        kind = "a whole number" if whole else "a finite number"
        wanted.append(" ".join([kind, " and ".join(limits)]).rstrip())
    raise ValueError(f"{owner}: {name} must be {' or '.join(wanted)}, not {value!r}")
