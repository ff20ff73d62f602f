"""Sections of the reports on training and evaluation: the summary, decisions, the course of learning, and the run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from onlearn.inert_text import as_line, inert, number, number_of
from onlearn.report.blocks import (
    Block,
    Caps,
    Code,
    Facts,
    Items,
    Section,
    Table,
    Text,
    Tile,
    Tiles,
    bytes_text,
    cut,
    percent,
    seconds_text,
)
from onlearn.report.charts import Chart, Series
from onlearn.report.contests import race_section
from onlearn.report.quality import curves, evaluated, learned, reliability, scores, unread, wrong

EVALUATED = (("test", "test rows"), ("holdout", "held-out rows"), ("progressive", "rows of the first pass"))


def train_sections(document: dict[str, Any], caps: Caps) -> Iterator[Section]:
    """The sections of a report on training."""
    facts, evidence = document["facts"], document["evidence"]
    name, figures, of = main_figures(facts)
    yield Section("summary", "Summary", summary(facts, figures, of))
    yield decisions(facts, caps)
    if facts.get("tuning"):
        yield race_section(facts["tuning"], caps)
    if (progress := evidence.get("progress")) is not None:
        yield Section("learning", "How it learned", [*course(progress, facts, evidence.get("certificate"))])
    if name in ("test", "holdout"):
        yield from evaluated(figures, evidence, of, caps)
    elif evidence.get("scored_before"):
        text = (
            f"No rows were kept for testing: these are scores of {evidence['scored_before']:,} rows before they were "
        )
        text += "learned from, and the probabilities are fitted to them. --test FILE or --holdout 10% tells more."
        blocks = [*curves(evidence), *reliability(evidence, {}), *scores(evidence, facts)]
        yield Section("quality", "How good it was while it learned", [Text(text, "note"), *blocks])
    else:
        text = "No rows were kept for testing. With --test FILE or --holdout 10% the report shows curves, confusion, "
        yield Section(
            "quality", "How good it is", [Text(f"{text}reliability and the rows that are most wrong.", "note")]
        )
    yield from learned(facts, evidence, caps)
    yield from wrong(evidence, caps)
    yield from unread(evidence)


def evaluate_sections(document: dict[str, Any], caps: Caps) -> Iterator[Section]:
    """The sections of a report on an evaluation."""
    facts, evidence = document["facts"], document["evidence"]
    yield Section("summary", "Summary", summary(facts, facts, "rows"))
    yield from evaluated(facts, evidence, "rows", caps)
    yield from learned(facts, evidence, caps)
    yield from wrong(evidence, caps)
    yield from unread(evidence)


def main_figures(facts: dict[str, Any]) -> tuple[str | None, dict[str, Any], str]:
    """The figures that count most: those of test rows, or else of held-out ones, or else of the first pass."""
    for name, of in EVALUATED:
        if facts.get(name):
            return name, facts[name], of
    return None, {}, ""


# ---------------------------------------------------------------------- summary


def summary(facts: dict[str, Any], figures: dict[str, Any], of: str) -> list[Block]:
    """A sentence for those who read no further, and the main figures."""
    tiles: list[Tile] = []
    accuracy, majority, n = figures.get("accuracy"), figures.get("majority"), figures.get("n")
    made: list[Block] = []
    if accuracy is not None and n:
        better = "" if majority is None else f"; always the most common label would be right on {percent(majority)}"
        made.append(Text(f"Of {n:,} {of}, {percent(accuracy)} are predicted right{better}.", "lead"))
        tiles.append(Tile("accuracy", number(float(accuracy)), f"on {n:,} {of}"))
    elif figures.get("subset_accuracy") is not None and n:
        right = percent(figures["subset_accuracy"])
        f1 = "" if figures.get("micro_f1") is None else f"; F1 over all labels is {number(figures['micro_f1'])}"
        made.append(Text(f"Of {n:,} {of}, {right} have exactly the right labels predicted{f1}.", "lead"))
    elif figures.get("pairwise_accuracy") is not None:
        right = percent(figures["pairwise_accuracy"])
        made.append(Text(f"Of all pairs of rows that differ in relevance, {right} are put in the right order.", "lead"))
    elif figures.get("rmse") is not None and n:
        worth = figures.get("r2")
        told = "" if worth is None else f"; {percent(max(0.0, worth))} of the variance is explained"
        made.append(Text(f"On {n:,} {of}, predictions are off by {number(figures['rmse'])} (RMSE){told}.", "lead"))
    names = {
        "subset_accuracy": ("all labels right", "share of rows"),
        "micro_f1": ("F1 over all labels", "labels of all rows together"),
        "macro_f1": ("F1", "mean of the classes"),
        "hamming_loss": ("Hamming loss", "share of wrong labels"),
        "precision_at_1": ("precision of the best", "label of a row"),
        "precision_at_3": ("precision of the best 3", "labels of a row"),
        "precision_at_5": ("precision of the best 5", "labels of a row"),
        "labels_a_row": ("labels a row", ""),
        "pairwise_accuracy": ("pairs in order", "of different relevance"),
        "ndcg_at_1": ("NDCG of the first", "of each group"),
        "ndcg_at_5": ("NDCG of the first 5", "of each group"),
        "ndcg_at_10": ("NDCG of the first 10", "of each group"),
        "auc": ("AUC", "area under the ROC curve"),
        "log_loss": ("log-loss", "of the probabilities"),
        "brier": ("Brier score", "of the probabilities"),
        "calibration_error": ("calibration error", "0 is perfect"),
        "rmse": ("RMSE", "root of the mean squared error"),
        "mae": ("MAE", "mean absolute error"),
        "r2": ("R²", "1 is perfect"),
    }
    tiles += [Tile(name, number(figures[key]), note) for key, (name, note) in names.items() if is_number(figures, key)]
    progressive = facts.get("progressive") or {}
    if progressive.get("mistakes") is not None:
        seen = progressive.get("n", 0)
        tiles.append(Tile("mistakes", number(progressive["mistakes"]), f"in the first pass over {seen:,} rows"))
    if facts.get("rows") is not None:
        bad = f", {facts['bad_rows']:,} bad" if facts.get("bad_rows") else ""
        tiles.append(Tile("rows", number(facts["rows"]), f"learned from{bad}"))
    if facts.get("features") is not None:
        tiles.append(Tile("features", number(facts["features"])))
    if facts.get("seconds") is not None:
        tiles.append(Tile("time", seconds_text(facts["seconds"]), f"{facts.get('passes', 1)} passes"))
    return [*made, Tiles(tiles)] if tiles else made


def is_number(figures: dict[str, Any], key: str) -> bool:
    """Whether there is such a figure."""
    return isinstance(figures.get(key), (int, float))


def decisions(facts: dict[str, Any], caps: Caps) -> Section:
    """What was decided, and why."""
    blocks: list[Block] = [*(Text(_sentence(one), "warning") for one in (facts.get("warnings") or ())[:5])]
    shown: list[tuple[str, str]] = [("learner", inert(facts.get("learner", ""), 400))]
    if facts.get("labels"):
        shown.append(("labels", number_of(facts["labels"], 12)))
    for key, name in (("task", "task"), ("scheme", "scheme of spans"), ("kernel", "kernel")):
        if facts.get(key):
            shown.append((name, inert(facts[key], 200)))
    if facts.get("columns"):
        shown.append(("columns", number_of(facts["columns"], 12)))
    if facts.get("support_examples") is not None:
        shown.append(("support examples", number(facts["support_examples"])))
    if facts.get("mixture"):
        shown.append(("mixture", inert(facts["mixture"].get("theorem", ""), 400)))
    for key, value in list((facts.get("described") or {}).items())[:20]:
        shown.append((inert(key.replace("_", " "), 40), inert(as_line(value), 300)))
    passes = facts.get("passes")
    if passes is not None:
        shown.append(("passes", f"{passes:,}" + (" (stopped early)" if facts.get("stopped") else "")))
    if facts.get("hashed_features"):
        told = f"about {facts['hashed_features']:,.0f} share {facts['hashed_weights']:,} weights, about "
        shown.append(("hashed features", f"{told}{facts['estimated_collisions']:,.0f} collisions"))
    blocks.append(Facts(shown))
    notes = [_sentence(one) for one in facts.get("notes") or ()]
    if notes:
        blocks.append(Items(notes[: caps.notes]))
        if left := cut(min(caps.notes, len(notes)), len(notes), "decisions"):
            blocks.append(Text(left, "note"))
    return Section("decisions", "What was decided, and why", blocks)


def _sentence(text: object) -> str:
    return inert(text, 400)


# ---------------------------------------------------------------------- the course of learning


def course(progress: dict[str, Any], facts: dict[str, Any], certificate: dict[str, Any] | None) -> Iterator[Block]:
    """Progressive loss and mistakes against the number of examples, both on a logarithmic scale."""
    passes = progress.get("passes") or []
    entries = [one for one in progress.get("doubling") or () if one.get("seen")]
    seen = [float(one["seen"]) for one in entries]
    if len(seen) >= 1:
        series = [Series("mean loss", seen, [one.get("loss") for one in entries], place=0)]
        counted = [one.get("mistakes") for one in entries]
        classifies = facts.get("task", "classify") != "regress" and all(one is not None for one in counted)
        if classifies:
            shares = [float(m) / s for m, s in zip(counted, seen)]
            series.append(Series("share of mistakes", seen, shares, place=1))
        yield Chart(
            "progressive",
            "Progressive loss",
            "Mean loss over all examples so far, each scored before it is learned from: "
            f"{number(series[0].y[0])} at first, {number(series[0].y[-1])} in the end.",
            "examples seen (log)",
            "mean so far",
            series,
            x_log=True,
        )
        if classifies:
            yield from mistakes(seen, [float(one) for one in counted], certificate)
    if len(passes) > 1:
        turns = [float(k + 1) for k in range(len(passes))]
        yield Chart(
            "passes",
            "Loss by pass",
            f"Mean loss within each of {len(passes)} passes: from {number(passes[0].get('loss'))} to "
            f"{number(passes[-1].get('loss'))}.",
            "pass",
            "mean loss",
            [Series("mean loss", turns, [one.get("loss") for one in passes])],
        )
        if all(one.get("wrong") is not None for one in passes):
            wrongs = [one["wrong"] for one in passes]
            told = (
                f"Tokens labelled wrong before learning from them: {wrongs[0]:,} at first, {wrongs[-1]:,} in the end."
            )
            series = [Series("tokens wrong", turns, wrongs, place=1)]
            yield Chart("wrong-tokens", "Tokens wrong by pass", told, "pass", "tokens wrong", series)
    if certificate is not None:
        yield from bounds_of(certificate)


def mistakes(seen: list[float], counts: list[float], certificate: dict[str, Any] | None) -> Iterator[Block]:
    """Mistakes so far, with the bound on them where one is known."""
    points = [(x, y) for x, y in zip(seen, counts) if y > 0]
    if not points:
        yield Text("It made no mistake.", "note")
        return
    series = [Series("mistakes", [x for x, _ in points], [y for _, y in points], place=0)]
    applies = [
        one
        for one in (certificate or {}).get("bounds", ())
        if one.get("applies") and one.get("value") and one.get("counted") is None  # else it limits another count
    ]
    told = ""
    if applies:
        best = min(applies, key=lambda one: one["value"])
        series.append(
            Series(
                f"bound: {inert(best['name'], 40).replace('_', ' ')}",
                [points[0][0], seen[-1]],
                [best["value"]] * 2,
                "guide",
            )
        )
        told = f" Theory allows at most {number(best['value'])} ({best['name'].replace('_', ' ')})."
    yield Chart(
        "mistakes",
        "Mistakes",
        f"Mistakes so far against examples seen: {number(int(counts[-1]))} after {number(int(seen[-1]))}.{told}",
        "examples seen (log)",
        "mistakes (log)",
        series,
        x_log=True,
        y_log=True,
    )


def bounds_of(certificate: dict[str, Any]) -> Iterator[Block]:
    """The bounds of a certificate, and whether they apply."""
    rows = [
        [
            inert(one["name"]).replace("_", " "),
            "yes" if one["applies"] else "no",
            inert(one["why"], 200),
            number(one["value"]),
        ]
        for one in certificate["bounds"]
    ]
    yield Table("Mistake bounds", ["bound", "applies", "why", "at most"], rows, words=3)


def run_section(document: dict[str, Any]) -> Section:
    """How to do it again: the command, data, seed and versions; time and memory."""
    facts, measured = document["facts"], document["measured"]
    blocks: list[Block] = [Code(inert(document["command"], 2000))] if document["command"] else []
    shown: list[tuple[str, str]] = []
    for key, name in (("data", "data"), ("sources", "data"), ("test_data", "test data")):
        value = facts.get(key) or document["evidence"].get(key)
        if value:
            names = value if isinstance(value, list) else [value]
            shown.append((name, ", ".join(inert(one, 200) for one in names[:8]) + (", …" if len(names) > 8 else "")))
    if (seed := facts.get("seed", document["evidence"].get("seed"))) is not None:
        shown.append(("seed", str(seed)))
    if facts.get("model"):
        shown.append(("model", inert(facts["model"], 300)))
    size = facts.get("bytes") or document["evidence"].get("model_bytes")
    if size:
        shown.append(("size of the model", bytes_text(size)))
    shown.append(("versions", ", ".join(f"{name} {version}" for name, version in document["versions"].items())))
    if measured.get("seconds") is not None:
        shown.append(("time", seconds_text(measured["seconds"])))
    if measured.get("peak_memory_bytes"):
        shown.append(("most memory of the process", bytes_text(measured["peak_memory_bytes"])))
    shown.append(("written", measured["written"]))
    return Section("run", "How to do it again", [*blocks, Facts(shown)])
