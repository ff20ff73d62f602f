"""Checks the documents: examples give what they show, and links within the project lead somewhere.

In a fenced ``python`` or ``pycon`` block, ``>>>`` examples are run (the blocks of one file share their
names); a ``python`` block without them is only compiled.

    python tools/check_docs.py [file.md ...]
"""

from __future__ import annotations

import doctest
import os
import re
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DOCUMENTS = ("*.md", "docs/**/*.md", "examples/**/*.md")
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<body>.*?)^(?P=indent)```", re.M | re.S)
LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")


def check(path: Path) -> list[str]:
    """One entry for each example that fails and each link that leads nowhere."""
    text = path.read_text(encoding="utf-8")
    with in_temporary_folder():
        found = list(examples(path, text))
    return [*found, *links(path, text)]


@contextmanager
def in_temporary_folder() -> Iterator[None]:
    """What examples write goes where nobody finds it."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def examples(path: Path, text: str) -> Iterator[str]:
    names: dict[str, object] = {"__name__": "__main__"}
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(verbose=False, optionflags=OPTIONS)
    for block in FENCE.finditer(text):
        line = text.count("\n", 0, block.start("body"))
        body = textwrap.dedent(block["body"])
        if block["language"] in ("python", "pycon") and ">>>" in body:
            test = parser.get_doctest(body, names, path.name, str(path), line)
            reports: list[str] = []
            runner.run(test, out=reports.append, clear_globs=False)
            names.update(test.globs)
            yield from reports
        elif block["language"] == "python":
            try:
                compile(body, str(path), "exec")
            except SyntaxError as error:
                yield f"{path}:{line + (error.lineno or 1)}: {error.msg}"


def links(path: Path, text: str) -> Iterator[str]:
    prose = FENCE.sub(lambda block: "\n" * block[0].count("\n"), text)
    for link in LINK.finditer(prose):
        target = link["target"].partition("#")[0]
        if target and not re.match(r"[a-z]+:", target) and not (path.parent / target).exists():
            line = prose.count("\n", 0, link.start()) + 1
            yield f"{path}:{line}: {target} does not exist"


def main(arguments: list[str]) -> int:
    paths = [Path(name) for name in arguments] or sorted({p for g in DOCUMENTS for p in Path().glob(g)})
    problems = [problem for path in paths for problem in check(path)]
    print("\n".join(problems) if problems else f"{len(paths)} documents hold")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
