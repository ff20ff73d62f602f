"""``onlearn bounds``: mistake bounds by their numbers or on data, which family of learners suits data, and pictures."""

from __future__ import annotations

import inspect
import math
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from onlearn.cli.options import Data, Format, Json, MaxBad, MaxLine, Quiet, Report, Strict, print_bad_rows
from onlearn.cli.reporting import check_report, evidence_of, write_report
from onlearn.cli.terminal import echo_json, group, output, print_message
from onlearn.models.train_options import MAX_BAD, TrainOptions

app = group("Mistake bounds, advice on data, and pictures.")

# ----------------------------------------------------------------------------------------------------
# Bounds of numbers: one command a function of ``onlearn.theory.bounds``.


class Number(NamedTuple):
    """An option of a bound."""

    type: Any
    help: str
    flags: tuple[str, ...] = ()


NUMBERS = {
    "R": Number(
        float, "The length of the longest row, max |x|; with an intercept the constant feature counts.", ("--R",)
    ),
    "margin": Number(float, "The margin g: y u.x is at least g in every row, for a target u of length 1."),
    "D2": Number(float, "The square root of the sum of squares of what rows fall short of the margin.", ("--D2",)),
    "D1": Number(float, "The sum of what rows fall short of the margin.", ("--D1",)),
    "n": Number(int, "The number of features."),
    "monotone": Number(bool, "Conjunctions without negations.", ("--monotone",)),
    "k": Number(int, "The number of literals of the disjunction."),
    "p": Number(int, "The number of weights."),
    "alpha": Number(float, "The promotion factor."),
    "threshold": Number(float, "The threshold; by default n."),
    "mass": Number(float, "The sum of the target's weights, scaled so that u.x is at least 1 in positive rows."),
    "separation": Number(float, "How far below 1 u.x is in negative rows, from 0 to 1."),
    "eta": Number(float, "The rate; by default the best for the margin."),
    "size": Number(int, "The number of concepts."),
    "signed_scores": Number(
        str, "y u.x of every row, for a target u of length 1: numbers with commas, or a file.", ("--scores",)
    ),
    "passes": Number(float, "How often the rows are passed over."),
    "shards": Number(int, "The number of shards, each with its own learner, whose weights are mixed in equal shares."),
}

REQUIRED = inspect.Parameter.empty
ROUNDING = 1e-9  # 50.99999999999999 allows 51 mistakes


class Formula(NamedTuple):
    """A command: what it bounds, the function's parameters with their defaults, and an example."""

    help: str
    defaults: dict[str, Any]
    example: str


BOUNDS = {
    "perceptron": Formula(
        "Bound the Perceptron on separable rows.",
        {"R": REQUIRED, "margin": REQUIRED},
        "--R 2 --margin 0.5",
    ),
    "perceptron_noisy": Formula(
        "Bound the Perceptron on any rows.",
        {"R": REQUIRED, "D2": REQUIRED, "margin": REQUIRED},
        "--R 2 --D2 0.5 --margin 0.5",
    ),
    "perceptron_mixed": Formula(
        "Bound Perceptrons on shards, mixed.",
        {"R": REQUIRED, "margin": REQUIRED, "shards": REQUIRED},
        "--R 2 --margin 0.5 --shards 4",
    ),
    "perceptron_mixed_noisy": Formula(
        "Bound mixed Perceptrons on any rows.",
        {"R": REQUIRED, "D2": REQUIRED, "margin": REQUIRED, "shards": REQUIRED},
        "--R 2 --D2 0.5 --margin 0.5 --shards 4",
    ),
    "perceptron_noisy_best": Formula(
        "Find where perceptron-noisy is smallest.",
        {"R": REQUIRED, "signed_scores": REQUIRED, "passes": 1.0},
        "--R 2 --scores 1,1,-1",
    ),
    "winnow": Formula(
        "Bound Winnow on monotone disjunctions.",
        {"n": REQUIRED, "k": REQUIRED, "alpha": 2.0, "threshold": None},
        "--n 1024 --k 3",
    ),
    "winnow_threshold": Formula(
        "Bound Winnow on threshold functions.",
        {"n": REQUIRED, "mass": REQUIRED, "separation": REQUIRED, "alpha": None, "threshold": None},
        "--n 100000 --mass 10 --separation 0.2",
    ),
    "normalized_winnow": Formula(
        "Bound normalised Winnow at a rate eta.",
        {"p": REQUIRED, "margin": REQUIRED, "eta": None},
        "--p 1000 --margin 0.1",
    ),
    "normalized_winnow_simple": Formula(
        "Bound normalised Winnow, simple form.",
        {"p": REQUIRED, "margin": REQUIRED},
        "--p 1000 --margin 0.1",
    ),
    "normalized_winnow_noisy": Formula(
        "Bound normalised Winnow on any rows.",
        {"p": REQUIRED, "D1": REQUIRED, "margin": REQUIRED, "eta": REQUIRED},
        "--p 1000 --D1 5 --margin 0.1 --eta 0.1",
    ),
    "normalized_winnow_noisy_best": Formula(
        "Find where that one is smallest.",
        {"p": REQUIRED, "signed_scores": REQUIRED, "passes": 1.0, "eta": None},
        "--p 1000 --scores 0.5,0.5,-0.5",
    ),
    "best_eta": Formula("Find the best rate of normalised Winnow.", {"margin": REQUIRED}, "--margin 0.6"),
    "elimination": Formula(
        "Bound Elimination on conjunctions.", {"n": REQUIRED, "monotone": False}, "--n 100 --monotone"
    ),
    "consistent": Formula("Bound CON on a finite class.", {"size": REQUIRED}, "--size 531441"),
    "halving": Formula("Bound Halving on a finite class.", {"size": REQUIRED}, "--size 531441"),
}


def _add(name: str, formula: Formula) -> None:
    """Make a command of a function of ``onlearn.theory.bounds``."""

    def command(json: bool, report_file: str | None, **given: Any) -> None:
        check_report(report_file)
        if "signed_scores" in given:
            given["signed_scores"] = _numbers(given["signed_scores"], "--scores")
        _show(name, given, json, report_file)

    def option(parameter: str, default: Any) -> inspect.Parameter:
        kind, help, flags = NUMBERS[parameter]
        made = typer.Option(*flags, help=help, show_default=default not in (REQUIRED, None))
        annotation = kind | None if default is None else kind
        return inspect.Parameter(
            parameter, inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[annotation, made], default=default
        )

    shown = inspect.Parameter("json", inspect.Parameter.KEYWORD_ONLY, annotation=Json, default=False)
    shell = name.replace("_", "-")
    command.__name__ = name
    command.__doc__ = f"{formula.help}\n\n\b\nExamples:\n  onlearn bounds {shell} {formula.example}"
    command.__annotations__ = {}
    page = inspect.Parameter("report_file", inspect.Parameter.KEYWORD_ONLY, annotation=Report, default=None)
    parameters = [*(option(*one) for one in formula.defaults.items()), page, shown]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    app.command(shell)(command)


for _name, _formula in BOUNDS.items():
    _add(_name, _formula)


def _show(name: str, given: dict[str, Any], json: bool, report_file: str | None) -> None:
    """Evaluate a bound and print it."""
    from onlearn.theory import bounds

    function = getattr(bounds, name)
    try:
        found = function(**given)
    except ValueError as error:
        raise typer.BadParameter(str(error).rstrip(".")) from None
    more = found._asdict() if hasattr(found, "_asdict") else {"value": float(found)}
    about = (function.__doc__ or "").splitlines()[0].rstrip(".")
    shown = {key: one for key, one in given.items() if isinstance(one, (int, float))}
    _print(name, shown, more, about, json, report_file)


def _print(
    name: str, given: dict[str, Any], found: dict[str, float], about: str, json: bool, report_file: str | None
) -> None:
    value = found["value"]
    facts = {"bound": name, "arguments": given, **found, "about": about}
    write_report(report_file, "bounds", facts)
    if json:
        echo_json(facts)
        return
    if name == "best_eta":
        typer.echo(f"eta = {value:.6g}")
    elif math.isinf(value):
        typer.echo("no bound: the theorem promises nothing for these numbers")
    else:
        near = min(1e-3, ROUNDING * value)
        whole = round(value) if abs(value - round(value)) <= near else math.floor(value)
        typer.echo(f"at most {whole:,} mistakes" + (f" ({value:.6g})" if abs(value - whole) > near else ""))
    typer.echo(about)
    for key, one in found.items():
        if key != "value":
            typer.echo(f"{key} = {one:.6g}")


def _numbers(text: str, option: str) -> list[float]:
    """Numbers with commas or spaces between them, or those in a file."""
    given = _content(text, option)
    try:
        return [float(one) for one in given.replace(",", " ").split()]
    except ValueError as error:
        raise typer.BadParameter(f"{error}: give numbers with commas, or a file of them", param_hint=option) from None


def _content(text: str, option: str) -> str:
    if not Path(text).is_file():
        return text
    try:
        return Path(text).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise typer.BadParameter(f"{text} is not a file of text", param_hint=option) from None


# ----------------------------------------------------------------------------------------------------
# On data.


Target = Annotated[str | None, typer.Option(metavar="COL", help="The column that holds the label; guessed by default.")]
Weights = Annotated[
    str,
    typer.Option(
        "--u", metavar="WEIGHTS", show_default=False,
        help="The target: a weight for each feature, with commas; or name=weight, 0 for all others; or a file.",
    ),
]  # fmt: skip
Intercept = Annotated[
    float | None, typer.Option(help="The target's weight of a constant feature of size 1; by default there is none.")
]
OwnLabels = Annotated[
    bool, typer.Option("--own-labels", help="Take the labels that the target gives, not those in the data.")
]


@app.command()
def additive(
    data: Data, u: Weights, intercept: Intercept = None, target: Target = None, format: Format = None,
    own_labels: OwnLabels = False, report_file: Report = None, json: Json = False,
) -> None:  # fmt: skip
    """Bound the Perceptron on data by a target.

    Columns of numbers are not scaled. Of two labels the second in order is positive.

    \b
    Examples:
      onlearn bounds additive and.csv --u 1,1 --intercept -1.5
      onlearn bounds additive rows.svm --u 3=1,17=1 --intercept -0.5
    """
    _on_data("additive", data, u, intercept, target, format, own_labels, None, json, report_file)


@app.command()
def multiplicative(
    data: Data, u: Weights, intercept: Intercept = None, target: Target = None, format: Format = None,
    own_labels: OwnLabels = False,
    n: Annotated[
        int | None,
        typer.Option(help="The number of weights; by default of features, twice as many if --u has negative ones."),
    ] = None,
    report_file: Report = None,
    json: Json = False,
) -> None:  # fmt: skip
    """Bound normalised Winnow on data by a target.

    Columns of numbers are not scaled. Of two labels the second in order is positive.

    \b
    Examples:
      onlearn bounds multiplicative or.csv --u 1,1 --intercept -0.5
      onlearn bounds multiplicative rows.svm --u 3=1,17=1 --own-labels
    """
    _on_data("multiplicative", data, u, intercept, target, format, own_labels, n, json, report_file)


def _on_data(
    name: str, data: list[str], u: str, intercept: float | None, target: str | None, format: str | None,
    own_labels: bool, n: int | None, json: bool, report_file: str | None,
) -> None:  # fmt: skip
    check_report(report_file, *data)
    import numpy as np

    from onlearn.models.labelled_matrix import read_labelled_matrix
    from onlearn.theory import bounds

    rows = read_labelled_matrix(TrainOptions(sources=[*data], target=target, format=format))
    print_bad_rows(rows.bad)
    weights, X = np.array(_target(_content(u, "--u"), rows.X.shape[1], rows.names)), rows.X
    if intercept is not None:
        from scipy.sparse import hstack, issparse

        weights, ones = np.append(weights, intercept), np.ones((X.shape[0], 1))
        X = hstack([X, ones], format="csr") if issparse(X) else np.hstack([X, ones])
    y = None if own_labels else rows.signs(f"onlearn bounds {name} without --own-labels")
    try:
        value = bounds.additive(weights, X, y) if name == "additive" else bounds.multiplicative(weights, X, y, n=n)
    except ValueError as error:
        raise typer.BadParameter(str(error).rstrip("."), param_hint="--u") from None
    about = (getattr(bounds, name).__doc__ or "").splitlines()[0].rstrip(".")
    _print(name, {"rows": X.shape[0], "features": rows.X.shape[1]}, {"value": value}, about, json, report_file)


def _target(text: str, width: int, names: Any) -> list[float]:
    """The weights of a target, as they are written: one a feature, or by name."""
    parts = text.replace(",", " ").split()
    if not any("=" in one for one in parts):
        weights = _numbers(" ".join(parts), "--u")
        if len(weights) != width:
            raise typer.BadParameter(
                f"it must have a weight for each of the {width} features, but has {len(weights)}; "
                "name=weight gives those that are not 0",
                param_hint="--u",
            )
        return weights
    places = {name: place for place, name in enumerate(names())}
    weights, given = [0.0] * width, set()
    for one in parts:
        name, _, value = one.rpartition("=")
        if name not in places:
            raise typer.BadParameter(f"there is no feature {name!r}", param_hint="--u")
        if not value or name in given:
            why = "is given twice" if name in given else "has no weight"
            raise typer.BadParameter(f"the feature {name!r} {why}", param_hint="--u")
        given.add(name)
        weights[places[name]] = _numbers(value, "--u")[0]
    return weights


@app.command()
def recommend(
    data: Data,
    target: Target = None,
    format: Format = None,
    max_bad: MaxBad = MAX_BAD,
    strict: Strict = False,
    max_line: MaxLine = None,
    report_file: Report = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say which family of learners suits data.

    Additive learners, such as the Perceptron, or multiplicative ones, such as Winnow; for data of two classes.

    Features are made of the data as in training, but that columns of numbers are divided by their largest size, so
    that zeros stay zeros. The bounds of both families are compared, and both are run.

    \b
    Examples:
      onlearn bounds recommend reviews.jsonl
      onlearn bounds recommend train.csv --target income --report advice.html
    """
    from onlearn import theory
    from onlearn.models.labelled_matrix import read_labelled_matrix

    check_report(report_file, *data)
    options = TrainOptions(
        sources=[*data], target=target, format=format, strict=strict, max_bad=max_bad, max_line=max_line
    )
    rows = read_labelled_matrix(options)
    if not quiet:
        print_bad_rows(rows.bad)
    y = rows.signs("onlearn bounds recommend")
    advice = theory.recommend(rows.within_one(), y)
    write_report(report_file, "bounds", advice.to_dict(), evidence_of(report_file, None, data))
    if json:
        echo_json(advice.to_dict())
    else:
        typer.echo(str(advice))


# ----------------------------------------------------------------------------------------------------
# Pictures.


@app.command()
def plot(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A picture, by its name.", show_default=False)],
    file: Annotated[
        str,
        typer.Option("--output", "-o", metavar="FILE", show_default=False,
                     help="Where to write it; its extension says the format: .svg, .png or .html."),
    ],
    seed: Annotated[int | None, typer.Option(min=0, max=2**31 - 1, help="Seed of the data; each has its own.")] = None,
    json: Json = False,
) -> None:  # fmt: skip
    """Draw a picture of the theory.

    It needs Matplotlib: pip install 'onlearn[plot]'.

    \b
    irrelevant-attributes  mistakes against n for "10 of 100 of n", and bounds
    extreme-scenarios      2 of n attributes relevant; rows of the unit matrix
    mistakes-by-examples   mistakes against examples seen
    perceptron-in-action   boundary and weight vector after every mistake
    parabola               x -> (x, x^2) makes an interval separable
    squares                (x1, x2) -> (x1^2, x2^2) makes an ellipse a line
    kernel-boundaries      a linear, a polynomial and a Gaussian kernel
    winnow-weights         Winnow's weights over time
    potential              why the Perceptron stops: |w|^2 and w.u

    \b
    Examples:
      onlearn bounds plot potential -o potential.svg
      onlearn bounds plot irrelevant-attributes -o mistakes.html
    """
    from onlearn.theory.plots.page import find_picture, format_of, render

    picture, format = find_picture(name), format_of(file)
    try:
        with output(file) as out:
            out.write(render(picture.draw() if seed is None else picture.draw(seed=seed), format, picture))
    except ImportError as error:
        print_message(str(error))
        raise typer.Exit(2) from error
    if json:
        echo_json({"picture": picture.name, "file": file, "format": format, **_texts(picture)})
    else:
        typer.echo(file)


def _texts(picture: Any) -> dict[str, str]:
    return {key: getattr(picture, key) for key in ("title", "caption", "theorem")}
