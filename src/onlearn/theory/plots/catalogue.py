"""The pictures by name: what is seen on each, and which theorem it is about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from onlearn.theory.plots import attributes, course, feature_space


class Picture(NamedTuple):
    """A picture: the function that draws it, its title, what is seen, and the theorem behind it."""

    draw: Callable[..., Any]
    title: str
    caption: str
    theorem: str

    @property
    def name(self) -> str:
        """As the command line spells it: ``kernel-boundaries``."""
        return str(self.draw.__name__).replace("_", "-")


NOVIKOFF = (
    "Novikoff 1962: on rows with |x| ≤ R that a unit vector u separates with margin g, the Perceptron makes at most "
    "(R/g)² mistakes."
)
LITTLESTONE = (
    "Littlestone 1988: on a monotone disjunction of k among n attributes, Winnow makes at most 3k(log₂ n + 1) + 2 "
    "mistakes; on threshold functions of a fixed separation, of the order of log n."
)

PICTURES: dict[str, Picture] = {
    one.name: one
    for one in (
        Picture(
            attributes.irrelevant_attributes,
            "Mistakes as irrelevant attributes are added",
            "A row is positive if at least 10 of 100 relevant attributes are on (negative rows have at most 8); of the "
            "others 1 % are on. Mistakes in one pass over 20,000 examples, each predicted before it is learned from; "
            "averaged learners predict with their mean of up to 100 examples before. The Perceptron's bound grows with "
            "the length of the rows, Winnow's with log n: they cross. The mistakes are far below, and the Perceptron's "
            "grow faster. Averaging does not suit Winnow here: weights grow by factors, and their mean lags behind.",
            f"{NOVIKOFF} {LITTLESTONE}",
        ),
        Picture(
            attributes.extreme_scenarios,
            "Two extreme scenarios",
            "Mistakes until a pass makes none. Left, labels depend on 2 of n attributes, half of which are on in every "
            "row: Winnow's mistakes grow with log n, the Perceptron's with n. Right, rows of the unit matrix: each "
            "attribute decides one row; the Perceptron errs once on each, Winnow log₂ n + 1 times on half of them.",
            "Kivinen, Warmuth and Auer 1997: |u|₂² max|x|₂² / g² for additive learners, 2 ln n |u|₁² max|x|∞² / g² for "
            f"multiplicative ones; sparse targets favour the second, sparse rows the first. {LITTLESTONE}",
        ),
        Picture(
            attributes.mistakes_by_examples,
            "Mistakes as examples come",
            "10 of 100 of n = 10,000, as in “irrelevant-attributes”: mistakes among the examples seen until then. "
            "Winnow stops making mistakes after a few thousand examples; the Perceptron goes on.",
            f"{LITTLESTONE} {NOVIKOFF}",
        ),
        Picture(
            course.perceptron_in_action,
            "The Perceptron in action",
            "One panel a mistake, until a pass makes none. The ringed example is on the wrong side of the dashed "
            "boundary; adding y x to w and y to b gives the solid one. The arrow is the direction of w, which points "
            "to the positive side.",
            NOVIKOFF,
        ),
        Picture(
            feature_space.parabola,
            "x → (x, x²) makes an interval separable",
            "Left, points of a line: negative in the middle, positive on both sides, so no threshold on x separates "
            "them. Right, the same points with the feature x²: a line does, and it meets the parabola above the two "
            "thresholds drawn on the left.",
            f"{NOVIKOFF} It holds in any feature space in which the data are separable.",
        ),
        Picture(
            feature_space.squares,
            "(x₁, x₂) → (x₁², x₂²) makes an ellipse a line",
            "Left, points inside and outside of an ellipse around the origin. Right, the squares of their coordinates, "
            "which a line separates; drawn on the left, that line is the ellipse.",
            f"{NOVIKOFF} It holds in any feature space in which the data are separable.",
        ),
        Picture(
            feature_space.kernel_boundaries,
            "One learner, three kernels",
            "The averaged kernel Perceptron on two half moons with noise, after 20 passes. Rings are support examples, "
            "those on which a mistake was made; the boundary is where the sum of their kernel values is zero.",
            "Aizerman, Braverman and Rozonoer 1964: the Perceptron needs inner products only, so a kernel takes its "
            "place in the feature space of the kernel; Novikoff's bound holds there.",
        ),
        Picture(
            course.winnow_weights,
            "Winnow's weights over time",
            "A disjunction of three of 64 attributes. A promotion doubles the weights of the attributes that are on, a "
            "demotion halves them. Relevant attributes are never demoted, and a weight that has passed the threshold "
            "decides alone, so each rises log₂ n + 1 times at most. Grey lines are shifted a little, to be told apart.",
            LITTLESTONE,
        ),
        Picture(
            course.potential,
            "Why the Perceptron stops",
            "After k mistakes |w|² is at most k R², for each is made at an angle of at least 90°; and w·u is at least "
            "k g, for each adds at least g. As (w·u)² ≤ |w|² for a unit vector u, there is no mistake beyond the k "
            "where the dashed lines meet.",
            NOVIKOFF,
        ),
    )
}
