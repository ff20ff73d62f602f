"""Where in the code of a user an error was raised: in a format, a rule, an extractor or a peer of their own."""

from __future__ import annotations

import os
import sysconfig
import traceback
from collections.abc import Callable
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
INSTALLED = {"site-packages", "dist-packages"}  # folders of packages of others


def user_error(error: BaseException, says_enough: Callable[[BaseException], bool]) -> tuple[BaseException, str] | None:
    """The error of users' code behind an error, and its place there; None if there is none, or it says enough."""
    found: BaseException | None = error
    passed: set[int] = set()
    while found is not None and id(found) not in passed:  # an error may be its own cause
        if not says_enough(found) and (place := _place(found)) is not None:
            return found, place
        if isinstance(found, OSError):  # ours name the file, whatever was in its way
            return None
        passed.add(id(found))
        found = found.__cause__
    return None


def _place(error: BaseException) -> str | None:
    """The innermost line of users' code on the way to an error."""
    homes = [PACKAGE, *(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib"))]
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        file = frame.f_code.co_filename
        path = Path(os.path.realpath(file))
        if path.is_file() and not INSTALLED & {*path.parts} and not any(path.is_relative_to(home) for home in homes):
            return f"{file}, line {line}"
    return None
