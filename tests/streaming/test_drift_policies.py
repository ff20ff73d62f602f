"""What happens on a planted change: each policy does what it says, and a challenger is better than none."""

import copy
import random
import warnings

import pytest

from onlearn import stream
from onlearn.drift import ADWIN, PageHinkley
from onlearn.streaming import DriftWarning
from onlearn.streaming.drift_policies import WARNING_ROWS, RegressionLoss
from streaming_models import PlainLogistic, PlainMean

CHANGE = 3000


def flipped(count, seed=0, noise=0.05, change=CHANGE):
    """The label is the sign of ``a``; after the change, the opposite."""
    draw = random.Random(seed)
    for n in range(count):
        x = {"a": draw.gauss(0, 1), "b": draw.gauss(0, 1)}
        yield x, int((x["a"] > 0) ^ (n >= change) ^ (draw.random() < noise))


class Slow(PlainLogistic):
    """Small steps: once it is sure, it takes long to learn the opposite."""

    def __init__(self, rate=0.02):
        super().__init__(rate)

    def renewed(self):
        return Slow(self.rate)


def last(source, model, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DriftWarning)
        *_, record = stream(source, model, **options)
    return record


def test_warn_warns_where_the_stream_is_used_and_changes_nothing():
    model, other = Slow(), Slow()
    with pytest.warns(DriftWarning, match=r"drift: the mean loss has risen, as detected at row 3,?\d+") as caught:
        *_, record = stream(flipped(6000), model, drift="adwin", every=6000)
    assert caught[0].filename == __file__
    assert len(record.drifts) == len(caught) == 1
    assert CHANGE < record.drifts[0] <= CHANGE + 200
    last(flipped(6000), other)
    assert model.weights == other.weights


@pytest.mark.parametrize("detector", ["adwin", "page_hinkley(threshold=20)", PageHinkley(threshold=20)])
def test_reset_starts_anew_at_the_drift(detector):
    model, other = Slow(), Slow()
    record = last(flipped(6000), model, drift=detector, on_drift="reset", every=6000)
    assert len(record.drifts) == 1 and CHANGE < record.drifts[0] <= CHANGE + 200
    for x, y in list(flipped(6000))[record.drifts[0] - 1 :]:  # the row of the drift is learned by the new one
        other.learn_one(x, y)
    assert model.weights == other.weights


def test_replace_puts_a_challenger_in_place():
    model, other = Slow(), Slow()
    record = last(flipped(6000), model, drift="adwin", on_drift="replace", every=6000)
    (drift,), (*_, warning) = record.drifts, record.warnings
    assert CHANGE < warning < drift <= CHANGE + 200
    for x, y in list(flipped(6000))[warning - 1 :]:
        other.learn_one(x, y)
    assert model.weights == other.weights  # what it has learned, it has learned since the warning


def test_the_model_stays_the_same_object():
    model = Slow()
    records = stream(flipped(6000), model, drift="adwin", on_drift="replace", every=100)
    known = None
    for record in records:
        if record.drifts and known is None:
            known = copy.deepcopy(model.weights)
    assert known is not None and model.weights != known
    assert model.predict_one({"a": 3.0}) == 0  # it knows the new rule


@pytest.mark.parametrize("on_drift", ["reset", "replace"])
def test_starting_anew_beats_warning_after_the_change(on_drift):
    for seed in range(5):

        def after(policy, seed=seed):
            return last(flipped(4500, seed), Slow(), drift="adwin", on_drift=policy, every=4500, window=1400)

        assert after(on_drift).window["accuracy"] > after("warn").window["accuracy"] + 0.05


def test_a_warning_that_is_not_confirmed_passes():
    class Suspicious:
        """Warns at one row only, and detects nothing."""

        detected = False

        def __init__(self, at=None):
            self.at, self.seen = at, 0

        def update(self, value):
            self.seen += 1
            return self.seen == self.at

        def reset(self):
            self.seen = 0

        def more_sensitive(self):
            return Suspicious(50)

    made = []

    class Watched(PlainLogistic):
        def renewed(self):
            made.append(PlainLogistic(self.rate))
            return made[-1]

    model, other = Watched(), PlainLogistic()
    record = last(flipped(2000), model, drift=Suspicious(), on_drift="replace")
    assert record.warnings == (50,) and record.drifts == ()
    # It learns the row of the warning, which is scored before, and those of as many further ones.
    assert sum(call[0] == "learn" for call in made[0].log) == WARNING_ROWS + 1
    last(flipped(2000), other)
    assert model.weights == other.weights


@pytest.mark.parametrize("on_drift", ["reset", "replace"])
def test_a_model_that_cannot_start_anew_is_refused_at_once(on_drift):
    class Fixed:
        def predict_one(self, x):
            return 0

    with pytest.raises(TypeError, match="renewed and become, which Fixed has not"):
        stream([], Fixed(), drift="adwin", on_drift=on_drift)


def test_few_drifts_where_there_is_none():
    found = [
        len(last(flipped(5000, seed, noise=0.2, change=10**9), PlainLogistic(0.1), drift="adwin", every=5000).drifts)
        for seed in range(20)
    ]
    assert sum(found) <= 1


def test_the_loss_that_is_watched_is_that_of_late_labels():
    record = last(flipped(6000), Slow(), drift="adwin", on_drift="reset", delay=300, every=6000)
    assert CHANGE + 300 < record.drifts[0] <= CHANGE + 500


def test_regression_drifts_whatever_the_unit():
    def shifted(unit, seed=0, change=2000):
        draw = random.Random(seed)
        for n in range(4000):
            yield {}, unit * (draw.gauss(0, 1) + 4 * (n >= change))

    found = {last(shifted(unit), PlainMean(), drift="adwin", every=4000).drifts[0] for unit in (2.0**-20, 1.0, 2.0**20)}
    assert len(found) == 1 and 2000 < found.pop() <= 2200
    assert last(shifted(1.0, change=10**9), PlainMean(), drift=ADWIN(), every=4000).drifts == ()
    record = last(shifted(1.0), PlainMean(), drift="adwin", on_drift="replace", window=1000, every=4000)
    assert record.window["absolute_error"] < 1.0


def test_the_loss_of_regression_is_bounded_and_monotone():
    errors = [0.0, 1e-300, 0.5, 1.0, 3.0, 1e300, float("inf")]
    losses = []
    for error in errors:
        loss = RegressionLoss()
        loss(-1.0, 0.0)
        losses.append(loss(1.0, 1.0 + error))  # the deviation of -1 and 1 is 1
    assert losses == sorted(losses) and losses[0] == 0.0 and losses[3] == 0.5 and losses[-1] == 1.0
    assert RegressionLoss()(1.0, 2.0) == 1.0  # no deviation yet
