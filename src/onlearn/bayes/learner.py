"""The naive Bayes learner: one pass, exact in chunks, with counts and moments that grow with the data."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from onlearn.bayes import kinds
from onlearn.bayes.checks import (
    check_columns,
    check_kinds,
    check_prior,
    column_kinds,
    listed,
    refuse_values,
    too_large,
)
from onlearn.bayes.counts import Counts
from onlearn.bayes.training import (
    MISSING,
    NEVER,
    BayesTraining,
    Group,
    Hypothesis,
    Layout,
    log_probabilities,
    taken,
)
from onlearn.engine import csr
from onlearn.engine.base_learner import BaseLearner, Contributions
from onlearn.engine.compositions import Composition
from onlearn.engine.learner import Learner
from onlearn.engine.passes import to_the_end
from onlearn.engine.spec import param, parameters
from onlearn.model_schema import PLAIN, TRUTH, Arrays, ListOf, OrMissing, Record, check_facts, either

CHOICES = ("auto", *kinds.KINDS, "mixed")
SPARSE, DENSE = "multinomial", "gaussian"  # what "auto" is for sparse rows, which hold counts, and for dense ones
LEAST = float(np.finfo(np.float32).tiny)  # stands for a zero in the features of tables
# What "auto" is for a table: the values of a category and the words of a text are a choice among them.
OF_SOURCE = {
    "number": "gaussian",
    "scaled": "gaussian",
    "category": "multinomial",
    "text": "multinomial",
    "flag": "bernoulli",
}


class BayesSettings:
    """The parameters of naive Bayes."""

    kind: str = param(
        "auto",
        "the likelihood of the columns; 'auto' is 'gaussian' for dense rows, 'multinomial' for sparse ones, and "
        "what suits each column of a table",
        words=CHOICES,
    )
    kinds: Any = param(
        None,
        "the kinds of single columns: a list with one for each, or a dict by number or name; others have 'kind'",
        kind="other",
        allowed="a list or a dict of kinds, or None",
    )
    alpha: float = param(1.0, "what is added to every count", kind="number", above=0)
    class_prior: Any = param(
        None,
        "the prior probabilities of the classes, in their order",
        kind="other",
        allowed="a list of numbers or None",
    )
    fit_prior: bool = param(True, "whether the prior is the share of each class; else all are alike", kind="truth")
    binarize: float | None = param(
        0.0,
        "Bernoulli: the value above which a column is present; None: rows hold 0 and 1",
        kind="number",
        words=(None,),
    )
    norm: bool = param(False, "complement: whether the weights of a class are divided by their sum", kind="truth")
    var_smoothing: float = param(
        1e-9,
        "Gaussian: added to variances, as a part of the largest variance of a column",
        kind="number",
        at_least=0,
    )
    progressive: bool = param(
        False, "whether rows are scored before they are learned from, for n_mistakes_ and history_", kind="truth"
    )


NAIVE_BAYES = Composition(
    "NaiveBayes",
    "Naive Bayes: multinomial, Bernoulli, complement or Gaussian, or of each column its own kind.",
    own=parameters(dataclass(BayesSettings)),
    shared=("class_weight", "grow", "max_names"),
)


class BayesLearner(BaseLearner):
    """Naive Bayes.

    >>> X, y = csr.CSR.of(np.array([[2.0, 0.0], [0.0, 1.0]])), ["spam", "ham"]
    >>> BayesLearner().fit(X, y).predict(X).tolist()
    ['spam', 'ham']
    """

    FIXED: tuple[str, ...] = ("kind", "kinds", "binarize")
    usual_passes: int | None = 1
    usual_features: ClassVar[dict[str, dict[str, Any]]] = {
        "text": {"weighting": "counts", "norm": False},
        "number": {"scale": "kept"},
    }
    wants_sources = True

    composition = NAIVE_BAYES

    def _prepare(self, params: dict[str, Any]) -> None:
        self.layout: Layout | None = None  # of columns that were declared before they were learned from
        super()._prepare(params)

    @property
    def is_progressive(self) -> bool:  # type: ignore[override]
        """Whether it counts the mistakes of each row before it learns from it."""
        return bool(self.settings.progressive)

    # ------------------------------------------------------------------ parameters

    def check(self) -> None:
        super().check()
        check_kinds(self.settings.kinds)
        check_prior(self.settings.class_prior, None)

    @property
    def kinds_(self) -> list[str]:
        """The kind of each column."""
        layout = self._trained().layout
        return [layout.groups[place].kind for place in layout.of]

    def take_sources(self, codes: np.ndarray, sources: list[tuple[str, str]]) -> None:
        """What new columns are made of: places among pairs of a kind of source and the name of a table's column.

        A number of a table that is absent from a row is missing.
        """
        given = self.settings.kinds
        if self.layout is None:
            check_columns(given, sources)
        there = [source in ("matrix", "named") for source, _ in sources]
        used, codes = np.unique(np.concatenate([np.flatnonzero(there), codes]), return_inverse=True)
        codes, groups = codes[sum(there) :], []
        for source, name in (sources[place] for place in used.tolist()):
            kind = self.settings.kind if given is None or source == "flag" else given.get(name, self.settings.kind)
            by_source = kind in ("auto", "mixed")
            kind = OF_SOURCE.get(source, SPARSE) if by_source else kind
            own = {"multinomial": name if by_source else "", "gaussian": MISSING if source == "number" else ""}
            groups.append(Group(kind, own.get(kind, "")))
        known = Layout([], np.zeros(0, np.int32)) if self.layout is None else self.layout
        self.layout = known.extended(codes, groups)
        if self.training is not None:
            self.training.layout = self.layout

    def columns_told(self) -> int:
        return 0 if self.layout is None else len(self.layout.of)

    def _layout_of(self, X: Any, names: Any) -> Layout:
        """The kinds of the columns of the first rows."""
        if self.layout is not None and len(self.layout.of) == X.shape[1]:
            return self.layout
        kind, given = self.settings.kind, self.settings.kinds
        usual = (SPARSE if csr.is_sparse(X) else DENSE) if kind == "auto" else kind
        if given is None:
            if kind == "mixed":
                raise ValueError("kind='mixed' needs kinds: a list with the kind of each column, or a dict")
            return Layout.of_kind(usual, X.shape[1])
        names = None if names is None else list(map(str, names))
        chosen = column_kinds(given, X.shape[1], names, usual)
        groups = list(dict.fromkeys(map(Group, chosen)))
        return Layout(groups, np.array([groups.index(Group(one)) for one in chosen], np.int32))

    # ------------------------------------------------------------------ rows

    def _rows(self, X: Any, first: bool, finite: bool = True, names: Any = None, width: int | None = None) -> Any:
        X = super()._rows(X, first, False, names, width)
        shown = self.feature_names if names is None else names
        if finite:
            csr.check_finite(X, shown)
        return X

    def _check_values(self, X: Any, parts: Mapping[str, Any], learning: bool) -> None:
        """Refuse values that the kind of their column cannot have."""
        for kind, part in parts.items():
            if kind in ("multinomial", "complement"):
                refuse_values(X, part.columns, lambda values: values < 0, self._about(kind))
            elif kind == "bernoulli" and self.settings.binarize is None:
                strange = "kind='bernoulli' with binarize=None takes 0 and 1; set binarize, or make them so"
                refuse_values(X, part.columns, lambda values: (values != 0) & (values != 1), strange)
            elif kind == "bernoulli" and csr.is_sparse(X) and self.settings.binarize < 0:
                raise ValueError("binarize below 0 would make every absent value of sparse rows present: set it to 0")
            elif kind == "gaussian":
                large = f"kind='gaussian' squares its values: scale them to at most {kinds.LARGEST:g}"
                refuse_values(X, part.columns, lambda values: np.abs(values) > kinds.LARGEST, large, check=too_large)

    def _about(self, kind: str) -> str:
        return f"kind={kind!r} counts what is there: use kind='gaussian' for numbers of either sign"

    # ------------------------------------------------------------------ learning

    def _begin(self, X: Any, y: np.ndarray, names: Any, sees_all: bool) -> Any:
        self._first = self._layout_of(X, names)
        try:
            return super()._begin(X, y, names, sees_all)
        finally:
            del self._first

    def _new_training(self) -> BayesTraining:
        old = self.training
        layout = self.__dict__.get("_first") or old.layout
        return BayesTraining(layout, max(2, len(self.task.classes)))

    def _learn_once(self, X: Any, targets: np.ndarray, weight: np.ndarray) -> None:
        training: BayesTraining = self._trained()
        check_prior(self.settings.class_prior, len(self.task.classes))
        self._check_values(X, training.parts, learning=True)
        with to_the_end(len(targets)):
            training.learn(X, np.asarray(targets, np.int64), weight, self.settings, self._log_prior)

    def keep_features(self, kept: np.ndarray) -> None:
        """Forget all features but some, which are numbered anew in the given order."""
        self._trained().keep(np.asarray(kept))
        self.layout = None if self.layout is None else self.training.layout
        self._call_columns(len(kept), None if self.names is None else self.names[kept])

    # ------------------------------------------------------------------ what was learned

    def _log_prior(self, weight: np.ndarray) -> np.ndarray:
        """The logarithms of the priors, by the weights of classes; ``NEVER`` of a class that did not come.

        The complement kind has no use for how often classes come.
        """
        settings, count = self.settings, len(self.task.classes)
        there = np.arange(weight.shape[-1]) < count
        if "complement" in self._trained().parts:
            return np.where((weight > 0.0) | (there & ~weight.any(axis=-1, keepdims=True)), 0.0, NEVER)
        if settings.class_prior is not None:
            shares = np.zeros(weight.shape)
            shares[..., :count] = settings.class_prior
        elif not settings.fit_prior:
            shares = np.where(there, 1.0 / count, np.zeros(weight.shape))
        else:
            total = weight.sum(axis=-1, keepdims=True)
            shares = np.where(total > 0.0, weight / np.where(total > 0.0, total, 1.0), there / count)
        return np.where(shares > 0.0, np.log(np.where(shares > 0.0, shares, 1.0)), NEVER)

    def _hypothesis(self) -> Hypothesis:
        """What was learned, as logarithms of prior and likelihoods; made once for as long as nothing is learned."""
        training: BayesTraining = self._trained()
        settings, count = self.settings, len(self.task.classes)
        prior = None if settings.class_prior is None else tuple(listed(settings.class_prior) or ())
        depends = settings.alpha, prior, settings.fit_prior, settings.norm, settings.var_smoothing, count
        if training.made is None or training.made[0] != depends:
            parts = [
                (kind, part.columns, part.table(training.weight, settings, training.layout))
                for kind, part in training.parts.items()
            ]
            training.made = depends, Hypothesis(self._log_prior(training.weight), parts, training.features)
        return training.made[1]

    def _linear(self, what: str) -> kinds.Linear:
        """The weights of the classes, of kinds that are linear."""
        made = self._hypothesis().linear
        if made is None:
            kind = "of several kinds" if len(self._trained().parts) > 1 else "gaussian"
            raise AttributeError(f"there is no {what}: the decision of columns that are {kind} is not linear in them")
        return made

    @property
    def coef_(self) -> np.ndarray:
        """Log-odds: (1, features) for two classes, (classes, features) for more; of kinds that are linear."""
        with self.lock:
            return np.array(self.task.columns(self._linear("coef_").weights).T)

    @property
    def intercept_(self) -> np.ndarray:
        """What is added to the weighted sum: (1,) for two classes, (classes,) for more."""
        with self.lock:
            return np.array(self.task.columns(self._linear("intercept_").base[None])[0])

    @property
    def n_mistakes_(self) -> int:
        """Mistakes made while learning, if rows are scored before they are learned from (``progressive``)."""
        if not self.is_progressive:
            raise AttributeError("mistakes are counted with progressive=True only")
        return super().n_mistakes_

    @property
    def class_weight_(self) -> np.ndarray:
        """The weight of the rows of each class."""
        return np.array(self._trained().weight[: len(self.task.classes)])

    def to_linear(self) -> Learner:
        """A linear learner with the same scores and probabilities, which goes on learning as logistic regression.

        Of Bernoulli columns it takes 0 and 1.
        """
        with self.lock:
            try:
                table = self._linear("linear form")
            except AttributeError as error:
                raise ValueError(str(error)) from None
            learner = Learner("OnlineClassifier", rule="logistic", stabilizer="last", multiclass="softmax",
                              calibration="own", grow=self.settings.grow, random_state=0)  # fmt: skip
            count = len(self.task.classes)
            learner._start(self.features, np.zeros(count), self.dtype)
            training: Any = learner.training
            lines = np.vstack([table.base, table.weights])
            lines = lines[:, 1:] - lines[:, :1] if training.outputs == 1 else lines[:, : training.outputs]
            training.g.w[: lines.size] = lines.reshape(-1)
            training._handed = None
            learner.task = copy.copy(self.task).uncounted()
            learner._call_columns(self.features, None if self.names is None else list(self.names))
        return learner

    # ------------------------------------------------------------------ predicting

    def _answer(self, X: Any, answer: Any) -> Any:
        with self.lock:  # a hypothesis does not change, so others may learn meanwhile
            task, made, width, parts = self.task, self._hypothesis(), self.features, self._trained().parts
        X = self._rows(X, first=False, width=width)
        self._check_values(X, parts, learning=False)
        return answer(X, task, made)

    def _scores(self, X: Any, training: Any = None) -> np.ndarray:
        if training is None and (few := self._of_few(X)) is not None:
            return few
        made: Hypothesis = self._hypothesis() if training is None else training
        return made.scores(X)

    def _of_few(self, X: Any) -> np.ndarray | None:
        """Scores of a row or two, by the weights of their columns alone; None where all columns are needed."""
        training: BayesTraining = self._trained()
        if training.made is not None or not csr.is_sparse(X) or [*training.parts] != ["multinomial"]:
            return None
        state = training.parts["multinomial"].state
        if not isinstance(state, Counts) or 4 * X.nnz > state.features:
            return None
        X, columns = csr.CSR(X.data, X.indices, X.indptr, X.shape), np.unique(X.indices)
        table = kinds.multinomial_of(state, float(self.settings.alpha), columns)
        rows = taken(X, columns)
        return Hypothesis(self._log_prior(training.weight), [("multinomial", None, table)], len(columns)).scores(rows)

    def _best(self, X: Any, training: Any = None) -> np.ndarray:
        made: Hypothesis = self._hypothesis() if training is None else training
        return made.best(X)

    def _probabilities(self, X: Any, task: Any, training: Any) -> np.ndarray:
        return np.exp(self._logs(X, task, training))

    def _logs(self, X: Any, task: Any, training: Any) -> np.ndarray:
        scores = self._scores(X, training)[:, : len(task.classes)]
        return log_probabilities(scores.astype(np.float64, copy=False))

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """The logarithm of the probability of each class."""
        return np.asarray(self._answer(X, self._logs))

    def contributions(self, X: Any) -> Contributions:
        """What each value of one row adds to the log-odds of the class predicted over the next."""
        X = self._rows(X, first=False)
        rows = csr.CSR.of(X) if not isinstance(X, csr.CSR) else X.between(0, 1)
        made = self._hypothesis()
        columns, values = rows.indices[: rows.nnz].astype(np.int64), rows.data[: rows.nnz].astype(np.float64)
        amounts, base = np.zeros((len(columns), len(made.prior))), made.prior.copy()
        shown = values.copy()
        for _, mine, table in made.parts:
            places = np.full(made.features, -1, np.int64)
            places[np.arange(made.features) if mine is None else mine] = np.arange(
                made.features if mine is None else len(mine)
            )
            there = places[columns] >= 0
            amounts[there] = table.contributions(places[columns[there]], values[there])
            base += table.base
            if getattr(table, "threshold", None) is not None:
                shown[there] = values[there] > table.threshold
        shown[np.abs(shown) <= LEAST] = 0.0
        scores = base + amounts.sum(axis=0)
        best, second = (1, 0) if len(self.task.classes) == 2 else np.argsort(-scores, kind="stable")[:2].tolist()
        change = amounts[:, best] - amounts[:, second]
        weights = np.divide(change, shown, out=np.zeros_like(change), where=shown != 0)
        return Contributions(columns, shown, weights, change, float(base[best] - base[second]), int(best), int(second))

    def described(self) -> dict[str, Any]:
        """What the report of training and ``inspect`` tell about it."""
        training: BayesTraining = self._trained()
        groups = np.bincount(training.layout.of, minlength=len(training.layout.groups))
        found: dict[str, int] = {}
        for group, count in zip(training.layout.groups, groups.tolist()):
            found[group.kind] = found.get(group.kind, 0) + count
        return {"features_by_kind": found}

    # ------------------------------------------------------------------ the model file

    def _depends_on(self) -> dict[str, Any]:
        given = self.settings.kinds
        return {**super()._depends_on(), "kinds": dict(given) if isinstance(given, Mapping) else listed(given)}

    def _pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        facts, arrays = super()._pack()
        given = self.settings.kinds
        lists = {"class_prior": listed(self.settings.class_prior)}
        if not isinstance(given, Mapping):
            lists["kinds"] = listed(given)
        # Parameters that are lists; and whether it was told what the columns are made of.
        return {**facts, "listed": lists, "told": self.layout is not None}, arrays

    FILED: ClassVar[Record] = Record(
        {
            **BaseLearner.FILED.facts,
            "told": TRUTH,
            "listed": Record(
                class_prior=either(None, ListOf(PLAIN, "values")), kinds=OrMissing(ListOf(PLAIN, "values"))
            ),
        }
    )

    def _unpack(self, facts: dict[str, Any], arrays: Arrays) -> None:
        check_facts(facts, self.FILED)
        listed = facts["listed"]
        self.set_params(**{name: listed[name] for name in ("class_prior", "kinds") if name in listed})
        check_kinds(self.settings.kinds)
        super()._unpack(facts, arrays)
        self.layout = self.training.layout if facts["told"] else None
        check_prior(self.settings.class_prior, len(self.task.classes))

    def _unpack_training(self, facts: dict[str, Any], arrays: Arrays, features: int) -> BayesTraining:
        self.check()
        training = BayesTraining.unpack(facts, arrays, self.settings)
        if training.features != features:
            raise ValueError(f"{features} features do not go with counts of {training.features}")
        return training
