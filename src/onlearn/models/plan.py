"""``Plan``: what a training run is to do; and the defaults of learner, features and passes."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onlearn.data.table_roles import shown
from onlearn.engine.geometry import GEOMETRIES
from onlearn.engine.learner import Learner
from onlearn.engine.rules import RULES
from onlearn.engine.spec import did_you_mean
from onlearn.errors import PlanError
from onlearn.features import FeatureMap, Interaction, Text, extractors_for, guess_roles
from onlearn.features.feature_map import NAMED, TABLE, kind_of
from onlearn.features.roles import LETTERS, OneWord, Role, Treated
from onlearn.models.train_options import BITS, MAX_NAMES

COLUMN = "text"  # the only column of files whose rows are a label and a text, as those of fastText are


def with_text(guessed: dict[str, Role], named: Collection[str]) -> dict[str, Role]:
    """The guessed roles of columns, but a text without other columns is text, whatever it looks like.

    ``named`` contains "target" if a column holds the label; then the text is not all there is.
    """
    if list(guessed) != [COLUMN] or "target" in named or guessed[COLUMN].role == "text":
        return guessed
    role = guessed[COLUMN]
    kind = OneWord if role.one_word or role.role == "ignore" else Role  # identifiers are single words
    return {COLUMN: kind("text", "there is nothing else in a row")}


def learned_from(reading: dict[str, Any], columns: list[str]) -> bool:
    """Whether a model with these options of reading and these columns has learned from labels and texts."""
    return "target" not in reading and columns == [COLUMN]


# The defaults of learner and passes are those that do well in benchmarks/raw_to_model.py.

# Rules that step along the gradient of a loss, for which rates must shrink. Other rules decide the length of a step.
GRADIENTS = ("logistic", "hinge", "squared_hinge", "lms", "epsilon")
MULTIPLICATIVE = ("winnow", "balanced", "exponentiated")

AROW_R = 0.3  # of the learner that is the default for text,
AROW_R_LETTERS = 1.0  # and for texts of one word, whose n-grams of characters are each in many rows
PASSES = 3  # for most learners, and the fewest
AVERAGED = {"rule": "logistic", "geometry": "adagrad", "stabilizer": "averaged"}  # the learner that takes more
MOST = 20  # passes
EXAMPLES = 400_000  # over all passes, at most, if there are more than PASSES
VALUES = 20_000_000  # that are not zero, likewise


def default_learner(task: str, features: FeatureMap, choices: dict[str, Any] | None = None) -> Any:
    """A learner that suits the task and the kind of features, with the given choices.

    Text has many rare words, and a learner must make the most of their few examples: AROW, not averaged. Columns of a
    table, and features of unknown kind, are learned by logistic regression, which predicts probabilities.
    """
    choices = choices or {}
    if task == "regress":
        return Learner(
            "OnlineRegressor", **with_choices({"rule": "lms", "geometry": "adagrad(0.5)"}, choices, "averaged")
        )
    if is_text(features):
        r = AROW_R_LETTERS if is_letters(features) else AROW_R
        made = with_choices({"rule": f"pa2({1 / (2 * r)!r})", "geometry": f"arow({r})"}, choices, "last")
    else:
        made = with_choices({"rule": "logistic", "geometry": "adagrad(0.1)"}, choices, "averaged")
    return Learner("OnlineClassifier", **made)


def with_choices(usual: dict[str, Any], choices: dict[str, Any], stabilizer: str) -> dict[str, Any]:
    """The choices, completed by what suits them: the usual rule, geometry and stabilizer where possible.

    ``stabilizer`` is the usual one with the usual geometry.
    """
    rule, geometry = choices.get("rule"), choices.get("geometry")
    if rule is None and choices.get("multiclass") == "softmax":
        rule = "logistic"  # the only rule with softmax
    if rule is not None and geometry is None:
        geometry = geometry_for(rule, usual)
    elif geometry is not None and rule is None:
        rule = rule_for(geometry, usual)
    made = {**usual, **{name: one for name, one in (("rule", rule), ("geometry", geometry)) if one is not None}}
    kind = GEOMETRIES.get(made["geometry"]).name
    if kind in ("ftrl", "scinol"):
        made["stabilizer"] = "last"  # a mean of weights is not sparse; nor better, where steps shrink by themselves
    else:
        made["stabilizer"] = stabilizer if kind == GEOMETRIES.get(usual["geometry"]).name else "averaged"
    return {**made, **choices}


def geometry_for(rule: Any, usual: dict[str, Any]) -> Any:
    """The usual geometry for the usual rule; for others, one whose rates shrink if the rule needs that."""
    kind = RULES.get(rule).name
    if kind == RULES.get(usual["rule"]).name:
        return usual["geometry"]
    if kind not in GRADIENTS:
        return "additive"
    return usual["geometry"] if GEOMETRIES.get(usual["geometry"]).name == "adagrad" else "adagrad(0.1)"


def rule_for(geometry: Any, usual: dict[str, Any]) -> Any:
    """The usual rule, but in classification the rule that named learners combine with this geometry."""
    chosen = GEOMETRIES.get(geometry)
    if RULES.get(usual["rule"]).name == "lms":
        return usual["rule"]
    if chosen.name in MULTIPLICATIVE:
        return "perceptron"
    if chosen.name == "arow":
        return f"pa2({1 / (2 * chosen.r)!r})"
    return "logistic" if chosen.name in ("ftrl", "scinol") else usual["rule"]


def default_passes(learner: Any, features: FeatureMap, rows: int, values: int) -> int:
    """The number of passes over data of so many rows, with so many values that are not zero.

    Averaged AdaGrad has not converged after three passes over a small file; more of them are cheap. Of a file that is
    small enough for that, it is the most passes: a trial decides how many improve it (see ``trial``).
    """
    if learner.usual_passes is not None:
        return int(learner.usual_passes)
    if not takes_more_passes(learner, features):
        return PASSES
    enough = min(EXAMPLES / max(1, rows), VALUES / max(1, values))
    return min(max(PASSES, math.ceil(enough)), MOST)


def takes_more_passes(learner: Any, features: FeatureMap) -> bool:
    """Whether more passes may be worth while than the usual number."""
    chosen = {name: made.name for name, made in learner.choices.items() if name in AVERAGED}
    return learner.usual_passes is None and chosen == AVERAGED and not is_text(features)


def is_text(features: FeatureMap) -> bool:
    """Whether there is a column of text among the features."""
    given = features.extractors
    return not isinstance(given, str) and any(isinstance(one, Text) for one in given)


def is_letters(features: FeatureMap) -> bool:
    """Whether the only features of texts are n-grams of characters."""
    return all(one.ngrams is None for one in features.extractors if isinstance(one, Text))


TEXT = {"weighting": "log-tfidf"}  # what goes best with the learner that is the default for text
TEXT_OF_LETTERS = {"weighting": "idf"}  # if all texts are one word each

ROLE_NAMES = {"ignore": "left out"}  # in notes; other roles are called by their names

# For a column whose texts are one word each.
BY_LETTERS = "cut into 2 to 5 characters at a time (--ngrams and --chars say otherwise)"

ROLES = ("numeric", "categorical", "text", "ignore")


@dataclass
class Plan:
    """A training run: the data, how to read them, the features, the learner, and the passes.

    ``reading`` holds options of ``onlearn.data.read``; ``roles`` are those of columns that are not to be guessed;
    ``text``, ``number`` and ``category`` hold parameters of these extractors. ``learner`` is a ``Learner`` or an
    estimator; None: one that suits the data, with the given ``choices``. ``passes`` None is a number that suits both.
    ``cache`` True keeps the parsed rows of large files beside them if there are several passes, a folder keeps those of
    any file there, False keeps none.
    """

    sources: list[str]
    task: str = "classify"
    certain: bool = False  # the task is given, so labels are not checked for amounts
    reading: dict[str, Any] = field(default_factory=dict)
    roles: dict[str, str] = field(default_factory=dict)
    text: dict[str, Any] = field(default_factory=dict)
    number: dict[str, Any] = field(default_factory=dict)
    category: dict[str, Any] = field(default_factory=dict)
    taken: dict[str, str] = field(default_factory=dict)  # columns that are not features, and their roles
    interactions: list[Interaction] = field(default_factory=list)
    max_names: int = MAX_NAMES
    bits: int = BITS
    labels: list[str] | None = None
    learner: Any = None
    choices: dict[str, Any] = field(default_factory=dict)
    passes: int | None = None
    seed: int = 0
    min_count: int = 1
    per_class: bool = False
    prune_weights: float = 0.0
    holdout: float = 0.0
    calibrate: list[str] = field(default_factory=list)  # files that probabilities are fitted to
    memory: int = 512 << 20
    cache: bool | str = True
    threshold: str | float | None = None  # a probability, or the criterion that it is to suit best
    positive: str | None = None  # the label that it is about

    @property
    def small(self) -> int:
        """Files of fewer bytes have no cache: their rows fit into memory, and are parsed fast."""
        return self.memory // 8

    def features(
        self,
        rows: Any,
        usual: Any = None,
        targets: np.ndarray | None = None,
        linear: bool = True,
        sample: np.ndarray | None = None,
    ) -> tuple[FeatureMap, list[str]]:
        """Features for rows such as these, and notes about their columns.

        ``usual`` has the parameters of extractors that a learner is used to. ``targets`` are those of the first rows,
        or of a ``sample`` (see ``guess_roles``). For a learner that is not ``linear``, a number stays a number.
        """
        made: dict[str, Any] = dict(max_names=self.max_names, bits=self.bits)
        if kind_of(rows) != TABLE:
            named = kind_of(rows) == NAMED
            if not named and self.max_names != MAX_NAMES:
                raise PlanError("max_names= needs named features; those here have numbers only")
            if not named and (self.min_count > 1 or self.prune_weights > 0):
                raise PlanError("min_count= and prune_weights= need named features; those here have numbers only")
            if not named and self.interactions:
                raise PlanError("interact= needs named features; the features of svmlight files have numbers only")
            return FeatureMap(list(self.interactions) or "auto", **made), []
        missing = [column for column in self.roles if column not in rows.column_names]
        if missing:
            if missing[0] in self.taken:
                raise PlanError(f"the column {missing[0]!r} is the {self.taken[missing[0]]}, so it is not a feature")
            raise PlanError(f"there is no column {missing[0]!r}{did_you_mean(missing[0], rows.column_names)}")
        guessed = with_text(guess_roles(rows, targets, sample), self.taken.values())
        # products of values would be very many
        if not linear or self.interactions or "scale" in (usual or {}).get("number", {}):
            guessed = {name: plain(role) for name, role in guessed.items()}
        if "scale" in self.number:
            guessed = {name: without_logarithm(role) for name, role in guessed.items()}
        given = {
            name: guessed[name] if role == guessed[name].role else type(guessed[name])(role, "one word in a row")
            for name, role in self.roles.items()
        }
        found = {**guessed, **given}
        cut = self.text.keys().isdisjoint(LETTERS)  # unless ngrams or chars are given
        by_letters = {name for name, role in found.items() if cut and role.one_word and role.role == "text"}
        notes = in_lines({
            name: Role(role.role, f"{role.reason}; {BY_LETTERS}") if name in by_letters else role
            for name, role in found.items()
            if name in by_letters or name not in given
        })  # fmt: skip
        roles = {name: role.role for name, role in found.items()}
        for options, role, names in ((self.text, "text", "ngrams=, chars=, tokens= or weighting="),
                                    (self.number, "numeric", "scale=")):  # fmt: skip
            if options.keys() - {"missing"} and role not in roles.values():
                raise PlanError(f"{names} has no use here: no column is {role}")
        words = any(role == "text" and name not in by_letters for name, role in roles.items())
        usual = {"text": TEXT if words else TEXT_OF_LETTERS, "number": {}, **(usual or {})}
        extractors = extractors_for(
            found, {**usual["text"], **self.text}, {**usual["number"], **self.number}, self.category
        )
        if not extractors:
            raise PlanError(f"there is no column to learn from ({'; '.join(notes) or 'all are ignored'})")
        used = [name for name, role in roles.items() if role != "ignore"]
        for name in (name for one in self.interactions for name in one.columns if name not in used):
            why = "is not a feature" if name in (*roles, self.reading.get("target")) else "does not exist"
            raise PlanError(f"the column {name!r} of interact= {why}{did_you_mean(name, used)}")
        return FeatureMap([*extractors, *self.interactions], **made), notes

    def check_columns(self, rows: Any, found: dict[str, Any]) -> None:
        """Refuse options about columns for rows without columns, or for a target that is not among those ``found``."""
        if (kind := kind_of(rows)) != TABLE:
            self._refuse_columns(f"the rows have no columns but {'names' if kind == NAMED else 'numbers'}")
        for name in ("target", "weight", "id", "group"):
            if name in self.reading and name not in found:
                raise PlanError(f"{name}= has no use here: the rows have no columns but a text, behind its label")

    def _refuse_columns(self, why: str) -> None:
        about_tables = ("target", "weight", "id", "group", "delimiter", "header")
        given = [f"{name}=" for name in about_tables if name in self.reading]
        given += [f"missing={self.reading['missing']}"] if self.reading.get("missing") in ("zero", "indicator") else []
        if given:
            raise PlanError(f"{given[0]} has no use here: {why}")
        asked = [*self.roles, *(self.text.keys() - {"missing"}), *(self.number.keys() - {"missing"})]
        if asked:
            raise PlanError(f"options about columns ({', '.join(asked)}) have no use here: {why}")


def plain(role: Role) -> Role:
    """The role of a number that is taken as it stands; other roles unchanged."""
    return Role("numeric", role.reason.partition(",")[0]) if role.role == "numeric" and role.treatment else role


def without_logarithm(role: Role) -> Role:
    """The role of a number whose scale is given; its values may have weights of their own all the same."""
    if "log" not in role.treatment:
        return role
    others = tuple(one for one in role.treatment if one != "log")
    return Treated(role.role, role.reason.replace(", taken as logarithms", ""), others)


def in_lines(roles: dict[str, Role]) -> list[str]:
    """Notes on the roles of columns and the reasons: one line for all columns with the same role and reason."""
    alike: dict[Role, list[str]] = {}
    for name, role in roles.items():
        alike.setdefault(role, []).append(name)
    return [
        f"{shown(names, 6)} {'is' if len(names) == 1 else 'are'} {ROLE_NAMES.get(role.role, role.role)}: {role.reason}"
        for role, names in alike.items()
    ]
