"""Labels of words that were never seen, from their shape and their suffix (Brants 2000, TnT).

A word is in the class of all words, in that of its shape, in that of its shape and its last letter, its last two, and
so on: each is part of the one before. The labels of a class are estimated from the rare words in it,

    P(t | class) = (c(class, t) + T P(t | class before)) / (N + T)

with N tokens and T different labels (Witten-Bell). An unknown word has the labels of the narrowest class it is in.
"""

from __future__ import annotations

from itertools import chain

import numpy as np

from onlearn.sequence.chain import witten_bell

LONGEST_SHAPE = 8
FEWEST = 2  # different words that make a class


def shape(word: str) -> str:
    """The kinds of characters in a word, repetitions left out.

    >>> shape("McDonald's"), shape("3.50"), shape("USA")
    ("XxXx'x", 'd.d', 'XX')
    """
    if word.isalpha():  # nearly all words, and quick to tell
        if word.islower():
            return "x"
        if word.isupper():
            return "XX" if len(word) > 1 else "X"
        if word[0].isupper() and word[1:].islower():
            return "Xx"
    kinds: list[str] = []
    for letter in word:
        if letter.isdigit():
            kind = "d"
        elif letter.isupper():
            kind = "X"
        elif letter.islower():
            kind = "x"
        else:
            kind = "a" if letter.isalpha() else letter
        if not kinds or kinds[-1] != kind:
            kinds.append(kind)
            if len(kinds) == LONGEST_SHAPE:
                break
    return "".join(kinds)


def classes_of(word: str, max_suffix: int) -> list[tuple[str, str]]:
    """The classes of a word, shape and suffix, from the widest; the class of all words is not among them.

    >>> classes_of("Going", 2)
    [('Xx', ''), ('Xx', 'g'), ('Xx', 'ng')]
    """
    kind, low = shape(word), word.lower()
    return [(kind, ""), *((kind, low[-n:]) for n in range(1, min(max_suffix, len(low)) + 1))]


class WordClasses:
    """The classes of some words with their counts by label; class 0 is that of all words."""

    def __init__(self, words: list[str], counts: np.ndarray, max_suffix: int, usual: np.ndarray) -> None:
        self.max_suffix = max_suffix
        members: dict[tuple[str, str], list[int]] = {}
        for n, word in enumerate(words):
            for one in classes_of(word, max_suffix):
                members.setdefault(one, []).append(n)
        kept = {one: rows for one, rows in members.items() if len(rows) >= FEWEST}
        self.names: list[tuple[str, str]] = [("", ""), *kept]
        self.numbers: dict[tuple[str, str], int] = {one: n + 1 for n, one in enumerate(kept)}
        sizes = np.fromiter(map(len, kept.values()), dtype=np.int64, count=len(kept))
        every = np.fromiter(chain.from_iterable(kept.values()), dtype=np.int64, count=int(sizes.sum()))
        sums = np.add.reduceat(counts[every], np.cumsum(sizes) - sizes, axis=0) if kept else counts[:0]
        self.labels: np.ndarray = np.empty((len(kept) + 1, len(usual)))  # P(t | class)
        self.labels[0] = witten_bell(counts.sum(axis=0), usual)
        lengths = np.fromiter((len(suffix) for _, suffix in kept), dtype=np.int64, count=len(kept))
        wider = np.fromiter((self._wider(*one) for one in kept), dtype=np.int64, count=len(kept))
        for length in range(max_suffix + 1):
            here = np.flatnonzero(lengths == length)
            self.labels[here + 1] = witten_bell(sums[here], self.labels[wider[here]])

    def _wider(self, kind: str, suffix: str) -> int:
        """The class that a class is part of."""
        return self.numbers[kind, suffix[1:]] if suffix else 0

    def of(self, word: str) -> int:
        """The narrowest class of a word."""
        found = 0
        for one in classes_of(word, self.max_suffix):
            number = self.numbers.get(one)
            if number is None:
                break
            found = number
        return found
