"""``Plan``: what a training run is asked for, checked before anything is read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from onlearn.data.nearby import did_you_mean
from onlearn.data.tables import shown
from onlearn.features import Features, Interaction, extractors_for, guess_roles
from onlearn.features.roles import LETTERS, Role
from onlearn.pipeline.textalone import with_text

TEXT = {"weighting": "idf"}  # what goes best with the learner that is the default for text

SAID = {"ignore": "left out"}  # of columns; other roles are words that say it

# of a column whose texts are one word each
BY_LETTERS = "cut into 2 to 5 characters at a time (--ngrams and --chars say otherwise)"

MAX_NAMES = 1 << 21  # of features that are kept by default
BITS = 22  # of the number of weights that hashed features share by default

ROLES = ("numeric", "categorical", "text", "ignore")


class PlanError(ValueError):
    """A plan that does not go with itself or with the data."""


@dataclass
class Plan:
    """A training run: the data, how to read them, the features, the learner, and how often.

    ``reading`` holds options of ``onlearn.data.read``; ``roles`` says what columns are, for those that are not to be
    guessed; ``text``, ``number`` and ``category`` hold parameters of these extractors. ``learner`` is an estimator, or
    None for what suits the data, with ``choices`` laid over it. ``passes`` None is what suits both. ``cache``
    True keeps the parsed rows of large files beside them if there are several passes, a folder keeps those of any file
    there, False keeps none.
    """

    sources: list[str]
    task: str = "classify"
    certain: bool = False  # that this is the task, whatever labels look like
    reading: dict[str, Any] = field(default_factory=dict)
    roles: dict[str, str] = field(default_factory=dict)
    text: dict[str, Any] = field(default_factory=dict)
    number: dict[str, Any] = field(default_factory=dict)
    category: dict[str, Any] = field(default_factory=dict)
    taken: dict[str, str] = field(default_factory=dict)  # columns that are no features, and what they are
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
    memory: int = 512 << 20
    cache: bool | str = True

    @property
    def small(self) -> int:
        """Files of fewer bytes are read anew each time: their rows fit into memory, and are parsed in no time."""
        return self.memory // 8

    def features(self, rows: Any) -> tuple[Features, list[str]]:
        """Features for rows such as these, and what was decided about their columns."""
        made: dict[str, Any] = dict(max_names=self.max_names, bits=self.bits)
        if not hasattr(rows, "column_names"):
            named = hasattr(rows, "hashes")
            if not named and self.max_names != MAX_NAMES:
                raise PlanError("--max-names needs named features; those here have numbers only")
            if not named and (self.min_count > 1 or self.prune_weights > 0):
                raise PlanError("--min-count and --prune-weights need named features; those here have numbers only")
            if self.interactions and not hasattr(rows, "hashes"):
                raise PlanError("--interact needs named features; the features of svmlight files have numbers only")
            return Features(list(self.interactions) or "auto", **made), []
        missing = [column for column in self.roles if column not in rows.column_names]
        if missing:
            if missing[0] in self.taken:
                raise PlanError(f"the column {missing[0]!r} is the {self.taken[missing[0]]}, so it is not a feature")
            raise PlanError(f"there is no column {missing[0]!r}{did_you_mean(missing[0], rows.column_names)}")
        guessed = with_text(guess_roles(rows), self.taken.values())
        given = {name: type(guessed[name])(role, "one word in a row") for name, role in self.roles.items()}
        found = {**guessed, **given}
        cut = self.text.keys().isdisjoint(LETTERS)  # unless it is said what to cut texts into
        by_letters = {name for name, role in found.items() if cut and role.one_word and role.role == "text"}
        notes = in_lines({
            name: Role(role.role, f"{role.reason}; {BY_LETTERS}") if name in by_letters else role
            for name, role in found.items()
            if name in by_letters or name not in given
        })  # fmt: skip
        roles = {name: role.role for name, role in found.items()}
        for options, role, flag in ((self.text, "text", "--ngrams, --chars or --weighting"),
                                    (self.number, "numeric", "--scale")):  # fmt: skip
            if options.keys() - {"missing"} and role not in roles.values():
                raise PlanError(f"{flag} has no use here: no column is {role}")
        extractors = extractors_for(found, {**TEXT, **self.text}, self.number, self.category)
        if not extractors:
            raise PlanError(f"there is no column to learn from ({'; '.join(notes) or 'all are ignored'})")
        used = [name for name, role in roles.items() if role != "ignore"]
        for name in (name for one in self.interactions for name in one.columns if name not in used):
            why = "is not a feature" if name in (*roles, self.reading.get("target")) else "does not exist"
            raise PlanError(f"the column {name!r} of --interact {why}{did_you_mean(name, used)}")
        return Features([*extractors, *self.interactions], **made), notes

    def check_columns(self, rows: Any, found: dict[str, Any]) -> None:
        """Refuse what was said about columns of rows that have none, or whose label is in none of those ``found``."""
        if not hasattr(rows, "column_names"):
            self._refuse_columns(f"the rows have no columns but {'names' if hasattr(rows, 'hashes') else 'numbers'}")
        for name in ("target", "weight", "id"):
            if name in self.reading and name not in found:
                raise PlanError(f"--{name} has no use here: the rows have no columns but a text, behind its label")

    def _refuse_columns(self, why: str) -> None:
        about_tables = ("target", "weight", "id", "delimiter", "header")
        given = [f"--{name}" for name in about_tables if name in self.reading]
        given += (
            [f"--missing {self.reading['missing']}"] if self.reading.get("missing") in ("zero", "indicator") else []
        )
        if given:
            raise PlanError(f"{given[0]} has no use here: {why}")
        asked = [*self.roles, *(self.text.keys() - {"missing"}), *(self.number.keys() - {"missing"})]
        if asked:
            raise PlanError(f"options about columns ({', '.join(asked)}) have no use here: {why}")


def in_lines(roles: dict[str, Role]) -> list[str]:
    """What columns are, and why: one line for all that are the same for the same reason."""
    alike: dict[Role, list[str]] = {}
    for name, role in roles.items():
        alike.setdefault(role, []).append(name)
    return [
        f"{shown(names, 6)} {'is' if len(names) == 1 else 'are'} {SAID.get(role.role, role.role)}: {role.reason}"
        for role, names in alike.items()
    ]
