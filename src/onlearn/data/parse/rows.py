"""What the loops of svmlight and Vowpal Wabbit lines do alike when something is wrong: off the path of most rows."""

from __future__ import annotations

from typing import Any

from onlearn.compile import compiled
from onlearn.data.parse.numbers import INFINITE, MISSING


@compiled
def note_bad(out: Any, bad: Any, line: Any, begin: Any, place: Any, reason: Any) -> Any:
    """Write down a bad row; returns how many there are."""
    out.bad_lines[bad], out.bad_starts[bad] = line, begin
    out.bad_places[bad], out.bad_reasons[bad] = place, reason
    return bad + 1


@compiled
def why_not(outcome: Any, malformed: Any, infinite: Any, missing: Any) -> Any:
    """Why a value cannot be taken, by the caller's numbers for the reasons."""
    if outcome == MISSING:
        return missing
    return infinite if outcome == INFINITE else malformed
