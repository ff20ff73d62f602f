"""Mistake bounds: the largest number of mistakes of an online learner, for any order of the examples.

| function | learner | bound |
|---|---|---|
| `perceptron` | Perceptron, separable data | (R / g)^2 |
| `perceptron_noisy` | Perceptron, any data | ((R + D2) / g)^2 |
| `perceptron_mixed` | Perceptrons on S shards, mixed in equal shares, separable data | S (R / g)^2 |
| `perceptron_mixed_noisy` | ditto, any data | ((sqrt(S) R + D2) / g)^2 |
| `winnow` | Winnow, monotone k-disjunctions | 3k(log2 n + 1) + 2 |
| `winnow_threshold` | Winnow, monotone threshold functions | of order (mass / separation^2) log n |
| `normalized_winnow` | normalised Winnow, rate eta | ln p / (eta g + ln(2 / (e^eta + e^-eta))) |
| `normalized_winnow_noisy` | ditto, any data | (ln p + eta D1) / (eta g + ln(2 / (e^eta + e^-eta))) |
| `additive` | any Perceptron, in terms of a target u | |u|_2^2 max|x|_2^2 / g^2 |
| `multiplicative` | tuned normalised Winnow, ditto | 2 ln n |u|_1^2 max|x|_inf^2 / g^2 |
| `elimination` | Elimination, conjunctions of n attributes | n + 1; monotone: n |
| `consistent` | CON, a finite class | size - 1 |
| `halving` | Halving, a finite class | log2 size |

An argument outside the range of a theorem (a margin that is not positive, k > n, a target that does not
separate) raises `ValueError`. Where a theorem promises nothing for arguments in its range (a rate that is too
large), the bound is `inf`. A mistake is y s <= 0: a tie counts, as in the learners.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from onlearn.theory.separable import Floats, as_rows, radii, scores

_RATES = np.geomspace(0.05, 3.0, 40)  # eta by margin; the best one is about 1 without noise, and falls with it


_ROUNDING = 1e-6  # scores may be beyond their limit by so much
_LARGE = 1e100  # n times such a factor may overflow


def perceptron(R: float, margin: float) -> float:
    """(R / margin)^2: mistakes of the Perceptron on separable rows.

    For |x|_2 <= R and a unit vector u with y u.x >= margin. From a zero start, with any constant rate, over
    any number of passes. The intercept's constant feature is part of x and of u. A. Novikoff, On
    convergence proofs for perceptrons, 1962.

    >>> perceptron(R=2.0, margin=0.5)
    16.0
    """
    _not_negative("R", R)
    _positive("margin", margin)
    return _square(R / margin)


def perceptron_noisy(R: float, D2: float, margin: float) -> float:
    """((R + D2) / margin)^2: mistakes of the Perceptron on a sequence that no vector need separate.

    D2 = sqrt(sum d_i^2) where d_i = max(0, margin - y_i u.x_i) is how far example i is from the side and
    distance asked for, for a unit vector u. The sum is over the sequence as presented: k passes over the
    same examples make D2 sqrt(k) times as large. Y. Freund and R. Schapire, Large margin classification
    using the perceptron algorithm, Machine Learning 37, 1999, theorem 2.

    >>> perceptron_noisy(R=2.0, D2=0.5, margin=0.5)
    25.0
    """
    _not_negative("R", R)
    _not_negative("D2", D2)
    _positive("margin", margin)
    return _square(float(R + D2) / float(margin))  # Python floats, which overflow without a warning


def perceptron_mixed(R: float, margin: float, shards: int) -> float:
    """S (R / margin)^2: mistakes of Perceptrons on S shards whose weights are mixed, on separable rows.

    In each round every shard learns from the same weights on, apart from the others; the next round begins at the mean
    of the weights they come to. A mistake adds margin or more to u.w of its shard, and R^2 or less to |w|^2. So if the
    shards make k mistakes on average, a round adds k margin or more to u.w of the mean, and k R^2 or less to its
    |w|^2, which is convex. With K the sum of k over all rounds, K margin <= u.w <= |w| <= sqrt(K) R; there were S K
    mistakes. Shares other than 1/S, which may differ by round, leave K <= (R / margin)^2 for the sum K of the
    mistakes, each times the share of its shard. R. McDonald, K. Hall and G. Mann, Distributed training strategies for
    the structured perceptron, 2010, theorem 3.

    >>> perceptron_mixed(R=2.0, margin=0.5, shards=4)
    64.0
    """
    _shards(shards)
    return shards * perceptron(R, margin)


def perceptron_mixed_noisy(R: float, D2: float, margin: float, shards: int) -> float:
    """((sqrt(S) R + D2) / margin)^2: mistakes of Perceptrons on S shards whose weights are mixed, on any rows.

    D2 as in `perceptron_noisy`, over all shards and rounds. The argument of `perceptron_mixed` gives K margin -
    sum d_i / S <= u.w, with the sum over the S K mistakes. By Cauchy and Schwarz this sum / S is at most
    sqrt(K) D2 / sqrt(S), so that sqrt(K) margin <= R + D2 / sqrt(S). With other shares, sqrt(K) margin <= R + D, where
    D^2 is the sum of d_i^2, each times the share of its shard.

    >>> perceptron_mixed_noisy(R=2.0, D2=0.5, margin=0.5, shards=4)
    81.0
    """
    _shards(shards)
    return perceptron_noisy(math.sqrt(shards) * R, D2, margin)


class NoisyBound(NamedTuple):
    """The smallest `perceptron_noisy`, and where it is reached."""

    value: float
    margin: float
    D2: float


def perceptron_noisy_best(R: float, signed_scores: ArrayLike, passes: float = 1) -> NoisyBound:
    """The smallest `perceptron_noisy` over all margins, for the signed scores y_i u.x_i of a unit vector u.

    Exact. As a function of v = 1/margin the root of the bound, R v + |max(0, 1 - v s)|_2, is convex, and smooth
    between the points 1/s_i. Bisection over the sorted scores finds the piece with the minimum, a closed form
    the place in it, in O(m log m). At v = 0 (margin and D2 infinite) the bound is the number of examples seen,
    so it is never larger than that.

    >>> perceptron_noisy_best(2.0, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    NoisyBound(value=4.0, margin=1.0, D2=0.0)
    >>> perceptron_noisy_best(2.0, [1.0, 1.0, -1.0]).value
    3.0
    """
    _positive("R", R)
    _passes(passes)
    # In units of R every score is within [-1, 1] and nothing overflows.
    s = np.sort(np.asarray(signed_scores, dtype=np.float64).ravel()) / R
    if not len(s) or not np.isfinite(s).all():
        raise ValueError("signed_scores must be finite and at least one.")
    if np.abs(s).max() > 1.0 + _ROUNDING:
        raise ValueError(f"signed_scores must be at most R = {R}, for |u.x| is at most |x|.")
    s[np.abs(s) < 1e-100] = 0.0  # no margin so small is the best, and 1/s would overflow
    repeat = math.sqrt(passes)

    def slope(v: float, active: Floats) -> float:
        short = 1.0 - v * active
        norm = math.sqrt(short @ short)
        return 1.0 - repeat * float(short @ active) / norm if norm > 0.0 else 1.0

    if slope(0.0, s) >= 0.0:
        return NoisyBound(float(passes * len(s)), math.inf, math.inf)

    # At the breakpoint 1/s_i the scores below s_i are active (short of the margin). As s_i rises v and the
    # slope fall.
    breakpoints = np.unique(s[s > 0.0])
    low, high = 0, len(breakpoints)
    while low < high:  # bisect for the first breakpoint with a negative slope
        middle = (low + high) // 2
        if slope(1.0 / breakpoints[middle], s[: np.searchsorted(s, breakpoints[middle])]) < 0.0:
            high = middle
        else:
            low = middle + 1
    # The minimum is between that one (or v = 0) and the one before. There is one before: below the smallest
    # positive score no active score is positive, so the slope is not negative there.
    v_high = 1.0 / breakpoints[low - 1]
    v_low, active = (1.0 / breakpoints[low], s[s < breakpoints[low]]) if low < len(breakpoints) else (0.0, s)
    v = _stationary(active, repeat)
    v = float(min(max(v, v_low), v_high))
    short = np.maximum(0.0, 1.0 - v * s)
    D = repeat * math.sqrt(short @ short)
    return NoisyBound(_square(v + D), R / v, R * D / v)


def _stationary(s: Floats, repeat: float) -> float:
    """Where v + repeat |1 - v s|_2 is smallest over all v; infinite where it never stops falling."""
    squares = float(s @ s)
    q = repeat**2 * squares - 1.0
    if q <= 0.0:
        return math.inf
    mean = float(s.mean())
    spread = float(((s - mean) ** 2).sum()) * len(s)  # |s|^2 m - (sum s)^2 without its cancellation
    return (mean * len(s) - math.sqrt(spread / q)) / squares


def winnow(n: int, k: int, alpha: float = 2.0, threshold: float | None = None) -> float:
    """3k(log2 n + 1) + 2: mistakes of Winnow on a monotone disjunction of k among n Boolean features.

    For weights from 1, promoted by alpha = 2 and demoted by 1/2, and a threshold of n. For others the same
    proof gives (1 + alpha) k (log_alpha threshold + 1) + n alpha / ((alpha - 1) threshold): a promotion
    multiplies a relevant weight that is at most the threshold and never demoted, so there are at most k
    (log_alpha threshold + 1); it adds at most (alpha - 1) threshold to the total weight, a demotion takes
    at least (1 - 1/alpha) threshold, and the total stays positive. N. Littlestone, Learning quickly when
    irrelevant attributes abound, Machine Learning 2, 1988.

    >>> winnow(n=1024, k=3)
    101.0
    >>> winnow(n=1024, k=3, threshold=512)
    94.0
    """
    _whole("n", n)
    _whole("k", k)
    if n < 1 or not 0 <= k <= n:
        raise ValueError(f"k literals among n features need 0 <= k <= n and n >= 1, but k = {k} and n = {n}.")
    log, rest = _winnow_terms(n, alpha, threshold)
    return (1.0 + alpha) * k * (log + 1.0) + rest


def winnow_threshold(
    n: int, mass: float, separation: float, alpha: float | None = None, threshold: float | None = None
) -> float:
    """(1 + alpha) p + c: mistakes of Winnow on a monotone linear threshold function of n Boolean features.

    For a target u >= 0 with sum(u) = mass, u.x >= 1 on positive and u.x <= 1 - separation on negative rows:
    "at least 10 of 100" has u = 1/10 on 100 features, mass 10 and separation 1/10. Weights from 1; alpha is
    1 + separation/2 unless it is given, the threshold n. The sum of u_j ln w_j rises by ln alpha or more with each
    of p promotions, falls by at most (1 - separation) ln alpha with each of q demotions, and no weight passes alpha
    threshold; with the argument of `winnow` on the total weight, q <= alpha p + c for c = n alpha / ((alpha - 1)
    threshold), so that the number of mistakes is at most (1 + alpha) p + c, where

        p (1 - (1 - separation) alpha) <= mass (log_alpha threshold + 1) + (1 - separation) c.

    The bound is `winnow` where the separation is 1, infinite where alpha is 1 / (1 - separation) or more, and at
    most the closed form in theorem 9 of Littlestone, 1988, where alpha is as that theorem has it.

    >>> round(winnow_threshold(n=100_000, mass=10, separation=0.2))
    21479
    >>> winnow_threshold(n=1024, mass=3, separation=1, alpha=2) == winnow(n=1024, k=3)
    True
    """
    _whole("n", n)
    if n < 1:
        raise ValueError(f"n must be at least 1, but it is {n}.")
    _not_negative("mass", mass)
    if not isinstance(separation, Real) or not 0.0 < separation <= 1.0:
        raise ValueError(f"separation must be above 0 and at most 1, but it is {separation}.")
    alpha = 1.0 + separation / 2.0 if alpha is None else alpha
    log, rest = _winnow_terms(n, alpha, threshold)
    gain = 1.0 - (1.0 - separation) * alpha
    if gain <= 0.0:
        return math.inf
    promotions = (mass * (log + 1.0) + (1.0 - separation) * rest) / gain
    return (1.0 + alpha) * promotions + rest


def normalized_winnow(p: int, margin: float, eta: float | None = None) -> float:
    """ln p / (eta margin + ln(2 / (e^eta + e^-eta))): mistakes of normalised Winnow with rate eta.

    For |x|_inf <= 1, p weights that start at 1/p, and a target u >= 0 with |u|_1 = 1 and y u.x >= margin.
    Without eta, at `best_eta`. Infinite where eta is too large for the margin. N. Littlestone, Mistake
    bounds and logarithmic linear-threshold learning algorithms, 1989; J. Kivinen, M. Warmuth and P. Auer,
    The Perceptron algorithm versus Winnow, Artificial Intelligence 97, 1997.

    >>> round(normalized_winnow(p=1000, margin=0.1), 1)
    1379.2
    >>> round(normalized_winnow(p=1000, margin=0.1, eta=0.05), 1)
    1841.8
    >>> normalized_winnow(p=1000, margin=0.1, eta=1.0)
    inf
    """
    _simplex_arguments(p, margin)
    if eta is None:
        gain = _best_gain(margin)
    else:
        _positive("eta", eta)
        gain = eta * margin - _log_cosh(eta)
    if gain <= 0.0:
        return math.inf
    return math.log(p) / gain


def normalized_winnow_simple(p: int, margin: float) -> float:
    """2 ln p / margin^2: the simple form, never below `normalized_winnow` at the best rate.

    It also holds at the simpler rate eta = margin.

    >>> round(normalized_winnow_simple(p=1000, margin=0.1), 1)
    1381.6
    """
    _simplex_arguments(p, margin)
    return 2.0 * math.log(p) / margin / margin  # never a square that underflows to 0


def best_eta(margin: float) -> float:
    """1/2 ln((1 + margin) / (1 - margin)): the rate at which `normalized_winnow` is smallest.

    Infinite at margin 1.

    >>> best_eta(0.6)
    0.6931471805599453
    """
    _simplex_arguments(1, margin)
    return math.atanh(margin) if margin < 1.0 else math.inf


def normalized_winnow_noisy(p: int, D1: float, margin: float, eta: float) -> float:
    """(ln p + eta D1) / (eta margin + ln(2 / (e^eta + e^-eta))): normalised Winnow where no target need separate.

    D1 = sum d_i where d_i = max(0, margin - y_i u.x_i), for a target u >= 0 with |u|_1 = 1, over the sequence as
    presented: k passes make it k times as large. Each mistake lowers the relative entropy of u to the weights by
    eta y u.x - ln cosh eta or more, it is ln p at the start and never negative.

    >>> round(normalized_winnow_noisy(p=1000, D1=5.0, margin=0.1, eta=0.1), 1)
    1479.1
    >>> normalized_winnow_noisy(p=1000, D1=0.0, margin=0.1, eta=0.05) == normalized_winnow(1000, 0.1, 0.05)
    True
    """
    _simplex_arguments(p, margin)
    _not_negative("D1", D1)
    _positive("eta", eta)
    gain = eta * margin - _log_cosh(eta)
    return (math.log(p) + eta * D1) / gain if gain > 0.0 else math.inf


class NoisyWinnowBound(NamedTuple):
    """A small `normalized_winnow_noisy`, and where it is reached."""

    value: float
    margin: float
    D1: float
    eta: float


def normalized_winnow_noisy_best(
    p: int, signed_scores: ArrayLike, passes: float = 1, eta: float | None = None
) -> NoisyWinnowBound:
    """The smallest `normalized_winnow_noisy` on a grid of margins, and of rates unless eta is given.

    For the signed scores y_i u.x_i of a target u >= 0 with |u|_1 = 1 and rows with |x|_inf <= 1. Never above the number
    of examples seen, which is the bound where no margin gives less (margin and D1 infinite, eta 0).

    >>> normalized_winnow_noisy_best(1000, [0.5] * 200 + [-0.5]).value < 80
    True
    """
    _simplex_arguments(p, 1.0)
    _passes(passes)
    if eta is not None:
        _positive("eta", eta)
    s = np.sort(np.asarray(signed_scores, dtype=np.float64).ravel())
    if not len(s) or not np.isfinite(s).all():
        raise ValueError("signed_scores must be finite and at least one.")
    if np.abs(s).max() > 1.0 + _ROUNDING:
        raise ValueError("signed_scores must be at most 1, for |u.x| is at most |u|_1 max|x|_inf.")
    best = NoisyWinnowBound(float(passes * len(s)), math.inf, math.inf, 0.0)
    # Between two scores the bound is a ratio of linear functions of the margin, so it is smallest at one of them.
    candidates = np.unique(np.minimum(1.0, s[s > 0.0]))
    candidates = candidates[np.linspace(0, len(candidates) - 1, min(len(candidates), 200)).astype(int)]
    total = np.concatenate([[0.0], np.cumsum(s)])
    for margin in candidates.tolist():
        below = int(np.searchsorted(s, margin))
        D1 = passes * max(0.0, below * margin - float(total[below]))
        rates = [eta] if eta is not None else (_RATES * max(margin, 1e-6)).tolist()
        for rate in rates:
            value = normalized_winnow_noisy(p, D1, margin, rate)
            if value < best.value:
                best = NoisyWinnowBound(value, margin, D1, rate)
    return best


def additive(u: ArrayLike, X: Any, y: ArrayLike | None = None) -> float:
    """|u|_2^2 max|x|_2^2 / g^2 with g = min y u.x: mistakes of the Perceptron, in terms of a target u.

    y in {-1, +1}. Without y the labels are those that u itself gives, y = sgn(u.x), so g = min |u.x|; rows
    already multiplied by their labels give the same. The bound is small for a dense target, and large for rows
    with many active features.

    >>> additive([1.0, 1.0], [[1.0, 0.0], [-1.0, -1.0]])
    4.0
    """
    weights, X, g = _target(u, X, y)
    radius, _ = radii(X)
    return _square(float(np.linalg.norm(weights)) * radius / g)


def multiplicative(u: ArrayLike, X: Any, y: ArrayLike | None = None, *, n: int | None = None) -> float:
    """2 ln n |u|_1^2 max|x|_inf^2 / g^2 with g = min y u.x: mistakes of normalised Winnow at the best rate.

    y as for `additive`; n is the number of weights, by default of features. The theorem is for u >= 0: a
    signed target needs the balanced learner, which has a weight for x and one for -x, so that n is 2 len(u)
    if a weight of u is negative. The bound is small for a target of few features, whatever the number of
    active features. Kivinen, Warmuth and Auer, 1997.

    >>> round(multiplicative([1.0, 1.0], [[1.0, 0.0], [-1.0, -1.0]]), 3)
    5.545
    >>> round(multiplicative([1.0, -1.0], [[1.0, 0.0], [-1.0, 1.0]]), 3)
    11.09
    """
    weights, X, g = _target(u, X, y)
    _, peak = radii(X)
    fewest = len(weights) * (2 if (weights < 0.0).any() else 1)
    n = fewest if n is None else n
    _whole("n", n)
    if n < fewest:
        raise ValueError(f"n must be at least {fewest}, the weights that a learner needs for u, but it is {n}.")
    return 2.0 * math.log(n) * _square(float(np.abs(weights).sum()) * peak / g)


def elimination(n: int, monotone: bool = False) -> float:
    """n + 1: mistakes of Elimination on conjunctions of n Boolean attributes; n if no attribute is negated.

    It begins with all 2n literals. The first mistake removes n of them, every other one at least one; of the n of
    the monotone case every mistake removes one. L. Valiant, A theory of the learnable, 1984.

    >>> elimination(100), elimination(100, monotone=True)
    (101.0, 100.0)
    """
    _whole("n", n)
    if n < 1:
        raise ValueError(f"n must be at least 1, but it is {n}.")
    return float(n if monotone else n + 1)


def consistent(size: int) -> float:
    """size - 1: mistakes of CON, which predicts with any concept that agrees with all examples so far.

    Each mistake removes the concept at hand, and the target is never removed. N. Littlestone, 1988.

    >>> consistent(1024)
    1023.0
    """
    _whole("size", size)
    if size < 1:
        raise ValueError(f"size must be at least 1, but it is {size}.")
    return float(size - 1)


def halving(size: int) -> float:
    """log2 size: mistakes of Halving on a class of that many concepts; each mistake halves the concepts left.

    D. Angluin, Queries and concept learning, 1988; Littlestone, 1988.

    >>> halving(1024)
    10.0
    """
    _whole("size", size)
    if size < 1:
        raise ValueError(f"size must be at least 1, but it is {size}.")
    return math.log2(size)


def _winnow_terms(n: int, alpha: float, threshold: float | None) -> tuple[float, float]:
    """log_alpha threshold, and the demotions that the weights to begin with pay for."""
    if not isinstance(alpha, Real) or not 1.0 < alpha < math.inf:
        raise ValueError(f"alpha must be above 1 and finite, but it is {alpha}.")
    if threshold is not None and not isinstance(threshold, Real):
        raise ValueError(f"threshold must be a number, but it is {threshold!r}.")
    threshold = float(n) if threshold is None else float(threshold)
    if not 1.0 <= threshold < math.inf:
        raise ValueError(f"threshold must be at least 1 and finite, but it is {threshold}.")
    log = math.log2(threshold) / math.log2(alpha)  # exact for the powers of two of the textbook
    return log, n / ((1.0 - 1.0 / alpha) * threshold) if alpha > _LARGE else n * alpha / ((alpha - 1.0) * threshold)


def _target(u: ArrayLike, X: Any, y: ArrayLike | None) -> tuple[Floats, Any, float]:
    X = as_rows(X)
    weights = np.asarray(u, dtype=np.float64)
    if weights.shape != (X.shape[1],):
        raise ValueError(f"u must hold {X.shape[1]} weights, one a column, but its shape is {weights.shape}.")
    if not np.isfinite(weights).all():
        raise ValueError("u must hold finite weights, but some are not.")
    s = scores(X, weights)
    if y is None:
        g = float(np.abs(s).min())
    else:
        labels = np.asarray(y)
        if labels.shape != s.shape or not np.isin(labels, (-1, 1)).all():
            raise ValueError(f"y must hold -1 or +1 for each of the {len(s)} rows.")
        g = float((labels * s).min())
    if not g > 0.0:
        raise ValueError(f"u does not separate the rows: its smallest y u.x is {g:g}.")
    return weights, X, g


def _square(root: float) -> float:
    root = float(root)  # a NumPy number would warn where this is infinite, and root**2 raise
    return root * root


def _log_cosh(eta: float) -> float:
    """ln((e^eta + e^-eta) / 2), exact for small eta and finite for large."""
    if eta < 1.0:
        return math.log1p(2.0 * math.sinh(eta / 2.0) ** 2)
    return eta + math.log1p(math.exp(-2.0 * eta)) - math.log(2.0)


def _best_gain(margin: float) -> float:
    """eta margin - ln cosh(eta) at the best eta: ((1 + g) ln(1 + g) + (1 - g) ln(1 - g)) / 2."""
    if margin < 1e-3:  # there the two terms cancel; the series is exact
        square = margin**2
        return square * (1.0 / 2.0 + square * (1.0 / 12.0 + square / 30.0))
    rest = (1.0 - margin) * math.log1p(-margin) if margin < 1.0 else 0.0
    return ((1.0 + margin) * math.log1p(margin) + rest) / 2.0


def _simplex_arguments(p: int, margin: float) -> None:
    _whole("p", p)
    if p < 1:
        raise ValueError(f"p must be at least 1, but it is {p}.")
    if not isinstance(margin, Real) or not 0.0 < margin <= 1.0:
        raise ValueError(f"margin must be above 0 and at most 1, but it is {margin}.")


def _whole(name: str, value: float) -> None:
    if not isinstance(value, Real) or value % 1 != 0:
        raise ValueError(f"{name} must be a whole number, but it is {value!r}.")


def _shards(shards: int) -> None:
    _whole("shards", shards)
    if shards < 1:
        raise ValueError(f"shards must be at least 1, but it is {shards}.")


def _passes(passes: float) -> None:
    if not isinstance(passes, Real) or not 1.0 <= passes < math.inf:
        raise ValueError(f"passes must be at least 1 and finite, but it is {passes}.")


def _positive(name: str, value: float) -> None:
    if not isinstance(value, Real) or not 0.0 < value < math.inf:
        raise ValueError(f"{name} must be positive and finite, but it is {value}.")


def _not_negative(name: str, value: float) -> None:
    if not isinstance(value, Real) or not 0.0 <= value < math.inf:
        raise ValueError(f"{name} must be finite and not negative, but it is {value}.")
