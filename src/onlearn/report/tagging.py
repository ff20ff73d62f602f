"""Sections of the reports on taggers: tokens, known and unknown words, spans of each kind, labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from onlearn.inert_text import inert, number
from onlearn.report.blocks import Block, Caps, Section, Table, Text, Tile, Tiles, cut, percent, seconds_text
from onlearn.report.learning import course, decisions
from onlearn.report.quality import confused_pairs, learned, unknown, unread, wrong


def tag_sections(document: dict[str, Any], caps: Caps) -> Iterator[Section]:
    """The sections of a report on training or evaluating a tagger."""
    facts, evidence = document["facts"], document["evidence"]
    training = document["report"] == "train"
    figures = facts.get("test") or facts.get("holdout") if training else facts
    yield Section("summary", "Summary", summary(facts, figures, training))
    if training:
        yield decisions(facts, caps)
        if (progress := evidence.get("progress")) is not None:
            yield Section("learning", "How it learned", [*course(progress, {"task": "tag"}, None)])
    if figures:
        blocks = [*spans(figures, caps), *labels(figures, caps), *confused_pairs(figures.get("confusion"), caps)]
        yield Section("quality", "How good it is", [*blocks, *unknown(figures)])
    else:
        text = "No sentences were kept for testing: --test FILE or --holdout 10% shows spans and labels one by one."
        yield Section("quality", "How good it is", [Text(text, "note")])
    yield from learned(facts, evidence, caps)
    yield from wrong(evidence, caps)
    yield from unread(evidence)


def summary(facts: dict[str, Any], figures: dict[str, Any] | None, training: bool) -> list[Block]:
    """A sentence for those who read no further, and the main figures."""
    made: list[Block] = []
    tiles: list[Tile] = []
    if figures:
        found = figures.get("spans")
        told = "" if found is None else f"; of spans, F1 is {number(found['f1'])}"
        right = f"{percent(figures['accuracy'])} of {figures['tokens']:,} tokens are labelled right{told}."
        made.append(Text(right, "lead"))
        tiles.append(Tile("accuracy", number(figures["accuracy"]), f"of {figures['tokens']:,} tokens"))
        if found is not None:
            tiles += [Tile(f"{name} of spans", number(found[key])) for key, name in SPANS]
        for key, name in (("known_words", "known words"), ("unknown_words", "unknown words")):
            part = figures.get(key) or {}
            if part.get("accuracy") is not None:
                tiles.append(Tile(name, number(part["accuracy"]), f"of {part['tokens']:,} tokens"))
        tiles.append(Tile("whole sentences", number(figures["sentence_accuracy"]), f"of {figures['sentences']:,}"))
        for key, name in (("log_loss", "log-loss"), ("calibration_error", "calibration error")):
            if figures.get(key) is not None:
                tiles.append(Tile(name, number(figures[key])))
    if training:
        tiles.append(
            Tile("sentences", number(facts.get("sentences")), f"{facts.get('tokens', 0):,} tokens learned from")
        )
        tiles.append(Tile("time", seconds_text(facts.get("seconds")), f"{facts.get('passes', 1)} passes"))
    return [*made, Tiles(tiles)]


SPANS = (("f1", "F1"), ("precision", "precision"), ("recall", "recall"))


def spans(figures: dict[str, Any], caps: Caps) -> Iterator[Block]:
    """Precision, recall and F1 of the spans of each kind."""
    found = (figures.get("spans") or {}).get("by_type") or {}
    if found:
        yield _table("Spans of each label", "span", found, "gold", "spans", caps)


def labels(figures: dict[str, Any], caps: Caps) -> Iterator[Block]:
    """Precision, recall and F1 of each label."""
    found = figures.get("per_label") or {}
    if found:
        yield _table("Labels of tokens", "label", found, "support", "tokens", caps)


def _table(caption: str, what: str, found: dict[str, Any], count: str, unit: str, caps: Caps) -> Table:
    order = sorted(found, key=lambda name: -found[name][count])[: caps.labels]
    rows = [
        [inert(name), *(number(found[name][key]) for key in ("precision", "recall", "f1", count))] for name in order
    ]
    note = cut(len(rows), len(found), "labels, the most common,")
    return Table(caption, [what, "precision", "recall", "F1", unit], rows, note=note)
