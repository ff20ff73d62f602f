"""The hidden Markov model: each label depends on the one before, each token on its label.

    P(x, y) = P(y_1) P(x_1 | y_1) P(y_2 | y_1) P(x_2 | y_2) ... P(end | y_n)

With labels its probabilities are counts (``chain``, ``emissions``, ``gaussian``), so learning takes one pass, and goes
on with more counts; without labels, or with some, Baum-Welch finds them. Rabiner (1989), Brants (2000).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from onlearn.data.batch import Sentences
from onlearn.engine.compositions import Composition, seed_of
from onlearn.engine.spec import Parameter, param, parameters
from onlearn.model_schema import NUMBERS, TRUTH, Arrays, Record, check_array
from onlearn.sequence.base import Contribution, Progress, SequenceLearner, Strong, Watch
from onlearn.sequence.baum_welch import baum_welch
from onlearn.sequence.chain import Chain
from onlearn.sequence.emissions import WordEmissions, whole
from onlearn.sequence.gaussian import GaussianEmissions, VectorSequences, as_vectors
from onlearn.sequence.inputs import GivenAttributes, as_sentences
from onlearn.sequence.lattice import Lattice

if TYPE_CHECKING:
    from typing_extensions import Self

LONGEST = 100_000  # tokens of a sequence that is drawn until it ends


class Settings:
    """The parameters of a hidden Markov model."""

    smoothing: str = param(
        "witten-bell", "how probability is left for what was not seen with a label", words=("witten-bell", "add-k")
    )
    k: float = param(0.01, "with smoothing='add-k': what is added to each count", kind="number", at_least=0)
    max_suffix: int = param(
        5, "the most letters at the end of an unknown word that tell its label", kind="whole", at_least=0
    )
    emissions: str = param(
        "categorical",
        "what a label emits: 'categorical' words, or 'gaussian' rows of numbers",
        words=("categorical", "gaussian"),
    )
    min_variance: float = param(1e-3, "the least variance with emissions='gaussian'", kind="number", above=0)
    n_states: int = param(2, "labels (s0, s1, ...) that fit finds if none are given", kind="whole", at_least=1)
    iterations: int = param(100, "the most iterations of Baum-Welch", kind="whole", at_least=1)
    tol: float = param(
        1e-5,
        "Baum-Welch ends when an iteration raises the log-likelihood of a token by less",
        kind="number",
        at_least=0,
    )
    random_state: Any = param(
        None,
        "what the start of Baum-Welch without labels depends on",
        kind="other",
        allowed="a whole number, a RandomState or None",
    )


OWN: dict[str, Parameter] = parameters(dataclass(Settings))
COMPOSITION = Composition("HMM", "The hidden Markov model, with or without labels to learn from.", shared=(), own=OWN)


class HMMLearner(SequenceLearner):
    """A hidden Markov model of words, or of rows of numbers."""

    has_marginals = True
    words_only = True
    FIXED = ("emissions",)
    features: Any  # the emissions, once learning has begun

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        self.chain: Chain = Chain.empty(0)
        self.found: bool = False  # whether Baum-Welch found the probabilities, which are not smoothed then
        self.log_likelihoods_: list[float] = []
        self.all_labelled: bool = False  # whether no token may lack a label now

    @property
    def composition(self) -> Composition:
        return COMPOSITION

    # ------------------------------------------------------------------ input

    @property
    def gaussian(self) -> bool:
        """Whether it is of rows of numbers, and not of words."""
        if self.features is None:
            return bool(self.settings.emissions == "gaussian")
        return isinstance(self.features, GaussianEmissions)

    def _taken(self, X: Any) -> Any:
        return X if isinstance(X, (VectorSequences, Sentences)) else _as_sequences(X, self.gaussian)

    def _takes_unlabelled(self) -> bool:
        return not self.all_labelled

    def _encode(self, sentences: Any, y: Any) -> np.ndarray:
        tokens = int(sentences.offsets[-1])
        codes = np.full(tokens, -1) if y is None else super()._encode(sentences, y)
        if not tokens and not self.labels:
            raise ValueError("there are no tokens to learn from: X is empty")
        if not self.labels:
            self.labels = [f"s{n}" for n in range(self.settings.n_states)]
        return codes

    # ------------------------------------------------------------------ learning

    def fit(self, X: Any, y: Any = None, watch: Watch | None = None) -> Self:
        """Learn from all sequences, anew.

        Without labels (``y`` is None), or where some tokens have None for a label, by Baum-Welch.
        """
        self.check()
        return super().fit(_as_sequences(X, self.settings.emissions == "gaussian"), y, watch)

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, watch: Watch | None = None) -> Self:
        """Count further sequences with their labels. However they are cut into calls, the counts are the same."""
        if y is None:
            raise ValueError("partial_fit needs labels: without, Baum-Welch needs all sequences at once, in fit")
        if self.found:
            raise ValueError("this HMM was found by Baum-Welch, to which no counts can be added: fit it anew")
        with self.lock:
            self.all_labelled = True
            try:
                return super().partial_fit(X, y, classes, watch)
            finally:
                self.all_labelled = False

    def _learn_all(self, sentences: Any, codes: np.ndarray, watch: Watch | None) -> None:
        if (codes >= 0).all():
            self._learn_more(sentences, codes, watch)
            return
        self._begin()
        rng, settings, labels = np.random.default_rng(self.seed), self.settings, len(self.labels)
        self.features.add(sentences, codes, labels)
        if (codes >= 0).any():
            self.chain.add(codes, sentences.offsets)
            start = self.chain.smoothed(settings.smoothing, settings.k)
            self.chain = Chain(np.exp(start.initial), np.exp(start.transitions), np.exp(start.final))
        else:
            self.chain = Chain.random(labels, rng)
        data = self.features.take_in(sentences, labels)
        self.features.begin(data, codes, rng, settings.max_suffix)
        self.chain, self.log_likelihoods_ = baum_welch(
            self.chain, self.features, data, sentences.offsets, codes, settings.iterations, settings.tol, watch
        )
        self.found = True
        self._count(sentences, len(self.log_likelihoods_))

    def _learn_more(self, sentences: Any, codes: np.ndarray, watch: Watch | None) -> None:
        self._begin()
        self.features.add(sentences, codes, len(self.labels))
        self.chain = self.chain.grown(len(self.labels))
        self.chain.add(codes, sentences.offsets)
        self._count(sentences, 1)
        if watch is not None:
            watch(Progress(1, 1, len(codes), -1, 0.0))

    def _begin(self) -> None:
        labels = len(self.labels)
        if self.features is None:
            self.features = (
                GaussianEmissions(labels, float(self.settings.min_variance)) if self.gaussian else WordEmissions(labels)
            )
        self.chain = self.chain.grown(labels)

    def _count(self, sentences: Any, passes: int) -> None:
        self.sequences += passes * len(sentences)
        self.tokens += passes * int(sentences.offsets[-1])
        self.passes += passes

    # ------------------------------------------------------------------ predicting

    def lattice(self) -> Lattice:
        """The logarithms of the probabilities of first labels, of transitions and of the end."""
        self._trained()
        settings = self.settings
        return self.chain.maximum() if self.found else self.chain.smoothed(settings.smoothing, settings.k)

    def emissions(self, X: Any) -> np.ndarray:
        """The logarithm of the probability of each token given each label."""
        self._trained()
        sentences = self._taken(X)
        if isinstance(sentences, VectorSequences) != self.gaussian:
            raise ValueError(f"this HMM is of {'rows of numbers' if self.gaussian else 'words'}, and X is not")
        if self.gaussian:
            self.features.floor = float(self.settings.min_variance)
            return np.asarray(self.features.likelihoods(self.features.fits(sentences)))
        table, classes = self._table()
        return np.take(table, self.features.rows(sentences, classes), axis=0)

    def _table(self) -> tuple[np.ndarray, Any]:
        settings = self.settings
        made: tuple[np.ndarray, Any] = self.features.made(
            "none" if self.found else settings.smoothing, float(settings.k), int(settings.max_suffix)
        )
        return made

    def _best(self, sentences: Any, allowed: Any) -> np.ndarray:
        lattice = self.lattice() if allowed is None else self.lattice().constrained(*allowed)
        return lattice.best(self.emissions(sentences), sentences.offsets)[0]

    def log_likelihood(self, X: Any) -> np.ndarray:
        """The log-probability of each sequence, summed over all labels that it may have."""
        sentences = self._taken(X)
        with self.lock:
            return self.lattice().log_z(self.emissions(sentences), sentences.offsets)

    def score(self, X: Any, y: Any = None) -> float:
        """The share of tokens that are labelled right; without labels the log-probability of all sequences."""
        return float(self.log_likelihood(X).sum()) if y is None else super().score(X, y)

    def sample(self, n: int = 1, length: int | None = None, random_state: Any = None) -> tuple[list[Any], list[Any]]:
        """Draw n sequences and their labels; each of a length, or until it ends by itself."""
        for name, value in (("n", n), ("length", length)):
            if value is not None and (not isinstance(value, (int, np.integer)) or value < 0):
                raise ValueError(f"{name} must be a whole number of at least 0, not {value!r}")
        with self.lock:
            lattice, rng = self.lattice(), np.random.default_rng(seed_of(random_state))
            after = np.exp(np.column_stack([lattice.transitions, lattice.final]))
            if length is not None:
                after = after[:, :-1]
            begins, follows = np.cumsum(np.exp(lattice.initial)), np.cumsum(after, axis=1)
            paths = [_draw_path(begins, follows, length, rng) for _ in range(n)]
            codes = np.array([code for path in paths for code in path], dtype=np.int64)
            tokens = self._draw_tokens(codes, rng)
        ends = np.cumsum([0, *map(len, paths)]).tolist()
        parts = [tokens[a:b] for a, b in pairwise(ends)]
        return (
            parts if self.gaussian else [part.tolist() for part in parts],
            [[self.labels[code] for code in path] for path in paths],
        )

    def _draw_tokens(self, codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        if self.gaussian:
            means, variances = self.features.moments()
            return np.asarray(means.T[codes] + rng.normal(size=(len(codes), len(means))) * np.sqrt(variances.T[codes]))
        words = np.array(self.features.words, dtype=object)
        known = np.exp(self._table()[0][: len(words)])
        tokens = np.empty(len(codes), dtype=object)
        for code in np.unique(codes):
            here = np.flatnonzero(codes == code)
            tokens[here] = words[rng.choice(len(words), len(here), p=known[:, code] / known[:, code].sum())]
        return tokens

    # ------------------------------------------------------------------ what it has learned

    def described(self) -> dict[str, Any]:
        if self.features is None:
            return {}
        made: dict[str, Any] = {"emissions": "gaussian" if self.gaussian else "categorical"}
        if self.gaussian:
            return {**made, "numbers": self.features.numbers}
        table, _ = self._table()
        known = len(self.features.numbers)
        return {**made, "words": known, "classes of unknown words": len(table) - known}

    def strongest(self, top: int = 10, label: str | None = None) -> tuple[list[Strong], list[Strong]]:
        """The most probable words of each label, or the means of its numbers; and the most probable transitions."""
        self._trained()
        if label is not None and label not in self.labels:
            raise ValueError(f"there is no label {label!r}")
        with self.lock:
            shown = range(len(self.labels)) if label is None else [self.labels.index(label)]
            if self.gaussian:
                weights = self.features.moments()[0]
                names = [f"mean of number {d}" for d in range(len(weights))]
            else:
                names = self.features.words
                weights = np.exp(self._table()[0][: len(names)])
            follows = np.exp(self.lattice().transitions)
        largest = [
            Strong(self.labels[j], names[n], float(weights[n, j]))
            for j in shown
            for n in np.argsort(-np.abs(weights[:, j]), kind="stable")[:top].tolist()
        ]
        pairs = [Strong(self.labels[j], one, float(follows[i, j])) for i, one in enumerate(self.labels) for j in shown]
        return largest, sorted(pairs, key=lambda one: -one.weight)[:top]

    def contributions(self, sentences: Any, token: int, allowed: Any = None) -> tuple[str, str, list[Contribution]]:
        sentences = self._taken(sentences)
        path = self.predict_codes(sentences, allowed)
        first, last = _around(sentences.offsets, token)
        with self.lock:
            lattice, emissions = self.lattice(), self.emissions(sentences)[token]
        before = path[token - 1] if token > first else None
        after = path[token + 1] if token + 1 < last else None
        parts = {
            self._token_name(sentences, token): emissions,
            "it begins the sequence" if before is None else f"after {self.labels[before]}": (
                lattice.initial if before is None else lattice.transitions[before]
            ),
            "it ends the sequence" if after is None else f"before {self.labels[after]}": (
                lattice.final if after is None else lattice.transitions[:, after]
            ),
        }
        here = int(path[token])
        if len(self.labels) == 1:
            return self.labels[here], "", []
        others = sum(parts.values()) + np.where(np.arange(len(self.labels)) == here, -np.inf, 0.0)
        rival = int(np.argmax(others))
        made = [Contribution(name, 1.0, float(one[here] - one[rival]), float(one[here] - one[rival]))
                for name, one in parts.items()]  # fmt: skip
        return self.labels[here], self.labels[rival], sorted(made, key=lambda one: -abs(one.amount))

    def _token_name(self, sentences: Any, token: int) -> str:
        if self.gaussian:
            return "the numbers of the token"
        word = sentences.words[token]
        if word in self.features.numbers:
            return f"word {word}"
        _, classes = self._table()
        kind, suffix = classes.names[classes.of(word)]
        told = [f"shape {kind}"] * bool(kind) + [f"suffix -{suffix}"] * bool(suffix)
        return f"unknown word {word} ({', '.join(told) or 'as rare words are'})"

    # ------------------------------------------------------------------ the model file

    def _pack_learned(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        chain = self.chain.grown(len(self.labels))
        arrays = {name: whole(getattr(chain, name)) for name in ("initial", "transitions", "final")}
        facts = {"found": self.found, "log_likelihoods": self.log_likelihoods_}
        return {"hmm": facts}, {**arrays, **self.features.pack()}

    FILED: ClassVar[Record] = Record(
        {**SequenceLearner.FILED.facts, "hmm": Record(found=TRUTH, log_likelihoods=NUMBERS)}
    )

    def _unpack_learned(self, facts: dict[str, Any], arrays: Arrays) -> None:
        mine, labels = facts["hmm"], len(self.labels)
        self.found, self.log_likelihoods_ = mine["found"], list(map(float, mine["log_likelihoods"]))
        shapes = {"initial": (labels,), "transitions": (labels, labels), "final": (labels,)}
        for name, shape in shapes.items():
            check_array(name, arrays[name], "int64 float64", shape, 0)
        self.chain = Chain(*(arrays[name].astype(np.float64) for name in shapes))
        if self.settings.emissions == "gaussian":
            self.features = GaussianEmissions.unpack(arrays, labels, float(self.settings.min_variance))
        else:
            self.features = WordEmissions.unpack(arrays, labels)


def _as_sequences(X: Any, gaussian: bool) -> Any:
    """Sequences of rows of numbers, or of words."""
    if gaussian:
        return as_vectors(X)
    sentences = as_sentences(X)
    if isinstance(sentences, GivenAttributes):
        raise ValueError("an HMM takes words, not attributes: give the tokens as strings, or use CRF")
    return sentences


def _around(offsets: np.ndarray, token: int) -> tuple[int, int]:
    """Where the sequence of a token begins and ends."""
    if not 0 <= token < offsets[-1]:
        raise ValueError(f"there is no token {token}: X has {offsets[-1]} tokens")
    k = int(np.searchsorted(offsets, token, side="right"))
    return int(offsets[k - 1]), int(offsets[k])


def _draw_path(begins: np.ndarray, follows: np.ndarray, length: int | None, rng: np.random.Generator) -> list[int]:
    """Labels drawn by cumulated probabilities; ``follows`` has a last column for the end if there is no length."""
    path: list[int] = []
    code = _draw(begins, rng)
    while (length is None or len(path) < length) and code < len(begins):
        path.append(code)
        code = _draw(follows[code], rng)
        if length is None and len(path) > LONGEST:
            raise ValueError(f"a sequence has not ended after {LONGEST} tokens: give a length")
    return path


def _draw(cumulated: np.ndarray, rng: np.random.Generator) -> int:
    drawn = np.searchsorted(cumulated, rng.random() * cumulated[-1], side="right")
    return int(min(drawn, len(cumulated) - 1))
