"""What training on a cluster costs: a model of its time, by computing, bytes and rounds.

A run cuts N rows of k values each into S shards of n = N / S rows, and has W workers of one thread each. It has D
weights, R rounds, and trees of sums of F = ``FAN_IN`` parts. The model adds up, in the order in which they happen:

- survey: every shard is read once, for its features and labels;
- a round: the state goes to the workers; shards are read (in the first round, and in all rounds if the rows do not fit
  into the memory of the workers) and learned from; what they learned is added up by workers and mixed by the client.

What it assumes:

- Workers are alike, shards are of one size, and each worker does one task at a time, so the last of ceil(S / W) turns
  is waited for. The scheduler hands out tasks while others run: the slower of the two counts.
- A shard of n rows touches t(n) = D (n / N)^beta weights, which is Heaps' law (m tokens have about K m^beta words) with
  K such that all rows touch all weights. beta is about 0.5 for words, and 0 for a dense table, where every shard
  touches every weight. A rule that learns from few rows touches fewer: then ``Data.active`` says which part.
- Rows stay in memory altogether or not at all, for in a memory that drops what was used longest ago nothing is found
  again when shards come in turn.
- Everything else on the machines and in the network stands still, and nothing fails.

``MEASURED`` holds constants of one machine (``python benchmarks/cluster.py`` prints those of another); the bandwidth of
a network is no constant of the package, and is assumed in ``Cluster``.

>>> plan = predict(Data(rows=1e8, values=30, weights=1e6), Cluster(workers=16), shards=64, rounds=5)
>>> plan.bottleneck
'reading'
>>> predict(Data(rows=1e8, values=30, weights=1e6), Cluster(workers=32), shards=64, rounds=5).seconds < plan.seconds
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from onlearn.cluster.rounds import CHANGES, FAN_IN
from onlearn.cluster.run import KEPT_SHARE
from onlearn.cluster.training import usual_shards


@dataclass(frozen=True)
class Constants:
    """What one step costs: seconds of one core, and bytes."""

    survey: float  # seconds for a value that is read in the survey
    read: float  # for a value that is read as part of numbered rows
    learn: float  # for a value that is learned from
    begin: float  # seconds of a worker around each task: arguments, opening files, the answer
    copy: float  # for a weight of the state that a task copies and compares, whether it was touched or not
    take: float  # for a weight of the state, which a worker brings up to date before the first task of a round
    pack: float  # for a touched weight: to find its change and to pack it
    add: float  # for each weight of each message that is added up
    mix: float  # for each weight of the sum that the client mixes into the state
    follow: float  # for a weight of the state: the client copies it and finds its change
    name: float  # for a name of a feature in the survey of a shard, which the client merges; 0 if features are numbers
    up: float  # bytes of a touched weight on its way from a shard
    down: float  # bytes of a changed weight on its way to workers
    whole: float  # bytes of a weight in a state that is sent whole; those that are 0 take none
    name_bytes: float  # bytes of a name of a feature in a survey
    kept: float  # bytes of a value in a worker's memory
    text: float  # bytes of a value in a file
    task: float  # seconds of the scheduler for a task
    answer: float  # the same for a task whose result comes to the client
    latency: float  # seconds of a round of one task that has nothing to do
    around: float  # seconds of a run before its survey, between that and the rounds, and after them
    local: float  # bytes a second from one process to another on this machine


@dataclass(frozen=True)
class Data:
    """The data, as far as costs depend on them."""

    rows: float
    values: float  # of a row, on average
    weights: float  # features times outputs
    beta: float = 0.5  # of Heaps' law; 0: each shard touches all weights
    active: float = 1.0  # the part of the weights of its features that a shard changes
    named: bool = False  # whether features have names, which the client merges

    def touched(self, rows: float) -> float:
        """Weights that a part of so many rows touches: t(n) = active D (n / N)^beta.

        >>> Data(rows=1e6, values=100, weights=1e5).touched(1e4), Data(1e6, 54, 54, beta=0).touched(1e4)
        (10000.0, 54.0)
        """
        return self.active * self.weights * min(1.0, rows / self.rows) ** self.beta


@dataclass(frozen=True)
class Cluster:
    """Workers of one thread each, and the network: 10 Gbit/s unless something else is said."""

    workers: int
    memory: float = 8e9  # bytes that a worker may use
    bandwidth: float = 1.25e9  # bytes a second, of a worker
    client_bandwidth: float = 1.25e9  # bytes a second, of the client

    def copies(self) -> int:
        """Transfers one after another until all workers have a value.

        The client sends it to one. Then each worker that has it sends it to two more, one after the other, so in each
        step there are three times as many: 1 + 2 ceil(log3 W).

        >>> [Cluster(count).copies() for count in (1, 3, 9, 1000)]
        [1, 3, 5, 15]
        """
        return 1 + 2 * math.ceil(math.log(self.workers, 3) - 1e-9)


class Costs(NamedTuple):
    """Seconds of a survey, of a round or of a run, by what they are spent on."""

    reading: float = 0.0  # of files, by workers
    learning: float = 0.0  # by workers: the rows of shards, and the state that each task copies
    adding: float = 0.0  # by workers: sums of what shards have learned
    client: float = 0.0  # names are merged, weights mixed
    network: float = 0.0  # the state on its way to the workers, and sums on their way back
    scheduler: float = 0.0  # what handing out tasks takes longer than doing them
    latency: float = 0.0  # waiting for answers

    @property
    def seconds(self) -> float:
        """All of them, one after another."""
        return math.fsum(self)

    @property
    def bottleneck(self) -> str:
        """What takes the largest part."""
        return max(zip(self, self._fields), key=lambda one: one[0])[1]

    def plus(self, other: Costs, times: float = 1.0) -> Costs:
        """With the costs of something else, or of several such."""
        return Costs(*(a + times * b for a, b in zip(self, other)))


# ----------------------------------------------------------------------------------------------------
# The parts of a run.


def survey(data: Data, cluster: Cluster, shards: int, at: Constants) -> Costs:
    """Every shard is read: ceil(S / W) tasks of n k values; the client merges t(n) names of each shard."""
    n = data.rows / shards
    reading = turns(shards, cluster) * (at.begin + n * data.values * at.survey)
    names = shards * data.touched(n) if data.named else 0.0
    return Costs(
        reading=reading,
        client=names * at.name,
        network=names * at.name_bytes / cluster.client_bandwidth,
        scheduler=max(0.0, shards * at.answer - reading),
        latency=at.latency,
    )


def a_round(data: Data, cluster: Cluster, shards: int, at: Constants, *, reads: bool) -> Costs:
    """One round, in which rows are read if they are not kept.

    computing: each worker brings D weights up to date; ceil(S / W) tasks of n k values, of D weights to copy, and of
    t(n) weights to pack.
    adding: while there are m > F messages of r rows each, ceil(m / F) sums of F t(r) weights are made, in
    ceil(m / (F W)) turns; they are messages of F r rows.
    client: it adds up the m <= F messages that are left, mixes t(N) weights, and looks over all D.
    network: t(N) weights to all workers (``Cluster.copies``), or now and then the whole state; in each sum F messages;
    and the last m to the client.
    scheduler: a task for each shard and each sum.
    """
    n = data.rows / shards
    values, many = n * data.values, turns(shards, cluster)
    reading = many * values * at.read if reads else 0.0
    task = at.begin + values * at.learn + data.weights * at.copy + data.touched(n) * at.pack
    learning = many * task + data.weights * at.take
    network = cluster.copies() * state_bytes(data, at) / cluster.bandwidth
    adding, tasks = 0.0, shards
    left, rows = shards, n
    while left > FAN_IN:
        sums = math.ceil(left / FAN_IN)
        weights = turns(sums, cluster) * FAN_IN * data.touched(rows)
        adding += turns(sums, cluster) * at.begin + weights * at.add
        network += weights * at.up / cluster.bandwidth
        tasks, left, rows = tasks + sums, sums, min(data.rows, rows * FAN_IN)
    weights = left * data.touched(rows)
    network += weights * at.up / cluster.client_bandwidth
    changed = data.touched(data.rows)
    client = (weights * at.add if left > 1 else 0.0) + changed * at.mix + data.weights * at.follow
    handing_out = (tasks - left) * at.task + left * at.answer
    return Costs(
        reading=reading,
        learning=learning,
        adding=adding,
        client=client,
        network=network,
        scheduler=max(0.0, handing_out - reading - learning - adding),
        latency=at.latency,
    )


def turns(tasks: int, cluster: Cluster) -> int:
    """How many tasks the busiest worker does."""
    return math.ceil(tasks / cluster.workers)


def state_bytes(data: Data, at: Constants) -> float:
    """Bytes of the state that go to a worker in a round, on average: once whole, and then changes for CHANGES rounds.

    Where changes take as many bytes as the whole state, that is sent.
    """
    whole, change = data.touched(data.rows) * at.whole, data.touched(data.rows) * at.down
    return min(whole, (whole + CHANGES * change) / (CHANGES + 1))


def fits(data: Data, cluster: Cluster, at: Constants) -> bool:
    """Whether the rows fit into what workers may keep in memory.

    >>> [fits(Data(rows=1e10, values=30, weights=1e6), Cluster(workers), MEASURED) for workers in (100, 2000)]
    [False, True]
    """
    return data.rows * data.values * at.kept <= KEPT_SHARE * cluster.memory * cluster.workers


class Prediction(NamedTuple):
    """What a run takes."""

    ends: Costs  # before the survey and after the rounds
    survey: Costs
    first: Costs  # the first round, in which rows are read
    later: Costs  # each round after it
    rounds: int

    @property
    def total(self) -> Costs:
        """All of the run."""
        return self.ends.plus(self.survey).plus(self.first).plus(self.later, self.rounds - 1)

    @property
    def seconds(self) -> float:
        """The seconds of the run."""
        return self.total.seconds

    @property
    def bottleneck(self) -> str:
        """What takes the largest part of them."""
        return self.total.bottleneck


def predict(data: Data, cluster: Cluster, shards: int, rounds: int, at: Constants | None = None) -> Prediction:
    """The costs of a run from files to a model."""
    at = MEASURED if at is None else at
    first, later = (a_round(data, cluster, shards, at, reads=reads) for reads in (True, not fits(data, cluster, at)))
    ends = Costs(latency=at.around)
    return Prediction(ends, survey(data, cluster, shards, at), first, later, rounds)


def one_machine(data: Data, passes: int, at: Constants | None = None) -> float:
    """Seconds of one core that learns from all rows in order: they are read once and kept, and there are no rounds.

    Rows that do not fit into memory are kept in a file, which is read as fast as they are learned from.
    """
    at = MEASURED if at is None else at
    return data.rows * data.values * (at.survey + passes * at.learn)


def shards_for(data: Data, cluster: Cluster, at: Constants | None = None) -> int:
    """The shards that a run has by default, and at least one for each worker."""
    at = MEASURED if at is None else at
    return max(cluster.workers, usual_shards(int(data.rows * data.values * at.text)))


# ----------------------------------------------------------------------------------------------------
# Rounds, and where more workers stop paying.


class RoundsLaw(NamedTuple):
    """How many rounds shards of n rows need: max(``least``, factor n^-power).

    Each round the mean of the weights moves about as far as one shard of n rows moves them. So what counts is how many
    rows a shard has; the more, the fewer rounds, until there are as few as one machine makes passes.

    >>> law = RoundsLaw(factor=100.0, power=0.5, spread=0.0)
    >>> [law.rounds(shards, 1e6) for shards in (1, 100, 1000)]
    [1, 1, 4]
    """

    factor: float
    power: float
    spread: float  # deviation of the logarithm of what was measured
    least: int = 1

    def rounds(self, shards: int, rows: float, deviations: float = 0.0) -> int:
        """The rounds; with ``deviations`` so many more times the spread."""
        found = self.factor * (rows / shards) ** -self.power * math.exp(deviations * self.spread)
        return max(self.least, math.ceil(found - 1e-9))


def worthwhile(data: Data, part: float = 0.5, most: int = 1000, shards: int | None = None, rounds: int = 5,
               at: Constants | None = None) -> int:  # fmt: skip
    """The largest number of workers, among the powers of two up to ``most``, of which each is worth ``part`` of one.

    That is, with them a run is at least ``part`` times their number as fast as with one worker and the same shards.

    >>> worthwhile(Data(rows=1e6, values=30, weights=1e5)) < worthwhile(Data(rows=1e9, values=30, weights=1e5))
    True
    """
    found, workers = 1, 1
    fixed = shards if shards is not None else shards_for(data, Cluster(most), at)
    alone = predict(data, Cluster(1), fixed, rounds, at).seconds
    while (workers := 2 * workers) <= most:
        if alone / predict(data, Cluster(workers), fixed, rounds, at).seconds >= part * workers:
            found = workers
    return found


# Of python benchmarks/cluster_rounds.py: until errors are 0.3 points above those of one machine. The spread is that of
# measurements of one data set and of data sets among each other.
ROUNDS = RoundsLaw(factor=229.0, power=0.67, spread=0.46)

# Of python benchmarks/cluster.py; docs/cluster_costs.md says on which machine.
MEASURED = Constants(
    survey=23e-9,
    read=36e-9,
    learn=9.4e-9,
    begin=3.6e-3,
    copy=6.2e-9,
    take=53e-9,
    pack=149e-9,
    add=157e-9,
    mix=147e-9,
    follow=9.7e-9,
    name=43e-9,
    up=16.2,
    down=18.3,
    whole=18.3,
    name_bytes=16.8,
    kept=12.4,
    text=15.0,
    task=1.6e-3,
    answer=4.3e-3,
    latency=0.031,
    around=0.024,
    local=362e6,
)
