"""Which files hold columns, and which raw sentences."""

from __future__ import annotations

import pytest

from onlearn.models.tag_files import format_of_lines

PENN = ["DT", "NN", "VBZ", ".", ":"]


def lines(text):
    return text.encode().splitlines()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The dog barks .\nGo !\n", "sentences"),
        ("The DT\ndog NN\nbarks VBZ\n", "sentences"),  # nothing but the width speaks for columns
        ("The DT\ndog NN\n\nGo VB\n", "conll"),
        ("The\ndog\n\nGo\n", "conll"),
        ("The\ndog\n", "sentences"),
        ("10 000\tCD\ndogs\tNNS\n\n", "conll"),
        ("10\xa0000 CD\ndogs NNS\n\n", "conll"),
        ("# sent_id = 1\nThe DT\ndog NN\n\n", "conll"),
        ("# just a comment\n", "sentences"),
        ("1\tThe" + "\t_" * 8 + "\n", "conllu"),
        ("# text = The\n1\tThe" + "\t_" * 8 + "\n", "conllu"),
        ("", "sentences"),
    ],
)
def test_by_the_lines(text, found):
    assert format_of_lines(lines(text)) == found


@pytest.mark.parametrize("tokens", [1, 49, 50, 51, 3000])
def test_the_length_of_the_first_sentence_does_not_matter(tokens):
    assert format_of_lines([b"word NN"] * tokens + [b"", b"Go VB"]) == "conll"


def test_by_the_labels_of_a_tagger():
    assert format_of_lines(lines("The DT"), labels=PENN, target="c1") == "conll"
    assert format_of_lines(lines("The x DT"), labels=PENN, target="upos") == "conll"  # the last column
    assert format_of_lines(lines("The DT x"), labels=PENN, target="c1") == "conll"
    assert format_of_lines(lines("The DT\ndog NN\nbarks VBZ loudly"), labels=PENN, target="c1") == "conll"
    assert format_of_lines(lines("New York"), labels=PENN, target="c1") == "sentences"
    assert format_of_lines(lines("Yes .\nNo ."), labels=PENN, target="c1") == "sentences"
    assert format_of_lines(lines("DT"), labels=PENN, target="c1") == "sentences"


def test_with_columns_that_must_be():
    assert format_of_lines(lines("The DT\ndog NN\nbarks VBZ\n"), needs_columns=True) == "conll"
    assert format_of_lines(lines("The DT\ndog NN\nbarks\n"), needs_columns=True) == "conll"  # a bad line
    assert format_of_lines(lines("The dog barks .\nGo !\n"), needs_columns=True) == "sentences"
    assert format_of_lines(lines("# c only\n"), needs_columns=True) == "sentences"


def test_comments_that_come_before_anything_else():
    assert format_of_lines(lines("# sent_id = 1"), target="upos") == "conllu"
    assert format_of_lines(lines("# sent_id = 1"), target="c1") == "conll"
