"""The structured perceptron as an estimator."""

from __future__ import annotations

from typing import Any, ClassVar

from onlearn.engine.compositions import Composition
from onlearn.estimators.sequence_base import SequenceEstimator
from onlearn.sequence.structured import COMPOSITION


class StructuredPerceptron(SequenceEstimator):
    """Labels sequences by weights that are learned from mistakes (Collins 2002), by any rule of the engine.

    The gold path of a sequence is held against its best rival, and the example is the difference of their features.
    ``X`` is a list of sequences, whose tokens are words (or tuples of columns), which a template makes attributes of,
    or attributes as they are: dicts, or lists of strings. ``y`` is a list with the labels of each sequence.

    Parameters
    ----------
    rule : rule or its spelling
        How large a step a sequence deserves.
    geometry : geometry or its spelling
        How a step changes the weights.
    stabilizer : "last", "averaged" or "survivor"
        Which hypothesis is handed out.
    cost : float
        What a wrong token adds to the score of a rival (cost-augmented decoding).
    greedy : bool
        Whether labels are decided from left to right, one by one.
    epochs : int
        Passes over the data that fit makes.
    shuffle : bool
        Whether fit visits the sequences in a new random order each pass.
    template : str or None
        What attributes tokens have, if they are words.
    min_count : int
        Fit leaves out attributes of fewer tokens.
    early_stopping : bool
        Whether fit holds sequences out and ends with the weights that are best on them.
    validation_fraction : float
        The part of the sequences that is held out.
    patience : int
        Passes without progress after which early stopping ends.
    random_state : int, RandomState or None
        What the order of the sequences depends on.

    Examples
    --------
    >>> from onlearn import StructuredPerceptron
    >>> X = [["the", "dog", "barks"], ["a", "cat", "sleeps"]]
    >>> y = [["DET", "NOUN", "VERB"], ["DET", "NOUN", "VERB"]]
    >>> StructuredPerceptron(rule="pa1", random_state=0).fit(X, y).predict([["the", "cat", "barks"]])
    [['DET', 'NOUN', 'VERB']]
    >>> given = [[{"w": "the", "capital": False}, {"w": "dog", "length": 3.0}]]
    >>> StructuredPerceptron(random_state=0).fit(given, [["DET", "NOUN"]]).predict(given)
    [['DET', 'NOUN']]
    """

    _composition: ClassVar[Composition] = COMPOSITION

    def __init__(
        self,
        rule: Any = "perceptron",
        geometry: Any = "additive",
        stabilizer: Any = "averaged",
        cost: float = 0.0,
        greedy: bool = False,
        epochs: int = 10,
        shuffle: bool = True,
        template: str | None = None,
        min_count: int = 1,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        patience: int = 3,
        random_state: Any = None,
    ) -> None:
        self.rule = rule
        self.geometry = geometry
        self.stabilizer = stabilizer
        self.cost = cost
        self.greedy = greedy
        self.epochs = epochs
        self.shuffle = shuffle
        self.template = template
        self.min_count = min_count
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.random_state = random_state
