"""Views of a word: what a macro of a template takes from a column, such as the word itself, its suffix or its shape.

Views are computed of distinct words, all at once. A view of a word is a part of a text: most views need no copy of it.
Words that have no such view (a suffix of four characters of a word of three) have no attribute of it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from onlearn.compiler import compiled
from onlearn.data.batch import START, hash_bytes
from onlearn.features.tables import fixed

CLASSES = {"Lu": "X", "Lt": "X", "Ll": "x", "L": "o", "M": "m", "N": "d", "Pd": "-", "P": ".", "S": "$"}


class View(NamedTuple):
    """A function of words: its name in a template, and its arguments."""

    function: str
    size: int = 0  # of prefixes and suffixes
    lower: bool = False  # of the word in lower case
    pattern: str = ""  # of tests and matches


class Part(NamedTuple):
    """Where the view of each word is in a text of bytes; the length is -1 if a word has none."""

    starts: np.ndarray
    lengths: np.ndarray
    text: np.ndarray


class CharacterClasses(dict[int, str]):
    """The class of each character, for ``str.translate``; looked up once for each character."""

    def __missing__(self, code: int) -> str:
        category = unicodedata.category(chr(code))
        self[code] = CLASSES.get(category) or CLASSES.get(category[0], "_")
        return self[code]


classes = CharacterClasses()


class Words:
    """Distinct words as one text, with what views need of them."""

    def __init__(self, words: list[str]) -> None:
        self.words = words
        self.joined = "".join(words)
        self.text: np.ndarray = np.frombuffer(self.joined.encode(), dtype=np.uint8)
        ends = np.cumsum(np.fromiter(map(len, words), np.int64, len(words)))
        self.first: np.ndarray = np.concatenate([np.zeros(1, np.int64), ends[:-1]]) if words else ends
        self.past: np.ndarray = ends  # first and past count characters
        begins = np.flatnonzero((self.text & 0xC0) != 0x80)
        self.bytes_at: np.ndarray = np.append(begins, len(self.text))

    @cached_property
    def lowered(self) -> Words:
        """The words in lower case."""
        return Words(list(map(str.lower, self.words)))

    @cached_property
    def classes(self) -> np.ndarray:
        """The class of each character."""
        return np.frombuffer(self.joined.translate(classes).encode(), dtype=np.uint8)

    def between(self, first: np.ndarray, past: np.ndarray, present: np.ndarray) -> Part:
        """The characters ``first`` to ``past`` of the text for each word that is ``present``."""
        starts = self.bytes_at[np.where(present, first, 0)]
        return Part(starts, np.where(present, self.bytes_at[np.where(present, past, 0)] - starts, -1), self.text)

    def whole(self) -> Part:
        """The words themselves."""
        starts = self.bytes_at[self.first]
        return Part(starts, self.bytes_at[self.past] - starts, self.text)

    def counted(self, characters: np.ndarray) -> np.ndarray:
        """How many of some characters each word has; ``characters`` is a mask."""
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(characters)])
        return before[self.past] - before[self.first]


def yes(present: np.ndarray) -> Part:
    """The view ``yes`` of some words."""
    return Part(np.zeros(len(present), np.int64), np.where(present, 3, -1), np.frombuffer(b"yes", dtype=np.uint8))


# ----------------------------------------------------------------------------------------------------
# The functions, by their names in templates.


def prefix(words: Words, view: View) -> Part:
    """The first characters of words that are long enough."""
    past = words.first + view.size
    return words.between(words.first, past, past <= words.past)


def suffix(words: Words, view: View) -> Part:
    """The last characters of words that are long enough."""
    first = words.past - view.size
    return words.between(first, words.past, first >= words.first)


def shape(words: Words, view: View) -> Part:
    """The classes of the characters, those in a row only once: ``McDonald-2000`` is ``XxXx-d``.

    X is a capital, x a small letter, o a letter of a script without capitals, d a digit, - a dash, . other punctuation,
    $ a symbol, _ anything else. Marks, such as accents, belong to the letter before them.
    """
    base = np.flatnonzero(words.classes != ord("m"))
    kinds = words.classes[base]
    begin, end = np.searchsorted(base, words.first), np.searchsorted(base, words.past)
    changes = np.ones(len(kinds), dtype=bool)
    changes[1:] = kinds[1:] != kinds[:-1]
    changes[begin[begin < end]] = True
    position = np.concatenate([np.zeros(1, np.int64), np.cumsum(changes)])
    return Part(position[begin], position[end] - position[begin], kinds[changes])


def capital(words: Words, view: View) -> Part:
    """Words whose first character is a capital."""
    present = words.first < words.past
    present[present] = words.classes[words.first[present]] == ord("X")
    return yes(present)


def digit(words: Words, view: View) -> Part:
    """Words that have a digit."""
    return yes(words.counted(words.classes == ord("d")) > 0)


def hyphen(words: Words, view: View) -> Part:
    """Words that have a dash between other characters."""
    return yes((words.counted(words.classes == ord("-")) > 0) & (words.past - words.first > 1))


def whole(words: Words, view: View) -> Part:
    """The word itself."""
    return words.whole()


def matched(words: Words, view: View) -> Part:
    """What a regular expression finds first in the word, or nothing."""
    search = re.compile(view.pattern).search
    return Words([found.group() if (found := search(word)) else "" for word in words.words]).whole()


def tested(words: Words, view: View) -> Part:
    """Whether a regular expression finds something in the word."""
    search = re.compile(view.pattern).search
    return Words(["true" if search(word) else "false" for word in words.words]).whole()


FUNCTIONS: dict[str, Callable[[Words, View], Part]] = {
    "x": whole,
    "m": matched,
    "t": tested,
    "prefix": prefix,
    "suffix": suffix,
    "shape": shape,
    "capital": capital,
    "digit": digit,
    "hyphen": hyphen,
}


def part_of(words: Words, view: View) -> Part:
    """A view of each word."""
    return FUNCTIONS[view.function](words.lowered if view.lower else words, view)


def view_of(word: str, view: View) -> str | None:
    """A view of one word, as text."""
    start, length, text = (part[0] if n < 2 else part for n, part in enumerate(part_of(Words([word]), view)))
    return None if length < 0 else text[start : start + length].tobytes().decode()


# ----------------------------------------------------------------------------------------------------
# Hashes.


@compiled
def hash_parts(text: Any, starts: Any, lengths: Any, out: Any) -> None:
    """The hash of each view; 0 if a word has none."""
    for n in range(np.uint64(len(starts))):
        out[n] = np.uint64(0)
        if lengths[n] >= 0:
            h = hash_bytes(text, starts[n], starts[n] + lengths[n], START)
            out[n] = h if h != np.uint64(0) else np.uint64(1)


def hashed(part: Part) -> np.ndarray:
    """The hash of each view; 0 if a word has none."""
    out = np.empty(len(part.starts), np.uint64)
    hash_parts(fixed(part.text), part.starts, part.lengths, out)
    return out
