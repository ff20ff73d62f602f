"""Networks as estimators, in training runs, and on the command line."""

from __future__ import annotations

import json
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.utils.estimator_checks import check_estimator

import onlearn
from onlearn import cli
from onlearn.models.plan import Plan
from onlearn.models.run import Run

ORDER = (
    "an example of weight 2 makes its batch's step longer, one that comes twice is in two places of a shuffled pass, "
    "as with every method of stochastic gradients. That a weight of 0 is absence is tested in tests/mlp"
)
EXPECTED = {f"check_sample_weight_equivalence_on_{kind}_data": ORDER for kind in ("dense", "sparse")}
RNG = np.random.default_rng(0)
PLANE = RNG.uniform(-2, 2, (600, 2))
DISC = np.where((PLANE**2).sum(axis=1) <= 1, "in", "out")


@pytest.mark.parametrize("estimator", [onlearn.MLPClassifier, onlearn.MLPRegressor])
def test_check_estimator_passes(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on purpose: the checks feed data that do not converge
        results = check_estimator(estimator(), expected_failed_checks=EXPECTED)
    assert {r["check_name"] for r in results if r["status"] == "skipped"} <= {"check_array_api_input"}
    assert {r["check_name"] for r in results if r["status"] == "xfail"} == set(EXPECTED)


def test_real_sets_are_learned_with_the_usual_parameters():
    X, y = load_digits(return_X_y=True)
    X, T, y, u = train_test_split(X, y, random_state=0)
    assert onlearn.MLPClassifier(random_state=0).fit(X, y).score(T, u) > 0.96
    X, y = load_diabetes(return_X_y=True, scaled=False)
    model = onlearn.MLPRegressor(32, early_stopping=True, optimizer="adam(0.003)", random_state=0)
    assert cross_val_score(model, X, y, cv=3).mean() > 0.35


@pytest.mark.slow
def test_mnist(data):
    from onlearn.reproduce.ocr import digits

    X, y, T, u = digits(data("mnist"))
    model = onlearn.MLPClassifier(256, batch_size=200, epochs=20, random_state=0).fit(X, y)
    assert 1 - model.score(T, u) <= 0.022


def test_the_estimator_tells_what_the_learner_knows(tmp_path):
    model = onlearn.MLPClassifier((8, 4), "tanh", random_state=0, epochs=5)
    assert not hasattr(model, "coefs_") and not hasattr(model, "stopped_")
    model.fit(PLANE, DISC)
    assert [one.shape for one in model.coefs_] == [(2, 8), (8, 4), (4, 1)] and model.n_iter_ == len(
        model.loss_curve_
    ) == 5
    assert [one.shape for one in model.intercepts_] == [(8,), (4,), (1,)]
    assert model.stopped_ == "epochs" and model.validation_scores_ == [] and model.n_seen_ == 3000
    assert not hasattr(model, "coef_")
    model.save(tmp_path / "m.onl")
    loaded = onlearn.load(tmp_path / "m.onl")
    assert type(loaded) is onlearn.MLPClassifier and loaded.hidden_layer_sizes == (8, 4)
    for other in (loaded, pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict_proba(PLANE), model.predict_proba(PLANE))
        other.partial_fit(PLANE[:40], DISC[:40])
    model.partial_fit(PLANE[:40], DISC[:40])
    np.testing.assert_array_equal(other.predict_proba(PLANE), model.predict_proba(PLANE))


def test_optimizers_are_searched_over_by_their_parameters():
    model = onlearn.MLPClassifier(8, epochs=3, random_state=0)
    grid = {"optimizer__rate": [1e-6, 0.05], "activation": ["relu", "tanh"]}
    found = GridSearchCV(model, grid, cv=2).fit(PLANE, DISC)
    assert found.best_params_["optimizer__rate"] == 0.05
    assert clone(model).set_params(optimizer="sgd", optimizer__momentum=0.5).get_params()["optimizer__momentum"] == 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        frames = pytest.importorskip("pandas").DataFrame(PLANE, columns=["a", "b"])
        assert model.fit(frames, DISC).feature_names_in_.tolist() == ["a", "b"]
        assert model.predict(frames).shape == (600,)


# ---------------------------------------------------------------------------------------------------- files


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("networks")
    lines = [f"{a:.4f},{b:.4f},{label}" for (a, b), label in zip(PLANE, DISC)]
    (folder / "disc.csv").write_text("\n".join(["a,b,label", *lines]) + "\n")
    numbers = [f"{a:.4f},{b:.4f},{1e6 * a * b:.1f}" for a, b in PLANE]
    (folder / "saddle.csv").write_text("\n".join(["a,b,label", *numbers]) + "\n")
    texts = [f"__label__{'good' if n % 2 else 'bad'} {'fine' if n % 2 else 'awful'} film {n % 7}" for n in range(200)]
    (folder / "texts.txt").write_text("\n".join(texts) + "\n")
    return folder


def run(capsys, *arguments):
    """What a command prints as JSON."""
    assert cli.run([*map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_command_line_trains_tests_predicts_inspects_and_explains(files, tmp_path, capsys):
    model = tmp_path / "disc.onl"
    spelled = "MLPClassifier(hidden_layer_sizes=(16, 8), optimizer='adam(0.01)')"
    report = run(capsys, "train", files / "disc.csv", "-o", model, "--learner", spelled, "--passes", "60")
    assert report["learner"].startswith("MLPClassifier(hidden_layer_sizes=(16, 8)")
    assert run(capsys, "evaluate", model, files / "disc.csv")["accuracy"] > 0.95
    seen = run(capsys, "inspect", model)
    assert seen["learner"] == "MLPClassifier" and seen["described"]["layers"] == [2, 16, 8, 1]
    assert seen["examples"] == 36_000 and "coefs_" in seen["why_no_weights"]
    told = run(capsys, "explain", model, '{"a": 0.1, "b": 0.2}')
    assert told["prediction"] == "in" and "approximation" in told["note"]
    assert told["intercept"] + sum(one["contribution"] for one in told["features"]) == pytest.approx(told["total"])
    assert cli.run(["predict", str(model), str(files / "disc.csv"), "-o", str(tmp_path / "said.csv")]) == 0
    assert len((tmp_path / "said.csv").read_text().splitlines()) == 601


def test_regression_and_text_are_learned_from_files(files, tmp_path, capsys):
    learner = "MLPRegressor(32, optimizer='adam(0.01)')"
    run(capsys, "train", files / "saddle.csv", "-o", tmp_path / "s.onl", "--learner", learner, "--passes", "40")
    assert run(capsys, "evaluate", tmp_path / "s.onl", files / "saddle.csv")["r2"] > 0.97
    assert run(capsys, "explain", tmp_path / "s.onl", '{"a": 0.1, "b": 0.2}')["features"]
    run(capsys, "train", files / "texts.txt", "-o", tmp_path / "t.onl", "--learner", "mlp", "--passes", "20")
    assert run(capsys, "evaluate", tmp_path / "t.onl", files / "texts.txt")["accuracy"] == 1.0


def test_a_finished_run_is_gone_on_with(files, tmp_path, capsys):
    first, more = tmp_path / "first.onl", tmp_path / "more.onl"
    run(capsys, "train", files / "disc.csv", "-o", first, "--learner", "mlp", "--passes", "2")
    run(capsys, "train", files / "disc.csv", "-o", more, "--resume", first, "--passes", "3")
    assert run(capsys, "inspect", more)["examples"] == 5 * 600


class StoppedError(Exception):
    pass


def test_an_unfinished_run_ends_where_it_would_have(files, tmp_path):
    def plan():
        learner = onlearn.MLPClassifier(8, batch_size=50, random_state=0)
        return Plan([str(files / "disc.csv")], learner=learner, passes=4, seed=3, cache=False)

    whole = Run(plan())
    whole.go()
    file = tmp_path / "cut.onl"
    cut = Run(plan())

    def keep():
        cut.model.save(file)
        if cut.lessons.learned > 900:
            raise StoppedError

    with pytest.raises(StoppedError):
        cut.go(None, keep, 37)
    rest = Run(plan(), onlearn.load(file))
    rest.go()
    one, other = whole.model.learner.training, rest.model.learner.training
    np.testing.assert_array_equal(one.hand_out(), other.hand_out())
    np.testing.assert_array_equal(one.tally, other.tally)
    assert one.by_pass == other.by_pass


def test_what_a_run_cannot_do_is_said(files, tmp_path, capsys):
    held = "MLPClassifier(early_stopping=True)"
    assert cli.run(["train", str(files / "disc.csv"), "-o", str(tmp_path / "m.onl"), "--learner", held]) == 2
    assert "early_stopping needs fit" in capsys.readouterr().err
    wrong = "MLPClassifier(hidden_layer_sizes=0)"
    assert cli.run(["train", str(files / "disc.csv"), "-o", str(tmp_path / "m.onl"), "--learner", wrong]) == 2
    assert "hidden_layer_sizes must be" in capsys.readouterr().err
