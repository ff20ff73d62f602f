"""The probabilities of a classifier: which scores they are fitted to, and the curves that are fitted.

sigmoid      1 / (1 + e^-(A s + B)), after Platt (1999); of several classes made to sum to 1
temperature  softmax(A s), after Guo, Pleiss, Sun & Weinberger (2017); of two classes 1 / (1 + e^-A s)
isotonic     the best function of the score that never falls, after Zadrozny & Elkan (2002); of several classes one
             function for all, of what softmax makes of -A log(1 + g / u), g being how far a score is below the highest
             of its row and u the median of the second highest; made to sum to 1

Where the scores come from is the choice: from examples before they were learned from; from a part held out; from rows
that are given; or none, when the scores are log-odds already. Whatever they are, the probabilities never contradict
``predict``: where B would turn a score's sign around, the curve is bent to pass through 1/2 at score 0 instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from onlearn.compiler.inlining import Loop
from onlearn.engine.isotonic import Steps, fit_steps
from onlearn.engine.spec import Family, choice, param
from onlearn.model_schema import SHARE, TRUTH, Arrays, OrMissing, Record, check_array, check_facts


class Calibration(Protocol):
    """Where the scores come from that A and B are fitted to."""

    name: str

    method: str = "auto"  # the kind of curve
    link: str = "softmax"  # several classes: softmax of A s, or sigmoids made to sum to 1
    fraction: float | None = None  # the part of the rows that is held out


CALIBRATIONS = Family("calibration", Calibration)

LINKS = ("softmax", "normalized")
METHODS = ("auto", "sigmoid", "temperature", "isotonic")
KEEP_BACK = ("auto", "online")  # several passes keep rows back for these
KIND = "the kind of curve; auto: of two classes a sigmoid, of several what the link says"


@choice(CALIBRATIONS, "auto")
class Auto:
    """The kind of curve that does best on scores from before learning, by cross-validation.

    Logistic rules have probabilities of their own, which are kept unless such a curve is clearly better.
    """


@choice(CALIBRATIONS, "own")
class Own:
    """The score is taken for log-odds as it stands (several classes: softmax of the scores; one-vs-all: their sigmoids,
    made to sum to 1). Not for the voted stabilizer, whose scores are shares of votes."""


@choice(CALIBRATIONS, "online")
class Online:
    """Curves of the scores that examples had before they were learned from."""

    link: str = param("softmax", "several classes: softmax of A s, or sigmoids made to sum to 1", words=LINKS)
    method: str = param("auto", KIND, words=METHODS)


@choice(CALIBRATIONS, "holdout")
class Holdout:
    """Curves of the scores of a part of the data that is not learned from."""

    fraction: float = param(0.1, "the part held out by fit", above=0, below=1)
    link: str = param("softmax", "several classes: softmax of A s, or sigmoids made to sum to 1", words=LINKS)
    method: str = param("auto", KIND, words=METHODS)


FLATTEST = 1e-6  # A in units of the scores: below it they tell nothing, or the contrary
HIGHEST = 1e300  # scores beyond are as good as this one
RIDGE = 2e-6  # against A without bounds
FARTHEST = 1e6  # units that a score may be from zero; beyond, it tells nothing more, and squares would overflow


def fit(scores: np.ndarray, gold: np.ndarray, link: str) -> tuple[float, float]:
    """A and B from the scores of some examples, a column for each output, and the indices of their classes."""
    if not len(gold):
        return 1.0, 0.0
    if scores.shape[1] == 1:
        return fit_sigmoid(scores[:, 0], gold == 1)
    if link == "softmax":
        return fit_temperature(scores, gold.astype(int)), 0.0
    right = np.arange(scores.shape[1]) == gold[:, None]
    return fit_sigmoid(scores.ravel(), right.ravel())


def fit_sigmoid(scores: np.ndarray, positive: np.ndarray, weight: np.ndarray | None = None) -> tuple[float, float]:
    """A and B by Newton's method on Platt's smoothed targets; A is kept above zero. ``weight`` counts examples.

    Where A would be zero or below, B is the best for that A: all scores get about the share of the positive examples.
    """
    scores = np.clip(np.asarray(scores, dtype=np.float64), -HIGHEST, HIGHEST)
    middle = float(np.mean(scores / len(scores)) * len(scores))  # not a sum of numbers next to the largest
    unit = _unit(scores - middle)
    s = np.clip((scores - middle) / unit, -FARTHEST, FARTHEST)
    w = np.ones(len(s)) if weight is None else np.asarray(weight, dtype=np.float64)
    n, total = float(w[positive].sum()), float(w.sum())
    target = np.where(positive, (n + 1) / (n + 2), 1 / (total - n + 2))
    a, b = 0.0, float(np.log((n + 1) / (total - n + 1)))

    def cost(a: float, b: float) -> float:
        z = a * s + b
        return float(np.sum(w * (np.logaddexp(0, z) - target * z))) + 1e-3 * a * a

    for _ in range(100):
        p = expit(a * s + b)
        v = w * (p * (1 - p))
        off = w * (p - target)
        # sums of products, not by the BLAS, whose threads take longer to wake up than this takes
        slope, both = float(np.sum(s * v)), float(np.sum(s * s * v))
        gradient = np.array([float(np.sum(s * off)) + 2e-3 * a, np.sum(off)])
        hessian = np.array([[both + 2e-3, slope], [slope, v.sum() + 1e-9]])
        move = np.linalg.solve(hessian, gradient)
        length, before = 1.0, cost(a, b)
        while length > 1e-6 and (now := cost(a - length * move[0], b - length * move[1])) > before:
            length /= 2
        a, b = a - length * move[0], b - length * move[1]
        if np.abs(gradient).max() < 1e-8 * total or before - now < 1e-12 * total:
            break
    if a < FLATTEST:
        a, b = FLATTEST, _offset(FLATTEST * s, target, w)
    return a / unit, float(b - a * (middle / unit))


def _offset(z: np.ndarray, target: np.ndarray, weight: np.ndarray) -> float:
    """B at which the probabilities of z + B sum to the targets."""
    wanted = float(weight @ target)
    b = float(np.log(wanted / (weight.sum() - wanted)))
    for _ in range(20):  # of Newton's steps, few are needed: z is next to nothing
        p = expit(z + b)
        b -= float((weight @ p - wanted) / (weight @ (p * (1 - p))))
    return b


def fit_temperature(scores: np.ndarray, gold: np.ndarray) -> float:
    """A of softmax(A s): the one number that makes the scores' softmax fit the classes seen best.

    What is added to all scores of a row, such as a threshold, makes no difference. The targets are smoothed, as if of
    all examples together one had been of any class: else a few examples, all of them right, would make A infinite.
    """
    scores = np.clip(np.asarray(scores, dtype=np.float64), -HIGHEST, HIGHEST)
    scores = scores - scores.mean(axis=1, keepdims=True)
    unit = _unit(scores)
    s = np.clip(scores / unit, -FARTHEST, FARTHEST)
    n = len(s)
    wanted = (n * s[np.arange(n), gold].mean() + s.mean()) / (n + 1)

    def slopes(a: float) -> tuple[float, float]:
        """The derivative of the cost, and its own: means over rows of the mean and variance of s by softmax(a s)."""
        z = a * s
        z -= z.max(axis=1, keepdims=True)
        p = np.exp(z, out=z)
        p /= p.sum(axis=1, keepdims=True)
        weighted = p * s
        means = weighted.sum(axis=1)
        spread = float(np.einsum("ij,ij->", weighted, s) - means @ means)
        return float(means.mean() - wanted + RIDGE * a), spread / n + RIDGE

    low, high, a = 1e-4, 1e4, 1.0
    for _ in range(60):  # the cost is convex: Newton's method, between bounds that close in on the minimum
        first, second = slopes(a)
        low, high = (low, a) if first > 0 else (a, high)
        after = a - first / second
        after = after if low < after < high else math.sqrt(low * high)
        if abs(after - a) <= 1e-9 * a:
            break
        a = after
    return a / unit


# SciPy has these functions, too; without it commands start sooner. The results are the same to the last bit.


@Loop
def _logistic(z: Any, out: Any) -> None:
    """With the exponential function of the C library, which NumPy's differs from in the last bit."""
    for i in range(len(z)):
        out[i] = 1.0 / (1.0 + np.exp(-z[i]))


def expit(z: np.ndarray) -> np.ndarray:
    """1 / (1 + e^-z)"""
    out = np.empty(z.size)
    with np.errstate(over="ignore"):  # should it run interpreted
        _logistic(np.ascontiguousarray(z, dtype=np.float64).reshape(-1), out)
    return out.reshape(z.shape)


def softmax(z: np.ndarray) -> np.ndarray:
    """e^z / sum e^z of each row."""
    powers = np.exp(z - z.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def log_sum_exp(z: np.ndarray) -> np.ndarray:
    """log sum e^z of each row; the largest terms are left out of the sum, and exact."""
    top = z.max(axis=1, keepdims=True)
    largest = z == top
    count = largest.astype(z.dtype).sum(axis=1, keepdims=True)
    rest = np.exp(np.where(largest, -np.inf, z) - top).sum(axis=1, keepdims=True)
    return np.asarray(np.log1p(np.where(rest == 0, rest, rest / count)) + np.log(count) + top)[:, 0]


def _unit(scores: np.ndarray) -> float:
    """The size of the scores, so that the searches above need not care for it."""
    size = float(np.sqrt(np.mean(np.square(np.clip(scores, -1e100, 1e100))))) if np.size(scores) else 0.0
    return size or 1.0


def sigmoid(s: np.ndarray, a: float, b: float) -> np.ndarray:
    """P(positive) for scores s: above 1/2 exactly where s is above 0."""
    z = a * s
    if b:
        contrary = (s > 0) if b < 0 else (s <= 0)
        u = np.abs(z / b)
        near = np.minimum(u, 1e-3)  # where the difference below is of numbers next to each other: its series
        near = np.copysign(b, z) * near * near * (0.5 - near / 6 + near * near / 24)
        bent = np.where(u < 1e-3, near, z + b * -np.expm1(-u))
        z = np.where(contrary, bent, z + b)
    p = expit(np.clip(z, -700, 700))
    # what rounding made 1/2 keeps its side
    return np.where((s > 0) & (p <= 0.5), np.nextafter(0.5, 1), np.where((s <= 0) & (p > 0.5), 0.5, p))


def logarithms(probabilities: np.ndarray) -> np.ndarray:
    """The logarithm of each; that of 0 is minus infinity, without a warning."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(probabilities))


def binary(s: np.ndarray, a: float, b: float) -> np.ndarray:
    p = sigmoid(s, a, b)
    return np.column_stack([1 - p, p])


def several(s: np.ndarray, a: float, b: float, link: str) -> np.ndarray:
    """Class probabilities whose largest is where the largest score is."""
    with np.errstate(over="ignore"):
        z = np.clip(a * s, -1e300, 1e300)
    p = softmax(z) if link == "softmax" else expit(np.clip(z + b, -700, 700)) + 1e-300
    p /= p.sum(axis=1, keepdims=True)
    return _agreed(p, np.argmax(s, axis=1))


def _agreed(p: np.ndarray, best: np.ndarray) -> np.ndarray:
    """The probabilities, with the largest of each row where ``predict`` is."""
    tied = np.flatnonzero(np.argmax(p, axis=1) != best)  # rounding made two classes equal
    p[tied, best[tied]] = np.nextafter(p[tied].max(axis=1), 2)
    return p


class HeldOut(NamedTuple):
    """Rows that fit did not learn from."""

    scores: np.ndarray
    codes: np.ndarray  # of their classes
    fraction: float | None  # of all rows, as was asked for; None if a model file does not say
    given: bool = False  # they are no part of the rows of fit: they were given for calibration

    @classmethod
    def unpack(cls, facts: dict[str, Any], arrays: Arrays, classes: int) -> HeldOut:
        """What a model file holds of them."""
        check_facts(facts, HELD_OUT)
        scores, codes, fraction = arrays["held_out.scores"], arrays["held_out.codes"], facts.get("held_out")
        given = bool(facts.get("held_out_given"))
        columns = 1 if classes == 2 else max(1, classes)
        check_array("held_out.scores", scores, "float64 float32", (codes.size, columns))
        check_array("held_out.codes", codes, "int64 int32", (codes.size,), 0, classes - 1)
        return cls(scores, codes, fraction, given)


HELD_OUT = Record(held_out=OrMissing(SHARE), held_out_given=OrMissing(TRUTH))


class Curve(NamedTuple):
    """What makes probabilities of scores: A and B, the link for several classes, and the steps of isotonic ones.

    ``gap`` is u of the isotonic ones of several classes; ``power``, below 1, makes these flatter.
    """

    a: float
    b: float
    link: str
    steps: Steps | None = None
    gap: float = 0.0
    power: float = 1.0

    def probability(self, score: float) -> float:
        """The probability of the second of two classes, of one row."""
        if self.b or self.steps is not None or not abs(self.a * score) < 700:
            return float(self.second(np.array([score]))[0])
        p = 1.0 / (1.0 + math.exp(-self.a * score))
        # as in ``sigmoid``, what rounding made 1/2 keeps its side
        return math.nextafter(0.5, 1) if score > 0 and p <= 0.5 else p

    def second(self, scores: np.ndarray) -> np.ndarray:
        """The probability of the second of two classes."""
        if self.steps is None:
            return sigmoid(scores, self.a, self.b)
        p = self.steps(scores)
        return np.where(scores > 0, np.maximum(p, np.nextafter(0.5, 1)), np.minimum(p, 0.5))

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """One column a class; the largest probability of a row is where the highest score is."""
        scores = scores.astype(np.float64, copy=False)
        if scores.ndim == 1:
            p = self.second(scores)
            return np.column_stack([1 - p, p])
        if self.steps is None:
            return several(scores, self.a, self.b, self.link)
        p = self.steps(softmax(self.a * shrunk(scores, self.gap))) ** self.power
        return _agreed(p / p.sum(axis=1, keepdims=True), np.argmax(scores, axis=1))


PLAIN = {"softmax": Curve(1.0, 0.0, "softmax"), "normalized": Curve(1.0, 0.0, "normalized")}  # of log-odds


def own_curve(training: Any) -> Curve:
    """The curve that takes scores for log-odds."""
    return PLAIN["normalized" if training.output == "one-vs-all" else "softmax"]


def fit_curve(
    choice: Any, training: Any, columns: Callable[[np.ndarray], np.ndarray], held_out: HeldOut | None
) -> Curve:
    """The curve of a trained learner; fitted once for the scores there are.

    ``columns`` makes of scores by output those by class: one column for two classes.
    """
    known = training.calibrated
    taken = training.reserved if training.audits_last else int(training.audit.due[2])
    if (
        known is None
        or (known[0] is not choice and known[0] != choice)
        or known[1] != taken
        or known[2] is not held_out
    ):
        known = training.calibrated = choice, taken, held_out, _fitted(choice, training, columns, held_out)
    curve: Curve = known[3]
    return curve


def _fitted(choice: Any, training: Any, columns: Any, held_out: HeldOut | None) -> Curve:
    votes = training.stabilizer.every_hypothesis  # shares of votes are no log-odds, whatever the rule
    if choice.name == "own" and votes:
        raise ValueError("calibration='own' takes scores for log-odds, but those of voted learners are shares of votes")
    own = own_curve(training)
    if choice.name == "own":
        return own
    given = held_out is not None and held_out.given
    if choice.name == "holdout" and not given:
        _refuse_others(choice, held_out)
    if held_out is not None and (given or choice.name == "holdout"):
        scores, gold = held_out.scores, held_out.codes
        trusted = True
    else:
        scores, gold = training.audited()
        scores, gold = columns(scores), (gold > 0 if training.output is None else gold).astype(int)
        trusted = training.audits_last
    if choice.name != "auto":
        return curve_of(scores, gold, choice.method, choice.link)
    has_own = training.rule.own_probabilities and not votes
    if trusted:
        return best_curve(scores, gold, own if has_own else None, cautious=not given)
    # while a stream is learned from, curves are fitted often: the simplest will do
    return own if has_own else curve_of(scores, gold, "auto")


def _refuse_others(choice: Any, held_out: HeldOut | None) -> None:
    """Refuse rows held out that are none, or others than the choice speaks of."""
    if held_out is None:
        raise ValueError(
            f"calibration={choice!r} needs rows that the last call held out, and it held out none: fit anew"
        )
    if held_out.fraction not in (choice.fraction, None):
        raise ValueError(
            f"calibration={choice!r} needs {choice.fraction:g} of the rows held out, and the last call held out "
            f"{held_out.fraction:g} of them: set it back, or fit anew"
        )


def curve_of(scores: np.ndarray, gold: np.ndarray, method: str, link: str = "softmax") -> Curve:
    """The curve of one kind that fits these scores, a column for each class, and the numbers of the classes best.

    >>> scores = np.array([[-2.0], [-1.0], [-0.5], [0.5], [1.0], [2.0]])
    >>> curve_of(scores, np.array([0, 0, 1, 0, 1, 1]), "isotonic").probabilities(np.array([0.2])).round(2)
    array([[0.5, 0.5]])
    """
    scores, two = np.asarray(scores, dtype=np.float64), scores.shape[1] == 1
    if method == "auto":
        method = "sigmoid" if two or link == "normalized" else "temperature"
    if not len(gold):
        return Curve(1.0, 0.0, link)
    if two and method == "isotonic":
        return Curve(1.0, 0.0, link, fit_steps(scores[:, 0], gold == 1))
    if two and method == "temperature":
        both = np.column_stack([np.zeros(len(gold)), scores[:, 0]])
        return Curve(fit_temperature(both, gold.astype(int)), 0.0, link)
    if method == "isotonic":
        return _isotonic(scores, gold)
    made = Curve(*fit(scores, gold, "normalized" if method == "sigmoid" else "softmax"),
                 "normalized" if method == "sigmoid" else "softmax")  # fmt: skip
    return made


def _isotonic(scores: np.ndarray, gold: np.ndarray) -> Curve:
    """The isotonic curve of several classes."""
    highest = np.partition(np.clip(scores, -HIGHEST, HIGHEST), -2, axis=1)[:, -2:]
    gap = float(np.median(highest[:, 1] - highest[:, 0])) or _unit(scores)
    a = fit_temperature(shrunk(scores, gap), gold.astype(int))
    right = np.arange(scores.shape[1]) == gold[:, None]
    return Curve(a, 0.0, "softmax", fit_steps(softmax(a * shrunk(scores, gap)).ravel(), right.ravel()), gap)


def shrunk(scores: np.ndarray, gap: float) -> np.ndarray:
    """-log(1 + g / u): scores in the same order, none of which is so far from the others that it alone counts."""
    scores = np.clip(scores, -HIGHEST, HIGHEST)
    with np.errstate(over="ignore"):
        gaps = np.minimum((scores.max(axis=1, keepdims=True) - scores) / gap, HIGHEST)
    return -np.log1p(gaps)


MOST_GIVEN = 1 << 14  # rows given for calibration of which scores are kept; of more, some that lie evenly
FOLDS = 4
MOST_SCORES = 1 << 14  # by which the kind of curve is chosen
FEWEST_STEPS = 200  # examples of which steps can be made
GAIN = 1.0  # in the sum of logarithms, for which a curve with more freedom is preferred
GAINS = {"isotonic": 0.02}  # and a part of the sum: steps follow every whim of the rows that they are fitted to
CAUTION = 2.0  # what a flatter temperature may lose in the sum: two standard errors of A


def best_curve(scores: np.ndarray, gold: np.ndarray, own: Curve | None, cautious: bool = False) -> Curve:
    """The learner's ``own`` probabilities, if it has such, or the kind of curve that does best in cross-validation.

    From the simplest to the one with most freedom, each must be clearly better than those before it. A ``cautious``
    temperature of several classes is the flattest that the examples allow: new data are seldom quite like those
    learned from, and to be too sure of them costs more than to be too unsure.
    """
    some = np.arange(0, len(gold), max(1, scores.size // MOST_SCORES))  # enough to choose by
    few, labels, fold = scores[some], gold[some], np.arange(len(some)) % FOLDS
    chosen, lowest = "", math.inf if own is None else log_loss(own, few, labels)
    for method in ("temperature", "sigmoid", "isotonic")[: 3 if len(some) >= FEWEST_STEPS else 2]:
        loss = 0.0
        for part in range(FOLDS):
            left, out = fold != part, fold == part
            loss += log_loss(curve_of(few[left], labels[left], method), few[out], labels[out])
        if loss < min(lowest - GAIN, lowest * (1.0 - GAINS.get(method, 0.0))) or lowest == math.inf:
            chosen, lowest = method, loss
    best = own if own is not None and not chosen else curve_of(scores, gold, chosen)
    fitted = best is not own and best.link == "softmax" and scores.shape[1] > 1
    return flattened(best, scores, gold) if cautious and fitted else best


def flattened(curve: Curve, scores: np.ndarray, gold: np.ndarray) -> Curve:
    """The curve with the least A, or power of the steps, at which these examples are not clearly less likely."""

    def with_part(part: float) -> Curve:
        return curve._replace(a=part * curve.a) if curve.steps is None else curve._replace(power=part)

    # the steps were fitted to the same examples, so that they seem better than they are
    most = log_loss(curve, scores, gold) + (CAUTION if curve.steps is None else 2 * CAUTION)
    low, high = 0.5, 1.0
    for _ in range(8):
        middle = (low + high) / 2
        low, high = (low, middle) if log_loss(with_part(middle), scores, gold) < most else (middle, high)
    return with_part(high)


def log_loss(curve: Curve, scores: np.ndarray, gold: np.ndarray) -> float:
    """The sum of -log p of the classes of these examples."""
    p = curve.probabilities(scores[:, 0] if scores.shape[1] == 1 else scores)
    return -float(np.log(np.maximum(p[np.arange(len(gold)), gold.astype(int)], 1e-15)).sum())


def held_out_rows(choice: Any, rows: int, seed: int) -> np.ndarray:
    """The rows that fit keeps for calibration."""
    if choice.name != "holdout":
        return np.empty(0, dtype=np.intp)
    chosen = np.random.default_rng([seed, 2]).permutation(rows)
    return np.sort(chosen[: min(rows - 1, max(1, round(choice.fraction * rows)))])
