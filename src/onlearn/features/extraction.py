"""The learned state of a ``FeatureMap``: extractors, vocabulary, scales and document counts.

Rows are processed in blocks. Several threads turn blocks into named features, which depends only on the scales; one
thread numbers the features, block after block, so that the numbers do not depend on the threads.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np

from onlearn.data.batch import NamedRows
from onlearn.engine.csr import CSR
from onlearn.features.assemble import RARE, Part, Weighting, count_rows, matrix, side_by_side, summed, weight_rows
from onlearn.features.extractors import FACTS, Category, Groups, Number, NumberColumns, ReadColumn, WithIndicator
from onlearn.features.interactions import Interaction, products
from onlearn.features.text import Text
from onlearn.features.vocabulary import Vocabulary
from onlearn.threads import cores

BLOCK = 1 << 17  # features of a block, approximately
LEAST_ROWS = 16  # of a block, approximately, in which each column has a feature


class Extraction:
    """Learns from tables or rows of named features, and turns them into matrices."""

    def __init__(self, extractors: Sequence[Any], vocabulary: Vocabulary, dtype: Any) -> None:
        self.columns: list[Any] = [e for e in extractors if not isinstance(e, Interaction)]
        self.interactions: list[Interaction] = [e for e in extractors if isinstance(e, Interaction)]
        self.vocabulary: Vocabulary = vocabulary
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.scales: np.ndarray = np.zeros((len(self.columns), FACTS))
        self.documents: np.ndarray = np.zeros(0, np.int64)  # the number of rows with each feature
        self.rows: int = 0
        self.groups: list[Groups] = [self._groups_of(e) for e in self.columns]
        self.together: list[tuple[int, int]] = list(read_together(self.columns))
        self._check_interactions()

    @staticmethod
    def _groups_of(extractor: Any) -> Groups:
        groups: Groups = extractor.groups()
        if extractor.missing == "indicator":
            return groups._replace(prefixes=(*groups.prefixes, f"{groups.name}="))
        return groups

    def _check_interactions(self) -> None:
        known = {groups.name for groups in self.groups}
        for interaction in self.interactions:
            if self.columns and (unknown := [c for c in interaction.columns if c not in known]):
                there = ", ".join(map(repr, known))
                raise ValueError(f"{interaction!r} is about {unknown[0]!r}, but there are only features of {there}")

    def apart(self) -> Extraction:
        """The same extractors and names for other rows; nothing is counted yet."""
        return Extraction([*self.columns, *self.interactions], self.vocabulary.copy(), self.dtype)

    # ------------------------------------------------------------------ reading

    def open(self, source: Any, learning: bool = False) -> Opened:
        """A table or named rows, ready to be cut into blocks. All errors in the rows are raised here."""
        if isinstance(source, NamedRows):
            return Opened([_NamedColumn(source)], len(source.indptr) - 1)
        opened: list[ReadColumn] = []
        for first, last in self.together:
            extractor = self.columns[first]
            column: ReadColumn = (
                NumberColumns(self.columns[first:last], source) if last > first + 1 else extractor.read(source)
            )
            column.spell(self.vocabulary, learning)
            if extractor.missing == "error" and column.missing is not None:
                row = int(column.missing.argmax())
                raise ValueError(f"column {extractor.column!r}, row {row}: the value is missing")
            opened.append(WithIndicator(column, extractor.column) if extractor.missing == "indicator" else column)
        return Opened(opened, source.num_rows)

    # ------------------------------------------------------------------ walking

    def learn(self, opened: Opened, transform: bool, ordered: bool = True) -> CSR | None:
        """Learn from rows; with ``transform``, also return their matrix, with statistics that include these rows."""
        for (first, last), column in zip(self.together, opened.columns):
            column.learn(self.scales[first:last])
        self.rows += opened.count
        self._set_scales(opened)
        weighting = self._weighting()
        counted = weighting.inverse if weighting is not None and weighting.inverse.any() else None
        with ThreadPoolExecutor(cores()) as pool:
            parts = self._numbered(opened, pool, transform or counted is not None, ordered, counted)
            if not transform:
                return None
            if weighting is not None:
                weigh = map if len(parts) == 1 else pool.map
                list(weigh(lambda part: self._weight(part, weighting), parts))
        return matrix(parts or [self._nothing()], self.vocabulary.width, self.dtype)

    def _numbered(
        self, opened: Opened, pool: ThreadPoolExecutor, wanted: bool, ordered: bool, counted: np.ndarray | None
    ) -> list[Part]:
        """Number new names in order of appearance; if ``wanted``, return the rows with numbered features.

        Documents are counted for the ``counted`` groups, by the thread that has finished a part.
        """
        counting = threading.Lock()

        def number(rows: NamedRows) -> Part:
            return Part(rows.indptr, self.vocabulary.learn(rows, rows.known), rows.values, rows.groups)

        def settle(part: Part) -> Part:
            part = summed(part, self.dtype, ordered)
            if counted is not None:
                with counting:
                    self._count(part, counted)
            return part

        if opened.looked_up and not self.interactions:  # the remaining work is not worth other threads
            part = number(self._named(opened, 0, opened.count))
            return [settle(part)] if wanted else []
        blocks = opened.blocks(BLOCK // 8 if self.interactions else BLOCK)
        if len(blocks) == 1:  # nor is a single block
            part = number(self.look_up(self._named(opened, *blocks[0])))
            return [settle(part)] if wanted else []
        parts = [
            pool.submit(settle, part) if wanted else None
            for part in map(number, _ahead(pool, lambda b: self.look_up(self._named(opened, *b)), blocks, cores() + 1))
        ]
        return [part.result() for part in parts if part is not None]

    def look_up(self, rows: NamedRows) -> NamedRows:
        """The rows with the numbers of known names. Another thread may learn names at the same time."""
        return rows._replace(known=self.vocabulary.known(rows.hashes)) if self.vocabulary.state == "grow" else rows

    def transform(self, opened: Opened) -> CSR:
        """The matrix of rows, without learning."""
        self._set_scales(opened)
        weighting = self._weighting()

        def work(block: tuple[int, int]) -> Part:
            rows = self._named(opened, *block)
            part = summed(Part(rows.indptr, self.vocabulary.lookup(rows.hashes), rows.values, rows.groups), self.dtype)
            self._weight(part, weighting)
            return part

        blocks = opened.blocks(BLOCK // 8 if self.interactions else BLOCK)
        if len(blocks) == 1:
            parts = [work(blocks[0])]
        else:
            with ThreadPoolExecutor(cores()) as pool:
                parts = list(pool.map(work, blocks))
        return matrix(parts or [self._nothing()], self.vocabulary.width, self.dtype)

    def _named(self, opened: Opened, start: int, stop: int) -> NamedRows:
        """The named features of some rows."""
        rows = side_by_side([column.rows(start, stop) for column in opened.columns])
        if not self.interactions:
            return rows
        owners = [g.name for g in self.groups for _ in g.prefixes] or [_namespace(p) for p in rows.prefixes]
        square = [g.square and n == 0 for g in self.groups for n in range(len(g.prefixes))] or [False] * len(owners)
        return side_by_side([rows, products(rows, self.interactions, owners, square)])

    def _set_scales(self, opened: Opened) -> None:
        for (first, last), column in zip(self.together, opened.columns):
            column.scale_by(self.scales[first:last])

    def _nothing(self) -> Part:
        return Part(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, self.dtype), np.empty(0, np.uint32))

    # ------------------------------------------------------------------ weighting

    def _weighting(self) -> Weighting | None:
        """How the groups are weighted; None if no group is."""
        groups = [(g, number) for number, g in enumerate(self.groups) for _ in g.prefixes]
        if not any(g.binary or g.log or g.inverse or g.norm for g, _ in groups):
            return None
        units = {number: n for n, number in enumerate(dict.fromkeys(number for g, number in groups if g.norm))}
        plain = [False]  # for products
        return Weighting(
            np.array([g.binary for g, _ in groups] + plain),
            np.array([g.log for g, _ in groups] + plain),
            np.array([g.inverse for g, _ in groups] + plain),
            np.array([units.get(number, -1) for _, number in groups] + [-1]),
        )

    def _count(self, part: Part, counted: np.ndarray) -> None:
        """Count the rows with each feature."""
        if self.vocabulary.width > len(self.documents):
            grown = np.zeros(max(self.vocabulary.room, len(self.documents) * 3 // 2), np.int64)
            grown[: len(self.documents)] = self.documents
            self.documents = grown
        count_rows(part.ids, part.groups, counted, self.documents)

    def _weight(self, part: Part, weighting: Weighting | None) -> None:
        if weighting is not None:
            squares = np.empty(int(weighting.unit.max()) + 1)
            logarithms = min(self.rows + 1, max(RARE, len(part.ids) // 16))  # not more than the features are worth
            rare = np.empty(logarithms if weighting.inverse.any() else 0)
            weight_rows(*part, weighting, self.documents, self.rows, squares, rare)


class Opened:
    """A batch of rows, as read by each extractor."""

    def __init__(self, columns: Sequence[ReadColumn], count: int) -> None:
        self.columns: Sequence[ReadColumn] = columns
        self.count: int = count

    @property
    def looked_up(self) -> bool:
        """Whether all names have been looked up in a vocabulary."""
        return len(self.columns) == 1 and self.columns[0].known

    def blocks(self, size: int) -> list[tuple[int, int]]:
        """Ranges of rows with about ``size`` features each."""
        if not self.count or not self.columns:
            return []
        cost = np.sum([column.cost() for column in self.columns], axis=0)
        size = max(size, LEAST_ROWS * len(self.columns))  # each column takes some time, whatever the number of rows
        number = min(self.count, max(1, round(int(cost[-1]) / size)))
        inner = np.searchsorted(cost, np.linspace(0, cost[-1], number + 1)[1:-1])
        return list(pairwise(sorted({0, *inner.tolist(), self.count})))


class _NamedColumn(ReadColumn):
    """Rows of named features."""

    def __init__(self, made: NamedRows) -> None:
        self.made, self.known = made, made.known is not None

    def rows(self, start: int, stop: int) -> NamedRows:
        return self.made.between(start, stop)

    def cost(self) -> np.ndarray:
        return self.made.indptr


def _namespace(prefix: str) -> str:
    """The name of a namespace, from the prefix of its features."""
    return prefix.removesuffix("^")


def _ahead(pool: ThreadPoolExecutor, work: Callable[[Any], Any], items: Iterable[Any], most: int) -> Iterator[Any]:
    """Results in order; at most ``most`` are computed before they are needed."""
    waiting: deque[Future[Any]] = deque()
    for item in items:
        waiting.append(pool.submit(work, item))
        if len(waiting) > most:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


# ----------------------------------------------------------------------------------------------------
# Extractors that are used together.


def read_together(extractors: Sequence[Any]) -> Iterator[tuple[int, int]]:
    """The extractors whose columns are read as one, as ranges of all of them."""
    first = 0
    for n, one in enumerate(extractors, 1):
        if n == len(extractors) or not isinstance(one, Number) or not one.goes_with(extractors[n]):
            yield first, n
            first = n


def refuse_duplicates(extractors: Sequence[Any]) -> None:
    """Refuse two extractors whose features have the same names, because their values would be summed."""
    seen: dict[tuple[str, str, str], Any] = {}
    for one in (one for one in extractors if not isinstance(one, Interaction)):
        groups = one.groups()
        for key in ((one.kind, groups.name, prefix) for prefix in dict.fromkeys(groups.prefixes)):
            if key in seen:
                hint = ", or give it a prefix of its own" if isinstance(one, Text) else ""
                raise ValueError(f"{seen[key]!r} and {one!r} make features of the same names: leave one out{hint}")
            seen[key] = one


def refuse_empty(extractors: Sequence[Any]) -> None:
    """Refuse interactions that make no new features."""
    columns = [one for one in extractors if not isinstance(one, Interaction)]
    names = list(dict.fromkeys(one.groups().name for one in columns))
    for one in (one for one in extractors if isinstance(one, Interaction)):
        if not one.columns and len(names) < one.degree:
            raise ValueError(
                f"{one!r} multiplies features of {one.degree} different columns, but there is only {', '.join(names)}"
            )
        for name in {name for name in one.columns if one.columns.count(name) > 1}:
            extractors_of = [other for other in columns if other.groups().name == name]
            if extractors_of and all(isinstance(other, Category) for other in extractors_of):
                raise ValueError(
                    f"{one!r} makes nothing new: {name!r} has one category a row, which times itself is the same"
                )


def each_once(extractors: Sequence[Any]) -> list[Any]:
    """The extractors without duplicate interactions; the order of their columns does not matter."""
    everywhere = {one.degree for one in extractors if isinstance(one, Interaction) and not one.columns}
    made: list[Any] = []
    seen = set()
    for one in extractors:
        if isinstance(one, Interaction):
            key = one.degree, tuple(sorted(one.columns))
            among_all = len(set(one.columns)) == one.degree and one.degree in everywhere
            if key in seen or among_all:
                continue
            seen.add(key)
        made.append(one)
    return made
