"""Interactions: products of two or three features of different columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from onlearn.compiler import compiled
from onlearn.data.batch import NamedRows, combine
from onlearn.features.assemble import side_by_side
from onlearn.features.tables import fixed

ONE = np.uint64(1)
STAR = np.uint8(ord("*"))
PRODUCT = np.uint64(0x2A2A2A2A)  # distinguishes the product "good*film" from the bigram "good film"


class Interaction:
    """``Interaction("a", "b")``: the features of column (or namespace) a times those of b, named ``x*y``.

    Three names give triples; ``Interaction()`` stands for all pairs of different columns, ``Interaction(degree=3)``
    for all triples. If a column is given twice, each two of its features are paired once, and a number is squared.
    The factors are the scaled numbers of numeric columns and the counts of text columns.
    """

    kind: ClassVar[str] = "interaction"
    column: ClassVar[None] = None

    def __init__(self, *columns: str, degree: int | None = None) -> None:
        if not columns and degree is None:
            degree = 2
        if columns and degree not in (None, len(columns)):
            raise ValueError(f"Interaction of {len(columns)} columns cannot have degree {degree}")
        if not all(isinstance(column, str) for column in columns):
            raise TypeError(f"Interaction takes names of columns, not {columns!r}")
        if degree is None:
            degree = len(columns)
        if degree not in (2, 3):
            raise ValueError(f"an Interaction is of degree 2 or 3, not {degree}")
        self.degree: int = degree
        self.columns: tuple[str, ...] = tuple(sorted(columns, key=columns.index))  # equal ones are adjacent

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Interaction) and (self.columns, self.degree) == (other.columns, other.degree)

    def __hash__(self) -> int:
        return hash((self.columns, self.degree))

    def __repr__(self) -> str:
        return f"Interaction({', '.join(map(repr, self.columns)) or f'degree={self.degree}'})"

    def spell(self) -> dict[str, Any]:
        """The interaction as JSON, for the model file."""
        return {"kind": self.kind, "columns": list(self.columns), "degree": self.degree}

    def places(self, owners: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """For each factor, its groups, and whether it is of the same column as the factor before."""
        names = np.array(owners, dtype=object)
        if not self.columns:
            return np.ones((self.degree, len(owners)), bool), np.zeros(self.degree, bool)
        members = np.array([[name == column for name in names] for column in self.columns], bool)
        same = [False, *(a == b for a, b in zip(self.columns, self.columns[1:]))]
        return members.reshape(self.degree, len(owners)), np.array(same)


@compiled
def fits(hashes: Any, groups: Any, owner: Any, square: Any, i: Any, j: Any, same: Any, apart: Any) -> Any:
    """Whether feature j may follow feature i, so that each set of features appears once and in the same order."""
    if same:
        return hashes[i] < hashes[j] or (i == j and square[groups[i]])
    return not apart or owner[groups[i]] < owner[groups[j]]


@compiled
def write(text: Any, start: Any, length: Any, out: Any, at: Any) -> Any:
    """Copy a part of a text; returns the end of the copy."""
    for n in range(length):
        out[at + n] = text[start + n]
    return at + length


@compiled
def name_part(rows: Any, k: Any, prefix_text: Any, prefix_ends: Any, out: Any, at: Any) -> Any:
    """Write the full name of a feature; returns its end."""
    group = np.int64(rows.groups[k])
    begin = prefix_ends[group]
    at = write(prefix_text, begin, prefix_ends[group + 1] - begin, out, at)
    return write(rows.text, rows.starts[k], rows.lengths[k], out, at)


@compiled
def full_length(rows: Any, k: Any, prefix_ends: Any) -> Any:
    """The bytes of a feature's full name."""
    group = np.int64(rows.groups[k])
    return rows.lengths[k] + prefix_ends[group + 1] - prefix_ends[group]


@compiled
def multiply(
    rows: Any, members: Any, same: Any, apart: Any, owner: Any, square: Any, prefix_text: Any, prefix_ends: Any,
    held: Any, count: Any, fill: Any,
    sizes: Any, hashes: Any, values: Any, starts: Any, lengths: Any, text: Any, used: Any, written: Any,
) -> Any:  # fmt: skip
    """Count the products and the bytes of their names, or with ``fill`` write them.

    ``used`` products and ``written`` bytes are there already. ``held`` has space for the features of the longest row,
    for each factor, and ``count`` for their number.
    """
    degree = members.shape[0]
    for i in range(len(rows.indptr) - 1):
        count[:] = 0
        for k in range(rows.indptr[i], rows.indptr[i + 1]):
            for d in range(degree):
                if members[d, rows.groups[k]]:
                    held[d, count[d]] = k
                    count[d] += 1
        for a in held[0, : count[0]]:
            for b in held[1, : count[1]]:
                if not fits(rows.hashes, rows.groups, owner, square, a, b, same[1], apart):
                    continue
                for n in range(1 if degree == 2 else count[2]):
                    c = np.int64(-1) if degree == 2 else held[2, n]
                    if c >= 0 and not fits(rows.hashes, rows.groups, owner, square, b, c, same[2], apart):
                        continue
                    if fill:
                        h, value = combine(rows.hashes[a], rows.hashes[b]), rows.values[a] * rows.values[b]
                        at = name_part(rows, a, prefix_text, prefix_ends, text, written)
                        text[at] = STAR
                        at = name_part(rows, b, prefix_text, prefix_ends, text, at + 1)
                        if c >= 0:
                            h, value = combine(h, rows.hashes[c]), value * rows.values[c]
                            text[at] = STAR
                            at = name_part(rows, c, prefix_text, prefix_ends, text, at + 1)
                        hashes[used], values[used] = combine(h, PRODUCT), value
                        starts[used], lengths[used] = written, at - written
                        written = at
                    else:
                        sizes[i] += 1
                        written += full_length(rows, a, prefix_ends) + 1 + full_length(rows, b, prefix_ends)
                        if c >= 0:
                            written += 1 + full_length(rows, c, prefix_ends)
                    used += 1
    return used, written


class Plain(NamedTuple):
    """Named rows without prefixes, whose number would be part of a compiled type."""

    indptr: np.ndarray
    hashes: np.ndarray
    values: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray
    groups: np.ndarray
    text: np.ndarray


def products(
    rows: NamedRows, interactions: Sequence[Interaction], owners: Sequence[str], square: Sequence[bool]
) -> NamedRows:
    """The products of features, as rows of one group without a prefix.

    ``owners`` are the columns of the groups; ``square`` says for each group whether its features are squared.
    """
    encoded = [prefix.encode() for prefix in rows.prefixes]
    prefix_text = fixed(np.frombuffer(b"".join(encoded) or b" ", np.uint8))
    prefix_ends = np.cumsum([0, *map(len, encoded)])
    order = {name: n for n, name in enumerate(dict.fromkeys(owners))}
    owner = np.array([order[name] for name in owners], np.int64)
    plain = Plain(*map(fixed, rows[:7]))
    longest = int(np.diff(rows.indptr).max(initial=0))
    parts = []
    for interaction in interactions:
        members, same = interaction.places(owners)
        settings = (
            *(plain, members, same, not interaction.columns, owner, np.array(square), prefix_text, prefix_ends),
            *(np.empty((len(members), longest), np.int64), np.empty(len(members), np.int64)),
        )
        parts.append(_multiplied(settings, len(rows.indptr)))
    joined = side_by_side(parts)
    return joined._replace(groups=np.zeros(len(joined.groups), np.uint32), prefixes=("",))


def _multiplied(settings: tuple[Any, ...], size: int) -> NamedRows:
    """Count the products, allocate memory, and write them."""

    def arrays(features: int, letters: int) -> tuple[np.ndarray, ...]:
        kinds = (np.uint64, np.float64, np.int64, np.int64)
        return *(np.empty(features, kind) for kind in kinds), np.empty(letters, np.uint8)

    indptr = np.zeros(size, np.int64)
    used, written = multiply(*settings, False, indptr[1:], *arrays(0, 0), 0, 0)
    np.cumsum(indptr, out=indptr)
    made = arrays(used, written)
    multiply(*settings, True, indptr[1:], *made, 0, 0)
    hashes, values, starts, lengths, text = made
    return NamedRows(indptr, hashes, values, starts, lengths, np.zeros(used, np.uint32), text, ("",))
