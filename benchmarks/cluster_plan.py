"""Where mixing on a cluster stops paying: time by rows and workers, from the model of costs and the law of rounds.

For tables (30 columns) and texts (100 words a row, whose number grows by Heaps' law until it is 2^24, the buckets that
they are hashed into). Shards are as many as a run has by default, and one for each worker at least. Rounds are as many
as the law asks for, 1 at least for tables and 3 for texts. Times are compared with those of one core of one machine,
which makes as many passes as one shard makes rounds. "workers that pay": the most of which each is worth a fifth of
that core.

Nothing is run: constants (``python benchmarks/cluster.py``) and the law (``python benchmarks/cluster_rounds.py``) were
measured on one machine of two cores, with up to 1,000 shards of up to 460,000 rows in all. Whatever is beyond that is
extrapolated, and so is the network, which is assumed: 10 Gbit/s.

    python benchmarks/cluster_plan.py [--svg FILE]
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from onlearn.cluster.costs import MEASURED, ROUNDS, Cluster, Data, one_machine, predict, shards_for
from onlearn.theory.plots.canvas import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, Look, axes_of, picture
from onlearn.theory.plots.catalogue import Picture
from onlearn.theory.plots.page import render

ROWS = (1e6, 1e7, 1e8, 1e9, 1e10)
WORKERS = (1, 3, 10, 30, 100, 300, 1000)
CURVE = tuple(sorted({round(10 ** (k / 20)) for k in range(61)}))  # workers of the picture
HEAPS, BETA, BUCKETS = 34.5, 0.52, 1 << 24  # words are HEAPS tokens^BETA: python benchmarks/cluster_rounds.py
POINTS = Path(__file__).with_name("cluster_rounds.json")
ENOUGH = 0.2  # of a core that a worker is worth: less does not pay


class Kind(NamedTuple):
    """Data of one kind: as many rows as one likes, and the least rounds (or passes) that its learners need."""

    data: Callable[[float], Data]
    least: int


def table_data(rows: float) -> Data:
    """30 columns of numbers, all of which are in every row."""
    return Data(rows=rows, values=30, weights=31, beta=0.0)


def text_data(rows: float) -> Data:
    """Texts of 100 words."""
    words = min(BUCKETS, HEAPS * (100 * rows) ** BETA)
    return Data(rows=rows, values=100, weights=words, beta=BETA)


KINDS = {"tables": Kind(table_data, 1), "texts": Kind(text_data, 3)}


class Plan(NamedTuple):
    """What a run takes with so many workers."""

    workers: int
    shards: int
    rounds: int
    seconds: float
    faster: float  # times one core of one machine
    bottleneck: str


def plan(kind: Kind, rows: float, workers: int, deviations: float = 0.0) -> Plan:
    data, cluster, law = kind.data(rows), Cluster(workers), ROUNDS._replace(least=kind.least)
    shards = shards_for(data, cluster)
    rounds = law.rounds(shards, rows, deviations)
    found = predict(data, cluster, shards, rounds)
    alone = one_machine(data, law.rounds(1, rows))
    return Plan(workers, shards, rounds, found.seconds, alone / found.seconds, found.bottleneck)


def paying(plans: list[Plan]) -> Plan:
    """The most workers of which each is worth enough, or else the fewest."""
    fine = [one for one in plans if one.faster >= ENOUGH * one.workers]
    return fine[-1] if fine else plans[0]


def time_text(seconds: float) -> str:
    """Seconds as people say them.

    >>> time_text(1.25), time_text(300), time_text(7200), time_text(1e6)
    ('1.2 s', '5 min', '2 h', '11.6 days')
    """
    for unit, size in (("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"


def markdown() -> str:
    """The tables of the document."""
    lines = []
    for name, kind in KINDS.items():
        lines += ["", f"| {name}: rows | shards | " + " | ".join(f"W = {workers:,}" for workers in WORKERS) + " |"]
        lines.append("|---|---|" + "---|" * len(WORKERS))
        for rows in ROWS:
            plans = [plan(kind, rows, workers) for workers in WORKERS]
            cells = [
                f"{time_text(one.seconds)}, {one.faster:.3g}x, {one.bottleneck}"
                + (f", {one.rounds} rounds" if one.rounds > kind.least else "")
                for one in plans
            ]
            counts = sorted({one.shards for one in plans})
            shards = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
            lines.append(f"| {power_of_ten(rows)} | {shards} | " + " | ".join(cells) + " |")
    names = ("rows", "kind", "workers that pay", "fastest", "shards before rounds grow", "2 deviations above the law")
    lines += ["", f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    for rows in ROWS:
        for name, kind in KINDS.items():
            plans = [plan(kind, rows, workers) for workers in CURVE]
            fastest = min(plans, key=lambda one: one.seconds)
            fine = " | ".join(f"{shards_before(kind, rows, deviations):.0f}" for deviations in (0.0, 2.0))
            lines.append(f"| {power_of_ten(rows)} | {name} | {paying(plans).workers:,} | {told(fastest)} | {fine} |")
    return "\n".join(lines)


def shards_before(kind: Kind, rows: float, deviations: float) -> float:
    """The most shards for which the law asks for no more rounds than the least."""
    return max(1.0, rows * (kind.least / (ROUNDS.factor * math.exp(deviations * ROUNDS.spread))) ** (1 / ROUNDS.power))


def power_of_ten(rows: float) -> str:
    """A round number of rows.

    >>> power_of_ten(1e10)
    '10^10'
    """
    return f"10^{round(math.log10(rows))}"


def told(one: Plan) -> str:
    return f"{one.workers:,}: {time_text(one.seconds)}, {one.faster:.3g}x"


@picture
def costs() -> Any:
    """Left and middle, how much faster; right, the rounds that were measured, and the law."""
    figure, axes = axes_of("Where mixing on a cluster stops paying", panels=3, width=11.0, height=4.2)
    looks = [Look(colour, "", "-") for colour in (GREY, BLUE, GREEN, ORANGE, RED)]
    for (name, kind), panel in zip(KINDS.items(), axes):
        panel.plot(CURVE, CURVE, color=GREY, ls=":", lw=1.0, label="as many times")
        for rows, look in zip(ROWS, looks):
            plans = [plan(kind, rows, workers) for workers in CURVE]
            panel.plot(CURVE, [one.faster for one in plans], color=look.colour, label=f"{power_of_ten(rows)} rows")
            last = paying(plans)
            panel.plot([last.workers], [last.faster], color=look.colour, marker="o", ls="")
        panel.set(title=f"{name}: times as fast as one core", xlabel="workers", xscale="log", yscale="log")
        panel.set_ylim(0.05, 2000)
    axes[0].legend()
    points = json.loads(POINTS.read_text(encoding="utf-8"))
    colours = (BLUE, RED, GREEN, ORANGE, PURPLE, GREY)
    for colour, group in zip(colours, sorted({one["group"] for one in points})):
        own = [one for one in points if one["group"] == group and one["rounds"]]
        each = [one["rows"] / one["shards"] for one in own]
        axes[2].plot(each, [one["rounds"] for one in own], color=colour, marker="o", ls="", ms=3.0, label=group)
    each = [10 ** (k / 10) for k in range(5, 61)]
    law = [max(1.0, ROUNDS.factor * rows**-ROUNDS.power) for rows in each]
    axes[2].plot(each, law, color=GREY, label="law")
    axes[2].set(title="rounds until 0.3 points above serial", xlabel="rows of a shard", xscale="log", yscale="log")
    axes[2].legend(fontsize=7.0)
    return figure


PICTURE = Picture(
    costs,
    "Where mixing on a cluster stops paying",
    "Predicted times by a model whose constants were measured on one machine. A circle marks the most workers of which "
    "each is worth at least a fifth of a core. Beyond 1,000 shards and 460,000 rows everything is extrapolated.",
    "",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--svg", type=Path, metavar="FILE", help="write the picture here")
    args = parser.parse_args()
    print(f"law of rounds: {ROUNDS}\nconstants: {MEASURED}")
    print(markdown())
    if args.svg:
        args.svg.write_bytes(render(costs(), "svg", PICTURE))


if __name__ == "__main__":
    main()
