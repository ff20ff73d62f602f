"""What naive Bayes has learned: the weight of each class, and counts or moments of the columns, part by part.

A part is the columns of one kind. All columns of one kind are one part, which takes rows as they are; of a mixed table
each part takes its own columns. Given the class, columns are independent, so the logarithms of the parts' likelihoods
add up.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from onlearn.bayes import kinds
from onlearn.bayes.counts import Counts, Moments
from onlearn.engine import csr
from onlearn.engine.base_training import BaseTraining
from onlearn.engine.loops import DUE, LOSS, MISTAKES, SEEN, UPDATES, remember
from onlearn.engine.scoring import best_outputs, linear_scores
from onlearn.model_schema import (
    COUNT,
    TEXT,
    Arrays,
    ListOf,
    Record,
    TupleOf,
    check_array,
    check_facts,
    either,
    one_of,
    under,
)

NEVER = -1e300  # the logarithm of the prior of a class that never came: a number, for infinity is none
HIGHEST_LOSS = 15 * float(np.log(10.0))  # of one example: a probability below 1e-15 counts as that
FRESH = 8  # the tables that rows are scored by, before they are learned from, lack at most one row in so many
LARGE = 1 << 20  # numbers in a table, beyond which it may lack half of them


MISSING = "absent is missing"  # the name of a group of Gaussian columns, whose values are 0 otherwise


class Group(NamedTuple):
    """Columns that are one choice among them, as the words of a text or the values of a category are."""

    kind: str
    name: str = ""


class Layout:
    """The group of each column."""

    groups: list[Group]
    of: np.ndarray

    def __init__(self, groups: list[Group], of: np.ndarray) -> None:
        self.groups, self.of = groups, of

    @classmethod
    def of_kind(cls, kind: str, features: int) -> Layout:
        return cls([Group(kind)], np.zeros(features, np.int32))

    def extended(self, codes: np.ndarray, groups: list[Group]) -> Layout:
        """The same with new columns at the end: ``codes`` are places among ``groups``."""
        every = list(dict.fromkeys([*self.groups, *groups]))
        places = np.array([every.index(group) for group in groups], np.int32)
        return Layout(every, np.concatenate([self.of, places[codes]]))

    def of_width(self, features: int) -> Layout:
        """The same for more columns, which are all like the first, or for fewer."""
        return Layout(self.groups, np.append(self.of, np.zeros(max(0, features - len(self.of)), np.int32))[:features])

    def skips(self, columns: np.ndarray | None) -> np.ndarray:
        """Of some columns (None: all), whether a value that is absent from a sparse row is missing, and not 0."""
        missing = np.array([group.name == MISSING for group in self.groups])[self.of]
        return missing if columns is None else missing[columns]

    @property
    def kinds(self) -> list[str]:
        return list(dict.fromkeys(group.kind for group in self.groups))


class Part:
    """The columns of one kind; None: all columns."""

    kind: str
    columns: np.ndarray | None

    def __init__(self, kind: str, layout: Layout, classes: int) -> None:
        self.kind = kind
        self.columns, group, count = _columns(kind, layout)
        features = len(layout.of) if self.columns is None else len(self.columns)
        self.state: Counts | Moments = (
            Moments(classes, features) if kind == "gaussian" else Counts(classes, features, group, count)
        )

    def __copy__(self) -> Part:
        made = self.__class__.__new__(self.__class__)
        made.__dict__.update(self.__dict__, state=copy.copy(self.state))
        return made

    def grow(self, layout: Layout, classes: int) -> None:
        self.columns, group, count = _columns(self.kind, layout)
        self.state.grow(classes, len(layout.of) if self.columns is None else len(self.columns))
        if isinstance(self.state, Counts) and group is not None:
            self.state.regroup(group, count)

    def add(self, X: Any, y: np.ndarray, weight: np.ndarray, threshold: float) -> None:
        X, order = taken(X, self.columns), np.arange(len(y))
        if isinstance(self.state, Counts) and self.kind == "bernoulli":
            self.state.add_presence(X, y, weight, order, threshold)
        else:
            self.state.add(X, y, weight, order)

    def table(self, weight: np.ndarray, settings: Any, layout: Layout) -> kinds.Linear | kinds.Gaussian:
        """The likelihood that was learned; ``weight`` is that of the classes."""
        state = self.state
        if isinstance(state, Moments):
            return kinds.gaussian(state, weight, float(settings.var_smoothing), layout.skips(self.columns))
        if self.kind == "bernoulli":
            return kinds.bernoulli(state, weight, float(settings.alpha), threshold_of(settings))
        if self.kind == "complement":
            return kinds.complement(state, float(settings.alpha), bool(settings.norm))
        return kinds.multinomial(state, float(settings.alpha))


def threshold_of(settings: Any) -> float:
    """The value above which a column is present."""
    return 0.5 if settings.binarize is None else float(settings.binarize)


def _columns(kind: str, layout: Layout) -> tuple[np.ndarray | None, np.ndarray | None, int]:
    """The columns of a kind (None: all), the group of each within the kind (None: one), and how many groups."""
    mine = [place for place, group in enumerate(layout.groups) if group.kind == kind]
    new = np.full(len(layout.groups), -1, np.int32)
    new[mine] = np.arange(len(mine), dtype=np.int32)
    group = new[layout.of]
    columns = None if len(mine) == len(layout.groups) else np.flatnonzero(group >= 0)
    if len(mine) == 1:
        return columns, None, 1
    return columns, np.ascontiguousarray(group if columns is None else group[columns]), len(mine)


def taken(X: Any, columns: np.ndarray | None) -> Any:
    """Some columns of X."""
    if columns is None:
        return X
    if not csr.is_sparse(X):
        return np.ascontiguousarray(X[:, columns])
    new = np.full(X.shape[1], -1, np.int64)
    new[columns] = np.arange(len(columns))
    return csr.select(as_csr(X), new, len(columns))


def as_csr(X: Any) -> csr.CSR:
    """A sparse matrix as ours, over the same memory."""
    return X if isinstance(X, csr.CSR) else csr.CSR(X.data, X.indices, X.indptr, X.shape)


@dataclass(frozen=True)
class Hypothesis:
    """The logarithms of the prior and of the likelihoods, with the columns of each part."""

    prior: np.ndarray
    parts: list[tuple[str, np.ndarray | None, Any]]  # kind, columns, Linear or Gaussian
    features: int

    @property
    def linear(self) -> kinds.Linear | None:
        """The whole as one linear function, where there are no other parts."""
        if len(self.parts) > 1 or not isinstance(self.parts[0][2], kinds.Linear):
            return None
        table = self.parts[0][2]
        return kinds.Linear(table.weights, table.base + self.prior, table.threshold)

    def scores(self, X: Any) -> np.ndarray:
        """log p(x, class) of rows that are as wide as this."""
        if (whole := self.linear) is not None:
            made = linear_scores(whole.rows(X), whole.weights, whole.base)[0]
        else:
            made = np.zeros((X.shape[0], len(self.prior)))
            for _, columns, table in self.parts:
                table.add_scores(taken(X, columns), made)
            made += self.prior
        return finite(made)

    def best(self, X: Any) -> np.ndarray:
        """The first class with the highest score."""
        if (whole := self.linear) is not None:
            best, sound = best_outputs(whole.rows(X), whole.weights, whole.base)
            if sound:
                return best
        return np.argmax(self.scores(X), axis=1)


def finite(scores: np.ndarray) -> np.ndarray:
    """Scores with the largest numbers for infinity."""
    if not np.isfinite(scores).all():
        most = np.finfo(scores.dtype).max
        np.nan_to_num(scores, copy=False, nan=-most, posinf=most, neginf=-most)
    return scores


def log_probabilities(scores: np.ndarray) -> np.ndarray:
    """log p(class | x) of log p(x, class)."""
    with np.errstate(over="ignore"):
        scores = scores - scores.max(axis=1, keepdims=True)
        return np.asarray(scores - np.log(np.exp(scores).sum(axis=1, keepdims=True)))


class Tables(NamedTuple):
    """Likelihoods by kind as they were when there were so many columns and classes."""

    tables: dict[str, Any]
    features: int
    classes: int


class BayesTraining(BaseTraining):
    """The state of naive Bayes."""

    features: int
    outputs: int
    layout: Layout
    weight: np.ndarray
    parts: dict[str, Part]
    next: float

    def __init__(self, layout: Layout, outputs: int) -> None:
        super().__init__(len(layout.of), outputs)
        self.layout = layout
        self.weight = np.zeros(outputs)  # of the rows of each class
        self.parts = {kind: Part(kind, layout, outputs) for kind in layout.kinds}
        self.made: tuple[Any, Hypothesis] | None = None  # what it depends on, and the hypothesis
        self.then: Tables | None = None  # those that rows are scored by before they are learned from
        self.next = 0.0  # the number of rows seen at which that is made anew

    def __copy__(self) -> BayesTraining:
        made = self.__class__.__new__(self.__class__)
        parts = {kind: copy.copy(part) for kind, part in self.parts.items()}
        made.__dict__.update(self.__dict__, parts=parts, tally=self.tally.copy(), weight=self.weight.copy())
        return made

    def grow(self, features: int, outputs: int) -> None:
        """Make room for features and classes; new features are of the layout's last group, unless it has them."""
        if features == self.features and outputs == self.outputs and len(self.layout.of) == features:
            return
        if len(self.layout.of) < features:
            self.layout = self.layout.of_width(features)
        self.parts = {**self.parts}
        for kind in self.layout.kinds:
            if kind in self.parts:
                self.parts[kind].grow(self.layout, outputs)
            else:
                self.parts[kind] = Part(kind, self.layout, outputs)
        self.weight = np.append(self.weight, np.zeros(outputs - len(self.weight)))
        self.features, self.outputs, self.made = features, outputs, None

    def keep(self, columns: np.ndarray) -> None:
        """Forget all columns but some, which are numbered anew in the given order."""
        for part in self.parts.values():
            if part.columns is None:
                part.state.keep(columns)
            else:
                places = np.full(self.features, -1, np.int64)
                places[part.columns] = np.arange(len(part.columns))
                part.state.keep(places[columns][places[columns] >= 0])
        self.layout = Layout(self.layout.groups, self.layout.of[columns])
        self.features = len(columns)
        for part in self.parts.values():
            part.columns = _columns(part.kind, self.layout)[0]
        self.made = self.then = None
        self.next = 0.0

    # ------------------------------------------------------------------ learning

    def learn(self, X: Any, y: np.ndarray, weight: np.ndarray, settings: Any, log_prior: Any) -> None:
        """Learn from rows in their order; ``log_prior`` makes priors of the weights of classes."""
        if not settings.progressive:
            counted = int(np.count_nonzero(weight))
            self._add(X, y, weight, settings)
            self.count(counted, updates=counted)
            return
        X = as_csr(X) if csr.is_sparse(X) else X
        if not weight.all():
            some = np.flatnonzero(weight)
            X, y, weight = csr.rows_at(X, some), y[some], weight[some]
        start = 0
        while start < len(y):
            seen = self.n_seen
            if seen >= self.next or self.then is None:
                self._refresh(settings)
            stop = min(len(y), start + int(min(self.next, self.tally[DUE])) - seen)
            rows = X.between(start, stop) if csr.is_sparse(X) else X[start:stop]
            mistakes, losses = self._judge_and_add(rows, y[start:stop], weight[start:stop], settings, log_prior)
            # One after another, so that the sum does not depend on where rows are cut into calls.
            losses[0] += self.tally[LOSS]
            self.tally[LOSS] = np.cumsum(losses)[-1]
            self.tally[[SEEN, MISTAKES, UPDATES]] += (stop - start, mistakes, stop - start)
            remember(self.tally, self.doubling)
            start = stop

    def _refresh(self, settings: Any) -> None:
        """Make the tables that the next rows are scored by, of those kinds whose sums over all columns take long."""
        seen, large = self.n_seen, self.features * self.outputs > LARGE
        self.then = Tables(
            {
                kind: part.table(self.weight, settings, self.layout)
                for kind, part in self.parts.items()
                if kind != "multinomial"
            },
            self.features,
            self.outputs,
        )
        self.next = float(seen + max(1, seen if large else seen // FRESH))

    def _judge_and_add(
        self, X: Any, y: np.ndarray, weight: np.ndarray, settings: Any, log_prior: Any
    ) -> tuple[int, np.ndarray]:
        """Mistakes, and the loss of each row, before it is learned from."""
        self.made = None
        then, count, rows = self.then, self.outputs, np.arange(len(y))
        assert then is not None
        before = np.zeros((len(y) + 1, count))
        before[0], before[rows + 1, y] = self.weight, weight
        before = np.cumsum(before, axis=0)
        scores = log_prior(before[:-1])
        self.weight = before[-1]
        for kind, part in self.parts.items():
            mine = taken(X, part.columns)
            if isinstance(part.state, Counts) and kind == "multinomial":
                part.state.score_and_add(mine, y, weight, float(settings.alpha), scores)
                continue
            if kind in then.tables:  # it may know fewer columns and classes than there are now
                table, known = then.tables[kind], np.zeros((len(y), then.classes))
                table.add_scores(csr.of_width(mine, table.width) if mine.shape[1] != table.width else mine, known)
                scores[:, : then.classes] += finite(known)
                scores[:, then.classes :] = NEVER
            part.add(X, y, weight, threshold_of(settings))
        logs = log_probabilities(finite(scores))
        mistakes = int(np.count_nonzero(np.argmax(logs, axis=1) != y))
        return mistakes, np.minimum(-logs[rows, y], HIGHEST_LOSS)

    def _add(self, X: Any, y: np.ndarray, weight: np.ndarray, settings: Any) -> None:
        self.made = None
        np.add.at(self.weight, y, weight)
        for part in self.parts.values():
            part.add(X, y, weight, threshold_of(settings))

    def end_pass(self) -> dict[str, float]:
        self.then, self.next = None, 0.0
        return super().end_pass()

    # ------------------------------------------------------------------ saving

    def pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        facts, arrays = super().pack()
        facts["groups"] = [list(group) for group in self.layout.groups]
        facts["then"] = None if self.then is None else [self.then.features, self.then.classes]
        facts["next"] = int(self.next)
        arrays = {**arrays, "weight": self.weight}
        if len(self.layout.groups) > 1:
            arrays["groups"] = self.layout.of
        for kind, part in self.parts.items():
            arrays.update({f"{kind}.{name}": array for name, array in part.state.pack().items()})
        if self.then is not None:
            for kind, table in self.then.tables.items():
                arrays.update({f"then.{kind}.{name}": getattr(table, name) for name in TABLES[type(table)]})
        return facts, arrays

    @classmethod
    def unpack(cls, facts: dict[str, Any], arrays: Arrays, settings: Any) -> BayesTraining:
        """What ``pack`` took apart; refuses what could not have come from it."""
        check_facts(facts, FILED, "training")
        features, outputs = facts["features"], facts["outputs"]
        groups = [Group(*one) for one in facts["groups"]]
        if max(features, outputs) > max(array.size for array in arrays.values()):  # before memory is asked for
            raise ValueError(f"nothing stored is as large as {features} features and {outputs} classes")
        if len(set(groups)) < len(groups) or not groups or outputs < 2:
            raise ValueError("the groups of columns contradict each other")
        of = np.zeros(features, np.int32)
        if len(groups) > 1:
            check_array("groups", arrays["groups"], "int32", (features,), 0, len(groups) - 1)
            of = np.array(arrays["groups"])
        self = cls(Layout(groups, of), outputs)
        self.take_counts(facts, arrays)
        check_array("weight", arrays["weight"], "float64", (outputs,), 0.0)
        self.weight = np.array(arrays["weight"])
        for kind, part in self.parts.items():
            part.state.unpack(under(f"{kind}.", arrays), {"counts": 0.0, "heft": 0.0, "spread": 0.0})
        self.next = float(facts["next"])
        if facts["then"] is not None:
            self.then = self._unpack_then(facts["then"], arrays, settings)
        return self

    def _unpack_then(self, then: list[int], arrays: Arrays, settings: Any) -> Tables:
        if then[0] > self.features or not 2 <= then[1] <= self.outputs:
            raise ValueError("the tables that rows are scored by are larger than what was learned")
        features, outputs = then
        layout, tables = Layout(self.layout.groups, self.layout.of[:features]), {}
        for kind in self.layout.kinds:
            made: Any = kinds.Gaussian if kind == "gaussian" else kinds.Linear
            found = {name: arrays[key] for name in TABLES[made] if (key := f"then.{kind}.{name}") in arrays}
            if kind == "multinomial" or not found:
                continue
            columns = _columns(kind, layout)[0]
            width = features if columns is None else len(columns)
            shapes = {
                "weights": (width, outputs),
                "base": (outputs,),
                "mean": (outputs, width),
                "rate": (outputs, width),
            }
            for name in TABLES[made]:
                low = 0.0 if name == "rate" else -np.inf
                check_array(f"then.{kind}.{name}", found[name], "float64", shapes[name], low)
            more: dict[str, Any] = {"skips": layout.skips(columns)} if kind == "gaussian" else {}
            if kind == "bernoulli":
                more["threshold"] = threshold_of(settings)
            tables[kind] = made(**found, **more)
        return Tables(tables, features, outputs)


TABLES: dict[type, tuple[str, ...]] = {kinds.Linear: ("weights", "base"), kinds.Gaussian: ("mean", "rate")}
FILED = Record(
    {
        **BaseTraining.FILED.facts,
        "next": COUNT,
        "groups": ListOf(TupleOf(one_of(*kinds.KINDS), TEXT), "kinds of columns with names"),
        "then": either(None, TupleOf(COUNT, COUNT)),
    }
)
