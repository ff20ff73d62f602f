"""Search spaces: options of training by name, each with its values, a range or a range of magnitudes.

A space is spelled as on the command line, one option at a time,

    rate=log(0.01,1)    weighting=idf,log-tfidf    passes=1,3,10    l2=uniform(0,0.1)    bits=whole(18,24)

or is a JSON object: ``{"rate": {"log": [0.01, 1]}, "weighting": ["idf", "log-tfidf"]}``. The value ``default`` leaves
an option out. Parsing runs no code.

Few combinations are all taken, in the order in which they are written. Of many, ``sample`` draws some by a seed, as in
Latin hypercube sampling (McKay, Beckman & Conover 1979): of n draws, each n-th part of a range gets one, and each value
of a list equally many, so that a few configurations cover each option evenly.
"""

from __future__ import annotations

import ast
import json
import math
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from onlearn.engine.spec import did_you_mean
from onlearn.errors import PlanError

Options = dict[str, Any]  # a configuration: options that are not as they usually are

DEFAULT = "default"  # the value that leaves an option out


@dataclass(frozen=True)
class Uniform:
    """All numbers between two, each as likely as any other."""

    low: float
    high: float

    def at(self, share: float) -> Any:
        """The number below which ``share`` of the range lies."""
        return rounded(self.low + (self.high - self.low) * share)


@dataclass(frozen=True)
class Log:
    """All numbers between two above zero, each magnitude as likely as any other."""

    low: float
    high: float

    def at(self, share: float) -> Any:
        """The number below which ``share`` of the magnitudes lie."""
        return rounded(math.exp(math.log(self.low) + math.log(self.high / self.low) * share))


@dataclass(frozen=True)
class Whole:
    """All whole numbers between two, both included."""

    low: int
    high: int

    def at(self, share: float) -> Any:
        """The number below which ``share`` of them lie."""
        return min(self.high, self.low + int(share * (self.high - self.low + 1)))


RANGES: dict[str, Any] = {"uniform": Uniform, "log": Log, "whole": Whole}
Range = Uniform | Log | Whole


def rounded(value: float) -> float:
    """Four digits: more make no difference, and commands shall be short."""
    return float(f"{value:.4g}")


@dataclass(frozen=True)
class Space:
    """Options by name, each with a tuple of values or a range.

    >>> space = Space.parse(["weighting=idf,log-tfidf", "passes=1,3"])
    >>> len(space), space.sample(10)[1]
    (4, {'weighting': 'idf', 'passes': 3})
    >>> Space.of({"rate": Log(0.01, 1.0)}).sample(2, seed=7)
    [{'rate': 0.455}, {'rate': 0.094}]
    """

    values: Mapping[str, tuple[Any, ...] | Range]

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Space:
        """A space from a mapping, as from JSON: a list of values, a range, or one value."""
        return cls({str(name): as_values(str(name), one) for name, one in given.items()})

    @classmethod
    def parse(cls, texts: Iterable[str]) -> Space:
        """A space from spellings such as ``rate=log(0.01,1)``; one that names a JSON file stands for what is in it."""
        found: dict[str, Any] = {}
        for text in texts:
            name, equals, values = text.partition("=")
            made = {name.strip(): parse_values(name.strip(), values)} if equals else read(text)
            for one, of_one in made.items():
                if one in found:
                    raise PlanError(f"{one} is given twice", "space")
                found[one] = of_one
        return cls.of(found)

    def with_truths(self, texts: Collection[str]) -> Space:
        """The space with truth values for ``true`` and ``false``; values of the options in ``texts`` stay words.

        >>> Space.parse(["norm=true,false", "multiclass=true,softmax"]).with_truths({"multiclass"}).values
        {'norm': (True, False), 'multiclass': ('true', 'softmax')}
        """
        words = {"true": True, "false": False}

        def typed(name: str, value: Any) -> Any:
            if name in texts:
                return str(value).lower() if isinstance(value, bool) else value  # JSON has truth values
            return words.get(value.lower(), value) if isinstance(value, str) else value

        return Space(
            {
                name: tuple(typed(name, value) for value in one) if isinstance(one, tuple) else one
                for name, one in self.values.items()
            }
        )

    def check(self, known: Sequence[str]) -> None:
        """Refuse options that do not exist."""
        for name in self.values:
            if name not in known:
                raise PlanError(f"there is no option {name!r}{did_you_mean(name, sorted(known))}", "space")

    def __len__(self) -> int:
        """How many configurations there are, as far as values are listed; a range counts once."""
        return math.prod(len(one) for one in self.values.values() if isinstance(one, tuple))

    @property
    def is_finite(self) -> bool:
        """Whether all values are listed."""
        return all(isinstance(one, tuple) for one in self.values.values())

    def sample(self, count: int, seed: int = 0) -> list[Options]:
        """At most ``count`` different configurations: all there are, in their order, or some that the seed decides."""
        if not self.values:
            return []
        if self.is_finite and len(self) <= count:
            every = product(*(one for one in self.values.values() if isinstance(one, tuple)))
            return different(dict(zip(self.values, one, strict=True)) for one in every)
        rng = np.random.default_rng([seed, 0x7475])
        columns = {name: self._draw(one, count, rng) for name, one in self.values.items()}
        return different({name: column[n] for name, column in columns.items()} for n in range(count))

    @staticmethod
    def _draw(values: tuple[Any, ...] | Range, count: int, rng: np.random.Generator) -> list[Any]:
        """So many values, evenly spread, in random order."""
        order = rng.permutation(count)
        if isinstance(values, tuple):
            return [values[n % len(values)] for n in order.tolist()]
        return [values.at(share) for share in ((order + rng.random(count)) / count).tolist()]

    def to_json(self) -> dict[str, Any]:
        """The space as JSON has it."""
        names = {kind: name for name, kind in RANGES.items()}
        return {
            name: list(one) if isinstance(one, tuple) else {names[type(one)]: [one.low, one.high]}
            for name, one in self.values.items()
        }


def different(configurations: Iterable[Options]) -> list[Options]:
    """Configurations without those that came before; options that are left out do not count."""
    made: list[Options] = []
    for one in configurations:
        plain = {name: value for name, value in one.items() if value is not None and value != DEFAULT}
        if plain not in made:
            made.append(plain)
    return made


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The JSON object in a file."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except OSError as error:
        hint = "" if os.path.splitext(path)[1] else ", nor an option with values such as rate=0.1,0.5"
        raise PlanError(f"{os.fspath(path)} is no file that can be read ({error.strerror}){hint}", "space") from None
    except ValueError as error:
        raise PlanError(f"{os.fspath(path)} is not JSON: {error}", "space") from None
    if not isinstance(found, dict):
        raise PlanError(f'{os.fspath(path)} holds no JSON object such as {{"rate": [0.1, 0.5]}}', "space")
    return found


def parse_values(name: str, text: str) -> tuple[Any, ...] | Range:
    """``log(0.01,1)``, ``uniform(0,1)``, ``whole(1,9)``, or values separated by commas, which quotes may hold."""
    kind, bracket, _ = text.strip().partition("(")
    if bracket and kind in RANGES and text.strip().endswith(")"):
        try:
            low, high = (float(part) for part in text.strip()[len(kind) + 1 : -1].split(","))
        except ValueError:
            raise PlanError(f"{name}={text} is not a range such as {kind}(1,10)", "space") from None
        return make_range(name, kind, low, high)
    parts = [part.strip() for part in split(text)]
    if not all(parts):
        raise PlanError(f"{name}={text} lists no values, or one that is empty", "space")
    return tuple(constant(part) for part in parts)


def split(text: str) -> list[str]:
    """The parts between commas that stand outside of brackets and quotes."""
    parts, depth, quote = [""], 0, ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        else:
            depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0 and not quote:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def constant(text: str) -> Any:
    """A number or a text. Whether ``true`` is a text or a truth value depends on the option: see ``with_truths``."""
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text
    return value if isinstance(value, (int, float, str)) and not isinstance(value, bool) else text


def as_values(name: str, given: Any) -> tuple[Any, ...] | Range:
    """What a space has for one option, from what a mapping has."""
    if isinstance(given, Range):
        return make_range(name, next(kind for kind in RANGES if RANGES[kind] is type(given)), given.low, given.high)
    if isinstance(given, Mapping):
        (kind, ends), *more = given.items() or [("", ())]
        if more or kind not in RANGES or not isinstance(ends, (list, tuple)) or len(ends) != 2:
            raise PlanError(f'the range of {name} is not one such as {{"log": [0.01, 1]}}', "space")
        return make_range(name, kind, *ends)
    values = tuple(given) if isinstance(given, (list, tuple)) else (given,)
    if not values:
        raise PlanError(f"{name} has no values", "space")
    return values


def make_range(name: str, kind: str, low: Any, high: Any) -> Range:
    """A range, if there can be one between these ends."""
    for end in (low, high):
        if isinstance(end, bool) or not isinstance(end, (int, float)) or not math.isfinite(end):
            raise PlanError(f"{end!r} is not a number to end the range of {name}", "space")
    if not low < high:
        raise PlanError(f"the range of {name} must rise: {low:g} is not below {high:g}", "space")
    if kind == "log" and low <= 0:
        raise PlanError(f"the magnitudes of {name} begin above 0, not at {low:g}", "space")
    if kind == "whole":
        if low != int(low) or high != int(high):
            raise PlanError(f"the range of {name} has ends that are not whole: {low:g} and {high:g}", "space")
        return Whole(int(low), int(high))
    made: Range = RANGES[kind](float(low), float(high))
    return made
