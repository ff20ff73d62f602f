"""Kernels of strings and trees: blocks of short strings, long strings, merged supports.

"Pure Python" is the textbook's dynamic programme on a few of the pairs (Collins & Duffy's recursion for trees, with
a memory of the pairs met). "Table" is our own compiled dynamic programme, which long strings would otherwise take. The
growth is the slope of log time by log length: 1 is linear, 2 is what the table has. "Plain sum" is the kernel of all
strings with all supports, times the coefficients.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from timing import OURS, Part, Row, race

from onlearn.kernels import Substrings, Trees
from onlearn.kernels.string_pairs import by_table, running_sums

PURE = "pure Python"
PAIRS = 10  # pure Python does so many strings by so many
LETTERS = {"DNA": "acgt", "text": "etaoinshrdlucmfwypvbgkjqxz      "}


def strings(count: int, length: int, letters: str) -> list[str]:
    rng = np.random.default_rng(length)
    return ["".join(rng.choice(list(letters), length)) for _ in range(count)]


def pure_strings(X: list[str], Z: list[str]) -> list[list[int]]:
    return [[pure_pair(x, z) for z in Z] for x in X]


def pure_pair(x: str, z: str) -> int:
    total, row = 0, [0] * (len(z) + 1)
    for a in x:
        before = row
        row = [0] * (len(z) + 1)
        for j, b in enumerate(z, 1):
            if a == b:
                row[j] = before[j - 1] + 1
                total += row[j]
    return total


def table(k: Substrings, P: Any) -> float:
    text, starts = P["strings"].text, P["strings"].starts
    out = np.empty((1, 1))
    upto = running_sums(k.weights(P["strings"].longest))
    by_table(text, starts[0], starts[1], text, starts, np.array([1]), upto, out)
    return float(out[0, 0])


def long_strings(name: str, quick: bool, repeat: int) -> Iterator[Row]:
    k = Substrings()
    lengths = [1_000, 2_000] if quick else [10_000, 20_000, 40_000, 80_000]
    points = {length: k.points(strings(2, length, LETTERS[name])) for length in lengths}
    ways = {length: partial(k.block, P.take([0]), P.take([1])) for length, P in points.items()}
    ours = race("all lengths take turns, so that what else the machine does hits them alike", ways, 2 * repeat)
    for length, P in points.items():
        taken = {OURS: ours.taken[length]}
        if length <= 20_000:
            taken["table"] = race("", {"table": partial(table, k, P)}, repeat).taken["table"]
        yield Row(f"{name}, 1 pair of {length:,}", taken, {})
    growth = np.polyfit(np.log(lengths), np.log([ours.best(length) for length in lengths]), 1)[0]
    yield Row(f"{name}, growth from {lengths[0]:,} to {lengths[-1]:,}", {OURS: [float(growth)]}, {}, unit="(exponent)")


def tree(rng: np.random.Generator, depth: int, label: str = "S") -> Any:
    """A parse tree of a small grammar, in tuples."""
    rules = {
        "S": [["NP", "VP"]],
        "NP": [["D", "N"], ["D", "J", "N"], ["NP", "PP"]],
        "VP": [["V", "NP"], ["V"], ["VP", "PP"]],
        "PP": [["P", "NP"]],
    }
    if label not in rules:
        return (label, f"{label}{rng.zipf(1.5) % 50}")
    choices = rules[label][: 1 if depth <= 0 else None]
    return (label, *(tree(rng, depth - 1, part) for part in choices[rng.integers(len(choices))]))


def pure_trees(X: list[Any], Z: list[Any]) -> list[list[float]]:
    return [[pure_tree_pair(x, z) for z in Z] for x in X]


def pure_tree_pair(x: Any, z: Any) -> float:
    known: dict[tuple[int, int], float] = {}

    def common(a: Any, b: Any) -> float:
        if (id(a), id(b)) not in known:
            value = 0.0
            if production(a) == production(b):
                value = 1.0
                for c, d in zip(a[1:], b[1:], strict=True):
                    value *= 1.0 if isinstance(c, str) else 1.0 + common(c, d)
            known[id(a), id(b)] = value
        return known[id(a), id(b)]

    return sum(common(a, b) for a in nodes(x) for b in nodes(z))


def production(node: Any) -> tuple[Any, ...]:
    return (node[0], *((child,) if isinstance(child, str) else child[0] for child in node[1:]))


def nodes(node: Any) -> Iterator[Any]:
    if not isinstance(node, str):
        yield node
        for child in node[1:]:
            yield from nodes(child)


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    count = 50 if quick else 500
    scale = (count / PAIRS) ** 2
    k = Substrings()
    for name, letters in LETTERS.items():
        X, Z = strings(count, 60, letters), strings(2 * count, 60, letters)[count:]
        few, others = X[:PAIRS], Z[:PAIRS]
        assert (k(few, others) == np.array(pure_strings(few, others))).all()
        pure = Part(partial(pure_strings, few, others), scale)
        yield race(f"{name}, {count} x {count} of 60", {OURS: partial(k, X, Z), PURE: pure}, repeat)
    for name in LETTERS:
        yield from long_strings(name, quick, repeat)

    outputs = 10
    coefs = np.random.default_rng(0).normal(size=(4 * count, outputs))
    for supports in (count, 4 * count):
        P, Q = k.points(strings(count, 60, "acgt")), k.points(strings(5 * count, 60, "acgt")[count:])
        S = Q.take(slice(supports))
        merged, a = k.merged(S, coefs[:supports]), coefs[:supports]
        ways = {OURS: partial(merged.scores, P), "plain sum": lambda P=P, S=S, a=a: k.block(P, S) @ a}
        yield race(f"{count} strings by {supports} supports, {outputs} outputs, merged", ways, repeat)

    rng = np.random.default_rng(0)
    X = [tree(rng, 6) for _ in range(count)]
    t = Trees()
    assert np.allclose(t(X[:PAIRS]), pure_trees(X[:PAIRS], X[:PAIRS]))
    P, Q = t.points(X), t.points(X)
    size = int(np.mean([len(list(nodes(x))) for x in X]))
    pure = Part(partial(pure_trees, X[:PAIRS], X[:PAIRS]), scale)
    yield race(f"{count} x {count} trees of {size} nodes", {OURS: partial(t.block, P, Q), PURE: pure}, repeat)
