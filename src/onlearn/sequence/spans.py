"""Spans as tags: the schemes BIO, IOB1, BIOES and BILOU, which paths they allow, and how good predicted spans are.

A span (a chunk, a name) of type X covers neighbouring tokens, which carry tags of X; O is outside of all spans.

    tokens     Anna  Lee    met  Bo     Ng     Kim
    BIO        B-P   I-P    O    B-P    I-P    B-P      B begins every span (also called IOB2)
    IOB1       I-P   I-P    O    I-P    I-P    B-P      B only where a span follows another one of its type
    BIOES      B-P   E-P    O    B-P    E-P    S-P      E ends a span, S is one of a single token (also IOBES)
    BILOU      B-P   L-P    O    B-P    L-P    U-P      the same with other letters

Spans are read as conlleval, the program of the CoNLL shared tasks, reads them (Tjong Kim Sang and Buchholz, 2000). It
makes the best of tags that break their scheme: a span ends before O, before a B, and where the type changes, and any
other tag than O begins one if none is open. E and S end a span, too, and S begins one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

OUTSIDE = "O"


class Letters(NamedTuple):
    """What a scheme writes at the begin, the inside and the end of a span, and for one of a single token."""

    begin: str
    inside: str
    end: str
    single: str


SCHEMES = {
    "BIO": Letters("B", "I", "I", "B"),
    "IOB1": Letters("B", "I", "I", "I"),  # B for a span that follows another of its type
    "BIOES": Letters("B", "I", "E", "S"),
    "BILOU": Letters("B", "I", "L", "U"),
}
ALIASES = {"IOB2": "BIO", "IOBES": "BIOES"}

Span = tuple[int, int, str]


def letters_of(scheme: str) -> tuple[str, Letters]:
    """The usual name of a scheme, and its letters."""
    name = ALIASES.get(scheme, scheme)
    if name not in SCHEMES:
        raise ValueError(f"there is no scheme {scheme!r}: there are {', '.join([*SCHEMES, *ALIASES])}")
    return name, SCHEMES[name]


def parts(tag: str) -> tuple[str, str]:
    """The letter of a tag and its type, "" if it has none: what stands before and after the first hyphen."""
    letter, _, kind = tag.partition("-")
    return letter, kind


def detect_scheme(labels: Iterable[str], codes: Any = None, offsets: Any = None) -> str | None:
    """The scheme of a set of labels; None if they are no tags of spans.

    B and I alone can be BIO or IOB1. If the labels occur as ``codes`` (positions in ``labels``) of sequences that begin
    at ``offsets``, the scheme is the one that they keep to; otherwise it is BIO, unless there is no B.

    >>> detect_scheme(["O", "B-NP", "I-NP"]), detect_scheme(["NN", "VB"]), detect_scheme(["U-PER", "O"])
    ('BIO', None, 'BILOU')
    """
    labels = list(labels)
    found = {parts(label)[0] for label in labels if label != OUTSIDE}
    typed = any("-" in label for label in labels)
    if not found or (not typed and (OUTSIDE not in labels or "B" not in found)):
        return None  # such as the tags I and B of somebody's parts of speech
    if any("-" in label and label.endswith("-") for label in labels):
        return None
    if found == {"I"}:
        return "IOB1"
    if found <= {"B", "I"}:
        return "IOB1" if codes is not None and _is_iob1(labels, codes, offsets) else "BIO"
    return next((name for name in ("BIOES", "BILOU") if found <= set(SCHEMES[name])), None)


def _is_iob1(labels: list[str], codes: Any, offsets: Any) -> bool:
    """Whether spans begin with I, and with B only after a span of the same type."""
    table = Table.of(labels, spare=1)
    here = np.asarray(codes, dtype=np.int64)
    outside, starts = _starts(table, here, np.asarray(offsets, dtype=np.int64))
    opens, kinds = table.opens[here], table.kinds[here]
    inner = np.ones(len(here), dtype=bool)
    inner[_begins(offsets, len(here))] = False
    follows = inner.copy()
    follows[1:] &= ~outside[:-1] & (kinds[:-1] == kinds[1:])
    return bool((starts & ~opens).any() and not (opens & ~follows).any())


# ----------------------------------------------------------------------------------------------------
# From tags to spans and back.


def read_spans(tags: Sequence[str], scheme: str) -> list[Span]:
    """The spans of one sequence as (start, stop, type), with ``stop`` behind the last token.

    >>> read_spans(["B-P", "I-P", "O", "I-Q"], "BIO")
    [(0, 2, 'P'), (3, 4, 'Q')]
    """
    name, letters = letters_of(scheme)
    labels = list(dict.fromkeys(tags))
    check_labels(labels, name, letters)
    position = {label: n for n, label in enumerate(labels)}
    codes = np.array([position[tag] for tag in tags], dtype=np.int64)
    table = Table.of(labels)
    found = spans_in(codes, table, np.array([0, len(codes)]))
    return [(a, b, table.names[k]) for a, b, k in zip(*(array.tolist() for array in found))]


def check_labels(labels: Iterable[str], name: str, letters: Letters) -> None:
    """Refuse labels that a scheme does not have."""
    for label in labels:
        if label != OUTSIDE and parts(label)[0] not in letters:
            known = ", ".join(dict.fromkeys(letters))
            raise ValueError(f"the tag {label!r} is not one of {name}: those are O, and {known} with a type (B-NP)")


def write_tags(spans: Iterable[Span], length: int, scheme: str) -> list[str]:
    """The tags of one sequence with these spans, which must not overlap.

    >>> write_tags([(0, 2, "P"), (2, 3, "P")], 4, "IOB1")
    ['I-P', 'I-P', 'B-P', 'O']
    """
    name, letters = letters_of(scheme)
    tags = [OUTSIDE] * length
    end, before = 0, None
    for start, stop, kind in sorted(spans):
        if not end <= start < stop <= length:
            raise ValueError(f"the span ({start}, {stop}, {kind!r}) is empty, overlaps another, or leaves the sequence")
        tail = f"-{kind}" if kind else ""
        tags[start:stop] = [letters.inside + tail] * (stop - start)
        if name == "IOB1":
            if start == end and kind == before:
                tags[start] = letters.begin + tail
        elif stop - start == 1:
            tags[start] = letters.single + tail
        else:
            tags[start], tags[stop - 1] = letters.begin + tail, letters.end + tail
        end, before = stop, kind
    return tags


def convert(tags: Sequence[str], scheme: str, to: str) -> list[str]:
    """The tags of one sequence in another scheme. Tags that break their scheme are read as conlleval does.

    >>> convert(["I-P", "I-P", "O", "I-P"], "IOB1", "BIOES")
    ['B-P', 'E-P', 'O', 'S-P']
    """
    return write_tags(read_spans(tags, scheme), len(tags), to)


# ----------------------------------------------------------------------------------------------------
# Which paths a scheme allows.


class Constraints(NamedTuple):
    """What a scheme allows, for ``Lattice.constrained``: transitions between labels, first labels and last ones.

    >>> Constraints.of(["O", "B-P", "I-P"], "BIO").transitions.astype(int)
    array([[1, 1, 0],
           [1, 1, 1],
           [1, 1, 1]])
    """

    transitions: np.ndarray  # bool, (labels, labels): from a row to a column
    initial: np.ndarray  # bool
    final: np.ndarray  # bool

    @classmethod
    def of(cls, labels: Sequence[str], scheme: str) -> Constraints:
        """The constraints of a scheme for a list of labels."""
        name, letters = letters_of(scheme)
        check_labels(labels, name, letters)
        table = Table.of(labels)
        split = [parts(label)[0] for label in labels]
        same = (table.kinds[:, None] == table.kinds[None, :]) & ~table.outside[:, None]
        begin, inside, end = (np.array([one == letter for one in split], dtype=bool) for letter in letters[:3])
        if name == "IOB1":
            return cls(same | ~begin[None, :], ~begin, np.ones(len(labels), dtype=bool))
        goes_on = inside | end  # labels that only an open span of their type can have before them
        is_open = begin | inside
        transitions = np.where(goes_on[None, :], same & is_open[:, None], True)
        if name == "BIO":
            return cls(transitions, ~goes_on, np.ones(len(labels), dtype=bool))
        transitions &= goes_on[None, :] | ~is_open[:, None]  # an open span must go on until it is ended
        return cls(transitions, ~goes_on, ~is_open)


# ----------------------------------------------------------------------------------------------------
# Spans of many sequences at once.


class Table(NamedTuple):
    """What each label says: the last row is for tokens without a label (code -1), which are outside."""

    outside: np.ndarray  # bool
    opens: np.ndarray  # bool: begins a span (B, S, U)
    closes: np.ndarray  # bool: ends a span (E, S, L, U)
    kinds: np.ndarray  # int64: the position of the type in ``names``
    names: list[str]

    @classmethod
    def of(cls, labels: Sequence[str], spare: int = 0) -> Table:
        """The table of a list of labels, with ``spare`` rows for tokens without one at its end."""
        split = [parts(label) if label != OUTSIDE else (OUTSIDE, "") for label in labels]
        names = sorted({kind for letter, kind in split if letter != OUTSIDE})
        position = {kind: n for n, kind in enumerate(names)}
        rest = [(OUTSIDE, "")] * spare

        def are(letters: str) -> np.ndarray:
            return np.array([letter in letters.split() for letter, _ in split + rest], dtype=bool)

        kinds = np.array([position.get(kind, 0) for _, kind in split + rest], dtype=np.int64)
        return cls(are(OUTSIDE), are("B S U"), are("E S L U"), kinds, names)


class Spans(NamedTuple):
    """The spans of all sequences in their order; tokens are counted through."""

    starts: np.ndarray
    stops: np.ndarray
    kinds: np.ndarray  # positions in the names of the table


def _begins(offsets: Any, tokens: int) -> np.ndarray:
    """The first tokens of sequences."""
    offsets = np.asarray(offsets, dtype=np.int64)
    return offsets[:-1][offsets[:-1] < tokens]


def _starts(table: Table, codes: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which tokens are outside, and which begin a span."""
    outside, kinds = table.outside[codes], table.kinds[codes]
    starts = table.opens[codes]
    if len(codes):
        starts[1:] |= table.closes[codes[:-1]] | outside[:-1] | (kinds[1:] != kinds[:-1])
        starts[_begins(offsets, len(codes))] = True
    starts &= ~outside
    return outside, starts


def spans_in(codes: np.ndarray, table: Table, offsets: np.ndarray) -> Spans:
    """The spans of sequences; ``codes`` are rows of the table."""
    outside, starts = _starts(table, codes, offsets)
    last = np.ones(len(codes), dtype=bool)
    last[:-1] = outside[1:] | starts[1:]  # a span ends where the next token is outside, or begins another
    first = np.flatnonzero(starts)
    return Spans(first, np.flatnonzero(last & ~outside) + 1, table.kinds[codes[first]])


def share(part: float, whole: float) -> float:
    """A part of a whole; 0 of nothing."""
    return float(part / whole) if whole else 0.0


def figures(right: int, found: int, gold: int) -> dict[str, Any]:
    """Precision, recall and F1 of spans, with the numbers behind them."""
    return {
        "precision": share(right, found),
        "recall": share(right, gold),
        "f1": share(2 * right, found + gold),
        "gold": int(gold),
        "predicted": int(found),
        "right": int(right),
    }


def span_figures(gold: Any, predicted: Any, labels: Sequence[str], offsets: Any) -> dict[str, Any]:
    """Precision, recall and F1 of predicted spans by the definition of conlleval, for all together and by type.

    A span is right if its begin, its end and its type are. ``gold`` and ``predicted`` are positions in ``labels``, one
    a token (-1: outside); sequences begin at ``offsets``.

    >>> labels = ["O", "B-P", "I-P"]
    >>> made = span_figures([1, 2, 0, 1], [1, 2, 0, 0], labels, [0, 4])
    >>> made["precision"], made["recall"], made["by_type"]["P"]["gold"]
    (1.0, 0.5, 2)
    """
    table, offsets = Table.of(labels, spare=1), np.asarray(offsets, dtype=np.int64)
    sides = [np.asarray(side, dtype=np.int64) for side in (gold, predicted)]
    for side in sides:
        if len(side) != offsets[-1] or (len(side) and not -1 <= side.min() <= side.max() < len(labels)):
            raise ValueError(
                f"there must be a code from -1 to {len(labels) - 1} for each of {offsets[-1]} tokens, "
                f"not {len(side)} codes with other values"
            )
    there, found = (spans_in(side, table, offsets) for side in sides)
    stop_at, kind_at = np.zeros(len(sides[0]), dtype=np.int64), np.zeros(len(sides[0]), dtype=np.int64)
    stop_at[there.starts], kind_at[there.starts] = there.stops, there.kinds
    right = (stop_at[found.starts] == found.stops) & (kind_at[found.starts] == found.kinds)
    counts = [
        np.bincount(kinds, minlength=len(table.names)).tolist()
        for kinds in (found.kinds[right], found.kinds, there.kinds)
    ]
    by_type = {name: figures(*numbers) for name, *numbers in zip(table.names, *counts)}
    total = figures(int(right.sum()), len(found.starts), len(there.starts))
    return {**total, "by_type": {name: one for name, one in by_type.items() if one["gold"] or one["predicted"]}}
