"""``FeatureMap`` turns raw rows into numbered features; ``Strings`` gives texts unchanged, for kernels of strings.

Both learn batch by batch, and a model file can hold either.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.data.batch import NamedRows
from onlearn.engine.csr import CSR
from onlearn.engine.spec import did_you_mean
from onlearn.features.extraction import Extraction, each_once, refuse_duplicates, refuse_empty
from onlearn.features.extractors import FUNCTIONS, Category, Number, Own, check_choice
from onlearn.features.interactions import Interaction
from onlearn.features.roles import PlanError, Role, extractors_for, guess_roles
from onlearn.features.tables import as_source, as_words, column, is_plain_texts, is_text, renamed
from onlearn.features.text import Text
from onlearn.features.vocabulary import Vocabulary
from onlearn.model_schema import (
    COUNT,
    NAMES,
    NESTED,
    PRECISION,
    TEXT,
    TRUTH,
    AnyOf,
    Arrays,
    ListOf,
    MappingOf,
    OrMissing,
    Record,
    TupleOf,
    check_facts,
    one_of,
    under,
)

KINDS: dict[str, Any] = {kind.kind: kind for kind in (Text, Category, Number, Interaction)}
MATRIX, NAMED, TABLE = "a matrix", "named rows", "a table"
EXTRACTORS = (*KINDS.values(), Own)
SETTINGS = ("max_names", "bits", "dtype")
NOTHING_LEARNED = "Features has not learned from any rows yet: call fit or partial_fit first"


class FeatureMap:
    """Learns features from tables, rows of named features, and the other inputs of ``as_source``; gives ``CSR``.

    The parameters are those of ``onlearn.Features``, the scikit-learn transformer. Learned attributes have names that
    end in an underscore; ``kind_`` is None before learning.

    >>> features = FeatureMap([Category("colour"), Number("size", scale="none")])
    >>> features.learn_transform([{"colour": "red", "size": 2}, {"colour": "blue"}]).toarray()
    array([[1., 2., 0.],
           [0., 0., 1.]], dtype=float32)
    """

    def __init__(
        self, extractors: Any = "auto", *, max_names: int = 1 << 21, bits: int = 22, dtype: Any = "float32"
    ) -> None:
        self.extractors: Any = extractors
        self.max_names: int = max_names
        self.bits: int = bits
        self.dtype: Any = dtype
        self.kind_: str | None = None  # of the rows: MATRIX, NAMED or TABLE
        self.width_: int = 0  # of matrices
        self.extractors_: list[Any] = []
        self.roles_: dict[str, Role] = {}
        self.n_seen_: int = 0  # rows learned from
        self.columns_: list[str] | None = None  # of the first table learned from
        self._extraction: Extraction | None = None  # for named rows and tables
        self._settled: dict[str, Any] = {}  # the parameters at the beginning of learning

    def __repr__(self) -> str:
        return f"FeatureMap({self.extractors!r}, max_names={self.max_names}, bits={self.bits}, dtype={self.dtype!r})"

    def unfitted(self) -> FeatureMap:
        """A map with the same parameters that has learned nothing."""
        return FeatureMap(self.extractors, max_names=self.max_names, bits=self.bits, dtype=self.dtype)

    def apart(self) -> FeatureMap:
        """A map that knows the same names, for other rows; nothing is counted yet."""
        if self.kind_ is None:
            return self.unfitted()
        made = self.begun(self.kind_, self.extractors_, self.roles_, self.columns_)
        made.width_ = self.width_
        made._extraction = None if self._extraction is None else self._extraction.apart()
        return made

    def begun(self, kind: str, extractors: list[Any], roles: dict[str, Role], columns: list[str] | None) -> FeatureMap:
        """A map with the same parameters for which it is decided what features there are; it has seen no rows."""
        made = self.unfitted()
        made.kind_, made.extractors_, made.roles_, made.columns_ = kind, extractors, roles, columns
        if kind != MATRIX:
            made._extraction = Extraction(extractors, Vocabulary(self.max_names, self.bits), self.dtype)
        made._settled = made._settings()
        return made

    # ------------------------------------------------------------------ learning

    def learn(self, X: Any) -> None:
        """Learn from more rows."""
        self._learned(X, transform=False)

    def learn_transform(self, X: Any, ordered: bool = True) -> CSR:
        """Learn from more rows and return their matrix, with statistics that include these rows.

        If not ``ordered``, the features of a row stay in order of appearance, which takes less time.
        """
        made = self._learned(X, transform=True, ordered=ordered)
        assert made is not None
        return made

    def look_up(self, X: Any) -> Any:
        """Look up the names of rows in advance, while another thread learns from others.

        The result is valid until ``keep`` renumbers the features.
        """
        named = isinstance(X, NamedRows) and self.kind_ == NAMED
        return self.extraction.look_up(X) if named else X

    def transform(self, X: Any) -> CSR:
        """The rows as a matrix, without features that were not learned."""
        if self.kind_ is None:
            raise ValueError(NOTHING_LEARNED)
        source = self._source(X)
        if isinstance(source, CSR):
            return source.of_width(self.width_)
        return self.extraction.transform(self.extraction.open(source))

    def _source(self, X: Any) -> Any:
        """The rows in internal form; they must be of the kind learned from."""
        source = as_source(X)
        kind = kind_of(source)
        if kind == TABLE:
            extractors = self.extractors_ if self.kind_ is not None else _listed(self.extractors)
            source = renamed(source, _columns(extractors))
        if self.kind_ is not None and kind != self.kind_:
            raise TypeError(f"these features were learned from {self.kind_}, but X is {kind}")
        return source

    def _settings(self) -> dict[str, Any]:
        """The parameters on which learning depends."""
        sizes = {"max_names": self.max_names, "bits": self.bits}
        return {"extractors": _listed(self.extractors), "dtype": np.dtype(self.dtype), **sizes}

    def _refuse_changed_settings(self) -> None:
        """Refuse parameters that have changed since learning began, because they would have no effect."""
        for name, now in self._settings().items():
            if now != self._settled[name]:
                raise ValueError(
                    f"{name} was {self._settled[name]!r} when learning began and cannot change to {now!r} now: "
                    "set it back, or fit anew"
                )

    def _learned(self, X: Any, transform: bool, ordered: bool = True) -> CSR | None:
        if self.kind_ is not None:
            self._refuse_changed_settings()
        source = self._source(X)
        if isinstance(source, CSR):
            return self._learned_matrix(source)
        begun = self.kind_ is None
        extractors, roles, extraction = (
            self._begin(source) if begun else (self.extractors_, self.roles_, self.extraction)
        )
        opened = extraction.open(source, learning=True)  # raises all errors in the rows
        if begun and not isinstance(source, NamedRows) and not is_plain_texts(source):
            self.columns_ = list(source.column_names)
        self.kind_, self.extractors_, self.roles_, self._extraction = kind_of(source), extractors, roles, extraction
        self._settled = self._settings()
        made = extraction.learn(opened, transform, ordered)
        self.n_seen_ = extraction.rows
        return made

    def _learned_matrix(self, X: CSR) -> CSR:
        """Learn the width of a matrix."""
        if not isinstance(self.extractors, str) and len(self.extractors):
            raise ValueError("extractors are for tables, and interactions for names; a matrix is taken as it is")
        self.width_ = max(self.width_, X.shape[1])
        self.kind_, self._settled = MATRIX, self._settings()
        self.n_seen_ += X.shape[0]
        return X.of_width(self.width_)

    def _begin(self, source: Any) -> tuple[list[Any], dict[str, Role], Extraction]:
        """The extractors, the roles and a new extraction for rows of this kind."""
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
            refuse_duplicates(extractors)
            refuse_empty(extractors)
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
        """Whether the features have names; those of a matrix have none."""
        return self._extraction is not None

    @property
    def extraction(self) -> Extraction:
        """The learned state for named rows or tables."""
        if self._extraction is None:
            raise AttributeError("a matrix has no vocabulary" if self.kind_ == MATRIX else NOTHING_LEARNED)
        return self._extraction

    def expect(self, share: float) -> None:
        """Allocate memory for the rest of the data; ``share`` of the data has been learned from."""
        if self.kind_ != MATRIX:
            self.vocabulary_.expect(share)

    @property
    def n_features_out_(self) -> int:
        """The present number of features."""
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

    def sources_from(self, start: int) -> tuple[np.ndarray, list[tuple[str, str]]]:
        """What features are made of, from a number on: places in a list of pairs of a kind of source and a name.

        Of a table, the source is a "number" (a "scaled" one, if zeros cannot be told from missing values), a
        "category", a "text" or the "flag" of a missing value, and the name that of the column; other features are of a
        "matrix", or "named" with a prefix. The pairs of a table are of all its columns, whether or not features came of
        them.
        """
        if self.kind_ == MATRIX:
            return np.zeros(max(0, self.width_ - start), np.int64), [("matrix", "")]
        codes, prefixes = self.vocabulary_.prefixes_from(start)
        sources: dict[str | None, tuple[str, str]] = {None: ("named", "hashed")}
        kept = all(one.scale == "kept" for one in self.extractors_ if isinstance(one, Number))
        numbers: dict[str, tuple[str, str]] = {}
        for one in self.extractors_:
            if isinstance(one, Number):
                numbers[one.column] = "number" if kept else "scaled", one.column
                sources[""] = numbers[one.column][0], ""
                sources[f"{one.column}="] = "flag", one.column
            elif isinstance(one, (Text, Category)):
                sources.update(dict.fromkeys(one.groups().prefixes, (one.kind, one.column)))
        made = [sources.get(prefix, ("named", prefix or "")) for prefix in prefixes]
        if numbers and "" in prefixes:  # numbers have the names of their columns
            places = {column: len(made) + n for n, column in enumerate(numbers)}
            names = self.vocabulary_.names()
            for at in np.flatnonzero(codes == prefixes.index("")).tolist():
                codes[at] = places.get(names[start + at], codes[at])
        known = set(made)
        return codes, [*made, *numbers.values(), *(pair for pair in sources.values() if pair not in known)]

    def keep(self, kept: np.ndarray, state: str | None = "drop") -> np.ndarray:
        """Drop all other features and renumber the rest; returns the remaining columns of a matrix or of weights.

        By default no new names are learned afterwards, because dropped ones would return.
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
        """The state as plain facts and arrays, for the model file."""
        facts: dict[str, Any] = {
            "kind": self.kind_,
            "settings": {"max_names": self.max_names, "bits": self.bits, "dtype": str(np.dtype(self.dtype))},
            "given": _spell_given(self.extractors),
            "extractors": [one.spell() for one in self.extractors_],
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
    def restore(cls, facts: dict[str, Any], arrays: Arrays) -> FeatureMap:
        """The map that was packed."""
        check_facts(facts, FILED, "features")
        self = cls(_read_given(facts["given"]), **{name: facts["settings"][name] for name in SETTINGS})
        extractors = [read_extractor(one) for one in facts["extractors"]]
        roles = {name: Role(*role) for name, role in facts["roles"].items()}
        self.columns_ = list(facts["columns"]) if facts.get("columns") else None
        if facts["kind"] == MATRIX:
            check_facts(facts, Record(width=COUNT), "features")
            self.width_ = facts["width"]
        else:
            self._extraction = self._restore_extraction(extractors, facts, arrays)
        self.kind_, self.extractors_, self.roles_, self.n_seen_ = facts["kind"], extractors, roles, facts["n_seen"]
        self._settled = self._settings()
        return self

    def _restore_extraction(self, extractors: list[Any], facts: dict[str, Any], arrays: Arrays) -> Extraction:
        check_facts(facts, Record(vocabulary=NESTED), "features")
        of_names = under("vocabulary.", arrays)
        extraction = Extraction(extractors, Vocabulary.unpack(facts["vocabulary"], of_names), self.dtype)
        scales, documents = arrays["scales"], arrays["documents"]
        if scales.shape != extraction.scales.shape or scales.dtype != np.float64 or not np.isfinite(scales).all():
            raise ValueError("the scales of the features do not go with their extractors")
        if documents.dtype != np.int64 or documents.ndim != 1 or len(documents) > extraction.vocabulary.width:
            raise ValueError("the document counts do not go with the vocabulary")
        extraction.scales, extraction.documents, extraction.rows = scales.copy(), documents.copy(), facts["n_seen"]
        return extraction


def _roles(table: Any) -> dict[str, Role]:
    """The guessed roles; a plain list of texts is always text."""
    if is_plain_texts(table) and not table.num_rows:
        return {name: Role("ignore", "there are no rows") for name in table.column_names}
    if is_plain_texts(table):
        return {name: Role("text", "X is a list of texts") for name in table.column_names}
    return guess_roles(table)


def kind_of(source: Any) -> str:
    """The kind of rows: a matrix, named rows or a table."""
    return MATRIX if isinstance(source, CSR) else NAMED if isinstance(source, NamedRows) else TABLE


def _columns(extractors: list[Any]) -> set[str]:
    """The columns that extractors use."""
    return {one.column for one in extractors if isinstance(one, EXTRACTORS) and one.column is not None}


def _listed(extractors: Any) -> list[Any]:
    """A list of extractors, from a list or a single one."""
    return [extractors] if isinstance(extractors, (str, *EXTRACTORS)) else list(extractors)


def _spell_given(extractors: Any) -> Any:
    if isinstance(extractors, str):
        return extractors
    return [one if isinstance(one, str) else one.spell() for one in _listed(extractors)]


def _read_given(spelled: Any) -> Any:
    return (
        spelled
        if isinstance(spelled, str)
        else [one if isinstance(one, str) else read_extractor(one) for one in spelled]
    )


# What files say of extractors, by their kind; their classes check the values.
GRAMS = OrMissing(ListOf(COUNT, "numbers", length=2))
PARAMETERS = {
    Text.kind: Record(
        {
            **dict.fromkeys(("column", "weighting", "missing", "tokens"), OrMissing(TEXT)),
            **dict.fromkeys(("norm", "lowercase", "apostrophes"), OrMissing(TRUTH)),
            **dict.fromkeys(("ngrams", "chars"), GRAMS),
            "prefix": OrMissing(TEXT),
        }
    ),
    Category.kind: Record(column=TEXT, missing=OrMissing(TEXT)),
    Number.kind: Record(column=TEXT, scale=OrMissing(TEXT), missing=OrMissing(TEXT)),
    Interaction.kind: Record(columns=NAMES, degree=COUNT),
    Own.kind: Record(name=TEXT),
}
EXTRACTOR = Record(kind=one_of(*PARAMETERS))  # whose parameters ``read_extractor`` checks
FILED = Record(
    kind=one_of(MATRIX, NAMED, TABLE),
    settings=Record(max_names=COUNT, bits=COUNT, dtype=PRECISION),
    given=AnyOf(TEXT, ListOf(AnyOf(TEXT, EXTRACTOR), "extractors")),
    extractors=ListOf(EXTRACTOR, "extractors"),
    roles=MappingOf(TupleOf(TEXT, TEXT), "roles of columns by name"),
    n_seen=COUNT,
    columns=OrMissing(NAMES),
)


def read_extractor(spelled: dict[str, Any]) -> Any:
    """An extractor from JSON."""
    rest = dict(spelled)
    kind = rest.pop("kind")
    if kind not in PARAMETERS:
        raise ValueError(f"unknown kind of extractor {kind!r}")
    check_facts(rest, PARAMETERS[kind], kind)
    if unknown := rest.keys() - PARAMETERS[kind].facts.keys():
        raise ValueError(f"the extractor {kind} has no parameter {min(unknown)!r}: it may come from a newer version")
    if kind == Own.kind:
        if rest["name"] not in FUNCTIONS:
            raise ValueError(
                f"the features use a function {rest['name']!r}, which a model file does not hold: "
                "define it with @onlearn.feature before loading"
            )
        return FUNCTIONS[rest["name"]]
    if kind == Interaction.kind:
        return Interaction(*rest["columns"], degree=rest["degree"])
    return KINDS[kind](**rest)


class Strings:
    """Gives one column of a table as a list of strings; a missing one is empty. It has the interface of ``FeatureMap``.

    >>> Strings("word").transform({"word": ["ab", None], "size": [1, 2]})
    ['ab', '']
    """

    kind_: str = TABLE
    dtype: str = "float64"  # of kernel values
    n_features_out_: int = 1
    has_vocabulary: bool = False
    columns_: list[str] | None = None  # not recorded

    def __init__(self, column: str) -> None:
        self.column: str = column
        self.n_seen_: int = 0

    def __repr__(self) -> str:
        return f"Strings(column={self.column!r})"

    def unfitted(self) -> Strings:
        """Strings of the same column that have seen no rows."""
        return Strings(self.column)

    @property
    def extractors(self) -> list[Text]:
        """An extractor that describes the column as text."""
        return [Text(self.column)]

    extractors_ = extractors

    def learn_transform(self, rows: Any, ordered: bool = True) -> list[str]:
        """The strings of rows; nothing is learned from them."""
        made = self.transform(rows)
        self.n_seen_ += len(made)
        return made

    def expect(self, share: float) -> None:
        """Do nothing: strings need no memory."""

    def look_up(self, rows: Any) -> Any:
        """The rows unchanged: strings have no names to look up."""
        return rows

    def transform(self, rows: Any) -> list[str]:
        """The strings of a table, or of a list of texts."""
        table = as_source(rows)
        if not hasattr(table, "column_names"):
            raise TypeError("this model learned from strings: it takes tables and lists of texts")
        values = column(table, table.column_names[0] if is_plain_texts(table) else self.column)
        if not is_text(values.type):
            try:
                values = as_words(values, self.column)
            except TypeError:
                raise ValueError(f"column {self.column!r} holds {values.type}, not text") from None
        return ["" if value is None else value for value in values.to_pylist()]

    def pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The state as plain facts and arrays, for the model file."""
        return {"strings": self.column, "n_seen": self.n_seen_}, {}

    @classmethod
    def restore(cls, facts: dict[str, Any], arrays: Arrays) -> Strings:
        """The strings that were packed."""
        check_facts(facts, Record(strings=TEXT, n_seen=COUNT), "features")
        self = cls(facts["strings"])
        self.n_seen_ = facts["n_seen"]
        return self


def strings_of(rows: Any, roles: dict[str, str], kernel: Any) -> tuple[Strings, list[str]]:
    """The strings of the column of text in rows, and a note about a guess."""
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
