"""The Bayes mixture of several learners: which of them to believe is learned from how well they predicted.

K learners see the same rows. With p_k(c) the probability that learner k gives class c before it learns from the
example, and L_k its log-loss on all examples so far,

    P(c) = sum_k v_k p_k(c),     v_k = e^(-L_k) / sum_i e^(-L_i)

The weights of the sum telescope: the log-loss of P on all examples is -ln sum_k e^(-L_k) / K, which is at most
min_k L_k + ln K, on every stream (Vovk 1990; Cesa-Bianchi & Lugosi 2006, chapter 9). An example of weight w counts as
w sights of it before the learners learn: L_k grows by w times the loss, and the theorem stays as it is.

The losses are those of each learner's present hypothesis, on rows that it has not seen: passes of ``fit`` after the
first, which are over rows that were seen, leave them as they are. A learner that hands out another hypothesis than the
present one (averaged, voted, survivor) predicts by that one, with the weight that the present ones earned.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from onlearn.engine import csr
from onlearn.engine.base_learner import ROWS
from onlearn.engine.calibration import CALIBRATIONS
from onlearn.engine.compositions import COMPOSITIONS, PARAMETERS, Composition, seed_of
from onlearn.engine.learner import Learner
from onlearn.engine.mixture_training import MixtureTraining
from onlearn.engine.registry import parse_learner, spell_learner
from onlearn.engine.spec import param, parameters
from onlearn.engine.tasks import Classification
from onlearn.engine.training import Chronicle, Training
from onlearn.inert_text import facts_html, number
from onlearn.model_schema import NESTED, Arrays, ListOf, Record, check_array, check_facts, numbered

RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)  # of the usual learners: benchmarks/mixture.py
USUAL = tuple(f"LogisticRegression(rate={rate!r}, stabilizer='last')" for rate in RATES)

SCORES = 1 << 23  # of all learners at a time, when predicting

# ----------------------------------------------------------------------------------------------------
# Parameters.


class MixtureSettings:
    """What a mixture has besides the parameters of passes."""

    learners: Any = param(
        None,
        "the learners; None: eight logistic regressions by AdaGrad, of rates from 0.001 to 3",
        kind="other",
        allowed="a list of linear classifiers, or of their spellings such as 'LogisticRegression(rate=0.1)'",
    )


OF_MEMBERS = (
    "rule",
    "geometry",
    "stabilizer",
    "multiclass",
    "fit_intercept",
    "init",
    "intercept_scaling",
    "calibration",
)

MIXTURE = Composition(
    "Mixture",
    "The Bayes mixture of several learners, each weighted by how well it predicted so far.",
    fixed={name: PARAMETERS[name].default for name in OF_MEMBERS},
    own=parameters(dataclass(MixtureSettings)),
)
LINEAR = tuple(COMPOSITIONS)  # learners that may be members
OF_MIXTURE = tuple(name for name in MIXTURE.parameters if name != "learners")  # which members must leave alone


def members_of(given: Any) -> list[Learner]:
    """The learners of a mixture, checked."""
    if isinstance(given, str) or not isinstance(given, (Sequence, type(None))):
        raise TypeError(f"learners must be {MIXTURE.own['learners'].allowed}, not {given!r}")
    members = [_member(one, place) for place, one in enumerate(USUAL if given is None else given)]
    if not members:
        raise ValueError("learners is an empty list: a mixture needs at least one learner")
    return members


def _member(given: Any, place: int) -> Learner:
    if isinstance(given, str):
        given = parse_learner(given, LINEAR, " for a mixture")
    who = f"learners[{place}]"
    if type(given) is not Learner:
        raise TypeError(f"{who} is {given!r}, but must be a linear classifier of onlearn or its spelling")
    if given.composition.task != "classify":
        raise ValueError(f"{who} is a regression, {given!r}: a mixture is of classifiers")
    usual = given.defaults()
    for name in OF_MIXTURE:
        if name in usual and repr(getattr(given.settings, name)) != repr(usual[name]):
            raise ValueError(f"{who} sets {name}, which is the same for all learners of a mixture: give it to Mixture")
    given.check()
    if given.choices["calibration"].name == "holdout":
        raise ValueError(f"{who} has calibration='holdout', but learners of a mixture have no rows held out")
    return given


class Together:
    """The facts of the geometries of several learners."""

    name = "mixture"

    def __init__(self, members: list[Learner]) -> None:
        made = [one.choices["geometry"] for one in members]
        self.positive_only: bool = any(one.positive_only for one in made)
        self.positive_weights: bool = all(one.positive_weights for one in made)
        radius = any(one.settings.intercept_scaling == "radius" for one in members)
        self.undecided: bool = radius or any(one.undecided for one in made)


class Theorem(NamedTuple):
    """The log-loss of a mixture on the examples that it met, each before it was learned from, and its bound."""

    loss: float
    best: float  # the log-loss of the best learner
    learners: int

    @property
    def bound(self) -> float:
        return self.best + math.log(self.learners)

    @property
    def slack(self) -> float:
        """By how much the loss is below the bound."""
        return self.bound - self.loss

    def holds(self) -> bool:
        return bool(self.loss <= self.bound * (1 + 1e-12) + 1e-12)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON."""
        return {**self._asdict(), "bound": self.bound, "slack": self.slack, "holds": self.holds()}

    def _repr_html_(self) -> str:
        facts = [("log-loss", number(self.loss)), ("of the best learner", number(self.best))]
        facts += [("bound", f"{number(self.bound)} = best + ln {self.learners}"), ("holds", number(self.holds()))]
        return facts_html("Theorem on the mixture", facts)

    def __str__(self) -> str:
        return (
            f"log-loss {self.loss:,.6g} <= best + ln {self.learners} = {self.best:,.6g} + "
            f"{math.log(self.learners):.4g} = {self.bound:,.6g} (slack {self.slack:.4g})"
        )


# ----------------------------------------------------------------------------------------------------
# The learner.


class MixtureLearner(Learner):
    """The mixture of several linear classifiers.

    >>> X, y = np.array([[0.0], [1.0]] * 50), np.array(["no", "yes"] * 50)
    >>> mixture = MixtureLearner(learners=["LogisticRegression(rate=1.0)", "Perceptron"], random_state=0).fit(X, y)
    >>> mixture.predict(X[:2])
    array(['no', 'yes'], dtype='<U3')
    """

    training: Any

    def __init__(self, *, warning: type[Warning] = UserWarning, **params: Any) -> None:
        self._given: Any = self
        self._members: list[Learner] | None = None
        self._spelled: tuple[str, ...] | None = None
        super().__init__(MIXTURE.name, warning=warning, **params)

    # ------------------------------------------------------------------ parameters

    @property
    def composition(self) -> Composition:
        return MIXTURE

    def configure(self, values: dict[str, Any]) -> None:
        super().configure(values)
        given = values.get("learners")
        if self._given is self or given != self._given:
            self._given, self._members, self._spelled = copy.copy(given), None, None

    @property
    def members(self) -> list[Learner]:
        """The learners, which have learned nothing."""
        if self._members is None:
            self._members = members_of(self.settings.learners)
        return self._members

    @property
    def choices(self) -> dict[str, Any]:
        """What stands for the choices of all learners."""
        if self._choices is None:
            self._choices = {"geometry": Together(self.members), "calibration": CALIBRATIONS.get("own")}
        return self._choices

    def get_params(self, deep: bool = False) -> dict[str, Any]:
        """The parameters by name, in alphabetical order; learners by their spelling."""
        given = self.settings.learners
        return {**super().get_params(), "learners": None if given is None else list(self._spellings())}

    def _spellings(self) -> tuple[str, ...]:
        """The learners as text."""
        if self._spelled is None:
            self._spelled = tuple(spell_learner(one) for one in self.members)
        return self._spelled

    def _depends_on(self) -> dict[str, Any]:
        return {"learners": self._spellings(), "max_names": self.settings.max_names}

    # ------------------------------------------------------------------ learning

    def _begin(self, X: Any, y: np.ndarray, names: Any, sees_all: bool) -> Any:
        self.began_with = self._depends_on()
        self.seed = seed_of(self.settings.random_state)
        trainings = []
        for given in self.members:
            one = Learner(given.name, **{**given.get_params(), "random_state": self.seed, "grow": self.settings.grow})
            one.task = self.task
            trainings.append(one._begin(X, y, None, sees_all))
        self.training, self.dtype = MixtureTraining(trainings, self.choices["geometry"]), np.dtype(X.dtype)
        self._call_columns(X.shape[1], names)
        return self.training

    def _new_training(self) -> Any:
        made = [self.member(k)._new_training() for k in range(len(self.members))]
        return MixtureTraining(made, self.choices["geometry"])

    def _pass_over(self, X: Any, targets: np.ndarray, weight: np.ndarray) -> None:
        super()._pass_over(X, targets, weight)  # and a mixture without mistakes is no hyperplane

    # ------------------------------------------------------------------ what was learned

    def _trained(self) -> Any:
        return super()._trained()

    @property
    def coef_(self) -> np.ndarray:
        raise AttributeError("a mixture of linear classifiers is not linear, so it has no coef_; leader_ has")

    @property
    def intercept_(self) -> np.ndarray:
        raise AttributeError("a mixture of linear classifiers is not linear, so it has no intercept_; leader_ has")

    @property
    def losses_(self) -> np.ndarray:
        """The log-loss of each learner, summed over the examples met, each before it was learned from."""
        return np.asarray(self._trained().losses)

    @property
    def weights_(self) -> np.ndarray:
        """How much each learner counts: e^-loss, divided by their sum."""
        losses = self.losses_
        powers = np.exp(losses.min() - losses)
        return np.asarray(powers / powers.sum())

    @property
    def loss_(self) -> float:
        """The log-loss of the mixture, summed likewise: -ln of the mean of e^-loss."""
        losses = self.losses_
        least = float(losses.min())
        return max(least - math.log(float(np.mean(np.exp(least - losses)))), 0.0)

    @property
    def leader_(self) -> Learner:
        """The learner with the smallest loss, by itself; what it learns from now on does not change the mixture."""
        return self.member(self._trained().leader)

    @property
    def explained(self) -> Learner:
        """The leader, for a mixture has no weights."""
        return self.leader_

    def member(self, k: int) -> Learner:
        """Learner k by itself, with the mixture's parameters of passes."""
        training, given = self._trained(), self.members[k]
        shared = {name: getattr(self.settings, name) for name in OF_MIXTURE if name in given.composition.parameters}
        made = Learner(given.name, warning=self.warning, **{**given.get_params(), **shared})
        made.training, made.task, made.separable = training.member(k), self.task, None
        made.seed, made.dtype = self.seed, self.dtype
        made._call_columns(self.features, copy.deepcopy(self.feature_names))
        made.began_with = copy.deepcopy(made._depends_on())
        return made

    def scores_before_learning(self) -> None:
        """None: a mixture weighs its learners by their losses, and keeps no scores."""
        return None

    def certificate(self) -> Theorem:  # type: ignore[override]
        """The theorem on the losses met so far; it holds on every stream, so that no rows are asked for."""
        return Theorem(self.loss_, float(self.losses_.min()), len(self.members))

    # ------------------------------------------------------------------ predicting

    def _scores(self, X: Any, training: Any = None) -> np.ndarray:
        """Logarithms of probabilities, by output; with one output, log-odds."""
        training, rows = training or self._trained(), X.shape[0]
        block = max(1, SCORES // (training.outputs * len(self.members)))
        if rows <= block:
            return np.asarray(training.log_probabilities(X, self.names))
        csr.check_finite(X, self.names)  # the number of a row would be that in its block
        X = csr.CSR.of(X) if csr.is_sparse(X) and not isinstance(X, csr.CSR) else X
        made = np.empty((rows, training.outputs))
        for start in range(0, rows, block):
            stop = min(start + block, rows)
            some = X.between(start, stop) if csr.is_sparse(X) else X[start:stop]
            made[start:stop] = training.log_probabilities(some, self.names)
        return made

    def _best(self, X: Any, training: Any = None) -> np.ndarray:
        return np.argmax(self._scores(X, training), axis=1)

    # ------------------------------------------------------------------ the model file

    def _pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        training = self._trained()
        labels, arrays = self.task.pack(None)
        chronicle, counts = training.pack_chronicle()
        facts = {
            "estimator": self._facts(),
            "mixture": chronicle,
            "members": [],
            **labels,
        }
        arrays.update({"losses": training.losses, **counts})
        for k in range(len(self.members)):
            made, kept = training.member(k).pack()
            facts["members"].append(made)
            arrays.update({f"member.{k}.{key}": array for key, array in kept.items()})
        return facts, arrays

    FILED: ClassVar[Record] = Record(estimator=ROWS, mixture=Chronicle.FILED, members=ListOf(NESTED, "learners"))

    def _unpack(self, facts: dict[str, Any], arrays: Arrays) -> None:
        check_facts(facts, self.FILED)
        self.check()
        mine, chronicle, members = facts["estimator"], facts["mixture"], facts["members"]
        count, names = mine["n_features_in"], self._unpack_names(mine["feature_names_in"], mine["n_features_in"])
        if len(members) != len(self.members):
            raise ValueError(f"{len(members)} learners do not go with {len(self.members)} spellings")
        kept = numbered("member", len(members), arrays)
        trainings = [Training.unpack(one, its) for one, its in zip(members, kept)]
        training = MixtureTraining(trainings, self.choices["geometry"])
        training.take_chronicle(chronicle, arrays)
        shapes = {(one.features, one.outputs, one.output is None, one.n_seen, one.passes) for one in trainings}
        if shapes != {(count, training.outputs, training.output is None, training.n_seen, training.passes)}:
            raise ValueError("the learners of the mixture have not seen the same rows")
        check_array("losses", arrays["losses"], "float64", (len(trainings),), low=0)
        for k, (bank, m) in enumerate(training.places):
            training.banks[bank].losses[m] = arrays["losses"][k]
        self.task = Classification.unpack(facts, arrays, training)
        self.training, self.seed, self.dtype = training, mine["seed"], np.dtype(mine["dtype"])
        self._call_columns(count, names)
        self.began_with = self._depends_on()
