"""Options of reading that have no use with a format. They are refused, unless they may be meant for another file."""

from __future__ import annotations

from onlearn.data.badrows import DataError
from onlearn.data.registry import EXTENSIONS, Options, readers
from onlearn.data.sources import Source

OF_CELLS = {"csv", "tsv"}  # formats that have a delimiter and a header


def refuse_idle(options: Options, source: Source, name: str, others: list[Source]) -> None:
    """``source`` is of the format ``name``; ``others`` are those whose format is told by their names."""
    known = [EXTENSIONS.get(end) for other in others for end in other.extensions[:1] or [""]]
    if any(other is None or other == "fasttext" for other in known):  # any format, then
        return
    formats = {name, *(other for other in known if other is not None)}
    asked = {"delimiter": options.delimiter, "header": None if options.header == "auto" else options.header}
    for option, value in asked.items():
        if value is not None and formats.isdisjoint(OF_CELLS):
            raise DataError(f"{source.name} is read as {name}, and {option} is about CSV: do not say {option}=")
    id = options.id if options.id_required else None
    for option, given in (
        ("target", options.target is not None),
        ("weight", options.weight is not None),
        ("id", id is not None),
        ("types", bool(options.types)),
    ):
        reasons = {one: getattr(readers()[one], "idle", {}).get(option) for one in formats}
        if given and None not in reasons.values():
            raise DataError(f"{source.name}: {option}= has no use here: {reasons[name]}")
