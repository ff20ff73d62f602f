"""Naive Bayes as an estimator."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from onlearn.bayes.learner import NAIVE_BAYES, BayesLearner
from onlearn.engine.compositions import Composition
from onlearn.estimators.base import IncrementalClassifier
from onlearn.estimators.linear import OnlineClassifier


class NaiveBayes(IncrementalClassifier):
    """Naive Bayes: multinomial, Bernoulli, complement or Gaussian, or of each column its own kind.

    It learns in one pass, and the same from rows in one call or in many, to the last bit.

    Parameters
    ----------
    kind : "auto", "multinomial", "bernoulli", "complement", "gaussian" or "mixed"
        The likelihood of the columns. "auto" is "gaussian" for dense rows and "multinomial" for sparse ones; "mixed"
        says that ``kinds`` has one for each column.
    kinds : list or dict of kinds, or None
        The kinds of single columns: a list with one for each, or a dict by number or name. Others have ``kind``.
    alpha : float
        What is added to every count.
    class_prior : list of probabilities or None
        The priors of the classes, in the order of ``classes_``.
    fit_prior : bool
        Whether the prior is the share of each class; else all are alike.
    binarize : float or None
        Bernoulli: the value above which a column is present; None: rows hold 0 and 1.
    norm : bool
        Complement: whether the weights of a class are divided by their sum.
    var_smoothing : float
        Gaussian: added to variances, as a part of the largest variance of a column.
    progressive : bool
        Whether rows are scored before they are learned from, for ``n_mistakes_`` and ``history_``.
    class_weight : dict, "balanced" or None
        Multiplies the weights of the examples of a class, and so its prior.
    grow : bool or "features"
        Whether ``partial_fit`` takes in classes and features it has not seen before; or features only.
    max_names : int
        With ``grow``, the names of features that ``learn_one`` takes in; names beyond share as many columns by hash.

    Attributes
    ----------
    coef_, intercept_ : arrays
        The decision of the multinomial, Bernoulli and complement kinds, which is linear in the log-odds.
    kinds_ : list
        The kind of each column.
    class_weight_ : array
        The weight of the rows of each class.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from onlearn import NaiveBayes
    >>> words = CountVectorizer()
    >>> X = words.fit_transform(["cheap pills", "lunch at noon", "cheap cheap watches", "see you at lunch"])
    >>> model = NaiveBayes().fit(X, ["spam", "ham", "spam", "ham"])
    >>> model.predict(words.transform(["cheap lunch", "pills"])).tolist()
    ['spam', 'spam']
    """

    _composition: ClassVar[Composition] = NAIVE_BAYES
    _learner: BayesLearner

    def __init__(
        self,
        kind: str = "auto",
        kinds: Any = None,
        alpha: float = 1.0,
        class_prior: Any = None,
        fit_prior: bool = True,
        binarize: float | None = 0.0,
        norm: bool = False,
        var_smoothing: float = 1e-9,
        progressive: bool = False,
        class_weight: Any = None,
        grow: bool | str = False,
        max_names: int = 1 << 21,
    ) -> None:
        self.kind = kind
        self.kinds = kinds
        self.alpha = alpha
        self.class_prior = class_prior
        self.fit_prior = fit_prior
        self.binarize = binarize
        self.norm = norm
        self.var_smoothing = var_smoothing
        self.progressive = progressive
        self.class_weight = class_weight
        self.grow = grow
        self.max_names = max_names

    def _takes_positive_only(self) -> bool:
        return self.kind in ("multinomial", "complement")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = self._takes_positive_only()  # on blobs of numbers, which are no counts
        return tags

    # ------------------------------------------------------------------ what was learned

    @property
    def n_mistakes_(self) -> int:
        """Mistakes made while learning, if rows were scored before they were learned from (``progressive``)."""
        return int(self._known("n_mistakes_"))

    @property
    def kinds_(self) -> list[str]:
        """The kind of each column."""
        return list(self._known("kinds_"))

    @property
    def class_weight_(self) -> np.ndarray:
        """The weight of the rows of each class."""
        return np.asarray(self._known("class_weight_"))

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """The logarithm of the probability of each class."""
        learner, X = self._fitted(X)
        return learner.predict_log_proba(X)

    def to_linear(self) -> OnlineClassifier:
        """A linear classifier with the same scores and probabilities; an error where the decision is not linear.

        It goes on learning as logistic regression. Of Bernoulli columns it takes 0 and 1.
        """
        made: OnlineClassifier = OnlineClassifier._around(self._begun().to_linear())
        return made
