"""From files to models and back: a learner together with the features it sees and the way its files are read."""

from onlearn.models.evaluation import Evaluation, RegressionEvaluation, evaluate
from onlearn.models.model import Model, open_model

__all__ = ["Evaluation", "Model", "RegressionEvaluation", "evaluate", "open_model"]
