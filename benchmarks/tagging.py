"""Label sequences: CoNLL-2000 chunks and UD English parts of speech, against CRFsuite.

On CoNLL-2000 both have the chunking template of CRF++. "learn" begins with attributes as each library takes them (for
CRFsuite lists of strings, appended beforehand); "file to model" begins with the file; "processor time of a pass" is
that of nine more passes, divided by nine. On UD English ours is what ``onlearn train`` does if nothing is said, and
CRFsuite has the attributes of our default template. The accuracy is that of tokens; the F1 of chunks has a line of its
own. "Raw tokens to labels" begins with lists of words; CRFsuite gets attributes that are made already. CRFsuite runs on
one core, ours on all. Memory is the most that a process held which read the file and learned.
"""

from __future__ import annotations

import gzip
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from timing import OURS, Row, race

import onlearn
from onlearn.data.batch import Sentences
from onlearn.engine.registry import make_learner, parse_call
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
    yield contest_pass(train, template)
    yield from contest_files(home / "conll2000" / "train.txt.gz", template, repeat)
    yield from contest_memory(home / "conll2000" / "train.txt.gz", template)
    folder = home / "ud_english_ewt"
    files = {part: next(path for path in folder.iterdir() if part in path.name) for part in ("train", "test")}
    train, test = (Corpus(files[part], "upos", ["form"], most) for part in ("train", "test"))
    _, _, named = parse_call(DEFAULT)
    params: dict[str, Any] = dict(**named, random_state=0)
    yield from contest(
        "parts of speech, default learner", lambda: onlearn.StructuredPerceptron(**params), "ap",
        {"max_iterations": passes}, train, test, None, repeat,
    )  # fmt: skip
    yield contest_tagging(train, test, params, repeat)
    yield accuracy_of_hmm(train, test)


def contest_pass(train: Corpus, template: str) -> Row:
    """The processor time of a pass of the averaged perceptron, without what comes before the first."""
    seconds: dict[str, list[float]] = {OURS: [], PEER: []}
    ends: list[float] = []
    learner = make_learner("StructuredPerceptron", epochs=10, template=template, random_state=0)
    learner.fit(train.sentences, train.labels, watch=lambda _: ends.append(time.process_time()))
    seconds[OURS].append((ends[-1] - ends[0]) / 9)
    if peer_installed():
        attributes, y, taken = train.attributes(template), train.cut(train.labels), []
        for passes in (1, 10):
            began = time.process_time()
            crfsuite("ap", {"max_iterations": passes}, attributes, y)
            taken.append(time.process_time() - began)
        seconds[PEER].append((taken[1] - taken[0]) / 9)
    return Row("chunks, averaged perceptron: processor time of a pass", seconds, {})


def contest_tagging(train: Corpus, test: Corpus, params: dict[str, Any], repeat: int) -> Row:
    """Label the training sentences, which are more than those of the test."""
    sentences = train.cut(train.columns["form"])
    tagger = onlearn.StructuredPerceptron(**params).fit(train.sentences, train.labels)
    peer = None
    if peer_installed():
        attributes = train.attributes(None)
        tag = crfsuite("ap", {"max_iterations": 2}, attributes, train.cut(train.labels))
        peer = lambda: tag(attributes) is None  # noqa: E731
    contenders = {OURS: lambda: tagger.predict(sentences) is None, PEER: peer}
    return race(f"parts of speech: {len(train.labels):,} raw tokens to labels", contenders, repeat)


def accuracy_of_hmm(train: Corpus, test: Corpus) -> Row:
    """A hidden Markov model that counts, unknown words included."""
    share = onlearn.HMM().fit(train.sentences, train.labels).learner_.score(test.sentences, test.labels)
    return Row("parts of speech, HMM: accuracy, %", {OURS: [100 * share], PEER: []}, {}, unit="")


PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
from tagging import learn_once
learn_once(*sys.argv[2:])
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def contest_memory(path: Path, template: str) -> Iterator[Row]:
    """The most memory of a process that learns from the file; Linux tells."""
    if not Path("/proc/self/status").exists():
        return
    for work, learner in (("averaged perceptron", "structured-perceptron"), ("CRF, L2", "crf")):
        row = Row(f"chunks, {work}: memory of file to model", {OURS: [], PEER: []}, {}, unit="bytes")
        for name in (OURS, PEER) if peer_installed() else (OURS,):
            command = [sys.executable, "-c", PROGRAM, str(Path(__file__).parent), str(path), template, learner, name]
            shown = subprocess.run(command, capture_output=True, check=True, text=True).stdout
            row.taken[name].append(1024 * float(shown))
        yield row


def learn_once(path: str, template: str, learner: str, name: str) -> None:
    """What ``contest_memory`` measures; two passes or iterations take as much memory as all of them."""
    with tempfile.TemporaryDirectory() as folder:
        if name == OURS:
            onlearn.train(path, os.path.join(folder, "m.onl"), task="tag", column="c2", learner=learner, passes=2,
                          template=template_file(folder, template))  # fmt: skip
        else:
            X, y = read_attributes(Path(path), template)
            crfsuite("ap" if learner == "structured-perceptron" else "lbfgs", {"max_iterations": 2}, X, y)


def contest_files(path: Path, template: str, repeat: int) -> Iterator[Row]:
    """From the file to the model, with 10 passes of the averaged perceptron."""

    def ours() -> None:
        with tempfile.TemporaryDirectory() as folder:
            onlearn.train(str(path), os.path.join(folder, "m.onl"), task="tag", column="c2", passes=10,
                          learner="structured-perceptron", template=template_file(folder, template))  # fmt: skip

    def peer() -> None:
        crfsuite("ap", {"max_iterations": 10}, *read_attributes(path, template))

    yield race(
        "chunks, averaged perceptron: file to model", {OURS: ours, PEER: peer if peer_installed() else None}, repeat
    )


def template_file(folder: str, template: str) -> str:
    path = os.path.join(folder, "template")
    Path(path).write_text(template, encoding="utf-8")
    return path


def read_attributes(path: Path, template: str) -> tuple[list[Any], list[list[str]]]:
    """The attributes and labels of a file, as one makes them in Python for CRFsuite."""
    sentences: list[list[list[str]]] = [[]]
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            if line.strip():
                sentences[-1].append(line.split())
            elif sentences[-1]:
                sentences.append([])
    sentences = [one for one in sentences if one]
    parsed = [
        (line.partition(":")[0], [json.loads(part.removeprefix("%x")) for part in line.partition(":")[2].split("/")])
        for line in template.split("\n")[:-1]
    ]
    X = [
        [
            [
                f"{name}:"
                + "/".join(tokens[t + row][column] if 0 <= t + row < len(tokens) else "_B" for row, column in parts)
                for name, parts in parsed
            ]
            for t in range(len(tokens))
        ]
        for tokens in sentences
    ]
    return X, [[token[2] for token in tokens] for tokens in sentences]
