"""Tables of characters for the tokeniser: whether they are part of a word, and their lower case, as in Python.

Code points of planes without letters are not in the tables: they are separators.
"""

from __future__ import annotations

import os
import unicodedata
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple
from zipfile import BadZipFile

import numpy as np

from onlearn.compiler import cache_folder

PLANES = 0x40000  # the tables have the code points below this one, and the variation selectors
IDEOGRAPHS = 0x20000  # from this code point to PLANES, there are only letters without case
MARKS, PAST_MARKS = 0xE0000, 0xE0200  # the variation selectors
SIGMA, FINAL_SIGMA = 0x3A3, 0x3C2
APOSTROPHES = (0x27, 0x2019)
WORD, CASED, IGNORABLE = 1, 2, 4  # bits of a class


class Characters(NamedTuple):
    """The tables."""

    ascii: np.ndarray  # uint8[128]: the byte in lower case; 0 if it is not part of a word
    spaced: np.ndarray  # the same with a space instead of 0
    classes: np.ndarray  # uint8 by place: bits
    lower: np.ndarray  # int32 by place: the code point in lower case; below 0: -1 - its line in ``several``
    several: np.ndarray  # int32: code points, up to three a line, then 0


@cache
def characters(lowercase: bool, beyond_ascii: bool) -> Characters:
    """The tables. Those for all of Unicode take time to compute, so they are computed on first use and stored."""
    folder = cache_folder("tables", Path(__file__)) if beyond_ascii else None
    if folder is None:
        return make(lowercase, beyond_ascii)
    file = Path(folder) / f"unicode-{unicodedata.unidata_version}-{'lower' if lowercase else 'as-is'}.npz"
    with suppress(OSError, ValueError, KeyError, BadZipFile), np.load(file) as stored:
        return Characters(*(stored[name] for name in Characters._fields))
    made = make(lowercase, beyond_ascii)
    with suppress(OSError):
        temporary = file.with_suffix(f".{os.getpid()}.tmp.npz")
        np.savez(temporary, **made._asdict())
        os.replace(temporary, file)
    return made


def make(lowercase: bool, beyond_ascii: bool) -> Characters:
    """Compute the tables."""
    plain = np.zeros(128, np.uint8)
    for code in range(128):
        if chr(code).isalnum():
            plain[code] = ord(chr(code).lower() if lowercase else chr(code))
    spaced = np.where(plain == 0, np.uint8(ord(" ")), plain)
    if not beyond_ascii:
        none = np.zeros(1, np.int32)
        return Characters(plain, spaced, np.zeros(1, np.uint8), none, none.reshape(1, 1))
    every = list(map(chr, (*range(PLANES), *range(MARKS, PAST_MARKS))))
    kinds = [*map(unicodedata.category, every[:IDEOGRAPHS]), *["Lo"] * (PLANES - IDEOGRAPHS)]
    kinds += map(unicodedata.category, every[PLANES:])
    words = [place for place, c in enumerate(every) if c.isalnum() or kinds[place][0] == "M"]
    classes, lower = np.zeros(len(every), np.uint8), np.array(list(map(ord, every)), np.int32)
    classes[words] = WORD
    several: list[list[int]] = []
    if lowercase:
        for place, small in enumerate(map(str.lower, every[:IDEOGRAPHS])):
            if small == every[place]:
                continue
            if len(small) == 1:
                lower[place] = ord(small)
            else:
                lower[place] = -1 - len(several)
                several.append([*map(ord, small), 0, 0, 0][:3])
        doubtful = [
            p for p in words if kinds[p][0] == "M" or kinds[p] == "Lm" or (p < IDEOGRAPHS and _has_case(every[p]))
        ]
        for place, cased, ignorable in _context(doubtful, [every[place] for place in doubtful]):
            classes[place] |= CASED * cased | IGNORABLE * ignorable
        classes[list(APOSTROPHES)] = IGNORABLE  # a sigma is not final before an apostrophe inside a word
    table = np.array(several or [[0, 0, 0]], np.int32)
    return Characters(plain, spaced, classes, lower, table)


def _has_case(character: str) -> bool:
    return character.islower() or character.isupper() or character.istitle()


def _context(places: list[int], characters: list[str]) -> list[tuple[int, bool, bool]]:
    """For each character, whether it has case, and whether it is ignored in the search for a cased neighbour.

    A capital sigma becomes final after a cased letter, so ``str.lower`` itself gives the answer.
    """
    after_letter = " ".join(f"A{c}\u03a3" for c in characters).lower().split(" ")
    after_digit = " ".join(f"1{c}\u03a3" for c in characters).lower().split(" ")
    final = chr(FINAL_SIGMA)
    return [
        (place, digit.endswith(final), letter.endswith(final) and not digit.endswith(final))
        for place, letter, digit in zip(places, after_letter, after_digit)
    ]
