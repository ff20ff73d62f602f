"""The vocabulary numbers the names of features, in order of first appearance; pruning drops rare or light features.

A name is identified by its 64-bit hash: two names are the same feature if their hashes agree, which among millions of
names has a probability of one in a million. Up to ``max_names`` names are stored. A further name is not stored: it
shares one of ``2**bits`` buckets, numbered after the names, with others of the same hash bits. So no number changes its
meaning while the vocabulary grows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from onlearn.data.batch import NamedRows
from onlearn.features import hash_table
from onlearn.features.assemble import to_matrix
from onlearn.features.hash_table import SECRET
from onlearn.features.tables import fixed
from onlearn.model_schema import NAMES, Arrays, Record, check_facts, one_of, whole

SMALLEST = 1 << 10  # slots
FULLEST = 0.6  # the share of used slots at which the table grows
QUICKLY = 1 << 20  # slots up to which the table grows fourfold
MANY = 1 << 16  # names from which memory for ROOMY names is allocated at once
ROOMY = 1 << 22  # names; memory that is not written yet takes no space
NAME = 16  # bytes of an average name
LONGEST = 256  # bytes of a name that are stored; the hash includes all bytes
WRAPS = np.errstate(over="ignore")  # products of hashes, which NumPy reports if the loops run interpreted
STATES = ("grow", "hash", "drop")  # what happens to a new name: it gets a number, a bucket, or nothing


class Vocabulary:
    """Names of features and their numbers.

    >>> from onlearn.features.assemble import rows_of_names
    >>> vocabulary = Vocabulary()
    >>> vocabulary.number(rows_of_names([["a", "b", "a"], ["c"]]), grow=True).toarray()
    array([[2., 1., 0.],
           [0., 0., 1.]])
    >>> vocabulary.names()
    ['a', 'b', 'c']
    """

    def __init__(self, max_names: int = 1 << 21, bits: int = 22) -> None:
        if not (isinstance(max_names, int) and 0 <= max_names < 1 << 30):
            raise ValueError(f"max_names must be a whole number from 0 to 2**30, not {max_names!r}")
        if not (isinstance(bits, int) and 1 <= bits <= 30):
            raise ValueError(f"bits must be a whole number from 1 to 30, not {bits!r}")
        self.max_names: int = max_names
        self.bits: int = bits
        self.state: str = "grow"
        self._count = 0
        self._slots = np.zeros(SMALLEST, np.uint64)
        self._hashes = np.zeros(SMALLEST, np.uint64)
        self._ends = np.zeros(SMALLEST + 1, np.int64)
        self._prefix = np.zeros(SMALLEST, np.uint32)
        self._pool = np.zeros(NAME * SMALLEST, np.uint8)
        self._prefixes: dict[str, int] = {}
        self._listed: list[str] = []  # the prefixes by number, as far as they were asked for
        self._seen = np.zeros(0, np.uint64)
        self._before = 0.0, 0  # the share of the data, and the names, when ``expect`` was last called
        if max_names == 0:
            self._fill_up()

    def __len__(self) -> int:
        """The number of stored names."""
        return self._count

    @property
    def width(self) -> int:
        """The number of features: names, and buckets if they are in use."""
        return self._count + ((1 << self.bits) if self.state == "hash" else 0)

    @property
    def room(self) -> int:
        """The number of features for which there is memory; arrays of this size need not grow with each name."""
        return max(self.width, len(self._hashes))

    # ------------------------------------------------------------------ numbering

    def number(self, rows: NamedRows, grow: bool, dtype: Any = np.float64) -> Any:
        """The rows as a SciPy matrix, with equal features summed; without ``grow``, unknown names are dropped."""
        ids = self.learn(rows) if grow else self.lookup(rows.hashes)
        return to_matrix(rows, ids, self.width, dtype).to_scipy()

    def lookup(self, hashes: np.ndarray) -> np.ndarray:
        """The number of each hash, or -1. Changes nothing, so several threads may call it."""
        return self._find(hashes, note=False)

    @WRAPS
    def known(self, hashes: np.ndarray) -> np.ndarray:
        """The number of each stored hash, or -1, while another thread may be learning.

        A name that is just being added may be reported as unknown. Numbers never change, so no number is wrong.
        """
        ids = np.empty(len(hashes), np.int32)
        hash_table.find(self._slots, SECRET, self._hashes, fixed(hashes), ids)
        return ids

    @WRAPS
    def learn(self, rows: NamedRows, known: np.ndarray | None = None) -> np.ndarray:
        """The number of each feature; new names get the next numbers. ``known`` has those found before."""
        if self.state != "grow":
            return self._find(rows.hashes, note=True)
        ids = np.full(len(rows.hashes), -1, np.int32) if known is None else known
        numbers = {prefix: self._prefix_number(prefix) for prefix in dict.fromkeys(rows.prefixes)}  # often few
        prefix_of = np.array([*map(numbers.__getitem__, rows.prefixes)] or [0], np.uint32)
        if ids.min(initial=0) >= 0:  # the usual case
            return ids
        features = [fixed(part) for part in (rows.hashes, rows.starts, rows.lengths, rows.groups, rows.text)]
        done = 0
        while True:
            room = min(self.max_names, len(self._hashes), int(FULLEST * len(self._slots)))
            done, self._count = hash_table.find_or_add(
                self._slots, SECRET, *features, prefix_of,
                self._hashes, self._ends, self._prefix, self._pool, LONGEST, done, room, self._count, ids,
            )  # fmt: skip
            if done == len(ids):
                return ids
            if self._count == self.max_names:
                self._fill_up()
                ids[done:] = self._find(rows.hashes[done:], note=True)
                return ids
            self._make_room()

    @WRAPS
    def _find(self, hashes: np.ndarray, note: bool) -> np.ndarray:
        """The numbers of names and, if in use, of buckets; ``note`` records which buckets are used."""
        ids = np.empty(len(hashes), np.int32)
        hash_table.find(self._slots, SECRET, self._hashes, fixed(hashes), ids)
        if self.state == "hash":
            mask = np.uint64((1 << self.bits) - 1)
            hash_table.to_buckets(fixed(hashes), ids, self._count, mask, self._seen, note)
        return ids

    def _fill_up(self) -> None:
        self.state = "hash"
        self._seen = np.zeros(_words(self.bits), np.uint64)

    def _prefix_number(self, prefix: str) -> int:
        return self._prefixes.setdefault(prefix, len(self._prefixes))

    def _make_room(self) -> None:
        """Enlarge each array that has no space for another name."""
        if self._count >= len(self._hashes):
            self._lengthen(2 * len(self._hashes))
        if self._ends[self._count] + LONGEST > len(self._pool):
            self._pool = _longer(self._pool, max(2 * len(self._pool), NAME * self._roomy(self._count)))
        if self._count >= int(FULLEST * len(self._slots)):
            # fourfold while the table is small, because new names are frequent at first
            self._rebuild(len(self._slots) * (4 if len(self._slots) < QUICKLY else 2))

    def _roomy(self, names: int) -> int:
        """The number of names to allocate memory for, if some must fit."""
        return names if names < MANY else max(names, min(self.max_names, ROOMY))

    def _lengthen(self, names: int) -> None:
        size = self._roomy(names)
        self._hashes, self._prefix = _longer(self._hashes, size), _longer(self._prefix, size)
        self._ends = _longer(self._ends, size + 1)

    def expect(self, share: float) -> None:
        """Allocate memory for the names still to come; ``share`` of the data has been seen.

        Growing step by step would copy everything several times. The number of names is a power of the amount of data
        (Heaps' law), which is estimated from the growth since the last call.
        """
        share_before, count_before = self._before
        self._before = share, self._count
        if self.state != "grow" or not 0 < share_before < share < 1 or not 0 < count_before < self._count:
            return
        power = math.log(self._count / count_before) / math.log(share / share_before)
        names = min(self.max_names, int(self._count * (1 / share) ** min(power, 1.0)))
        if names > len(self._hashes):
            self._lengthen(names)
        size = int(self._ends[self._count] / self._count * names) + LONGEST
        if size > len(self._pool):
            self._pool = _longer(self._pool, max(size, NAME * self._roomy(names)))
        if _slots_for(names) > len(self._slots):
            self._rebuild(_slots_for(names))

    @WRAPS
    def _rebuild(self, size: int) -> None:
        """Build a table of ``size`` slots."""
        # The memory is written first: a page that is read first is allocated twice by the kernel.
        self._slots = np.empty(size, np.uint64)
        self._slots.fill(0)
        hash_table.place(self._slots, SECRET, self._hashes, 0, self._count)

    # ------------------------------------------------------------------ names

    def name_of(self, number: int) -> str:
        """The name of a feature."""
        if not 0 <= number < self.width:
            raise IndexError(f"there is no feature {number}: they are numbered from 0 to {self.width - 1}")
        if number >= self._count:
            return f"bucket {number - self._count}"
        raw = self._pool[self._ends[number] : self._ends[number + 1]].tobytes()
        if len(self._listed) < len(self._prefixes):
            self._listed = list(self._prefixes)
        return self._listed[self._prefix[number]] + _read(raw)

    def prefixes_from(self, start: int) -> tuple[np.ndarray, list[str | None]]:
        """The prefixes of names, as places in a list of them, from a number on; that of a bucket is None."""
        known = [*self._prefixes, None]
        codes = np.full(max(0, self.width - start), len(known) - 1, np.int64)
        codes[: max(0, self._count - start)] = self._prefix[start : self._count]
        return codes, known

    def names(self) -> list[str]:
        """All stored names, by number."""
        prefixes, pool = list(self._prefixes), self._pool[: self._ends[self._count]].tobytes()
        ends = self._ends[: self._count + 1].tolist()
        return [prefixes[p] + _read(pool[a:b]) for p, a, b in zip(self._prefix[: self._count].tolist(), ends, ends[1:])]

    def hashes(self) -> np.ndarray:
        """The hashes of the stored names, by number."""
        return self._hashes[: self._count].copy()

    def collisions(self) -> dict[str, float]:
        """Estimates about features beyond ``max_names``: their number, the buckets they use, and the collisions.

        The number is estimated from the share of empty buckets; if none is empty, it is a lower bound.
        """
        if self.state != "hash":
            return {"features": 0.0, "buckets": 0, "collisions": 0.0}
        return collisions(1 << self.bits, self._seen)

    # ------------------------------------------------------------------ fewer

    def keep(self, kept: np.ndarray, state: str | None = None) -> np.ndarray:
        """Drop all names but those with some numbers, and renumber these in the same order.

        Returns the remaining columns of a matrix: these names, and the buckets if they are still in use.
        ``state="drop"`` ignores new names afterwards, so that dropped ones do not return.
        """
        if state is not None and state not in STATES:
            raise ValueError(f"state must be one of {', '.join(STATES)}, not {state!r}")
        kept = np.unique(np.asarray(kept, np.int64))
        if len(kept) and (kept[0] < 0 or kept[-1] >= self.width):
            raise ValueError(f"there are features from 0 to {self.width - 1}, not {kept[0]} to {kept[-1]}")
        buckets = np.arange(self._count, self.width if state in (None, "hash") else self._count)
        kept = kept[kept < self._count]
        sizes = self._ends[kept + 1] - self._ends[kept]
        room = max(SMALLEST, len(kept))
        ends, pool = np.zeros(room + 1, np.int64), np.zeros(max(NAME * SMALLEST, int(sizes.sum()) + LONGEST), np.uint8)
        hash_table.copy_names(self._ends, self._pool, kept, ends, pool)
        self._hashes, self._prefix = _longer(self._hashes[kept], room), _longer(self._prefix[kept], room)
        self._ends, self._pool, self._count = ends, pool, len(kept)
        self._rebuild(_slots_for(len(kept)))
        if state is not None and state != self.state:
            if state == "hash" and self.state != "hash":
                self._fill_up()
            self.state = state
        return np.concatenate([kept, buckets])

    # ------------------------------------------------------------------ parts of the data

    def copy(self) -> Vocabulary:
        """A vocabulary with the same names, which learns apart from this one."""
        made = Vocabulary(self.max_names, self.bits)
        made.state, made._count, made._prefixes = self.state, self._count, dict(self._prefixes)
        made._slots, made._hashes, made._prefix = self._slots.copy(), self._hashes.copy(), self._prefix.copy()
        made._ends, made._seen = self._ends.copy(), self._seen.copy()
        made._pool = _longer(self._pool[: self._ends[self._count]].copy(), NAME * SMALLEST)
        return made

    def added(self, since: int, pieces: Sequence[int] = ()) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The names from a number on, and the buckets in use, for ``added_names``.

        Data in several ``pieces`` have the number of names that were known after each of them.
        """
        ends, prefixes = self._ends[since : self._count + 1], list(self._prefixes)
        facts: dict[str, Any] = {"state": self.state, "prefixes": prefixes}
        arrays: dict[str, np.ndarray] = {
            "hashes": self._hashes[since : self._count].copy(),
            "lengths": np.diff(ends).astype(np.uint16),  # LONGEST, at most
            "groups": self._prefix[since : self._count].astype(np.uint16 if len(prefixes) <= 1 << 16 else np.uint32),
            "pool": self._pool[ends[0] : ends[-1]].copy(),
            "pieces": np.array([since, *(pieces or [self._count])], np.int64) - since,
        }
        if self.state == "hash":
            arrays["seen"] = self._seen.copy()
        return facts, arrays

    def note_overflow(self) -> None:
        """Record that another vocabulary of these names has met one that has no place among them."""
        if self.state == "grow":
            self._fill_up()

    def note_buckets(self, seen: np.ndarray) -> None:
        """Record buckets that are in use in another vocabulary."""
        self._seen |= seen

    # ------------------------------------------------------------------ the model file

    def pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The state as plain facts and arrays, for the model file. The arrays are views, not copies."""
        n = self._count
        facts: dict[str, Any] = {
            "max_names": self.max_names,
            "bits": self.bits,
            "state": self.state,
            "prefixes": list(self._prefixes),
        }
        arrays: dict[str, np.ndarray] = {
            "hashes": self._hashes[:n],
            "ends": self._ends[: n + 1],
            "prefix": self._prefix[:n],
            "pool": self._pool[: self._ends[n]],
        }
        if self.state == "hash":
            arrays["seen"] = self._seen
        return facts, arrays

    @classmethod
    def unpack(cls, facts: dict[str, Any], arrays: Arrays) -> Vocabulary:
        """The vocabulary that was packed; raises ValueError if it contradicts itself."""
        check_facts(facts, FILED, "vocabulary")
        self = cls(facts["max_names"], facts["bits"])
        hashes, ends, prefix, pool = (arrays[key] for key in ("hashes", "ends", "prefix", "pool"))
        kinds = {"hashes": np.uint64, "ends": np.int64, "prefix": np.uint32, "pool": np.uint8}
        n, prefixes = hashes.size, facts["prefixes"]
        consistent = (
            all(arrays[key].dtype == kind and arrays[key].ndim == 1 for key, kind in kinds.items())
            and n <= self.max_names
            and len(ends) == n + 1
            and len(prefix) == n
            and ends[0] == 0
            and (np.diff(ends) >= 0).all()
            and ends[-1] == len(pool)
            and len(set(prefixes)) == len(prefixes)
            and (n == 0 or prefix.max() < len(prefixes))
            and not _has_duplicates(hashes)
        )
        if not consistent:
            raise ValueError("the vocabulary contradicts itself")
        self.state, self._count = facts["state"], n
        room = max(SMALLEST, n)
        self._hashes, self._prefix, self._ends = _longer(hashes, room), _longer(prefix, room), _longer(ends, room + 1)
        self._pool = _longer(pool, NAME * SMALLEST)
        self._prefixes = {p: k for k, p in enumerate(prefixes)}
        self._seen = np.zeros(0, np.uint64)
        if self.state == "hash":
            seen = arrays["seen"]
            if seen.shape != (_words(self.bits),) or seen.dtype != np.uint64:
                raise ValueError("the vocabulary contradicts itself: its buckets have another number")
            self._seen = seen.copy()
        self._rebuild(_slots_for(n))
        return self

    def __getstate__(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The state for a pickle or a copy, without spare memory."""
        return self.pack()

    def __setstate__(self, state: tuple[dict[str, Any], dict[str, np.ndarray]]) -> None:
        facts, arrays = state
        self.__dict__.update(Vocabulary.unpack(facts, Arrays(arrays)).__dict__)


def collisions(size: int, seen: np.ndarray) -> dict[str, float]:
    """The estimates of ``Vocabulary.collisions`` for ``size`` buckets; ``seen`` has a bit for each bucket in use."""
    used = int(hash_table.count_bits(seen))
    features = float(used) if used < 2 else -size * math.log(max(size - used, 0.5) / size)
    return {"features": features, "buckets": used, "collisions": max(0.0, features - used)}


FILED = Record(max_names=whole(0), bits=whole(1, 30), state=one_of(*STATES), prefixes=NAMES)


def added_names(facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> NamedRows:
    """Names that were ``added`` to a vocabulary, as rows: those of each piece of the data that were new in it."""
    lengths = arrays["lengths"].astype(np.int64)
    starts, prefixes, groups = (
        np.cumsum(lengths) - lengths,
        tuple(facts["prefixes"]),
        arrays["groups"].astype(np.uint32),
    )
    return NamedRows(arrays["pieces"], arrays["hashes"], np.zeros(0), starts, lengths, groups, arrays["pool"], prefixes)


def _words(bits: int) -> int:
    """The words that have a bit for each of ``2**bits`` buckets."""
    return max(1, (1 << bits) // 64)


def _slots_for(names: int) -> int:
    return max(SMALLEST, 1 << math.ceil(math.log2((names + 1) / FULLEST)))


def _has_duplicates(hashes: np.ndarray) -> bool:
    ordered = np.sort(hashes)
    return bool((ordered[1:] == ordered[:-1]).any())


def _longer(array: np.ndarray, size: int) -> np.ndarray:
    """A copy with ``size`` entries; the array itself if it is long enough."""
    if len(array) >= size:
        return array
    made = np.zeros(size, array.dtype)
    made[: len(array)] = array
    return made


def _read(raw: bytes) -> str:
    """A name as text; a truncated one may end inside a character."""
    return raw.decode("utf-8", "ignore" if len(raw) == LONGEST else "replace")


class Counts:
    """Counts the rows with each feature, in all or by class, batch by batch.

    >>> from scipy.sparse import csr_matrix
    >>> counts = Counts()
    >>> counts.add(csr_matrix([[1, 0, 3], [0, 0, 1]]))
    >>> counts.often(2)
    array([2])
    """

    def __init__(self) -> None:
        self.classes: dict[Any, int] = {}
        self.by_class: list[np.ndarray] = []

    def add(self, X: Any, y: Any = None) -> None:
        """Count the rows of a CSR matrix; without labels, all belong to one class."""
        labels = np.zeros(X.shape[0], np.int64) if y is None else np.asarray(y)
        if len(labels) != X.shape[0]:
            raise ValueError(f"there are {X.shape[0]} rows but {len(labels)} labels")
        counted = X.data != 0
        for label in dict.fromkeys(labels.tolist()):
            chosen = counted if y is None else counted & np.repeat(labels == label, np.diff(X.indptr))
            self._count(label, np.bincount(X.indices[chosen], minlength=X.shape[1]))

    def include(self, other: Counts, numbers: np.ndarray, codes: np.ndarray | None = None) -> None:
        """Add the counts of other rows, whose features have other ``numbers`` here, and the labels other ``codes``."""
        for label, place in other.classes.items():
            found = other.by_class[place]
            places = numbers[: len(found)]
            moved = np.zeros(int(places.max(initial=-1)) + 1, np.int64)
            np.add.at(moved, places, found)
            self._count(label if codes is None else int(codes[label]), moved)

    def _count(self, label: Any, found: np.ndarray) -> None:
        place = self.classes.setdefault(label, len(self.by_class))
        if place == len(self.by_class):
            self.by_class.append(np.zeros(0, np.int64))
        self.by_class[place] = _sum(self.by_class[place], found)

    def often(self, min_count: int, per_class: bool = False) -> np.ndarray:
        """The features in at least ``min_count`` rows; with ``per_class``, in so many rows of at least one class."""
        if not self.by_class:
            return np.zeros(0, np.int64)
        width = max(map(len, self.by_class))
        counts = np.array([_sum(one, np.zeros(width, np.int64)) for one in self.by_class])
        return np.flatnonzero((counts.max(axis=0) if per_class else counts.sum(axis=0)) >= min_count)


def _sum(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The sum of two arrays; the shorter one is padded with zeros."""
    long, short = (first, second) if len(first) >= len(second) else (second, first)
    made = long.astype(np.int64)
    made[: len(short)] += short
    return made


def prune(features: Any, X: Any, y: Any = None, min_count: int = 2, per_class: bool = False) -> np.ndarray:
    """Keep the features that are in at least ``min_count`` rows (of one class, with ``per_class``).

    Renumbers the vocabulary of ``features`` and returns the remaining columns: ``X[:, kept]`` belongs to the new
    vocabulary. No new names are learned afterwards.
    """
    if per_class and y is None:
        raise ValueError("per_class counts rows of each class: give their labels, y")
    counts = Counts()
    counts.add(X, y if per_class else None)
    return np.asarray(features.keep(counts.often(min_count, per_class)))


def prune_weights(features: Any, weights: np.ndarray, size: float) -> np.ndarray:
    """Keep the features with a weight above ``size`` for some output; ``weights`` is (outputs, features), as ``coef_``.

    Renumbers the vocabulary and returns the remaining columns: ``weights[:, kept]`` belongs to the new vocabulary.
    """
    weights = np.atleast_2d(weights)
    if weights.shape[1] != features.n_features_out_:
        raise ValueError(f"there are weights for {weights.shape[1]} features, but {features.n_features_out_} features")
    return np.asarray(features.keep(np.flatnonzero(np.abs(weights).max(axis=0) > size)))
