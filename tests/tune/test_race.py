"""Races: who is dropped, who wins, and what they do not depend on. The oracle is a race by hand."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlearn.engine.learner import Learner
from onlearn.tune.field import Portion, Threads, racing_on, take_turn
from onlearn.tune.losses import Losses, of_answers, of_numbers, of_probabilities, of_scores
from onlearn.tune.race import ArrayContestant, Race, Stopwatch, beats, blocks

ROWS = 2000


class Known:
    """A contestant whose loss on each row is known: a level and noise that is the same in every race."""

    def __init__(self, level: float, seed: int = 0, spread: float = 0.1, fails_at: int | None = None) -> None:
        rng = np.random.default_rng(seed)
        self.costs = level + spread * rng.standard_normal(ROWS)
        self.learned: list[np.ndarray] = []
        self.fails_at = fails_at

    def judge(self, rows: np.ndarray) -> Losses:
        return Losses(self.costs[rows], np.zeros(len(rows)))

    def learn(self, rows: np.ndarray) -> None:
        self.learned.append(rows)
        if self.fails_at is not None and sum(map(len, self.learned)) >= self.fails_at:
            raise FloatingPointError("the weights are too large")


@given(st.integers(1, 5000), st.integers(1, 40), st.integers(1, 8))
def test_blocks_cover_all_rows_once_and_rungs_double(rows, contestants, keep):
    cut = list(blocks(rows, contestants, keep))
    assert [start for start, _, _ in cut] == [0, *(stop for _, stop, _ in cut[:-1])]
    assert cut[-1][1:] == (rows, True)
    rungs = [stop for _, stop, is_rung in cut if is_rung]
    assert all(later >= 1.5 * earlier for earlier, later in pairwise(rungs))


@settings(deadline=None, max_examples=25)
@given(st.lists(st.floats(0, 3), min_size=2, max_size=20), st.integers(1, 3))
def test_the_best_is_never_dropped_where_differences_are_clear(levels, workers):
    race = Race([Known(level, spread=0.0) for level in levels], field=Threads(workers))
    race.run(np.arange(ROWS))
    assert levels[race.winner] <= min(levels) + 1e-9
    assert {one.rank for one in race.finish()} == set(range(1, len(levels) + 1))
    assert race.finish()[0].number == race.winner


def test_half_is_dropped_at_each_rung_and_the_work_is_bounded():
    contestants = [Known(1.0 + n / 10, spread=0.0) for n in range(8)]
    race = Race(contestants)
    race.run(np.arange(ROWS))
    assert race.alive == [0]
    learned = sum(len(rows) for one in contestants for rows in one.learned)
    assert learned == race.learned <= 2.6 * ROWS  # 1 + log2(8) / 2 passes of one, about
    assert [one.why for one in race.standings[1:]] == ["half"] * 7


def test_all_learn_from_the_same_rows_in_the_same_order():
    contestants = [Known(1.0), Known(1.0, 1), Known(2.0)]
    order = np.random.default_rng(5).permutation(ROWS)
    Race(contestants, keep=3).run(order)
    assert all((np.concatenate(one.learned) == order).all() for one in contestants)


def test_ties_go_to_the_earlier_and_the_default_stays():
    race = Race([Known(1.0, spread=0.0) for _ in range(4)])
    race.run(np.arange(ROWS))
    assert race.winner == 0
    race = Race([Known(2.0), Known(1.0), Known(1.5)])
    race.run(np.arange(ROWS))
    assert 0 in race.alive  # rows held out decide about the default
    assert race.winner == 1


def test_who_fails_or_diverges_is_dropped_with_the_reason():
    race = Race([Known(1.0), Known(0.5, fails_at=1000), Known(float("nan")), "it cannot begin", Known(0.9)])
    race.run(np.arange(ROWS))
    assert race.standings[1].why == "FloatingPointError: the weights are too large"
    assert race.standings[2].why == "diverged: its loss is not finite"
    assert (race.standings[3].why, race.standings[3].dropped_at) == ("it cannot begin", 0)
    assert race.winner == 4


def test_nobody_is_left():
    race = Race([Known(float("inf")), "no"])
    race.run(np.arange(ROWS))
    assert race.winner is None
    assert Race([]).winner is None


def test_a_race_that_is_stopped_has_a_winner():
    clock = Stopwatch()

    def stop(race: Race) -> None:
        clock.stopped = True

    race = Race([Known(1.0), Known(0.2), Known(2.0)], over=clock, on_rung=stop)
    race.run(np.arange(ROWS))
    assert race.ended_early
    assert race.winner == 1
    late = Race([Known(1.0), Known(0.2)], over=Stopwatch(seconds=0))
    late.run(np.arange(ROWS))
    assert late.winner == 0


class Overfitting:
    """It is best on rows held out after two passes, and worse after more."""

    def __init__(self, level: float) -> None:
        self.level, self.passes = level, 0

    def learn(self, rows: np.ndarray) -> None:
        self.passes += 1

    def judge(self, rows: np.ndarray) -> Losses:
        noise = 0.1 * np.random.default_rng(1).standard_normal(ROWS)[rows]
        return Losses(self.level + 0.2 * (self.passes - 2) ** 2 + noise, np.zeros(len(rows)))


def finals(levels, usual):
    race = Race([None] * len(levels))
    folds = [(np.arange(ROWS // 2), np.arange(ROWS // 2, ROWS)), (np.arange(ROWS // 2, ROWS), np.arange(ROWS // 2))]
    race.finals(folds, lambda number, fold: Overfitting(levels[number]), lambda n: (1, 2, 3, 5), lambda n: usual)
    return race


def test_finals_decide_about_passes_and_between_finalists():
    race = finals([1.0, 0.5, 2.0], usual=5)
    assert (race.winner, race.standings[1].passes) == (1, 2)
    assert [rung.passes for rung in race.standings[1].rungs] == [1, 2, 3, 5]
    assert race.standings[1].rungs[0].rows == ROWS


def test_noise_decides_for_the_default():
    race = Race([None, None])
    folds = [(np.arange(100), np.arange(100, ROWS))]
    race.finals(folds, lambda number, fold: Known(1.0 - number * 0.001, seed=number), lambda n: (1,), lambda n: 1)
    assert race.winner == 0


@pytest.mark.parametrize("workers", [1, 4])
def test_learners_in_threads_are_deterministic(workers):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 6))
    y = (X @ rng.normal(size=6) + 0.5 * rng.normal(size=3000) > 0).astype(int)
    learners = [Learner("LogisticRegression", rate=rate) for rate in (0.003, 0.03, 0.3, 3.0)] + [Learner("Perceptron")]
    race = Race([ArrayContestant(one, X, y, classes=[0, 1]) for one in learners], field=Threads(workers))
    race.run(np.arange(3000))
    shown = [[round(rung.cost, 9) for rung in one.rungs] for one in race.standings]
    expected = Race(
        [ArrayContestant(Learner(one.name, **one.get_params()), X, y, classes=[0, 1]) for one in learners],
        field=Threads(2),
    )
    expected.run(np.arange(3000))
    assert shown == [[round(rung.cost, 9) for rung in one.rungs] for one in expected.standings]
    assert race.winner == expected.winner


def test_the_known_best_of_synthetic_streams_is_found():
    """A sparse target among irrelevant attributes is Winnow's case; one of many attributes is the Perceptron's."""
    rng = np.random.default_rng(2)
    few = rng.integers(0, 2, (4000, 200)).astype(float)
    labels = {"few": few[:, :3].any(axis=1).astype(int)}
    many = rng.normal(size=(4000, 20))
    labels["many"] = (many @ rng.normal(size=20) > 0).astype(int)
    for name, X, best in (("few", few, "Winnow"), ("many", many, "AROW")):
        learners = [Learner("Perceptron"), Learner("Winnow") if name == "few" else Learner("Adaline", rate=1e-7),
                    Learner("AROW"), Learner("LogisticRegression", rate=1e-6)]  # fmt: skip
        race = Race([ArrayContestant(one, X, labels[name], classes=[0, 1]) for one in learners])
        race.run(np.arange(4000))
        won = learners[race.winner]
        assert won.name == best or float((won.predict(X) == labels[name]).mean()) > 0.98


class OnlyAnswers:
    """An estimator of somebody else that has nothing but ``partial_fit`` and ``predict``."""

    def partial_fit(self, X, y, classes=None):
        self.most = np.bincount(y).argmax()

    def predict(self, X):
        return np.full(len(X), self.most)


def test_any_estimator_with_partial_fit_takes_part():
    linear_model = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(1)
    X = rng.normal(size=(2000, 4))
    y = (X[:, 0] > 0).astype(int)
    made = [OnlyAnswers(), linear_model.SGDClassifier(random_state=0), Learner("AROW")]
    race = Race([ArrayContestant(one, X, y, classes=[0, 1]) for one in made], keep=3)
    race.run(np.arange(2000))
    assert race.winner in (1, 2)
    assert race.standings[0].why is None
    regression = [ArrayContestant(linear_model.SGDRegressor(eta0=rate, learning_rate="constant"), X, X[:, 0])
                  for rate in (1e-6, 0.01)]  # fmt: skip
    race = Race(regression)
    race.run(np.arange(2000))
    assert race.winner == 1


# ---------------------------------------------------------------------- losses


@settings(deadline=None)
@given(st.integers(2, 5), st.integers(0, 99), st.floats(0.01, 100))
def test_scores_are_judged_by_the_best_temperature(classes, seed, scale):
    """A plain search over temperatures finds nothing better; and the size of the scores does not matter."""
    rng = np.random.default_rng(seed)
    scores, numbers = rng.normal(size=(200, classes)), rng.integers(0, classes, 200)
    scores[np.arange(200), numbers] += 1.0

    def loss(factor: float) -> float:
        z = factor * scores
        return float(
            np.mean(np.log(np.exp(z - z.max(1, keepdims=True)).sum(1)) + z.max(1) - z[np.arange(200), numbers])
        )

    found = of_scores(scale * scores, numbers)
    assert found.loss.mean() <= min(loss(factor) for factor in np.geomspace(1e-2, 1e2, 200)) + 1e-6
    assert (found.mistakes == (scores.argmax(1) != numbers)).all()


def test_losses_of_perfect_useless_and_infinite_scores():
    numbers = np.array([0, 1] * 50)
    assert of_scores(np.where(numbers == 1, 1.0, -1.0), numbers).cost.mean() < 1e-3
    assert of_scores(np.zeros(100), numbers).loss.mean() == pytest.approx(np.log(2))
    assert np.isnan(of_scores(np.full(100, np.inf), numbers).loss).all()
    assert len(of_scores(np.zeros(0), np.zeros(0, dtype=int)).loss) == 0
    assert of_probabilities(np.full((100, 2), 0.5), numbers).loss.mean() == pytest.approx(np.log(2))
    assert of_numbers([1.0, 2.0], [1.0, 4.0]).cost.tolist() == [0.0, 4.0]
    assert of_answers(numbers == 1, 2).loss.mean() == pytest.approx(np.log(2))


@settings(deadline=None, max_examples=30)
@given(st.integers(2, 4), st.integers(0, 99))
def test_a_weight_is_as_many_rows(classes, seed):
    rng = np.random.default_rng(seed)
    times, numbers = rng.integers(0, 4, 80), rng.integers(0, classes, 80)
    scores, repeated = rng.normal(size=(80, classes)), np.repeat(np.arange(80), times)
    scores[np.arange(80), numbers] += 1.0
    for judge, made in ((of_scores, scores), (of_probabilities, np.exp(scores)), (of_numbers, scores[:, 0])):
        weighted, plain = judge(made, numbers, times.astype(float)), judge(made[repeated], numbers[repeated])
        assert weighted.mean_cost == pytest.approx(plain.mean_cost, rel=1e-4)
        assert weighted.total(weighted.mistakes) == plain.mistakes.sum()
        assert weighted.total() == len(repeated)
    right = scores.argmax(1) == numbers
    answers = of_answers(right, classes, times.astype(float))
    assert answers.mean_cost == pytest.approx(of_answers(right[repeated], classes).mean_cost)


def test_rows_without_weight_do_not_count_in_a_race():
    """Of each row there is a copy with the wrong label, and weight 0."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(1000, 4))
    y = (X[:, 0] > 0).astype(int)
    both, labels = np.concatenate([X, X]), np.concatenate([y, 1 - y])
    weight = np.repeat([1000.0, 0.0], 1000)
    race = Race([ArrayContestant(Learner("AROW"), both, labels, classes=[0, 1], sample_weight=weight)])
    race.run(rng.permutation(2000))
    last = race.standings[0].rungs[-1]
    assert last.mistakes / last.rows < 0.05
    assert last.loss < 0.2


def test_beats_does_not_depend_on_the_size_of_weights():
    rng = np.random.default_rng(0)
    costs, better = rng.normal(size=200), rng.normal(0.1, 1.0, size=200)
    for errors in (0.5, 1.0, 2.0):
        found = {
            beats(Losses(costs - better, np.zeros(200), weight), Losses(costs, np.zeros(200), weight), errors)
            for weight in (None, np.full(200, 1.0), np.full(200, 1000.0))
        }
        assert len(found) == 1
    last = np.repeat([0.0, 1.0], 100)
    assert beats(Losses(1 - last, last * 0, last), Losses(np.ones(200), last * 0, last), 3.0)


def test_beats_needs_clear_differences():
    rng = np.random.default_rng(0)
    one, other = Losses(rng.normal(size=500), np.zeros(500)), Losses(rng.normal(size=500), np.zeros(500))
    assert not beats(one, one, 2.0)
    assert not (beats(one, other, 3.0) or beats(other, one, 3.0))
    assert beats(Losses(one.loss - 0.01, one.mistakes), one, 3.0)


# ---------------------------------------------------------------------- fields


@given(st.integers(0, 30), st.integers(0, 30), st.one_of(st.none(), st.integers(0, 30)), st.booleans())
def test_a_portion_has_the_numbers_of_its_part_in_some_order(rows, start, stop, shuffled):
    order = np.random.default_rng(0).permutation(rows)
    portion = Portion(order, start, stop, (3, 1) if shuffled else None)
    numbers, expected = portion.numbers(), order.tolist()[start:stop]
    assert portion.size == len(numbers) == len(expected)
    assert (sorted(numbers) if shuffled else numbers.tolist()) == (sorted(expected) if shuffled else expected)
    assert (numbers == portion.numbers()).all()


class Backwards:
    """A field that lets contestants take their turns one by one, the last one first; it counts them."""

    def __init__(self, most: int = 1000) -> None:
        self.most, self.turns = most, 0

    def enter(self, contestant):
        return [contestant]

    def take_turns(self, turns, over):
        self.turns += 1
        if self.turns > self.most:
            return None
        return [take_turn(place[0], turn) for place, turn in reversed(turns)][::-1]


def raced(levels, field):
    race = Race([Known(level, seed=n) for n, level in enumerate(levels)], keep=2, field=field)
    race.run(np.random.default_rng(1).permutation(ROWS))
    folds = [(np.arange(ROWS // 2), np.arange(ROWS // 2, ROWS)), (np.arange(ROWS // 2, ROWS), np.arange(ROWS // 2))]
    race.finals(folds, lambda number, fold: Known(levels[number], seed=number + fold), lambda n: (1, 2), lambda n: 2)
    return [one.to_json() for one in race.finish()], race.winner, race.learned, race.ended_early


@settings(max_examples=20)
@given(st.lists(st.sampled_from([0.5, 1.0, 1.5, float("nan")]), min_size=1, max_size=6))
def test_the_result_does_not_depend_on_the_field(levels):
    assert raced(levels, Backwards()) == raced(levels, Threads(1)) == raced(levels, Threads(3))


def test_the_field_of_the_context_is_used():
    field = Backwards()
    with racing_on(field):
        raced([1.0, 2.0], None)
    assert field.turns
    before = field.turns
    raced([1.0, 2.0], None)
    assert field.turns == before


@pytest.mark.parametrize("most", [0, 1, 2, 3])
def test_turns_that_a_field_gives_up_do_not_count(most):
    table, winner, learned, ended = raced([1.0, 0.2, 2.0], Backwards(most))
    assert ended
    assert winner == (1 if most >= 2 else 0)
    whole, _, all_learned, _ = raced([1.0, 0.2, 2.0], Backwards())
    assert learned < all_learned
    for one in table:
        complete = next(other for other in whole if other["number"] == one["number"])
        assert one["rungs"] == complete["rungs"][: len(one["rungs"])]
