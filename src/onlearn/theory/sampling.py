"""Examples of a concept, drawn at random.

- uniform: every instance is equally likely.
- balanced: half of the labels are 1; the instance is drawn uniformly among those with its label.
- sparse: half of the labels are 1; few attributes that do not matter are on, and those that do are drawn so that
  examples of both labels are near the boundary. Sparse rows.

Given the label, the number of true literals of "at least m" has the binomial distribution cut at m, and which they are
is uniform. A true instance of a DNF is drawn as R. Karp and M. Luby do (1983): a term in proportion to the instances it
covers, an instance of it, kept with probability 1 / (terms that hold). Few attributes are enumerated. What remains is
drawn until the label fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from onlearn.theory.instances import Bools
from onlearn.theory.normal_form import Counted

_ENUMERATED = 12  # attributes of which all assignments are looked at
_BLOCK = 1 << 22  # random numbers drawn at a time
_TRIES = 1 << 22  # Boolean values drawn in vain before giving up

Generator: TypeAlias = "np.random.Generator"  # whose module is not loaded before it is needed
Evaluate = Callable[[Bools], Bools]


def half_and_half(m: int, rng: Generator) -> Bools:
    """Labels of which half are 1, in random order; if m is odd, a coin decides about the last."""
    labels = np.arange(m + rng.integers(2)) % 2 == 1
    return rng.permutation(labels[len(labels) - m :])


def counted_bits(form: Counted, labels: Bools, rng: Generator, near: bool) -> Bools:
    """The attributes of "at least m of k literals", given the labels; a column for each, in the order of `in_order`.

    Every literal holds with probability 1/2, or `near` the boundary with that at which both labels are about equally
    likely: the median of the distribution Beta(m, k - m + 1).
    """
    m, k = form.at_least, len(form.literals)
    if k == 0:
        _check_possible(labels, m == 0)
        return np.empty((len(labels), 0), dtype=bool)
    probability = (m - 1 / 3) / (k + 1 / 3) if near else 0.5
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, k + 1)))])
    counts = np.arange(k + 1)
    weight = logs[k] - logs - logs[::-1] + counts * np.log(probability) + (k - counts) * np.log1p(-probability)
    chosen = np.empty(len(labels), dtype=np.int64)
    for label, possible in ((True, counts[m:]), (False, counts[:m])):
        odds = np.exp(weight[possible] - weight[possible].max())
        chosen[labels == label] = rng.choice(possible, (labels == label).sum(), p=odds / odds.sum())
    plain = np.array(in_order(form.literals)) > 0
    bits = np.empty((len(labels), k), dtype=bool)
    step = max(1, _BLOCK // k)
    for start in range(0, len(labels), step):
        keys = rng.random((min(step, len(labels) - start), k))
        ranked = np.concatenate([np.sort(keys, axis=1), np.ones((len(keys), 1))], axis=1)
        true = keys < np.take_along_axis(ranked, chosen[start : start + step, None], axis=1)
        bits[start : start + step] = true == plain
    return bits


def in_order(literals: Iterable[int]) -> list[int]:
    """Literals in the order of their attributes."""
    return sorted(literals, key=abs)


def parity_bits(k: int, odd: bool, labels: Bools, rng: Generator) -> Bools:
    """k attributes of which an odd number is on exactly if the label is `odd`."""
    bits = rng.random((len(labels), k)) < 0.5
    bits[:, -1] ^= (bits.sum(axis=1) % 2 == 1) != (labels == odd)
    return bits


def bits_by_label(evaluate: Evaluate, k: int, labels: Bools, rng: Generator, density: float = 0.5) -> Bools:
    """k attributes, each on with probability `density`, given what `evaluate` says of them."""
    bits = np.empty((len(labels), k), dtype=bool)
    if k <= _ENUMERATED:
        every = (np.arange(2**k)[:, None] >> np.arange(k)) & 1 == 1
        values, on = evaluate(every), every.sum(axis=1)
        odds = density**on * (1.0 - density) ** (k - on)
        for label in (False, True):
            wanted, possible = labels == label, np.flatnonzero((values == label) & (odds > 0.0))
            if not len(possible):
                _check_possible(labels, not label)
            else:
                share = odds[possible] / odds[possible].sum()
                bits[wanted] = every[rng.choice(possible, wanted.sum(), p=share)]
        return bits
    missing = {label: np.flatnonzero(labels == label) for label in (False, True)}
    step = max(1, min(_BLOCK // k, 4 * len(labels) + 100))
    vain = 0
    while len(missing[False]) or len(missing[True]):
        drawn = rng.random((step, k)) < density
        values = evaluate(drawn)
        vain += step
        for label, places in missing.items():
            found = drawn[values == label][: len(places)]
            if len(found):
                bits[places[: len(found)]], missing[label] = found, places[len(found) :]
                vain = 0
        if vain * k > _TRIES:
            wanted = int(len(missing[True]) > 0)
            raise ValueError(
                f"None of {vain} random instances has label {wanted}: the concept is too one-sided to draw "
                "both labels; how='uniform' draws what comes."
            )
    return bits


def true_bits(terms: Sequence[NDArray[np.int64]], k: int, count: int, rng: Generator) -> Bools:
    """Instances of k attributes at which one of the terms (arrays of literals) holds, all of them equally likely."""
    sizes = np.array([len(term) for term in terms])
    odds = 0.5 ** (sizes - sizes.min())
    bits = np.empty((count, k), dtype=bool)
    done = 0
    while done < count:
        chosen = rng.choice(len(terms), count - done, p=odds / odds.sum())
        drawn = rng.random((count - done, k)) < 0.5
        holding = np.zeros(count - done)
        for number, term in enumerate(terms):
            mine = chosen == number
            drawn[np.ix_(mine, np.abs(term) - 1)] = term > 0
        for term in terms:
            holding += (drawn[:, np.abs(term) - 1] == (term > 0)).all(axis=1)
        kept = drawn[rng.random(count - done) * holding < 1.0]
        bits[done : done + len(kept)] = kept
        done += len(kept)
    return bits


def sparse_rows(columns: NDArray[np.int64], bits: Bools, n: int, active: float, rng: Generator) -> Any:
    """Compressed sparse rows: the bits in their columns, and of the other columns `active` a row on average."""
    import scipy.sparse as sp

    m = len(bits)
    row, place = np.nonzero(bits)
    rows, found = [row], [columns[place]]
    others = np.setdiff1d(np.arange(n), columns)
    if len(others) and active > 0.0:
        probability = min(1.0, active / len(others))
        position = -1
        while position < m * len(others):  # the places of independent coins that come up, by their distances
            expected = (m * len(others) - position) * probability
            gaps = rng.geometric(probability, max(16, min(_BLOCK, int(expected * 1.01) + 16)))
            places = position + np.cumsum(gaps)
            position = int(places[-1])
            places = places[places < m * len(others)]
            rows.append(places // len(others))
            found.append(others[places % len(others)])
    at_row, at_column = np.concatenate(rows), np.concatenate(found)
    X = sp.csr_array((np.ones(len(at_row)), (at_row, at_column)), shape=(m, n))
    X.sort_indices()
    return X


def _check_possible(labels: Bools, always: bool) -> None:
    if (labels != always).any():
        raise ValueError(
            f"The concept gives every instance the label {int(always)}, so none of the other can be drawn; "
            "how='uniform' draws what comes."
        )
