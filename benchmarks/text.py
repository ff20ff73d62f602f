"""From 25,000 film reviews to a matrix: words and pairs of words, counted, weighed and scaled to unit length.

The imdb reviews, where ONLEARN_DATA holds them. Learning makes the vocabulary and the matrix, applying makes the
matrix of known words only. scikit-learn's words have at least two letters, so it has fewer features. fastText makes no
matrix, so it is met at one pass from texts in memory to a classifier of two classes.
"""

from __future__ import annotations

import gzip
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import fast_text
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from timing import OURS, Row, race

from onlearn import OnlineClassifier
from onlearn.features import Features, Text


def reviews() -> tuple[list[str], list[str]] | None:
    """Texts and labels; None where ONLEARN_DATA does not hold them."""
    file = Path(os.environ.get("ONLEARN_DATA", "")) / "imdb" / "train.jsonl.gz"
    if not os.environ.get("ONLEARN_DATA") or not file.exists():
        return None
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [row["text"] for row in rows], [row["label"] for row in rows]


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    found = reviews()
    if found is None:
        return
    texts, labels = (part[:1000] if quick else part for part in found)
    ours = Text("text", ngrams=(1, 2), weighting="log-tfidf")
    peer = dict(ngram_range=(1, 2), sublinear_tf=True)
    peer_characters = dict(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True)
    hashed = HashingVectorizer(ngram_range=(1, 2), n_features=1 << 22)
    learn = {
        OURS: lambda: Features([ours]).fit_transform(texts),
        "scikit-learn": lambda: TfidfVectorizer(**peer).fit_transform(texts),
        "scikit-learn, hashed": lambda: hashed.fit_transform(texts),
    }
    yield race("tf-idf, learning", learn, repeat)
    known, peer_known = Features([ours]).fit(texts), TfidfVectorizer(**peer).fit(texts)
    apply = {OURS: lambda: known.transform(texts), "scikit-learn": lambda: peer_known.transform(texts)}
    yield race("tf-idf, applying", apply, repeat)
    characters, part = Text("text", ngrams=None, chars=(2, 5), weighting="log-tfidf"), texts[: len(texts) // 5]
    pieces = {
        OURS: lambda: Features([characters]).fit_transform(part),
        "scikit-learn": lambda: TfidfVectorizer(**peer_characters).fit_transform(part),
    }
    yield race("characters 2-5, a fifth of it", pieces, repeat)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        learners = {
            OURS: lambda: one_pass(texts, labels),
            "fastText": (lambda: fast_text.learn(texts, labels, folder, epochs=1)) if fast_text.THERE else None,
        }
        yield race("texts to a classifier, one pass", learners, repeat)


def one_pass(texts: list[str], labels: list[str]) -> OnlineClassifier:
    """What ``onlearn train`` learns text with."""
    learner = OnlineClassifier("pa2(0.5)", geometry="arow(1.0)", stabilizer="last", epochs=1, random_state=0)
    return learner.fit(Features([Text("text", ngrams=(1, 2), weighting="idf")]).fit_transform(texts), labels)
