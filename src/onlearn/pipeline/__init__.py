"""From files to models and back: a learner together with the features it sees and the way its files are read."""

from onlearn.pipeline.evaluation import Evaluation, RegressionEvaluation, evaluate
from onlearn.pipeline.model import Model
from onlearn.pipeline.opening import open_model

__all__ = ["Evaluation", "Model", "RegressionEvaluation", "evaluate", "open_model"]
