"""Merging of feature maps: parts of the data are learned from apart, and merged to the map of one reader of all rows.

The map of a part begins with what is known before (``apart``). What it finds beyond that (``findings``) is merged in
the order of the data (``merged``): names are then numbered by first appearance over all rows; document counts are sums;
means and variances of numbers are combined, equal to rounding. A part is one piece of the data, or several from all
over it: then it has to be known which of its names it met first in which piece, and in which order the pieces are.

Only where names are met beyond ``max_names`` do the parts not tell all. The names and their numbers are still those of
one reader. But a part does not know which of its names have a place in the end, and a row counts once for a bucket,
however many of its names share it. So counts of documents, and of buckets in use, are too large for some features and
too small for others (``Merged.exact`` is False). Who needs them as one reader counts them has the parts read once more,
by maps that know the names from the beginning (``with_names``):

    learned = merged(base, parts)
    if not learned.exact:
        base = with_names(base, parts)
        parts = [...]  # findings(part, base), each part learned from anew by a map apart(base)
        learned = merged(base, parts)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from onlearn.data.bad_rows import DataError
from onlearn.errors import PlanError
from onlearn.features.extractors import combined_facts
from onlearn.features.feature_map import MATRIX, FeatureMap, read_extractor
from onlearn.features.roles import Role
from onlearn.features.vocabulary import added_names

Findings = tuple[dict[str, Any], dict[str, np.ndarray]]  # facts and arrays, as for a model file
Order = Sequence[tuple[int, int]]  # the pieces of the data, each by its part and its place there


class Merged(NamedTuple):
    """A merged map, and how it numbers the features of each part."""

    features: FeatureMap
    numbers: list[np.ndarray]  # for each part, the number of each of its features
    exact: bool  # whether all counts are those of one reader; names and their numbers always are


def apart(features: Any) -> FeatureMap:
    """A map to learn from one part of the data; it knows the names that ``features`` knows, and has counted nothing.

    >>> from onlearn.features import Category
    >>> base = FeatureMap([Category("colour")])
    >>> first, second = apart(base), apart(base)
    >>> first.learn([{"colour": "red"}, {"colour": "blue"}])
    >>> second.learn([{"colour": "green"}, {"colour": "red"}])
    >>> features, numbers, _ = merged(base, [findings(first, base), findings(second, base)])
    >>> features.get_feature_names_out().tolist(), numbers[1].tolist()
    (['colour=red', 'colour=blue', 'colour=green'], [2, 0])
    """
    return _mergeable(features).apart()


def findings(features: Any, base: Any, pieces: Sequence[int] = ()) -> Findings:
    """What a map that began as ``apart(base)`` has learned since, without the names that ``base`` has.

    ``pieces`` has the number of names that the map knew after each piece of its part of the data, if there are several.
    """
    features, base = _mergeable(features), _mergeable(base)
    facts: dict[str, Any] = {
        "kind": features.kind_,
        "rows": int(features.n_seen_),
        "width": int(features.width_),
        "columns": features.columns_,
        "extractors": [one.spell() for one in features.extractors_],
        "roles": {name: list(role) for name, role in features.roles_.items()},
        "sizes": [features.max_names, features.bits],
    }
    if not features.has_vocabulary:
        return facts, {}
    extraction, known = features.extraction, count_names(base)
    if known and not np.array_equal(extraction.vocabulary.hashes()[:known], base.vocabulary_.hashes()):
        raise ValueError("the features did not begin with the names of the base: make them by apart(base)")
    facts["names_before"] = known
    facts["vocabulary"], arrays = extraction.vocabulary.added(known, pieces)
    documents = extraction.documents[: extraction.vocabulary.width]
    arrays["documents"] = documents.astype(np.min_scalar_type(documents.max(initial=0)))
    arrays["scales"] = extraction.scales.copy()
    return facts, arrays


def merged(base: Any, parts: Sequence[Findings], order: Order | None = None) -> Merged:
    """The map of one reader who knew ``base`` and then learned from all rows of the parts.

    The reader's order is that of the parts, or the ``order`` of their pieces. The numbers of a part's
    features are those in the merged map. Where ``exact`` is False, a bucket of a part may hold features that have names
    in the merged map, so rows of that part are to be transformed by the merged map instead.
    """
    base = _mergeable(base)
    made = _with_counts_of(base, _begun(base, parts))
    numbers = _include_names(made, parts, order)
    exact = True
    for part, places in zip(parts, numbers):
        _include_counts(made, part, places)
        exact &= _is_exact(made, part, places)
    return Merged(made, numbers, exact)


def with_names(base: Any, parts: Sequence[Findings], order: Order | None = None) -> FeatureMap:
    """A map with all names of the parts, but only the counts of ``base``: a base for maps that read the parts anew."""
    base = _mergeable(base)
    made = _with_counts_of(base, _begun(base, parts))
    _include_names(made, parts, order)
    return made


def _mergeable(features: Any) -> FeatureMap:
    if not isinstance(features, FeatureMap):
        raise PlanError(f"{features!r} cannot learn from parts of the data: only a FeatureMap can be merged")
    return features


def count_names(features: Any) -> int:
    """The number of names that a map knows."""
    return len(features.vocabulary_) if features.has_vocabulary else 0


def _begun(base: FeatureMap, parts: Sequence[Findings]) -> FeatureMap:
    """A map that begins as those of the parts did; they must agree about what features there are."""
    made = base.apart()
    for facts, _ in parts:
        if facts["sizes"] != [base.max_names, base.bits]:
            raise PlanError(f"max_names={facts['sizes'][0]} and bits={facts['sizes'][1]} are not those of the base")
        if facts["kind"] is None:  # a part without rows
            continue
        if made.kind_ is None:
            extractors = [read_extractor(one) for one in facts["extractors"]]
            roles = {name: Role(*role) for name, role in facts["roles"].items()}
            made = made.begun(facts["kind"], extractors, roles, facts["columns"])
        if facts["kind"] != made.kind_:
            raise DataError(f"some rows are {made.kind_}, others {facts['kind']}: they cannot be learned from together")
        if facts["extractors"] != [one.spell() for one in made.extractors_]:
            raise PlanError("the parts of the data do not agree about the roles of their columns: name the extractors")
        if facts.get("names_before", 0) != count_names(base):
            raise ValueError("a part did not begin with the names of the base: make its map by apart(base)")
    return made


def _with_counts_of(base: FeatureMap, made: FeatureMap) -> FeatureMap:
    """The map with the counts of the base added, which has the same names."""
    made.n_seen_ = base.n_seen_
    if base.has_vocabulary:
        extraction = made.extraction
        extraction.rows, extraction.scales = base.extraction.rows, base.extraction.scales.copy()
        extraction.documents = base.extraction.documents[: base.vocabulary_.width].copy()
    return made


def _include_names(made: FeatureMap, parts: Sequence[Findings], order: Order | None) -> list[np.ndarray]:
    """Learn the names of the parts; returns the numbers of the features of each.

    A vocabulary has the first ``max_names`` names of its rows. So a name that found no place in that of a part of the
    rows has none in that of all rows, and names in the order of the data are numbered as if by one reader.
    """
    names = [added_names(facts["vocabulary"], arrays) if "vocabulary" in facts else None for facts, arrays in parts]
    if order is None:
        order = [(k, piece) for k, one in enumerate(names) for piece in range(0 if one is None else one.shape[0])]
    found: list[list[np.ndarray]] = [[] for _ in parts]
    for k, piece in order:
        one = names[k]
        if one is not None and one.indptr[piece] < one.indptr[piece + 1]:
            found[k].append(made.vocabulary_.learn(one.between(piece, piece + 1)))
    if any("vocabulary" in facts and facts["vocabulary"]["state"] == "hash" for facts, _ in parts):
        made.vocabulary_.note_overflow()
    return [_numbers(made, facts, ids) for (facts, _), ids in zip(parts, found)]


def _numbers(made: FeatureMap, facts: dict[str, Any], found: list[np.ndarray]) -> np.ndarray:
    """The numbers of the features of a part, of which those of its new names are ``found``."""
    if "vocabulary" not in facts:
        return np.arange(facts["width"], dtype=np.int32)
    numbers = [np.arange(facts["names_before"], dtype=np.int32), *found]
    if facts["vocabulary"]["state"] == "hash":
        numbers.append(np.arange(len(made.vocabulary_), made.vocabulary_.width, dtype=np.int32))
    return np.concatenate(numbers)


def _include_counts(made: FeatureMap, part: Findings, numbers: np.ndarray) -> None:
    """Add the counts of a part."""
    facts, arrays = part
    made.n_seen_ += facts["rows"]
    made.width_ = max(made.width_, facts["width"])
    if "vocabulary" not in facts:
        return
    extraction = made.extraction
    extraction.rows += facts["rows"]
    extraction.scales = combined_facts(extraction.scales, arrays["scales"])
    if "seen" in arrays:
        extraction.vocabulary.note_buckets(arrays["seen"])
    documents = arrays["documents"]
    if len(documents):
        if (width := extraction.vocabulary.width) > len(extraction.documents):
            before, extraction.documents = extraction.documents, np.zeros(width, np.int64)
            extraction.documents[: len(before)] = before
        # several names may have the same bucket
        np.add.at(extraction.documents, numbers[: len(documents)], documents.astype(np.int64))


def _is_exact(made: FeatureMap, part: Findings, numbers: np.ndarray) -> bool:
    """Whether the counts of a part are those of its rows in the merged map."""
    facts, arrays = part
    if made.kind_ == MATRIX or facts["kind"] is None:
        return True
    first = facts["names_before"]
    if (numbers[first : first + len(arrays["hashes"])] < len(made.vocabulary_)).all():
        return True  # if the part has used buckets, it has ``max_names`` names, the same as the merged map
    return facts["vocabulary"]["state"] != "hash" and not len(arrays["documents"])
