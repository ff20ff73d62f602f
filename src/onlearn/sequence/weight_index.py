"""Which weight belongs to an attribute and a label, or to a transition: numbers into one flat array of weights.

Only pairs of an attribute and a label that were seen together in a sentence learned from have a weight: a small part of
all pairs. The weights of an attribute are a linked list, so that a pair can be added at any time without moving another;
numbers are given in order of appearance. Number 0 is that of no weight, and ends every list.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlearn.compiler import compiled, prefetch
from onlearn.sequence.token_rows import TokenRows

SOON = 24  # attributes between asking for the first weight of one and using it


class Index(NamedTuple):
    """What compiled loops see."""

    head: np.ndarray  # int32: the first weight of each attribute
    links: np.ndarray  # int32 (weights, 2): the label of a weight (-1: of a transition), and the next of its attribute
    transitions: np.ndarray  # int32 (labels, labels): from, to
    initial: np.ndarray  # int32 (labels)
    final: np.ndarray  # int32 (labels)


class WeightIndex:
    """The numbers of weights; they grow with labels, attributes and pairs."""

    def __init__(self, with_transitions: bool = True) -> None:
        self.with_transitions: bool = with_transitions
        none = np.zeros(0, np.int32)
        self.arrays: Index = Index(none, np.full((1, 2), [-1, 0], np.int32), np.zeros((0, 0), np.int32), none, none)
        self.used: int = 1  # numbers given, counting 0

    @property
    def labels(self) -> int:
        """The number of labels."""
        return len(self.arrays.initial)

    def grow_labels(self, labels: int) -> None:
        """Take in labels: each has a beginning, an end and transitions from and to all others."""
        if labels == self.labels:
            return
        old, a = self.labels, self.arrays
        transitions, (initial, final) = np.zeros((labels, labels), np.int32), np.zeros((2, labels), np.int32)
        transitions[:old, :old], initial[:old], final[:old] = a.transitions, a.initial, a.final
        if self.with_transitions:
            new = np.ones((labels, labels), dtype=bool)
            new[:old, :old] = False
            count = int(new.sum()) + 2 * (labels - old)
            numbers = np.arange(self.used, self.used + count, dtype=np.int32)
            transitions[new] = numbers[: int(new.sum())]
            initial[old:], final[old:] = numbers[int(new.sum()) :].reshape(2, -1)
            a = a._replace(links=self._longer(self.used + count))
            a.links[self.used : self.used + count] = -1, 0
            self.used += count
        self.arrays = a._replace(transitions=transitions, initial=initial, final=final)

    def grow_attributes(self, attributes: int) -> None:
        """Take in attributes, which have no weights yet."""
        head = self.arrays.head
        if attributes > len(head):
            longer = np.zeros(attributes, np.int32)
            longer[: len(head)] = head
            self.arrays = self.arrays._replace(head=longer)

    def _longer(self, size: int) -> np.ndarray:
        links = self.arrays.links
        if size <= len(links):
            return links
        longer = np.zeros((max(size, len(links) * 3 // 2), 2), np.int32)
        longer[: len(links)] = links
        return longer

    def add(self, rows: TokenRows, codes: np.ndarray) -> np.ndarray:
        """Give a weight to every pair of these sentences that has none; for each sentence, the numbers given by then."""
        limits = np.zeros(len(rows.offsets) - 1, np.int64)
        done, used = 0, np.array([self.used])
        while True:
            done = int(add_pairs(rows, codes, self.arrays.head, self.arrays.links, done, used, limits))
            self.used = int(used[0])
            if done == len(limits):
                break
            first, last = rows.offsets[done], rows.offsets[done + 1]
            needed = self.used + int(rows.indptr[last] - rows.indptr[first])
            if needed >= 1 << 31:
                raise ValueError("there are too many pairs of attributes and labels: raise min_count")
            self.arrays = self.arrays._replace(links=self._longer(needed))
        return limits

    def owners(self) -> np.ndarray:
        """The attribute of each weight; -1 for those of transitions, and for number 0."""
        owner = np.full(self.used, -1, np.int32)
        own_weights(self.arrays.head, self.arrays.links, owner)
        return owner

    def select(self, kept: np.ndarray, attributes: np.ndarray) -> None:
        """Keep the weights ``kept`` (numbers, rising) and all transitions; ``attributes`` are those that stay."""
        owner, links = self.owners(), self.arrays.links
        number = np.zeros(self.used, np.int32)
        number[kept] = np.arange(1, len(kept) + 1)
        place = np.full(len(self.arrays.head), -1, np.int64)
        place[attributes] = np.arange(len(attributes))
        head = np.zeros(len(attributes), np.int32)
        fresh = np.zeros((len(kept) + 1, 2), np.int32)
        fresh[0] = -1, 0
        fresh[1:, 0] = links[kept, 0]
        mine = np.flatnonzero(owner[kept] >= 0)
        chain(place[owner[kept[mine]]], (mine + 1).astype(np.int32), head, fresh)
        a = self.arrays
        self.arrays = Index(head, fresh, number[a.transitions], number[a.initial], number[a.final])
        self.used = len(kept) + 1

    def pack(self) -> dict[str, np.ndarray]:
        """Attribute and label of each weight, and the numbers of transitions."""
        a = self.arrays
        return {
            "owner": self.owners(),
            "label": np.ascontiguousarray(a.links[: self.used, 0]),
            "transitions": a.transitions.reshape(-1),
            "initial": a.initial,
            "final": a.final,
        }

    @classmethod
    def unpack(cls, arrays: dict[str, np.ndarray], labels: int, attributes: int, with_transitions: bool) -> WeightIndex:
        """What ``pack`` made; refuses what could not have come from it."""
        made = cls(with_transitions)
        owner, label = arrays["owner"], arrays["label"]
        made.used = len(owner)
        sizes = {"transitions": labels * labels, "initial": labels, "final": labels, "label": made.used}
        for name in ("owner", *sizes):
            if arrays[name].dtype != np.int32 or arrays[name].shape != (sizes.get(name, made.used),):
                raise ValueError(f"the {name} of weights do not have the shape or type that this learner has")
        tables = np.concatenate([arrays[name] for name in ("transitions", "initial", "final")])
        sound = made.used > 0 and owner[0] == -1 and tables.min(initial=0) >= 0 and tables.max(initial=0) < made.used
        if not sound or owner.max() >= attributes or (owner < -1).any():
            raise ValueError("weights belong to attributes that do not exist")
        mine = np.flatnonzero(owner >= 0)
        if len(mine) and (label[mine].min() < 0 or label[mine].max() >= labels):
            raise ValueError("weights belong to labels that do not exist")
        if (owner[tables] >= 0).any():
            raise ValueError("weights of transitions are those of attributes")
        head, links = np.zeros(attributes, np.int32), np.zeros((made.used, 2), np.int32)
        links[:, 0] = np.where(owner >= 0, label, -1)
        chain(owner[mine].astype(np.int64), mine.astype(np.int32), head, links)
        shape = labels, labels
        transitions = arrays["transitions"].reshape(shape).copy()
        made.arrays = Index(head, links, transitions, arrays["initial"].copy(), arrays["final"].copy())
        return made


# ----------------------------------------------------------------------------------------------------
# Compiled passes.


@compiled
def add_pairs(rows: Any, codes: Any, head: Any, links: Any, start: Any, used: Any, limits: Any) -> Any:
    """Number the pairs of sentences from ``start`` on; stops before a sentence for which there may be no room."""
    for k in range(start, len(limits)):
        first, last = rows.offsets[k], rows.offsets[k + 1]
        if used[0] + rows.indptr[last] - rows.indptr[first] > len(links):
            return k
        for t in range(first, last):
            label = codes[t]
            for p in range(rows.indptr[t], rows.indptr[t + 1]):
                a = rows.indices[p]
                j = head[a]
                while j != 0 and links[j, 0] != label:
                    j = links[j, 1]
                if j == 0:
                    j = used[0]
                    links[j, 0] = label
                    links[j, 1] = head[a]
                    head[a] = j
                    used[0] += 1
        limits[k] = used[0]
    return len(limits)


@compiled
def own_weights(head: Any, links: Any, owner: Any) -> None:
    """The attribute of each weight, by walking through all lists."""
    for a in range(len(head)):
        j = head[a]
        while j != 0:
            owner[j] = a
            j = links[j, 1]


@compiled
def chain(owners: Any, numbers: Any, head: Any, links: Any) -> None:
    """Put weights into the lists of their attributes; the last one comes first, as if they had been added in order."""
    for n in range(len(numbers)):
        links[numbers[n], 1] = head[owners[n]]
        head[owners[n]] = numbers[n]


@compiled
def add_emissions(rows: Any, first: Any, last: Any, head: Any, links: Any, w: Any, emissions: Any, at: Any) -> None:
    """The score of each label at the tokens ``first`` to ``last``, into rows of the emissions from ``at`` on."""
    labels, plain = emissions.shape[1], len(rows.values) == 0
    end = rows.indptr[last]
    for t in range(first, last):
        for c in range(labels):
            emissions[at + t - first, c] = 0.0
        for p in range(rows.indptr[t], rows.indptr[t + 1]):
            if p + SOON < end:
                prefetch(head, rows.indices[p + SOON])
            if p + SOON // 2 < end:
                soon = head[rows.indices[p + SOON // 2]]
                prefetch(links, 2 * soon)  # two numbers a weight
                prefetch(w, soon)
            x = 1.0 if plain else rows.values[p]
            j = head[rows.indices[p]]
            while j != 0:
                emissions[at + t - first, links[j, 0]] += x * w[j]
                j = links[j, 1]
