"""``onlearn warm``: compile the loops of learners ahead of time."""

from __future__ import annotations

from time import perf_counter
from typing import Annotated

import typer

from onlearn.cli.terminal import echo, print_message, progress


def warm(
    everything: Annotated[
        bool,
        typer.Option("--all", help="Every combination, also those that no named learner uses: takes long."),
    ] = False,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes that compile; as many as processors if not given.")
    ] = None,
) -> None:
    """Compile ahead of time, for images and CI.

    The loops of the named learners: dense and sparse rows, float32 and float64, two classes and several; those of
    learning with kernels; kernels and approximations; the readers and the features. What is compiled already is not
    compiled again.

    \b
    Examples:
      onlearn warm
      onlearn warm --all --jobs 4
    """
    from onlearn import warm

    if not warm.can_keep():
        print_message(warm.WHY_NOT)
        raise typer.Exit(1)
    start = perf_counter()
    loops = warm.all_loops() if everything else warm.named_loops()
    loops = [*loops, *warm.mixture_loops(), *warm.bayes_loops(), *warm.network_loops(), *warm.neighbor_loops()]
    loops = [*loops, *warm.kernel_loops(everything)]
    compiled = 0
    with progress("compiling", len(loops)) as advance:
        for loop, fresh in warm.warm(loops, jobs):
            compiled += fresh
            advance("kernels" if loop.layout == "kernels" else f"{loop.geometry}, {loop.stabilizer}".removesuffix(", "))
    with progress("compiling", 2) as advance:
        from onlearn import data
        from onlearn.warm import compile_features

        advance("readers")
        data.warm()
        advance("features")
        for _ in compile_features():
            pass
    seconds = perf_counter() - start
    echo(f"{compiled} loops compiled, {len(loops) - compiled} were ready, {seconds:.1f} s")
