"""What somebody may have meant who wrote a name that is not there."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

SHOWN = 12


def did_you_mean(name: str, there: Sequence[str]) -> str:
    """The end of a sentence that says that a name is not there.

    >>> did_you_mean("colour", ["color", "size"])
    "; did you mean 'color'?"
    >>> did_you_mean("weight", ["color", "size"])
    '; there are color, size'
    """
    small = {one.lower(): one for one in there}
    close = difflib.get_close_matches(name.lower(), small, n=1, cutoff=0.6)
    if close:
        return f"; did you mean {small[close[0]]!r}?"
    more = f" and {len(there) - SHOWN} more" if len(there) > SHOWN else ""
    return f"; there are {', '.join(there[:SHOWN])}{more}" if there else ""
