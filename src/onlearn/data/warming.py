"""Compiling the parsers ahead, by reading a small file of each format that has one."""

from __future__ import annotations

import tempfile
from pathlib import Path

from onlearn.data.loading import load

SAMPLES = {
    "small.svm": "1 2:0.5 1:1\n",
    "wide.svm": "1 3000000000:1\n",
    "small.vw": "1 |f ä:0.5\n",
    "small.csv": "a,label\n1,x\n2,y\n",
    "small.jsonl": '{"label": "x", "a": "ä"}\n',
}


def warm() -> None:
    """Compile what reading needs, so that the first file is read at full speed."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in SAMPLES.items():
            path = Path(folder) / name
            path.write_text(text, encoding="utf-8")
            load(path)
