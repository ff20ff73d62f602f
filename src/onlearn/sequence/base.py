"""What all sequence learners share: parameters, labels, input and output, counts, the model file.

A sequence learner is a set of parameters (its ``composition``), the ``labels`` it knows, ``features`` that make numbers
of tokens, and what it has learned. A new kind of learner is one subclass of ``SequenceLearner``:

- ``composition`` names its parameters, and ``engine.registry`` names it;
- ``_learn_all`` learns from all sentences anew (``fit``), ``_learn_more`` goes on (``partial_fit``);
- ``lattice`` and ``emissions`` are the scores of its paths, ``_best`` gives the labels of the best one;
- ``strongest`` and ``contributions`` say what it has learned, and why it labelled a token as it did;
- ``_pack_learned`` and ``_unpack_learned`` say what the model file holds.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onlearn.data.batch import Sentences, hash_name
from onlearn.engine.compositions import Composition, check_settings, refuse_changes, seed_of
from onlearn.engine.number_names import label_name
from onlearn.engine.passes import InterruptedAfterwards, first_ctrl_c
from onlearn.inert_text import as_line, facts_html, number, number_of
from onlearn.model_file import COUNT, NAMES, check_facts
from onlearn.sequence.inputs import as_sentences, flat_labels
from onlearn.sequence.lattice import Lattice

if TYPE_CHECKING:
    from typing_extensions import Self


class Strong(NamedTuple):
    """A weight that was learned: of an attribute and a label, or of a transition between labels."""

    label: str
    attribute: str  # of a transition: the label before
    weight: float


class Contribution(NamedTuple):
    """What one attribute, or the transition from the label before, adds to the score of a label at a token."""

    name: str
    value: float
    weight: float  # of the label less that of its rival
    amount: float


class Progress(NamedTuple):
    """How far learning has come: told after each pass or iteration."""

    turn: int
    of: int
    tokens: int  # learned from so far
    wrong: int  # tokens of this pass that were labelled wrongly before learning from them; -1: not counted
    loss: float  # of this pass or iteration, a sequence


Watch = Callable[[Progress], None]


def _short(value: Any) -> str:
    """A value in a line: of a text of several lines, such as a template, how many there are."""
    lines = len(value.splitlines()) if isinstance(value, str) else 1
    return f"<{lines} lines>" if lines > 1 else " ".join(repr(value).split())


class SequenceLearner:
    """What is the same for every sequence learner; see the module for what a new one has to add."""

    name: str
    has_marginals: bool = False  # whether ``predict_marginals`` has probabilities to give
    words_only: bool = False  # whether it has no use for other columns of tokens than the words

    def __init__(self, **params: Any) -> None:
        self.name = self.composition.name
        self.configure({**self.defaults(), **params})
        self.labels: list[str] = []
        self.features: Any = None  # what makes rows of tokens, once learning has begun
        self.words: set[int] = set()  # hashes of the words of the sentences learned from
        self.sequences: int = 0  # learned from, each pass counted
        self.tokens: int = 0
        self.passes: int = 0
        self.seed: int = 0
        self.began_with: dict[str, Any] = {}
        self.lock: Any = threading.RLock()

    # ------------------------------------------------------------------ parameters

    @property
    def composition(self) -> Composition:
        """Which parameters it has, and what they mean."""
        raise NotImplementedError

    @property
    def stored_as(self) -> str:
        """What the model file calls it."""
        return self.name

    def defaults(self) -> dict[str, Any]:
        """The parameters as they are if nothing is said."""
        return {name: one.default for name, one in self.composition.parameters.items()}

    def configure(self, values: dict[str, Any]) -> None:
        """Take the values of all parameters."""
        unknown = values.keys() - self.composition.parameters.keys()
        if unknown:
            raise TypeError(f"{self.name} has no parameter {min(unknown)!r}")
        self.settings: SimpleNamespace = SimpleNamespace(**values)

    def get_params(self, deep: bool = False) -> dict[str, Any]:
        """The parameters by name, in alphabetical order."""
        return {name: getattr(self.settings, name) for name in sorted(self.composition.parameters)}

    def set_params(self, **params: Any) -> Self:
        """Change parameters."""
        self.configure({**self.get_params(), **params})
        return self

    @property
    def choices(self) -> dict[str, Any]:
        """The rule, geometry and stabilizer that the parameters mean."""
        return self.composition.choices(vars(self.settings))

    def check(self) -> None:
        """Refuse parameters that cannot be."""
        check_settings(vars(self.settings), self.composition.own)
        self.choices  # noqa: B018  a wrong spelling raises

    def __repr__(self) -> str:
        usual = self.defaults()
        changed = {name: one for name, one in self.get_params().items() if repr(one) != repr(usual[name])}
        shown = [f"{name}={_short(one)}" for name, one in changed.items()]
        return f"{self.name}({', '.join(shown)})"

    def _repr_html_(self) -> str:
        return facts_html(repr(self), self.facts())

    def facts(self) -> list[tuple[str, str]]:
        """What a notebook shows of it: its labels, and what it has learned from."""
        if not self.passes:
            return [("learned", "nothing yet")]
        made = [("labels", number_of(self.labels)), ("sequences", number(int(self.sequences)))]
        made += [("tokens", f"{self.tokens:,}, over all passes"), ("passes", number(int(self.passes)))]
        return [*made, *((name.replace("_", " "), as_line(value)) for name, value in self.described().items())]

    def __getstate__(self) -> dict[str, Any]:
        with self.lock:  # copies, for another thread may go on learning while they are pickled
            return {name: copy.deepcopy(value) for name, value in self.__dict__.items() if name != "lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, lock=threading.RLock())

    FIXED: tuple[str, ...] = ()  # parameters that must not change while learning goes on

    def _depends_on(self) -> dict[str, Any]:
        return {name: getattr(self.settings, name) for name in self.FIXED}

    # ------------------------------------------------------------------ learning

    def fit(self, X: Any, y: Any = None, watch: Watch | None = None) -> Self:
        """Learn from all sequences, anew."""
        self.check()
        sentences = self._taken(X)
        with self.lock:
            fresh = type(self)(**vars(self.settings))
            fresh.seed = seed_of(getattr(self.settings, "random_state", 0))
            fresh.began_with = copy.deepcopy(self._depends_on())
            codes = fresh._encode(sentences, y)
            fresh._learn_all(sentences, codes, watch)
            fresh._know(sentences)
            self.__dict__.update({**fresh.__dict__, "lock": self.lock})  # all or nothing
        return self

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, watch: Watch | None = None) -> Self:
        """Learn from sequences once, in their order, and go on from what was learned before.

        Labels and attributes that are new are taken in; ``classes`` are labels that may come later.
        """
        self.check()
        sentences = self._taken(X)
        with self.lock, first_ctrl_c() as pressed:
            begins = self.features is None
            if not begins:
                refuse_changes(self.began_with, self._depends_on())
                self._check_form(sentences)
            # What is left to fail: labels, and steps out of numbers that are not 1. To copy all weights takes long.
            labels = list(self.labels)
            spare = self.__getstate__() if begins or len(getattr(sentences, "values", ())) else {}
            try:
                if begins:
                    self.seed = seed_of(getattr(self.settings, "random_state", 0))
                    self.began_with = copy.deepcopy(self._depends_on())
                for label in classes if classes is not None else ():
                    if (name := label_name(label)) not in self.labels:
                        self.labels.append(name)
                codes = self._encode(sentences, y)
                self._learn_more(sentences, codes, watch)
                self._know(sentences)
            except BaseException:
                self.__dict__.update(spare or {"labels": labels})
                raise
        if pressed():
            raise InterruptedAfterwards("the sequences were learned")
        return self

    def _check_form(self, sentences: Any) -> None:
        """Refuse sentences that are not of the form of those learned from."""
        self.features.check(sentences)

    def _learn_all(self, sentences: Any, codes: np.ndarray, watch: Watch | None) -> None:
        """Learn from all sentences; ``codes`` has the position in ``labels`` of the label of each token.

        In a learner that is to be semi-supervised, -1 is a token without a label.
        """
        raise NotImplementedError

    def _learn_more(self, sentences: Any, codes: np.ndarray, watch: Watch | None) -> None:
        """Learn from sentences once, in their order."""
        raise NotImplementedError

    def _taken(self, X: Any) -> Any:
        """Sequences in the form in which this learner takes them."""
        return as_sentences(X)

    def _takes_unlabelled(self) -> bool:
        """Whether tokens may lack a label."""
        return False

    def _encode(self, sentences: Any, y: Any) -> np.ndarray:
        """The position in ``labels`` of the label of each token; new labels are added, those of ``fit`` in order.

        ``y`` is a list of lists of labels, or one array of labels, one a token.
        """
        flat = flat_labels(y, sentences, self._takes_unlabelled())
        if not len(flat) and not self.labels:
            raise ValueError("there are no tokens to learn from: X is empty")
        distinct = {label for label in set(flat.tolist()) if label is not None}
        new = sorted(distinct - set(self.labels))
        self.labels = [*self.labels, *new]
        position = {label: n for n, label in enumerate(self.labels)}
        position[None] = -1  # type: ignore[index]
        return np.fromiter((position[label] for label in flat), dtype=np.int64, count=len(flat))

    def _know(self, sentences: Any) -> None:
        """Take down the words that were learned from, so that known and unknown ones can be told apart."""
        if isinstance(sentences, Sentences):
            self.words.update(int(hash_name(word)) for word in set(sentences.words.tolist()))

    def known(self, sentences: Sentences) -> np.ndarray:
        """Whether each word was among those learned from."""
        words = sentences.words.tolist()
        have = {word: int(hash_name(word)) in self.words for word in set(words)}
        return np.fromiter((have[word] for word in words), dtype=bool, count=len(words))

    # ------------------------------------------------------------------ predicting

    def _trained(self) -> None:
        if self.features is None:
            raise ValueError(f"this {self.name} has not learned anything yet: call fit first")

    def predict(self, X: Any) -> list[list[str]]:
        """The labels of the best path of each sequence."""
        sentences = self._taken(X)
        codes = self.predict_codes(sentences)
        names = np.array(self.labels, dtype=object)
        return [names[codes[a:b]].tolist() for a, b in zip(sentences.offsets[:-1], sentences.offsets[1:])]

    def predict_codes(self, sentences: Any, allowed: Any = None) -> np.ndarray:
        """The position in ``labels`` of the label of each token; ``allowed`` are ``spans.Constraints``."""
        self._trained()
        with self.lock:
            return self._best(sentences, allowed)

    def predict_marginals(self, X: Any, allowed: Any = None) -> list[list[dict[str, float]]]:
        """The probability of each label at each token."""
        sentences = self._taken(X)
        rows = self.marginals(sentences, allowed).tolist()
        named = [dict(zip(self.labels, row)) for row in rows]
        return [named[a:b] for a, b in zip(sentences.offsets[:-1], sentences.offsets[1:])]

    def marginals(self, sentences: Any, allowed: Any = None) -> np.ndarray:
        """The same as one array, a row for each token and a column for each label.

        With ``allowed`` they are those of the paths that these constraints allow; of all paths where there is none.
        """
        self._trained()
        self._check_probabilities()
        with self.lock:
            lattice, emissions = self.lattice(), self.emissions(sentences)
            if allowed is not None:
                found = lattice.constrained(*allowed).posterior(emissions, sentences.offsets)
                if (found.log_z > -np.inf).all():
                    return found.marginals
                none = np.repeat(found.log_z == -np.inf, np.diff(sentences.offsets))[:, np.newaxis]
                return np.where(none, lattice.posterior(emissions, sentences.offsets).marginals, found.marginals)
            return lattice.posterior(emissions, sentences.offsets).marginals

    def _check_probabilities(self) -> None:
        if not self.has_marginals:
            raise AttributeError(f"{self.name} has no probabilities: use CRF or HMM")

    def predict_k_best(self, X: Any, k: int = 5) -> list[list[tuple[list[str], float]]]:
        """The k best paths of each sequence, best first: labels and score.

        The score of a CRF or HMM is the logarithm of the path's probability among all paths of the sequence.
        """
        self._trained()
        sentences = self._taken(X)
        with self.lock:
            lattice, emissions, offsets = self.lattice(), self.emissions(sentences), sentences.offsets
            paths, scores = lattice.k_best(emissions, offsets, k)
            if self.has_marginals:
                scores = scores - lattice.log_z(emissions, offsets)
        names = np.array(self.labels, dtype=object)
        return [
            [(names[path[a:b]].tolist(), float(score)) for path, score in zip(paths, scores[:, n]) if score > -np.inf]
            for n, (a, b) in enumerate(pairwise(offsets.tolist()))
        ]

    def predict_fixed(self, X: Any, y: Any) -> list[list[str]]:
        """The labels of the best path of each sequence among those with the labels of ``y``, where it is not None."""
        self._trained()
        sentences = self._taken(X)
        codes = self._known_codes(sentences, y, may_lack=True)
        with self.lock:
            path, scores = self.lattice().best(self.emissions(sentences), sentences.offsets, codes)
        if (scores == -np.inf).any():
            raise ValueError(f"no path of sequence {int(np.argmin(scores))} has these labels")
        names = np.array(self.labels, dtype=object)
        return [names[path[a:b]].tolist() for a, b in pairwise(sentences.offsets.tolist())]

    def log_probability(self, X: Any, y: Any) -> np.ndarray:
        """The log-probability of the labels of each sequence, given the sequence."""
        self._trained()
        self._check_probabilities()
        sentences = self._taken(X)
        codes = self._known_codes(sentences, y, may_lack=False)
        with self.lock:
            return self.lattice().log_probability(self.emissions(sentences), sentences.offsets, codes)

    def _known_codes(self, sentences: Any, y: Any, may_lack: bool) -> np.ndarray:
        """The position in ``labels`` of the label of each token, -1 for None; labels that are not known are refused."""
        flat = flat_labels(y, sentences, may_lack)
        position: dict[Any, int] = {None: -1, **{label: n for n, label in enumerate(self.labels)}}
        unknown = sorted(set(flat.tolist()) - position.keys(), key=str)
        if unknown:
            raise ValueError(f"the label {unknown[0]!r} is not known; the labels are {', '.join(self.labels[:20])}")
        return np.fromiter((position[label] for label in flat), dtype=np.int64, count=len(flat))

    def lattice(self) -> Lattice:
        """The weights of first labels, transitions and last labels."""
        raise NotImplementedError

    def emissions(self, X: Any) -> np.ndarray:
        """The score of each label at each token of all sequences, transitions apart."""
        raise NotImplementedError

    def score(self, X: Any, y: Any) -> float:
        """The share of tokens that are labelled right."""
        sentences = self._taken(X)
        gold = flat_labels(y, sentences, False)
        if not len(gold):
            raise ValueError("there are no tokens to score: X is empty")
        found = np.array(self.labels, dtype=object)[self.predict_codes(sentences)]
        return float(np.mean(found == gold))

    def _best(self, sentences: Any, allowed: Any) -> np.ndarray:
        raise NotImplementedError

    # ------------------------------------------------------------------ what it has learned

    def described(self) -> dict[str, Any]:
        """Facts for ``inspect`` and the report of a run, such as the number of attributes and of weights."""
        return {}

    def strongest(self, top: int = 10, label: str | None = None) -> tuple[list[Strong], list[Strong]]:
        """The largest weights (by size) of attributes for each label, or for one; and of transitions."""
        raise NotImplementedError

    def contributions(self, sentences: Any, token: int, allowed: Any = None) -> tuple[str, str, list[Contribution]]:
        """The label of a token in its best path, its rival, and what makes the difference; the largest first.

        The rival is the best other label there, all other labels of the path being as they are; "" if there is none.
        """
        raise NotImplementedError

    # ------------------------------------------------------------------ the model file

    def save(self, path: Any) -> None:
        """Write the learner to a ``.onl`` file, with all that it needs to go on learning."""
        from onlearn import model_file

        self._trained()
        with self.lock:
            model_file.save(self, path)

    FACTS = ("labels", "sequences", "tokens", "passes", "seed")

    def _pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        facts, arrays = self._pack_learned()
        words = np.array(sorted(self.words), dtype=np.uint64)
        mine = {name: getattr(self, name) for name in self.FACTS}
        return {"sequence": mine, **facts}, {"words": words, **arrays}

    def _unpack(self, facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        mine = facts["sequence"]
        check_facts(mine, {"labels": NAMES, **dict.fromkeys(self.FACTS[1:], COUNT)})
        if not mine["labels"] or len(set(mine["labels"])) < len(mine["labels"]):
            raise ValueError("the labels are not a list of different names")
        for name in self.FACTS:
            setattr(self, name, mine[name])
        self.words = set(arrays["words"].tolist())
        self.check()
        self.began_with = copy.deepcopy(self._depends_on())
        self._unpack_learned(facts, arrays)

    def _pack_learned(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        raise NotImplementedError

    def _unpack_learned(self, facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        raise NotImplementedError
