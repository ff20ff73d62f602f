"""The options of training, for ``onlearn train`` and ``onlearn.train``, and checks of files that commands write.

Each option is stated once: its type, its default, its help, its range, and what it can be combined with. Nothing heavy
is imported here, so that the command line shows its help at once.
"""

# ruff: noqa: RUF009 (a field is what option() makes)

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

from onlearn.byte_sizes import parse_size
from onlearn.errors import PlanError

MAX_NAMES = 1 << 21  # names of features that are kept
BITS = 22  # hashed features share 2^BITS weights
MAX_BAD = "1%"  # rows that may be bad
AUTO = "auto"  # the learner that a race of configurations decides

FilePath = str | os.PathLike[str]

# What has no use in a comparison: it writes no model, and learners are spelled with their parameters.
NOT_COMPARED = (
    "output", "learner", "resume", "checkpoint_every", "column", "template", "rule", "geometry", "stabilizer",
    "multiclass", "kernel", "budget", "budget_policy", "cache_mb", "class_weight", "prune_weights", "calibration",
    "calibrate", "threshold", "positive", "label_separator",
)  # fmt: skip


class About(NamedTuple):
    """The description of an option: its meaning, its range, and its form on the command line."""

    help: str
    type: Any = str  # on the command line; a list is an option that may be repeated
    flags: tuple[str, ...] = ()  # how the command line spells it, where that is not --name
    min: float | None = None
    max: float | None = None
    metavar: str | None = None
    in_model: bool = False  # a model holds what was chosen, so it cannot be changed when training is resumed
    classes_only: bool = False  # has no use in regression
    with_kernel: bool = False  # has no use without a kernel
    of_features: bool = False  # has no use with a kernel that compares texts


def option(default: Any, help: str, type: Any = str, **about: Any) -> Any:
    """A field of ``TrainOptions``."""
    return field(default=default, metadata={"about": About(help, type, **about)})


def about(name: str, options: Any = None) -> About:
    """The description of an option; of those of training, unless ``options`` are others."""
    return next(one.metadata["about"] for one in fields(options or TrainOptions) if one.name == name)


@dataclass(kw_only=True)
class TrainOptions:
    """All options of training, by name; the defaults are those of ``onlearn train``."""

    sources: FilePath | list[FilePath] = field(
        metadata={
            "about": About("Files to learn from: paths, patterns, or - for standard input.", list, metavar="DATA...")
        }
    )
    output: FilePath | None = option(None, "Where to write the model.", flags=("--output", "-o"))
    target: str | int | None = option(None, "The column to predict; guessed by default.")
    column: str | int | None = option(None, "Of taggers: the column of labels, such as upos; --target does the same.")
    task: str | None = option(
        None,
        "classify (by default), regress, multilabel (several labels a row), rank (the order within groups), or tag, "
        "which is the default for CoNLL files.",
        in_model=True,
    )
    learner: Any = option(
        None,
        'A named learner, such as AROW, Mixture or "LogisticRegression(rate=0.5)"; auto: the winner of a race.',
        in_model=True,
    )
    space: Any = option(
        None,
        "With --learner auto: values to race, such as rate=log(0.01,1) or weighting=idf,tfidf; or a JSON file.",
        list,
        in_model=True,
    )
    configurations: int | None = option(
        None, "With --space: the most configurations to race, by default 16.", int, min=1, in_model=True
    )
    time_limit: float | None = option(
        None, "With --learner auto: seconds after which the race ends.", float, min=0, in_model=True
    )
    rule: Any = option(None, 'How far to step, such as "pa1(0.5)".', in_model=True)
    geometry: Any = option(None, 'How a step moves weights, such as "winnow(1.5)".', in_model=True)
    stabilizer: Any = option(None, "last, averaged, survivor or voted; averaged(window=1000) forgets.", in_model=True)
    multiclass: str | None = option(None, "true, one-vs-all or softmax.", in_model=True, classes_only=True)
    template: FilePath | None = option(
        None, "Of taggers: a file of templates of attributes, as CRF++ and Wapiti have them.", in_model=True
    )
    kernel: Any = option(
        None,
        'Learn with a kernel, such as "polynomial(3)" or "0.5*gaussian(2) + linear".',
        in_model=True,
    )
    budget: int | None = option(
        None, "With --kernel: the most support examples.", int, min=1, in_model=True, with_kernel=True
    )
    budget_policy: Any = option(
        None,
        'With --budget: project, merge, "remove(random)" or "remove(oldest)".',
        in_model=True,
        with_kernel=True,
    )
    cache_mb: float | None = option(
        None, "With --kernel: memory for kernel values, in MB.", float, min=0, in_model=True, with_kernel=True
    )
    class_weight: Any = option(None, "balanced: give rare classes larger weights.", in_model=True, classes_only=True)
    calibration: Any = option(
        None,
        'Where probabilities come from: auto, own, online, "holdout(0.1)" or "online(method=\'isotonic\')".',
        in_model=True,
        classes_only=True,
    )
    calibrate: FilePath | list[FilePath] | None = option(
        None, "Files whose rows are not learned from: probabilities are fitted to them.", list, classes_only=True
    )
    classes: str | list[str] | None = option(None, "All labels, separated by commas.", in_model=True, classes_only=True)
    passes: int | None = option(None, "Passes over the data; by default 3, over small tables up to 20.", int, min=1)
    test: FilePath | list[FilePath] | None = option(None, "Files to test the model on.", list)
    holdout: str | float | None = option(None, "A part of the rows to keep for testing, such as 10%.")
    threshold: str | float | None = option(
        None,
        "From which probability on a label is predicted: a number, or f1, balanced or cost(FP,FN), to choose the best "
        "on held-out rows (--holdout) or else on those of the first pass.",
        classes_only=True,
    )
    positive: str | None = option(None, "Of two labels, the one that --threshold is about.", classes_only=True)
    resume: FilePath | None = option(None, "A model to continue training.")
    checkpoint_every: int | None = option(None, "Save the model every so many examples.", int, min=1)
    format: str | None = option(None, "The format of the files, if the extension does not say.")
    delimiter: str | None = option(None, "The character between the columns of CSV files.")
    header: bool | None = option(None, "Whether CSV files begin with a header.", bool, flags=("--header/--no-header",))
    weight: str | int | None = option(None, "The column that holds the weight of a row.")
    id: str | int | None = option(None, "The column that identifies a row.")
    group: str | int | None = option(
        None, "With --task rank: the column that says which rows are ranked together; svmlight files have qid:N."
    )
    label_separator: str | None = option(
        None, "What stands between several labels in a cell, such as ;. It makes the task multilabel.", in_model=True
    )
    numeric: str | list[str] | None = option(None, "A column of numbers.", list, in_model=True, of_features=True)
    categorical: str | list[str] | None = option(None, "A column of categories.", list, in_model=True, of_features=True)
    text: str | list[str] | None = option(None, "A column of text.", list, in_model=True)
    ignore: str | list[str] | None = option(None, "A column to leave out.", list, in_model=True)
    ngrams: str | tuple[int, int] | None = option(
        None, "Lengths of word n-grams, such as 1-2; or none.", in_model=True, of_features=True
    )
    chars: str | tuple[int, int] | None = option(
        None, "Lengths of character n-grams, such as 2-5.", in_model=True, of_features=True
    )
    weighting: str | None = option(
        None, "Weights of words: counts, binary, log, idf, tfidf or log-tfidf.", in_model=True, of_features=True
    )
    tokens: str | None = option(
        None,
        "What a text is cut into: words, or words and punctuation; by default punctuation counts in short texts.",
        in_model=True,
        of_features=True,
    )
    norm: bool | None = option(
        None,
        "Scale the vector of a text to length 1.",
        bool,
        flags=("--norm/--no-norm",),
        in_model=True,
        of_features=True,
    )
    scale: str | None = option(
        None,
        "Scaling of numbers: standard, log-standard, max-abs, log1p, none or kept.",
        in_model=True,
        of_features=True,
    )
    missing: str = option("absent", "Missing values: absent, error, zero or indicator.", in_model=True)
    interact: str | list[str] | None = option(
        None,
        "Columns or namespaces to multiply: A,B; or pairs, or triples.",
        list,
        in_model=True,
        of_features=True,
    )
    max_names: int = option(MAX_NAMES, "Names of features to keep; others are hashed.", int, min=1, in_model=True)
    bits: int = option(BITS, "Hashed features get 2^bits weights.", int, min=1, max=28, in_model=True)
    min_count: int = option(1, "Leave out features that are in fewer rows.", int, min=1, in_model=True)
    per_class: bool = option(
        False,
        "Count for --min-count within each class.",
        bool,
        flags=("--per-class",),
        in_model=True,
        classes_only=True,
    )
    prune_weights: float = option(
        0.0, "Drop features whose weights are no larger, after training.", float, min=0, in_model=True
    )
    bad_rows: FilePath | None = option(None, "A file to write rows to that cannot be read.")
    max_bad: str | float = option(MAX_BAD, "The part of the rows that may be bad, such as 5%.")
    strict: bool = option(False, "Stop at the first bad row.", bool, flags=("--strict",))
    max_line: str | int | None = option(
        None, "The most bytes of a line, such as 1GB; a longer one is a bad row. By default 64MB."
    )
    cache: FilePath | None = option(None, "A folder to keep parsed rows in; by default beside large files.")
    no_cache: bool = option(False, "Neither keep nor use parsed rows.", bool, flags=("--no-cache",))
    seed: int = option(0, "The same seed gives the same model.", int, min=0, max=2**32 - 1, in_model=True)

    def __post_init__(self) -> None:
        for one in fields(self):
            if one.metadata["about"].type is list and not isinstance(getattr(self, one.name), Mapping):
                setattr(self, one.name, as_list(getattr(self, one.name)))

    def is_given(self, name: str) -> bool:
        """Whether an option is not its default."""
        usual = next(one.default for one in fields(self) if one.name == name)
        value = getattr(self, name)
        return not (value == [] if usual is None and isinstance(value, list) else value is usual or value == usual)

    def given(self, kind: str) -> list[str]:
        """The names of the options that are given, of those marked so: ``in_model``, ``classes_only`` and the like."""
        return [one.name for one in fields(self) if getattr(one.metadata["about"], kind) and self.is_given(one.name)]


def as_list(value: Any) -> list[str]:
    """Paths or names as a list of strings; None is an empty one."""
    if value is None:
        return []
    return [os.fspath(one) for one in ([value] if isinstance(value, (str, os.PathLike)) else value)]


def check_output(path: str) -> None:
    """Refuse to write where no file can be, or over a file that is not a model."""
    from onlearn.model_file import ModelFileError, read_header

    target = Path(path)
    if path == "-":
        raise PlanError("a model does not go to standard output: name a file", "output")
    if target.is_dir():
        raise PlanError(f"{target} is a directory, not a file to write a model to", "output")
    if not target.parent.is_dir():
        raise PlanError(f"there is no directory {target.parent}", "output")
    if target.exists():
        try:
            read_header(target)
        except ModelFileError:
            raise PlanError(f"{target} exists and is not a model: it is left alone", "output") from None
    if not os.access(target.parent, os.W_OK) or (target.exists() and not os.access(target, os.W_OK)):
        raise PlanError(f"there is no permission to write {target}", "output")
    try:
        with tempfile.TemporaryFile(dir=target.parent):  # as the model is written beside its place
            pass
    except OSError as error:
        raise PlanError(f"no file can be written to {target.parent}: {error.strerror}", "output") from None


def check_bad_rows(path: str, output: str | None) -> None:
    """Refuse a file for bad rows that cannot be written."""
    if output is not None and os.path.abspath(path) == os.path.abspath(output):
        raise PlanError(f"{path} is where the model goes", "bad_rows")
    if not Path(path).parent.is_dir():
        raise PlanError(f"there is no directory {Path(path).parent}", "bad_rows")
    if Path(path).is_dir():
        raise PlanError(f"{path} is a directory, not a file to write to", "bad_rows")


def longest_line(given: int | str) -> int:
    """The most bytes of a line, by the option."""
    try:
        return parse_size(given)
    except ValueError as error:
        raise PlanError(str(error), "max_line") from None


def keep_apart(path: str, *inputs: str, parameter: str) -> None:
    """Refuse to write over what is read."""
    if os.path.exists(path) and any(os.path.exists(name) and os.path.samefile(path, name) for name in inputs):
        raise PlanError(f"{path} is read from, so it cannot be written to", parameter)


def part(value: str | float, parameter: str, whole: bool = False) -> float:
    """``"10%"``, ``"0.1"`` or 0.1 as a number from 0 to below 1, or to 1 if the ``whole`` is a part."""
    try:
        text = str(value)
        number = float(text.rstrip("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1 and not (whole and number == 1):
        raise PlanError(f"{value!r} is not a part of the rows such as 10%", parameter)
    return number
