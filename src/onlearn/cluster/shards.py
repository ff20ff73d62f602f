"""Shards: parts of the data that are learned from side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from onlearn.data.sources import Source

APART = 1 << 32  # between the numbers of the first rows of shards, by which rows are held out, and of lines of pieces


class Shard(NamedTuple):
    """One part of the data, whose rows are always the same: pieces from all over the files, or a part of a collection.

    Files are cut into more pieces than there are shards, which get them by turns. A shard of one piece would be unlike
    the others where rows come in an order, and weights that were learned from such shards do not mix.
    """

    number: int
    name: str
    pieces: tuple[Any, ...] = ()  # ``Source``s; none: the rows are an argument of the task


def everywhere(piece: Source) -> Source:
    """A piece whose path does not depend on the folder that a process runs in."""
    return piece if piece.path is None else piece._replace(path=piece.path.absolute())


def deal(pieces: Sequence[Any], count: int) -> list[Shard]:
    """Shards that have the pieces by turns, as cards are dealt.

    >>> [shard.pieces for shard in deal("abcde", 2)]
    [('a', 'c', 'e'), ('b', 'd')]
    """
    count = min(count, len(pieces))
    return [Shard(number, f"shard {number}", tuple(pieces[number::count])) for number in range(count)]


def dealt(shards: Sequence[Shard]) -> Iterator[tuple[int, int]]:
    """The shard of each piece and its place there, in the order in which the pieces were before they were dealt."""
    for place in range(max(len(shard.pieces) for shard in shards)):
        for shard in shards:
            if place < len(shard.pieces):
                yield shard.number, place
