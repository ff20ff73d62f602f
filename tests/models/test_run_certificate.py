"""Certificates of training runs over files."""

from __future__ import annotations

import numpy as np
import pytest

from onlearn.engine.rounds import note_round
from onlearn.models.run_certificate import run_certificate
from onlearn.models.train_options import TrainOptions
from onlearn.models.training import prepare
from onlearn.report.learning import bounds_of, mistakes


@pytest.fixture
def run(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    X[:, 0] += np.where(X[:, 0] > 0, 0.5, -0.5)
    lines = (f"{int(x[0] > 0)} 1:{x[0]:.3f} 2:{x[1]:.3f} 3:{x[2]:.3f}\n" for x in X)
    (tmp_path / "rows.svm").write_text("".join(lines))
    made = prepare(TrainOptions(sources=tmp_path / "rows.svm", learner="Perceptron", passes=3))
    made.go()
    return made


def mix(run, shares):
    """Make the history say that each pass was a round, in which the last shard made all mistakes."""
    for entry in run.model.learner.training.by_pass:
        note_round(entry, np.array(shares), np.array([0.0] * (len(shares) - 1) + [entry["mistakes"]]))


def applying(certificate):
    return [one.name for one in certificate.bounds if one.applies]


def shown(certificate):
    """The series of the chart of mistakes in a report."""
    facts = certificate.to_dict()
    assert len(list(bounds_of(facts))) == 1
    [chart] = mistakes([100.0, 600.0], [5.0, 9.0], facts)
    return [series.name for series in chart.series]


def test_a_run_of_one_learner(run):
    certificate = run_certificate(run)
    assert applying(certificate) == ["perceptron", "perceptron_noisy", "additive"] and certificate.holds()
    assert any(name.startswith("bound: perceptron") for name in shown(certificate))


def test_a_run_of_shards_with_equal_shares(run):
    mix(run, [0.5, 0.5])
    certificate = run_certificate(run)
    assert applying(certificate) == ["perceptron_mixed", "perceptron_mixed_noisy"] and certificate.holds()
    assert certificate.mixing.equal and certificate.mixing.share == 0.5
    assert any(name.startswith("bound: perceptron mixed") for name in shown(certificate))


def test_a_bound_on_weighted_mistakes_is_not_drawn_over_all_mistakes(run):
    mix(run, [0.75, 0.25])
    certificate = run_certificate(run)
    assert applying(certificate) == ["perceptron_mixed", "perceptron_mixed_noisy"] and certificate.holds()
    assert shown(certificate) == ["mistakes"]
