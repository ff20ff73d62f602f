"""Configurations of a race as options of training: what they mean, and how they are spelled as a command.

A space may name options of ``train`` and also parameters of learners, geometries and rules, such as ``rate``. These
become part of the learner that a configuration names: ``learner=AROW, r=0.3`` is ``--learner "AROW(r=0.3)"``. A
parameter that this learner does not have is left out of the configuration.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Any

from onlearn.data import Batch, DataError
from onlearn.data.batch import Sentences
from onlearn.engine import registry
from onlearn.engine.compositions import COMPOSITIONS, PARAMETERS
from onlearn.engine.geometry import GEOMETRIES
from onlearn.engine.rules import RULES
from onlearn.engine.spec import did_you_mean, parameters
from onlearn.errors import PlanError
from onlearn.models.train_options import AUTO, About, TrainOptions, about, as_list
from onlearn.tune.space import Options, different

# Options of training that configurations may differ in.
OPTIONS = (
    *("learner", "rule", "geometry", "stabilizer", "multiclass", "class_weight", "kernel", "budget", "passes"),
    *(
        "numeric",
        "categorical",
        "text",
        "ignore",
        "ngrams",
        "chars",
        "tokens",
        "weighting",
        "norm",
        "scale",
        "interact",
    ),
    *("max_names", "bits", "min_count", "per_class"),
)
TEXTS = tuple(name for name in OPTIONS if about(name).type is not bool)  # where "true" is a word: multiclass=true
PARTS = {"geometry": GEOMETRIES, "rule": RULES}
USUAL = "adagrad"  # the geometry whose parameters are meant where a configuration names no learner

# Options about the race and about what is done with the model, which are no part of the command that repeats it.
ABOUT_THE_RACE = ("learner", "space", "time_limit", "configurations", "sources", "output", "resume", "test")


def refuse_sentences(batches: Iterable[Batch]) -> None:
    """Refuse tagged sentences: taggers are not tuned."""
    for batch in batches:
        if isinstance(batch.parsed, Sentences):
            raise DataError(
                f"{batch.file} holds tagged sentences, and taggers cannot be tuned: "
                "tuning is for classification and regression"
            )


def option_names(learners: Iterable[Any] = ()) -> list[str]:
    """All names that a space may have; those of the parameters of these learners are among them."""
    names = dict.fromkeys(OPTIONS)
    compositions = list(COMPOSITIONS.values())
    for one in learners:
        if isinstance(one, str):
            compositions.append(_composition(one))
    for composition in compositions:
        names.update(dict.fromkeys(name for name in composition.parameters if name not in PARAMETERS))
    for family in PARTS.values():
        for made in family.members.values():
            names.update(dict.fromkeys(parameters(made)))
    return list(names)


def _composition(learner: str) -> Any:
    try:
        name = registry.full_name(registry.parse_call(learner)[0])
        if name not in registry.learner_names():
            raise ValueError(f"there is no learner {name!r}{did_you_mean(name, registry.learner_names())}")
        return registry.composition_of(name)
    except ValueError as error:
        raise PlanError(str(error), "space") from None


def resolved(configurations: list[Options]) -> list[Options]:
    """The configurations in options of training alone, each once.

    >>> values = {"r": 0.3, "alpha": 2.0}
    >>> resolved([{"learner": "AROW", **values}, {"learner": "Winnow", **values}, {"learner": "AROW", "r": 0.3}])
    [{'learner': 'AROW(r=0.3)'}, {'learner': 'Winnow(alpha=2.0)'}]
    """
    used: set[str] = set()
    made = [_resolve(one, used) for one in configurations]
    for name in {name for one in configurations for name in one} - used:
        raise PlanError(f"{name} has no use here: no learner of the space has it", "space")
    return different(made)


def _resolve(one: Options, used: set[str]) -> Options:
    plain = {name: value for name, value in one.items() if name in OPTIONS}
    extra = {name: value for name, value in one.items() if name not in OPTIONS}
    used.update(plain)
    if extra and "learner" in plain:
        own = {name: value for name, value in extra.items() if name in _composition(plain["learner"]).parameters}
        plain["learner"] = _with_parameters(plain["learner"], own)
        used.update(own)
    elif extra:
        chosen = {part: plain[part] for part in PARTS if part in plain} or {"geometry": USUAL}
        for part, spelled in chosen.items():
            try:
                choice = PARTS[part].get(spelled)
            except (TypeError, ValueError) as error:
                raise PlanError(str(error), "space") from None
            own = {name: value for name, value in extra.items() if name in parameters(type(choice))}
            if own:
                try:
                    plain[part] = repr(type(choice)(**{**choice.get_params(), **own}))
                except (TypeError, ValueError) as error:
                    raise PlanError(str(error), "space") from None
            used.update(own)
    return plain


def _with_parameters(learner: str, own: Options) -> str:
    """The spelling of a learner with further parameters."""
    if not own:
        return learner
    name, values, named = registry.parse_call(learner)
    if twice := [one for one in own if one in named]:
        raise PlanError(f"{twice[0]} is given twice, by itself and by learner={learner}", "space")
    parts = [*(repr(one) for one in values), *(f"{key}={value!r}" for key, value in {**named, **own}.items())]
    return f"{name}({', '.join(parts)})"


def configured(options: TrainOptions, configuration: Options) -> TrainOptions:
    """The options of training with those of a configuration."""
    known = {one.name for one in fields(TrainOptions)}
    given = {name: value for name, value in configuration.items() if name in known}
    learner = None if options.learner == AUTO else options.learner
    return replace(options, **{"learner": learner, "space": None, "time_limit": None, "configurations": None, **given})


def spelling(configuration: Options) -> str:
    """The configuration as options of the command.

    >>> spelling({"learner": "AROW(r=0.3)", "norm": False, "categorical": ["a b", "c"]})
    "--learner 'AROW(r=0.3)' --no-norm --categorical 'a b' --categorical c"
    """
    return " ".join(word for name, value in configuration.items() for word in _words(name, value, about(name)))


def _words(name: str, value: Any, described: About) -> list[str]:
    flags = described.flags[0] if described.flags else f"--{name.replace('_', '-')}"
    if described.type is bool:
        yes, _, no = flags.partition("/")
        return [yes] if value else [no] if no else []
    if isinstance(value, tuple):  # lengths of n-grams
        value = "-".join(map(str, value))
    values = value if isinstance(value, list) else [value]
    return [word for one in values for word in (flags, shlex.quote(str(one)))]


def command(options: TrainOptions, configuration: Options) -> str:
    """The command that trains by this configuration, and gives the same model."""
    given = [
        word
        for one in fields(options)
        if one.name not in ABOUT_THE_RACE and one.name not in configuration and options.is_given(one.name)
        for word in _words(one.name, getattr(options, one.name), one.metadata["about"])
    ]
    sources = " ".join(shlex.quote(str(one)) for one in as_list(options.sources))
    output = "MODEL" if options.output is None else shlex.quote(str(options.output))
    return " ".join(filter(None, ["onlearn train", sources, "-o", output, *given, spelling(configuration)]))
