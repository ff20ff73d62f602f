"""``FeatureMap``: raw rows to numbered features, learned batch by batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.data.named_rows import NamedRows
from onlearn.engine.csr import CSR
from onlearn.engine.spec import did_you_mean
from onlearn.features.extraction import Extraction
from onlearn.features.extractors import FUNCTIONS, Category, Number, Own, check_choice, spell
from onlearn.features.interactions import Interaction, each_once, refuse_doubles, refuse_idle
from onlearn.features.roles import PlanError, Role, extractors_for, guess_roles
from onlearn.features.tables import as_source, column, is_plain_texts, is_text, renamed
from onlearn.features.text import Text
from onlearn.features.vocabulary import Vocabulary

KINDS: dict[str, Any] = {kind.kind: kind for kind in (Text, Category, Number, Interaction)}
MATRIX, NAMED, TABLE = "a matrix", "named rows", "a table"
EXTRACTORS = (*KINDS.values(), Own)
SETTINGS = ("max_names", "bits", "dtype")
NOTHING_LEARNED = "Features has not learned from any rows yet: call fit or partial_fit first"


class FeatureMap:
    """Turns tables, rows of named features, or whatever ``as_source`` takes into ``CSR``, and learns on the way.

    The parameters are those of ``onlearn.Features``, which is the same as a scikit-learn transformer. What is learned
    has names that end in an underscore; ``kind_`` is None before anything is.

    >>> features = FeatureMap([Category("colour"), Number("size", scale="none")])
    >>> features.learn_transform([{"colour": "red", "size": 2}, {"colour": "blue"}]).toarray()
    array([[1., 2., 0.],
           [0., 0., 1.]], dtype=float32)
    """

    def __init__(
        self, extractors: Any = "auto", *, max_names: int = 1 << 21, bits: int = 22, dtype: Any = "float32"
    ) -> None:
        self.extractors, self.max_names, self.bits, self.dtype = extractors, max_names, bits, dtype
        self.kind_: str | None = None  # of the rows: MATRIX, NAMED or TABLE
        self.width_ = 0  # of matrices
        self.extractors_: list[Any] = []
        self.roles_: dict[str, Role] = {}
        self.n_seen_ = 0  # rows learned from
        self.columns_: list[str] | None = None  # of the first table learned from
        self._extraction: Extraction | None = None  # of named rows and tables
        self._settled: dict[str, Any] = {}  # the parameters when learning began

    def __repr__(self) -> str:
        return f"FeatureMap({self.extractors!r}, max_names={self.max_names}, bits={self.bits}, dtype={self.dtype!r})"

    def unfitted(self) -> FeatureMap:
        """One with the same parameters that has learned nothing."""
        return FeatureMap(self.extractors, max_names=self.max_names, bits=self.bits, dtype=self.dtype)

    # ------------------------------------------------------------------ learning

    def learn(self, X: Any) -> None:
        """Learn from more rows."""
        self._learned(X, transform=False)

    def learn_transform(self, X: Any, ordered: bool = True) -> CSR:
        """Learn from more rows, and their matrix, in one walk; statistics are those so far, these rows included.

        If not ``ordered``, the features of a row come as they are met, which takes less time.
        """
        made = self._learned(X, transform=True, ordered=ordered)
        assert made is not None
        return made

    def look_up(self, X: Any) -> Any:
        """Rows to be learned from later, with what can be found out now, while another thread learns from others.

        What it finds is good until ``keep`` numbers the features anew.
        """
        named = isinstance(X, NamedRows) and self.kind_ == NAMED
        return self.extraction.look_up(X) if named else X

    def transform(self, X: Any) -> CSR:
        """The rows in numbered features; those that were not learned are left out."""
        if self.kind_ is None:
            raise ValueError(NOTHING_LEARNED)
        source = self._source(X)
        if isinstance(source, CSR):
            return source.of_width(self.width_)
        return self.extraction.transform(self.extraction.open(source))

    def _source(self, X: Any) -> Any:
        """Rows of the kind that was learned from."""
        source = as_source(X)
        kind = kind_of(source)
        if kind == TABLE:
            extractors = self.extractors_ if self.kind_ is not None else _listed(self.extractors)
            source = renamed(source, _columns(extractors))
        if self.kind_ is not None and kind != self.kind_:
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

    def _learned(self, X: Any, transform: bool, ordered: bool = True) -> CSR | None:
        if self.kind_ is not None:
            self._hold_to_settings()
        source = self._source(X)
        if isinstance(source, CSR):
            return self._learned_matrix(source)
        begun = self.kind_ is None
        extractors, roles, extraction = (
            self._begin(source) if begun else (self.extractors_, self.roles_, self.extraction)
        )
        opened = extraction.open(source, learning=True)  # from here on nothing can be wrong with the rows
        if begun and not isinstance(source, NamedRows) and not is_plain_texts(source):
            self.columns_ = list(source.column_names)
        self.kind_, self.extractors_, self.roles_, self._extraction = kind_of(source), extractors, roles, extraction
        self._settled = self._settings()
        made = extraction.learn(opened, transform, ordered)
        self.n_seen_ = extraction.rows
        return made

    def _learned_matrix(self, X: CSR) -> CSR:
        """Nothing is learned from a matrix but its width."""
        if not isinstance(self.extractors, str) and len(self.extractors):
            raise ValueError("extractors are for tables, and interactions for names; a matrix is taken as it is")
        self.width_ = max(self.width_, X.shape[1])
        self.kind_, self._settled = MATRIX, self._settings()
        self.n_seen_ += X.shape[0]
        return X.of_width(self.width_)

    def _begin(self, source: Any) -> tuple[list[Any], dict[str, Role], Extraction]:
        """Extractors, roles and an extraction for rows such as these."""
        check_choice(str(np.dtype(self.dtype)), ("float32", "float64"), "dtype")
        given = _listed(self.extractors)
        for one in given:
            if one != "auto" and not isinstance(one, EXTRACTORS):
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
            taken = _columns(given)
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
        return self.extraction.vocabulary

    @property
    def has_vocabulary(self) -> bool:
        """Whether the features have names, as all but those of a matrix do."""
        return self._extraction is not None

    @property
    def extraction(self) -> Extraction:
        """What was learned from named rows or tables."""
        if self._extraction is None:
            raise AttributeError("a matrix has no vocabulary" if self.kind_ == MATRIX else NOTHING_LEARNED)
        return self._extraction

    def expect(self, share: float) -> None:
        """Make room for the rest of the data; ``share`` is the part of it that has been learned from."""
        if self.kind_ != MATRIX:
            self.vocabulary_.expect(share)

    @property
    def n_features_out_(self) -> int:
        """The width of the matrices now."""
        return self.width_ if self.kind_ == MATRIX else self.vocabulary_.width

    def get_feature_names_out(self) -> np.ndarray:
        """The names of the features, by number."""
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
        extraction = self.extraction
        if len(extraction.documents):
            known = columns[columns < len(extraction.documents)]
            counts = np.zeros(self.vocabulary_.width, np.int64)
            counts[: len(known)] = extraction.documents[known]
            extraction.documents = counts
        return columns

    # ------------------------------------------------------------------ the model file

    def pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Plain facts, and arrays: all that is needed to go on."""
        facts: dict[str, Any] = {
            "kind": self.kind_,
            "settings": {"max_names": self.max_names, "bits": self.bits, "dtype": str(np.dtype(self.dtype))},
            "given": _spell_given(self.extractors),
            "extractors": [spell(one) for one in self.extractors_],
            "roles": {name: list(role) for name, role in self.roles_.items()},
            "n_seen": int(self.n_seen_),
            "columns": [str(name) for name in self.columns_ or ()],
        }
        if self.kind_ == MATRIX:
            return {**facts, "width": int(self.width_)}, {}
        extraction = self.extraction
        words, arrays = extraction.vocabulary.pack()
        arrays = {f"vocabulary.{key}": array for key, array in arrays.items()}
        arrays["scales"] = extraction.scales
        arrays["documents"] = extraction.documents[: extraction.vocabulary.width]
        return {**facts, "vocabulary": words}, arrays

    @classmethod
    def restore(cls, facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> FeatureMap:
        """The features that were packed."""
        self = cls(_read_given(facts["given"]), **{name: facts["settings"][name] for name in SETTINGS})
        check_choice(facts["kind"], (MATRIX, NAMED, TABLE), "the kind of rows")
        extractors = [_read(one) for one in facts["extractors"]]
        roles = {name: Role(*role) for name, role in facts["roles"].items()}
        self.columns_ = list(facts["columns"]) if facts.get("columns") else None
        if facts["kind"] == MATRIX:
            self.width_ = int(facts["width"])
        else:
            self._extraction = self._restore_extraction(extractors, facts, arrays)
        self.kind_, self.extractors_, self.roles_, self.n_seen_ = facts["kind"], extractors, roles, facts["n_seen"]
        self._settled = self._settings()
        return self

    def _restore_extraction(
        self, extractors: list[Any], facts: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> Extraction:
        prefix = "vocabulary."
        of_names = {key.removeprefix(prefix): array for key, array in arrays.items() if key.startswith(prefix)}
        extraction = Extraction(extractors, Vocabulary.unpack(facts["vocabulary"], of_names), self.dtype)
        scales, documents = arrays["scales"], arrays["documents"]
        if scales.shape != extraction.scales.shape or scales.dtype != np.float64 or not np.isfinite(scales).all():
            raise ValueError("the scales of the features do not go with their extractors")
        if documents.dtype != np.int64 or documents.ndim != 1 or len(documents) > extraction.vocabulary.width:
            raise ValueError("the document counts do not go with the vocabulary")
        extraction.scales, extraction.documents, extraction.rows = scales.copy(), documents.copy(), facts["n_seen"]
        return extraction


def _roles(table: Any) -> dict[str, Role]:
    """As guessed, but a plain list of texts is text however short they are."""
    if is_plain_texts(table) and not table.num_rows:
        return {name: Role("ignore", "there are no rows") for name in table.column_names}
    if is_plain_texts(table):
        return {name: Role("text", "X is a list of texts") for name in table.column_names}
    return guess_roles(table)


def kind_of(source: Any) -> str:
    """What kind of rows these are, which are a table, named or a matrix."""
    return MATRIX if isinstance(source, CSR) else NAMED if isinstance(source, NamedRows) else TABLE


def _columns(extractors: list[Any]) -> set[str]:
    """The columns that extractors are for."""
    return {one.column for one in extractors if isinstance(one, EXTRACTORS) and one.column is not None}


def _listed(extractors: Any) -> list[Any]:
    """One extractor, or a list of them, as a list."""
    return [extractors] if isinstance(extractors, (str, *EXTRACTORS)) else list(extractors)


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


class Strings:
    """One column of a table, as a list of strings; a missing one is empty. It is used like a ``FeatureMap``.

    >>> Strings("word").transform({"word": ["ab", None], "size": [1, 2]})
    ['ab', '']
    """

    kind_ = "a table"
    dtype = "float64"  # of kernel values
    n_features_out_ = 1
    has_vocabulary = False
    columns_: list[str] | None = None  # of the first table, which no one asks for

    def __init__(self, column: str) -> None:
        self.column = column
        self.n_seen_ = 0

    def __repr__(self) -> str:
        return f"Strings(column={self.column!r})"

    def unfitted(self) -> Strings:
        """One that has seen nothing."""
        return Strings(self.column)

    @property
    def extractors(self) -> list[Text]:
        """What says that the column is text."""
        return [Text(self.column)]

    extractors_ = extractors

    def learn_transform(self, rows: Any, ordered: bool = True) -> list[str]:
        """The strings; there is nothing to be learned about them."""
        made = self.transform(rows)
        self.n_seen_ += len(made)
        return made

    def expect(self, share: float) -> None:
        """Nothing is kept of strings, so no room need be made for it."""

    def look_up(self, rows: Any) -> Any:
        """Nothing can be found out about strings before they are learned from."""
        return rows

    def transform(self, rows: Any) -> list[str]:
        """The strings of a table, or of a list of texts."""
        table = as_source(rows)
        if not hasattr(table, "column_names"):
            raise TypeError("this model learned from strings: it takes tables and lists of texts")
        values = column(table, table.column_names[0] if is_plain_texts(table) else self.column)
        if not is_text(values.type):
            import pyarrow as pa

            try:
                values = values.cast(pa.string())
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                raise ValueError(f"column {self.column!r} holds {values.type}, not text") from None
        return ["" if value is None else value for value in values.to_pylist()]

    def pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return {"strings": self.column, "n_seen": self.n_seen_}, {}

    @classmethod
    def restore(cls, facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> Strings:
        self = cls(str(facts["strings"]))
        self.n_seen_ = int(facts["n_seen"])
        return self


def strings_of(rows: Any, roles: dict[str, str], kernel: Any) -> tuple[Strings, list[str]]:
    """The column of text in rows such as these, and what was decided about it."""
    if not hasattr(rows, "column_names"):
        raise PlanError(f"the kernel {kernel} compares texts, but the rows have no columns")
    texts = [name for name, role in roles.items() if role == "text"]
    if len(texts) > 1:
        raise PlanError(f"the kernel {kernel} compares one text a row: text= names {len(texts)} columns")
    if texts and texts[0] not in rows.column_names:
        raise PlanError(f"there is no column {texts[0]!r}{did_you_mean(texts[0], rows.column_names)}")
    if texts:
        return Strings(texts[0]), []
    left = [name for name in rows.column_names if roles.get(name) != "ignore"]
    guessed = guess_roles(rows.select(left))
    found = left if len(left) == 1 else [name for name, role in guessed.items() if role.role == "text"]
    if len(found) != 1:
        raise PlanError(f"the kernel {kernel} compares one text a row: name its column with text= ({', '.join(left)})")
    return Strings(found[0]), [f"{found[0]} is the text that is compared; nothing else is looked at"]
