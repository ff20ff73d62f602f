"""Label sequences: CoNLL-2000 chunks and UD English parts of speech, against CRFsuite.

On CoNLL-2000 both have the chunking template of CRF++. "learn" begins with attributes as each library takes them (for
CRFsuite lists of strings, appended beforehand); "file to model" begins with the file. On UD English ours is what
``onlearn train`` does if nothing is said; CRFsuite has the attributes of our default template. The accuracy is that of
tokens; the F1 of chunks has a line of its own. CRFsuite runs on one core, ours on all.
"""

from __future__ import annotations

import gzip
import itertools
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from timing import OURS, Row, race

import onlearn
from onlearn.data.batch import Sentences
from onlearn.engine.registry import parse_call
from onlearn.models.tag_training import DEFAULT
from onlearn.sequence.extraction import TemplateFeatures
from onlearn.sequence.spans import detect_scheme
from onlearn.sequence.tag_metrics import tag_report
from onlearn.sequence.templates import Template

PEER = "CRFsuite"
WORDS, TAGS = ("[-2,0]", "[-1,0]", "[0,0]", "[1,0]", "[2,0]"), ("[-2,1]", "[-1,1]", "[0,1]", "[1,1]", "[2,1]")


def chunking_template() -> str:
    """The template that CRF++ comes with for chunks."""
    parts = [(one,) for one in WORDS] + [WORDS[1:3], WORDS[2:4]] + [(one,) for one in TAGS]
    parts += [*itertools.pairwise(TAGS), *(TAGS[n : n + 3] for n in range(3))]
    return "\n".join([f"U{n:02d}:" + "/".join(f"%x{one}" for one in part) for n, part in enumerate(parts)] + ["B"])


class Corpus:
    """Sentences with their labels, as words and as attributes."""

    def __init__(self, path: Path, target: str, columns: list[str], most: int | None) -> None:
        with onlearn.data.read(str(path), target=target) as reader:
            batches = [batch.slice(0, min(len(batch), most or len(batch))) for batch in reader]
        batches = batches[:1] if most else batches
        self.columns = {name: np.concatenate([one.parsed.columns[name] for one in batches]) for name in columns}
        lengths = np.concatenate([np.diff(one.parsed.offsets) for one in batches])
        self.offsets = np.concatenate([[0], np.cumsum(lengths)])
        self.labels = np.concatenate([one.y for one in batches]).astype(str)
        self.sentences = Sentences(self.columns, self.offsets)

    def cut(self, flat: Any) -> list[Any]:
        """One list a sentence."""
        flat = list(flat)
        return [flat[a:b] for a, b in itertools.pairwise(self.offsets.tolist())]

    def attributes(self, template: str | None) -> list[list[list[str]]]:
        """The names of the attributes of each token."""
        names = list(self.columns)
        made = Template.default(names) if template is None else Template.parse(template, "benchmark")
        features = TemplateFeatures(made, names)
        rows = features.learn_transform(self.sentences)
        known = np.array(features.names(np.arange(features.size)), dtype=object)[rows.indices]
        return self.cut(known[a:b].tolist() for a, b in itertools.pairwise(rows.indptr.tolist()))


def f1(gold: np.ndarray, found: np.ndarray, corpus: Corpus) -> float:
    """The F1 of chunks, in per cent."""
    labels = sorted({*gold.tolist(), *found.tolist()})
    code = {label: n for n, label in enumerate(labels)}
    a, b = (np.array([code[label] for label in one]) for one in (gold.tolist(), found.tolist()))
    report = tag_report(a, b, labels, corpus.offsets, np.ones(len(a), dtype=bool))
    return 100 * float(report["spans"]["f1"])


def crfsuite(algorithm: str, params: dict[str, Any], X: Any, y: Any) -> Any:
    """Train CRFsuite; returns what tags attributes."""
    import pycrfsuite

    trainer = pycrfsuite.Trainer(algorithm, params, verbose=False)
    for tokens, labels in zip(X, y):
        trainer.append(tokens, labels)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model")
        trainer.train(path)
        tagger = pycrfsuite.Tagger()
        tagger.open(path)
        size = os.path.getsize(path)

    def tag(X: Any) -> np.ndarray:
        return np.array([label for tokens in X for label in tagger.tag(tokens)])

    tag.size = size  # type: ignore[attr-defined]
    return tag


def peer_installed() -> bool:
    import importlib.util

    return importlib.util.find_spec("pycrfsuite") is not None


def contest(work: str, make: Any, algorithm: str, params: dict[str, Any], train: Corpus, test: Corpus,
            template: str | None, repeat: int) -> Iterator[Row]:  # fmt: skip
    """Learn, and judge by accuracy, F1 and the size of the model file."""
    attributes, questions = train.attributes(template), test.attributes(template)
    y, found, sizes = train.cut(train.labels), {}, {}

    def ours() -> Any:
        learner = make().fit(train.sentences, train.labels).learner_
        found[OURS] = np.array(learner.labels, dtype=object)[learner.predict_codes(test.sentences)].astype(str)
        with tempfile.TemporaryDirectory() as folder:
            learner.save(os.path.join(folder, "m.onl"))
            sizes[OURS] = os.path.getsize(os.path.join(folder, "m.onl"))
        return lambda _: found[OURS]

    def peer() -> Any:
        tag = crfsuite(algorithm, params, attributes, y)
        found[PEER], sizes[PEER] = tag(questions), tag.size
        return lambda _: found[PEER]

    contenders = {OURS: ours, PEER: peer if peer_installed() else None}
    yield race(f"{work}: learn, tag, save", contenders, repeat, (None, test.labels))
    if detect_scheme(sorted(set(test.labels.tolist()))):
        scores = {name: [f1(test.labels, one, test)] for name, one in found.items()}
        yield Row(f"{work}: F1 of chunks, %", scores, {}, unit="")
    yield Row(f"{work}: model file, MB", {name: [size / 1e6] for name, size in sizes.items()}, {}, unit="")


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    if "ONLEARN_DATA" not in os.environ:
        return
    home, most = Path(os.environ["ONLEARN_DATA"]), 300 if quick else None
    train, test = (
        Corpus(home / "conll2000" / f"{name}.txt.gz", "c2", ["c0", "c1"], most) for name in ("train", "test")
    )
    template, passes = chunking_template(), 10
    chunks: dict[str, Any] = dict(template=template, random_state=0)
    yield from contest(
        "chunks, averaged perceptron, 10 passes", lambda: onlearn.StructuredPerceptron(epochs=passes, **chunks), "ap",
        {"max_iterations": passes}, train, test, template, repeat,
    )  # fmt: skip
    yield from contest(
        "chunks, CRF, L2", lambda: onlearn.CRF(l2=2.0, **chunks), "lbfgs", {"c1": 0.0, "c2": 1.0}, train, test,
        template, 1,
    )  # fmt: skip
    yield from contest(
        "chunks, CRF, L1", lambda: onlearn.CRF(l1=1.0, l2=0.0, **chunks), "lbfgs", {"c1": 1.0, "c2": 0.0}, train, test,
        template, 1,
    )  # fmt: skip
    yield from contest_files(home / "conll2000" / "train.txt.gz", template, repeat)
    folder = home / "ud_english_ewt"
    files = {part: next(path for path in folder.iterdir() if part in path.name) for part in ("train", "test")}
    train, test = (Corpus(files[part], "upos", ["form"], most) for part in ("train", "test"))
    _, _, named = parse_call(DEFAULT)
    params: dict[str, Any] = dict(**named, random_state=0)
    yield from contest(
        "parts of speech, default learner", lambda: onlearn.StructuredPerceptron(**params), "ap",
        {"max_iterations": passes}, train, test, None, repeat,
    )  # fmt: skip


def contest_files(path: Path, template: str, repeat: int) -> Iterator[Row]:
    """From the file to the model, with 10 passes of the averaged perceptron."""

    def ours() -> None:
        with tempfile.TemporaryDirectory() as folder:
            onlearn.train(str(path), os.path.join(folder, "m.onl"), task="tag", column="c2", passes=10,
                          learner="structured-perceptron", template=template_file(folder, template))  # fmt: skip

    def peer() -> None:
        sentences: list[list[list[str]]] = [[]]
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for line in file:
                if line.strip():
                    sentences[-1].append(line.split())
                elif sentences[-1]:
                    sentences.append([])
        sentences = [one for one in sentences if one]
        parsed = [
            (
                line.partition(":")[0],
                [json.loads(part.removeprefix("%x")) for part in line.partition(":")[2].split("/")],
            )
            for line in template.split("\n")[:-1]
        ]
        X = [
            [
                [
                    f"{name}:" + "/".join(
                        tokens[t + row][column] if 0 <= t + row < len(tokens) else "_B" for row, column in parts
                    )
                    for name, parts in parsed
                ]
                for t in range(len(tokens))
            ]
            for tokens in sentences
        ]  # fmt: skip
        crfsuite("ap", {"max_iterations": 10}, X, [[token[2] for token in tokens] for tokens in sentences])

    yield race(
        "chunks, averaged perceptron: file to model", {OURS: ours, PEER: peer if peer_installed() else None}, repeat
    )


def template_file(folder: str, template: str) -> str:
    path = os.path.join(folder, "template")
    Path(path).write_text(template, encoding="utf-8")
    return path
