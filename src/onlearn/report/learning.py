"""Sections of the reports on training and evaluation: figures, curves, confusion, weights and the rows most wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from onlearn.inert_text import inert, number
from onlearn.report.blocks import (
    Bar,
    Bars,
    Block,
    Caps,
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
from onlearn.report.charts import Chart, HeatMap, Series

EVALUATED = (("test", "test rows"), ("holdout", "held-out rows"), ("progressive", "rows of the first pass"))


def train_sections(document: dict[str, Any], caps: Caps) -> Iterator[Section]:
    """The sections of a report on training."""
    facts, evidence = document["facts"], document["evidence"]
    name, figures, of = main_figures(facts)
    yield Section("summary", "Summary", summary(facts, figures, of))
    yield decisions(facts, caps)
    if (progress := evidence.get("progress")) is not None:
        yield Section("learning", "How it learned", [*course(progress, facts, evidence.get("certificate"))])
    if name in ("test", "holdout"):
        yield from evaluated(figures, evidence, of, caps)
    else:
        text = "No rows were kept for testing. With --test FILE or --holdout 10% the report shows curves, confusion, "
        yield Section("quality", "How good it is", [Text(f"{text}reliability and the rows that are most wrong.", "note")])
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
    elif figures.get("rmse") is not None and n:
        worth = figures.get("r2")
        told = "" if worth is None else f"; {percent(max(0.0, worth))} of the variance is explained"
        made.append(Text(f"On {n:,} {of}, predictions are off by {number(figures['rmse'])} (RMSE){told}.", "lead"))
    names = {
        "macro_f1": ("F1", "mean of the classes"),
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
    blocks: list[Block] = [Text(one, "warning") for one in map(_sentence, facts.get("warnings") or ())][:5]
    shown: list[tuple[str, str]] = [("learner", inert(facts.get("learner", ""), 400))]
    if facts.get("labels"):
        shown.append(("labels", listed(facts["labels"], 12)))
    for key, name in (("task", "task"), ("scheme", "scheme of spans"), ("kernel", "kernel")):
        if facts.get(key):
            shown.append((name, inert(facts[key], 200)))
    if facts.get("columns"):
        shown.append(("columns", listed(facts["columns"], 12)))
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


def as_line(value: Any) -> str:
    """A value in one line: numbers in short, lists and mappings by their parts."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {as_line(inner)}" for key, inner in list(value.items())[:12])
    if isinstance(value, list):
        return ", ".join(map(as_line, value[:12])) + (", …" if len(value) > 12 else "")
    return number(value)


def listed(names: Sequence[Any], most: int) -> str:
    """The number of names, and the first of them."""
    return f"{len(names):,}: " + ", ".join(inert(one, 40) for one in names[:most]) + (", …" if len(names) > most else "")


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
            shares = [float(m) / s for m, s in zip(counted, seen)]  # type: ignore[arg-type]
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
            yield from mistakes(seen, [float(one) for one in counted], certificate)  # type: ignore[arg-type]
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
            told = f"Tokens labelled wrong in each pass, before learning from them: {wrongs[0]:,} at first, {wrongs[-1]:,} in the end."
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
    applies = [one for one in (certificate or {}).get("bounds", ()) if one.get("applies") and one.get("value")]
    told = ""
    if applies:
        best = min(applies, key=lambda one: one["value"])
        series.append(Series(f"bound: {inert(best['name'], 40)}", [points[0][0], seen[-1]], [best["value"]] * 2, "guide"))
        told = f" Theory allows at most {number(best['value'])} ({best['name']})."
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
        [inert(one["name"]), "yes" if one["applies"] else "no", inert(one["why"], 200), number(one["value"])]
        for one in certificate["bounds"]
    ]
    yield Table("Mistake bounds", ["bound", "applies", "why", "at most"], rows, words=3)


# ---------------------------------------------------------------------- quality


def evaluated(figures: dict[str, Any], evidence: dict[str, Any], of: str, caps: Caps) -> Iterator[Section]:
    """How good the predictions are: curves, reliability, scores, confusion, and figures of each class."""
    blocks: list[Block] = [*curves(evidence), *reliability(evidence, figures), *scores(evidence, figures)]
    blocks += [*numbers(evidence)]
    if blocks:
        yield Section("quality", f"How good it is on {of}" if of != "rows" else "How good it is", blocks)
    classes = [*confusion(figures, caps), *per_class(figures, caps), *unknown(figures)]
    if classes:
        yield Section("classes", "Class by class", classes)


def curves(evidence: dict[str, Any]) -> Iterator[Block]:
    """ROC, and precision against recall."""
    found = evidence.get("curves") or {}
    if not found:
        return
    of, chance = found["of"], found["false_positives"]
    roc = [Series(one["name"], chance, one["roc"], place=k) for k, one in enumerate(of)]
    yield Chart(
        "roc",
        "ROC curve",
        f"True against false positive rate, {len(of)} {'curve' if len(of) == 1 else 'curves'}; the diagonal is chance.",
        "false positive rate",
        "true positive rate",
        [*roc, Series("chance", [0.0, 1.0], [0.0, 1.0], "guide")],
        x_range=(0.0, 1.0),
        y_range=(0.0, 1.0),
    )
    precision = [
        Series(f"{one['name']} (mean {number(one['average_precision'])})", found["recalls"], one["precision"], place=k)
        for k, one in enumerate(of)
    ]
    yield Chart(
        "pr",
        "Precision and recall",
        f"Precision against recall; the mean precision of {of[0]['name']} is {number(of[0]['average_precision'])}.",
        "recall",
        "precision",
        precision,
        x_range=(0.0, 1.0),
        y_range=(0.0, 1.0),
    )


def reliability(evidence: dict[str, Any], figures: dict[str, Any]) -> Iterator[Block]:
    """How often what is predicted with a probability happens."""
    found = evidence.get("reliability") or []
    if not found:
        return
    series = [Series(one["name"], one["expected"], one["happened"], place=k) for k, one in enumerate(found)]
    error = figures.get("calibration_error")
    told = "" if error is None else f" The calibration error is {number(error)}."
    yield Chart(
        "reliability",
        "Reliability",
        f"How often predictions come true, against their probability; on the diagonal they are honest.{told}",
        "predicted probability",
        "share that came true",
        [*series, Series("perfect", [0.0, 1.0], [0.0, 1.0], "guide")],
        x_range=(0.0, 1.0),
        y_range=(0.0, 1.0),
    )


def scores(evidence: dict[str, Any], figures: dict[str, Any]) -> Iterator[Block]:
    """How scores are distributed: by class if there are two, else the top probability of right and wrong rows."""
    found = evidence.get("scores") or {}
    labels = [inert(name, 40) for name in (figures.get("labels") or ["first", "second"])[:2]]
    if found and len(labels) == 2:
        series = [
            Series(name, found["edges"], found[side], "steps", place)
            for place, (name, side) in enumerate(zip(labels, ("negative", "positive")))
            if any(found[side])
        ]
        yield Chart(
            "scores",
            "Scores",
            f"The distribution of scores of each class; above 0 the prediction is {labels[1]}.",
            "score",
            "share of the class",
            [*series, Series("threshold", [0.0, 0.0], [0.0, max(max(one.y) for one in series)], "guide")],  # type: ignore[type-var]
            x_range=(min(found["edges"][0], 0.0), max(found["edges"][-1], 0.0)),
        )
    confidence = evidence.get("confidence") or []
    if confidence:
        bars = len(confidence[0])
        edges = [k / bars for k in range(bars + 1)]
        yield Chart(
            "confidence",
            "Confidence",
            "How many rows were predicted with which probability, right and wrong ones apart.",
            "probability of the predicted label",
            "rows",
            [Series("right", edges, confidence[1], "steps", 0), Series("wrong", edges, confidence[0], "steps", 1)],
            x_range=(0.0, 1.0),
        )


def numbers(evidence: dict[str, Any]) -> Iterator[Block]:
    """Of regression: predicted against true numbers, and the errors."""
    points = sorted(evidence.get("points") or [])
    if points:
        low, high = min(map(min, points)), max(map(max, points))
        yield Chart(
            "numbers",
            "Predicted and true",
            f"Predictions against true numbers, {len(points)} rows drawn from all; on the diagonal they are exact.",
            "true",
            "predicted",
            [
                Series("exact", [low, high], [low, high], "guide"),
                Series("rows", [x for x, _ in points], [y for _, y in points], "points", 0),
            ],
        )
    errors = evidence.get("errors") or {}
    if errors:
        yield Chart(
            "errors",
            "Errors",
            "How predictions differ from the true numbers.",
            "predicted - true",
            "share of rows",
            [Series("rows", errors["edges"], errors["positive"], "steps")],
        )


def confusion(figures: dict[str, Any], caps: Caps) -> Iterator[Block]:
    """Which labels are taken for which: a heat map; where labels are many, also the pairs most often confused."""
    found, labels = figures.get("confusion"), figures.get("labels") or []
    if not found or not labels or not isinstance(found[0], list) or len(found) != len(labels):
        yield from confused_pairs(found, caps)
        return
    support = [sum(row) for row in found]
    order = sorted(range(len(labels)), key=lambda k: -support[k])[: caps.cells]
    order.sort()
    if sum(support):
        names = [inert(labels[k], 60) for k in order]
        right = sum(found[k][k] for k in range(len(labels)))
        yield HeatMap(
            "confusion",
            "Confusion",
            f"Rows are true labels, columns predicted ones; {right:,} of {sum(support):,} rows are on the diagonal.",
            names,
            [[found[i][j] for j in order] for i in order],
        )
        if left := cut(len(order), len(labels), "labels, the most common,"):
            yield Text(left, "note")
    pairs = [(i, j) for i, row in enumerate(found) for j, count in enumerate(row) if i != j and count]
    pairs.sort(key=lambda pair: -found[pair[0]][pair[1]])
    if len(labels) > 2 and pairs:
        rows = [[inert(labels[i]), inert(labels[j]), number(found[i][j])] for i, j in pairs[:15]]
        yield Table("Most often confused", ["label", "predicted", "rows"], rows, words=2)


def confused_pairs(found: Any, caps: Caps) -> Iterator[Block]:
    """The pairs of a confusion that is given as a list of label, predicted label and count."""
    if not found or not isinstance(found[0], (list, tuple)) or len(found[0]) != 3:
        return
    wrong = [(gold, told, count) for gold, told, count in found if gold != told]
    if wrong:
        rows = [[inert(gold), inert(told) or "–", number(count)] for gold, told, count in wrong[:15]]
        yield Table("Most often confused", ["label", "predicted", "tokens"], rows, words=2)


def per_class(figures: dict[str, Any], caps: Caps) -> Iterator[Block]:
    """Precision, recall and F1 of each class."""
    found = figures.get("per_class") or {}
    if not found:
        return
    order = sorted(found, key=lambda name: -found[name]["support"])
    rows = [
        [inert(name), *(number(found[name][key]) for key in ("precision", "recall", "f1", "support"))]
        for name in order[: caps.labels]
    ]
    note = cut(len(rows), len(found), "labels, the most common,")
    yield Table("Figures of each class", ["label", "precision", "recall", "F1", "rows"], rows, note=note)


def unknown(figures: dict[str, Any]) -> Iterator[Block]:
    """Labels that the model does not know, and rows without one."""
    found = figures.get("unknown_labels") or {}
    if found:
        names = ", ".join(f"{inert(name, 40)} ({count:,})" for name, count in list(found.items())[:10])
        yield Text(f"Labels that the model does not know count as errors: {names}{', …' if len(found) > 10 else ''}.", "warning")
    if figures.get("unlabelled"):
        yield Text(f"{figures['unlabelled']:,} rows without a label are left out.", "note")


# ---------------------------------------------------------------------- what was learned, and where it is wrong


def learned(facts: dict[str, Any], evidence: dict[str, Any], caps: Caps) -> Iterator[Section]:
    """The largest weights for each label."""
    found = evidence.get("weights")
    if found is None:
        if why := evidence.get("why_no_weights"):
            yield Section("weights", "What it has learned", [Text(f"There are no weights to show: {why}.", "note")])
        return
    blocks: list[Block] = []
    for one in found["shown"][: caps.classes]:
        top = one["top"][: caps.weights]
        most = max((abs(weight) for _, weight in top), default=1.0) or 1.0
        bars = [Bar(name, number(float(weight)), weight / most) for name, weight in top]
        if bars:
            blocks.append(Bars(one["label"], bars))
    if not blocks:
        return
    what = "support examples" if found["of"] == "examples" else found["of"]
    lead = Text(f"For each label, the {what} that speak for it most, with their weights.", "note")
    left = cut(min(len(found["shown"]), caps.classes), found["labels"], "labels")
    if between := evidence.get("transitions"):
        rows = [[one, after, number(float(weight))] for one, after, weight in between[: caps.rows]]
        blocks.append(Table("Transitions between labels", ["from", "to", "weight"], rows, words=2))
    yield Section("weights", "What it has learned", [lead, *blocks, *([Text(left, "note")] if left else [])])


def wrong(evidence: dict[str, Any], caps: Caps) -> Iterator[Section]:
    """The rows that are most wrong."""
    worst = evidence.get("worst") or []
    if not worst:
        return
    has_probability = any(one["probability"] is not None for one in worst)
    columns = ["row", "label", "predicted", "content", "probability of its label" if has_probability else "off by"]
    rows = []
    for one in worst[: caps.rows]:
        told = number(one["probability"]) if has_probability else number(one["cost"])
        place = f"{one['file'].rsplit('/', 1)[-1]}:{one['line']}" if one["file"] else f"{one['line']}"
        rows.append([place, one["label"], one["predicted"], inert(one["text"], caps.text), told])
    lead = Text("Often it is the label that is wrong, or something is missing that would tell.", "note")
    table = Table("Rows most wrong", columns, rows, words=4)
    yield Section("wrong", "Where it is most wrong", [lead, table])


def unread(evidence: dict[str, Any]) -> Iterator[Section]:
    """Rows that could not be read."""
    blocks: list[Block] = []
    for one in evidence.get("bad") or ():
        rows = [
            [f"{bad['file'].rsplit('/', 1)[-1]}:{bad['line']}", bad["reason"], bad["raw"]] for bad in one["shown"]
        ]
        caption = f"{one['count']:,} of {one['rows']:,} rows of {one['of']} could not be read"
        note = cut(len(rows), one["count"], "bad rows, the first,")
        blocks.append(Table(caption, ["row", "reason", "content"], rows, words=3, note=note))
    if blocks:
        yield Section("bad-rows", "Rows that could not be read", blocks)


def run_section(document: dict[str, Any]) -> Section:
    """How to do it again: the command, data, seed and versions; time and memory."""
    from onlearn.report.blocks import Code

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
