"""fastText as a peer: a bag of words and pairs of words, hashed, with a small hidden layer."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

THERE = find_spec("fasttext") is not None


def words(text: str) -> str:
    """In lower case and without punctuation, for it cuts at blanks only."""
    return " ".join(re.findall(r"\w+", text.lower()))


def learn(texts: Sequence[str], labels: Sequence[str], folder: Path, epochs: int) -> Callable[[Any], np.ndarray]:
    """Write its input, and learn on both cores; predicts a list of texts."""
    import fasttext

    source = folder / "rows.ft"
    names = {label: f"__label__{n}" for n, label in enumerate(sorted(set(labels)))}
    with open(source, "w", encoding="utf-8") as file:
        file.writelines(f"{names[label]} {words(text)}\n" for text, label in zip(texts, labels))
    model = fasttext.train_supervised(input=str(source), wordNgrams=2, epoch=epochs, thread=2, verbose=0)
    meant = {name: label for label, name in names.items()}

    def predict(rows: Sequence[str]) -> np.ndarray:
        found, _ = model.predict([words(text) for text in rows])
        return np.array([meant[first[0]] for first in found], dtype=object)

    return predict
