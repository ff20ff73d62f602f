"""What a model file may say: kinds of facts and of arrays, stated beside whatever packs them, and checked on loading.

The header of a model file is JSON that anybody may have written. Each part of it is a ``Record``: the facts by name,
and for each the kind it must be of. ``check_facts`` holds the header against it and says in one sentence what is wrong.
Facts that come from no file, as those that another process was sent, may have tuples for lists.

>>> PASSES = Record(passes=COUNT, names=either(None, NAMES), rows=Record(shape=ListOf(COUNT)))
>>> check_facts({"passes": 3, "names": None, "rows": {"shape": [2, -1]}}, PASSES)
Traceback (most recent call last):
ValueError: the header has -1 for rows.shape.1, which must be a whole number of at least 0 (and below 2**63)
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np


class Kind(Protocol):
    """What a fact may be."""

    wanted: str  # in words

    def fault(self, value: Any, name: str) -> str | None:
        """What is wrong with the value of the fact of this name, or with a part of it; None if nothing is."""


class Plain:
    """A fact without parts that are told apart."""

    def __init__(self, fits: Callable[[Any], bool], wanted: str) -> None:
        self.fits, self.wanted = fits, wanted

    def fault(self, value: Any, name: str) -> str | None:
        return None if self.fits(value) else f"has {reprlib.repr(value)} for {name}, which must be {self.wanted}"


class OrMissing:
    """A fact of a ``Record`` that may be missing, as in files of earlier versions; null is as good as missing."""

    def __init__(self, kind: Kind) -> None:
        self.kind, self.wanted = kind, kind.wanted

    def fault(self, value: Any, name: str) -> str | None:
        return None if value is None else self.kind.fault(value, name)


class Record:
    """Facts by name, each of its kind. There may be others: those of newer versions."""

    wanted: str = "facts by name"

    def __init__(self, facts: Mapping[str, Kind] | None = None, /, **more: Kind) -> None:
        self.facts: dict[str, Kind] = {**(facts or {}), **more}

    def fault(self, value: Any, name: str = "") -> str | None:
        if not isinstance(value, dict):
            return f"has {reprlib.repr(value)} for {name or 'the learner'}, which must be {self.wanted}"
        before = f"{name}." if name else ""
        for key, kind in self.facts.items():
            if key not in value:
                if isinstance(kind, OrMissing):
                    continue
                return f"lacks {before}{key}, which must be {kind.wanted}"
            if (found := kind.fault(value[key], f"{before}{key}")) is not None:
                return found
        return None


class ListOf:
    """A list of facts of one kind, of some length if ``length`` is given."""

    def __init__(self, kind: Kind, of: str | None = None, length: int | None = None) -> None:
        self.kind, self.length = kind, length
        self.wanted: str = f"a list of {'' if length is None else f'{length} '}{of or 'facts'}"

    def fault(self, value: Any, name: str) -> str | None:
        if not isinstance(value, (list, tuple)) or (self.length is not None and len(value) != self.length):
            return f"has {reprlib.repr(value)} for {name}, which must be {self.wanted}"
        faults = (self.kind.fault(one, f"{name}.{n}") for n, one in enumerate(value))
        return next((found for found in faults if found is not None), None)


class TupleOf:
    """A list in which each place has a kind of its own."""

    def __init__(self, *kinds: Kind) -> None:
        self.kinds = kinds
        self.wanted: str = f"a list of {len(kinds)} facts"

    def fault(self, value: Any, name: str) -> str | None:
        if not isinstance(value, (list, tuple)) or len(value) != len(self.kinds):
            return f"has {reprlib.repr(value)} for {name}, which must be {self.wanted}"
        faults = (kind.fault(one, f"{name}.{n}") for n, (kind, one) in enumerate(zip(self.kinds, value)))
        return next((found for found in faults if found is not None), None)


class MappingOf:
    """Facts of one kind by any name."""

    def __init__(self, kind: Kind, wanted: str = "facts by name") -> None:
        self.kind, self.wanted = kind, wanted

    def fault(self, value: Any, name: str) -> str | None:
        if not isinstance(value, dict):
            return f"has {reprlib.repr(value)} for {name}, which must be {self.wanted}"
        faults = (self.kind.fault(one, f"{name}.{reprlib.repr(key)[1:-1]}") for key, one in value.items())
        return next((found for found in faults if found is not None), None)


class AnyOf:
    """One of several kinds."""

    def __init__(self, *kinds: Kind) -> None:
        self.kinds = kinds
        self.wanted: str = " or ".join(kind.wanted for kind in kinds)

    def fault(self, value: Any, name: str) -> str | None:
        faults = [kind.fault(value, name) for kind in self.kinds]
        if None in faults:
            return None
        inner = [found for found in faults if found is not None and f" for {name}, " not in found]
        return inner[0] if inner else f"has {reprlib.repr(value)} for {name}, which must be {self.wanted}"


def either(value: Any, kind: Kind) -> Kind:
    """That kind, or a single value."""
    return AnyOf(kind, Plain(lambda given: given is value, repr(value)))


def one_of(*values: Any) -> Kind:
    """One of these values."""
    return Plain(lambda given: any(given is one or (type(given) is type(one) and given == one) for one in values),
                 " or ".join(map(repr, values)))  # fmt: skip


def is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    return (is_whole(value) and abs(value) < 1 << 1023) or isinstance(value, float)


def is_finite(value: Any) -> bool:
    return is_number(value) and math.isfinite(value)


def is_plain(value: Any) -> bool:
    """Whether it is a number, a text, a truth value or nothing."""
    return value is None or isinstance(value, (bool, str)) or is_number(value)


def whole(low: int, high: int | None = None) -> Kind:
    """A whole number of at least ``low``, and of at most ``high``, if that is given."""
    most = LARGEST_WHOLE if high is None else high
    limits = f"from {low} to {high}" if high is not None else f"of at least {low} (and below 2**63)"
    return Plain(lambda value: is_whole(value) and low <= value <= most, f"a whole number {limits}")


def finite(low: float = -math.inf, high: float = math.inf) -> Kind:
    """A finite number from ``low`` to ``high``."""
    limits = [f"of at least {low:g}"] * (low > -math.inf) + [f"of at most {high:g}"] * (high < math.inf)
    return Plain(
        lambda value: is_finite(value) and low <= value <= high,
        " ".join(["a finite number", " and ".join(limits)]).strip(),
    )


LARGEST_WHOLE = (1 << 63) - 1  # what arrays hold

COUNT = whole(0)
SEED = whole(0, (1 << 64) - 1)
NUMBER = Plain(is_number, "a number")
FINITE = finite()
NUMBERS = ListOf(NUMBER, "numbers")
TRUTH = Plain(lambda value: isinstance(value, bool), "true or false")
TEXT = Plain(lambda value: isinstance(value, str), "a text")
NAMES = Plain(  # of which there may be very many
    lambda value: isinstance(value, (list, tuple)) and all(isinstance(one, str) for one in value), "a list of names"
)
PRECISION = one_of("float64", "float32")
SHARE = Plain(lambda value: is_number(value) and 0 < value < 1, "a number between 0 and 1")
NESTED = MappingOf(Plain(lambda value: True, "anything"))  # which whoever uses them checks
ANYTHING = Plain(lambda value: True, "a fact")
PLAIN = Plain(is_plain, "a number, a text, true, false or null")


def check_facts(facts: Any, kind: Kind, name: str = "") -> None:
    """Refuse a header, or the part of it of this name, in which something is of another kind than it can be."""
    if (found := kind.fault(facts, name)) is not None:
        raise ValueError(f"the header {found}")


# ----------------------------------------------------------------------------------------------------
# Arrays.


class Arrays(dict[str, np.ndarray]):
    """Arrays by name; one that is asked for must be there. ``prefix`` is what the file has before each name."""

    def __init__(self, arrays: Mapping[str, np.ndarray], prefix: str = "") -> None:
        super().__init__(arrays)
        self.prefix = prefix

    def __missing__(self, name: str) -> np.ndarray:
        raise ValueError(f"the array {self.prefix}{name} is missing")


def as_arrays(arrays: Mapping[str, np.ndarray]) -> Arrays:
    """The same arrays by name, which must be there when they are asked for."""
    return arrays if isinstance(arrays, Arrays) else Arrays(arrays)


def under(prefix: str, arrays: Mapping[str, np.ndarray]) -> Arrays:
    """The arrays whose names begin with a prefix, without it. Arrays that are not asked for are not read."""
    return Arrays({key.removeprefix(prefix): arrays[key] for key in arrays if key.startswith(prefix)},
                  getattr(arrays, "prefix", "") + prefix)  # fmt: skip


def numbered(prefix: str, count: int, arrays: Mapping[str, np.ndarray]) -> Iterator[Arrays]:
    """The arrays of several members: those under ``prefix.0.``, ``prefix.1.`` and so on, in one walk over the names."""
    found: dict[str, dict[str, np.ndarray]] = {str(n): {} for n in range(count)}
    for key in arrays:
        before, _, after = key.partition(".")
        member, _, name = after.partition(".")
        if before == prefix and member in found:
            found[member][name] = arrays[key]
    outer = getattr(arrays, "prefix", "")
    return (Arrays(one, f"{outer}{prefix}.{n}.") for n, one in found.items())


def check_array(name: str, array: np.ndarray, kinds: str, shape: tuple[int, ...], low: float = -np.inf,
                high: float = np.inf, whole: bool = False) -> None:  # fmt: skip
    """Refuse an array of other kinds of numbers, of another shape, or with values outside of a range."""
    if array.dtype.name not in kinds.split() or array.shape != shape:
        raise ValueError(f"{name} does not have the shape or type that this learner has")
    if (array < low).any() or (array > high).any() or (whole and (array != np.floor(array)).any()):
        raise ValueError(
            f"{name} holds what it cannot hold: values must be {'whole and ' * whole}from {low:g} to {high:g}"
        )


def check_labels_differ(labels: np.ndarray) -> None:
    """Refuse classes that are not a plain list of different labels, all words or all numbers."""
    known = labels.dtype.kind in "iufbU" or all(isinstance(label, (str, int, float)) for label in labels.ravel())
    if labels.ndim != 1 or not known or len({isinstance(label, str) for label in labels.tolist()}) > 1:
        raise ValueError("the classes are not a list of words or of numbers")
    if len(set(labels.tolist())) < len(labels):
        raise ValueError("the classes hold a label twice")
