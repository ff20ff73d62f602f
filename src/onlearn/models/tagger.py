"""``Tagger``: a sequence learner, the columns it sees of each token, and how its files are read.

Sentences go in (lists of tokens, texts that are cut at white space, or sentences of a reader), a label for each token
comes out. It is what ``onlearn train --task tag`` writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from onlearn import data, model_file
from onlearn.data.batch import Encoded, Sentences, hash_name
from onlearn.data.formats.conll import UNIVERSAL
from onlearn.data.formats.sentences import tokens_of
from onlearn.data.table_roles import find_column
from onlearn.engine import registry
from onlearn.inert_text import facts_html
from onlearn.model_schema import (
    NAMES,
    NESTED,
    Arrays,
    Record,
    check_facts,
    one_of,
    under,
)
from onlearn.models.stored_reading import READING, check_reading
from onlearn.models.tag_files import format_of
from onlearn.models.trained_facts import check_trained
from onlearn.sequence.base import Contribution, SequenceLearner
from onlearn.sequence.inputs import as_sentences
from onlearn.sequence.spans import SCHEMES, Constraints


class Tagger:
    """Labels the tokens of sentences; a file holds all of it.

    ``learner`` is a sequence learner, and ``columns`` are those of a token that it sees. ``scheme`` is that of the
    spans which its labels stand for (``"BIO"`` and the like; None if they are no spans): unless ``constrained`` is
    False, only paths that the scheme allows are predicted. ``reading`` holds the options its files were read with,
    ``trained`` how it was trained. ``report_`` is the report of ``onlearn.train``; files do not hold it.
    """

    def __init__(self) -> None:
        self.learner: Any = None
        self.columns: list[str] = ["form"]
        self.scheme: str | None = None
        self.constrained: bool = True
        self.reading: dict[str, Any] = {}
        self.trained: dict[str, Any] = {}
        self.report_: dict[str, Any] = {}
        self._constraints: tuple[list[str], Constraints] | None = None

    def __repr__(self) -> str:
        if self.learner is None:
            return "<Tagger that has learned nothing yet>"
        labels = self.labels
        shown = ", ".join(labels[:3]) + (", ..." if len(labels) > 3 else "")
        return f"<Tagger of {len(labels)} labels ({shown}) by {self.learner.name}>"

    def _repr_html_(self) -> str:
        facts: list[tuple[str, object]] = [("learned", "nothing yet")]
        if self.learner is not None:
            facts = [("learner", repr(self.learner)), *self.learner.facts(), ("columns", ", ".join(self.columns))]
            if self.scheme is not None:
                facts.append(("scheme of spans", self.scheme))
        return facts_html("Tagger", facts)

    @property
    def labels(self) -> list[str]:
        """The labels it knows."""
        return [] if self.learner is None else list(self.learner.labels)

    # ------------------------------------------------------------------ predicting

    def predict(self, X: Any) -> list[list[str]]:
        """The labels of each sentence: a list of tokens, or a text, whose tokens stand between white space.

        Tokens are words, or tuples of the columns that the tagger has learned from.
        """
        sentences = self.taken(X)
        codes = self.predict_codes(sentences)
        names = np.array(self.learner.labels, dtype=object)[codes].tolist()
        ends = sentences.offsets.tolist()
        return [names[a:b] for a, b in pairwise(ends)]

    def predict_codes(self, sentences: Any) -> np.ndarray:
        """The position in ``labels`` of the label of each token of all sentences."""
        taken, allowed = self.taken(sentences), self.constraints()
        found: np.ndarray = self.learner.predict_codes(taken, allowed)
        if allowed is not None and (found < 0).any():  # no path of that length is valid, with the labels there are
            found = np.where(found < 0, self.learner.predict_codes(taken), found)
        return found

    def predict_marginals(self, X: Any) -> list[list[dict[str, float]]]:
        """The probability of each label at each token."""
        found: list[list[dict[str, float]]] = self.learner.predict_marginals(self.taken(X), self.constraints())
        return found

    def marginals(self, sentences: Any) -> np.ndarray:
        """The same as one array, a row for each token and a column for each label."""
        found: np.ndarray = self.learner.marginals(self.taken(sentences), self.constraints())
        return found

    def score(self, X: Any, y: Any) -> float:
        """The share of tokens that are labelled right."""
        from onlearn.sequence.inputs import flat_labels

        sentences = self.taken(X)
        gold = flat_labels(y, sentences, False)
        if not len(gold):
            raise ValueError("there are no tokens to score: X is empty")
        return float(np.mean(np.array(self.learner.labels, dtype=object)[self.predict_codes(sentences)] == gold))

    def explain(self, X: Any, token: int = 0) -> tuple[str, str, list[Contribution]]:
        """The label of a token of one sentence, its rival, and what makes the difference; the largest first."""
        sentences = self.taken([X] if isinstance(X, str) or not isinstance(X, Sentences) else X)
        tokens = int(sentences.offsets[-1])
        if len(sentences) != 1:
            raise ValueError(f"one sentence is explained at a time, not {len(sentences)}")
        if not 0 <= token < tokens:
            raise ValueError(f"there is no token {token} in a sentence of {tokens}: tokens are counted from 0")
        allowed = self.constraints()
        if allowed is not None and (self.learner.predict_codes(sentences, allowed) < 0).any():
            allowed = None  # no path is valid, as in ``predict_codes``
        found: tuple[str, str, list[Contribution]] = self.learner.contributions(sentences, token, allowed)
        return found

    def constraints(self) -> Constraints | None:
        """What the scheme of the labels allows; None if they are no spans, or ``constrained`` is False."""
        if self.scheme is None or not self.constrained:
            return None
        if self._constraints is None or self._constraints[0] != self.learner.labels:
            self._constraints = list(self.learner.labels), Constraints.of(self.learner.labels, self.scheme)
        return self._constraints[1]

    def known(self, sentences: Sentences) -> np.ndarray:
        """Whether each word was among those learned from."""
        words = sentences.encoded(sentences.word_column)
        have = [int(hash_name(word)) in self.learner.words for word in words.distinct]
        return np.array(have, dtype=bool)[words.codes]

    def taken(self, X: Any) -> Sentences:
        """Sentences with the columns that the learner has learned from."""
        if isinstance(X, (list, tuple)) and X and all(isinstance(one, str) for one in X):
            X = [tokens_of(one) for one in X]
        sentences = as_sentences(X)
        if not isinstance(sentences, Sentences):
            raise ValueError(
                f"tokens are dicts, lists or sets of attributes, but a tagger makes those itself: "
                f"give words, or tuples of the columns {', '.join(self.columns)}"
            )
        return with_columns(sentences, self.columns)

    # ------------------------------------------------------------------ learning

    def partial_fit(self, X: Any, y: Any) -> Tagger:
        """Learn from sentences once, in their order, and go on from what was learned before."""
        self.learner.partial_fit(self.taken(X), y)
        self.scheme = scheme_that_holds(self.scheme, self.learner.labels)
        return self

    # ------------------------------------------------------------------ files

    def read(self, source: Any, labelled: bool = False, **options: Any) -> data.Reader:
        """Read files as the training files were read; labels may be missing, and lines be raw sentences.

        ``labelled`` says that there are labels, so that text which can be columns is no raw sentences. No more can it
        be for a tagger of several columns.
        """
        usual: dict[str, Any] = {"labels": "optional", "task": "tag", "table_required": False}
        asked = {**self.reading, **usual, **options}
        reader = data.read(source, **asked)
        needs_columns = labelled or len(self.columns) > 1
        reader.choose_format = partial(
            format_of, needs_columns=needs_columns, labels=self.labels, target=asked.get("target")
        )
        return reader

    def save(self, path: Any) -> None:
        """Write the tagger to a ``.onl`` file, with all that it needs to go on learning."""
        if self.learner is None:
            raise ValueError("this Tagger has not learned anything yet")
        with self.learner.lock:
            model_file.save(self, path)

    def get_params(self, deep: bool = False) -> dict[str, Any]:
        """No parameters: the facts hold everything."""
        return {}

    def _pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        learner, own = model_file.describe(self.learner)
        facts = {name: getattr(self, name) for name in ("columns", "scheme", "reading", "trained")}
        return {"tagger": facts, "inner": learner}, {f"learner.{key}": array for key, array in own.items()}

    FILED: ClassVar[Record] = Record(
        tagger=Record(
            columns=NAMES,
            scheme=one_of(None, *SCHEMES),
            reading=READING,
            trained=NESTED,
        ),
        inner=model_file.DESCRIBED,
    )

    def _unpack(self, facts: dict[str, Any], arrays: Arrays) -> None:
        check_facts(facts, self.FILED)
        mine = facts["tagger"]
        check_reading(mine["reading"])
        check_trained(mine["trained"], "tagger.trained")
        if not mine["columns"]:
            raise ValueError("the header does not say what the tagger learned from")
        self.columns, self.scheme = mine["columns"], mine["scheme"]
        self.reading, self.trained = dict(mine["reading"]), mine["trained"]
        if facts["inner"]["learner"] not in registry.sequence_names():
            raise ValueError("it holds no learner of sequences")
        self.learner = model_file.rebuild(facts["inner"], under("learner.", arrays))


def bare_tagger(learner: SequenceLearner) -> Tagger:
    """A tagger of a learner that was trained in Python, on tokens."""
    of_words = learner.words_only and not getattr(learner, "gaussian", False)
    columns = ["form"] if of_words else getattr(learner.features, "columns", ())
    if not columns:
        what = "rows of numbers" if learner.words_only else "attributes which Python made"
        raise data.DataError(f"the model is a {learner.name} that learned from {what}: only Python can use it")
    made = Tagger()
    made.learner, made.columns = learner, [str(name) for name in columns]
    return made


def with_columns(sentences: Sentences, columns: Sequence[str]) -> Sentences:
    """Sentences with these columns and no others; the words stand for a single one."""
    there = list(sentences.columns)
    if there == list(columns):
        return sentences
    if set(columns) <= set(there):
        chosen = {name: name for name in columns}
    elif len(columns) == 1:
        chosen = {columns[0]: sentences.word_column}
    elif len(columns) == len(there):
        chosen = dict(zip(columns, there))
    else:
        raise ValueError(
            f"the tagger learned from the columns {', '.join(columns)} of each token, and here are "
            f"{', '.join(there)}: give all of them"
        )
    return Sentences({name: sentences.encoded(source) for name, source in chosen.items()}, sentences.offsets)


def label_column(columns: list[str], target: str | int | None, where: str) -> str:
    """The column of labels: the one that is named, or ``upos`` of CoNLL-U, or the last one."""
    if len(columns) < 2:
        raise data.DataError(f"{where} has words only, and no column of labels to learn from")
    usual = "upos" if columns == UNIVERSAL else -1
    return find_column(columns, usual if target is None else target, "target", where)


def given_columns(columns: list[str], target: str) -> list[str]:
    """The columns to learn from: the words of CoNLL-U, for raw text has no others; else those before the label."""
    if columns == UNIVERSAL:
        if target == "form":
            raise data.DataError("the column form holds the words, so it cannot be the label: name another one")
        return ["form"]
    place = columns.index(target)
    return columns[:place] or columns[place + 1 :]


def sentences_at(sentences: Sentences, keep: np.ndarray) -> tuple[Sentences, np.ndarray]:
    """The sentences for which ``keep`` is true, and which tokens these are."""
    counts = np.diff(sentences.offsets)
    tokens = np.repeat(keep, counts)
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts[keep])])
    columns = {}
    for name in sentences.columns:
        column = sentences.encoded(name)
        columns[name] = Encoded(column.codes[tokens], column.distinct)
    return Sentences(columns, offsets), tokens


MAY_BREAK = 0.01  # of the steps of the training data; a scheme that more of them break is none


def scheme_that_holds(
    scheme: str | None, labels: Sequence[str], codes: np.ndarray | None = None, offsets: np.ndarray | None = None
) -> str | None:
    """The scheme, if all labels belong to it and the sequences of ``codes`` keep to it, but for a few mistakes."""
    if scheme is None:
        return None
    try:
        allowed = Constraints.of(labels, scheme)
    except ValueError:  # a label of another kind
        return None
    if codes is not None and offsets is not None and len(codes) > 1:
        inner = np.ones(len(codes) - 1, dtype=bool)
        ends = offsets[1:-1]
        inner[ends[(ends > 0) & (ends < len(codes))] - 1] = False
        broken = np.count_nonzero(~allowed.transitions[codes[:-1], codes[1:]] & inner)
        if broken > MAY_BREAK * len(codes):
            return None
    return scheme


def joined(parts: Iterable[Sentences]) -> Sentences:
    """Sentences of several batches, which must have the same columns."""
    listed = list(parts)
    first = list(listed[0].columns)
    for one in listed[1:]:
        if list(one.columns) != first:
            raise data.DataError(
                f"the files do not go together: tokens have the columns {', '.join(first)}, and also "
                f"{', '.join(one.columns)}"
            )
    return Sentences.concatenated(listed)
