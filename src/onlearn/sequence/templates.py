"""Templates: lines that say which attributes a token has, in the manner of CRF++ and Wapiti.

    # the word before, the word, and both
    U01:%x[-1,0]
    U02:%x[0,0]
    U03:%x[-1,0]/%x[0,0]
    # transitions between labels
    B

``%x[row,column]`` is the value of a column, ``row`` tokens away. Columns are numbered from 0, or named. Beyond the ends
of a sentence the value is ``_B-1``, ``_B-2``, ... before it and ``_B+1``, ... after it.

Further functions of a value: ``%t[0,0,"regex"]`` (true or false) and ``%m[0,0,"regex"]`` (what the expression matches),
as of Wapiti, with the expressions of Python; ``%prefix3[0,0]``, ``%suffix3[0,0]``, ``%shape[0,0]``; and ``%capital``,
``%digit``, ``%hyphen`` (yes, or no attribute). With a capital letter they take the value in lower case: ``%X[0,0]``,
``%Suffix3[0,0]``. A line may also begin with a name of its own, as in ``suffix3=%Suffix3[0,form]``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from onlearn.sequence.views import FUNCTIONS, View

FARTHEST = 100  # tokens away
LONGEST = 16  # characters of a prefix or suffix
MACRO = re.compile(
    r"%(?P<function>[A-Za-z]+)(?P<size>\d*)"
    r'\[\s*(?P<row>[+-]?\d+)\s*,\s*(?P<column>[^\],"\s]+)\s*(?:,\s*"(?P<pattern>(?:[^"\\]|\\.)*)"\s*)?\]'
)
NAMED = re.compile(r"[a-z][^%=:]*=")  # a line with a name of its own
PLAIN = re.compile(r"[^\W\d][\w.-]*")  # a column that macros can name
COMMENT = re.compile(r'\s#[^"]*$')


class Macro(NamedTuple):
    """A view of the column of a token."""

    view: View
    row: int
    column: int | str


class Line(NamedTuple):
    """Attributes ``literals[0] value literals[1] value ... literals[-1]`` with the values of the macros."""

    literals: tuple[str, ...]
    macros: tuple[Macro, ...]
    place: str  # file and line

    def name(self, values: Sequence[str]) -> str:
        """The name of the attribute with some values."""
        pairs = zip(self.literals, [*values, ""])
        return "".join(text for pair in pairs for text in pair)


class Template:
    """The attributes of tokens, and whether there are weights of transitions.

    >>> template = Template.parse("U05:%x[-1,0]/%x[0,0]\\nB")
    >>> template.lines[0].name(["the", "dog"]), template.transitions
    ('U05:the/dog', True)
    """

    def __init__(self, text: str, name: str, lines: list[Line], transitions: bool) -> None:
        self.text: str = text
        self.name: str = name
        self.lines: list[Line] = lines
        self.transitions: bool = transitions

    def __repr__(self) -> str:
        return f"<Template {self.name}: {len(self.lines)} lines{', transitions' if self.transitions else ''}>"

    @classmethod
    def parse(cls, text: str, name: str = "template") -> Template:
        """Read a template; ``name`` is what errors call it."""
        lines: list[Line] = []
        transitions = False
        for number, written in enumerate(text.splitlines(), 1):
            line = COMMENT.sub("", written).strip()
            if not line or line.startswith("#"):
                continue
            place = f"{name}, line {number}"
            parsed = parse_line(line, place)
            named = NAMED.match(line)
            if line[0] == "U" or named or re.match(r"u\d*(:|%|$)", line):
                lines.append(parsed)
            elif line[0] == "B" or line[0] == "*" or re.match(r"b\d*(:|%|$)", line):
                if parsed.macros:
                    raise ValueError(
                        f"{place}: {line!r} makes weights of transitions depend on words, which is not supported: "
                        "write a U line for the words and a plain B for the transitions"
                    )
                transitions = True
                if line[0] == "*":
                    lines.append(parsed)
            else:
                raise ValueError(f"{place}: {line!r} should begin with U, B, # or a name such as suffix3=")
        if not lines:
            raise ValueError(f"{name} has no attributes: it needs a line such as U00:%x[0,0]")
        return cls(text, name, lines, transitions)

    @classmethod
    def read(cls, path: Any) -> Template:
        """Read the template in a file."""
        try:
            text = Path(path).read_text(encoding="utf-8-sig")
        except OSError as error:
            raise ValueError(f"cannot read the template {path}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise ValueError(f"the template {path} is not UTF-8 text") from None
        return cls.parse(text, str(path))

    @classmethod
    def default(cls, columns: int | Sequence[str] = ("form",)) -> Template:
        """The built-in template, for words (the column ``form``, or else the first) and all other columns."""
        names = [f"c{n}" for n in range(columns)] if isinstance(columns, int) else list(columns)
        if not names:
            raise ValueError("there are no columns to make attributes of")
        word = names.index("form") if "form" in names else 0
        spelled = [name if PLAIN.fullmatch(name) else str(n) for n, name in enumerate(names)]
        lines = [line.replace("*", spelled[word]) for line in WORD.split()]
        for n, column in enumerate(spelled):
            if n != word:
                short = column if PLAIN.fullmatch(column) and NAMED.match(f"{column}=") else f"c{n}"
                lines += [line.replace("*", column).replace("@", short) for line in OTHER.split()]
                lines += [f"word|{short}=%X[0,{spelled[word]}]|%x[0,{column}]"]
        return cls.parse("\n".join([*lines, "B"]), "the default template")

    def resolved(self, columns: Sequence[str], label: str | None = None) -> list[list[str]]:
        """The name of the column of each macro of each line; a ValueError if there is no such column.

        ``columns`` are those of the file. The column of the labels, if it is among them, may not be used.
        """
        return [[self._column(macro, line, columns, label) for macro in line.macros] for line in self.lines]

    def _column(self, macro: Macro, line: Line, columns: Sequence[str], label: str | None) -> str:
        if isinstance(macro.column, int):
            if macro.column >= len(columns):
                raise ValueError(
                    f"{line.place}: there is no column {macro.column}: there are {len(columns)}, "
                    f"numbered from 0 ({', '.join(columns)})"
                )
            name = columns[macro.column]
        else:
            name = macro.column
            if name not in columns:
                raise ValueError(f"{line.place}: there is no column {name!r}: there are {', '.join(columns)}")
        if name == label:
            raise ValueError(f"{line.place}: the column {name} has the labels: no attribute can be made of them")
        return name


def parse_line(line: str, place: str) -> Line:
    """The literals and the macros of a line."""
    literals, macros, done = [], [], 0
    for found in MACRO.finditer(line):
        literals.append(line[done : found.start()])
        macros.append(parse_macro(found, place))
        done = found.end()
    literals.append(line[done:])
    for literal in literals:
        if "%" in literal:
            wrong = literal[literal.index("%") :]
            raise ValueError(f"{place}: cannot read {wrong[:40]!r}: a macro is %x[row,column], such as %x[-1,0]")
    return Line(tuple(literals), tuple(macros), place)


def parse_macro(found: re.Match[str], place: str) -> Macro:
    """One macro, checked."""

    def refuse(why: str) -> NoReturn:
        raise ValueError(f"{place}: {found.group()}: {why}")

    written, size, pattern = found["function"], found["size"], found["pattern"]
    function = written[0].lower() + written[1:]
    if function not in FUNCTIONS:
        refuse(f"there is no function {written!r}: there are {', '.join(FUNCTIONS)}")
    if function in ("prefix", "suffix"):
        if not size or not 1 <= int(size) <= LONGEST:
            refuse(f"say how many characters, from 1 to {LONGEST}, as in %{written}3[0,0]")
    elif size:
        refuse(f"%{written} takes no number of characters")
    if (function in ("t", "m")) != (pattern is not None):
        refuse('%t and %m take a regular expression, as in %t[0,0,"^[A-Z]"]; the other functions do not')
    if pattern is not None:
        pattern = pattern.replace('\\"', '"')
        try:
            re.compile(pattern)
        except re.error as error:
            refuse(f"the regular expression is wrong: {error}")
    row = int(found["row"]) if len(found["row"]) < 9 else FARTHEST + 1
    if abs(row) > FARTHEST:
        refuse(f"rows may be at most {FARTHEST} tokens away")
    column: int | str = found["column"]
    if found["column"].isdecimal():
        column = int(found["column"]) if len(found["column"]) < 9 else 10**9
    return Macro(View(function, int(size or 0), written[0].isupper(), pattern or ""), row, column)


# The built-in template: * is the column of words.
WORD = """
word=%x[0,*]
lower=%X[0,*]
prefix1=%Prefix1[0,*]
prefix2=%Prefix2[0,*]
prefix3=%Prefix3[0,*]
prefix4=%Prefix4[0,*]
suffix1=%Suffix1[0,*]
suffix2=%Suffix2[0,*]
suffix3=%Suffix3[0,*]
suffix4=%Suffix4[0,*]
shape=%shape[0,*]
capital=%capital[0,*]
digit=%digit[0,*]
hyphen=%hyphen[0,*]
lower[-2]=%X[-2,*]
lower[-1]=%X[-1,*]
lower[1]=%X[1,*]
lower[2]=%X[2,*]
suffix3[-1]=%Suffix3[-1,*]
suffix3[1]=%Suffix3[1,*]
shape[-1]=%shape[-1,*]
shape[1]=%shape[1,*]
lower[-1]|lower=%X[-1,*]|%X[0,*]
lower|lower[1]=%X[0,*]|%X[1,*]
lower[-1]|suffix3=%X[-1,*]|%Suffix3[0,*]
suffix3|lower[1]=%Suffix3[0,*]|%X[1,*]
shape[-1]|shape=%shape[-1,*]|%shape[0,*]
shape|shape[1]=%shape[0,*]|%shape[1,*]
"""
# Of each other column: * is the column, @ its name.
OTHER = """
@=%x[0,*]
@[-2]=%x[-2,*]
@[-1]=%x[-1,*]
@[1]=%x[1,*]
@[2]=%x[2,*]
@[-2]|@[-1]=%x[-2,*]|%x[-1,*]
@[-1]|@=%x[-1,*]|%x[0,*]
@|@[1]=%x[0,*]|%x[1,*]
@[1]|@[2]=%x[1,*]|%x[2,*]
@[-1]|@|@[1]=%x[-1,*]|%x[0,*]|%x[1,*]
"""
