"""On real data, against published figures."""

import gzip

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file, load_svmlight_files

import onlearn


@pytest.mark.parametrize(
    "name", ["AveragedPerceptron", "LogisticRegression", "PassiveAggressive", "AROW", "FTRL", "ScInOL"]
)
def test_a9a_is_within_a_third_of_a_point_of_liblinear(name, data):
    folder = data("a9a")
    X, y, Xt, yt = load_svmlight_files([str(folder / "a9a.svm"), str(folder / "a9a.t.svm")])
    model = getattr(onlearn, name)(random_state=0).fit(X, y)
    assert model.score(Xt, yt) >= 0.847  # LIBLINEAR: 0.850


def _idx(path, offset):
    with gzip.open(path) as file:
        return np.frombuffer(file.read(), np.uint8, offset=offset)


def test_mnist_ten_classes_linear(data):
    folder = data("mnist")
    X, Xt = (_idx(folder / f"{part}-images-idx3-ubyte.gz", 16).reshape(-1, 784) for part in ("train", "t10k"))
    y, yt = (_idx(folder / f"{part}-labels-idx1-ubyte.gz", 8) for part in ("train", "t10k"))
    model = onlearn.LogisticRegression(random_state=0).fit(X.astype(np.float32) / 255, y)
    assert model.score(Xt.astype(np.float32) / 255, yt) >= 0.915


@pytest.mark.parametrize("name", ["Perceptron", "PassiveAggressive", "Winnow"])
def test_mushrooms_are_learned_perfectly(name, data):
    folder = data("mushroom")
    X, y = load_svmlight_file(str(folder / "agaricus.txt.train"), n_features=127)
    Xt, yt = load_svmlight_file(str(folder / "agaricus.txt.test"), n_features=127)
    model = getattr(onlearn, name)(epochs=None, random_state=0).fit(X, y)
    assert model.separable_ is True
    assert model.score(Xt, yt) == 1.0
