"""Damage to files: what bytes of one seed become by a few random changes. The same number gives the same damage."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

LARGEST = 1 << 16  # bytes of a damaged file, about
NUMBER = re.compile(rb"\d+(?:\.\d+)?")
INTERESTING = b"\0\t\n\r\x1a\x1b \"#',-09:[\\]_{|}\x7f\x80\xef\xff"
NUMBERS = (
    b"0 -0 1 -1 00 1e1 1e308 1e309 -1e999 4.9e-324 1e-400 .5 5. +7 nan -NaN inf Infinity 0x10 1_0 1e 2147483647".split()
)
NUMBERS += (
    b"2147483648 4294967296 9007199254740993 9223372036854775807 9223372036854775808 18446744073709551616".split()
)
NUMBERS += [b"9" * 40, b"0." + b"3" * 40, b"1" + b"0" * 400, "\u0663".encode()]
TOKENS = [
    b"\xef\xbb\xbf",
    b"\0",
    b"\0\0\0\n",
    b"\x1a",
    b'"',
    b'""',
    b"'",
    b"\xff",
    b"\xc3",
    "é".encode(),
    "\u2028".encode(),
]
TOKENS += [
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\n",
    b"\r",
    b"\r\n",
    b"\n\n",
    b"\t",
    b" ",
    b"\x0b",
    b"\x0c",
    b"\x7f",
    b"\x1f",
    b"#",
]

Change = Callable[[random.Random, bytes, Sequence[bytes], Sequence[bytes]], bytes]


def place(rng: random.Random, text: bytes) -> int:
    return rng.randint(0, len(text))


def span(rng: random.Random, text: bytes) -> tuple[int, int]:
    """A stretch of the text, mostly a short one."""
    start = place(rng, text)
    return start, min(len(text), start + rng.choice([1, 1, 2, 4, 8, 16, 64, 256, len(text)]))


def flip_bit(rng: random.Random, text: bytes, seeds: Sequence[bytes], tokens: Sequence[bytes]) -> bytes:
    if not text:
        return text
    at = rng.randrange(len(text))
    return text[:at] + bytes([text[at] ^ 1 << rng.randrange(8)]) + text[at + 1 :]


def replace_byte(rng: random.Random, text: bytes, seeds: Sequence[bytes], tokens: Sequence[bytes]) -> bytes:
    at = place(rng, text)
    return text[:at] + bytes([rng.choice(INTERESTING)]) + text[at + 1 :]


def delete(rng: random.Random, text: bytes, seeds: Sequence[bytes], tokens: Sequence[bytes]) -> bytes:
    start, stop = span(rng, text)
    return text[:start] + text[stop:]


def duplicate(rng: random.Random, text: bytes, seeds: Sequence[bytes], tokens: Sequence[bytes]) -> bytes:
    start, stop = span(rng, text)
    return text[:stop] + text[start:stop] * rng.choice([1, 1, 2, 30]) + text[stop:]


def splice(rng: random.Random, text: bytes, seeds: Sequence[bytes], tokens: Sequence[bytes]) -> bytes:
    """A stretch of another seed, in place of one or between two bytes."""
    other = rng.choice(seeds)
    first, last = span(rng, other)
    start, stop = span(rng, text)
    return text[:start] + other[first:last] + text[stop if rng.random() < 0.5 else start :]


def truncate(rng: random.Random, text: bytes, seeds: Sequence[bytes], tokens: Sequence[bytes]) -> bytes:
    return text[: place(rng, text)]


def replace_number(rng: random.Random, text: bytes, seeds: Sequence[bytes], tokens: Sequence[bytes]) -> bytes:
    found = list(NUMBER.finditer(text))
    if not found:
        return text
    one = rng.choice(found)
    return text[: one.start()] + rng.choice(NUMBERS) + text[one.end() :]


def insert_run(rng: random.Random, text: bytes, seeds: Sequence[bytes], tokens: Sequence[bytes]) -> bytes:
    at = place(rng, text)
    return text[:at] + rng.choice([*TOKENS, *tokens, b"a", b"9"]) * rng.choice([3, 20, 70, 300, 3000]) + text[at:]


def insert_token(rng: random.Random, text: bytes, seeds: Sequence[bytes], tokens: Sequence[bytes]) -> bytes:
    at = place(rng, text)
    return text[:at] + rng.choice([*TOKENS, *tokens, *tokens]) + text[at:]


def change_line_ends(rng: random.Random, text: bytes, seeds: Sequence[bytes], tokens: Sequence[bytes]) -> bytes:
    end = rng.choice([b"\r\n", b"\r", b"\n\n", b" \n", b"\n\xef\xbb\xbf"])
    return text.replace(b"\n", end, rng.choice([1, 3, -1]))


ANY: list[Change] = [flip_bit, replace_byte, delete, duplicate, splice, truncate, insert_run, insert_token]
TEXT: list[Change] = [*ANY, replace_number, replace_number, insert_token, insert_token, change_line_ends]


def mutated(
    rng: random.Random, text: bytes, seeds: Sequence[bytes], tokens: Sequence[bytes], changes: Sequence[Change]
) -> bytes:
    """A text after one to four changes."""
    for _ in range(rng.choice([1, 1, 1, 2, 2, 4])):
        text = rng.choice(changes)(rng, text, seeds, tokens)[:LARGEST]
    return text
