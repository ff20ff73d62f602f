"""Learning in the dual: additive learners that remember examples instead of weights of features."""

from onlearn.dual.classifier import KernelClassifier

__all__ = ["KernelClassifier", "KernelPerceptron"]

KernelPerceptron = KernelClassifier  # the name it has in textbooks
