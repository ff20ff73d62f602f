"""Learners with one weight for each pair of attribute and label, and for each transition: what they share.

The state is the engine's ``Training`` with one output, whose columns are the weights that ``WeightIndex`` numbers. So
rules, geometries, stabilizers, growing and the model file are those of all linear learners.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from onlearn.data.batch import Sentences
from onlearn.engine.passes import shuffled
from onlearn.engine.protocol import layout
from onlearn.engine.spec import Parameter, param, parameters
from onlearn.engine.training import Training
from onlearn.model_schema import NESTED, Arrays, Record, one_of, under
from onlearn.sequence import loops
from onlearn.sequence.attributes import NamedFeatures
from onlearn.sequence.base import Contribution, Progress, SequenceLearner, Strong, Watch
from onlearn.sequence.extraction import TemplateFeatures
from onlearn.sequence.lattice import Lattice
from onlearn.sequence.templates import Template
from onlearn.sequence.token_rows import TokenRows
from onlearn.sequence.weight_index import WeightIndex, add_emissions
from onlearn.threads import over_rows

TEMPLATE = "a template in the manner of CRF++, 'default' or None"
SEGMENT = 4096  # sequences between two looks at the keyboard
NOT_FINITE = "the learner stopped at sequence {}: its scores are not finite numbers; scale the values of attributes"


KINDS: dict[str, Any] = {"template": TemplateFeatures, "given": NamedFeatures}  # of features, as files name them


class Shared:
    """The parameters that they share."""

    template: str | None = param(
        None, "what attributes tokens have, if they are words", kind="other", allowed=TEMPLATE, words=(None,)
    )
    min_count: int = param(1, "fit leaves out attributes of fewer tokens", kind="whole", at_least=1)
    early_stopping: bool = param(
        False, "whether fit holds sequences out and ends with the weights that are best on them", kind="truth"
    )
    validation_fraction: float = param(
        0.1, "the part of the sequences that is held out", kind="number", above=0, below=1
    )
    patience: int = param(
        3,
        "looks at them (after each pass, or five iterations) without progress after which fit ends",
        kind="whole",
        at_least=1,
    )
    random_state: Any = param(
        None,
        "what the order of the sequences depends on",
        kind="other",
        allowed="a whole number, a RandomState or None",
    )


SHARED: dict[str, Parameter] = parameters(dataclass(Shared))


def order_of(seed: int, turn: int, sequences: int, shuffle: bool) -> np.ndarray:
    """The order of a pass; it depends on the seed and the number of the pass alone."""
    if not shuffle:
        return np.arange(sequences)
    return shuffled(sequences, seed, turn)


class LinearSequenceLearner(SequenceLearner):
    """What structured perceptrons and conditional random fields share."""

    FIXED: tuple[str, ...] = ("template",)

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        self.index: WeightIndex = WeightIndex()
        self.training: Training | None = None
        self._decoding: tuple[np.ndarray, Lattice] | None = None  # weights and lattice, for as long as they hold

    # ------------------------------------------------------------------ rows

    def _make_features(self, sentences: Any) -> Any:
        """What makes rows of such sentences; the template decides, or the attributes are given."""
        given = self.settings.template
        if not isinstance(sentences, Sentences):
            if given is not None:
                raise ValueError("template= has no use with attributes that are given: give words, or no template")
            return NamedFeatures()
        columns = list(sentences.columns)
        template = Template.default(columns) if given in (None, "default") else Template.parse(given, "template")
        return TemplateFeatures(template, columns)

    def _transitions(self) -> bool:
        """Whether labels depend on their neighbours."""
        return bool(getattr(getattr(self.features, "template", None), "transitions", True))

    def _new_training(self) -> Training:
        """A training of no weights yet."""
        raise NotImplementedError

    def _take_in(self, sentences: Any, codes: np.ndarray) -> tuple[TokenRows, np.ndarray]:
        """Rows of sentences to learn from, and the weights there are at each; all that is new is added."""
        if self.features is None:
            self.features = self._make_features(sentences)
            self.index = WeightIndex(self._transitions())
        rows = self.features.learn_transform(sentences)
        return rows, self._number(rows, codes)

    def _number(self, rows: TokenRows, codes: np.ndarray, at_once: bool = False) -> np.ndarray:
        """The weights there are at each sentence; ``at_once`` all of them at every one, as ``fit`` has it."""
        self.index.grow_labels(len(self.labels))
        self.index.grow_attributes(self.features.size)
        limits = self.index.add(rows, codes)
        if at_once:
            self.index.arrange(np.ones(self.index.used, dtype=bool), blocks=True)
            limits[:] = self.index.used
        if self.training is None:
            self.training = self._new_training()
        self.training.grow(max(1, self.index.used - 1), 1)
        self._decoding = None
        return limits

    def _without_rare(self, rows: TokenRows, least: int) -> TokenRows:
        """Rows without attributes that come less often; the features forget them."""
        if least <= 1:
            return rows
        kept = np.bincount(rows.indices, minlength=self.features.size) >= least
        self.features.keep(kept)
        number = np.cumsum(kept) - 1
        there = kept[rows.indices]
        sums = np.concatenate([[0], np.cumsum(there)])
        values = rows.values[there] if len(rows.values) else rows.values
        return TokenRows(rows.offsets, sums[rows.indptr], number[rows.indices[there]].astype(np.int32), values)

    # ------------------------------------------------------------------ learning

    def _room(self, rows: TokenRows) -> tuple[Any, Any]:
        """Room for the longest of these sequences, and for a difference of features."""
        weights = len(self._state().g.w)
        longest = int(np.diff(rows.offsets).max(initial=1))
        return loops.make_room(weights, len(self.labels), longest), loops.make_difference(weights)

    def _state(self) -> Training:
        assert self.training is not None
        return self.training

    def _pass(self, rows: TokenRows, codes: np.ndarray, limits: np.ndarray, order: np.ndarray, turn: tuple[int, int],
              watch: Watch | None) -> None:  # fmt: skip
        """One pass over sequences in an order, told to ``watch`` when it is done."""
        training = self._state()
        training._own()
        training._handed = None
        room, difference = self._room(rows)
        training.begin_pass()
        for start in range(0, len(order), SEGMENT):
            part = np.ascontiguousarray(order[start : start + SEGMENT])
            done = self._learn_part(rows, part, codes, limits, room, difference)
            if done < len(part):
                raise ValueError(NOT_FINITE.format(int(part[done]) + 1))
        entry = training.end_pass()
        self._decoding = None
        self.sequences += len(order)
        self.tokens += rows.tokens
        self.passes += 1
        if watch is not None:
            watch(Progress(*turn, self.tokens, int(room.wrong[0]), entry["loss"]))

    def _learn_part(self, rows: TokenRows, order: np.ndarray, codes: np.ndarray, limits: np.ndarray, room: Any,
                    difference: Any) -> int:  # fmt: skip
        """Learn from some sequences by the compiled loop; returns how many were learned from."""
        raise NotImplementedError

    def _learn_more(self, sentences: Any, codes: np.ndarray, watch: Watch | None) -> None:
        rows, limits = self._take_in(sentences, codes)
        self._pass(rows, codes, limits, np.arange(len(limits)), (1, 1), watch)

    # ------------------------------------------------------------------ predicting

    def weights(self) -> np.ndarray:
        """The weights handed out, by number; that of number 0 is 0."""
        return self._state().weights()[:, 0]

    def _decoder(self) -> tuple[np.ndarray, Lattice]:
        if self._decoding is None:
            w, a = np.ascontiguousarray(self.weights()), self.index.arrays
            self._decoding = w, Lattice(w[a.transitions], w[a.initial], w[a.final])
        return self._decoding

    def lattice(self) -> Lattice:
        """The weights of first labels, transitions and last labels."""
        self._trained()
        return self._decoder()[1]

    def emissions(self, X: Any) -> np.ndarray:
        """The score of each label at each token of all sequences, transitions apart."""
        self._trained()
        rows = X if isinstance(X, TokenRows) else self.features.transform(self._taken(X))
        w, _ = self._decoder()
        a, out = self.index.arrays, np.empty((rows.tokens, len(self.labels)))

        def work(start: int, stop: int) -> None:
            add_emissions(rows, start, stop, a, w, out, start)

        over_rows(work, rows.tokens, 4 * len(rows.indices))
        return out

    def _best(self, sentences: Any, allowed: Any) -> np.ndarray:
        return self.decode(self.features.transform(sentences), allowed)

    def decode(self, rows: TokenRows, allowed: Any = None) -> np.ndarray:
        """The labels of the best paths that constraints allow."""
        lattice = self.lattice() if allowed is None else self.lattice().constrained(*allowed)
        return lattice.best(self.emissions(rows), rows.offsets)[0]

    # ------------------------------------------------------------------ what it has learned

    def described(self) -> dict[str, Any]:
        """The numbers of attributes and of weights that are not zero."""
        w = self.weights()
        return {
            "attributes": int(self.features.size),
            "weights": int(np.count_nonzero(w)),
            "transitions": int(np.count_nonzero(self._decoder()[1].transitions)),
        }

    def strongest(self, top: int = 10, label: str | None = None) -> tuple[list[Strong], list[Strong]]:
        """The largest weights (by size) of attributes for each label, or for one; and of transitions."""
        self._trained()
        if label is not None and label not in self.labels:
            raise ValueError(f"there is no label {label!r}; the labels are {', '.join(self.labels[:20])}")
        w, lattice = self._decoder()
        owner, label_of = self.index.owners(), self.index.arrays.links[: self.index.used, 0]
        found = []
        for c, name in enumerate(self.labels):
            if label not in (None, name):
                continue
            mine = np.flatnonzero((owner >= 0) & (label_of == c) & (w[: len(owner)] != 0))
            mine = mine[np.argsort(-np.abs(w[mine]), kind="stable")[:top]]
            names = self.features.names(owner[mine])
            found += [Strong(name, one, float(w[j])) for one, j in zip(names, mine)]
        order = np.argsort(-np.abs(lattice.transitions), axis=None, kind="stable")
        pairs = [divmod(int(n), len(self.labels)) for n in order]
        moves = [
            Strong(self.labels[b], self.labels[a], float(lattice.transitions[a, b]))
            for a, b in pairs
            if lattice.transitions[a, b] != 0 and label in (None, self.labels[b])
        ]
        return found, moves[:top]

    def contributions(self, sentences: Any, token: int, allowed: Any = None) -> tuple[str, str, list[Contribution]]:
        """The label of a token in its best path, its rival, and what makes the difference; the largest first."""
        self._trained()
        w, lattice = self._decoder()
        rows = self.features.transform(sentences)
        path = self.decode(rows, allowed)
        if not 0 <= token < len(path):
            raise ValueError(f"there is no token {token + 1}: there are {len(path)}")
        chosen = int(path[token])
        others = [c for c in range(len(self.labels)) if c != chosen]
        if not others:
            return self.labels[chosen], "", []
        k = int(np.searchsorted(rows.offsets, token, side="right")) - 1
        first, last = int(rows.offsets[k]), int(rows.offsets[k + 1]) - 1
        lines = self._beside(lattice, path, token, first, last)
        scores = self.emissions(rows)[token] + sum(lines.values())
        if allowed is not None:  # a rival that is allowed, if there is one
            beside = self._beside(lattice.constrained(*allowed), path, token, first, last)
            others = [c for c in others if all(line[c] > -np.inf for line in beside.values())] or others
        rival = max(others, key=lambda c: (scores[c], -c))
        parts = []
        for p in range(int(rows.indptr[token]), int(rows.indptr[token + 1])):
            x = float(rows.values[p]) if len(rows.values) else 1.0
            weight = float(w[self._number_of(rows, p, chosen)] - w[self._number_of(rows, p, rival)])
            if weight:
                parts.append(Contribution(self.features.names([rows.indices[p]])[0], x, weight, x * weight))
        for name, line in lines.items():
            weight = float(line[chosen] - line[rival])
            if weight:
                parts.append(Contribution(name, 1.0, weight, weight))
        parts.sort(key=lambda part: -abs(part.amount))
        return self.labels[chosen], self.labels[rival], parts

    def _beside(self, lattice: Lattice, path: np.ndarray, token: int, first: int, last: int) -> dict[str, np.ndarray]:
        """The weights of each label at a token that stand for what is before and after it."""
        come = "beginning" if token == first else f"after {self.labels[path[token - 1]]}"
        go = "end" if token == last else f"before {self.labels[path[token + 1]]}"
        return {
            come: lattice.initial if token == first else lattice.transitions[path[token - 1]],
            go: lattice.final if token == last else lattice.transitions[:, path[token + 1]],
        }

    def _number_of(self, rows: TokenRows, p: int, label: int) -> int:
        return self.index.weight_of(int(rows.indices[p]), label)

    # ------------------------------------------------------------------ the model file

    def _needed(self) -> np.ndarray:
        """Whether each weight is needed for learning to go on: its state is not that of a new one."""
        training, used = self._state(), self.index.used
        fresh, needed = self._new_training(), np.zeros(self.index.used, dtype=bool)
        for state, new in ((training.g, fresh.g), (training.st, fresh.st)):
            for name, holds in layout(type(state)).items():
                if holds == "weights":
                    needed |= getattr(state, name)[:used] != getattr(new, name)[-1]
        return needed

    def compact(self) -> None:
        """Let go of weights that are as new ones, and of attributes without weights."""
        needed, owner = self._needed(), self.index.owners()
        stay = np.zeros(self.features.size, dtype=bool)
        stay[owner[needed & (owner >= 0)]] = True
        before = self.index.arrange(needed, stay)
        self._state().select(before[1:] - 1)
        self.features.keep(stay)
        self._decoding = None

    def _pack_learned(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        facts, arrays = self.features.pack()
        state, weights = self._state().pack()
        kind = "template" if isinstance(self.features, TemplateFeatures) else "given"
        made = {f"features.{name}": array for name, array in arrays.items()}
        made |= {f"index.{name}": array for name, array in self.index.pack().items()}
        made |= {f"training.{name}": array for name, array in weights.items()}
        return {"kind": kind, "features": facts, "training": state}, made

    FILED: ClassVar[Record] = Record(
        {**SequenceLearner.FILED.facts, "kind": one_of(*KINDS), "features": NESTED, "training": NESTED}
    )

    def _unpack_learned(self, facts: dict[str, Any], arrays: Arrays) -> None:
        self.features = KINDS[facts["kind"]].unpack(facts["features"], under("features.", arrays))
        labels, transitions = len(self.labels), self._transitions()
        self.index = WeightIndex.unpack(under("index.", arrays), labels, self.features.size, transitions)
        self.training = Training.unpack(facts["training"], under("training.", arrays))
        if self.training.outputs != 1 or self.training.features != max(1, self.index.used - 1):
            raise ValueError("the weights do not have the shape that the header says")
        fresh = self._new_training()
        for name in ("geometry", "stabilizer"):
            if repr(getattr(fresh, name)) != repr(getattr(self.training, name)):
                raise ValueError(f"the weights were learned with another {name} than the header says")
        self._decoding = None
