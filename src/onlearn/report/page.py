"""A report as one page of HTML that needs nothing else, or as JSON with the same numbers.

The page asks no host for anything, and says so to the browser by a Content-Security-Policy: only the style sheet and
the scripts inside it, known by their SHA-256, are taken. Labels, names and rows are escaped by the templates; numbers
for the scripts are JSON in which no character can end the element. A page has at most 300 KB: what may be without end
is capped, and a page that is too large all the same is made again with smaller caps.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from onlearn.errors import PlanError
from onlearn.inert_text import inert
from onlearn.report.blocks import Caps, Section
from onlearn.report.charts import Chart, swatch
from onlearn.report.contests import compare_sections, tune_sections
from onlearn.report.document import make_document
from onlearn.report.learning import evaluate_sections, run_section, train_sections
from onlearn.report.tagging import tag_sections
from onlearn.report.theorems import bounds_sections, reproduce_sections
from onlearn.whole_file import whole_file

LARGEST = 300_000  # bytes of a page
LONGEST = 3000  # characters of a text
FORMATS = (".html", ".htm", ".json")
TITLES = {
    "train": "Training report",
    "evaluate": "Evaluation report",
    "tune": "Tuning report",
    "compare": "Comparison of learners",
    "bounds": "Mistake bounds",
    "reproduce": "Published results, reproduced",
}
SECTIONS = {
    "train": train_sections,
    "evaluate": evaluate_sections,
    "tune": tune_sections,
    "compare": compare_sections,
    "bounds": bounds_sections,
    "reproduce": reproduce_sections,
}


def write(
    path: str | os.PathLike[str],
    kind: str,
    facts: dict[str, Any],
    evidence: Any = None,
    command: Sequence[str] = (),
) -> None:
    """Write a report: a page if the path ends in ``.html``, the numbers behind it if it ends in ``.json``.

    ``kind`` is "train", "evaluate", "tune", "compare", "bounds" or "reproduce"; ``facts`` is what the command of that
    name prints with ``--json``; ``evidence`` an ``Evidence``, or a dict of the same form; ``command`` the arguments of
    the command line.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "bound.html")
    >>> write(path, "bounds", {"bound": "perceptron", "arguments": {"R": 2, "margin": 0.5}, "value": 16.0, "about": ""})
    >>> path.read_text(encoding="utf-8")[:15]
    '<!DOCTYPE html>'
    """
    format = check_path(path)
    document = make_document(kind, facts, evidence, command)
    content = as_json(document) if format == ".json" else render(document)
    with whole_file(path) as temporary:
        Path(temporary).write_bytes(content)


def check_path(path: str | os.PathLike[str]) -> str:
    """The extension of a path that a report can be written to; a ``PlanError`` that says what is wrong with another."""
    target = Path(path)
    format = target.suffix.lower()
    if format not in FORMATS:
        raise PlanError(f"{os.fspath(path)!r} does not end in .html or .json, which say what to write", "report")
    if target.is_dir():
        raise PlanError(f"{target} is a directory, not a file to write a report to", "report")
    if not target.parent.is_dir():
        raise PlanError(f"there is no directory {target.parent} to write a report to", "report")
    if not os.access(target.parent, os.W_OK) or (target.exists() and not os.access(target, os.W_OK)):
        raise PlanError(f"there is no permission to write {target}", "report")
    return format


def as_json(document: dict[str, Any]) -> bytes:
    """The document as JSON."""
    return (json.dumps(document, indent=1, allow_nan=False) + "\n").encode()


def render(document: dict[str, Any]) -> bytes:
    """The document as a page."""
    caps = Caps()
    for _ in range(8):
        content = _render(document, caps)
        if len(content) <= LARGEST:
            return content
        caps = caps.smaller()
    raise ValueError(f"the report has {len(content):,} bytes, more than {LARGEST:,}")


def _render(document: dict[str, Any], caps: Caps) -> bytes:
    kind, facts = document["report"], document["facts"]
    sections = [*_sections(document, caps), run_section(document)]
    charts = {block.id: block.data() for section in sections for block in section.blocks if isinstance(block, Chart)}
    data = for_script(charts)
    style, script = static("uPlot.min.css") + static("page.css"), static("page.js")
    library = f"/*\n{static('uPlot.LICENSE')}\n*/\n{static('uPlot.iife.min.js')}"
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; "
        f"style-src {digest(style)}; script-src {digest(library)} {digest(script)}"
    )
    page = _template().render(
        title=TITLES[kind],
        subject=_subject(document),
        sections=sections,
        policy=policy,
        style=_trusted(style),
        library=_trusted(library),
        script=_trusted(script),
        data=_trusted(data),
        version=document["versions"]["onlearn"],
        written=document["measured"]["written"],
        facts=facts,
    )
    return page.encode("utf-8", "replace")


def _sections(document: dict[str, Any], caps: Caps) -> Iterator[Section]:
    kind, facts = document["report"], document["facts"]
    if kind in ("train", "evaluate") and (facts.get("task") == "tag" or "per_label" in facts):
        yield from tag_sections(document, caps)
    else:
        yield from SECTIONS[kind](document, caps)


def _subject(document: dict[str, Any]) -> str:
    """What the report is about, in a few words."""
    facts, evidence = document["facts"], document["evidence"]
    sources = facts.get("data") or facts.get("title") or evidence.get("data") or facts.get("bound") or ""
    names = sources if isinstance(sources, list) else [sources]
    return ", ".join(inert(os.path.basename(str(name)) or name, 80) for name in names[:3])


def for_script(value: Any) -> str:
    r"""JSON that can stand inside a script element: nothing in it ends the element or begins another.

    >>> for_script({"name": "</script>&"})
    '{"name":"\\u003c/script\\u003e\\u0026"}'
    """
    made = json.dumps(value, allow_nan=False, separators=(",", ":"))  # ASCII: U+2028 and the like are escapes
    return made.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def static(name: str) -> str:
    """A file of the page that is the same for all reports."""
    return resources.files("onlearn.report").joinpath("static", name).read_text(encoding="utf-8").strip()


def digest(content: str) -> str:
    """The source expression of a Content-Security-Policy that takes an inline element with this content."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def _trusted(text: str) -> Any:
    """Text of our own that the templates need not escape."""
    from markupsafe import Markup

    return Markup(text)


def _shown(value: Any) -> Any:
    """What a template shows of a value: all text of others is inert, wherever it comes from."""
    return inert(value, LONGEST) if type(value) is str else value


@cache
def _template() -> Any:
    try:
        import jinja2
    except ImportError as error:
        raise ImportError("reports need Jinja2: pip install jinja2") from error
    folder = resources.files("onlearn.report").joinpath("templates")
    names = ("page.html.j2", "blocks.html.j2")
    loader = jinja2.DictLoader({name: folder.joinpath(name).read_text(encoding="utf-8") for name in names})
    environment = jinja2.Environment(
        loader=loader,
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["swatch"] = lambda one: _trusted(swatch(one))
    environment.filters["svg"] = lambda chart: _trusted(chart.svg)
    return environment.get_template("page.html.j2")
