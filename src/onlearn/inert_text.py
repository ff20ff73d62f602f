"""Text of others made inert: labels, names of features and rows are shown as what they are, and do nothing.

Characters that are not seen, or that change how others are seen (controls, directional overrides, lone surrogates),
are written as escapes: ``escaped`` for terminals, ``inert`` for places of limited size, where a longer text is cut.
Small facts become HTML for notebooks, escaped, with no script.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

MOST = 80  # characters of a name
JOINERS = "\u200c\u200d"  # not seen, but words of several languages need them
NOTHING = "\u2013"  # where there is no number
PLAIN_SPACES = "\u00a0\u2007\u202f"


def escaped(text: str, kept: str = "\n") -> str:
    r"""A text in which every character is seen, but those ``kept``: nothing that a terminal obeys is left.

    >>> escaped("spam\x1b[31m\x00\u202egnp.exe\n")
    'spam\\x1b[31m\\x00\\u202egnp.exe\n'
    """
    return text if text.isprintable() else "".join(one if one in kept else _seen(one) for one in text)


def _seen(character: str) -> str:
    """A character, or what is shown in its place."""
    if character.isprintable() or character in JOINERS:
        return character
    return " " if character in PLAIN_SPACES else character.encode("unicode_escape").decode("ascii")


def inert(text: object, most: int = MOST) -> str:
    r"""A text of at most ``most`` characters in one line, in which every character is seen.

    >>> inert("spam\x00\u202egnp.exe")
    'spam\\x00\\u202egnp.exe'
    >>> inert("a" * 100, most=10)
    'aaaaaaaaa…'
    >>> inert("two\nlines")
    'two lines'
    """
    whole = text if isinstance(text, str) else str(text)
    made, length, cut = [], 0, len(whole) > most
    for character in whole[: most + 1]:
        shown = " " if character in "\t\n\r" else _seen(character)
        if length + len(shown) > most:
            cut = True
            break
        made.append(shown)
        length += len(shown)
    if not cut:
        return "".join(made)
    while made and length > most - 1:
        length -= len(made.pop())
    return "".join(made) + "…"


FRAME = "border-collapse:collapse;margin:.4em 0;font-size:90%"
CELL = "text-align:left;padding:.15em .8em .15em 0;vertical-align:top"


def facts_html(title: str, facts: Iterable[tuple[str, object]], table: Sequence[Sequence[object]] = ()) -> str:
    """A title, facts by name, and a table of which the first row is its head; a piece of HTML for a notebook.

    >>> print(facts_html("<b>", [("rows", 3)]))
    <div><strong>&lt;b&gt;</strong><table ...>rows</th><td ...><bdi>3</bdi></td></tr></table></div>
    """
    lines = "".join(
        f'<tr><th scope="row" style="{CELL}">{_escaped(name)}</th><td style="{CELL}">{_isolated(value)}</td></tr>'
        for name, value in facts
    )
    made = f'<table style="{FRAME}">{lines}</table>' if lines else ""
    if table:
        head, *rows = table
        heads = "".join(f'<th scope="col" style="{CELL}">{_escaped(one)}</th>' for one in head)
        body = "".join(
            "<tr>" + "".join(f'<td style="{CELL}">{_isolated(one)}</td>' for one in row) + "</tr>" for row in rows
        )
        made += f'<table style="{FRAME}"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'
    return f"<div><strong>{_escaped(title)}</strong>{made}</div>"


def _escaped(text: object) -> str:
    return html.escape(inert(text, 400))


def _isolated(text: object) -> str:
    return f"<bdi>{_escaped(text)}</bdi>"


def number(value: object) -> str:
    """A number as it is shown: whole ones with commas, others with four digits; None is a dash.

    >>> number(1234567), number(0.123456), number(1.0), number(True)
    ('1,234,567', '0.1235', '1.0000', 'yes')
    """
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            return NOTHING if value != value else "∞" if value > 0 else "-∞"
        if value == int(value) and 10 <= abs(value) < 1e15:
            return f"{int(value):,}"
        return (
            f"{value:.4f}"
            if 0.001 <= abs(value) < 10 or value == 0
            else f"{value:,.4g}"
            if abs(value) < 1e6
            else f"{value:.3e}"
        )
    return str(value)


def number_of(names: Sequence[object], most: int = 5) -> str:
    """How many there are, and the first of them.

    >>> number_of(["ham", "spam"]), number_of(range(100), 3)
    ('2: ham, spam', '100: 0, 1, 2, …')
    """
    return (
        f"{len(names):,}: " + ", ".join(inert(one, 30) for one in names[:most]) + (", …" if len(names) > most else "")
    )


def as_line(value: object) -> str:
    """A value in one line: numbers in short, lists and mappings by their parts."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {as_line(inner)}" for key, inner in list(value.items())[:12])
    if isinstance(value, list):
        return ", ".join(map(as_line, value[:12])) + (", …" if len(value) > 12 else "")
    return number(value)
