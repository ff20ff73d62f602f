"""Which namespaces occurred, so that an interaction with one that never did is told of."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.data.nearby import did_you_mean
from onlearn.features import Features, Interaction
from onlearn.named import NamedRows


class Namespaces:
    """Those of the rows that were learned from."""

    def __init__(self) -> None:
        self.met: set[str] = set()

    def meet(self, rows: Any, features: Features) -> None:
        """Some rows; those without namespaces are passed over, and so are all where nothing is multiplied."""
        if isinstance(rows, NamedRows) and _interactions(features):
            used = np.bincount(rows.groups, minlength=len(rows.prefixes))
            self.met.update(prefix.removesuffix("^") for prefix, count in zip(rows.prefixes, used) if count)

    def lacking(self, features: Features) -> list[str]:
        """A sentence for each interaction that had nothing to multiply."""
        if not self.met:
            return []
        asked = _interactions(features)
        few = [one for one in asked if not one.columns and len(self.met) < one.degree]
        there = ", ".join(repr(name) if name else "the one without a name" for name in sorted(self.met))
        return [
            f"--interact {'pairs' if one.degree == 2 else 'triples'} has nothing to multiply: "
            f"it takes {one.degree} different namespaces, and there is only {there}"
            for one in few
        ] + [
            f"the namespace {name!r} of --interact {','.join(one.columns)} never occurred"
            f"{did_you_mean(name, sorted(self.met - {''}))}"
            for one in asked
            for name in dict.fromkeys(one.columns)
            if name not in self.met
        ]


def _interactions(features: Features) -> list[Interaction]:
    given = features.extractors
    return [] if isinstance(given, str) else [one for one in given if isinstance(one, Interaction)]
