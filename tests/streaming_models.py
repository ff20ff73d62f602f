"""A small learner in plain Python with the methods that streams use."""

import copy
import math


class PlainLogistic:
    """Logistic regression on mappings of name to number, for the labels 0 and 1; ``log`` holds the calls."""

    def __init__(self, rate=0.5):
        self.rate, self.weights, self.log = rate, {}, []

    def score_one(self, x):
        return sum(self.weights.get(name, 0.0) * value for name, value in x.items())

    def predict_proba_one(self, x):
        p = 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, self.score_one(x)))))
        return {0: 1.0 - p, 1: p}

    def predict_one(self, x):
        self.log.append(("predict", x))
        return int(self.score_one(x) > 0)

    def learn_one(self, x, y, weight=1.0):
        if y not in (0, 1):
            raise ValueError(f"the label {y!r} is not known")
        self.log.append(("learn", x, y, weight))
        step = self.rate * weight * (y - self.predict_proba_one(x)[1])
        for name, value in x.items():
            self.weights[name] = self.weights.get(name, 0.0) + step * value
        return self

    def renewed(self):
        return PlainLogistic(self.rate)

    def become(self, other):
        log = self.log
        self.__dict__ = copy.deepcopy(other.__dict__)
        self.log = log
        return self


class PlainMean:
    """Regression by the mean of the labels so far."""

    def __init__(self):
        self.count, self.total = 0, 0.0

    def predict_one(self, x):
        return self.total / self.count if self.count else None

    def learn_one(self, x, y, weight=1.0):
        self.count, self.total = self.count + weight, self.total + weight * y
        return self

    def renewed(self):
        return PlainMean()

    def become(self, other):
        self.__dict__ = dict(other.__dict__)
        return self
