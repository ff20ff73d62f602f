"""Which runs are about taggers, and which files hold sentences: CoNLL, CoNLL-U, or raw text with a sentence a line."""

from __future__ import annotations

import os
import sys
from typing import Any

from onlearn.data.bad_rows import DataError
from onlearn.data.registry import EXTENSIONS, is_conll, is_conllu, readers, sniff
from onlearn.data.sources import MAGIC, Source, Stream, first_lines, sources
from onlearn.engine import registry
from onlearn.errors import PlanError
from onlearn.model_file import read_header
from onlearn.models.train_options import TrainOptions, as_list

LABELLED = ("conll", "conllu")
RAW = "sentences"
LOOK_AT = 50  # lines


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


def format_of_all(source: Any) -> str | None:
    """The format of files to tag: text whose lines are no CoNLL is raw sentences. None: their extensions say it."""
    found = {one.name: format_of(one) for one in sources(source)}
    formats = set(found.values())
    if len(formats) == 1:
        return formats.pop()
    if RAW in formats:
        raw = next(name for name, format in found.items() if format == RAW)
        other = next(name for name, format in found.items() if format != RAW)
        raise DataError(f"{raw} holds raw sentences and {other} does not: tag them one by one, or say format=")
    return None


def format_of(source: Source) -> str | None:
    """The format of one file to tag; None if the reader has to look itself."""
    found = by_extension(source)
    if found is not None:
        return found
    if source.path is not None:
        stream = Stream(source)
        try:
            if not stream.head(1):
                return RAW  # empty, which the reader says
            lines = first_lines(stream)
        finally:
            stream.close()
    else:
        raw: Any = None if sys.stdin is None else sys.stdin.buffer
        head = raw.peek(1) if hasattr(raw, "peek") else b""
        if any(head.startswith(magic) for magic in MAGIC):
            return None
        lines = head.splitlines()
    return format_of_lines(lines[:LOOK_AT])


def format_of_lines(lines: list[bytes]) -> str:
    """CoNLL-U, CoNLL, or else raw sentences.

    >>> format_of_lines([b"The dog barks .", b"Go !"])
    'sentences'
    >>> format_of_lines([b"The\\tDT", b"dog\\tNN"]), format_of_lines([b"The", b"dog", b"", b"Go"])
    ('conll', 'conll')
    """
    filled = [line for line in lines if line.strip()]
    if is_conllu(filled):
        return "conllu"
    widths = {line.count(b"\t") for line in filled if not line.startswith(b"-DOCSTART-")}
    if is_conll(lines) or (len(widths) == 1 and widths.pop() > 0):
        return "conll"
    one_each = len(filled) > 1 and all(len(line.split()) == 1 for line in filled)
    return "conll" if one_each and len(filled) < len(lines) else RAW
