"""Commands that have commands of their own."""

from __future__ import annotations

import typer


def group(what: str) -> typer.Typer:
    """A place for commands, which alone shows its help, as ``onlearn`` does."""
    made = typer.Typer(rich_markup_mode=None, context_settings={"help_option_names": ["-h", "--help"]})

    @made.callback(invoke_without_command=True, help=what)
    def alone(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            typer.echo(context.get_help())

    return made
