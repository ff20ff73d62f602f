"""The forms in which sequences and their labels are given: tokens with columns, or attributes as CRFsuite takes them.

Tokens that are strings, or tuples of strings, become ``Sentences``: a template makes attributes of their columns.
Tokens that are dictionaries, lists or sets of strings are attributes already, and become ``GivenAttributes``.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any, NoReturn

import numpy as np

from onlearn.data.batch import Sentences
from onlearn.engine.number_names import label_name

KINDS = "a string, a tuple of strings, or a dict, list or set of attributes"


@dataclass(frozen=True)
class GivenAttributes:
    """Tokens whose attributes are given by name.

    Sequence k has the tokens ``offsets[k]`` to ``offsets[k + 1]``; token t the attributes ``indptr[t]`` to
    ``indptr[t + 1]``. ``values`` has no entries if all attributes have the value 1.
    """

    offsets: np.ndarray  # int64
    indptr: np.ndarray  # int64
    codes: np.ndarray  # int64: positions in ``distinct``
    distinct: list[str]  # the names, in order of first appearance
    values: np.ndarray  # float64

    @property
    def names(self) -> list[str]:
        """The names of all attributes, one after another."""
        return [self.distinct[code] for code in self.codes.tolist()]

    @property
    def tokens(self) -> int:
        """The number of tokens of all sequences."""
        return len(self.indptr) - 1

    def __len__(self) -> int:
        return len(self.offsets) - 1


def as_sentences(X: Any) -> Sentences | GivenAttributes:
    """Sequences in the form that features are made of.

    ``X`` is ``Sentences`` or ``GivenAttributes`` already, or a list of sequences. Tokens are strings (the column
    ``form``), tuples of strings (the columns ``c0``, ``c1``, ...), or attributes: a dict, a list or a set.

    >>> as_sentences([["The", "dog"], ["Go"]]).columns["form"].tolist()
    ['The', 'dog', 'Go']
    >>> as_sentences([[{"word": "The", "upper": True}]]).names
    ['word:The', 'upper']
    """
    if isinstance(X, (Sentences, GivenAttributes)):
        return X
    sequences = listed(X)
    offsets = np.zeros(len(sequences) + 1, dtype=np.int64)
    np.cumsum([len(one) for one in sequences], out=offsets[1:])
    tokens = list(chain.from_iterable(sequences))
    kinds = set(map(kind_of, set(map(type, tokens))))
    if kinds <= {"string"}:
        return Sentences({"form": column(tokens, sequences, lambda token: token)}, offsets)
    if kinds == {"tuple"}:
        return Sentences(split(tokens, sequences), offsets)
    if kinds == {"attributes"}:
        return Attributes(sequences).given(tokens, offsets)
    first = kind_of(type(tokens[0]))
    for s, t, token in places(sequences):
        kind = kind_of(type(token))
        if kind is None:
            raise ValueError(f"X[{s}][{t}] is {told(token)}: a token is {KINDS}")
        if kind != first:
            raise ValueError(f"X[{s}][{t}] is {told(token)}, but the first token is {told(tokens[0])}: use one kind")
    raise AssertionError


def listed(X: Any) -> list[Any]:
    """The sequences as lists or tuples; what is one sentence, or no sequences at all, is refused."""
    if isinstance(X, (str, bytes)):
        raise ValueError("X is one string: give a list of sentences, each a list of tokens, as in [X.split()]")
    if isinstance(X, dict) or not isinstance(X, Iterable):
        raise ValueError(f"X is {told(X)}: give a list of sentences, each a list of tokens")
    sequences = list(X)
    for s, one in enumerate(sequences):
        if isinstance(one, (list, tuple)):
            continue
        if isinstance(one, str):
            raise ValueError(
                f"X[{s}] is a string, and should be a list of tokens: give one sentence as [X], "
                "and split sentences into tokens first"
            )
        if isinstance(one, (bytes, dict, set, frozenset)) or not isinstance(one, Iterable):
            raise ValueError(f"X[{s}] is {told(one)}, and should be a list of tokens: give one sentence as [X]")
        sequences[s] = list(one)
    return sequences


def kind_of(kind: type) -> str | None:
    """What a token of a type means."""
    if issubclass(kind, str):
        return "string"
    if issubclass(kind, tuple):
        return "tuple"
    return "attributes" if issubclass(kind, (dict, list, set, frozenset)) else None


def told(thing: Any) -> str:
    """A value in an error: its type and the beginning of it."""
    if thing is None:
        return "None"
    text = repr(thing)
    return f"{type(thing).__name__} {text if len(text) <= 40 else text[:37] + '...'}"


def places(sequences: list[Any]) -> Iterable[tuple[int, int, Any]]:
    """Each token with the numbers of its sequence and of its place there."""
    return ((s, t, token) for s, one in enumerate(sequences) for t, token in enumerate(one))


def column(values: list[Any], sequences: list[Any], part: Any) -> np.ndarray:
    """One column; ``part`` takes its value from a token, to find the place of one that cannot be."""
    try:
        "".join(values).encode()
    except (TypeError, UnicodeEncodeError):
        for s, t, token in places(sequences):
            value = part(token)
            if not isinstance(value, str):
                raise ValueError(f"X[{s}][{t}] has {told(value)} where a string should be") from None
            try:
                value.encode()
            except UnicodeEncodeError:
                raise ValueError(f"X[{s}][{t}] is {value!r}, which is not valid Unicode text") from None
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def split(tokens: list[tuple[Any, ...]], sequences: list[Any]) -> dict[str, np.ndarray]:
    """The columns of tokens that are tuples."""
    width = len(tokens[0])
    if width == 0 or set(map(len, tokens)) != {width}:
        for s, t, token in places(sequences):
            if not token:
                raise ValueError(f"X[{s}][{t}] is an empty tuple: a token has at least one column")
            if len(token) != width:
                raise ValueError(
                    f"X[{s}][{t}] has {len(token)} columns and the first token {width}: give all the same columns"
                )
    return {
        f"c{n}": column(list(values), sequences, lambda token, n=n: token[n]) for n, values in enumerate(zip(*tokens))
    }


class Attributes:
    """Makes ``GivenAttributes`` of dicts, lists and sets, as ``ItemSequence`` of python-crfsuite does.

    Each distinct name is made once: sentences repeat them, and a string for each attribute of each token would take
    several times the memory of all the rest.
    """

    def __init__(self, sequences: list[Any]) -> None:
        self.sequences = sequences
        self.numbers: dict[str, int] = {}
        self.valued: dict[str, dict[str, int]] = {}  # key -> value -> number of the name "key:value"
        self.codes: list[int] = []
        self.values: list[float] = []
        self.ends: list[int] = [0]

    def given(self, tokens: list[Any], offsets: np.ndarray) -> GivenAttributes:
        """The attributes of all tokens."""
        for token in tokens:
            if isinstance(token, dict):
                self.take_dict(token, "")
            else:
                self.take_names(token, "")
            self.ends.append(len(self.codes))
        values = np.array(self.values, dtype=np.float64)
        if not np.isfinite(values).all():
            self.refuse_value(int(np.flatnonzero(~np.isfinite(values))[0]))
        return GivenAttributes(
            offsets,
            np.array(self.ends, dtype=np.int64),
            np.array(self.codes, dtype=np.int64),
            list(self.numbers),
            values[:0] if np.all(values == 1.0) else values,
        )

    def take_dict(self, token: dict[Any, Any], before: str) -> None:
        for key, value in token.items():
            if type(key) is not str and not isinstance(key, str):
                self.refuse(f"has the key {told(key)}: names of attributes are strings")
            if isinstance(value, str):
                name = before + key
                known = self.valued.get(name)
                if known is None:
                    known = self.valued[name] = {}
                code = known.get(value)
                if code is None:
                    code = known[value] = self.number(f"{name}:{value}")
                self.codes.append(code)
                self.values.append(1.0)
            elif isinstance(value, (bool, np.bool_, numbers.Real)):
                self.codes.append(self.number(before + key))
                self.values.append(self.as_float(value))
            elif isinstance(value, dict):
                self.take_dict(value, f"{before}{key}:")
            elif isinstance(value, (list, set, frozenset)):
                self.take_names(value, f"{before}{key}:")
            else:
                self.refuse(
                    f"has {told(value)} as the value of {key!r}: give a string, a number, True or False, "
                    "or a dict, list or set"
                )

    def take_names(self, token: Any, before: str) -> None:
        # A set has no order of its own that is the same in every run.
        for name in token if isinstance(token, list) else sorted(token, key=repr):
            if not isinstance(name, str):
                self.refuse(f"has the attribute {told(name)}: names of attributes are strings")
            self.codes.append(self.number(before + name))
            self.values.append(1.0)

    def number(self, name: str) -> int:
        code = self.numbers.get(name)
        if code is None:
            try:
                name.encode()
            except UnicodeEncodeError:
                self.refuse(f"has the attribute {name!r}, which is not valid Unicode text")
            code = self.numbers[name] = len(self.numbers)
        return code

    def as_float(self, value: Any) -> float:
        try:
            return float(value)
        except OverflowError:
            return math.inf  # refused with the others, with its place

    def refuse_value(self, k: int) -> NoReturn:
        del self.ends[int(np.searchsorted(self.ends, k, side="right")) :]  # up to the token that has it
        names = list(self.numbers)
        self.refuse(f"has the attribute {names[self.codes[k]]!r} with the value {self.values[k]}: give finite numbers")

    def refuse(self, why: str) -> NoReturn:
        """Raise an error about the token after those that are done."""
        at = len(self.ends) - 1
        s, t, _ = next(place for n, place in enumerate(places(self.sequences)) if n == at)
        raise ValueError(f"X[{s}][{t}] {why}")


def flat_labels(y: Any, sentences: Any, may_lack: bool) -> np.ndarray:
    """The labels of all tokens as strings, in one array of objects.

    ``y`` is a list with the labels of each sequence, or one label for each token of all sequences. None is a token
    without a label, if these are allowed.
    """
    if y is None:
        raise ValueError("y is missing: give the labels of each sequence")
    if isinstance(y, (str, bytes, dict)) or not isinstance(y, Iterable):
        raise ValueError(f"y is {told(y)}: give a list with the labels of each sequence")
    given = list(y)
    offsets = sentences.offsets
    nested = [not isinstance(one, (str, bytes, dict)) and isinstance(one, Iterable) for one in given]
    if any(nested):
        if not all(nested):
            n = nested.index(False)
            raise ValueError(f"y[{n}] is {told(given[n])}, and should be the list of the labels of a sequence")
        given = [one if isinstance(one, (list, tuple)) else list(one) for one in given]
        if len(given) != len(sentences):
            raise ValueError(f"y has labels for {len(given)} sequences, X has {len(sentences)} sequences")
        for s, (one, tokens) in enumerate(zip(given, np.diff(offsets).tolist())):
            if len(one) != tokens:
                raise ValueError(f"y[{s}] has {len(one)} labels, and X[{s}] has {tokens} tokens")
        given = list(chain.from_iterable(given))
    elif len(given) != offsets[-1]:
        raise ValueError(
            f"y has {len(given)} labels, and X has {offsets[-1]} tokens: "
            "give the labels of each sequence as a list, or one label for each token"
        )
    labels = np.empty(len(given), dtype=object)
    if set(map(type, given)) <= {str}:
        labels[:] = given
        return labels
    for n, label in enumerate(given):
        labels[n] = label_of(label, n, offsets, may_lack)
    return labels


def label_of(label: Any, n: int, offsets: np.ndarray, may_lack: bool) -> str | None:
    """The label of token n as a string."""
    if label is None and may_lack:
        return None
    if isinstance(label, (str, numbers.Integral, np.bool_)):
        return label_name(label)
    if isinstance(label, numbers.Real) and math.isfinite(label):
        return label_name(label)
    s = int(np.searchsorted(offsets, n, side="right")) - 1
    place = f"token {n - int(offsets[s])} of sequence {s}"
    if label is None:
        raise ValueError(f"{place} has no label (None): this learner needs a label for every token")
    raise ValueError(f"the label of {place} is {told(label)}: labels are strings or whole numbers")
