"""Facts and evidence of every kind of report, as the commands would give them; names that try to break a page."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.data import Batch
from onlearn.models.evaluation import Evaluation, Predictions, RegressionEvaluation
from onlearn.report import Evidence

HOSTILE = [
    "</script><script>alert(1)</script>",
    "</title></style><img src=x onerror=alert(2)>",
    "\x00\x07\x1b[31mred\x7f",
    "\u202egnp.exe\u202c \u2066isolated",
    "a\u2028b\u2029c",
    "{{ 7 * 7 }}{% raw %}",
    "'\"><svg onload=alert(3)>",
    "x" * 1_000_000,
    "\ud800 lone surrogate",
    "שלום עולם",
    "naïve 漢字 🦜",
    "",
]


def classified(labels: list[str], rows: int = 300, seed: int = 0, texts: list[str] | None = None) -> Any:
    """The figures and the evidence of a classifier that is right about two times in three."""
    rng = np.random.default_rng(seed)
    count = len(labels)
    gold = rng.integers(0, count, rows)
    logits = rng.normal(size=(rows, count))
    logits[np.arange(rows), gold] += 1.5
    proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    answers = np.argmax(proba, axis=1)
    scores = (logits[:, 1] - logits[:, 0])[:, None] if count == 2 else logits
    evaluation, evidence = Evaluation(labels), Evidence(labels)
    told = texts or [f"row {n} of the data" for n in range(rows)]
    for start in range(0, rows, 100):
        some = slice(start, start + 100)
        evaluation.add(gold[some], answers[some], proba[some], scores[some] if count == 2 else None)
        batch = Batch([told[n % len(told)] for n in range(*some.indices(rows))], file="test.jsonl")
        evidence.observe(batch, gold[some], Predictions(answers[some], scores[some], proba[some]))
    return {**evaluation.report(), "bad_rows": 0}, evidence


def regressed(rows: int = 500) -> Any:
    """The figures and the evidence of a regression."""
    rng = np.random.default_rng(0)
    gold = rng.normal(50, 10, rows)
    found = gold + rng.normal(0, 2, rows)
    evaluation, evidence = RegressionEvaluation(), Evidence(None)
    evaluation.add(gold, found)
    evidence.observe(Batch([f"row {n}" for n in range(rows)], file="test.csv"), gold, Predictions(found))
    return {**evaluation.report(), "bad_rows": 0}, evidence


def trained(labels: list[str] | None, test: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """The facts of ``onlearn train``."""
    made = {
        "model": "m.onl",
        "learner": "AveragedPerceptron()",
        "task": "regress" if labels is None else "classify",
        "labels": labels,
        "rows": 1000,
        "examples": 3000,
        "passes": 3,
        "passes_ended": 3,
        "features": 25,
        "names": 25,
        "hashed_features": 0,
        "bad_rows": 0,
        "seconds": 0.25,
        "notes": ["c0 is numeric: whole numbers"],
        "warnings": [],
        "stopped": False,
        "cache": None,
        "progressive": {"n": 1000, "loss": 0.4},
    }
    if labels is not None:
        made["progressive"] |= {"mistakes": 120, "accuracy": 0.88, "majority": 0.6}
    return {**made, **({} if test is None else {"test": test}), **more}


HISTORY = {
    "doubling": [{"seen": 2.0**k, "mistakes": 1.0 + k, "loss": 1 / (k + 1)} for k in range(11)],
    "passes": [{"seen": 1000.0, "mistakes": 120.0 / k, "loss": 0.4 / k} for k in (1, 2, 3)],
}

TAGGED = {
    "tokens": 100,
    "sentences": 10,
    "right": 90,
    "accuracy": 0.9,
    "known_words": {"tokens": 80, "right": 75, "accuracy": 0.9375},
    "unknown_words": {"tokens": 20, "right": 15, "accuracy": 0.75},
    "sentences_right": 4,
    "sentence_accuracy": 0.4,
    "per_label": {"B-NP": {"precision": 0.9, "recall": 0.8, "f1": 0.85, "support": 60}},
    "confusion": [("B-NP", "B-NP", 48), ("B-NP", "O", 12)],
    "unknown_labels": {},
    "scheme": "BIO",
    "spans": {
        "precision": 0.9,
        "recall": 0.8,
        "f1": 0.85,
        "by_type": {"NP": {"precision": 0.9, "recall": 0.8, "f1": 0.85, "gold": 60}},
    },
    "bad_rows": 0,
}

TUNED = {
    "configurations": [
        {
            "number": n,
            "options": {"learner": "AROW", "rate": 0.1 * n},
            "spelling": f"--learner AROW --rate {0.1 * n:g}",
            "rungs": [
                {"examples": 1024 << k, "loss": 0.5 / (k + 1) + 0.01 * n, "mistakes": 100} for k in range(4 - n % 4)
            ],
            "dropped_at": None if n == 0 else 1024 << (3 - n % 4),
            "why": None if n == 0 else "half" if n % 3 else "diverged: the weights are not finite",
            "rank": n + 1,
        }
        for n in range(12)
    ],
    "winner": 0,
    "command": "onlearn train data.csv -o m.onl --learner AROW",
    "examples": 8192,
    "seconds": 1.5,
}

COMPARED = {
    "data": "adult.csv",
    "rows": 1000,
    "test_rows": 200,
    "learners": [
        {
            "name": name,
            "accuracy": 0.8 + 0.02 * k,
            "log_loss": 0.4,
            "mistakes": 100 - k,
            "seconds": 0.1 * (k + 1),
            "memory_bytes": 10_000_000,
            "model_bytes": 20_000,
            "curve": [{"seen": 2**n, "loss": 1 / (n + 1), "mistakes": n} for n in range(10)],
        }
        for k, name in enumerate(["AROW", "Perceptron", "SGDClassifier"])
    ],
    "pairs": [
        {"a": "AROW", "b": "Perceptron", "test": "mcnemar", "p": 0.02, "difference": 0.01, "low": 0, "high": 0.02}
    ],
}

SEVERAL = {
    "n": 400,
    "subset_accuracy": 0.4,
    "hamming_loss": 0.2,
    "micro_f1": 0.7,
    "macro_f1": 0.65,
    "precision_at_1": 0.8,
    "labels_a_row": 1.5,
    "log_loss": 0.4,
    "per_class": {"a": {"precision": 0.5, "recall": 0.5, "f1": 0.5, "support": 200}},
    "labels": ["a"],
    "unknown_labels": {"z": 3},
    "unlabelled": 2,
    "bad_rows": 0,
}

BOUND = {"bound": "winnow", "arguments": {"n": 1024, "k": 3}, "value": 101.0, "about": "3k(log2 n + 1) + 2: mistakes"}

REPRODUCED = {
    "title": "test error, spambase",
    "columns": ["error"],
    "rows": [
        {
            "name": "averaged perceptron",
            "ours": [0.06],
            "published": [0.08],
            "goal": [None],
            "seconds": 0.1,
            "mean": None,
            "seeds": 1,
        }
    ],
    "reached": True,
}


def every_kind() -> dict[str, tuple[str, dict[str, Any], Any]]:
    """A report of each kind, by name: kind, facts and evidence."""
    two, of_two = classified(["ham", "spam"])
    of_two.note_progress(HISTORY)
    of_two.more["weights"] = {
        "of": "features",
        "labels": 2,
        "shown": [{"label": "spam", "top": [["cheap", 1.5], ["pills", -0.5]]}],
    }
    three, of_three = classified(["a", "b", "c"])
    many, of_many = classified([f"class {n}" for n in range(100)], 3000)
    numbers, of_numbers = regressed()
    return {
        "train, two classes": ("train", trained(["ham", "spam"], two), of_two),
        "train, tuned": ("train", trained(["ham", "spam"], two, tuning=TUNED), of_two),
        "train, no test data": ("train", trained(["ham", "spam"]), None),
        "evaluate, three classes": ("evaluate", three, of_three),
        "evaluate, 100 classes": ("evaluate", many, of_many),
        "evaluate, one class": ("evaluate", classified(["only"])[0], Evidence(["only"])),
        "evaluate, regression": ("evaluate", numbers, of_numbers),
        "train, tagger": ("train", trained(["B-NP", "O"], TAGGED, task="tag", scheme="BIO", described={}), None),
        "evaluate, tagger": ("evaluate", TAGGED, None),
        "tune": ("tune", TUNED, None),
        "compare": ("compare", COMPARED, None),
        "evaluate, several labels": ("evaluate", SEVERAL, None),
        "bounds": ("bounds", BOUND, None),
        "reproduce": ("reproduce", REPRODUCED, None),
    }
