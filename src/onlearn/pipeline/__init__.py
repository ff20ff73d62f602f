"""From files to models and back: a learner together with the features it sees and the way its files are read."""

from onlearn.pipeline.model import Model

__all__ = ["Model"]
