"""Which weight belongs to an attribute and a label, or to a transition: numbers into one flat array of weights.

Only pairs of an attribute and a label that were seen together have a weight: a small part of all pairs. But most tokens
have attributes that are seen with many labels. So there are two ways to hold the weights of an attribute:

- a *block*: a weight for every label, one after another, for attributes that ``fit`` meets with many labels;
- a linked list of weights, to which a pair can be added at any time without moving another.

Number 0 is that of no weight; it ends every list.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlearn.compiler import compiled, prefetch
from onlearn.model_schema import Arrays
from onlearn.sequence.token_rows import TokenRows

SOON = 24  # attributes between asking for the first weight of one and using it
FEWEST, PART = 3, 5  # labels of an attribute with a block: at least 3, and a fifth of all


class Index(NamedTuple):
    """What compiled loops see."""

    block: np.ndarray  # int32: the first weight of the block of each attribute, or 0
    head: np.ndarray  # int32: the first weight of the list of each attribute
    links: np.ndarray  # int32 (weights, 2): the label of a weight (-1: of a transition), and the next of its list
    transitions: np.ndarray  # int32 (labels, labels): from, to
    initial: np.ndarray  # int32 (labels)
    final: np.ndarray  # int32 (labels)
    width: int  # labels of a block


class WeightIndex:
    """The numbers of weights; they grow with labels, attributes and pairs."""

    def __init__(self, with_transitions: bool = True) -> None:
        self.with_transitions: bool = with_transitions
        none, nowhere = np.zeros(0, np.int32), np.full((1, 2), [-1, 0], np.int32)
        self.arrays: Index = Index(none, none, nowhere, np.zeros((0, 0), np.int32), none, none, 0)
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
        a = self.arrays
        if attributes > len(a.head):
            block, head = np.zeros((2, attributes), np.int32)
            block[: len(a.block)], head[: len(a.head)] = a.block, a.head
            self.arrays = a._replace(block=block, head=head)

    def _longer(self, size: int) -> np.ndarray:
        links = self.arrays.links
        if size <= len(links):
            return links
        longer = np.zeros((max(size, len(links) * 3 // 2), 2), np.int32)
        longer[: len(links)] = links
        return longer

    def add(self, rows: TokenRows, codes: np.ndarray) -> np.ndarray:
        """Give a weight to every pair of these sentences that has none; for each, the numbers given by then."""
        limits = np.zeros(len(rows.offsets) - 1, np.int64)
        done, used = 0, np.array([self.used])
        while True:
            done = int(add_pairs(rows, codes, self.arrays, done, used, limits))
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
        own_weights(self.arrays, owner)
        return owner

    def in_transitions(self) -> np.ndarray:
        """The numbers of all transitions, beginnings and ends, rising."""
        a = self.arrays
        numbers = np.unique(np.concatenate([a.transitions.reshape(-1), a.initial, a.final]))
        return numbers[numbers > 0]

    def arrange(self, kept: np.ndarray, stay: np.ndarray | None = None, blocks: bool = False) -> np.ndarray:
        """Number weights anew, by attribute; returns the old number of each new one (0: it is new).

        ``kept`` says of each number whether its weight is needed, ``stay`` of each attribute whether it is. A block
        stays whole, or becomes a list if few of its weights are needed. With ``blocks`` attributes with many labels get
        one.
        """
        owner, a = self.owners(), self.arrays
        stay = np.ones(len(a.head), dtype=bool) if stay is None else stay
        width = self.labels if blocks else a.width
        many = max(FEWEST, -(-width // PART))
        needed = np.flatnonzero((owner >= 0) & kept[: self.used])
        counts = np.bincount(owner[needed], minlength=len(stay))
        full = stay & (counts >= many) & (blocks | (a.block > 0))
        # weights of a full attribute that are in its block, needed or not; and those in lists
        label = a.links[: self.used, 0]
        inside = np.flatnonzero(owner >= 0)
        inside = inside[full[owner[inside]] & (label[inside] < width)]
        outside = needed[stay[owner[needed]] & ~(full[owner[needed]] & (label[needed] < width))]
        outside = outside[np.argsort(owner[outside], kind="stable")]
        fixed = self.in_transitions()
        sizes = np.where(full, width, 0)
        starts = 1 + len(fixed) + np.concatenate([[0], np.cumsum(sizes)])
        made = int(starts[-1]) + len(outside)
        before = np.zeros(made, np.int64)
        before[1 : 1 + len(fixed)] = fixed
        before[starts[owner[inside]] + label[inside]] = inside
        before[int(starts[-1]) :] = outside
        number = np.zeros(self.used, np.int32)
        number[fixed] = np.arange(1, 1 + len(fixed))
        place = np.cumsum(stay) - 1
        block = np.where(full, starts[:-1], 0)[stay].astype(np.int32)
        head, links = np.zeros(len(block), np.int32), np.zeros((made, 2), np.int32)
        links[: 1 + len(fixed), 0] = -1
        links[1 + len(fixed) : int(starts[-1]), 0] = np.tile(np.arange(width), int(full.sum()))
        links[int(starts[-1]) :, 0] = label[outside]
        lists = np.arange(int(starts[-1]), made, dtype=np.int32)
        chain(place[owner[outside]].astype(np.int64), lists, head, links)
        self.arrays = Index(block, head, links, number[a.transitions], number[a.initial], number[a.final], width)
        self.used = made
        return before

    def weight_of(self, attribute: int, label: int) -> int:
        """The number of the weight of a pair; 0 if it has none."""
        return int(number_of(self.arrays, attribute, label))

    def pack(self) -> dict[str, np.ndarray]:
        """The blocks of attributes, attribute and label of the other weights, and the numbers of transitions."""
        a, owner = self.arrays, self.owners()
        inside = np.zeros(self.used, dtype=bool)
        for c in range(a.width):
            inside[a.block[a.block > 0] + c] = True
        return {
            "block": a.block,
            "owner": np.where(inside, -1, owner).astype(np.int32),
            "label": np.where(inside, -1, a.links[: self.used, 0]).astype(np.int32),
            "transitions": a.transitions.reshape(-1),
            "initial": a.initial,
            "final": a.final,
            "width": np.array([a.width], np.int32),
        }

    @classmethod
    def unpack(cls, arrays: Arrays, labels: int, attributes: int, with_transitions: bool) -> WeightIndex:
        """What ``pack`` made; refuses what could not have come from it."""
        made = cls(with_transitions)
        owner, label, block = arrays["owner"], arrays["label"], arrays["block"]
        made.used = owner.size
        sizes = {"transitions": labels * labels, "initial": labels, "final": labels, "label": made.used}
        sizes |= {"owner": made.used, "block": attributes, "width": 1}
        for name, size in sizes.items():
            if arrays[name].dtype != np.int32 or arrays[name].shape != (size,):
                raise ValueError(f"the {name} of weights do not have the shape or type that this learner has")
        width = int(arrays["width"][0])
        tables = np.concatenate([arrays[name] for name in ("transitions", "initial", "final")])
        blocks = block[block > 0]
        sound = made.used > 0 and owner[0] == -1 and 0 <= width <= labels and block.min(initial=0) >= 0
        sound = sound and tables.min(initial=0) >= 0 and max(tables.max(initial=0), owner.min()) < made.used
        if not sound or owner.max() >= attributes or owner.min() < -1 or blocks.max(initial=0) + width > made.used:
            raise ValueError("weights belong to attributes that do not exist")
        mine = np.flatnonzero(owner >= 0)
        if len(mine) and (label[mine].min() < 0 or label[mine].max() >= labels):
            raise ValueError("weights belong to labels that do not exist")
        uses = np.zeros(made.used, np.int64)
        inside = (blocks[:, None] + np.arange(width)).reshape(-1)
        for numbers in (mine, inside, tables[tables > 0]):
            np.add.at(uses, numbers, 1)
        if uses.max(initial=0) > 1:
            raise ValueError("two attributes or transitions have the same weight")
        head, links = np.zeros(attributes, np.int32), np.zeros((made.used, 2), np.int32)
        links[:, 0] = np.where(owner >= 0, label, -1)
        links[inside, 0] = np.tile(np.arange(width), len(blocks))
        chain(owner[mine].astype(np.int64), mine.astype(np.int32), head, links)
        transitions = arrays["transitions"].reshape(labels, labels).copy()
        ends = arrays["initial"].copy(), arrays["final"].copy()
        made.arrays = Index(block.copy(), head, links, transitions, *ends, width)
        return made


# ----------------------------------------------------------------------------------------------------
# Compiled passes.


@compiled
def number_of(index: Any, attribute: Any, label: Any) -> Any:
    """The number of the weight of a pair; 0 if it has none."""
    if label < index.width and index.block[attribute] != 0:
        return np.int64(index.block[attribute] + label)
    j = np.int64(index.head[attribute])
    while j != 0 and index.links[j, 0] != label:
        j = np.int64(index.links[j, 1])
    return j


@compiled
def add_pairs(rows: Any, codes: Any, index: Any, start: Any, used: Any, limits: Any) -> Any:
    """Number the pairs of sentences from ``start`` on; stops before a sentence for which there may be no room."""
    for k in range(start, len(limits)):
        first, last = rows.offsets[k], rows.offsets[k + 1]
        if used[0] + rows.indptr[last] - rows.indptr[first] > len(index.links):
            return k
        for t in range(first, last):
            for p in range(rows.indptr[t], rows.indptr[t + 1]):
                a = rows.indices[p]
                if number_of(index, a, codes[t]) == 0:
                    j = used[0]
                    index.links[j, 0] = codes[t]
                    index.links[j, 1] = index.head[a]
                    index.head[a] = j
                    used[0] += 1
        limits[k] = used[0]
    return len(limits)


@compiled
def own_weights(index: Any, owner: Any) -> None:
    """The attribute of each weight, by walking through all blocks and lists."""
    for a in range(len(index.head)):
        if index.block[a] != 0:
            for c in range(index.width):
                owner[index.block[a] + c] = a
        j = index.head[a]
        while j != 0:
            owner[j] = a
            j = index.links[j, 1]


@compiled
def chain(owners: Any, numbers: Any, head: Any, links: Any) -> None:
    """Put weights into the lists of their attributes; the last one comes first, as if they had been added in order."""
    for n in range(len(numbers)):
        links[numbers[n], 1] = head[owners[n]]
        head[owners[n]] = numbers[n]


@compiled
def add_emissions(rows: Any, first: Any, last: Any, index: Any, w: Any, emissions: Any, at: Any) -> None:
    """The score of each label at the tokens ``first`` to ``last``, into rows of the emissions from ``at`` on."""
    labels, plain, end, width = emissions.shape[1], len(rows.values) == 0, rows.indptr[last], index.width
    for t in range(first, last):
        row = emissions[at + t - first]
        for c in range(labels):
            row[c] = 0.0
        for p in range(rows.indptr[t], rows.indptr[t + 1]):
            if p + SOON < end:
                prefetch(index.head, rows.indices[p + SOON])
                prefetch(index.block, rows.indices[p + SOON])
            if p + SOON // 2 < end:
                soon = index.block[rows.indices[p + SOON // 2]]
                if soon == 0:
                    soon = index.head[rows.indices[p + SOON // 2]]
                    prefetch(index.links, 2 * soon)  # two numbers a weight
                prefetch(w, soon)
            x = 1.0 if plain else rows.values[p]
            b = index.block[rows.indices[p]]
            if b != 0:
                for c in range(width):
                    row[c] += x * w[b + c]
            j = index.head[rows.indices[p]]
            while j != 0:
                row[index.links[j, 0]] += x * w[j]
                j = index.links[j, 1]
