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

import ast
import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from onlearn.compiler.inlining import Loop
from onlearn.engine import csr
from onlearn.engine.bank import CHANGED, COST, LOWEST, NOTES, RIGHT, TINY, TOTAL, Bank, log_loss, may_share
from onlearn.engine.calibration import CALIBRATIONS, Curve
from onlearn.engine.classification import Classification
from onlearn.engine.learner import Learner
from onlearn.engine.loops import HIGHEST_LOSS, LOSS, MISTAKES, SEEN, UPDATES, remember
from onlearn.engine.named import COMPOSITIONS, Composition
from onlearn.engine.protocol import Geometry
from onlearn.engine.scoring import scores_by
from onlearn.engine.settings import PARAMETERS, seed_of
from onlearn.engine.spec import did_you_mean, param, parameters
from onlearn.engine.training import Chronicle, Training
from onlearn.model_file import ESTIMATOR, TRAINING, check_array, check_facts
from onlearn.threads import over_rows

RATES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # of the usual learners
USUAL = tuple(f"LogisticRegression(rate={rate!r}, stabilizer='last')" for rate in RATES)

BATCH = 2048  # examples that the learners take turns at
NUMBERS = 1 << 18  # probabilities taken down at a time, at most
SCORES = 1 << 23  # of all learners at a time, when predicting

# ----------------------------------------------------------------------------------------------------
# Parameters.


class MixtureSettings:
    """What a mixture has besides the parameters of passes."""

    learners: Any = param(
        None,
        "the learners; None: eight logistic regressions by AdaGrad, of rates from 0.003 to 10",
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
OF_MIXTURE = tuple(name for name in MIXTURE.parameters if name != "learners")  # which members must leave alone


def parse_learner(text: str) -> Learner:
    """The learner that is spelled like the call of its class, with constants; it is read, never evaluated.

    >>> parse_learner("LogisticRegression(rate=0.5)")
    LogisticRegression(rate=0.5)
    """
    try:
        tree: Any = ast.parse(text.strip(), mode="eval").body
        call = tree if isinstance(tree, ast.Call) else ast.Call(tree, [], [])
        name = call.func.id
        values = [ast.literal_eval(one) for one in call.args]
        named = {str(one.arg): ast.literal_eval(one.value) for one in call.keywords}
    except (SyntaxError, ValueError, AttributeError):
        raise ValueError(
            f"cannot read the learner {text!r}: write a name with its parameters, such as LogisticRegression(rate=0.1)"
        ) from None
    if name not in COMPOSITIONS:
        raise ValueError(f"there is no learner {name!r} for a mixture{did_you_mean(name, list(COMPOSITIONS))}")
    known = list(COMPOSITIONS[name].parameters)
    given = dict(zip(known, values, strict=False))
    if len(values) > len(known) or given.keys() & named.keys() or named.keys() - set(known):
        wrong = next((key for key in named if key not in known), None)
        why = (
            "a parameter is given twice"
            if wrong is None
            else f"it has no parameter {wrong!r}{did_you_mean(wrong, known)}"
        )
        raise ValueError(f"cannot read the learner {text!r}: {why}")
    return Learner(name, **given, **named)


def spell_learner(learner: Learner) -> str:
    """The text that ``parse_learner`` reads: the parameters that are not as usual, choices by their spelling."""
    usual = learner.defaults()
    changed = {name: value for name, value in learner.get_params().items() if repr(value) != repr(usual[name])}
    spelled = [f"{name}={_spelled(value)!r}" for name, value in changed.items()]
    return f"{learner.name}({', '.join(spelled)})" if spelled else learner.name


def _spelled(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    value = value() if isinstance(value, type) else value
    return value if isinstance(value, (str, int, float, bool, type(None))) else repr(value)


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
        given = parse_learner(given)
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


# ----------------------------------------------------------------------------------------------------
# Learning.


@Loop
def mix(mass, notes, banks, room, count, classes, found, tally, doubling):
    """Count what the mixture of all banks said of ``count`` examples; there is ``room`` for so many of each bank."""
    for n in range(count):
        lowest, least = notes[n * NOTES + LOWEST], notes[n * NOTES + LOWEST] + notes[n * NOTES + COST]
        for b in range(banks):
            at = (b * room + n) * NOTES
            lowest = min(lowest, notes[at + LOWEST])
            least = min(least, notes[at + LOWEST] + notes[at + COST])
        for c in range(classes):
            found[c] = 0.0
        total, right, changed = 0.0, 0.0, False
        for b in range(banks):
            at = (b * room + n) * NOTES
            share = np.exp(lowest - notes[at + LOWEST])
            total += share * notes[at + TOTAL]
            right += np.exp(least - (notes[at + LOWEST] + notes[at + COST]))
            changed = changed or notes[at + CHANGED] != 0.0
            for c in range(classes):
                found[c] += share * mass[(b * room + n) * classes + c]
        gold = np.int64(notes[n * NOTES + RIGHT])
        rival = total - found[gold] if classes == 1 else -1.0
        for c in range(classes):
            rival = max(rival, found[c]) if c != gold else rival
        tally[MISTAKES] += found[gold] <= rival
        tally[UPDATES] += changed
        tally[LOSS] += min(max(least - np.log(right) - lowest + np.log(total), 0.0), HIGHEST_LOSS)
        tally[SEEN] += 1.0
        remember(tally, doubling)


class Together(Geometry):
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

    def __str__(self) -> str:
        return (
            f"log-loss {self.loss:,.6g} <= best + ln {self.learners} = {self.best:,.6g} + "
            f"{math.log(self.learners):.4g} = {self.bound:,.6g} (slack {self.slack:.4g})"
        )


class MixtureTraining(Chronicle):
    """Banks of learners, taken through the same examples; the counts are those of the mixture."""

    rule: Any = SimpleNamespace(name="mixture")  # none of those that theorems about one learner speak of

    def __init__(self, members: list[Training], geometry: Together) -> None:
        super().__init__()
        self.geometry: Together = geometry
        self.banks: list[Bank] = []
        self.places: list[tuple[int, int]] = [(0, 0)] * len(members)  # of each learner: its bank, and where in it
        left = list(range(len(members)))
        while left:
            first = left[0]
            alike = [k for k in left if k == first or may_share(members[first], members[k])]
            for m, k in enumerate(alike):
                self.places[k] = len(self.banks), m
            self.banks.append(Bank([members[k] for k in alike]))
            left = [k for k in left if k not in alike]
        self.output: str | None = None if members[0].output is None else "mixture"
        self.stopped: str | None = None  # there is nothing that stops it early

    def __copy__(self) -> MixtureTraining:
        made = object.__new__(MixtureTraining)
        made.__dict__.update(self.__dict__)
        made.banks = [copy.copy(bank) for bank in self.banks]
        return made

    # ------------------------------------------------------------------ facts

    @property
    def features(self) -> int:
        return self.banks[0].features

    @property
    def outputs(self) -> int:
        """Of each learner."""
        return self.banks[0].classes

    @property
    def theta(self) -> float:
        return max(bank.theta for bank in self.banks)

    @property
    def may_fail(self) -> bool:
        """Whether learning may fail halfway, at something the user wrote."""
        return any(bank.may_fail for bank in self.banks)

    @property
    def checked(self) -> bool:
        """Whether rows were searched for NaN and infinity; else they are when one shows."""
        return all(bank.checked for bank in self.banks)

    @checked.setter
    def checked(self, value: bool) -> None:
        for bank in self.banks:
            bank.checked = value

    # ------------------------------------------------------------------ learning

    def learn(self, X: Any, y: np.ndarray, weight: np.ndarray, order: np.ndarray, *, audit: bool = True,
              progress: Callable[[int], None] | None = None, gathered: bool = False) -> None:  # fmt: skip
        """Learn from the rows of X in the given order, as ``Training.learn`` does; unless ``audit``, they were seen."""
        self._own()
        classes, banks = self.outputs, self.banks
        room = max(1, min(BATCH, NUMBERS // classes, len(order)))
        mass, notes, found = (
            np.empty((len(banks), room * classes)),
            np.empty((len(banks), room * NOTES)),
            np.empty(classes),
        )
        for start in range(0, len(order), room):
            some = order[start : start + room]
            mine = slice(start, start + room) if gathered else some
            targets, importance = y[mine], weight[mine]
            for n, bank in enumerate(banks):
                bank.take_down_in(mass[n], notes[n])
                bank.counts[0] = 1.0 if audit else 0.0
                bank.learn(X, targets, importance, some, audit=audit, gathered=True)
            count = int(banks[0].at[0])
            mix(mass.reshape(-1), notes.reshape(-1), len(banks), room, count, classes, found, self.tally, self.doubling)
            if progress is not None:
                progress(len(some))

    def _own(self) -> None:
        """Copy what cannot be written to, as ``Training._own`` does."""
        for name in ("tally", "doubling"):
            if not getattr(self, name).flags.writeable:
                setattr(self, name, np.array(getattr(self, name)))

    def begin_pass(self) -> None:
        super().begin_pass()
        for bank in self.banks:
            bank.begin_pass()

    def end_pass(self) -> dict[str, float]:
        for bank in self.banks:
            bank.end_pass()
        return super().end_pass()

    def grow(self, features: int, outputs: int) -> None:
        """Make room for more features and outputs."""
        for bank in self.banks:
            bank.grow(features, bank.count * outputs)

    def select(self, kept: np.ndarray) -> None:
        """Keep some features only, in the given order."""
        for bank in self.banks:
            bank.select(kept)

    # ------------------------------------------------------------------ the learners

    @property
    def losses(self) -> np.ndarray:
        """The log-loss of each learner so far."""
        return np.array([self.banks[b].losses[m] for b, m in self.places])

    @property
    def leader(self) -> int:
        """The learner with the smallest loss, the first of them."""
        return int(np.argmin(self.losses))

    def member(self, k: int) -> Training:
        """Learner k by itself."""
        bank, m = self.places[k]
        return self.banks[bank].member(m)

    def log_probabilities(self, X: Any, names: Any) -> np.ndarray:
        """Of each row and output, by what the learners hand out; with one output, the log-odds of the second class."""
        losses = np.concatenate([bank.losses for bank in self.banks])
        log_weights = losses.min() - losses
        log_weights -= np.log(np.exp(log_weights).sum())
        made = [scores_by(bank, X, names).reshape(X.shape[0], self.outputs, bank.count) for bank in self.banks]
        scores = np.ascontiguousarray(made[0] if len(made) == 1 else np.concatenate(made, axis=2), dtype=np.float64)
        out, count = np.empty((X.shape[0], self.outputs)), len(losses)
        weights = np.exp(log_weights)

        def work(start: int, stop: int) -> None:
            lines = scores[start:stop].reshape(-1), out[start:stop].reshape(-1)
            blend(
                lines[0], weights, log_weights, np.empty(2 * count + self.outputs), self.outputs, stop - start, lines[1]
            )

        over_rows(work, X.shape[0], 20 * scores.size)
        return out

    def size(self) -> float:
        """|w| of what the leader hands out: the scores for its calibration grow with that."""
        return self.member(self.leader).size()

    def rescale_audit(self, factor: float) -> None:
        """The leader grew by a factor on examples that are not audited."""
        for bank in self.banks:
            bank.rescale_audit(factor)

    def largest_weight(self) -> float:
        """The largest absolute stored weight."""
        return max(bank.largest_weight() for bank in self.banks)


@Loop
def blend(scores, weights, log_weights, room, outputs, rows, out):
    """The logarithm of each row's mixed probabilities, from the scores of all members, side by side in each output."""
    members = len(weights)
    top, total, mixed = room[:members], room[members : 2 * members], room[2 * members :]
    for i in range(rows):
        line = scores[i * outputs * members : (i + 1) * outputs * members]
        if outputs == 1:
            first, second = 0.0, 0.0
            for m in range(members):
                power = np.exp(-abs(line[m]))
                high, low = weights[m] / (1.0 + power), weights[m] * (power / (1.0 + power))
                second += high if line[m] >= 0.0 else low
                first += low if line[m] >= 0.0 else high
            if first > TINY and second > TINY:
                out[i] = np.log(second) - np.log(first)
            else:  # one of them would be rounded to nothing
                least, most = np.inf, np.inf
                for m in range(members):
                    most = min(most, log_loss(line[m]) - log_weights[m])
                    least = min(least, log_loss(-line[m]) - log_weights[m])
                first, second = 0.0, 0.0
                for m in range(members):
                    second += np.exp(most - (log_loss(line[m]) - log_weights[m]))
                    first += np.exp(least - (log_loss(-line[m]) - log_weights[m]))
                out[i] = (np.log(second) - most) - (np.log(first) - least)
        else:
            for m in range(members):
                top[m], total[m] = -np.inf, 0.0
            for c in range(outputs):
                for m in range(members):
                    top[m] = max(top[m], line[c * members + m])
            for c in range(outputs):
                for m in range(members):
                    total[m] += np.exp(line[c * members + m] - top[m])
            for c in range(outputs):
                mixed[c] = 0.0
                for m in range(members):
                    mixed[c] += weights[m] * np.exp(line[c * members + m] - top[m]) / total[m]
                if mixed[c] > TINY:
                    out[i * outputs + c] = np.log(mixed[c])
                else:
                    least = np.inf
                    for m in range(members):
                        least = min(least, np.log(total[m]) - (line[c * members + m] - top[m]) - log_weights[m])
                    sum_of = 0.0
                    for m in range(members):
                        sum_of += np.exp(least - (np.log(total[m]) - (line[c * members + m] - top[m]) - log_weights[m]))
                    out[i * outputs + c] = np.log(sum_of) - least


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
        return {"learners": self._spellings()}

    # ------------------------------------------------------------------ learning

    def _begin(self, X: Any, y: np.ndarray, names: Any, sees_all: bool) -> Any:
        self.began_with = self._depends_on()
        self.seed = seed_of(self.settings.random_state)
        trainings = []
        for given in self.members:
            one = Learner(given.name, **{**given.get_params(), "random_state": self.seed, "grow": self.settings.grow})
            one.task = self.task
            trainings.append(one._begin(X, y, names, sees_all))
        self.training, self.dtype = MixtureTraining(trainings, self.choices["geometry"]), np.dtype(X.dtype)
        self._call_columns(X.shape[1], names)
        return self.training

    def _pass_over(self, X: Any, targets: np.ndarray, weight: np.ndarray) -> None:
        super()._pass_over(X, targets, weight)  # and a mixture without mistakes is no hyperplane

    # ------------------------------------------------------------------ what was learned

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

    def member(self, k: int) -> Learner:
        """Learner k by itself, with the mixture's parameters of passes."""
        training, given = self._trained(), self.members[k]
        shared = {name: getattr(self.settings, name) for name in OF_MIXTURE if name in given.composition.parameters}
        made = Learner(given.name, warning=self.warning, **{**given.get_params(), **shared})
        made.training, made.task, made.separable = training.member(k), self.task, None
        made.features, made.names, made.seed, made.dtype = self.features, self.names, self.seed, self.dtype
        made.began_with = copy.deepcopy(made._depends_on())
        return made

    def certificate(self) -> Theorem:  # type: ignore[override]
        """The theorem on the losses met so far; it holds on every stream, so that no rows are asked for."""
        return Theorem(self.loss_, float(self.losses_.min()), len(self.members))

    # ------------------------------------------------------------------ predicting

    def _scores(self, X: Any) -> np.ndarray:
        """Logarithms of probabilities, by output; with one output, log-odds."""
        training, rows = self._trained(), X.shape[0]
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

    def _best(self, X: Any) -> np.ndarray:
        return np.argmax(self._scores(X), axis=1)

    def predict_proba(self, X: Any, calibration: Any = None) -> np.ndarray:
        """The probability of each class; the largest is where ``predict`` is."""
        return Curve(1.0, 0.0, "softmax").probabilities(self.decision_function(X))

    # ------------------------------------------------------------------ the model file

    def _pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        training = self._trained()
        labels, arrays = self.task.pack(None)
        facts = {
            "estimator": self._facts(),
            "mixture": {name: getattr(training, name) for name in ("passes", "by_pass", "since")},
            "members": [],
            **labels,
        }
        arrays.update({"losses": training.losses, "tally": training.tally, "doubling": training.doubling})
        for k in range(len(self.members)):
            made, kept = training.member(k).pack()
            facts["members"].append(made)
            arrays.update({f"member.{k}.{key}": array for key, array in kept.items()})
        return facts, arrays

    def _unpack(self, facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        mine, chronicle = facts["estimator"], facts["mixture"]
        check_facts(mine, ESTIMATOR)
        check_facts(chronicle, {name: TRAINING[name] for name in ("passes", "by_pass", "since")})
        count, names, members = mine["n_features_in"], mine["feature_names_in"], facts["members"]
        if len(members) != len(self.members):
            raise ValueError(f"{len(members)} learners do not go with {len(self.members)} spellings")
        trainings = []
        for k, one in enumerate(members):
            prefix = f"member.{k}."
            kept = {key.removeprefix(prefix): array for key, array in arrays.items() if key.startswith(prefix)}
            trainings.append(Training.unpack(one, kept))
        training = MixtureTraining(trainings, self.choices["geometry"])
        shapes = {(one.features, one.outputs, one.output is None, one.n_seen, one.passes) for one in trainings}
        seen = int(arrays["tally"][SEEN])
        if shapes != {(count, training.outputs, training.output is None, seen, chronicle["passes"])}:
            raise ValueError("the learners of the mixture have not seen the same rows")
        if names is not None and len(names) != count:
            raise ValueError(f"{len(names)} names do not go with {count} features")
        for name in ("tally", "doubling"):
            check_array(name, arrays[name], "float64", getattr(training, name).shape)
            setattr(training, name, arrays[name])
        if len(chronicle["since"]) != len(training.tally):
            raise ValueError("the counters do not have the shape that this learner has")
        check_array("losses", arrays["losses"], "float64", (len(trainings),), low=0)
        for k, (bank, m) in enumerate(training.places):
            training.banks[bank].losses[m] = arrays["losses"][k]
        for name, value in chronicle.items():
            setattr(training, name, value)
        self.task = Classification.unpack(facts, arrays, training)
        self.training, self.seed, self.dtype = training, mine["seed"], np.dtype(mine["dtype"])
        self._call_columns(count, names)
        self.began_with = self._depends_on()
