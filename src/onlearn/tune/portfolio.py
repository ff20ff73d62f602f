"""The default search spaces: for each kind of data, a few configurations that are often better than the default.

They were chosen for being different from each other, not for one data set: each is the best, or nearly so, on some of
those in benchmarks/, and none of them is there for one alone. The empty configuration, what ``train`` does when nothing
is said, is always the first of a race and is not listed.
"""

from __future__ import annotations

from dataclasses import dataclass

from onlearn.tune.space import Options

MOST_PAIRS = 400  # products of columns in a row, beyond which all pairs are too many to try


@dataclass(frozen=True)
class Kind:
    """The facts about data on which a default space depends."""

    task: str = "classify"
    text: bool = False  # there is a column of text
    one_word: bool = False  # texts are one word each, cut into characters
    table: bool = False  # rows have columns
    numbers: int = 0  # columns of numbers
    columns: int = 0  # columns that are features
    unsure: tuple[str, ...] = ()  # columns of whole numbers that may be categories
    gaps: tuple[str, ...] = ()  # those of them that lack most numbers between the least and the greatest


TEXT: tuple[Options, ...] = (
    {"weighting": "idf"},
    {"learner": "AROW(r=1.0)", "stabilizer": "last", "weighting": "idf"},
    {"learner": "AROW(r=1.0)", "stabilizer": "last"},
    {"learner": "AROW(r=3.0)", "stabilizer": "last"},
    {"learner": "AROW(r=10.0)", "stabilizer": "last"},
    {"learner": "AROW(r=1.0)", "stabilizer": "averaged"},
    {"learner": "LogisticRegression(rate=0.5)"},
    {"learner": "PassiveAggressive"},
)
WORDS: tuple[Options, ...] = (
    {"ngrams": "1-1"},
    {"ngrams": "1-3"},
)
LETTERS: tuple[Options, ...] = (
    {"ngrams": "none", "chars": "3-6"},
    {"ngrams": "none", "chars": "2-8", "learner": "AROW(r=3.0)", "stabilizer": "last"},
)

ROWS: tuple[Options, ...] = (
    {"learner": "LogisticRegression(rate=0.03)"},
    {"learner": "LogisticRegression(rate=0.3)"},
    {"learner": "LogisticRegression(rate=1.0)"},
    {"learner": "AROW(r=0.1)"},
    {"learner": "AROW(r=10.0)"},
    {"rule": "squared_hinge", "geometry": "adagrad(0.1)"},
    {"learner": "AdaGrad(rate=0.5)"},
    {"learner": "PassiveAggressive(aggressiveness=0.01)"},
    {"learner": "ScInOL"},
)
NUMBERS: tuple[Options, ...] = (
    {"scale": "log1p"},
    {"scale": "log1p", "learner": "LogisticRegression(rate=1.0)"},
    {"scale": "standard"},
)
PAIRS: tuple[Options, ...] = (
    {"interact": "pairs"},
    {"interact": "pairs", "learner": "LogisticRegression(rate=0.03)"},
    {"interact": "pairs", "learner": "AROW(r=1.0)"},
)
CATEGORIES: tuple[Options, ...] = (
    {},
    {"learner": "LogisticRegression(rate=0.3)"},
    {"learner": "LogisticRegression(rate=1.0)"},
)

REGRESSION: tuple[Options, ...] = (
    {"geometry": "adagrad(0.1)"},
    {"geometry": "adagrad(0.2)"},
    {"geometry": "adagrad(1.0)"},
    {"geometry": "adagrad(2.0)"},
    {"rule": "epsilon(0.1)", "geometry": "adagrad(0.5)"},
    {"rule": "epsilon(0.1)", "geometry": "adagrad(0.1)"},
)


def configurations(kind: Kind) -> list[Options]:
    """The configurations of the default space for data of a kind, besides the default itself.

    >>> configurations(Kind(text=True))[0]
    {'weighting': 'idf'}
    """
    made: list[Options] = []
    if kind.task == "regress":
        made += REGRESSION
    elif kind.text:
        made += [*TEXT, *(LETTERS if kind.one_word else WORDS)]
    else:
        made += ROWS
    if kind.table and not kind.text:
        usual = CATEGORIES[: None if kind.task == "classify" else 1]
        made += NUMBERS[: None if kind.task == "classify" else 1] if kind.numbers else ()
        made += [{"categorical": list(kind.unsure), **one} for one in usual] if kind.unsure else []
        if kind.gaps and kind.gaps != kind.unsure:
            made += [{"categorical": list(kind.gaps), **one} for one in usual[:2]]
        if kind.columns >= 2 and kind.columns * (kind.columns - 1) // 2 <= MOST_PAIRS:
            made += PAIRS if kind.task == "classify" else PAIRS[:1]
    return [dict(one) for one in made]
