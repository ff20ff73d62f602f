"""From files of sentences to a ``Tagger``: what ``onlearn train --task tag`` and ``onlearn.train(task="tag")`` do."""

from __future__ import annotations

import copy
import os
from dataclasses import fields
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from onlearn import __version__, data
from onlearn.compiler import compile_seconds
from onlearn.data.batch import Sentences
from onlearn.data.sources import sources as sources_of
from onlearn.engine import registry
from onlearn.errors import PlanError
from onlearn.models.run_report import file_states
from onlearn.models.tag_evaluation import SentenceObserver, evaluate_tagger
from onlearn.models.tag_files import RAW, format_to_learn
from onlearn.models.tagger import (
    Tagger,
    bare_tagger,
    given_columns,
    joined,
    label_column,
    scheme_that_holds,
    sentences_at,
    with_columns,
)
from onlearn.models.train_options import TrainOptions, as_list, longest_line
from onlearn.sequence.base import SequenceLearner, Watch
from onlearn.sequence.spans import detect_scheme

# As for text: rare attributes have few examples, which a confidence for each weight makes the most of.
DEFAULT = "StructuredPerceptron(rule='pa2(0.5)', geometry='arow(1.0)')"
USED = (
    "sources", "output", "target", "column", "task", "learner", "rule", "geometry", "stabilizer", "template", "passes",
    "test", "holdout", "resume", "format", "min_count", "bad_rows", "max_bad", "strict", "max_line", "seed",
)  # fmt: skip
MANY_LABELS = 300
CHOICES = ("rule", "geometry", "stabilizer", "min_count")  # parameters of learners that are options of their own


def load_tagger(path: str | os.PathLike[str]) -> Tagger:
    """The tagger in a file; a learner of sequences that Python saved becomes one."""
    from onlearn import model_file

    found = model_file.load_learner(path)
    return found if isinstance(found, Tagger) else bare_tagger(found)


class TagRun:
    """A run over files of sentences: ``read``, ``learn``, ``save`` and ``test``, one after another."""

    def __init__(self, options: TrainOptions, bad: data.BadRows) -> None:
        self.options: TrainOptions = options
        self.bad: data.BadRows = bad
        self.notes: list[str] = []
        self.seconds: float = 0.0
        self.held_out: tuple[Sentences, np.ndarray] | None = None
        if options.resume:
            self.tagger: Tagger = load_tagger(options.resume)
        else:
            self.tagger = Tagger()
            self.tagger.learner = learner_of(options)
        self.passes: int = options.passes or (1 if options.resume else self._epochs())
        self.passes_before: int = self.tagger.learner.passes if options.resume else 0
        if options.resume and options.passes and self.tagger.learner.words_only:
            raise PlanError(f"passes= has no use with a {self.tagger.learner.name}: it counts each sentence once")
        self.labels: list[str] = []

    def _epochs(self) -> int:
        return int(getattr(self.tagger.learner.settings, "epochs", 1))

    def read(self) -> None:
        """Read all sentences, and decide about columns."""
        options, tagger = self.options, self.tagger
        began = perf_counter() - compile_seconds()
        wanted = options.target if options.column is None else options.column
        known = tagger.reading.get("target") if options.resume else None
        wanted = known if wanted is None else wanted
        names = ", ".join(one.name for one in sources_of(options.sources)[:3])
        if options.format == RAW:
            raise PlanError(f"{RAW} have no columns: a tagger learns from CoNLL or CoNLL-U files", "format")
        parts, codes = [], []
        asked: dict[str, Any] = {} if wanted is None else {"target": wanted}
        asked |= {"format": options.format, "task": "tag", "labels": "required", "bad": self.bad}
        if options.max_line is not None:
            asked["max_line"] = longest_line(options.max_line)
        with data.read(options.sources, **asked) as reader:
            reader.choose_format = format_to_learn
            for batch in reader:
                if not isinstance(batch.parsed, Sentences):
                    raise data.DataError(
                        f"{batch.file} holds rows and not sentences: a tagger learns from CoNLL or CoNLL-U files; "
                        "of rows, target= names the label"
                    )
                if batch.codes is None:
                    label_column(list(batch.parsed.columns), wanted, batch.file)  # says what is wrong
                    raise data.DataError(f"{batch.file} has no labels to learn from")
                parts.append(batch.parsed)
                codes.append(batch.codes)
            self.labels = list(reader.label_names)
            self.notes += reader.notes
        if not parts:
            raise data.DataError(f"{names}: no sentence can be read")
        sentences, gold = joined(parts), np.concatenate(codes)
        target = label_column(list(sentences.columns), wanted, names)
        if options.resume:
            if known is not None and target != known:
                raise PlanError(
                    f"the model has learned the labels of the column {known}, and this is {target}", "column"
                )
            if new := sorted(set(self.labels) - set(tagger.labels)):
                more = f" and {len(new) - 10} more" if len(new) > 10 else ""
                self.notes.append(f"labels that are new to the model: {', '.join(new[:10])}{more}")
            sentences = _checked(sentences, tagger.columns, names)
        else:
            tagger.columns = given_columns(list(sentences.columns), target)
            if tagger.learner.words_only:
                tagger.columns = tagger.columns[:1]
            tagger.reading = {"target": target}
            sentences = with_columns(sentences, tagger.columns)
            self._decide_scheme(gold, sentences.offsets)
            shown = f"{'column' if len(tagger.columns) == 1 else 'columns'} {', '.join(tagger.columns)}"
            used = "what is seen of a token is" if tagger.learner.words_only else "attributes are made of"
            self.notes.append(f"the label is {target}; {used} the {shown}")
            if len(self.labels) > MANY_LABELS:
                self.notes.append(
                    f"there are {len(self.labels):,} labels, and the time goes with their square: "
                    "learner='StructuredPerceptron(greedy=True)' is quicker"
                )
        self._hold_out(sentences, gold)
        self.seconds += perf_counter() - compile_seconds() - began

    def _decide_scheme(self, gold: np.ndarray, offsets: np.ndarray) -> None:
        found = detect_scheme(self.labels, gold, offsets)
        self.tagger.scheme = scheme_that_holds(found, self.labels, gold, offsets)
        if self.tagger.scheme is not None:
            self.notes.append(f"the labels are spans ({self.tagger.scheme}): only valid ones are predicted")

    def _hold_out(self, sentences: Sentences, gold: np.ndarray) -> None:
        from onlearn.models.training import held_out

        share = held_out(self.options.holdout)
        self.sentences, self.gold = sentences, gold
        if not share:
            return
        drawn = np.random.default_rng([self.options.seed, 1]).random(len(sentences))
        chosen = drawn < share
        if chosen.all() or not chosen.any():
            raise PlanError(
                f"{len(sentences)} sentences are too few to hold {self.options.holdout} of them out", "holdout"
            )
        kept, tokens = sentences_at(sentences, ~chosen)
        self.held_out = sentences_at(sentences, chosen)[0], gold[~tokens]
        self.sentences, self.gold = kept, gold[tokens]

    def learn(self, watch: Watch | None = None) -> None:
        """Learn; a run that is interrupted leaves a new tagger as if it had never begun."""
        began = perf_counter() - compile_seconds()
        learner, y = self.tagger.learner, np.array(self.labels, dtype=object)[self.gold]
        try:
            if self.options.resume:
                for turn in range(self.passes):
                    learner.partial_fit(self.sentences, y, watch=_in_turn(watch, turn, self.passes))
                self.tagger.scheme = scheme_that_holds(self.tagger.scheme, learner.labels)
            else:
                learner.fit(self.sentences, y, watch=watch)
        except PlanError:
            raise
        except (ValueError, OverflowError) as error:  # learner or template do not suit the data
            raise PlanError(str(error)) from error
        self.seconds += perf_counter() - compile_seconds() - began
        self.passes = learner.passes - self.passes_before  # fewer than asked for if it stopped before
        options = self.options
        before = self.tagger.trained
        self.tagger.trained = {
            "version": __version__,
            "sources": as_list(options.sources),
            "files": file_states(as_list(options.sources)),
            "sentences": len(self.sentences),
            "tokens": int(self.sentences.offsets[-1]),
            "passes": self.passes,
            "seed": before.get("seed", options.seed),
            "bad_rows": self.bad.count,
            "seconds": round(self.seconds, 3),
            "notes": list(self.notes),
        }

    def report(self) -> dict[str, Any]:
        """The result of the run, ready for JSON; the model is saved, if it is to be."""
        learner, output = self.tagger.learner, self.options.output
        return {
            "model": None if output is None else os.fspath(output),
            "bytes": None if output is None else os.path.getsize(output),
            "learner": repr(learner),
            "task": "tag",
            "labels": self.tagger.labels,
            "scheme": self.tagger.scheme,
            "columns": list(self.tagger.columns),
            "sentences": len(self.sentences),
            "tokens": int(self.sentences.offsets[-1]),
            "passes": self.passes,
            "described": learner.described(),
            "bad_rows": self.bad.count,
            "seconds": round(self.seconds, 3),
            "notes": list(self.notes),
        }

    def test(self, report: dict[str, Any], observer: SentenceObserver | None = None) -> data.BadRows | None:
        """Add figures on sentences that were held out and on the files of ``test=``; the bad rows of these files.

        An ``observer`` sees the sentences of the files; without files, those held out.
        """
        if self.held_out is not None:
            sentences, gold = self.held_out
            report["holdout"] = evaluate_tagger(
                self.tagger, [(sentences, gold, self.labels)], None if self.options.test else observer
            )
        if not self.options.test:
            return None
        where = "" if self.options.output is None else f" (the model is in {self.options.output} and was not tested)"
        try:
            with self.tagger.read(self.options.test, labelled=True) as reader:
                found = evaluate_tagger(self.tagger, labelled(reader), observer)
                report["test"] = {**found, "bad_rows": reader.bad.count}
        except (TypeError, ValueError) as error:
            raise data.DataError(f"{error}{where}") from error
        return reader.bad


def _checked(sentences: Sentences, columns: list[str], names: str) -> Sentences:
    try:
        return with_columns(sentences, columns)
    except ValueError as error:
        raise data.DataError(f"{names} cannot be used with this model: {error}") from error


def _in_turn(watch: Watch | None, turn: int, of: int) -> Watch | None:
    """A watch that counts the passes of a run, of which each is one to the learner."""
    return None if watch is None else lambda now: watch(now._replace(turn=turn + 1, of=of))


def labelled(reader: data.Reader) -> Any:
    """Sentences, codes and names of labels of each batch; files without labels are refused."""
    for batch in reader:
        if not isinstance(batch.parsed, Sentences):
            raise data.DataError(f"{batch.file} holds rows, and the model is a tagger: it takes sentences")
        if batch.codes is None:
            raise data.DataError(
                f"{batch.file} has no column of labels, so there is nothing to compare with (target= names the column)"
            )
        yield batch.parsed, batch.codes, list(batch.label_names or ())


def learner_of(options: TrainOptions) -> Any:
    """The learner that the options ask for."""
    given = options.learner
    settings = {name: getattr(options, name) for name in CHOICES if options.is_given(name)}
    if options.template is not None:
        settings["template"] = template_text(options.template)
    if options.passes is not None:
        settings["epochs"] = options.passes
    if given is not None and not isinstance(given, str):
        if settings.keys() - {"epochs"}:
            name = next(iter(settings))
            raise PlanError(f"{name}= has no use with a learner that is given as an object: set it there")
        made = copy.deepcopy(given._as_learner() if hasattr(given, "_as_learner") else given)
        if not isinstance(made, SequenceLearner):
            raise PlanError(f"{type(given).__name__} does not learn sequences", "learner")
        return checked(made.set_params(**settings))
    # Whoever chooses rule or geometry means the usual other one.
    usual = "StructuredPerceptron" if settings.keys() & {"rule", "geometry"} else DEFAULT
    text = usual if given is None else given
    try:
        name, values, named = registry.parse_call(text)
        name = registry.full_name(name)
        if name not in registry.sequence_names():
            known = ", ".join(registry.sequence_names())
            raise PlanError(f"{name} does not learn sequences: those that do are {known}", "learner")
        parameters = registry.composition_of(name).parameters
        own = registry.parameters_of_call(text, list(parameters), values, named)
    except PlanError:
        raise
    except ValueError as error:
        raise PlanError(str(error), "learner") from None
    for key in settings:
        option = "passes" if key == "epochs" else key
        if key not in parameters:
            raise PlanError(f"{option}= has no use with learner={name}")
        if key in own:
            raise PlanError(f"{option}= is given twice, by itself and by learner=")
    if "random_state" in parameters:
        own.setdefault("random_state", options.seed)
    try:
        return checked(registry.make_learner(name, **{**own, **settings}))
    except (TypeError, ValueError) as error:
        raise error if isinstance(error, PlanError) else PlanError(str(error), "learner") from None


def checked(learner: Any) -> Any:
    """The learner, if its parameters can be."""
    try:
        learner.check()
    except (TypeError, ValueError) as error:
        raise PlanError(str(error)) from None
    return learner


def template_text(path: Any) -> str:
    """The text of a template file; ``default`` is the built-in one."""
    if path == "default":
        return "default"
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise PlanError(f"{path} is not a text in UTF-8", "template") from None
    except OSError as error:
        raise PlanError(f"{path} cannot be read: {error.strerror or error}", "template") from None


def check_tag_options(options: TrainOptions) -> None:
    """Refuse options that have no use for taggers, or that contradict each other."""
    from onlearn.models.training import check_options

    for one in fields(options):
        if one.name not in USED and options.is_given(one.name):
            raise PlanError(f"{one.name}= has no use here: a tagger learns from the tokens of sentences")
    if options.target is not None and options.column is not None:
        raise PlanError("column= and target= are the same for taggers: give one of them")
    check_options(options)


def prepare_tagging(options: TrainOptions) -> TagRun:
    """The run that the options ask for; a ``PlanError`` or ``DataError`` if there can be none."""
    from onlearn.models.training import checked_files, checked_output

    output = checked_output(options)
    check_tag_options(options)
    return TagRun(options, checked_files(options, output))


def train_tagger(options: TrainOptions) -> Tagger:
    """Learn a tagger from files, write it to ``output`` if that is given, and report."""
    run = prepare_tagging(options)
    run.read()
    run.learn()
    if options.output is not None:
        run.tagger.save(options.output)
    run.tagger.report_ = run.report()
    run.test(run.tagger.report_)
    return run.tagger
