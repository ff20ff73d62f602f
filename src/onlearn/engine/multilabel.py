"""Several labels a row: one binary learner for each label, all of them over the same rows (binary relevance).

Member k learns whether a row has label k, y_k = +1 or -1, and knows nothing of the other labels: its hypothesis is to
the last bit that of the same learner taught label k alone. A row has every label whose score is above zero, which may
be none (Tsoumakas & Katakis 2007).

Labels may come in the course of a stream. All labels that were not met yet have the same past, rows without them; so
one learner more, that of the unmet label, learns from every row that it lacks the label, and a new label starts with a
copy of it. What is learned is then the same whether labels are named beforehand or come as they come.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from onlearn.engine import csr
from onlearn.engine.base_learner import ROWS, BaseLearner, Contributions
from onlearn.engine.compositions import COMPOSITIONS, Composition, refuse_changes, seed_of
from onlearn.engine.inputs import check_weights
from onlearn.engine.learner import Learner
from onlearn.engine.loops import LOSS, MISTAKES, SEEN, UPDATES
from onlearn.engine.passes import all_or_nothing, to_the_end
from onlearn.engine.registry import parse_learner, spell_learner
from onlearn.engine.spec import param, parameters
from onlearn.engine.tasks import Classification
from onlearn.engine.training import Chronicle
from onlearn.model_file import pack_labels, unpack_labels
from onlearn.model_schema import (
    ANYTHING,
    COUNT,
    NESTED,
    TRUTH,
    Arrays,
    ListOf,
    OrMissing,
    Record,
    check_facts,
    finite,
    numbered,
)
from onlearn.threads import WORTHWHILE, cores, over_pieces

if TYPE_CHECKING:
    from typing_extensions import Self

USUAL = "AROW"  # as good as others on dense rows, and better on sparse ones with rare labels
BINARY = np.array([0, 1])  # the classes of every member: without the label, and with it


class MultilabelSettings:
    """What it has besides the parameters of its members."""

    learner: Any = param(
        USUAL,
        "what learns each label",
        kind="other",
        allowed="a linear classifier, or its spelling such as 'LogisticRegression(rate=0.1)'",
    )


MULTILABEL = Composition(
    "MultilabelClassifier",
    "One binary learner for each label of rows that may have several labels, or none.",
    own=parameters(dataclass(MultilabelSettings)),
    shared=("grow", "random_state"),
)


def member_of(given: Any) -> Learner:
    """The learner that each label gets a copy of, checked."""
    if isinstance(given, str):
        given = parse_learner(given, tuple(COMPOSITIONS), " for several labels a row")
    if type(given) is not Learner:
        raise TypeError(f"learner is {given!r}, but must be {MULTILABEL.own['learner'].allowed}")
    if given.composition.task != "classify":
        raise ValueError(f"learner is a regression, {given!r}: labels are learned by a classifier")
    given.check()
    return given


class LabelSets:
    """Distinct sets of labels, by number: rows name their set, so that a label set is kept once.

    >>> sets = LabelSets([(), (0, 2), (1,)])
    >>> sets.indicator(np.array([1, 0, 2]), 3).astype(int).tolist()
    [[1, 0, 1], [0, 0, 0], [0, 1, 0]]
    """

    def __init__(self, sets: Iterable[Sequence[int]] = ((),)) -> None:
        self.sets: list[np.ndarray] = [np.asarray(one, dtype=np.int64) for one in sets]

    def __len__(self) -> int:
        return len(self.sets)

    def append(self, labels: Sequence[int]) -> None:
        """Add a set; its number is the one after the last."""
        self.sets.append(np.asarray(labels, dtype=np.int64))

    def renumbered(self, numbers: np.ndarray) -> LabelSets:
        """The same sets with other numbers of labels."""
        return LabelSets([numbers[one] for one in self.sets])

    def indicator(self, codes: np.ndarray, labels: int) -> np.ndarray:
        """Which labels each row has, by the number of its set: (rows, labels) of truth values."""
        made = np.zeros((len(codes), labels), dtype=bool)
        used, places = np.unique(codes, return_inverse=True)
        parts = [self.sets[code] for code in used.tolist()]
        lengths = np.array([len(one) for one in parts], dtype=np.int64)
        starts = np.concatenate([[0], np.cumsum(lengths)])
        flat = np.concatenate([*parts, np.zeros(0, dtype=np.int64)]).astype(np.int64)
        counts = lengths[places]
        rows = np.repeat(np.arange(len(codes)), counts)
        within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        made[rows, flat[np.repeat(starts[places], counts) + within]] = True
        return made


class MultilabelTraining(Chronicle):
    """The learners of all labels, and what happened to them together: a mistake is one label of one row."""

    calibrated: Any = None

    def __init__(self, members: list[Learner]) -> None:
        super().__init__()
        self.members: list[Learner] = members
        self.unmet: Learner | None = None  # the learner of labels that no row had yet, where more may come
        self.first_sizes: list[float] | None = None  # of the hypotheses after the first pass of a run

    @property
    def learners(self) -> list[Learner]:
        """Those of all labels, and then that of unmet ones, if there is one."""
        return [*self.members, *([] if self.unmet is None else [self.unmet])]

    @property
    def outputs(self) -> int:
        return len(self.members)

    @property
    def may_fail(self) -> bool:
        """Whether learning may fail halfway, at something the user wrote."""
        return any(one.training.may_fail for one in self.members[:1])

    def snapshot(self) -> MultilabelTraining:
        """Itself: whoever predicts waits while it learns."""
        return self

    def size(self) -> float:
        """0: the members differ in size, and each scales its own scores for calibration."""
        return 0.0

    def count(self, rows: int, before: np.ndarray) -> None:
        """Count rows that were learned from; ``before`` is what ``total`` gave before."""
        happened = self.total() - before
        self.tally[SEEN] += rows
        self.tally[MISTAKES] += happened[MISTAKES]
        self.tally[UPDATES] += happened[UPDATES]
        self.tally[LOSS] += happened[LOSS] / max(1, len(self.members))

    def total(self) -> np.ndarray:
        """The sums of what all members have counted."""
        return np.sum([one.training.tally for one in self.members] or [np.zeros(len(self.tally))], axis=0)


class MultilabelLearner(BaseLearner):
    """Learns from truth values, one column a label.

    >>> X, Y = np.eye(3), np.array([[1, 1], [0, 1], [0, 0]], dtype=bool)
    >>> MultilabelLearner(learner="Perceptron(epochs=20)", random_state=0).fit(X, Y).predict(X).astype(int).tolist()
    [[1, 1], [0, 1], [0, 0]]
    """

    training: Any
    sets: LabelSets  # of a run over files, whose targets are numbers of sets

    label_names: np.ndarray | None = None  # what an estimator calls the labels; None: by their numbers
    takes_lists: bool = False  # an estimator learned from lists of labels, and answers with such

    def __init__(self, *, warning: type[Warning] = UserWarning, **params: Any) -> None:
        self.sets = LabelSets()
        super().__init__(warning=warning, **params)

    # ------------------------------------------------------------------ parameters

    @property
    def composition(self) -> Composition:
        return MULTILABEL

    @property
    def member(self) -> Learner:
        """The learner that each label gets a copy of; it has learned nothing."""
        return member_of(self.settings.learner)

    @property
    def choices(self) -> dict[str, Any]:
        """Those of each member."""
        if self._choices is None:
            self._choices = self.member.choices
        return self._choices

    def get_params(self, deep: bool = False) -> dict[str, Any]:
        """The parameters by name; the learner by its spelling."""
        return {**super().get_params(), "learner": spell_learner(self.member)}

    def _depends_on(self) -> dict[str, Any]:
        return {"learner": spell_learner(self.member)}

    @property
    def positive_only(self) -> bool:  # type: ignore[override]
        """Whether the geometry takes no negative values."""
        return bool(self.choices["geometry"].positive_only)

    @property
    def usual_passes(self) -> int | None:  # type: ignore[override]
        return self.member.usual_passes

    # ------------------------------------------------------------------ learning

    def _new_member(self) -> Learner:
        """The learner of one label, before it has learned anything."""
        given = self.member
        grow = {"grow": "features"} if self.settings.grow else {}
        return Learner(given.name, warning=self.warning, **{**given.get_params(), "random_state": self.seed, **grow})

    def _started(self) -> Learner:
        """The learner of one label, ready to learn."""
        one = self._new_member()
        one._start(self.features, np.zeros(2), self.dtype)
        return one

    def _add_labels(self, labels: int) -> None:
        """Learners for labels up to so many."""
        members, unmet = self.training.members, self.training.unmet
        for _ in range(len(members), labels):
            members.append(self._started() if unmet is None else copy.deepcopy(unmet))
        self.task = Classification(np.arange(len(members)), np.zeros(len(members) + 1))

    def _begin_labels(self, features: int, labels: int, dtype: Any, names: Any = None) -> None:
        self.check()
        self.began_with = copy.deepcopy(self._depends_on())
        self.seed, self.dtype = seed_of(self.settings.random_state), np.dtype(dtype)
        self._call_columns(features, names)
        self.training = MultilabelTraining([])
        if self.settings.grow is True:
            self.training.unmet = self._started()
        self._add_labels(labels)

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None, names: list[str] | None = None) -> Self:
        """Learn from all rows, anew: in as many passes as the learner of each label says."""
        self.check()
        X = self._rows(X, first=True, names=names)
        Y = check_indicator(y, X.shape[0])
        weight = check_weights(sample_weight, X.shape[0], sees_all=True)
        self._begin_labels(X.shape[1], Y.shape[1], X.dtype, names)
        training = self.training
        learners = training.learners
        Y = np.column_stack([Y, np.zeros(len(Y), dtype=bool)])  # no row has an unmet label

        def learn(place: int) -> None:
            one, column = learners[place], Y[:, place]
            met = column[weight > 0]
            if met.all() or not met.any():  # nothing to tell apart; more rows may come
                for _ in range(one.settings.epochs or 1):
                    one.partial_fit(X, column.astype(np.int64), sample_weight=weight)
            else:
                training.members[place] = self._new_member().fit(X, column.astype(np.int64), weight)

        self._for_each(learn, X)
        training.count(int(np.count_nonzero(weight)), np.zeros(len(training.tally)))
        training.end_pass()
        return self

    @all_or_nothing
    def _partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, names: Any = None) -> None:
        X = csr.as_floats(X)
        first = self.training is None
        if not first:
            refuse_changes(self.began_with, self._depends_on())
        wider = not first and bool(self.settings.grow) and X.shape[1] > self.features
        X = self._rows(X, first=first or wider, names=names)
        Y = check_indicator(y, X.shape[0])
        weight = check_weights(sample_weight, X.shape[0], sees_all=False)
        if first:
            self._begin_labels(X.shape[1], Y.shape[1], X.dtype, names)
        elif self.settings.grow:
            self._take_in(X.shape[1], Y.shape[1])
            if wider and names is not None:
                self._call_columns(X.shape[1], names)
        if Y.shape[1] != len(self.training.members):
            raise ValueError(
                f"y has {Y.shape[1]} labels, but there were {len(self.training.members)} when learning began"
            )
        self._learn_columns(X, Y, weight)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None,
                    names: list[str] | None = None) -> Self:  # fmt: skip
        """Learn from the rows once, in their order; y has a column of truth values for each label."""
        self._partial_fit(X, y, classes, sample_weight, names)
        return self

    def _learn_columns(self, X: Any, Y: np.ndarray, weight: np.ndarray) -> None:
        training = self.training
        before = training.total()
        learners = training.learners
        Y = np.column_stack([Y, np.zeros(len(Y), dtype=bool)])  # no row has an unmet label
        with to_the_end(len(Y)):
            self._for_each(
                lambda place: learners[place].partial_fit(X, Y[:, place].astype(np.int64), sample_weight=weight), X
            )
            training.count(int(np.count_nonzero(weight)), before)

    def _for_each(self, work: Callable[[int], Any], X: Any) -> None:
        """``work(place)`` for the learner of each label, in several threads where that is worthwhile.

        The first is by itself, for it may compile what the others need.
        """
        count = len(self.training.learners)
        cost = count * int(X.nnz if csr.is_sparse(X) else X.size)
        work(0)
        workers = min(cores(), count - 1, max(1, cost // WORTHWHILE))
        over_pieces(lambda n: work(n + 1), count - 1, workers)

    # ------------------------------------------------------------------ runs over files

    def _start(self, features: int, counts: np.ndarray, dtype: Any) -> None:
        """Make ready to learn from rows of this width; ``counts`` are of rows with each label, after that of all."""
        self._begin_labels(features, len(counts) - 1, dtype)
        for one, mine in zip(self.training.learners, [*counts[1:].tolist(), 0.0]):
            one._start(features, np.array([counts[0] - mine, mine]), dtype)

    def _take_in(self, features: int, classes: int) -> None:
        self.features = max(features, self.features)
        for one in self.training.learners:
            one._take_in(self.features, 2)
        if self.settings.grow is True:
            self._add_labels(classes)

    def _learn_rows(self, X: Any, y: Any, sample_weight: Any, order: np.ndarray, *, first: bool) -> None:
        training = self.training
        learners, before = training.learners, training.total()
        Y = self.sets.indicator(np.asarray(y)[order], len(learners))
        weight = np.ones(len(order)) if sample_weight is None else np.asarray(sample_weight)[order]

        def learn(place: int) -> None:
            column = np.zeros(X.shape[0], dtype=np.int64)
            column[order] = Y[:, place]
            learners[place]._learn_rows(X, column, sample_weight, order, first=first)

        self._for_each(learn, X)
        training.count(int(np.count_nonzero(weight)), before)

    def _end_pass(self) -> None:
        training = self.training
        training.end_pass()
        for one in training.learners:
            one._end_pass()
        if training.first_sizes is None:
            training.first_sizes = [one.training.size() for one in training.learners]

    def _finish_run(self) -> None:
        """Scores for calibration are those of the first pass, when weights were smaller: scale those of each label."""
        training = self.training
        sizes, training.first_sizes = training.first_sizes, None
        if sizes is not None and training.passes > 1:
            for one, first in zip(training.learners, sizes):
                if first and not one.training.reserved:
                    one.training.rescale_audit(one.training.size() / first)

    def take_reserve(self, parts: list[tuple[Any, np.ndarray]]) -> None:
        """Score rows kept back, each part with the numbers of its label sets, by the last hypothesis of every label."""
        learners = self.training.learners
        Y = np.concatenate([self.sets.indicator(codes, len(learners)) for _, codes in parts])
        for place, one in enumerate(learners):
            scores = np.concatenate([one._scores(X) for X, _ in parts])
            one.training.take_reserve(scores, np.where(Y[:, place], 1.0, -1.0))

    def keep_features(self, kept: np.ndarray) -> None:
        for one in self.training.learners:
            one.keep_features(kept)
        self._call_columns(len(kept), None)

    def renewed(self) -> Self:
        with self.lock:
            made = copy.copy(self)
            if self.training is not None:
                made.training = MultilabelTraining([one.renewed() for one in self.training.members])
                made.training.unmet = None if self.training.unmet is None else self.training.unmet.renewed()
        return made

    # ------------------------------------------------------------------ what was learned

    @property
    def coef_(self) -> np.ndarray:
        """Weights: (labels, features)."""
        return np.concatenate([np.atleast_2d(one.coef_) for one in self._trained().members])

    @property
    def intercept_(self) -> np.ndarray:
        """What is added to the weighted sum: one a label."""
        return np.concatenate([np.atleast_1d(one.intercept_) for one in self._trained().members])

    def contributions(self, X: Any) -> Contributions:
        raise ValueError("several labels a row are not explained: each label has a learner of its own")

    # ------------------------------------------------------------------ predicting

    def _columns(self, X: Any, answer: Any) -> np.ndarray:
        """What ``answer(member, rows)`` gives, a column for each label."""
        with self.lock:
            members = self._trained().members
            X = self._rows(X, first=False)
            return np.column_stack([answer(one, X) for one in members])

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores, one column a label; above zero speaks for it."""
        return self._columns(X, lambda one, X: one.decision_function(X))

    def predict(self, X: Any) -> np.ndarray:
        """Which labels each row has: (rows, labels) of truth values."""
        return self.decision_function(X) > 0

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each label; those of a row need not sum to 1. Above 1/2 where the score is above 0."""
        return self._columns(X, lambda one, X: one.predict_proba(X)[:, 1])

    # ------------------------------------------------------------------ the model file

    def _pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        training = self._trained()
        chronicle, arrays = training.pack_chronicle()
        facts: dict[str, Any] = {
            "estimator": self._facts(),
            "multilabel": chronicle,
            "first_sizes": training.first_sizes,
            "labels": len(training.members),
            "takes_lists": self.takes_lists,
            "members": [],
        }
        if self.label_names is not None:
            facts["label_names"], numbers = pack_labels(self.label_names)
            arrays.update({} if numbers is None else {"label_names": numbers})
        for place, one in enumerate(training.learners):
            made, kept = one._pack()
            facts["members"].append(made)
            arrays.update({f"member.{place}.{key}": array for key, array in kept.items()})
        return facts, arrays

    FILED: ClassVar[Record] = Record(
        estimator=ROWS,
        multilabel=Chronicle.FILED,
        members=ListOf(NESTED, "learners"),
        labels=COUNT,
        takes_lists=TRUTH,
        first_sizes=OrMissing(ListOf(finite(low=0), "sizes")),
        label_names=OrMissing(ANYTHING),  # checked by ``unpack_labels``
    )

    def _unpack(self, facts: dict[str, Any], arrays: Arrays) -> None:
        check_facts(facts, self.FILED)
        mine = facts["estimator"]
        self.seed, self.dtype = mine["seed"], np.dtype(mine["dtype"])
        names = mine["feature_names_in"]
        self._call_columns(mine["n_features_in"], names)
        if names is not None and len(names) != mine["n_features_in"]:
            raise ValueError(f"{len(names)} names do not go with {mine['n_features_in']} features")
        members = []
        for one, kept in zip(facts["members"], numbered("member", len(facts["members"]), arrays)):
            member = self._new_member()
            member._unpack(one, kept)
            if member.features != self.features:
                raise ValueError(f"{member.features} features of a label do not go with {self.features}")
            members.append(member)
        if len(members) != facts["labels"] + (self.settings.grow is True):
            raise ValueError(f"{len(members)} learners do not go with {facts['labels']} labels")
        self.training = MultilabelTraining(members[: facts["labels"]])
        self.training.unmet = members[-1] if self.settings.grow is True else None
        self.training.take_chronicle(facts["multilabel"], arrays)
        self.training.first_sizes = facts.get("first_sizes")
        if "label_names" in facts:
            self.label_names = unpack_labels(facts["label_names"], arrays.get("label_names"))
            if len(self.label_names) != facts["labels"]:
                raise ValueError(f"{len(self.label_names)} names do not go with {facts['labels']} labels")
        self.takes_lists = facts["takes_lists"]
        self._add_labels(facts["labels"])
        self.began_with = copy.deepcopy(self._depends_on())


def check_indicator(y: Any, rows: int) -> np.ndarray:
    """y as truth values, one row a row of X and one column a label."""
    Y = y.toarray() if hasattr(y, "toarray") else np.asarray(y)
    if Y.ndim != 2 or not Y.shape[1]:
        raise ValueError("y must have a column of truth values for each label")
    if len(Y) != rows:
        raise ValueError(f"X has {rows} rows but y has {len(Y)} entries: inconsistent numbers of samples")
    if Y.dtype != bool:
        if Y.dtype.kind not in "iuf" or not np.isin(Y, (0, 1)).all():
            raise ValueError("y must have nothing but 0 and 1, for labels that a row has not and has")
        Y = Y.astype(bool)
    return Y
