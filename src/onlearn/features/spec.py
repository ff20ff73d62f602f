"""What extractors have in common: groups of features, checks of their parameters, their spelling as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

MISSING = ("absent", "indicator", "zero", "error")


class Groups(NamedTuple):
    """The features of one extractor: a prefix for each of its groups, and how their values are weighed."""

    name: str  # by which interactions know it
    prefixes: tuple[str, ...]
    binary: bool = False
    log: bool = False
    inverse: bool = False
    norm: bool = False
    square: bool = False  # whether a feature of the first group times itself is another: a number, not a name


def check_choice(value: Any, known: Sequence[str], what: str) -> None:
    if value not in known:
        raise ValueError(f"{what} must be {', '.join(map(repr, known[:-1]))} or {known[-1]!r}, not {value!r}")


def check_missing(value: Any, who: str) -> None:
    check_choice(value, MISSING, f"{who}: missing")


def check_grams(value: Any, what: str) -> tuple[int, int] | None:
    """A range of lengths, from a pair or from one number."""
    if value is None:
        return None
    pair = (value, value) if isinstance(value, int) else tuple(value)
    good = len(pair) == 2 and all(isinstance(n, int) and not isinstance(n, bool) for n in pair)
    if not good or not 1 <= pair[0] <= pair[1] <= 20:
        raise ValueError(f"{what} must be a pair (shortest, longest) of lengths from 1 to 20, not {value!r}")
    return pair[0], pair[1]


def spell(extractor: Any) -> dict[str, Any]:
    """An extractor as JSON."""
    if hasattr(extractor, "spell"):
        return dict(extractor.spell())
    return {"kind": extractor.kind, **asdict(extractor)}
