"""Numbers of bytes, as people write them."""

from __future__ import annotations

import re

UNITS = {"": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}
LIMIT = 1 << 63  # bytes, which no file has
WRITTEN = re.compile(r"([0-9]+(?:\.[0-9]+)?) *([KMG]?)I?B?", re.IGNORECASE)


def parse_size(given: int | str, what: str = "it") -> int:
    """A number of bytes, of at least 1, from such a number or from text.

    >>> parse_size("64MB"), parse_size("1.5 kb"), parse_size(1000)
    (67108864, 1536, 1000)
    """
    found = WRITTEN.fullmatch(str(given).strip())
    size = 0 if found is None else float(found[1]) * UNITS[f"{found[2].upper()}B" if found[2] else ""]
    if not 1 <= size < LIMIT or isinstance(given, bool):
        raise ValueError(f"{what} must be a number of bytes, such as 1000000, 64MB or 1GB, not {given!r}")
    return int(size)


def size_text(size: int) -> str:
    """A number of bytes, with the largest unit of which it is a whole number.

    >>> size_text(64 << 20), size_text(1000)
    ('64 MB', '1000 bytes')
    """
    unit = next(unit for unit, factor in reversed(UNITS.items()) if size % factor == 0)
    return f"{size // UNITS[unit]} {unit or 'bytes'}"
