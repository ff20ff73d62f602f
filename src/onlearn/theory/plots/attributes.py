"""Mistakes as attributes are added: where Winnow wins, where the Perceptron does, and the bounds that say so.

"10 of 100 of n": n Boolean attributes of which 100 are relevant. A row is positive if 10 or more of these are on;
negative rows have at most 8. 1 % of the others are on, so rows grow longer with n. The target u = 1 on the relevant
attributes with the threshold 9 has margin 1, hence the Perceptron's bound (100 + 81) max|x|^2, which grows with n;
Winnow's (`bounds.winnow_threshold`, mass 10, separation 0.2) grows with ln n. N. Littlestone, Learning quickly when
irrelevant attributes abound, 1988; J. Kivinen, M. Warmuth and P. Auer, The Perceptron algorithm versus Winnow, 1997.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onlearn.engine.csr import CSR
from onlearn.engine.learner import Learner
from onlearn.theory import bounds
from onlearn.theory.plots.canvas import BLUE, RED, Look, axes_of, lines, picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RELEVANT, LEAST, GAP, SPREAD = 100, 10, 2, 5  # attributes; on in a positive row; fewer in a negative; how they vary
DENSITY = 0.01  # the share of irrelevant attributes that are on
ALPHA = 1.0 + GAP / LEAST / 2.0  # what Littlestone's theorem asks for
BLOCK = 100  # examples between two looks at the mean hypothesis
SIZES = (200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
LITERALS = 2  # of the disjunction


class Examples(NamedTuple):
    """Rows and their labels, 0 or 1."""

    X: CSR
    y: NDArray[np.int64]


class MistakesByAttributes(NamedTuple):
    """Mistakes of each learner, and the bounds, for each number of attributes."""

    sizes: tuple[int, ...]
    mistakes: dict[str, list[int]]
    bounds: dict[str, list[float]]


class MistakesByExamples(NamedTuple):
    """Mistakes of each learner until then, after so many examples of n attributes."""

    n: int
    examples: list[int]
    mistakes: dict[str, list[int]]


class ExtremeScenarios(NamedTuple):
    """Few relevant attributes of many that are on; and every attribute relevant and on alone."""

    few_relevant: MistakesByAttributes
    unit_rows: MistakesByAttributes


# ----------------------------------------------------------------------------------------------------
# Rows, made sparse.


def ten_of_hundred_rows(n: int, examples: int, seed: int = 0) -> Examples:
    """Rows of "10 of 100 of n", half of them positive; the attributes that are on in a row are sorted only by kind.

    The irrelevant attributes are cut into blocks of about 100, and one of each is on, so no attribute comes twice.

    >>> X, y = ten_of_hundred_rows(1000, 4)
    >>> [int((X.toarray()[i, :100] > 0).sum()) >= 10 for i in range(4)] == [label == 1 for label in y]
    True
    """
    if n <= RELEVANT:
        raise ValueError(f"n must be above {RELEVANT}, the number of relevant attributes, but it is {n}.")
    if examples < 1:
        raise ValueError(f"examples must be at least 1, but it is {examples}.")
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, examples)
    on = LEAST - (1 - y) * (GAP + SPREAD - 1) + rng.integers(0, SPREAD, examples)
    most = LEAST + SPREAD - 1
    blocks = max(1, round((n - RELEVANT) * DENSITY))
    width = (n - RELEVANT) // blocks
    columns = np.empty((examples, most + blocks), np.int32)
    columns[:, :most] = rng.random((examples, RELEVANT), dtype=np.float32).argsort(axis=1)[:, :most]
    columns[:, most:] = rng.integers(0, width, (examples, blocks), dtype=np.int32)
    columns[:, most:] += RELEVANT + width * np.arange(blocks, dtype=np.int32)
    kept = np.ones(columns.shape, bool)
    kept[:, :most] = np.arange(most) < on[:, None]
    return Examples(_boolean_rows(columns[kept], on + blocks, n), y)


def disjunction_rows(n: int, examples: int, seed: int = 0) -> Examples:
    """Rows of a disjunction of the first two attributes, half of them positive; half of the others are on."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, examples)
    dense = rng.random((examples, n)) < 0.5
    dense[:, :LITERALS] = (np.arange(LITERALS) == rng.integers(0, LITERALS, examples)[:, None]) & (y == 1)[:, None]
    return Examples(_boolean_rows(np.nonzero(dense)[1].astype(np.int32), dense.sum(axis=1), n), y)


def unit_rows(n: int) -> Examples:
    """The rows of the unit matrix, every other one positive."""
    return Examples(_boolean_rows(np.arange(n, dtype=np.int32), np.ones(n, np.int64), n), (np.arange(n) + 1) % 2)


def _boolean_rows(columns: NDArray[np.int32], lengths: NDArray[np.int64], n: int) -> CSR:
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    indptr = indptr.astype(np.int32 if indptr[-1] < 2**31 else np.int64)
    return CSR(np.ones(len(columns), np.float32), columns, indptr, (len(lengths), n), unique=True, finite=True)


# ----------------------------------------------------------------------------------------------------
# Learners, and their mistakes.


def learners_for(n: int, longest: float) -> dict[str, Learner]:
    """Both families for n attributes, plain, averaged and with a margin; ``longest`` is max|x|^2.

    The Perceptron's margin is max|x|^2, so that one step may cross it; Winnow's is 1 % of its threshold.
    """

    def winnow(rule: str, stabilizer: str) -> Learner:
        geometry = f"winnow({ALPHA})"
        return Learner("OnlineClassifier", rule=rule, geometry=geometry, stabilizer=stabilizer, fit_intercept=False)

    return {
        "Perceptron": Learner("Perceptron"),
        "averaged Perceptron": Learner("AveragedPerceptron"),
        "margin Perceptron": Learner("OnlineClassifier", rule=f"margin({longest})", stabilizer="last"),
        "Winnow": winnow("perceptron", "last"),
        "averaged Winnow": winnow("perceptron", "averaged"),
        "margin Winnow": winnow(f"margin({n / 100})", "last"),
    }


def mistakes_until(learner: Learner, rows: Examples, stops: Sequence[int]) -> list[int]:
    """Mistakes in one pass until each of ``stops``: every example is predicted before it is learned from.

    An averaged learner predicts with the mean of its hypotheses as it was before the present block of examples. In the
    first block, where it has none, its mistakes are those of the last hypothesis.
    """
    X, y = rows
    averaged = learner.choices["stabilizer"].name == "averaged"
    wanted = set(stops)
    cuts = sorted(wanted | set(range(BLOCK, max(stops), BLOCK))) if averaged else sorted(wanted)
    made, made_until, start = 0, {}, 0
    for stop in cuts:
        some, labels = X.between(start, stop), y[start:stop]
        if averaged and start:
            made += int(np.count_nonzero(learner.predict(some) != labels))
        learner.partial_fit(some, labels, classes=[0, 1])
        if not (averaged and start):
            made = int(learner.n_mistakes_)
        made_until[stop] = made
        start = stop
    return [made_until[stop] for stop in stops]


def _check_sizes(sizes: Sequence[int], least: int) -> None:
    if not len(sizes) or min(sizes) < least:
        raise ValueError(f"sizes must hold numbers of attributes, at least {least}, but it is {sizes!r}.")


def irrelevant_attributes_data(
    sizes: Sequence[int] = SIZES, examples: int = 20_000, seed: int = 0
) -> MistakesByAttributes:
    """Mistakes of six learners on so many examples of "10 of 100 of n", for every n; and two bounds.

    >>> data = irrelevant_attributes_data(sizes=(200, 2000), examples=10_000)
    >>> data.mistakes["Winnow"][1] < data.mistakes["Perceptron"][1] < data.bounds["Perceptron"][1]
    True
    """
    _check_sizes(sizes, least=100)
    mistakes: dict[str, list[int]] = {}
    limits: dict[str, list[float]] = {"Perceptron": [], "Winnow": []}
    for n in sizes:
        rows = ten_of_hundred_rows(n, examples, seed)
        longest = float(np.diff(rows.X.indptr).max()) + 1.0  # with the constant feature
        for name, learner in learners_for(n, longest).items():
            mistakes.setdefault(name, []).extend(mistakes_until(learner, rows, [examples]))
        middle = LEAST - GAP / 2.0
        u = np.sqrt(RELEVANT + middle**2)  # the length of the target, whose margin is GAP / 2
        limits["Perceptron"].append(bounds.perceptron(np.sqrt(longest), GAP / 2.0 / u))
        limits["Winnow"].append(bounds.winnow_threshold(n, RELEVANT / LEAST, GAP / LEAST, ALPHA))
    return MistakesByAttributes(tuple(sizes), mistakes, limits)


def mistakes_by_examples_data(n: int = 10_000, examples: int = 50_000, seed: int = 0) -> MistakesByExamples:
    """Mistakes of six learners on "10 of 100 of n" as examples come."""
    rows = ten_of_hundred_rows(n, examples, seed)
    stops = np.unique(np.linspace(1, examples, 51).astype(int)).tolist()
    longest = float(np.diff(rows.X.indptr).max()) + 1.0
    made = {name: mistakes_until(one, rows, stops) for name, one in learners_for(n, longest).items()}
    return MistakesByExamples(n, stops, made)


def extreme_scenarios_data(
    sizes: Sequence[int] = (16, 32, 64, 128, 256, 512, 1024), examples: int = 1000, seed: int = 0
) -> ExtremeScenarios:
    """Mistakes until a pass makes none, and bounds: a disjunction of 2 of n attributes, and rows of the unit matrix.

    In the second every attribute decides a row by itself. The Perceptron errs once on each row; Winnow must raise half
    of the weights from 1 to above n, log2 n + 1 mistakes each.

    >>> data = extreme_scenarios_data(sizes=(16, 64), examples=200)
    >>> data.unit_rows.mistakes
    {'Perceptron': [16, 64], 'Winnow': [40, 224]}
    """
    _check_sizes(sizes, least=2)

    def scenario(
        rows: Callable[[int], Examples], literals: Callable[[int], int], target: Callable[[Examples], float], **how: Any
    ) -> MistakesByAttributes:
        found = MistakesByAttributes(tuple(sizes), {"Perceptron": [], "Winnow": []}, {"Perceptron": [], "Winnow": []})
        for n in sizes:
            drawn = rows(n)
            for name, chosen in (("Perceptron", how), ("Winnow", dict(stabilizer="last"))):
                learner = Learner(name, epochs=None, max_epochs=10_000, shuffle=False, **chosen)
                found.mistakes[name].append(int(learner.fit(*drawn).n_mistakes_))
            found.bounds["Perceptron"].append(target(drawn))
            found.bounds["Winnow"].append(bounds.winnow(n, literals(n)))
        return found

    def of_disjunction(rows: Examples) -> float:
        longest = float(np.diff(rows.X.indptr).max()) + 1.0
        return (LITERALS + 0.25) * longest / 0.25  # u = 1 on the literals with the threshold 1/2, whose margin is 1/2

    return ExtremeScenarios(
        scenario(lambda n: disjunction_rows(n, examples, seed), lambda n: LITERALS, of_disjunction),
        scenario(unit_rows, lambda n: (n + 1) // 2, lambda rows: float(rows.X.shape[1]), fit_intercept=False),
    )


# ----------------------------------------------------------------------------------------------------
# Drawing.


LOOKS = {
    "Perceptron": Look(BLUE, "o", "-"),
    "averaged Perceptron": Look(BLUE, "s", "-"),
    "margin Perceptron": Look(BLUE, "^", "-"),
    "Winnow": Look(RED, "o", "-", filled=False),
    "averaged Winnow": Look(RED, "s", "-", filled=False),
    "margin Winnow": Look(RED, "^", "-", filled=False),
    "bound of Perceptron": Look(BLUE, "", (0, (6, 3))),
    "bound of Winnow": Look(RED, "", (0, (2, 2))),
}


def _mistakes(axes: Any, data: MistakesByAttributes) -> None:
    lines(axes, data.sizes, data.mistakes, LOOKS)
    lines(axes, data.sizes, {f"bound of {name}": line for name, line in data.bounds.items()}, LOOKS)
    axes.set(xscale="log", yscale="log", xlabel="attributes n")


@picture
def irrelevant_attributes(data: MistakesByAttributes | None = None, *, seed: int = 0) -> Figure:
    """Mistakes against the number of attributes for "10 of 100 of n", six learners and two bounds."""
    data = irrelevant_attributes_data(seed=seed) if data is None else data
    figure, axes = axes_of("10 of 100 of n: mistakes as irrelevant attributes are added", width=8.2)
    _mistakes(axes, data)
    axes.set_ylabel("mistakes in one pass")
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    return figure


@picture
def mistakes_by_examples(data: MistakesByExamples | None = None, *, seed: int = 0) -> Figure:
    """Mistakes against examples seen for "10 of 100 of n", six learners."""
    data = mistakes_by_examples_data(seed=seed) if data is None else data
    figure, axes = axes_of(f"10 of 100 of {data.n:,}: mistakes as examples come", width=8.2)
    lines(axes, data.examples, data.mistakes, LOOKS, every=5)
    axes.set(xlabel="examples seen", ylabel="mistakes until then", xlim=(0, None), ylim=(0, None))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    return figure


@picture
def extreme_scenarios(data: ExtremeScenarios | None = None, *, seed: int = 0) -> Figure:
    """Mistakes where few attributes of many matter, and where all do."""
    data = extreme_scenarios_data(seed=seed) if data is None else data
    figure, (left, right) = axes_of("Two extreme scenarios", panels=2, width=9.0)
    for axes, part, title in (
        (left, data.few_relevant, "2 of n attributes relevant, half of all on"),
        (right, data.unit_rows, "rows of the unit matrix, all relevant"),
    ):
        _mistakes(axes, part)
        axes.set_title(title)
        axes.set_xscale("log", base=2)
    left.set_ylabel("mistakes until a pass makes none")
    left.legend(loc="upper left")
    right.text(0.97, 0.08, "the Perceptron's mistakes\nare its bound, n", transform=right.transAxes, ha="right")
    return figure
