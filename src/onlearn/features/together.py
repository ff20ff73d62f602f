"""Which extractors go together: no feature made twice, and no interaction that makes none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onlearn.features.columns import Category
from onlearn.features.interactions import Interaction


def refuse_doubles(extractors: Sequence[Any]) -> None:
    """Two extractors of one column whose features have the same names would silently add up."""
    met: dict[tuple[str, str, str], Any] = {}
    for one in (one for one in extractors if not isinstance(one, Interaction)):
        groups = one.groups()
        for key in ((one.kind, groups.name, prefix) for prefix in dict.fromkeys(groups.prefixes)):
            if key in met:
                hint = ", or give it a prefix of its own" if hasattr(one, "prefix") else ""
                raise ValueError(f"{met[key]!r} and {one!r} make features of the same names: leave one out{hint}")
            met[key] = one


def refuse_idle(extractors: Sequence[Any]) -> None:
    """Interactions of columns that have nothing to multiply."""
    columns = [one for one in extractors if not isinstance(one, Interaction)]
    names = list(dict.fromkeys(one.groups().name for one in columns))
    for one in (one for one in extractors if isinstance(one, Interaction)):
        if not one.columns and len(names) < one.degree:
            raise ValueError(
                f"{one!r} multiplies features of {one.degree} different columns, but there is only {', '.join(names)}"
            )
        for name in {name for name in one.columns if one.columns.count(name) > 1}:
            its_own = [other for other in columns if other.groups().name == name]
            if its_own and all(isinstance(other, Category) for other in its_own):
                raise ValueError(
                    f"{one!r} makes nothing new: {name!r} has one category a row, which times itself is the same"
                )


def each_once(extractors: Sequence[Any]) -> list[Any]:
    """The extractors without interactions that others make already, in whatever order of their columns."""
    everywhere = {one.degree for one in extractors if isinstance(one, Interaction) and not one.columns}
    made: list[Any] = []
    met = set()
    for one in extractors:
        if isinstance(one, Interaction):
            key = one.degree, tuple(sorted(one.columns))
            among_all = len(set(one.columns)) == one.degree and one.degree in everywhere
            if key in met or among_all:
                continue
            met.add(key)
        made.append(one)
    return made
