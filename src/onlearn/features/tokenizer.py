"""The compiled tokeniser: it turns UTF-8 text into words in lower case, and these into n-grams.

The words of each row are written in lower case with one space before, between and after them. So the name of a word
n-gram is one part of that text, and so is a character n-gram of a word with its spaces.

The hash of a word is that of its bytes, seeded with the hash of the prefix of the column. The hash of an n-gram is that
of its first word combined with that of the second, the result with that of the third, and so on. The hash of a
character n-gram is that of its bytes. Hashes agree with ``batch.hash_bytes``, but the last bytes are loaded at once and
masked, so eight more bytes must follow the text.

Tables say of each character whether it is part of a word, and its lower case, as in Python. Code points of planes
without letters are not in the tables: they are separators.
"""

from __future__ import annotations

import os
import unicodedata
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np

from onlearn.compiler import INTERPRETED, cache_folder, cache_folders, compiled
from onlearn.data.batch import combine, finish, mix

PLANES = 0x40000  # the tables have the code points below this one, and the variation selectors
IDEOGRAPHS = 0x20000  # from this code point to PLANES, there are only letters without case
MARKS, PAST_MARKS = 0xE0000, 0xE0200  # the variation selectors
SIGMA, FINAL_SIGMA = 0x3A3, 0x3C2
APOSTROPHES = (0x27, 0x2019)
WORD, CASED, IGNORABLE, MARK = 1, 2, 4, 8  # bits of a class; a mark is punctuation or a symbol


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
    if not beyond_ascii:
        return make_characters(lowercase, beyond_ascii)
    name = f"unicode-{unicodedata.unidata_version}-{'lower' if lowercase else 'as-is'}-marks.npz"
    for place in cache_folders("tables", Path(__file__)):
        with suppress(OSError, ValueError, KeyError, BadZipFile), np.load(Path(place) / name) as stored:
            return Characters(*(stored[one] for one in Characters._fields))
    made = make_characters(lowercase, beyond_ascii)
    folder = cache_folder("tables", Path(__file__))
    if folder is None:
        return made
    file = Path(folder) / name
    with suppress(OSError):
        temporary = file.with_suffix(f".{os.getpid()}.tmp.npz")
        np.savez(temporary, **made._asdict())
        os.replace(temporary, file)
    return made


def make_characters(lowercase: bool, beyond_ascii: bool) -> Characters:
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
    classes[[place for place, kind in enumerate(kinds) if kind[0] in "PS" and not classes[place] & WORD]] |= MARK
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


SLACK = 8  # bytes that must follow a text
ONE, TWO, THREE, FOUR, EIGHT = (np.uint64(n) for n in (1, 2, 3, 4, 8))
HIGH_BITS = np.uint64(0x8080808080808080)
SPACE, APOSTROPHE, BEYOND = np.uint8(32), np.uint8(39), np.uint8(128)  # BEYOND: the first byte that is not ASCII
CURLY = 0x2019  # the typographic apostrophe

if INTERPRETED:

    def load_word(text: Any, index: Any) -> Any:
        """Eight bytes, the first the lowest."""
        return np.uint64(int.from_bytes(text[index : index + EIGHT].tobytes(), "little"))

else:
    import sys

    from onlearn.compiler import intrinsic, ir, types

    @intrinsic
    def load_word(context: Any, text: Any, index: Any) -> Any:
        """Eight bytes, the first the lowest."""

        def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            view = target.make_array(signature.args[0])(target, builder, arguments[0])
            pointer = builder.gep(view.data, [arguments[1]])
            word = builder.load(builder.bitcast(pointer, ir.IntType(64).as_pointer()), align=1)
            return word if sys.byteorder == "little" else builder.bswap(word)

        return types.uint64(text, types.uint64), generate


@compiled
def hash_within(text: Any, start: Any, stop: Any, seed: Any) -> Any:
    """The hash of ``text[start:stop]``."""
    p, end = np.uint64(start), np.uint64(stop)
    h = mix(seed, end - p)
    while p + EIGHT <= end:
        h = mix(h, load_word(text, p))
        p += EIGHT
    if p < end:
        h = mix(h, load_word(text, p) & ((ONE << ((end - p) << THREE)) - ONE))
    return finish(h)


@compiled
def decode(text: Any, p: Any, stop: Any) -> Any:
    """The code point at p and its number of bytes; -1 and 1 if it is not valid."""
    lead = np.int64(text[p])
    if lead < 0x80:
        return lead, ONE
    if lead < 0xC2 or lead > 0xF4:
        return np.int64(-1), ONE
    size = TWO if lead < 0xE0 else (THREE if lead < 0xF0 else FOUR)
    if p + size > stop:
        return np.int64(-1), ONE
    code = lead & (0x1F if lead < 0xE0 else (0x0F if lead < 0xF0 else 0x07))
    for n in range(ONE, size):
        byte = np.int64(text[p + np.uint64(n)])
        if byte & 0xC0 != 0x80:
            return np.int64(-1), ONE
        code = (code << 6) | (byte & 0x3F)
    return code, size


@compiled
def encode(code: Any, out: Any, q: Any) -> Any:
    """Write a code point; returns its end."""
    if code < 0x80:
        out[q] = np.uint8(code)
        return q + ONE
    if code < 0x800:
        out[q] = np.uint8(0xC0 | (code >> 6))
        out[q + ONE] = np.uint8(0x80 | (code & 0x3F))
        return q + TWO
    if code < 0x10000:
        out[q] = np.uint8(0xE0 | (code >> 12))
        out[q + ONE] = np.uint8(0x80 | ((code >> 6) & 0x3F))
        out[q + TWO] = np.uint8(0x80 | (code & 0x3F))
        return q + THREE
    out[q] = np.uint8(0xF0 | (code >> 18))
    out[q + ONE] = np.uint8(0x80 | ((code >> 12) & 0x3F))
    out[q + TWO] = np.uint8(0x80 | ((code >> 6) & 0x3F))
    out[q + THREE] = np.uint8(0x80 | (code & 0x3F))
    return q + FOUR


@compiled
def place_of(code: Any) -> Any:
    """The place of a code point in the tables, or -1."""
    if 0 <= code < PLANES:
        return code
    if MARKS <= code < PAST_MARKS:
        return code - MARKS + PLANES
    return np.int64(-1)


@compiled
def class_at(text: Any, p: Any, stop: Any, tables: Any) -> Any:
    """The class of the character at p, and its number of bytes."""
    code, size = decode(text, p, stop)
    place = place_of(code)
    return (np.int64(tables.classes[place]) if place >= 0 else np.int64(0)), size


@compiled
def joins(text: Any, p: Any, stop: Any, tables: Any) -> Any:
    """The number of bytes of an apostrophe at p that is inside a word; else 0."""
    code, size = decode(text, p, stop)
    if code != APOSTROPHE and code != CURLY:
        return np.uint64(0)
    after = p + size
    if after >= stop:
        return np.uint64(0)
    if text[after] < BEYOND:
        return size if tables.ascii[text[after]] != 0 else np.uint64(0)
    kind, _ = class_at(text, after, stop, tables)
    return size if kind & WORD != 0 else np.uint64(0)


@compiled
def sigma_is_final(text: Any, start: Any, p: Any, stop: Any, tables: Any, apostrophes: Any) -> Any:
    """Whether a capital sigma at p ends the word that starts at ``start``: a cased letter before it, none after."""
    cased = False
    q = start
    while q < p:
        kind, size = class_at(text, q, stop, tables)
        if kind & IGNORABLE == 0:
            cased = kind & CASED != 0
        q += size
    if not cased:
        return False
    q = p + TWO
    while q < stop:
        kind, size = class_at(text, q, stop, tables)
        if kind & WORD == 0 and not (apostrophes and joins(text, q, stop, tables) > 0):
            return True
        if kind & IGNORABLE == 0:
            return kind & CASED == 0
        q += size
    return True


@compiled
def is_ascii(text: Any, p: Any, stop: Any) -> Any:
    """Whether a part of a text is ASCII."""
    while p + EIGHT <= stop:
        if load_word(text, p) & HIGH_BITS != 0:
            return False
        p += EIGHT
    while p < stop:
        if text[p] >= BEYOND:
            return False
        p += ONE
    return True


@compiled
def ascii_words(text: Any, p: Any, stop: Any, tables: Any, out: Any, q: Any, starts: Any, ends: Any, count: Any) -> Any:
    """Write the words of ASCII text. The loop has no branches, which would depend on the lengths of words."""
    begun, was = q, np.uint64(0)
    while p < stop:
        small = tables.spaced[text[p]]
        inside = np.uint64(small != SPACE)
        out[q] = small
        begun = q if inside > was else begun
        starts[count] = np.int64(begun)  # overwritten until the word ends
        ends[count] = np.int64(q)
        count += was & (inside ^ ONE)
        q += was | inside
        was = inside
        p += ONE
    if was != 0:
        starts[count] = np.int64(begun)
        ends[count] = np.int64(q)
        count += ONE
        out[q] = SPACE
        q += ONE
    return q, count


@compiled
def is_mark(code: Any, tables: Any) -> Any:
    """Whether a character that is not part of a word is punctuation or a symbol."""
    if code < 0x80:
        return 0x20 < code < 0x7F
    place = place_of(code)
    return place >= 0 and tables.classes[place] & MARK != 0


@compiled
def unicode_words(
    text: Any, p: Any, stop: Any, tables: Any, apostrophes: Any, marks: Any,
    out: Any, q: Any, starts: Any, ends: Any, count: Any,
) -> Any:  # fmt: skip
    """Write the words of UTF-8 text; with ``marks``, each punctuation mark and symbol is a word."""
    while p < stop:
        begun, start = q, p
        while p < stop:
            byte = text[p]
            if byte < BEYOND:
                small = tables.ascii[byte]
                if small != 0:
                    out[q] = small
                    q += ONE
                    p += ONE
                    continue
                if apostrophes and byte == APOSTROPHE and q > begun:
                    size = joins(text, p, stop, tables)
                    if size > 0:
                        out[q] = APOSTROPHE
                        q += ONE
                        p += size
                        continue
                break
            code, size = decode(text, p, stop)
            place = place_of(code)
            if place < 0 or tables.classes[place] & WORD == 0:
                if apostrophes and code == CURLY and q > begun and joins(text, p, stop, tables) > 0:
                    out[q] = APOSTROPHE
                    q += ONE
                    p += size
                    continue
                break
            small_code = np.int64(tables.lower[place])
            if code == SIGMA and small_code != SIGMA and sigma_is_final(text, start, p, stop, tables, apostrophes):
                small_code = np.int64(FINAL_SIGMA)
            if small_code >= 0:
                q = encode(small_code, out, q)
            else:
                for n in range(tables.several.shape[1]):
                    part = np.int64(tables.several[-1 - small_code, n])
                    if part > 0:
                        q = encode(part, out, q)
            p += size
        if q > begun:
            starts[count] = np.int64(begun)
            ends[count] = np.int64(q)
            count += ONE
            out[q] = SPACE
            q += ONE
        if p < stop:  # skip the separator, or take it as a word
            code, size = decode(text, p, stop)
            if marks and is_mark(code, tables):
                starts[count] = np.int64(q)
                q = encode(code, out, q)
                ends[count] = np.int64(q)
                count += ONE
                out[q] = SPACE
                q += ONE
            p += size
    return q, count


@compiled
def tokenise(
    text: Any, offsets: Any, first: Any, past: Any, tables: Any, apostrophes: Any, marks: Any, seed: Any,
    out: Any, words: Any, starts: Any, ends: Any, hashes: Any,
) -> Any:  # fmt: skip
    """Write the words of rows ``first`` to ``past``; returns the bytes written. words[i] counts those before row i."""
    q, count = np.uint64(0), np.uint64(0)
    words[0] = 0
    for i in range(first, past):
        p, stop = np.uint64(offsets[i]), np.uint64(offsets[i + 1])
        out[q] = SPACE
        q += ONE
        w = count
        if not apostrophes and not marks and is_ascii(text, p, stop):
            q, count = ascii_words(text, p, stop, tables, out, q, starts, ends, count)
        else:
            q, count = unicode_words(text, p, stop, tables, apostrophes, marks, out, q, starts, ends, count)
        while w < count:
            hashes[w] = hash_within(out, starts[w], ends[w], seed)
            w += ONE
        words[i - first + 1] = np.int64(count)
    return np.int64(q)


@compiled
def count_word_grams(words: Any, low: Any, high: Any, sizes: Any) -> None:
    """Add the number of n-grams of each row."""
    for i in range(len(words) - 1):
        n = words[i + 1] - words[i]
        for size in range(low, high + 1):
            sizes[i] += max(0, n - size + 1)


@compiled
def word_grams(
    words: Any, word_starts: Any, word_ends: Any, word_hashes: Any, low: Any, high: Any, group: Any,
    cursor: Any, hashes: Any, starts: Any, lengths: Any, groups: Any,
) -> None:  # fmt: skip
    """Write the n-grams of each row at its cursor, in the order of their first words."""
    for i in range(len(words) - 1):
        at = np.uint64(cursor[i])
        past = np.uint64(words[i + 1])
        for w in range(np.uint64(words[i]), past):
            h = word_hashes[w]
            last = np.uint64(w)
            for size in range(1, high + 1):
                if size > 1:
                    last += ONE
                    if last >= past:
                        break
                    h = combine(h, word_hashes[last])
                if size >= low:
                    hashes[at] = h
                    starts[at] = word_starts[w]
                    lengths[at] = word_ends[last] - word_starts[w]
                    groups[at] = group
                    at += ONE
        cursor[i] = np.int64(at)


@compiled
def length_in_characters(text: Any, start: Any, stop: Any) -> Any:
    total = 0
    for p in range(np.uint64(start), np.uint64(stop)):
        if text[p] & 0xC0 != 0x80:
            total += 1
    return total


@compiled
def count_character_grams(
    text: Any, words: Any, word_starts: Any, word_ends: Any, low: Any, high: Any, sizes: Any
) -> None:
    """Add the number of character n-grams of each row."""
    for i in range(len(words) - 1):
        for w in range(words[i], words[i + 1]):
            n = length_in_characters(text, word_starts[w], word_ends[w])
            for size in range(low, high + 1):
                sizes[i] += n if size == 1 else max(0, n + 2 - size + 1)


@compiled
def character_grams(
    text: Any, words: Any, word_starts: Any, word_ends: Any, low: Any, high: Any, seed: Any, group: Any,
    cursor: Any, hashes: Any, starts: Any, lengths: Any, groups: Any,
) -> None:  # fmt: skip
    """Write the character n-grams of each word with a space before and after it, but not a single space."""
    for i in range(len(words) - 1):
        at = np.uint64(cursor[i])
        for w in range(words[i], words[i + 1]):
            p, past = np.uint64(word_starts[w]) - ONE, np.uint64(word_ends[w]) + ONE
            while p < past:
                end = p
                for size in range(1, high + 1):
                    if end >= past:
                        break
                    end += ONE
                    while end < past and text[end] & 0xC0 == 0x80:
                        end += ONE
                    if size >= low and not (size == 1 and text[p] == SPACE):
                        hashes[at] = hash_within(text, p, end, seed)
                        starts[at] = np.int64(p)
                        lengths[at] = np.int64(end - p)
                        groups[at] = group
                        at += ONE
                p += ONE
                while p < past and text[p] & 0xC0 == 0x80:
                    p += ONE
        cursor[i] = np.int64(at)
