"""True and false as words: how the booleans of a table are spelled as categories, and which words are 1 and 0.

Files of text spell them in words, other tables have a type for them, and a model of the one is used with the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

SPELLINGS = (("False", "True"), ("false", "true"), ("FALSE", "TRUE"))
USUAL = SPELLINGS[0]
NUMBERS = {"false": 0.0, "true": 1.0}

Known = Callable[[str], bool]  # whether a word is one of those that were learned


def as_words(values: Any) -> Any:
    """A column of booleans as words."""
    import pyarrow as pa
    import pyarrow.compute as pc

    false, true = (pa.scalar(word, pa.large_string()) for word in USUAL)
    return pc.if_else(values, true, false)


def number(word: str) -> float | None:
    """What a word stands for as a number; None if it stands for none."""
    try:
        return float(word)
    except ValueError:
        return NUMBERS.get(word.lower())


def respelled(words: Any, booleans: bool, known: Known) -> Any:
    """Words, of which those for true and false are spelled as they are known; None if there is nothing to change.

    ``booleans``: they have no spelling of their own, and take the one of which most is known. Others keep theirs if it
    is known, or if none is.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    mask = pc.is_in(words, value_set=pa.array([word for pair in SPELLINGS for word in pair], words.type))
    found = words.filter(mask).to_pylist()
    if booleans:
        pair = max(SPELLINGS, key=lambda pair: sum(map(known, pair)))
        wanted = [pair[word == USUAL[1]] for word in found]
    else:
        wanted = [word if known(word) else _as_known(word, known) for word in found]
    if wanted == found:
        return None
    return pc.replace_with_mask(words, mask, pa.array(wanted, words.type))


def _as_known(word: str, known: Known) -> str:
    same = (pair[word.lower() == "true"] for pair in SPELLINGS)
    return next(filter(known, same), word)
