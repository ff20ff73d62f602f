"""Pictures as files: SVG, PNG, and a page of HTML that needs nothing else.

The same picture gives the same bytes with the same version of Matplotlib: no date, no name drawn by lot.
"""

from __future__ import annotations

import html
import io
import os
import re
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from onlearn.engine.spec import did_you_mean
from onlearn.errors import PlanError
from onlearn.theory.plots.canvas import style
from onlearn.theory.plots.catalogue import PICTURES, Picture
from onlearn.whole_file import whole_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("svg", "png", "html")
DOTS = 150  # of a PNG, per inch

PAGE = Template("""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>$title</title>
<style>
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; font: 1rem/1.5 sans-serif; color: #222; background: white }
figure { margin: 0 } svg { width: 100%; height: auto } figcaption { max-width: 42rem }
</style>
</head>
<body>
<h1>$title</h1>
<figure role="group" aria-labelledby="caption">
$svg
<figcaption id="caption">
<p>$caption</p>
<p><strong>Theorem.</strong> $theorem</p>
</figcaption>
</figure>
<p><small>onlearn bounds plot $name</small></p>
</body>
</html>
""")


def render(figure: Figure, format: str, picture: Picture) -> bytes:
    """A figure as the content of a file."""
    if format == "html":
        return _page(figure, picture).encode()
    about: dict[str, Any] = {"Title": picture.title, "Description": picture.caption}
    if format == "svg":
        about |= {"Date": None, "Creator": "onlearn"}
    elif format == "png":
        about |= {"Software": "onlearn"}
    else:
        raise PlanError(f"{format!r} is not one of the formats {', '.join(FORMATS)}", "format")
    written = io.BytesIO()
    with style():
        figure.savefig(written, format=format, metadata=about, dpi=DOTS)
    return written.getvalue() if format == "png" else _rounded(written.getvalue().decode()).encode()


def _rounded(svg: str) -> str:
    """Coordinates in hundredths of a point: half the size, and nothing to see.

    >>> _rounded('<path d="M 1.23456 7L 10.5 0.001"/>0.12345')
    '<path d="M 1.23 7L 10.5 0"/>0.12345'
    """

    def short(number: re.Match[str]) -> str:
        return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")

    svg = re.sub(r'"[^"<>]*"', lambda value: re.sub(r"-?\d+\.\d{3,}", short, value[0]), svg)
    return re.sub(r"\s*\n\s*", "\n", svg)


def _page(figure: Figure, picture: Picture) -> str:
    svg = render(figure, "svg", picture).decode()
    svg = svg[svg.index("<svg") :].strip()  # without the XML declaration and the document type
    svg = re.sub(r"<svg ", f'<svg role="img" aria-label="{html.escape(picture.title)}" ', svg, count=1)
    texts = {key: html.escape(getattr(picture, key)) for key in ("title", "caption", "theorem", "name")}
    return PAGE.substitute(texts, svg=svg)


def format_of(path: str | os.PathLike[str]) -> str:
    """The format that the extension of a file name says.

    >>> format_of("mistakes.SVG")
    'svg'
    """
    extension = Path(path).suffix.lower().removeprefix(".")
    if extension not in FORMATS:
        ends = ", ".join(f".{one}" for one in FORMATS)
        raise PlanError(f"{os.fspath(path)!r} has none of the extensions {ends}, which say what to write", "output")
    return extension


def find_picture(name: str) -> Picture:
    """A picture by its name, with hyphens or underscores."""
    found = PICTURES.get(name.replace("_", "-"))
    if found is None:
        raise PlanError(f"there is no picture {name!r}{did_you_mean(name, list(PICTURES))}")
    return found


def save(name: str, path: str | os.PathLike[str], seed: int | None = None) -> None:
    """Draw a picture of ``PICTURES`` and write it; the extension says the format: svg, png or html."""
    picture, format = find_picture(name), format_of(path)
    content = render(picture.draw() if seed is None else picture.draw(seed=seed), format, picture)
    with whole_file(path) as temporary:
        Path(temporary).write_bytes(content)
