"""Sequences drawn at random, and plain versions of what compiled loops do, by enumeration of all paths."""

from __future__ import annotations

import itertools

import numpy as np


def draw(seed, sequences=6, labels=3, attributes=8, longest=4, values=False, shortest=1):
    """(X, y): lists of lists of feature dicts, and of labels."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(sequences):
        n = int(rng.integers(shortest, longest + 1))
        X.append(
            [
                {
                    f"a{a}": float(rng.normal()) if values else 1.0
                    for a in rng.choice(attributes, size=int(rng.integers(1, 4)), replace=False)
                }
                for _ in range(n)
            ]
        )
        y.append([f"L{c}" for c in rng.integers(labels, size=n)])
    return X, y


def path_features(tokens, path):
    """The features of a path: pairs of attribute and label, transitions, beginning and end, with their values."""
    made: dict[tuple, float] = {}

    def add(key, value):
        made[key] = made.get(key, 0.0) + value

    for token, label in zip(tokens, path):
        for name, value in token.items():
            add((name, label), value)
    for before, after in itertools.pairwise(path):
        add(("->", before, after), 1.0)
    if path:
        add(("begin", path[0]), 1.0)
        add(("end", path[-1]), 1.0)
    return made


def all_paths(tokens, labels):
    return [list(path) for path in itertools.product(labels, repeat=len(tokens))]


def dot(w, features):
    return sum(w.get(key, 0.0) * value for key, value in features.items())


def weights_by_name(learner, w=None):
    """The weights of a learner by the names that ``path_features`` gives them."""
    w = learner.weights() if w is None else w
    a, owner = learner.index.arrays, learner.index.owners()
    names = learner.features.names(np.arange(learner.features.size))
    found = {
        (names[owner[j]], learner.labels[a.links[j, 0]]): w[j] for j in range(1, learner.index.used) if owner[j] >= 0
    }
    for i, one in enumerate(learner.labels):
        found["begin", one] = w[a.initial[i]]
        found["end", one] = w[a.final[i]]
        for j, other in enumerate(learner.labels):
            found["->", one, other] = w[a.transitions[i, j]]
    return found
