"""``Features``: raw rows to a matrix of numbered features, as a scikit-learn transformer."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import NotFittedError

from onlearn.data.named_rows import NamedRows
from onlearn.features.extraction import Extraction
from onlearn.features.extractors import FUNCTIONS, Category, Number, Own, check_choice, spell
from onlearn.features.interactions import Interaction, each_once, refuse_doubles, refuse_idle
from onlearn.features.roles import Role, extractors_for, guess_roles
from onlearn.features.tables import as_source, is_plain_texts, renamed
from onlearn.features.text import Text
from onlearn.features.vocabulary import Vocabulary

KINDS: dict[str, Any] = {kind.kind: kind for kind in (Text, Category, Number, Interaction)}
MATRIX, NAMED, TABLE = "a matrix", "named rows", "a table"
LEARNED = ("kind_", "width_", "extractors_", "roles_", "_extraction", "n_seen_", "_settled")


class Features(TransformerMixin, BaseEstimator):
    """Turns rows of a table, texts, dicts or named features into a sparse matrix, and learns on the way.

    ``extractors`` is a list of ``Text``, ``Category``, ``Number`` and ``Interaction``, of functions decorated by
    ``@onlearn.feature``, and of the word "auto", which stands for an extractor for every column that no other is
    for, as ``guess_roles`` sees it in the first rows learned from. A matrix goes through as it is.

    The vocabulary, the scales and the document counts change in ``fit``, ``partial_fit`` and ``learn_transform`` only.

    >>> features = Features([Category("colour"), Number("size", scale="none")])
    >>> features.fit_transform([{"colour": "red", "size": 2}, {"colour": "blue"}]).toarray()
    array([[1., 2., 0.],
           [0., 0., 1.]], dtype=float32)
    >>> list(features.get_feature_names_out())
    ['colour=red', 'size', 'colour=blue']
    """

    kind_: str
    width_: int
    extractors_: list[Any]
    roles_: dict[str, Role]
    n_seen_: int
    _extraction: Extraction
    _settled: dict[str, Any]

    def __init__(
        self,
        extractors: Any = "auto",
        *,
        max_names: int = 1 << 21,
        bits: int = 22,
        dtype: Any = "float32",
    ) -> None:
        self.extractors = extractors
        self.max_names = max_names
        self.bits = bits
        self.dtype = dtype

    # ------------------------------------------------------------------ learning

    def fit(self, X: Any, y: Any = None) -> Features:
        """Learn from these rows only."""
        return self._afresh()._learned(X, transform=False)[0]

    def partial_fit(self, X: Any, y: Any = None) -> Features:
        """Learn from more rows."""
        return self._learned(X, transform=False)[0]

    def fit_transform(self, X: Any, y: Any = None, **_: Any) -> sp.csr_matrix:
        """Learn from these rows only, and their matrix."""
        return self._afresh().learn_transform(X)

    def learn_transform(self, X: Any, ordered: bool = True) -> sp.csr_matrix:
        """Learn from more rows, and their matrix, in one walk; statistics are those so far, these rows included.

        If not ``ordered``, the features of a row come as they are met, which takes less time.
        """
        return self._learned(X, transform=True, ordered=ordered)[1]

    def look_up(self, X: Any) -> Any:
        """Rows to be learned from later, with what can be found out now, while another thread learns from others.

        What it finds is good until ``keep`` numbers the features anew.
        """
        named = isinstance(X, NamedRows) and getattr(self, "kind_", None) == NAMED
        return self._extraction.look_up(X) if named else X

    def transform(self, X: Any) -> sp.csr_matrix:
        """The rows' matrix; features that were not learned are left out."""
        if not hasattr(self, "kind_"):
            raise NotFittedError("Features has not learned from any rows yet: call fit or partial_fit first")
        source = self._source(X)
        if self.kind_ == MATRIX:
            return _of_width(source, self.width_)
        return self._extraction.transform(self._extraction.open(source))

    def _afresh(self) -> Features:
        for name in (*LEARNED, "n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                delattr(self, name)
        return self

    def _came_with(self, columns: list[str]) -> None:
        self.n_features_in_, self.feature_names_in_ = len(columns), np.array(columns, dtype=object)

    def _source(self, X: Any) -> Any:
        """Rows of the kind that was learned from."""
        source = as_source(X)
        kind = kind_of(source)
        if kind == TABLE:
            extractors = self.extractors_ if hasattr(self, "kind_") else _listed(self.extractors)
            source = renamed(source, {one.column for one in extractors if hasattr(one, "column")})
        if hasattr(self, "kind_") and kind != self.kind_:
            raise TypeError(f"these features were learned from {self.kind_}, but X is {kind}")
        return source

    def _settings(self) -> dict[str, Any]:
        """The parameters that what is learned depends on."""
        sizes = {"max_names": self.max_names, "bits": self.bits}
        return {"extractors": _listed(self.extractors), "dtype": np.dtype(self.dtype), **sizes}

    def _hold_to_settings(self) -> None:
        """Refuse parameters that were changed since learning began, and that would have no effect."""
        for name, now in self._settings().items():
            if now != self._settled[name]:
                raise ValueError(
                    f"{name} was {self._settled[name]!r} when learning began and cannot change to {now!r} now: "
                    "set it back, or fit anew"
                )

    def _learned(self, X: Any, transform: bool, ordered: bool = True) -> tuple[Features, Any]:
        if hasattr(self, "kind_"):
            self._hold_to_settings()
        source = self._source(X)
        kind = kind_of(source)
        if kind == MATRIX:
            if not isinstance(self.extractors, str) and len(self.extractors):
                raise ValueError("extractors are for tables, and interactions for names; a matrix is taken as it is")
            self.width_ = max(getattr(self, "width_", 0), source.shape[1])
            self.kind_, self.extractors_, self.roles_, self._settled = kind, [], {}, self._settings()
            self.n_features_in_ = self.width_
            self.n_seen_ = getattr(self, "n_seen_", 0) + source.shape[0]
            return self, _of_width(source, self.width_)
        begun = (self.extractors_, self.roles_, self._extraction) if hasattr(self, "kind_") else self._begin(source)
        extractors, roles, extraction = begun
        opened = extraction.open(source, learning=True)  # from here on nothing can be wrong with the rows
        if not hasattr(self, "kind_") and kind == TABLE and not is_plain_texts(source):
            self._came_with(source.column_names)
        self.kind_, self.extractors_, self.roles_, self._extraction = kind, extractors, roles, extraction
        self._settled = self._settings()
        made = extraction.learn(opened, transform, ordered)
        self.n_seen_ = extraction.rows
        return self, made

    def _begin(self, source: Any) -> tuple[list[Any], dict[str, Role], Extraction]:
        """Extractors, roles and an extraction for rows such as these."""
        check_choice(str(np.dtype(self.dtype)), ("float32", "float64"), "dtype")
        given = _listed(self.extractors)
        for one in given:
            if one != "auto" and not isinstance(one, (*KINDS.values(), Own)):
                hint = "decorate it by @onlearn.feature" if callable(one) else "it is no extractor"
                raise TypeError(
                    f"extractors are Text, Category, Number, Interaction, functions or 'auto', not {one!r}: {hint}"
                )
        roles: dict[str, Role] = {}
        extractors: list[Any] = []
        if isinstance(source, NamedRows):
            extractors = [one for one in given if isinstance(one, Interaction)]
            if wrong := [one for one in given if one != "auto" and not isinstance(one, Interaction)]:
                raise ValueError(f"{wrong[0]!r} is for tables; these rows have named features already")
        else:
            taken = {one.column for one in given if hasattr(one, "column")}
            for one in given:
                if one == "auto":
                    roles = _roles(source.select([c for c in source.column_names if c not in taken]))
                    extractors += extractors_for(roles, text={"prefix": None} if taken else None)
                else:
                    extractors.append(one)
            if not any(not isinstance(one, Interaction) for one in extractors):
                why = "; ".join(f"{name}: {role.reason}" for name, role in roles.items())
                raise ValueError(
                    f"there is no column to take features from ({why or 'no extractors'}): name extractors"
                )
            refuse_doubles(extractors)
            refuse_idle(extractors)
        extractors = each_once(extractors)
        extraction = Extraction(extractors, Vocabulary(self.max_names, self.bits), self.dtype)
        return extractors, roles, extraction

    # ------------------------------------------------------------------ what was learned

    @property
    def vocabulary_(self) -> Vocabulary:
        """The names of the features."""
        return self._extraction.vocabulary

    def expect(self, share: float) -> None:
        """Told what share of the data has been learned from, make room for what is still to come."""
        if self.kind_ != MATRIX:
            self.vocabulary_.expect(share)

    @property
    def n_features_out_(self) -> int:
        """The width of the matrices now."""
        return self.width_ if self.kind_ == MATRIX else self.vocabulary_.width

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The names of the features, by number."""
        if not hasattr(self, "kind_"):
            raise NotFittedError("Features has not learned from any rows yet: call fit or partial_fit first")
        if self.kind_ == MATRIX:
            return np.array([str(k) for k in range(self.width_)], dtype=object)
        names: list[str] = self.vocabulary_.names()
        names += [self.vocabulary_.name_of(k) for k in range(len(names), self.vocabulary_.width)]
        return np.array(names, dtype=object)

    def name_of(self, number: int) -> str:
        """The name of one feature."""
        return str(number) if self.kind_ == MATRIX else self.vocabulary_.name_of(number)

    def keep(self, kept: np.ndarray, state: str | None = "drop") -> np.ndarray:
        """Keep some features only, numbered anew; returns which columns of a matrix, or of weights, remain.

        By default no further names are taken in from now on, or what was dropped would come back.
        """
        if self.kind_ == MATRIX:
            raise ValueError("the features of a matrix have no vocabulary to be dropped from: select its columns")
        columns = self.vocabulary_.keep(kept, state)
        extraction = self._extraction
        if len(extraction.documents):
            known = columns[columns < len(extraction.documents)]
            counts = np.zeros(self.vocabulary_.width, np.int64)
            counts[: len(known)] = extraction.documents[known]
            extraction.documents = counts
        return columns

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "kind_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.sparse = tags.input_tags.two_d_array = True
        tags.requires_fit, tags.no_validation = True, True
        return tags

    # ------------------------------------------------------------------ the model file

    def _pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Plain facts, and arrays: all that is needed to go on."""
        facts: dict[str, Any] = {
            "kind": self.kind_,
            "settings": {"max_names": self.max_names, "bits": self.bits, "dtype": str(np.dtype(self.dtype))},
            "given": _spell_given(self.extractors),
            "extractors": [spell(one) for one in self.extractors_],
            "roles": {name: list(role) for name, role in self.roles_.items()},
            "n_seen": int(self.n_seen_),
            "columns": [str(name) for name in getattr(self, "feature_names_in_", ())],
        }
        if self.kind_ == MATRIX:
            return {**facts, "width": int(self.width_)}, {}
        extraction = self._extraction
        words, arrays = extraction.vocabulary.pack()
        arrays = {f"vocabulary.{key}": array for key, array in arrays.items()}
        arrays["scales"] = extraction.scales
        arrays["documents"] = extraction.documents[: extraction.vocabulary.width]
        return {**facts, "vocabulary": words}, arrays

    def _unpack(self, facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Become what was packed."""
        settings = facts["settings"]
        self.max_names, self.bits, self.dtype = settings["max_names"], settings["bits"], settings["dtype"]
        self.extractors = _read_given(facts["given"])
        check_choice(facts["kind"], (MATRIX, NAMED, TABLE), "the kind of rows")
        self._afresh()
        extractors = [_read(one) for one in facts["extractors"]]
        roles = {name: Role(*role) for name, role in facts["roles"].items()}
        if facts.get("columns"):
            self._came_with(list(facts["columns"]))
        if facts["kind"] == MATRIX:
            self.width_ = self.n_features_in_ = int(facts["width"])
        else:
            prefix = "vocabulary."
            own = {key.removeprefix(prefix): array for key, array in arrays.items() if key.startswith(prefix)}
            extraction = Extraction(extractors, Vocabulary.unpack(facts["vocabulary"], own), self.dtype)
            scales, documents = arrays["scales"], arrays["documents"]
            if scales.shape != extraction.scales.shape or scales.dtype != np.float64 or not np.isfinite(scales).all():
                raise ValueError("the scales of the features do not go with their extractors")
            if documents.dtype != np.int64 or documents.ndim != 1 or len(documents) > extraction.vocabulary.width:
                raise ValueError("the document counts do not go with the vocabulary")
            extraction.scales, extraction.documents, extraction.rows = scales.copy(), documents.copy(), facts["n_seen"]
            self._extraction = extraction
        self.kind_, self.extractors_, self.roles_, self.n_seen_ = facts["kind"], extractors, roles, facts["n_seen"]
        self._settled = self._settings()

    @classmethod
    def _restore(cls, facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> Features:
        """Features as they were packed."""
        self = cls()
        self._unpack(facts, arrays)
        return self


def _roles(table: Any) -> dict[str, Role]:
    """As guessed, but a plain list of texts is text however short they are."""
    if is_plain_texts(table) and not table.num_rows:
        return {name: Role("ignore", "there are no rows") for name in table.column_names}
    if is_plain_texts(table):
        return {name: Role("text", "X is a list of texts") for name in table.column_names}
    return guess_roles(table)


def kind_of(source: Any) -> str:
    """What kind of rows these are, which are a table, named or a matrix."""
    return MATRIX if sp.issparse(source) else NAMED if isinstance(source, NamedRows) else TABLE


def _of_width(X: sp.csr_matrix, width: int) -> sp.csr_matrix:
    """A matrix with columns added or cut off."""
    if X.shape[1] == width:
        return X
    if X.shape[1] > width:
        return X[:, :width]
    return sp.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], width))


def _listed(extractors: Any) -> list[Any]:
    """One extractor, or a list of them, as a list."""
    return [extractors] if isinstance(extractors, (str, *KINDS.values(), Own)) else list(extractors)


def _spell_given(extractors: Any) -> Any:
    if isinstance(extractors, str):
        return extractors
    return [one if isinstance(one, str) else spell(one) for one in _listed(extractors)]


def _read_given(spelled: Any) -> Any:
    return spelled if isinstance(spelled, str) else [one if isinstance(one, str) else _read(one) for one in spelled]


def _read(spelled: dict[str, Any]) -> Any:
    """An extractor from its spelling as JSON."""
    rest = dict(spelled)
    kind = rest.pop("kind")
    if kind == Own.kind:
        if rest["name"] not in FUNCTIONS:
            raise ValueError(
                f"the features use a function {rest['name']!r}, which a model file does not hold: "
                "define it with @onlearn.feature before loading"
            )
        return FUNCTIONS[rest["name"]]
    if kind == Interaction.kind:
        return Interaction(*rest["columns"], degree=rest["degree"])
    if kind not in KINDS:
        raise ValueError(f"unknown kind of extractor {kind!r}")
    return KINDS[kind](**rest)
