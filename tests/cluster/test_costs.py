"""The model of costs: against sums written out step by step, and what must grow or shrink with what."""

from __future__ import annotations

import math
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlearn.cluster import costs
from onlearn.cluster.connection import Task
from onlearn.cluster.costs import MEASURED, Cluster, Constants, Data, RoundsLaw, predict
from onlearn.cluster.rounds import FAN_IN, tree_of

NOTHING = Constants(**{one.name: 0.0 for one in fields(Constants)})

data = st.builds(
    Data,
    rows=st.floats(1e3, 1e10),
    values=st.floats(1, 1e4),
    weights=st.floats(2, 1e8),
    beta=st.floats(0, 1),
    active=st.floats(0.01, 1),
    named=st.booleans(),
)
shards, workers = st.integers(1, 5000), st.integers(1, 1000)


def added(count: int) -> tuple[list[int], int]:
    """By the trees that runs make: the sums of each level, and the messages that are left for the client."""
    leaves = [Task(n, int, ()) for n in range(count)]
    levels: list[int] = []

    def add(n: int, group: list[Task]) -> Task:
        level = 1 + depth(group[0])
        while len(levels) < level:
            levels.append(0)
        levels[level - 1] += 1
        return Task(n, sum, (group,))

    return levels, len(tree_of(leaves, add))


def depth(task: Task) -> int:
    return 1 + depth(task.arguments[0][0]) if task.arguments else 0


@pytest.mark.parametrize("count", [1, 2, 16, 17, 100, 256, 257, 1000, 4097])
def test_the_tasks_of_a_round_are_those_of_its_tree(count):
    levels, left = added(count)
    about = Data(rows=1e6, values=10, weights=100)
    told = costs.a_round(about, Cluster(1), count, replace(NOTHING, task=1.0, answer=1.0), reads=False)
    assert told.scheduler == count + sum(levels)
    told = costs.a_round(about, Cluster(1), count, replace(NOTHING, answer=1.0), reads=False)
    assert told.scheduler == left <= FAN_IN


@pytest.mark.parametrize("count", [1, 2, 16, 17, 100, 1000, 4097])
@pytest.mark.parametrize("many", [1, 3, 64])
def test_sums_are_of_the_weights_of_all_rows_below(count, many):
    levels, left = added(count)
    about, beta = Data(rows=1e6, values=10, weights=1e5, beta=0.5), 0.5
    rows, seconds = 1e6 / count, 0.0
    for sums in levels:
        seconds += math.ceil(sums / many) * FAN_IN * 1e5 * (rows / 1e6) ** beta
        rows = min(1e6, rows * FAN_IN)
    told = costs.a_round(about, Cluster(many), count, replace(NOTHING, add=1.0), reads=False)
    assert told.adding == pytest.approx(seconds)
    client = left * 1e5 * (rows / 1e6) ** beta if left > 1 else 0.0
    assert told.client == pytest.approx(client)


def test_one_worker_does_all_shards_one_after_another():
    about = Data(rows=1000, values=7, weights=50, beta=0.0)
    at = replace(NOTHING, survey=1.0, read=2.0, learn=3.0, copy=5.0, take=11.0, pack=13.0, begin=0.5)
    found = predict(about, Cluster(1, memory=math.inf), shards=4, rounds=3, at=at)
    assert found.survey.reading == pytest.approx(7000 + 4 * 0.5)
    assert found.first.reading == pytest.approx(2 * 7000)
    assert found.later.reading == 0
    assert found.later.learning == pytest.approx(3 * 7000 + 4 * 0.5 + 4 * 50 * 5 + 50 * 11 + 4 * 50 * 13)
    assert found.total.reading == pytest.approx(3 * 7000 + 4 * 0.5)
    assert found.seconds == pytest.approx(found.survey.seconds + found.first.seconds + 2 * found.later.seconds)


def test_the_busiest_worker_is_waited_for():
    about = Data(rows=1000, values=1, weights=1)
    at = replace(NOTHING, survey=1.0)
    assert [costs.survey(about, Cluster(w), 10, at).reading for w in (1, 3, 5, 9, 10, 99)] == [
        pytest.approx(100 * turns) for turns in (10, 4, 2, 2, 1, 1)
    ]


def test_rows_that_do_not_fit_are_read_in_each_round():
    about = Data(rows=1e9, values=30, weights=1e6)
    for memory, reads in ((1e9, True), (1e13, False)):
        found = predict(about, Cluster(4, memory=memory), shards=64, rounds=5)
        assert (found.later.reading > 0) is reads


def test_copies_go_from_worker_to_worker():
    for count in range(1, 200):
        have, steps = 1, 0
        while have < count:
            have, steps = 3 * have, steps + 1
        assert Cluster(count).copies() == 1 + 2 * steps


def test_states_are_sent_whole_where_changes_are_larger():
    about = Data(rows=1e6, values=10, weights=1e5)
    small, large = (replace(NOTHING, whole=10.0, down=down) for down in (1.0, 100.0))
    assert costs.state_bytes(about, large) == 1e6
    assert costs.state_bytes(about, small) == pytest.approx((1e6 + 8 * 1e5) / 9)


@given(data, shards, workers, st.integers(1, 50))
def test_predictions_are_sound(about, shards, workers, rounds):
    found = predict(about, Cluster(workers), shards, rounds)
    assert all(part >= 0 for part in found.total)
    assert math.isfinite(found.seconds)
    assert found.bottleneck in found.total._fields
    assert found.seconds == pytest.approx(sum(found.total))
    assert predict(about, Cluster(workers), shards, rounds + 1).seconds >= found.seconds


@given(data, shards, workers)
def test_more_memory_and_faster_networks_cost_nothing(about, shards, workers):
    plain = predict(about, Cluster(workers), shards, 5).seconds
    assert predict(about, Cluster(workers, memory=1e12), shards, 5).seconds <= plain * (1 + 1e-12)
    assert predict(about, Cluster(workers, bandwidth=1e10, client_bandwidth=1e10), shards, 5).seconds <= plain


@given(data, st.integers(1, 10_000), st.integers(1, 10_000))
def test_more_rows_touch_more_weights(about, first, second):
    least, most = sorted((about.rows * first / 10_000, about.rows * second / 10_000))
    assert about.touched(least) <= about.touched(most) <= about.active * about.weights * (1 + 1e-12)


@given(st.integers(1, 1000), st.floats(1e3, 1e10))
def test_no_law_asks_for_less_than_the_least(shards, rows):
    law = RoundsLaw(10.0, 0.7, spread=0.3, least=2)
    assert law.rounds(shards, rows) >= 2
    assert law.rounds(shards, rows) <= law.rounds(shards + 1, rows)
    assert law.rounds(shards, rows) <= law.rounds(shards, rows, deviations=2.0)


def test_workers_are_worth_less_where_there_is_little_to_do():
    found = [costs.worthwhile(Data(rows=rows, values=30, weights=1e5)) for rows in (1e4, 1e6, 1e8, 1e10)]
    assert found == sorted(found)
    assert found[0] < found[-1]


def test_measured_constants_are_all_there():
    assert all(getattr(MEASURED, one.name) > 0 for one in fields(Constants))
