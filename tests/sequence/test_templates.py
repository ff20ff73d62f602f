"""Templates: parsing, the built-in one, and views of words."""

from __future__ import annotations

import pytest

from onlearn.sequence.templates import Template
from onlearn.sequence.views import View, view_of


def test_a_template_of_crf_plus_plus():
    text = "# Unigram\nU05:%x[-1,0]/%x[0,1]\n\nU:%x[+2,form] # comment\n# Bigram\nB\n"
    template = Template.parse(text, "chunk.tpl")
    first, second = template.lines
    assert first.literals == ("U05:", "/", "") and [macro.row for macro in first.macros] == [-1, 0]
    assert first.name(["the", "DT"]) == "U05:the/DT"
    assert second.macros[0].row == 2 and second.macros[0].column == "form"
    assert template.transitions and template.text == text
    assert not Template.parse("U:%x[0,0]").transitions
    assert template.resolved(["form", "c1", "c2"]) == [["form", "c1"], ["form"]]


def test_wapiti_lines():
    template = Template.parse('*\nu:wrd=%X[0,0]\nU1:%t[0,0,"^[A-Z]\\""]\nU2:%M[0,0,"..$"]\nb')
    assert template.transitions and len(template.lines) == 4
    views = [macro.view for line in template.lines for macro in line.macros]
    assert views == [View("x", 0, True), View("t", 0, False, '^[A-Z]"'), View("m", 0, True, "..$")]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "t has no attributes"),
        ("# x\nB", "t has no attributes"),
        ("U:%x[0,0]\nB:%x[0,0]", "t, line 2: .* transitions depend on words, which is not supported"),
        ("*:%x[0,0]", "t, line 1: .* not supported"),
        ("U:%x[0]", r"t, line 1: cannot read '%x\[0\]'"),
        ("U:100%", "t, line 1: cannot read '%'"),
        ("X:%x[0,0]", "t, line 1: .* should begin with U, B, #"),
        ("U:%foo[0,0]", "there is no function 'foo'"),
        ("U:%suffix[0,0]", "say how many characters"),
        ("U:%suffix99[0,0]", "say how many characters"),
        ("U:%x3[0,0]", "takes no number of characters"),
        ("U:%t[0,0]", "take a regular expression"),
        ('U:%x[0,0,"a"]', "take a regular expression"),
        ('U:%m[0,0,"("]', "the regular expression is wrong"),
        ("U:%x[-101,0]", "at most 100 tokens away"),
        ("U:%x[" + "9" * 5000 + ",0]", "at most 100 tokens away"),
    ],
)
def test_errors_say_file_and_line(text, says):
    with pytest.raises(ValueError, match=says):
        Template.parse(text, "t")


def test_columns_that_are_not_there_or_have_the_labels():
    with pytest.raises(ValueError, match=r"t, line 1: there is no column 2: there are 2, numbered from 0 \(c0, c1\)"):
        Template.parse("U:%x[0,2]", "t").resolved(["c0", "c1"])
    with pytest.raises(ValueError, match="t, line 1: there is no column 'pos': there are form"):
        Template.parse("U:%x[0,pos]", "t").resolved(["form"])
    with pytest.raises(ValueError, match="t, line 1: the column c1 has the labels"):
        Template.parse("U:%x[0,1]", "t").resolved(["c0", "c1"], "c1")


def test_reading_a_file(tmp_path):
    path = tmp_path / "t.tpl"
    path.write_bytes(b"\xef\xbb\xbfU:%x[0,0]\r\nB\r\n")
    assert Template.read(path).transitions
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="is not UTF-8 text"):
        Template.read(path)
    with pytest.raises(ValueError, match=r"cannot read the template .*none"):
        Template.read(tmp_path / "none")


@pytest.mark.parametrize("columns", [1, 3, ["form"], ["id", "form", "xpos"], ["words", "a b", "X"], ["0"]])
def test_the_built_in_template_takes_every_column(columns):
    template = Template.default(columns)
    names = [f"c{n}" for n in range(columns)] if isinstance(columns, int) else columns
    used = {name for line in template.resolved(names) for name in line}
    assert used == set(names) and template.transitions
    assert Template.parse(template.text, template.name).lines == template.lines


def test_the_built_in_template_needs_a_column():
    with pytest.raises(ValueError, match="no columns"):
        Template.default([])


@pytest.mark.parametrize(
    ("word", "view", "expected"),
    [
        ("McDonald-2000", View("shape"), "XxXx-d"),
        ("日本語", View("shape"), "o"),
        ("e\u0301t\u00e9", View("shape"), "x"),
        ("\u0301", View("shape"), ""),
        ("$5.00%", View("shape"), "$d.d."),
        ("Große", View("suffix", 3), "oße"),
        ("Große", View("prefix", 3), "Gro"),
        ("Große", View("prefix", 3, True), "gro"),
        ("ab", View("suffix", 3), None),
        ("ab", View("suffix", 2), "ab"),
        ("", View("prefix", 1), None),
        ("", View("x"), ""),
        ("İ", View("x", 0, True), "i̇"),
        ("\U0001d49cb", View("suffix", 2), "\U0001d49cb"),
        ("Éa", View("capital"), "yes"),
        ("éA", View("capital"), None),
        ("a1", View("digit"), "yes"),
        ("a", View("digit"), None),
        ("a-b", View("hyphen"), "yes"),
        ("-", View("hyphen"), None),
        ("abc", View("m", 0, False, "b+"), "b"),
        ("abc", View("m", 0, False, "d"), ""),
        ("ABC", View("t", 0, True, "b"), "true"),
        ("ABC", View("t", 0, False, "b"), "false"),
    ],
)
def test_views(word, view, expected):
    assert view_of(word, view) == expected
