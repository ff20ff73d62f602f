"""Evidence: what a report shows beyond the figures, collected while rows are evaluated.

Curves (ROC, precision and recall), reliability, the distribution of scores, the rows most wrong; of training, its
progress and the largest weights. Memory does not grow with the number of rows: scores are counted in narrow bins, and
of the rows most wrong only the worst are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from onlearn.data.arrow import in_one_piece
from onlearn.data.batch import NamedRows, is_table
from onlearn.data.formats.columnar import cell
from onlearn.engine.csr import CSR
from onlearn.inert_text import inert
from onlearn.models.evaluation import Predictions
from onlearn.report.score_counts import FALSE_POSITIVES, RECALLS, ScoreCounts

BINS = 15  # of probabilities, equally wide, as for the calibration error
CURVES = 8  # classes up to which each has curves of its own
WORST = 20  # rows
ROW = 280  # characters of a row
FEATURES = 30  # of a row that is shown
POINTS = 400  # predicted against true numbers
WEIGHTS = 10  # a label
LABELS = 24  # with their weights
NO_LABEL = "(none)"
ENTRIES = 80  # of the course of learning


class WrongRow(NamedTuple):
    """A row that was predicted wrong: where it is, what it is, and how much it cost."""

    cost: float  # -log of the probability of its label, or how far the scores, or numbers, are apart
    number: int  # in the order of evaluation
    file: str
    line: int
    label: str
    predicted: str
    probability: float | None  # of its label
    text: str


class Evidence:
    """What the pages of reports show, collected row by row.

    ``labels`` are those of the model; None in regression. An evaluation calls ``observe`` with each batch; ``to_dict``
    is plain JSON, with None where there is nothing to show.
    """

    def __init__(self, labels: Sequence[str] | None = None) -> None:
        self.labels: list[str] | None = None if labels is None else list(labels)
        self.rows: int = 0
        count = 0 if labels is None else len(labels)
        self.ranked: list[ScoreCounts] = [ScoreCounts() for _ in range(_curves(count))]
        self.reliability: np.ndarray = np.zeros((2, 3, BINS))  # top label, second of two; rows, hits, sum of them
        self.confidence: np.ndarray = np.zeros((2, BINS + 5))  # top probability of rows predicted wrong, and right
        self.errors: ScoreCounts | None = ScoreCounts() if labels is None else None
        self.points: list[tuple[float, float]] = []  # true and predicted numbers, drawn from all rows
        self.sampled: int = 0  # of so many
        self.several: bool = False  # whether rows may have several labels
        self.worst: list[WrongRow] = []
        self.bad: list[dict[str, Any]] = []
        self.more: dict[str, Any] = {}
        self._drawn = np.random.default_rng(0)

    # ------------------------------------------------------------------ rows

    def observe(self, batch: Any, gold: np.ndarray, made: Predictions) -> None:
        """Add a batch, the classes of its rows (-1: none, or unknown; in regression numbers) and their predictions.

        If rows may have several labels, both are truth values, one column a label.
        """
        if self.labels is None:
            self._observe_numbers(batch, gold, made.answers)
            return
        if gold.ndim == 2:
            self._observe_sets(batch, gold, made)
            return
        known = np.flatnonzero(gold >= 0)
        classes, answers = gold[known], made.answers[known]
        proba = None if made.proba is None else np.asarray(made.proba, dtype=np.float64)[known]
        scores = None if made.scores is None else np.asarray(made.scores, dtype=np.float64)[known]
        if len(known):
            self._rank(classes, proba, scores)
            if proba is not None:
                self._rate(classes, proba)
            self._keep_worst(batch, known, classes, answers, proba, scores)
        self.rows += len(batch)

    def observe_scores(self, classes: np.ndarray, scores: np.ndarray, proba: np.ndarray) -> None:
        """Add rows of which only scores are known, as those kept from before they were learned from."""
        if len(classes) and self.labels is not None:
            self._rank(classes, proba, scores)
            self._rate(classes, proba)
            self.more["scored_before"] = self.more.get("scored_before", 0) + len(classes)

    def _rank(self, classes: np.ndarray, proba: np.ndarray | None, scores: np.ndarray | None) -> None:
        count = len(self.labels or ())
        if count == 2 and (scores is not None or proba is not None):
            by = scores.reshape(-1) if scores is not None else log_odds(proba[:, 1])  # type: ignore[index]
            self.ranked[0].add(classes == 1, by)
        elif count > 2 and proba is not None:
            odds, right = log_odds(proba), np.zeros(proba.shape, dtype=bool)
            right[np.arange(len(classes)), classes] = True
            self.ranked[0].add(right.ravel(), odds.ravel())
            for k, ranked in enumerate(self.ranked[1:]):
                ranked.add(right[:, k], odds[:, k])

    def _rate(self, classes: np.ndarray, proba: np.ndarray) -> None:
        best = np.argmax(proba, axis=1)  # what is predicted, unless a threshold decides
        hit, top = classes == best, proba[np.arange(len(classes)), best]
        parts = [(hit, top)]
        if proba.shape[1] == 2:
            parts.append((classes == 1, proba[:, 1]))
        for table, (happened, expected) in zip(self.reliability, parts):
            _count(table, happened, expected)
        for side, mine in enumerate((~hit, hit)):
            bars = self.confidence.shape[1]
            self.confidence[side] += np.bincount(_places(top[mine], bars), minlength=bars)

    def _keep_worst(
        self,
        batch: Any,
        known: np.ndarray,
        classes: np.ndarray,
        answers: np.ndarray,
        proba: np.ndarray | None,
        scores: np.ndarray | None,
    ) -> None:
        wrong = np.flatnonzero(classes != answers)
        if not len(wrong):
            return
        if proba is not None:
            cost = -np.log(np.maximum(proba[wrong, classes[wrong]], 1e-300))
        elif scores is not None and scores.shape[1] > 1:
            cost = scores[wrong, answers[wrong]] - scores[wrong, classes[wrong]]
        else:
            cost = np.abs(scores[wrong, 0]) if scores is not None else np.ones(len(wrong))
        labels = self.labels or []
        for k in self._candidates(cost):
            place, row = int(wrong[k]), int(known[wrong[k]])
            told = None if proba is None else float(proba[place, classes[place]])
            predicted = labels[int(answers[place])] if answers[place] >= 0 else NO_LABEL
            self._keep(batch, row, float(cost[k]), labels[int(classes[place])], predicted, told)
        self._prune()

    def _candidates(self, cost: np.ndarray) -> np.ndarray:
        """The positions of the costs that may be among the worst of all; the first among equals."""
        order = np.argsort(-cost, kind="stable")[:WORST]
        least = self.worst[-1].cost if len(self.worst) >= WORST else -np.inf
        return order[cost[order] > least]

    def _keep(self, batch: Any, row: int, cost: float, label: str, predicted: str, probability: float | None) -> None:
        line = int(batch.lines[row])
        text = row_text(batch.parsed, row)
        self.worst.append(
            WrongRow(
                cost, self.rows + row, inert(batch.file, 200), line, inert(label), inert(predicted), probability, text
            )
        )

    def _prune(self) -> None:
        self.worst = sorted(self.worst, key=lambda one: (-one.cost, one.number))[:WORST]

    def _observe_numbers(self, batch: Any, gold: np.ndarray, predicted: np.ndarray) -> None:
        known = np.flatnonzero(~np.isnan(gold))
        error = np.asarray(predicted, dtype=np.float64)[known] - gold[known]
        assert self.errors is not None
        self.errors.add(np.ones(len(known), dtype=bool), error)
        self._sample(gold[known], np.asarray(predicted, dtype=np.float64)[known])
        for k in self._candidates(np.abs(error)):
            row = int(known[k])
            self._keep(batch, row, float(abs(error[k])), f"{gold[row]:.6g}", f"{predicted[row]:.6g}", None)
        self._prune()
        self.rows += len(batch)

    def _observe_sets(self, batch: Any, gold: np.ndarray, made: Predictions) -> None:
        """Rows of several labels: each pair of a row and a label counts as one prediction."""
        self.several = True
        answers = np.asarray(made.answers, dtype=bool)
        cost = (gold != answers).sum(axis=1).astype(np.float64)
        if made.proba is not None and gold.size:
            proba = np.asarray(made.proba, dtype=np.float64)
            if self.ranked:
                self.ranked[0].add(gold.ravel(), log_odds(proba).ravel())
            _count(self.reliability[0], gold.ravel(), proba.ravel())
            told = np.clip(np.where(gold, proba, 1 - proba), 1e-300, 1)
            cost = np.where(cost > 0, -np.log(told).sum(axis=1), 0.0)
        labels = np.array(self.labels, dtype=object)
        for k in self._candidates(cost):
            if cost[k] > 0:
                right, found = (", ".join(labels[one[k]]) or NO_LABEL for one in (gold, answers))
                self._keep(batch, int(k), float(cost[k]), right, found, None)
        self._prune()
        self.rows += len(batch)

    def _sample(self, gold: np.ndarray, predicted: np.ndarray) -> None:
        """Keep each row so far with the same chance, the same ones in each run (Vitter's algorithm R)."""
        room = max(0, POINTS - len(self.points))
        self.points += zip(gold[:room].tolist(), predicted[:room].tolist())
        before, gold, predicted = self.sampled + min(room, len(gold)), gold[room:], predicted[room:]
        places = self._drawn.integers(0, before + 1 + np.arange(len(gold)))
        for k in np.flatnonzero(places < POINTS).tolist():
            self.points[places[k]] = (float(gold[k]), float(predicted[k]))
        self.sampled = before + len(gold)

    def observe_sentences(self, sentences: Any, names: list[str], codes: np.ndarray, found: np.ndarray) -> None:
        """Add sentences, the names and codes of their labels, and the label predicted for each token."""
        labels = np.array([*names, ""], dtype=object)[codes]
        wrong = np.concatenate([[0], np.cumsum(labels != found)])
        offsets = sentences.offsets
        cost = (wrong[offsets[1:]] - wrong[offsets[:-1]]).astype(np.float64)
        for k in self._candidates(cost):
            if cost[k] > 0:
                first, last = int(offsets[k]), int(offsets[k + 1])
                at = next(t for t in range(first, last) if labels[t] != found[t])
                words = [str(word) for word in sentences.words[max(first, at - 8) : min(last, at + 24)]]
                shown = f"{at - first + 1}: {words[at - max(first, at - 8)]}"
                number = self.rows + int(k)
                label, told = inert(f"{labels[at]} at {shown}"), inert(found[at])
                text = inert(" ".join(words), ROW)
                self.worst.append(WrongRow(float(cost[k]), number, "", number + 1, label, told, None, text))
        self._prune()
        self.rows += len(sentences)

    def include(self, other: Evidence, lines: int = 0) -> None:
        """Add the rows of another evidence, which come after these; their lines, and ``lines`` before them, are told.

        The points that are drawn are of a sample of all rows, but not the one that is drawn row by row.
        """
        for mine, more in zip(self.ranked, other.ranked):
            mine.include(more)
        if self.errors is not None and other.errors is not None:
            self.errors.include(other.errors)
        self.reliability += other.reliability
        self.confidence += other.confidence
        self.several = self.several or other.several
        self.worst += [one._replace(number=one.number + self.rows, line=one.line + lines) for one in other.worst]
        self._prune()
        self._join_samples(other)
        self.rows += other.rows

    def _join_samples(self, other: Evidence) -> None:
        """A sample of the rows of both, in which each row has the same chance."""
        mine, others = self.sampled, other.sampled
        self.sampled = mine + others
        if not other.sampled:
            return
        taken = [0, 0]  # of the rows here, and of the others
        for chance in self._drawn.random(min(POINTS, self.sampled)):
            side = int(chance * (mine + others - sum(taken)) >= mine - taken[0])
            taken[side] += 1
        here, there = (
            np.sort(self._drawn.permutation(len(points))[:count])
            for points, count in zip((self.points, other.points), taken)
        )
        self.points = [self.points[k] for k in here] + [other.points[k] for k in there]

    # ------------------------------------------------------------------ what is known besides

    def note_bad(self, bad: Any, of: str) -> None:
        """The first bad rows of ``bad``, a ``BadRows``; ``of`` says which data they are of."""
        if not bad.count:
            return
        shown = [
            {
                "file": inert(file, 200),
                "line": one.line,
                "column": one.column,
                "reason": inert(one.reason, 200),
                "raw": inert(one.raw[: 4 * ROW].decode("utf-8", "replace"), 200),
            }
            for file, one in bad.examples
        ]
        self.bad.append({"of": of, "count": bad.count, "rows": bad.rows, "shown": shown})

    def note_progress(self, history: dict[str, list[dict[str, float]]]) -> None:
        """The course of learning, as ``history_`` of a learner gives it."""
        passes, doubling = history.get("passes", []), list(history.get("doubling", []))
        seen = sum(entry.get("seen", 0.0) for entry in passes)
        if doubling and seen > doubling[-1]["seen"]:  # all passes together end the curve
            loss = sum(entry["seen"] * entry["loss"] for entry in passes) / seen
            mistakes = [entry["mistakes"] for entry in passes if "mistakes" in entry]  # in regression there are none
            doubling.append({"seen": seen, "loss": loss, **({"mistakes": sum(mistakes)} if mistakes else {})})
        self.more["progress"] = {"passes": thinned(passes, ENTRIES), "doubling": thinned(doubling, ENTRIES)}

    def note_weights(self, model: Any) -> None:
        """The largest weights of a model for each label; where there are none, why."""
        from onlearn.models.explain import is_dual, top_weights

        try:
            found = top_weights(model, WEIGHTS)
        except ValueError as error:
            self.more["why_no_weights"] = inert(str(error), 300)
            return
        shown = list(found)[:LABELS]
        self.more["weights"] = {
            "of": "examples" if is_dual(model) else "features",
            "labels": len(found),
            "shown": [
                {"label": inert(name), "top": [[inert(one, 120), weight] for one, weight in found[name]]}
                for name in shown
            ],
        }

    def note_tag_weights(self, learner: Any) -> None:
        """The attributes that weigh most for each label of a learner of sequences, and transitions between labels."""
        strong, between = learner.strongest(WEIGHTS)
        found: dict[str, list[list[Any]]] = {}
        for one in strong:
            found.setdefault(one.label, []).append([inert(one.attribute, 120), float(one.weight)])
        self.more["weights"] = {
            "of": "attributes",
            "labels": len(found),
            "shown": [{"label": inert(name), "top": found[name]} for name in list(found)[:LABELS]],
        }
        self.more["transitions"] = [[inert(one.attribute), inert(one.label), float(one.weight)] for one in between]

    # ------------------------------------------------------------------ all of it

    def to_dict(self) -> dict[str, Any]:
        """All evidence as plain JSON."""
        made: dict[str, Any] = {"rows": self.rows, **self.more}
        if self.labels is None:
            made["errors"] = self.errors.histogram() if self.errors is not None and self.rows else {}
            made["points"] = [list(point) for point in self.points]
        else:
            made["curves"] = self._curves()
            made["reliability"] = self._reliability()
            made["scores"] = self.ranked[0].histogram() if len(self.labels) == 2 and not self.several else {}
            total = self.confidence.sum()
            made["confidence"] = self.confidence.tolist() if total and len(self.labels) > 2 else []
        made["worst"] = [one._asdict() for one in self.worst]
        made["bad"] = self.bad
        return made

    def _curves(self) -> dict[str, Any]:
        assert self.labels is not None
        names = ["all labels"] if self.several else ["all classes", *self.labels]
        names = [self.labels[1]] if len(self.labels) == 2 and not self.several else names
        made = [
            {
                "name": inert(name),
                "roc": ranked.roc().round(5).tolist(),
                "precision": ranked.precision().round(5).tolist(),
                "average_precision": ranked.average_precision(),
            }
            for name, ranked in zip(names, self.ranked)
            if ranked.has_both
        ]
        if not made:
            return {}
        return {"false_positives": FALSE_POSITIVES.tolist(), "recalls": RECALLS.tolist(), "of": made}

    def _reliability(self) -> list[dict[str, Any]]:
        assert self.labels is not None
        names = ["predicted label", *([self.labels[1]] if len(self.labels) == 2 else [])]
        names = ["all labels"] if self.several else names
        return [
            {
                "name": inert(name),
                "rows": rows[there].astype(int).tolist(),
                "expected": (expected[there] / rows[there]).tolist(),
                "happened": (hits[there] / rows[there]).tolist(),
            }
            for name, (rows, hits, expected) in zip(names, self.reliability)
            if (there := np.flatnonzero(rows)).size
        ]


def _curves(labels: int) -> int:
    """How many curves are collected: of two classes one; of several one for all, and one each if they are few."""
    return 0 if labels < 2 else 1 if labels == 2 else 1 + (labels if labels <= CURVES else 0)


def _count(table: np.ndarray, happened: np.ndarray, expected: np.ndarray) -> None:
    """Add predictions to a table of rows, of how many came true, and of the sum of their probabilities, by bin."""
    places = _places(expected, BINS)
    for row, amounts in zip(table, (None, happened, expected)):
        row += np.bincount(places, weights=amounts, minlength=BINS)


def _places(shares: np.ndarray, bins: int) -> np.ndarray:
    return np.clip(np.nan_to_num(shares * bins), 0, bins - 1).astype(np.int64)


def log_odds(proba: Any) -> np.ndarray:
    """log p / (1 - p): it tells probabilities near 0 and 1 apart."""
    p = np.clip(np.asarray(proba, dtype=np.float64), 1e-15, 1 - 1e-15)
    return np.log(p) - np.log1p(-p)


def thinned(entries: Sequence[Any], most: int) -> list[Any]:
    """At most so many of the entries, evenly spread, the first and the last among them.

    >>> thinned(range(11), 3)
    [0, 5, 10]
    """
    if len(entries) <= most:
        return list(entries)
    return [entries[k] for k in np.linspace(0, len(entries) - 1, most).round().astype(int)]


def row_text(rows: Any, row: int) -> str:
    """A row in one short line, as far as that shows it: a text, cells by column, or features with their values."""
    if is_table(rows):
        here = rows.slice(row, 1)
        values = (cell(in_one_piece(column)) for column in here.columns)
        cells = {name: value for name, value in zip(here.column_names, values) if value is not None}
        if len(cells) == 1:
            return inert(next(iter(cells.values())), ROW)
        return inert("; ".join(f"{inert(name, 40)}: {_cell(value)}" for name, value in cells.items()), ROW)
    if isinstance(rows, NamedRows):
        first, last = int(rows.indptr[row]), int(rows.indptr[row + 1])
        parts = [_valued(rows.name(k), float(rows.values[k])) for k in range(first, min(last, first + FEATURES))]
        return inert(" ".join([*parts, *(["…"] if last - first > FEATURES else [])]), ROW)
    if isinstance(rows, CSR):
        first, last = int(rows.indptr[row]), int(rows.indptr[row + 1])
        parts = [f"{rows.indices[k]}:{rows.data[k]:.4g}" for k in range(first, min(last, first + FEATURES))]
        return inert(" ".join([*parts, *(["…"] if last - first > FEATURES else [])]), ROW)
    return inert(rows[row], ROW)


def _cell(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else inert(value, ROW)


def _valued(name: str, value: float) -> str:
    return name if value == 1.0 else f"{name}:{value:.4g}"
