"""Sections of the reports on mistake bounds and on published results that were computed again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from onlearn.inert_text import inert, number
from onlearn.report.blocks import Block, Caps, Facts, Section, Table, Text, Tile, Tiles, seconds_text
from onlearn.report.charts import Chart, Series

# ---------------------------------------------------------------------- bounds


def bounds_sections(document: dict[str, Any], caps: Caps) -> Iterator[Section]:
    """The sections of a report on a bound, or on which family of learners suits data."""
    facts = document["facts"]
    if "advice" in facts:
        yield from advice_sections(facts)
        return
    value, name = facts.get("value"), inert(facts.get("bound", "bound")).replace("_", " ")
    if name == "best eta":
        told = f"The best rate is {number(value)}."
    elif value is None:
        told = "There is no bound: the theorem promises nothing for these numbers."
    else:
        told = f"At most {number(value)} mistakes."
    tiles = [
        Tile(name, "∞" if value is None else number(value), "at most so many mistakes" if name != "best eta" else "")
    ]
    more = [(key, number(one)) for key, one in facts.items() if key not in ("bound", "arguments", "value", "about")]
    given = [(key, number(one)) for key, one in (facts.get("arguments") or {}).items()]
    blocks: list[Block] = [Text(told, "lead"), Tiles(tiles), Text(inert(facts.get("about", ""), 400), "note")]
    yield Section("summary", "Summary", blocks)
    if given or more:
        yield Section("numbers", "The numbers it is for", [Facts([*given, *more])])


def advice_sections(facts: dict[str, Any]) -> Iterator[Section]:
    """Additive or multiplicative, why, and the runs of both."""
    known = {True: "yes", False: "no", None: "not known"}[facts.get("separable")]
    tiles = [
        Tile("advice", inert(facts["advice"])),
        Tile("additive", number(facts.get("additive_bound")), "mistake bound"),
        Tile("multiplicative", number(facts.get("multiplicative_bound")), "mistake bound"),
        Tile("examples", number(facts.get("n_examples"))),
        Tile("features", number(facts.get("n_features"))),
        Tile("separable", known),
    ]
    yield Section(
        "summary", "Summary", [Text(f"{inert(facts['advice'])}: {inert(facts['why'], 600)}", "lead"), Tiles(tiles)]
    )
    more = [
        ("decided by", inert(facts.get("by", ""))),
        ("confirmed by the run", number(facts.get("confirmed"))),
        ("bounds for noisy data", number(facts.get("noisy"))),
        ("relevant features, about", number(facts.get("relevant"))),
        ("active features in a row", number(facts.get("active"))),
    ]
    runs = facts.get("runs") or []
    rows = [
        [inert(one["learner"], 120), inert(one["family"]), number(one["mistakes"]), number(one["passes"])]
        for one in runs
    ]
    blocks: list[Block] = [Facts(more)]
    if rows:
        fewest = min(range(len(runs)), key=lambda k: runs[k]["mistakes"])
        columns = ["learner", "family", "mistakes", "passes"]
        blocks.append(Table("Runs of both families", columns, rows, words=2, strong=fewest))
    yield Section("numbers", "The numbers behind it", blocks)


# ---------------------------------------------------------------------- published results


def reproduce_sections(document: dict[str, Any], caps: Caps) -> Iterator[Section]:
    """The sections of a report on a published table."""
    facts = document["facts"]
    lines, columns = facts.get("rows") or [], facts.get("columns") or []
    published = [value for line in lines for value in line["published"] if value is not None]
    reached = "All goals are reached." if facts.get("reached") else "Some goals are missed."
    tiles = [Tile("learners", number(len(lines))), Tile("published errors", number(len(published)), "beside ours")]
    tiles.append(Tile("time", seconds_text(sum(line.get("seconds") or 0.0 for line in lines))))
    lead = Text(f"{inert(facts.get('title', ''), 300)}. {reached}", "lead")
    yield Section("summary", "Summary", [lead, Tiles(tiles)])
    rows = []
    for line in lines[: caps.entries]:
        rows.append([inert(line["name"]), "ours", *map(number, line["ours"]), seconds_text(line.get("seconds"))])
        if line.get("mean") is not None:
            rows.append(["", f"mean of {line['seeds']} seeds", *map(number, line["mean"]), ""])
        if any(value is not None for value in line["published"]):
            rows.append(["", "published", *map(number, line["published"]), ""])
        if any(value is not None for value in line["goal"]):
            rows.append(["", "goal", *map(number, line["goal"]), ""])
    table = Table("Test errors", ["learner", "", *map(inert, columns), "time"], rows, words=2)
    yield Section("errors", "Ours beside the published ones", [*courses(lines, columns), table])


def courses(lines: list[dict[str, Any]], columns: list[str]) -> Iterator[Block]:
    """Ours against published errors: on the diagonal they are equal."""
    pairs = [
        Series(inert(line["name"], 40), [p for p, _ in both], [o for _, o in both], "points", k)
        for k, line in enumerate(lines)
        if (both := sorted((p, o) for p, o in zip(line["published"], line["ours"]) if p is not None and o is not None))
    ]
    if pairs:
        most = max(max([*one.x, *(y or 0.0 for y in one.y)]) for one in pairs)
        told = "Our test errors against published ones, all settings; on the diagonal they are equal."
        guide = Series("equal", [0.0, most], [0.0, most], "guide")
        yield Chart("published", "Ours and published", told, "published test error", "our test error", [*pairs, guide])
