"""The verbs of the engine: what a geometry and a stabilizer must be able to do, one coordinate at a time.

The state of a learner is two NamedTuples of arrays, ``g`` (a geometry) and ``st`` (a stabilizer). All
their per-weight arrays are flat: weight ``k`` of output ``c`` of ``C`` stands at ``j = k*C + c``, and
the constant feature that carries the intercept is ``k = 0``. A binary learner has C = 1.

Geometries may keep a weight in units of their own: what the score uses is ``scale(g, c) * weigh(g, st, j)``.
That is how shrinking every weight, or dividing all by a normaliser, costs one multiplication.

Each verb has a body for ``object``, the usual case; a geometry or stabilizer replaces what it does
differently. The words in the annotations say what an array holds one number of, so that a state can
be grown, saved and checked without knowing what it means.
"""

from __future__ import annotations

from typing import Annotated, Any, Protocol, get_type_hints

import numpy as np

from onlearn.compiler.inlining import Verb, helper
from onlearn.engine.spec import Family

Weights = Annotated[np.ndarray, "weights"]  # one number a weight
Outputs = Annotated[np.ndarray, "outputs"]  # one number an output
Numbers = Annotated[np.ndarray, "numbers"]  # a few numbers of the learner as a whole
Ledger = Annotated[np.ndarray, "ledger"]  # as long as it needs to be

LARGEST = 1e150  # change of a weight: sums of 1e18 such, times counts, stay finite


def layout(kind: type) -> dict[str, str]:
    """Field name to what the field holds one number of, for a state's NamedTuple."""
    hints = get_type_hints(kind, include_extras=True)
    return {name: hint.__metadata__[0] for name, hint in hints.items()}


# What a geometry does


@Verb
def catch_up(g, st, j):
    """Bring the stored weight j up to date, if the geometry is lazy."""


@catch_up.on(object, object)
def _(g, st, j):
    pass


@helper
def weigh(g: Any, st: Any, j: int) -> float:
    """The stored weight j, first brought up to date."""
    catch_up(g, st, j)
    return g.w[j]


@Verb
def met(g, st, j, x):
    """The stored weight j, up to date, as an example to learn from that holds x there is scored by it."""


@met.on(object, object)
def _(g, st, j, x):
    return weigh(g, st, j)


@Verb
def scale(g, c):
    """What turns the stored weights of output c into weights."""


@scale.on(object)
def _(g, c):
    return 1.0


@Verb
def stride(g, t, c):
    """A rule's step in the units of the stored weights of output c (learning rate included)."""


@stride.on(object)
def _(g, t, c):
    return t


@Verb
def weighted(g, sqnorm, h):
    """The squared length of an example of weight h, as ``move`` sees it."""


@weighted.on(object)
def _(g, sqnorm, h):
    return sqnorm


@Verb
def move(g, j, x, t, sqnorm):
    """Step by t along coordinate j, where the example holds x; returns the change of the stored weight.

    It must not make a weight infinite or NaN, whatever x is, and must do nothing where x or t is zero.
    """


@Verb
def expect(g, st, j):
    """Ask memory for what a step at weight j will touch, besides the weight itself."""


@expect.on(object, object)
def _(g, st, j):
    pass


@Verb
def anticipate(g, j):
    """Ask memory for what measuring an example (``sqnorm``) will touch at weight j, besides the weight itself."""


@anticipate.on(object)
def _(g, j):
    pass


@Verb
def truncates(g, j):
    """Whether weight j is zero where it is zero because a penalty keeps it there (l1)."""


@truncates.on(object)
def _(g, j):
    return False


@Verb
def settle(g, st):
    """After every example, learned from or not: shrink weights, count."""


@settle.on(object, object)
def _(g, st):
    pass


# What a stabilizer does


@Verb
def live(st, g, mistake, change):
    """An example was predicted, rightly or by mistake; if ``change``, another hypothesis begins now."""


@live.on(object, object)
def _(st, g, mistake, change):
    pass


@Verb
def clock(st, c):
    """The sum, over the hypotheses so far, of the scale of output c: what a change of weight missed."""


@clock.on(object)
def _(st, c):
    return 0.0


@Verb
def note(st, j, change, at):
    """Remember that the stored weight j changed, at clock ``at``."""


@note.on(object)
def _(st, j, change, at):
    pass


@Verb
def tick(st, g):
    """An example is done: the present hypothesis has lived through one more."""


@tick.on(object, object)
def _(st, g):
    pass


@Verb
def fold(st, g):
    """Settle the account in stored weights, because their units are about to change."""


@fold.on(object, object)
def _(st, g):
    pass


@Verb
def rescale(st, c, factor):
    """The stored weights of output c were multiplied by a factor, and its scale divided by it."""


@rescale.on(object)
def _(st, c, factor):
    pass


@Verb
def handed(st, g, j, c):
    """Weight j, of output c, of the hypothesis that would be handed out now."""


@handed.on(object, object)
def _(st, g, j, c):
    return scale(g, c) * weigh(g, st, j)


# ----------------------------------------------------------------------------------------------------
# What geometries and stabilizers are to the rest: choices with ``start``, which makes their state, and a few facts.
#
# A choice states the facts and methods in which it differs; all others it has from the protocol (``choice`` adds them).


class Geometry(Protocol):
    """How a step along an example changes the weights."""

    name: str

    drifts: bool = False  # weights change between the steps (l1, l2), so there is no list of hypotheses to vote
    lazy: bool = False  # weights that fell behind catch up by what the clock was, which must not be counted anew
    measures: bool = False  # its steps need the squared length of the example, whatever the rule
    signed: bool = False  # weights may have either sign, and start at zero or at random
    positive_only: bool = False  # features must not be negative
    positive_weights: bool = False  # weights are never negative, so that some problems cannot be learned
    normalised: bool = False  # the weights of an output sum to 1, so that one without an example has its part, too
    undecided: bool = False  # ``estimate(X, signs, bias)`` must be asked for the geometry to start with
    schedule: str = "constant"  # how the rate falls
    alpha: float | None = None  # the promotion factor, of geometries that multiply
    # The weights of |w|_1 and |w|_2^2 / 2 beside the mean loss, of geometries that go down this objective.
    penalties: tuple[float, float] | None = None
    # For ``mixing`` of what shards of the data have led to:
    unmixed: str | None = "its state is that of one sequence of examples"  # why states cannot be mixed; None: they can
    evidence: str | None = None  # the field of the state that says how much was seen of each weight
    confident: bool = False  # the more evidence a weight has, the more it counts in the mean of weights

    def start(self, features: int, outputs: int) -> Any:
        """The state of a learner that has seen nothing; ``features`` counts the constant one."""

    def begin_at(self, state: Any, w: np.ndarray) -> None:
        """Put weights of the user's choice into a state that has seen nothing."""
        if not self.signed:
            raise ValueError(f"{self!r} cannot begin at given weights: its weights are made of what it has seen")
        state.w[:] = w

    def keep_rates(self, state: Any, fresh: Any) -> None:
        """Take over the rates, and the sums of penalties, that a state has come to into one that begins elsewhere.

        All weights of the state are up to date.
        """
        return

    def theta(self, state: Any) -> float:
        """The threshold that the weighted sum is compared with."""
        return 0.0

    def rate_of(self, state: Any) -> float | None:
        """The learning rate in use, where bounds depend on it."""
        return None

    def without_constant(self, state: Any) -> None:
        """Take the constant feature out of a state, where there is no intercept."""

    def mend(self, state: Any) -> None:
        """Bring sums over weights up to date after weights were added or removed."""

    def begin_shard(self, state: Any, shards: int) -> None:
        """Before a shard of the data, one of so many, is learned from: choose the rate that suits a mean over them."""
        return None

    def end_round(self, state: Any, examples: float, scale: np.ndarray) -> None:
        """After the weights were mixed: so many examples later, with the mean scale of each output's weights."""
        return None

    def precision(self, evidence: np.ndarray) -> np.ndarray:
        """Evidence as numbers that add up over examples."""
        return evidence

    def from_precision(self, precision: np.ndarray) -> np.ndarray:
        """The evidence of such numbers."""
        return precision

    def sound(self, state: Any) -> bool:
        """Whether a state read from a file keeps within its own arrays."""
        return True


class Stabilizer(Protocol):
    """Which of the hypotheses met on the way is handed out in the end."""

    name: str

    fades: bool = False  # hypotheses weigh more the later they are, so the clock is counted anew now and then
    every_hypothesis: bool = False  # all of them are kept, as changes, so that no single weights describe the learner
    unmixed: str | None = "it is about hypotheses of one sequence"  # why states cannot be mixed; None: they can

    def start(self, w: np.ndarray, outputs: int) -> Any:
        """The state before the first example, for the weights of the geometry."""

    def make_room(self, state: Any, changes: int, hypotheses: int) -> Any:
        """The state with room for so many more changes and hypotheses."""
        return state

    def mend(self, state: Any, g: Any, new: np.ndarray) -> Any:
        """The state after growth; ``new`` is a mask of the weights that were added, features by outputs."""
        return state

    def age(self, before: Any, after: Any) -> np.ndarray:
        """How long the hypotheses between two states have lived in all, in numbers that add up over shards."""
        return np.zeros(0)

    def surplus(self, before: Any, after: Any, places: np.ndarray, change: np.ndarray) -> np.ndarray:
        """The sum of the hypotheses between two states, less what it were had these stored weights not changed."""
        return np.zeros(0)

    def end_round(
        self, state: Any, places: np.ndarray, change: np.ndarray, surplus: np.ndarray, age: np.ndarray
    ) -> None:
        """Take in the hypotheses of all shards, after which these stored weights were mixed, by that change."""

    def sound(self, state: Any) -> bool:
        """Whether a state read from a file keeps within its own arrays."""
        return True


GEOMETRIES = Family("geometry", Geometry)
STABILIZERS = Family("stabilizer", Stabilizer)

FASTEST = 1e100  # a rate: times the longest step of the heaviest example it is finite


# ----------------------------------------------------------------------------------------------------
# The learning rate at the present example.


@helper
def rate_at(g: Any) -> float:
    """rate / t^power, t counted from 1."""
    return g.knobs[0] if g.knobs[1] == 0.0 else g.knobs[0] * (g.steps[0] + 1.0) ** -g.knobs[1]
