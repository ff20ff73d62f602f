"""The import-direction check, on a made-up package."""

from __future__ import annotations

from pathlib import Path

import pytest

from check_imports import check, main

LAYERS = {"low": "base shapes theory.bounds", "middle": "engine", "high": "theory onlearn", "top": "cli"}


@pytest.fixture
def problems(tmp_path, monkeypatch):
    """Writes the modules given as ``{path: source}`` and returns what the check says about them."""
    monkeypatch.chdir(tmp_path)

    def run(sources: dict[str, str]) -> list[str]:
        package = Path("onlearn")
        for name, source in {"__init__.py": "", **sources}.items():
            path = package / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(source)
        return check(package, LAYERS)

    return run


def test_downward_and_sideways_imports_pass(problems):
    assert not problems(
        {
            "base.py": "import numpy\nfrom . import shapes",
            "shapes/__init__.py": "from onlearn import base\nfrom .round import circle",
            "shapes/round.py": "from ..base import area",
            "engine/__init__.py": "import onlearn.base\nfrom onlearn.theory import bounds",
            "engine/run.py": "from onlearn import __version__",
            "theory/__init__.py": "",
            "theory/bounds.py": "import math",
            "cli/__init__.py": "from onlearn import Perceptron\nfrom onlearn.engine import train",
        }
    )


@pytest.mark.parametrize(
    "statement",
    [
        "import onlearn.engine",
        "import onlearn.engine as e",
        "from onlearn import engine",
        "from onlearn.engine import train",
        "from . import engine",
        "from .engine import train",
        "def f():\n    from onlearn.engine import train",
        "if TYPE_CHECKING:\n    from onlearn.engine import train",
    ],
)
def test_upward_import_is_reported(problems, statement):
    line = statement.count("\n") + 1
    assert problems({"base.py": statement, "engine.py": ""}) == [
        f"onlearn/base.py:{line}: base (low) may not import engine (middle)"
    ]


@pytest.mark.parametrize(
    ("path", "statement", "module"),
    [
        ("shapes/round.py", "from ..engine import train", "shapes.round"),
        ("shapes/round.py", "from .. import engine", "shapes.round"),
        ("shapes/__init__.py", "from ..engine import train", "shapes"),
    ],
)
def test_relative_import_in_a_package(problems, path, statement, module):
    assert problems({path: statement, "engine.py": ""}) == [
        f"onlearn/{path}:1: {module} (low) may not import engine (middle)"
    ]


def test_longest_name_decides(problems):
    sources = {"theory/__init__.py": "", "theory/bounds.py": "", "theory/teachers.py": ""}
    assert problems({**sources, "engine.py": "from onlearn.theory import bounds, teachers"}) == [
        "onlearn/engine.py:1: engine (middle) may not import theory.teachers (high)"
    ]


@pytest.mark.parametrize("statement", ["import onlearn", "from onlearn import Perceptron"])
def test_public_names_are_high(problems, statement):
    assert problems({"base.py": statement}) == ["onlearn/base.py:1: base (low) may not import onlearn (high)"]


def test_package_file_is_exempt(problems):
    assert not problems({"__init__.py": "from onlearn.cli import main", "cli.py": ""})


def test_unknown_module_must_be_placed(problems):
    assert problems({"stray.py": "", "base.py": "from onlearn import stray"}) == [
        "onlearn/stray.py:1: stray is in no layer: say where it belongs in LAYERS"
    ]


def test_exit_codes(tmp_path, capsys):
    package = tmp_path / "onlearn"
    assert main([str(package)]) == 2
    package.mkdir()
    (package / "threads.py").write_text("")
    assert main([str(package)]) == 0
    assert capsys.readouterr().out == ""
    (package / "threads.py").write_text("from onlearn import warm\n")
    (package / "warm.py").write_text("")
    assert main([str(package)]) == 1
    assert capsys.readouterr().out.endswith("threads.py:1: threads (foundation) may not import warm (programs)\n")
