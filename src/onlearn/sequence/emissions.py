"""What a hidden Markov model emits: words, by counts of words and labels.

The probability of a known word w with counts c(w, t), given its label t, is

    maximum likelihood   P(w | t) = c(w, t) / c(t)                                  after Baum-Welch
    add-k                P(w | t) = (c(w, t) + k) / (c(t) + k (V + 1))              V known words, and an unknown one
    Witten-Bell          P(w | t) = P(t | w) P(w) / P(t),  P(w) = c(w) / (N + V)
                         P(t | w) = (c(w, t) + T_w P(t | class of w)) / (c(w) + T_w)

where T_w is the number of different labels of w, so a word that was seen once or twice is helped out by its class (see
``unknown_words``). An unknown word is P(t | class) P(unknown) / P(t), with P(unknown) = V / (N + V), or of add-k
k / (N + k (V + 1)).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.compiler import compiled
from onlearn.data.batch import Sentences
from onlearn.model_schema import Arrays, check_array
from onlearn.sequence.chain import LEAST, add_k, logarithms, witten_bell
from onlearn.sequence.unknown_words import WordClasses

RARE = 10  # occurrences: words up to so many are taken to be as unknown ones are


class WordEmissions:
    """The words that were seen, and how often with each label."""

    def __init__(self, labels: int) -> None:
        self.numbers: dict[str, int] = {}
        self.room: np.ndarray = np.zeros((0, labels))  # rows for more words than there are, so that they seldom move
        self.table: Any = None  # the rows of logarithms, once they are needed
        self.table_of: tuple[Any, ...] = ()  # the parameters that they were made with

    @property
    def words(self) -> list[str]:
        """The words, in the order in which they came."""
        return list(self.numbers)

    @property
    def counts(self) -> np.ndarray:
        """How often each word was seen with each label."""
        return self.room[: len(self.numbers)]

    def __repr__(self) -> str:
        return f"<{len(self.numbers)} words>"

    # ------------------------------------------------------------------ counting

    def take_in(self, sentences: Sentences, labels: int) -> np.ndarray:
        """The numbers of the words of sentences, new ones taken in."""
        numbers, words = self.numbers, sentences.words.tolist()
        for word in words:
            if word not in numbers:
                numbers[word] = len(numbers)
        rows, known = self.room.shape
        if rows < len(numbers) or known < labels:
            more = max(len(numbers), 2 * rows) - rows if rows < len(numbers) else 0
            self.room = np.pad(self.room, ((0, more), (0, labels - known)))
        return np.fromiter(map(numbers.__getitem__, words), dtype=np.int64, count=len(words))

    def check(self, sentences: Sentences) -> None:
        """All words can be counted."""

    def add(self, sentences: Sentences, codes: np.ndarray, labels: int) -> None:
        """Count words with their labels; -1 is a token without one, which is left out."""
        count_pairs(self.take_in(sentences, labels), codes, self.room)
        self.table = None

    def expect(self, data: np.ndarray, marginals: np.ndarray) -> None:
        """Take the expected counts instead of those before."""
        self.room[:] = 0.0
        add_rows(data, marginals, self.room)
        self.table = None

    # ------------------------------------------------------------------ Baum-Welch

    def begin(self, data: np.ndarray, codes: np.ndarray, rng: np.random.Generator, max_suffix: int) -> None:
        """Counts to begin with: those that the labels there are suggest, or random ones."""
        occurrences = np.bincount(data, minlength=len(self.numbers)).astype(np.float64)[:, np.newaxis]
        if (codes >= 0).any():
            self.room[: len(self.numbers)] = occurrences * self.labels_of_words(max_suffix)
        else:
            self.room[: len(self.numbers)] = rng.dirichlet(np.ones(len(self.numbers)), self.room.shape[1]).T
        self.table = None

    def likelihoods(self, data: np.ndarray) -> np.ndarray:
        """The logarithm of the probability of each token given each label, by maximum likelihood."""
        return np.take(logarithms(add_k(self.counts.T, 0.0).T), data, axis=0)

    # ------------------------------------------------------------------ probabilities

    def classes(self, max_suffix: int) -> WordClasses:
        """The classes of rare words."""
        counts, totals = self.counts, self.counts.sum(axis=1)
        rare = np.flatnonzero((totals > 0) & (totals <= RARE))
        words = self.words
        return WordClasses([words[n] for n in rare.tolist()], counts[rare], max_suffix, self.usual())

    def usual(self) -> np.ndarray:
        """P(t): how often each label is, whatever the word."""
        labels = self.counts.shape[1]
        return witten_bell(self.counts.sum(axis=0), np.full(labels, 1 / labels))

    def labels_of_words(self, max_suffix: int, classes: WordClasses | None = None) -> np.ndarray:
        """P(t | w) of each word, by Witten-Bell."""
        classes = self.classes(max_suffix) if classes is None else classes
        numbers = np.fromiter(map(classes.of, self.numbers), dtype=np.int64, count=len(self.numbers))
        return witten_bell(self.counts, classes.labels[numbers])

    def made(self, smoothing: str, k: float, max_suffix: int) -> tuple[np.ndarray, WordClasses]:
        """Logarithms of P(w | t), a row for each word and then for each class of unknown words; and the classes.

        ``smoothing`` may be "none", for maximum likelihood.
        """
        given = (smoothing, k, max_suffix)
        if self.table is None or self.table_of != given:
            self.table, self.table_of = self._make(*given), given
        made: tuple[np.ndarray, WordClasses] = self.table
        return made

    def _make(self, smoothing: str, k: float, max_suffix: int) -> tuple[np.ndarray, WordClasses]:
        counts, classes, usual = self.counts, self.classes(max_suffix), self.usual()
        tokens, words = counts.sum(), len(counts)
        if smoothing == "add-k":
            known = np.divide(counts + k, counts.sum(axis=0) + k * (words + 1), out=np.zeros(counts.shape),
                              where=counts.sum(axis=0) + k > 0)  # fmt: skip
            unknown = max(k, LEAST) / (tokens + k * (words + 1))
        elif smoothing == "none":
            known, unknown = add_k(counts.T, 0.0).T, words / (tokens + words)
        else:
            share = counts.sum(axis=1, keepdims=True) / (tokens + words)
            known, unknown = self.labels_of_words(max_suffix, classes) * share / usual, words / (tokens + words)
        return np.concatenate([logarithms(known), np.log(classes.labels) + np.log(unknown) - np.log(usual)]), classes

    def rows(self, sentences: Sentences, classes: WordClasses) -> np.ndarray:
        """The row of each token among the logarithms; those of unknown words come after the known ones."""
        words, known = sentences.words.tolist(), len(self.numbers)
        rows = np.fromiter((self.numbers.get(word, -1) for word in words), dtype=np.int64, count=len(words))
        where = np.flatnonzero(rows < 0).tolist()
        found = {word: known + classes.of(word) for word in {words[n] for n in where}}
        rows[where] = [found[words[n]] for n in where]
        return rows

    # ------------------------------------------------------------------ the model file

    def pack(self) -> dict[str, np.ndarray]:
        texts = [word.encode() for word in self.numbers]
        ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
        return {"letters": np.frombuffer(b"".join(texts), np.uint8), "ends": ends, "counts": whole(self.counts)}

    @classmethod
    def unpack(cls, arrays: Arrays, labels: int) -> WordEmissions:
        letters, ends = arrays["letters"], arrays["ends"]
        check_array("letters", letters, "uint8", (letters.size,))
        check_array("ends", ends, "int64", (ends.size,), 0, len(letters))
        check_array("counts", arrays["counts"], "int64 float64", (len(ends), labels), 0)
        if (np.diff(ends) < 0).any() or (ends[-1] if len(ends) else 0) != len(letters):
            raise ValueError("the ends of the words do not fit their letters")
        text, made = letters.tobytes(), cls(labels)
        try:
            words = [text[a:b].decode() for a, b in zip([0, *ends.tolist()], ends.tolist())]
        except UnicodeDecodeError:
            raise ValueError("the words are not text in UTF-8") from None
        made.numbers = {word: n for n, word in enumerate(words)}
        if len(made.numbers) < len(words):
            raise ValueError("a word is there twice")
        made.room = arrays["counts"].astype(np.float64)
        return made


def whole(counts: np.ndarray) -> np.ndarray:
    """Counts as whole numbers if they are, which a file holds in less room."""
    numbers = counts.astype(np.int64)
    return numbers if (numbers == counts).all() else counts


@compiled
def count_pairs(words, codes, counts):
    for t in range(len(words)):
        if codes[t] >= 0:
            counts[words[t], codes[t]] += 1.0


@compiled
def add_rows(words, marginals, counts):
    for t in range(len(words)):
        for j in range(marginals.shape[1]):
            counts[words[t], j] += marginals[t, j]
