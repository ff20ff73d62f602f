"""Sections on the quality of predictions: curves, reliability, confusion, weights, the rows most wrong, bad rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from onlearn.inert_text import NOTHING, inert, number
from onlearn.report.blocks import Bar, Bars, Block, Caps, Section, Table, Text, cut
from onlearn.report.charts import Chart, HeatMap, Series

EMPTY = "(empty)"  # a label without characters


def evaluated(figures: dict[str, Any], evidence: dict[str, Any], of: str, caps: Caps) -> Iterator[Section]:
    """How good the predictions are: curves, reliability, scores, confusion, and figures of each class."""
    blocks: list[Block] = [*curves(evidence), *reliability(evidence, figures), *scores(evidence, figures)]
    blocks += [*numbers(evidence), *calibration(figures), *thresholds(figures)]
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


def calibration(figures: dict[str, Any]) -> Iterator[Block]:
    """The figures of probabilities, and of scores taken for log-odds as they are."""
    before = figures.get("uncalibrated") or {}
    names = {
        "log_loss": "log-loss",
        "brier": "Brier score",
        "calibration_error": "calibration error",
        "class_calibration_error": "calibration error, mean of the classes",
    }
    rows = [
        [name, number(figures[key]), number(before.get(key))]
        for key, name in names.items()
        if figures.get(key) is not None
    ]
    if before and rows:
        yield Table("What calibration does", ["figure", "probabilities", "scores as they are"], rows)


def thresholds(figures: dict[str, Any]) -> Iterator[Block]:
    """The threshold that decides, the best one by a criterion, and what they make of the data."""
    rows = []
    for key, title in (("threshold", "in use"), ("best_threshold", "best")):
        if found := figures.get(key):
            by = f" by {inert(found['criterion'], 40)}" if found.get("criterion") else ""
            label = inert(found.get("positive") or "", 40)
            shown = [found.get(one) for one in ("probability", "precision", "recall", "f1", "accuracy")]
            rows.append([f"{title}{by}", label or NOTHING, *map(number, shown)])
    if rows:
        columns = ["threshold", "label", "probability", "precision", "recall", "F1", "accuracy"]
        yield Table("Thresholds", columns, rows, words=2)


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
        names = [inert(labels[k], 60) or EMPTY for k in order]
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
        rows = [[inert(labels[i]) or EMPTY, inert(labels[j]) or EMPTY, number(found[i][j])] for i, j in pairs[:15]]
        yield Table("Most often confused", ["label", "predicted", "rows"], rows, words=2)


def confused_pairs(found: Any, caps: Caps) -> Iterator[Block]:
    """The pairs of a confusion that is given as a list of label, predicted label and count."""
    if not found or not isinstance(found[0], (list, tuple)) or len(found[0]) != 3:
        return
    wrong = [(gold, told, count) for gold, told, count in found if gold != told]
    if wrong:
        rows = [[inert(gold), inert(told) or NOTHING, number(count)] for gold, told, count in wrong[:15]]
        yield Table("Most often confused", ["label", "predicted", "tokens"], rows, words=2)


def per_class(figures: dict[str, Any], caps: Caps) -> Iterator[Block]:
    """Precision, recall and F1 of each class."""
    found = figures.get("per_class") or {}
    if not found:
        return
    order = sorted(found, key=lambda name: -found[name]["support"])
    rows = [
        [inert(name) or EMPTY, *(number(found[name][key]) for key in ("precision", "recall", "f1", "support"))]
        for name in order[: caps.labels]
    ]
    note = cut(len(rows), len(found), "labels, the most common,")
    yield Table("Figures of each class", ["label", "precision", "recall", "F1", "rows"], rows, note=note)


def unknown(figures: dict[str, Any]) -> Iterator[Block]:
    """Labels that the model does not know, and rows without one."""
    found = figures.get("unknown_labels") or {}
    if found:
        names = ", ".join(f"{inert(name, 40)} ({count:,})" for name, count in list(found.items())[:10])
        yield Text(
            f"Labels that the model does not know count as errors: {names}{', …' if len(found) > 10 else ''}.",
            "warning",
        )
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
    told = f"For each label, the {what} that speak for it most, with their weights."
    if not facts.get("labels"):
        told = f"The {what} with the largest weights."
    lead = Text(told, "note")
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
        rows = [[f"{bad['file'].rsplit('/', 1)[-1]}:{bad['line']}", bad["reason"], bad["raw"]] for bad in one["shown"]]
        caption = f"{one['count']:,} of {one['rows']:,} rows of {one['of']} could not be read"
        note = cut(len(rows), one["count"], "bad rows, the first,")
        blocks.append(Table(caption, ["row", "reason", "content"], rows, words=3, note=note))
    if blocks:
        yield Section("bad-rows", "Rows that could not be read", blocks)
