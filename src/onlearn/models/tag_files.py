"""Which runs are about taggers, and which files hold sentences: CoNLL, CoNLL-U, or raw text with a sentence a line."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from string import punctuation
from typing import Any

from onlearn.data.bad_rows import DataError
from onlearn.data.formats.conll import NAMED_COMMENT, UNIVERSAL, may_be_comment
from onlearn.data.registry import EXTENSIONS, is_conllu, readers, sniff
from onlearn.data.sources import Source, Stream, first_lines, sources
from onlearn.engine import registry
from onlearn.errors import PlanError
from onlearn.model_file import read_header
from onlearn.models.train_options import TrainOptions, as_list

LABELLED = ("conll", "conllu")
RAW = "sentences"
LOOK_AT = 1 << 16  # bytes
FEW = 50  # lines


def is_tagging(options: TrainOptions) -> bool:
    """Whether the options ask for a tagger: by the task, the learner, the model to continue, or the files."""
    if options.resume:
        return os.path.isfile(options.resume) and is_tagger_file(options.resume)
    if options.task is not None:
        if (name := sequence_learner(options.learner)) is not None and options.task != "tag":
            raise PlanError(f"{name} labels the tokens of sentences: it is not for task={options.task}", "learner")
        return options.task == "tag"
    if sequence_learner(options.learner) is not None or options.template is not None or options.column is not None:
        return True
    if options.format is not None:
        return options.format in ("conll", "conllu")
    return options.learner is None and holds_sentences(as_list(options.sources))


def is_tagger_file(path: str | os.PathLike[str]) -> bool:
    """Whether a model file holds a tagger, or a learner of sequences."""
    return read_header(path).get("learner") in ("Tagger", *registry.sequence_names())


def sequence_learner(given: Any) -> str | None:
    """The name of a learner of sequences, if that is what is given: as text, as a learner or as an estimator."""
    if isinstance(given, str):
        full = registry.full_name(given.partition("(")[0].strip())
        return full if full in registry.sequence_names() else None
    inner = given._as_learner() if hasattr(given, "_as_learner") else given
    name = getattr(inner, "name", None)
    return name if name in registry.sequence_names() else None


def holds_sentences(source: Any) -> bool:
    """Whether the first file is CoNLL or CoNLL-U, by its extension or its first lines; not of standard input."""
    try:
        first = sources(source)[0]
        found = by_extension(first)
        if found is not None or first.path is None or not first.path.is_file():
            return found in LABELLED
        stream = Stream(first)
        try:
            return sniff(stream, "fasttext")[0] in LABELLED
        finally:
            stream.close()
    except DataError:  # the reader says what is wrong with it
        return False


def by_extension(source: Source) -> str | None:
    """The format that the extension gives; None if it can be any text."""
    readers()  # which fills EXTENSIONS
    found = next((EXTENSIONS[end] for end in source.extensions[:1] if end in EXTENSIONS), None)
    return None if found == "fasttext" else found


def format_to_learn(stream: Stream) -> str | None:
    """The format of a file to learn from: raw sentences have nothing to learn."""
    found = format_of(stream, needs_columns=True)
    if found == RAW:
        raise DataError(
            f"{stream.source.name} has no columns: a tagger learns from CoNLL or CoNLL-U files, which have labels"
        )
    return found


def format_of(
    stream: Stream, needs_columns: bool = False, labels: Sequence[str] = (), target: Any = None
) -> str | None:
    """The format of sentences, by the extension or the first lines; see ``format_of_lines``."""
    return by_extension(stream.source) or format_of_lines(first_lines(stream, LOOK_AT), needs_columns, labels, target)


def format_of_lines(
    lines: list[bytes], needs_columns: bool = False, labels: Sequence[str] = (), target: Any = None
) -> str:
    """CoNLL-U, CoNLL, or else raw sentences: by the first lines, as far as the first empty one.

    Lines are columns if there are equally many in each and an empty line after them; or tabs, equally many in each.
    Less is enough where more is known: with ``needs_columns``, that most lines have equally many words; with the
    ``labels`` of a tagger, that most have one of them in the column ``target``, or else in the last one.

    >>> format_of_lines([b"The dog barks .", b"Go !"])
    'sentences'
    >>> format_of_lines([b"The\\tDT", b"dog\\tNN"]), format_of_lines([b"The", b"dog", b"", b"Go"])
    ('conll', 'conll')
    >>> format_of_lines([b"New York"]), format_of_lines([b"dog NN"], labels=["NN"], target="c1")
    ('sentences', 'conll')
    """
    seen = first_sentences(lines)
    tokens = [line for line in seen if line.strip() and not line.startswith(b"-DOCSTART-") and not may_be_comment(line)]
    if not tokens:
        comments = [line for line in seen if line.strip()]
        if not comments or not all(map(NAMED_COMMENT.match, comments)):
            return RAW
        return "conllu" if target in UNIVERSAL else "conll"
    if 2 * sum(is_conllu([line]) for line in tokens) > len(tokens):
        return "conllu"
    tabs = 2 * sum(b"\t" in line for line in tokens) > len(tokens)
    rows = [line.split(b"\t") if tabs else line.split() for line in tokens]
    width, count = Counter(map(len, rows)).most_common(1)[0]
    gap = len(tokens) < len(seen) and any(not line.strip() for line in seen)
    if width == 1:
        return "conll" if gap and 1 < len(tokens) == count else RAW
    if count == len(tokens) and (gap or tabs):
        return "conll"
    most = 2 * count > len(tokens)
    return "conll" if most and (needs_columns or are_labelled(rows, labels, target)) else RAW


def first_sentences(lines: list[bytes]) -> list[bytes]:
    """The lines as far as the first empty one after a token, but some more if it comes soon."""
    filled = False
    for n, line in enumerate(lines):
        if filled and not line.strip():
            return lines[: max(n + 1, FEW)]
        filled = filled or bool(line.strip() and not line.startswith((b"#", b"-DOCSTART-")))
    return lines


def are_labelled(rows: list[list[bytes]], labels: Sequence[str], target: Any) -> bool:
    """Whether most rows have a label in the column of labels; punctuation alone, which may be a label, is none."""
    known = {label.encode() for label in labels}
    place = int(target[1:]) if re.fullmatch(r"c\d+", str(target)) else -1
    found = [row[place] for row in rows if len(row) > max(place, 1) and row[place] in known]
    return 2 * len(found) > len(rows) and any(label.decode().strip(punctuation) for label in found)
