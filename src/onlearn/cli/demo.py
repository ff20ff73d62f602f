"""``onlearn demo``: every named learner on three data sets, in one table each."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from onlearn.cli.terminal import echo_json, print_message, progress, show

if TYPE_CHECKING:
    from onlearn.reproduce.demo import Result


def demo(
    data: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this data set: digits, cancer or concept; may be repeated."),
    ] = None,
    learner: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this learner, such as Winnow; may be repeated."),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(min=0, max=2**31 - 1, help="Seed of the splits, the concept and the order of rows."),
    ] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Train every named learner and show its accuracy, mistakes and mistake bound.

    On two data sets that ship with scikit-learn and on a generated concept. Shows the accuracy on
    rows not seen, the mistakes made while learning, the mistake bound where a theorem gives one, and examples
    a second. The first run compiles the loops.

    \b
    Examples:
      onlearn demo
      onlearn demo --data concept --learner Winnow --learner Perceptron
      onlearn demo --json --seed 1 > results.json
    """
    from onlearn.reproduce.demo import DATA, LEARNERS, results

    sets = _known("data", data, DATA)
    learners = _known("learner", learner, LEARNERS)
    _compile(sets, learners)
    found = []
    with progress("learning", len(sets) * len(learners)) as advance:
        for result in results(sets, learners, seed):
            found.append(result)
            advance(f"{result.learner} on {result.data}")
    _print_json(found, seed) if json else _print_tables(found)


def _known(option: str, asked: list[str] | None, names: Iterable[str]) -> list[str]:
    """The names that were given; all names if none was."""
    names = list(names)
    small = {name.lower(): name for name in names}
    asked = [small.get(name.lower(), name) for name in asked or []]
    for name in asked:
        if name not in names:
            close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
            hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(names)}"
            raise typer.BadParameter(f"there is no {option} {name!r}: {hint}", param_hint=f"--{option}")
    return list(dict.fromkeys(asked)) if asked else names


def _compile(sets: list[str], learners: list[str]) -> None:
    """If the first loop is not compiled yet, compile all of them, on all processors."""
    from onlearn.reproduce.demo import loops_for
    from onlearn.warm import can_keep, compile_loop, warm

    loops = loops_for(sets, learners)
    if not can_keep() or not compile_loop(loops[0]):
        return
    print_message(f"compiling {len(loops)} loops, once on this machine")
    with progress("compiling", len(loops) - 1) as advance:
        for loop, _ in warm(loops[1:]):
            advance(f"{loop.geometry}, {loop.stabilizer}")


def _print_json(found: list[Result], seed: int) -> None:
    from onlearn import __version__

    echo_json({"onlearn": __version__, "seed": seed, "results": [r._asdict() for r in found]})


def _print_tables(found: list[Result]) -> None:
    from itertools import groupby

    from rich import box
    from rich.table import Table

    from onlearn.reproduce.demo import DATA

    for name, group in groupby(found, key=lambda result: result.data):
        about = (DATA[name].__doc__ or "").rstrip(".")
        table = Table(
            title=f"{name}: {about}",
            title_justify="left",
            title_style="bold",
            box=box.SIMPLE,
            collapse_padding=True,
            pad_edge=False,
            show_edge=False,
        )
        table.add_column("learner", style="cyan", no_wrap=True)
        for heading in ("test\naccuracy", "mistakes", "mistake\nbound"):
            table.add_column(heading, justify="right")
        table.add_column("theorem", no_wrap=True)
        table.add_column("examples/s", justify="right")
        for r in group:
            bound = "" if r.bound is None else f"{r.bound:,.0f}"
            theorem, speed = (r.theorem or "").replace("_", " "), f"{r.examples_per_second:,.0f}"
            table.add_row(r.learner, f"{r.accuracy:.3f}", f"{r.mistakes:,}", bound, theorem, speed)
        show(table)
