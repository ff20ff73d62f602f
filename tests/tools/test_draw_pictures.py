"""The pictures of the documents are drawn, and are those that the project holds."""

from __future__ import annotations

import runpy
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
PICTURES = runpy.run_path(str(PROJECT / "tools" / "draw_pictures.py"))["PICTURES"]


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_are_sound(name):
    if name.startswith("theory"):
        pytest.importorskip("matplotlib")
    root = ElementTree.fromstring(PICTURES[name]())
    kept = ElementTree.parse(PROJECT / "docs" / f"{name}.svg").getroot()
    assert root.get("viewBox") == kept.get("viewBox") and len(root) == len(kept)
    assert [part.tag for part in root] == [part.tag for part in kept]
    assert (PROJECT / "docs" / f"{name}.svg").stat().st_size < 30_000
