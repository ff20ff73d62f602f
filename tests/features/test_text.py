"""The tokeniser is ``re`` and ``str.lower``, and n-grams are what a loop over the words makes of them."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlearn.features import Features, Text
from onlearn.features.tokenizer import PLANES, characters, decode

# Letters whose lower case is longer, shorter, several, or depends on the neighbours; marks; other scripts; separators.
ODD = (
    "\u0130I\u0131\u1e9e\xdf\u03a3\u03c3\u03c2\u0391\u1f08\u01c5\u01c4\u023aK\xc5\xe9\u0301e\u0301\u0345\xaa"
    "\xba\xb2\xbd\u0663\u0967\u0966\u4e2d\u6587\ud55c\uae00\U00010400\U0001f600\U000e0100_-'\u2019.\xb7:\xad"
    "\u200d\xa0\n\t\x00 aZ09"
)
TEXTS = st.lists(st.text(st.one_of(st.sampled_from(ODD), st.characters(codec="utf-8")), max_size=40), max_size=8)


def is_word(character: str) -> bool:
    return character.isalnum() or unicodedata.category(character)[0] == "M"


def plain_words(text: str, apostrophes: bool = False) -> list[str]:
    """Words by the book."""
    marked = "".join("w" if is_word(c) else "'" if c in "'\u2019" else " " for c in text)
    pattern = "w+('w+)*" if apostrophes else "w+"
    return [text[m.start() : m.end()].lower().replace("\u2019", "'") for m in re.finditer(pattern, marked)]


def plain_grams(text: str, ngrams, chars, apostrophes=False) -> list[str]:
    words = plain_words(text, apostrophes)
    found = []
    if ngrams:
        found = [
            " ".join(words[i : i + n])
            for i in range(len(words))
            for n in range(ngrams[0], ngrams[1] + 1)
            if i + n <= len(words)
        ]
    if chars:
        for word in words:
            padded = f" {word} "
            found += [
                "chars:" + padded[i : i + n]
                for i in range(len(padded))
                for n in range(chars[0], chars[1] + 1)
                if i + n <= len(padded) and padded[i : i + n] != " "
            ]
    return found


def names_of(texts, **settings) -> list[list[str]]:
    """The names in each row, as the tokeniser gives them, in one block and cut into single rows."""
    column = Text("text", prefix="", **settings).read(pa.table({"text": pa.array(texts, pa.string())}))
    rows = column.rows(0, len(texts))
    assert (rows.values == 1).all()
    named = [[rows.name(k) for k in range(rows.indptr[i], rows.indptr[i + 1])] for i in range(len(texts))]
    for i in range(len(texts)):
        one = column.rows(i, i + 1)
        assert [one.name(k) for k in range(len(one.hashes))] == named[i]
        np.testing.assert_array_equal(one.hashes, rows.hashes[rows.indptr[i] : rows.indptr[i + 1]])
    return named


def plain_tokens(text: str, apostrophes: bool) -> list[str]:
    """Words and marks by the book: a mark is a character of the categories P and S outside words."""
    kinds = {c: "w" if is_word(c) else "m" if unicodedata.category(c)[0] in "PS" else " " for c in text}
    marked = "".join(kinds[c] for c in text)
    if apostrophes:
        inside = re.compile("(?<=w)m(?=w)")
        joined = [m.start() for m in inside.finditer(marked) if text[m.start()] in "'\u2019"]
        marked = "".join("w" if n in joined else c for n, c in enumerate(marked))
    found = [text[m.start() : m.end()] for m in re.finditer("w+|m", marked)]
    return [t.lower().replace("\u2019", "'") if len(t) > 1 or is_word(t) else t for t in found]


@given(TEXTS, st.booleans())
def test_punctuation_marks_and_symbols_are_words_if_asked_for(texts, apostrophes):
    found = names_of(texts, ngrams=(1, 1), apostrophes=apostrophes, tokens="punctuation")
    assert found == [plain_tokens(text, apostrophes) for text in texts]


def test_tokens_of_a_message():
    [found] = names_of(["Who's \u201ein\u201c?? :-) \U0001f600 50% don_t\t."], ngrams=(1, 1), tokens="punctuation")
    assert found == ["who", "'", "s", "\u201e", "in", "\u201c", "?", "?", ":", "-", ")", "\U0001f600", "50", "%",
                     "don", "_", "t", "."]  # fmt: skip
    with pytest.raises(ValueError, match="tokens must be 'words' or 'punctuation', not 'letters'"):
        Text(tokens="letters")


@given(TEXTS, st.booleans())
def test_words_are_those_of_re_and_lower(texts, apostrophes):
    found = names_of(texts, ngrams=(1, 1), apostrophes=apostrophes)
    assert found == [plain_words(text, apostrophes) for text in texts]


@given(TEXTS, st.sampled_from([((1, 2), None), ((2, 3), None), (None, (2, 4)), (None, (1, 1)), ((1, 1), (1, 3))]))
def test_ngrams_are_those_of_a_loop(texts, lengths):
    ngrams, chars = lengths
    found = names_of(texts, ngrams=ngrams, chars=chars)
    assert found == [plain_grams(text, ngrams, chars) for text in texts]


@given(TEXTS)
def test_case_is_kept_when_asked_for(texts):
    found = names_of(texts, ngrams=(1, 1), lowercase=False)
    assert found == [_cased(text) for text in texts]


def _cased(text):
    marked = "".join("w" if is_word(c) else " " for c in text)
    return [text[m.start() : m.end()] for m in re.finditer("w+", marked)]


def test_every_character_is_classed_and_lowered_as_python_does():
    every = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    texts = ["".join(every[k : k + 4096]) for k in range(0, len(every), 4096)]
    spaced = ["a" + c + "a" for c in every[:0x3000]]
    assert names_of(texts, ngrams=(1, 1)) == [plain_words(text) for text in texts]
    assert names_of([" ".join(spaced)], ngrams=(1, 1)) == [plain_words(" ".join(spaced))]
    for pattern in ("A{}\u03a3", "1{}\u03a3", "A\u03a3{}", "A\u03a3{}a"):
        near_sigma = " ".join(pattern.format(c) for c in every[:0x20000] if is_word(c))
        assert names_of([near_sigma], ngrams=(1, 1)) == [plain_words(near_sigma)]
    small = [(len(c.encode()), len(c.lower().encode())) for c in every if is_word(c)]
    assert all(2 * lower <= 3 * upper for upper, lower in small)  # the room that is made for them
    assert not any(is_word(c) for c in every if PLANES <= ord(c) < 0xE0000 or ord(c) >= 0xE0200)


def test_tables_for_all_of_unicode_are_made_only_when_needed():
    assert len(characters(True, False).classes) == 1


def test_same_names_have_same_hashes_and_others_have_not():
    column = Text("text", ngrams=(1, 3), chars=(1, 3)).read(pa.table({"text": ["a b a b a b c ab"] * 3}))
    rows = column.rows(0, 3)
    by_hash: dict[int, set[str]] = {}
    for k in range(len(rows.hashes)):
        by_hash.setdefault(int(rows.hashes[k]), set()).add(rows.name(k))
    assert all(len(names) == 1 for names in by_hash.values())
    assert len(by_hash) == len({name for names in by_hash.values() for name in names})
    assert {rows.name(k)[:5] for k in range(len(rows.hashes))} == {"text:"}


def test_bytes_that_are_not_utf8_separate_words():
    raw = np.frombuffer(b"ab\xffcd \xe2\x82 \xc0\xafe\xf4\x90\x80\x80f \xc3", np.uint8)
    column = Text("text", ngrams=(1, 1), prefix="").read(pa.table({"text": ["x"]}))
    column.text, column.offsets = raw, np.array([0, len(raw)])
    column.tables = characters(True, True)
    rows = column.rows(0, 1)
    assert [rows.name(k) for k in range(len(rows.hashes))] == ["ab", "cd", "e", "f"]
    assert decode(np.frombuffer("€".encode(), np.uint8), np.uint64(0), np.uint64(3)) == (0x20AC, 3)


def test_slices_chunks_nulls_dictionaries_and_views_are_read_alike():
    words = ["a b", None, "", "c ÉT", "d"]
    plain = pa.array(words)
    words_as_views = plain.dictionary_encode().dictionary.cast(getattr(pa, "string_view", pa.string)())
    variants = [
        plain,
        pa.array(["zzz", *words]).slice(1),
        pa.chunked_array([words[:2], words[2:]]),
        plain.dictionary_encode(),
        pa.DictionaryArray.from_arrays(plain.dictionary_encode().indices.cast(pa.uint8()), words_as_views),
        plain.cast(pa.large_string()),
    ]
    for variant in variants:
        X = Features([Text("t", prefix="")]).fit(pa.table({"t": variant}))
        assert list(X.get_feature_names_out()) == ["a", "a b", "b", "c", "c ét", "ét", "d"]


def weighed(texts, **settings):
    features = Features([Text("text", prefix="", **settings)], dtype="float64")
    return features.fit_transform(texts), features


TEXT_ROWS = ["a b a c", "b b", "", "c d e a", "a"]


def test_counts_binary_and_log():
    counts, features = weighed(TEXT_ROWS, ngrams=(1, 1), weighting="counts", norm=False)
    expected = [Counter(plain_words(text)) for text in TEXT_ROWS]
    names = list(features.get_feature_names_out())
    np.testing.assert_array_equal(counts.toarray(), [[row[name] for name in names] for row in expected])
    binary, _ = weighed(TEXT_ROWS, ngrams=(1, 1), weighting="binary", norm=False)
    np.testing.assert_array_equal(binary.toarray(), counts.toarray() > 0)
    log, _ = weighed(TEXT_ROWS, ngrams=(1, 1), weighting="log", norm=False)
    np.testing.assert_allclose(log.data, 1 + np.log(counts.data))
    unit, _ = weighed(TEXT_ROWS, ngrams=(1, 1), weighting="log", norm=True)
    np.testing.assert_allclose(np.sqrt(unit.power(2).sum(axis=1)).A1, [1, 1, 0, 1, 1])


@pytest.mark.parametrize("weighting", ["tfidf", "log-tfidf"])
def test_tfidf_is_scikit_learns(weighting):
    from sklearn.feature_extraction.text import TfidfVectorizer

    peer = TfidfVectorizer(token_pattern=r"\w+", ngram_range=(1, 2), sublinear_tf=weighting == "log-tfidf")
    X, features = weighed(TEXT_ROWS, ngrams=(1, 2), weighting=weighting)
    expected = peer.fit_transform(TEXT_ROWS)
    order = [peer.vocabulary_[name] for name in features.get_feature_names_out()]
    np.testing.assert_allclose(X.toarray(), expected.toarray()[:, order])
    new = ["a d d z", "z"]
    np.testing.assert_allclose(features.transform(new).toarray(), peer.transform(new).toarray()[:, order])
    chunked = Features([Text("text", prefix="", weighting=weighting)], dtype="float64")
    chunked.partial_fit(TEXT_ROWS[:2]).partial_fit(TEXT_ROWS[2:])
    np.testing.assert_array_equal(chunked.transform(new).toarray(), features.transform(new).toarray())


def test_wrong_settings_are_named():
    with pytest.raises(ValueError, match=r"weighting must be 'counts', .* not 'bm25'"):
        Text("review", weighting="bm25")
    with pytest.raises(ValueError, match=r"ngrams must be a pair .* not \(2, 1\)"):
        Text("review", ngrams=(2, 1))
    with pytest.raises(ValueError, match="neither ngrams nor chars"):
        Text("review", ngrams=None)
    with pytest.raises(ValueError, match="missing must be"):
        Text("review", missing="guess")
    with pytest.raises(TypeError, match="column 'n' holds bool, not text"):
        Features([Text("n")]).fit({"n": [True, False]})


def test_numerals_are_text_where_text_is_expected():
    made = Features([Text("n", weighting="counts", norm=False)]).fit({"n": ["5 apples", "10"]})
    assert (made.transform({"n": [5.0, 10.0]}) != made.transform({"n": ["5", "10"]})).nnz == 0
