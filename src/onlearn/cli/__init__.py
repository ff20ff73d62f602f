"""The command line: ``onlearn COMMAND``. One file a command; this one lists them.

Nothing heavy is imported before a command needs it, so that ``--help`` answers at once. Exit codes: 0 good,
2 bad usage or input, 1 failure, 130 stopped by Ctrl-C; an error is one sentence on stderr.
"""

from __future__ import annotations

import sys

try:
    import gc
    import os
    import threading
    from collections.abc import Iterable
    from contextlib import suppress
    from importlib import import_module
    from typing import Annotated

    import typer

    from onlearn import __version__
    from onlearn.cli.terminal import (
        Stopped,
        as_options,
        command_line,
        one_line_warnings,
        option_name,
        print_message,
        replace_closed_streams,
    )
    from onlearn.errors import ClusterError, PlanError
except KeyboardInterrupt:  # before anything has begun
    print("onlearn: stopped", file=sys.stderr)
    sys.exit(130)

# Each is a function in the file of its name, or an app of several commands.
COMMANDS = (
    "train",
    "tune",
    "stream",
    "predict",
    "evaluate",
    "compare",
    "inspect",
    "explain",
    "data",
    "bounds",
    "demo",
    "reproduce",
    "warm",
)


def app_of(names: Iterable[str]) -> typer.Typer:
    """The command line with these commands."""
    app = typer.Typer(
        name="onlearn",
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # Rich's help takes longer to import than everything else together
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for name in names:
        module = import_module(f"onlearn.cli.{name}")
        if hasattr(module, "app"):
            app.add_typer(module.app, name=name)
        else:
            app.command()(getattr(module, name))
    app.callback(invoke_without_command=True)(_start)
    return app


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"onlearn {__version__}")
        raise typer.Exit


def _start(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Mistake-driven learning at hardware speed: every classic online learner from one small engine.

    \b
    Examples:
      onlearn data describe reviews.jsonl      what is in a file
      onlearn train reviews.jsonl -o m.onl     from a file to a model
      onlearn tune reviews.jsonl               which learner and features are best
      onlearn stream - -o m.onl                learn row by row, as data come
      onlearn predict m.onl new.jsonl          a label for each row
      onlearn evaluate m.onl test.jsonl        how good the model is
      onlearn compare reviews.jsonl            several learners side by side
      onlearn inspect m.onl                    what it has learned
      onlearn bounds recommend train.csv       which family of learners suits data
      onlearn demo                             every named learner on small data
      onlearn reproduce ocr                    a published table, ours beside it
      onlearn demo --help                      what a command can do
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """The ``onlearn`` command."""
    try:
        replace_closed_streams()
        # OpenBLAS threads spin before they sleep, from the moment NumPy is imported: on a core that parsing needs.
        os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
        code = run(sys.argv[1:])
    except KeyboardInterrupt:  # before the command ran, or a second time while it ended
        print_message("stopped")
        code = 130
    _leave(code)


def _leave(code: int) -> None:
    """End the process at once if a thread still waits for standard input: Python may crash when it waits for that.

    After Ctrl-C too: if it came in code compiled from a string, as in named tuples, Python would end by the signal.
    """
    if code == 130 or any(thread.daemon for thread in threading.enumerate()):
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)
    gc.freeze()  # else Python collects garbage once more, which takes long
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run the command line; returns the exit code."""
    # Only the command that is asked for is imported: building the options of all takes long.
    asked = [name for name in arguments[:1] if name in COMMANDS and "_ONLEARN_COMPLETE" not in os.environ]
    command_line.set(tuple(arguments))  # reports show it
    try:
        with one_line_warnings():
            code = app_of(asked or COMMANDS)(arguments, prog_name="onlearn", standalone_mode=False)
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    except Stopped as stopped:
        print_message(str(stopped))
        return 130
    except BrokenPipeError:  # the reader of our output has closed it
        _mute()
        return 1
    except Exception as error:
        if isinstance(error, OSError):
            try:
                sys.stdout.flush()
            except OSError:  # standard output cannot be written, and Python would try again
                _mute()
        return _print_error(error, " ".join(["onlearn", *asked]))
    if code == 130:
        print_message("stopped")
    return code if isinstance(code, int) else 0


def _mute() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_error(error: Exception, command: str) -> int:
    """Print the error in one sentence; returns the exit code."""
    if os.environ.get("ONLEARN_TRACEBACK"):
        raise error
    # Errors of Click cannot be imported safely: Typer has its own copy of Click, or uses the installed one.
    if hasattr(error, "format_message"):
        context = getattr(error, "ctx", None)
        where = context.command_path if context is not None else command
        print_message(f"{error.format_message().rstrip('.')} (see {where} --help)")
        return int(getattr(error, "exit_code", 2))
    if isinstance(error, PlanError):
        which = "" if error.parameter is None else f" for {option_name(error.parameter)}"
        text = as_options(" ".join(error.message.split())).rstrip(".")
        print_message(f"Invalid value{which}: {text} (see {command} --help)")
        return 2
    text = " ".join(str(error).split())
    if _is_about_input(error):
        if isinstance(error, OSError) and error.errno is not None:
            text = f"{error.filename}: {error.strerror}" if error.filename else f"{error.strerror}"
        print_message(as_options(text))
        return 2
    plain = text and isinstance(error, ClusterError)
    print_message(text if plain else f"{type(error).__name__}: {text}" if text else type(error).__name__)
    return 1


def _is_about_input(error: Exception) -> bool:
    """Whether an error is about the data, the model file or a place to write, and its message says enough."""
    if isinstance(error, OSError):
        files = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError, FileExistsError)
        return error.errno is not None or isinstance(error, files)
    # By name: importing the modules takes long, and a module that is not imported has raised nothing.
    homes = ("onlearn.data.bad_rows", "onlearn.model_file")
    return any(cls.__module__ in homes for cls in type(error).__mro__)
