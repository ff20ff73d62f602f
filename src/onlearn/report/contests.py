"""Sections of the reports on tuning, a race of configurations, and on comparisons of learners."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from onlearn.inert_text import NOTHING, inert, number
from onlearn.report.blocks import (
    Block,
    Caps,
    Code,
    Items,
    Section,
    Table,
    Text,
    Tile,
    Tiles,
    bytes_text,
    cells,
    cut,
    percent,
    seconds_text,
)
from onlearn.report.charts import COLOURS, Chart, Series

BEST = 4  # configurations with a colour of their own
DEFAULT = "the default"  # the configuration of which no option is given


# ---------------------------------------------------------------------- tuning


def tune_sections(document: dict[str, Any], caps: Caps) -> Iterator[Section]:
    """The sections of a report on tuning."""
    facts = document["facts"]
    yield Section("summary", "Summary", tune_summary(facts))
    yield race_section(facts, caps)


def tune_summary(facts: dict[str, Any]) -> list[Block]:
    """Which configuration won, and how to train with it."""
    configurations = facts.get("configurations") or []
    best = next((one for one in configurations if one.get("number") == facts.get("winner")), None)
    made: list[Block] = []
    tiles = [Tile("configurations", number(len(configurations)))]
    if best is not None:
        loss = (best.get("rungs") or [{}])[-1].get("loss")
        made.append(Text(f"The best of {len(configurations)} configurations is {_name(best, 300)}.", "lead"))
        tiles.append(Tile("its loss", number(loss), "when it was last judged"))
    dropped = [one for one in configurations if str(one.get("why") or "").startswith("diverged")]
    if facts.get("examples") is not None:
        tiles.append(Tile("examples", number(facts["examples"])))
    if dropped:
        tiles.append(Tile("diverged", number(len(dropped)), "and were dropped"))
    if facts.get("seconds") is not None:
        tiles.append(Tile("time", seconds_text(facts["seconds"])))
    made.append(Tiles(tiles))
    if facts.get("command"):
        made += [Text("To train with it again:", "note"), Code(inert(facts["command"], 2000))]
    return made


def race_section(facts: dict[str, Any], caps: Caps) -> Section:
    """The race of configurations: their losses, where each was dropped, and why."""
    configurations = facts.get("configurations") or []
    ranked = sorted(
        configurations, key=lambda one: (one.get("rank") is None, one.get("rank") or 0, one.get("number", 0))
    )
    series = []
    for k, one in enumerate(ranked[: caps.lines]):
        rungs = [rung for rung in one.get("rungs") or () if rung.get("examples") and rung.get("loss") is not None]
        if rungs:
            name = _name(one, 60)
            xs, ys = [float(rung["examples"]) for rung in rungs], [rung["loss"] for rung in rungs]
            series.append(Series(name, xs, ys, "line", k if k < BEST else COLOURS - 1, faint=k >= BEST))
    blocks: list[Block] = []
    if series:
        told = f"Loss of {len(series)} configurations; again and again the worse half is dropped."
        blocks.append(Chart("race", "The race", told, "examples (log)", "loss", series, x_log=True))
    shown = ranked[: caps.entries]
    rows = []
    for one in shown:
        last = (one.get("rungs") or [{}])[-1]
        ended = "to the end" if one.get("dropped_at") is None else f"at {one['dropped_at']:,}"
        rows.append(
            [
                number(one.get("rank")), _name(one, 160),
                f"{ended}{_why(one)}", number(last.get("loss")), _wrong(last),
            ]
        )  # fmt: skip
    if rows:
        strong = next((k for k, one in enumerate(shown) if one.get("number") == facts.get("winner")), None)
        columns = ["rank", "configuration", "dropped", "loss", "wrong"]
        note = cut(len(rows), len(ranked), "configurations")
        blocks.append(Table("Configurations", columns, rows, words=3, strong=strong, note=note))
    if why := facts.get("why_not"):
        blocks.insert(0, Text(f"There was no race: {inert(why, 300)}.", "note"))
    elif facts.get("ended_early"):
        blocks.insert(0, Text("The race ended early; the best so far is the winner.", "warning"))
    return Section("race", "The race of configurations", blocks or [Text("No configuration was tried.", "note")])


def _wrong(rung: dict[str, Any]) -> str:
    """The share of rows that were wrong; their number, if that of all rows is not known."""
    counted, rows = rung.get("mistakes"), rung.get("rows")
    return percent(counted / rows) if counted is not None and rows else number(counted)


def _name(one: dict[str, Any], most: int) -> str:
    """What a configuration is called: its options as they are typed."""
    return inert(one.get("spelling") or "", most) or DEFAULT


def _why(one: dict[str, Any]) -> str:
    why = one.get("why")
    if not why:
        return ""
    return ": the worse half" if why == "half" else f": {inert(why, 120)}"


# ---------------------------------------------------------------------- comparison


def compare_sections(document: dict[str, Any], caps: Caps) -> Iterator[Section]:
    """The sections of a report on a comparison."""
    facts = document["facts"]
    learners = facts.get("learners") or []
    yield Section("summary", "Summary", compare_summary(facts, learners, caps))
    curves = [*learning_curves(learners, caps), *accuracy_by_time(learners, caps)]
    if curves:
        yield Section("curves", "Learning curves", curves)
    yield from significance(facts, caps)
    notes = [inert(one, 300) for one in facts.get("notes") or ()]
    if notes:
        yield Section("decisions", "What was decided, and why", [Items(notes[: caps.notes])])


def compare_summary(facts: dict[str, Any], learners: list[dict[str, Any]], caps: Caps) -> list[Block]:
    """The table of learners, the best first; those that failed, and why."""
    done = [one for one in learners if not one.get("error")]
    done.sort(key=lambda one: _worth(one))
    numeric = any(one.get("rmse") is not None for one in done)
    blocks: list[Block] = []
    on = facts.get("tested_on") or ("" if facts.get("test_rows") is None else f"on {facts['test_rows']:,} test rows")
    if done and done[0].get("accuracy") is not None:
        best = f"{inert(done[0]['name'])} is right most often: {percent(done[0]['accuracy'])} ({inert(on, 100)})."
        blocks.append(Text(best.replace(" ().", "."), "lead"))
    elif done and numeric:
        best = f"{inert(done[0]['name'])} is off by least: RMSE {number(done[0]['rmse'])} ({inert(on, 100)})."
        blocks.append(Text(best.replace(" ().", "."), "lead"))
    tiles = [Tile("learners", number(len(learners)))]
    known = (("rows", "rows", "learned from"), ("test_rows", "test rows", "the same for all"))
    tiles += [Tile(name, number(facts[key]), note) for key, name, note in known if facts.get(key)]
    blocks.append(Tiles(tiles))
    keys = {"rmse": "RMSE", "mae": "MAE"} if numeric else {"accuracy": "accuracy", "log_loss": "log-loss"}
    if any(one.get("low") is not None for one in done):
        keys |= {"low": "from", "high": "to"}
    keys |= {} if numeric else {"mistakes": "mistakes"}
    rows = [
        [
            inert(one["name"]), *cells([one.get(key) for key in keys]), seconds_text(one.get("seconds")),
            bytes_text(one.get("memory_bytes")), bytes_text(one.get("model_bytes")),
        ]
        for one in done[: caps.entries]
    ]  # fmt: skip
    columns = ["learner", *keys.values(), "time", "memory", "model"]
    note = cut(len(rows), len(done), "learners")
    blocks.append(Table("Learners, the best first", columns, rows, strong=0 if rows else None, note=note))
    failed = [[inert(one["name"]), inert(one["error"], 200)] for one in learners if one.get("error")]
    if failed:
        blocks.append(Table("Failed", ["learner", "why"], failed[: caps.entries], words=2))
    return blocks


def _worth(one: dict[str, Any]) -> tuple[bool, float]:
    """What learners are sorted by: accuracy, or the error."""
    if one.get("accuracy") is not None:
        return False, -one["accuracy"]
    return one.get("rmse") is None, one.get("rmse") or 0.0


def learning_curves(learners: list[dict[str, Any]], caps: Caps) -> Iterator[Block]:
    """Progressive loss of each learner."""
    series = []
    for k, one in enumerate(learners[: caps.lines]):
        curve = [entry for entry in one.get("curve") or () if entry.get("seen") and entry.get("loss") is not None]
        if curve:
            xs, ys = [float(entry["seen"]) for entry in curve], [entry["loss"] for entry in curve]
            series.append(Series(inert(one["name"], 40), xs, ys, place=k))
    if series:
        told = f"Mean loss so far of {len(series)} learners, each example scored before it is learned from."
        yield Chart(
            "curves-loss", "Progressive loss", told, "examples seen (log)", "mean loss so far", series, x_log=True
        )


def accuracy_by_time(learners: list[dict[str, Any]], caps: Caps) -> Iterator[Block]:
    """Accuracy against time: the upper left corner is where one wants to be."""
    series = [
        Series(inert(one["name"], 40), [one["seconds"]], [one["accuracy"]], "points", k)
        for k, one in enumerate(learners[: caps.lines])
        if one.get("seconds") and one.get("accuracy") is not None
    ]
    if len(series) > 1:
        told = "Accuracy against the time of training: further up is right more often, further left is sooner done."
        yield Chart("by-time", "Accuracy and time", told, "seconds (log)", "accuracy", series, x_log=True)


def significance(facts: dict[str, Any], caps: Caps) -> Iterator[Section]:
    """Which differences are more than noise."""
    pairs = facts.get("pairs") or []
    rows = []
    for one in pairs[: caps.entries]:
        p = one.get("adjusted", one.get("p"))
        shown = one.get("shown", p is not None and p < 0.05)
        verdict = NOTHING if p is None else "differs" if shown else "may be noise"
        rows.append(
            [
                inert(one["a"]), inert(one["b"]), inert(one.get("measure", "accuracy")).replace("_", " "),
                inert(one.get("test", "")), verdict, _chance(p),
                *map(_signed, (one.get("difference"), one.get("low"), one.get("high"))),
            ]
        )  # fmt: skip
    if rows:
        columns = ["learner", "against", "by", "test", "verdict", "p", "difference", "from", "to"]
        table = Table("Pairs of learners", columns, rows, words=5, note=cut(len(rows), len(pairs), "pairs"))
        told = "A difference counts if chance would make one as large in fewer than 1 of 20 comparisons (p < 0.05)"
        told += ", adjusted for their number." if any("adjusted" in one for one in pairs) else "."
        yield Section("pairs", "Differences, and whether they are noise", [Text(told, "note"), table])


def _chance(p: float | None) -> str:
    return NOTHING if p is None else "< 0.0001" if p < 1e-4 else f"{p:.4f}"


def _signed(value: float | None) -> str:
    """A difference with its sign."""
    return NOTHING if value is None else f"{value:+.4f}".replace("-", "\u2212") if abs(value) < 100 else number(value)
