"""Labelled sentences as lines."""

from __future__ import annotations

import numpy as np
import pytest

from onlearn.data import load
from onlearn.sequence.conll_writer import lines_of


def test_what_is_written_is_read(tmp_path):
    text = "Confidence NN B-NP\nin IN B-PP\n\nthe DT B-NP\n\n"
    (tmp_path / "a.conll").write_text(text)
    sentences, y = load(tmp_path / "a.conll")
    assert lines_of(sentences, y, columns=["c0", "c1"]).decode() == text
    made = lines_of(sentences, ["x", "y", "z"], marginals=np.array([0.5, 0.25, 1]), separator="\t").decode()
    assert made == "Confidence\tNN\tB-NP\tx\t0.5000\nin\tIN\tB-PP\ty\t0.2500\n\nthe\tDT\tB-NP\tz\t1.0000\n\n"
    assert lines_of(sentences, ["x", "y", "z"], replace="c1").decode().startswith("Confidence x B-NP\n")
    assert lines_of(sentences.between(0, 0), []) == b""


def test_universal(tmp_path):
    text = "1\tdo\tdo\tAUX\tVB\t_\t0\troot\t_\t_\n\n"
    (tmp_path / "a.conllu").write_text(text)
    sentences, _ = load(tmp_path / "a.conllu")
    made = lines_of(sentences, ["VERB"], separator="\t", replace="upos").decode()
    assert made == text.replace("AUX", "VERB")


def test_what_is_refused(tmp_path):
    (tmp_path / "a.conll").write_text("a X\nb Y\n\n")
    sentences, y = load(tmp_path / "a.conll")
    with pytest.raises(ValueError, match="there are 1 labels for 2 tokens"):
        lines_of(sentences, ["X"])
    with pytest.raises(ValueError, match="no column 'upos'"):
        lines_of(sentences, y, replace="upos")
