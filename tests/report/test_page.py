"""Pages of reports: complete in themselves, inert, small, the same for the same run; JSON with the same numbers."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from onlearn.data import BadRows
from onlearn.data.bad_rows import Bad
from onlearn.errors import PlanError
from onlearn.report import Evidence, check_path, write
from onlearn.report.document import make_document
from onlearn.report.page import LARGEST, as_json, for_script, render
from report_examples import HISTORY, HOSTILE, TUNED, classified, every_kind, trained

KINDS = every_kind()
VOID = {"meta", "img", "br", "link", "input", "hr"}


class Page(HTMLParser):
    """Elements of a page, and whether they are nested as they should be."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[str] = []
        self.raw: dict[str, list[str]] = {"script": [], "style": []}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag in self.raw:
            self.raw[tag].append("")

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in self.raw:
            self.raw[self.open[-1]][-1] += data
        else:
            self.text.append(data)

    def has(self, tag: str, **attributes: str) -> bool:
        return any(t == tag and attributes.items() <= a.items() for t, a in self.elements)


def page_of(kind, facts, evidence=None, command=()) -> tuple[str, Page]:
    text = render(make_document(kind, facts, evidence, command)).decode()
    page = Page(text)
    assert page.open == []
    return text, page


@pytest.mark.parametrize("name", KINDS)
def test_every_kind(name):
    kind, facts, evidence = KINDS[name]
    text, page = page_of(kind, facts, evidence, [kind, "my data.csv"])
    assert len(text.encode()) <= LARGEST
    assert text.startswith("<!DOCTYPE html>")
    assert page.has("section", id="summary") and page.has("section", id="run")
    assert "'my data.csv'" in "".join(page.text)
    # every chart: a picture with title and description, a table of its numbers, and data for the script
    charts = [
        attributes["data-chart"] for tag, attributes in page.elements if tag == "figure" and "data-chart" in attributes
    ]
    data = json.loads(page.raw["script"][0])
    assert sorted(charts) == sorted(data)
    for id in charts:
        assert page.has("title", id=f"{id}-t") and page.has("desc", id=f"{id}-d")
        xs = data[id]["x"]
        assert xs == sorted(xs) and xs
        assert all(len(one["y"]) == len(xs) for one in data[id]["series"])
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("name", KINDS)
def test_policy_takes_what_is_inside_and_nothing_else(name):
    text, page = page_of(*KINDS[name])
    policy = next(a["content"] for t, a in page.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy and "http" not in policy
    _, library, script = page.raw["script"]
    for content, where in ((library, "script-src"), (script, "script-src"), (page.raw["style"][0], "style-src")):
        made = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        directive = next(one for one in policy.split("; ") if one.startswith(where))
        assert f"'sha256-{made}'" in directive
    for tag, attributes in page.elements:
        assert not {"src", "style", "onload", "onerror", "onclick", "srcset"} & attributes.keys()
        assert tag not in ("link", "iframe", "object", "embed", "img", "base")
        assert attributes.get("href", "#").startswith("#")
    assert "url(" not in re.sub(r"url\(#[\w-]+\)", "", text)


def test_hostile_names_are_inert():
    figures, evidence = classified(HOSTILE, 600, texts=HOSTILE)
    evidence.more["weights"] = {
        "of": "features", "labels": 1, "shown": [{"label": HOSTILE[0], "top": [[one[:300], 1.0] for one in HOSTILE]}]
    }  # fmt: skip
    bad = BadRows(limit=1.0)
    for one in HOSTILE:
        bad.add(one[:1000], Bad(1, 2, one[:1000], one.encode("utf-8", "replace")))
    evidence.note_bad(bad, "the data")
    evidence.note_progress(HISTORY)
    facts = trained(HOSTILE, figures, notes=HOSTILE, warnings=HOSTILE, learner=HOSTILE[0], model=HOSTILE[1])
    text, page = page_of("train", facts, evidence, ["train", *HOSTILE])
    assert len(text.encode()) <= LARGEST
    tags = {tag for tag, _ in page.elements}
    assert "img" not in tags and len(page.raw["script"]) == 3
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069\u2028\u2029]", text)
    shown = "".join(page.text)
    assert "</script><script>alert(1)</script>" in shown  # as text
    assert "\\x07" in shown and "\\u202e" in shown and "49" not in re.findall(r"\{\{.*", shown)
    assert "שלום עולם" in shown and "🦜" in shown
    assert "<" not in for_script({"a": HOSTILE}) and "&" not in for_script(HOSTILE)


@pytest.mark.parametrize("kind", ["tune", "compare"])
def test_pages_of_contests_are_small_whatever_takes_part(kind):
    long = "y" * 10_000
    if kind == "tune":
        one = TUNED["configurations"][0]
        rungs = [{"examples": 2**k, "loss": 1.0, "mistakes": k} for k in range(40)]
        facts = {
            **TUNED,
            "configurations": [{**one, "number": n, "spelling": long, "rungs": rungs} for n in range(2000)],
        }
    else:
        curve = [{"seen": n + 1, "loss": 0.5, "mistakes": n} for n in range(3000)]
        learner = {"accuracy": 0.5, "log_loss": 1.0, "mistakes": 1, "seconds": 1.0, "curve": curve}
        facts = {"data": long, "learners": [{"name": f"{n}{long}", **learner} for n in range(300)]}
        facts["pairs"] = [{"a": long, "b": long, "p": 0.5, "test": "mcnemar", "difference": 0.0}] * 5000
    text, _ = page_of(kind, facts)
    assert len(text.encode()) <= LARGEST
    assert " are shown." in text


def test_thousand_classes_are_capped_and_said():
    labels = [f"{n}" + "ж" * 200 for n in range(1000)]
    figures, evidence = classified(labels, 5000)
    text, page = page_of("evaluate", figures, evidence)
    assert len(text.encode()) <= LARGEST
    assert "60 of 1,000 labels" in "".join(page.text)


def test_same_run_same_bytes(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    monkeypatch.setattr("onlearn.report.document.peak_bytes", lambda: 1_000_000)
    for kind, facts, evidence in every_kind().values():
        again = every_kind()
        documents = [make_document(kind, facts, evidence)]
        documents += [make_document(*one) for one in again.values() if one[0] == kind and one[1] == facts]
        assert len(documents) == 2
        assert render(documents[0]) == render(documents[1])
        assert as_json(documents[0]) == as_json(documents[1])


def test_only_measurements_differ_from_run_to_run():
    kind, facts, evidence = KINDS["train, two classes"]
    first, second = make_document(kind, facts, evidence), make_document(kind, {**facts, "seconds": 9.0}, evidence)
    differing = {key for key in first if first[key] != second[key]}
    assert differing <= {"measured", "facts"}
    assert {key for key in first["facts"] if first["facts"][key] != second["facts"][key]} == {"seconds"}


@pytest.mark.parametrize("name", KINDS)
def test_json_has_the_same_numbers(tmp_path, name):
    kind, facts, evidence = KINDS[name]
    write(tmp_path / "r.json", kind, facts, evidence, ["x"])
    write(tmp_path / "r.html", kind, facts, evidence, ["x"])
    document = json.loads((tmp_path / "r.json").read_text())
    assert document["facts"].keys() == json.loads(json.dumps(facts)).keys()
    page = Page((tmp_path / "r.html").read_text(encoding="utf-8"))
    charts = json.loads(page.raw["script"][0])
    told = document["evidence"]
    if "roc" in charts:
        ys = dict(zip(charts["roc"]["x"], charts["roc"]["series"][0]["y"]))
        for x, y in zip(told["curves"]["false_positives"], told["curves"]["of"][0]["roc"]):
            assert ys[float(f"{x:.5g}")] == pytest.approx(y, abs=1e-4)
    if document["facts"].get("accuracy") is not None:
        assert f"{document['facts']['accuracy']:.4f}" in "".join(page.text)
    # the page of the document that was read again is the page
    written = (tmp_path / "r.html").read_bytes()
    document["measured"] = make_document(kind, facts, evidence)["measured"] | {}
    again = render(document)
    assert re.sub(rb"\d+ [MG]B|\d{4}-\d\d-\d\d [\d:]+ UTC|[\d.]+ [MG]B", b"", again) == re.sub(
        rb"\d+ [MG]B|\d{4}-\d\d-\d\d [\d:]+ UTC|[\d.]+ [MG]B", b"", written
    )


def test_missing_parts():
    for facts in ({}, {"accuracy": None, "n": 0}, {"per_class": {}, "labels": [], "confusion": []}):
        for kind in ("train", "evaluate", "compare", "tune", "reproduce"):
            page_of(kind, facts)
    figures, evidence = classified(["a", "b"])
    page_of(
        "evaluate", {**figures, "confusion": None, "log_loss": None, "calibration_error": None, "auc": None}, evidence
    )


def test_without_probabilities():
    from onlearn.data import Batch
    from onlearn.models.evaluation import Predictions

    evidence = Evidence(["a", "b", "c"])
    gold, answers = np.array([0, 1, 2, 0]), np.array([0, 2, 2, 1])
    evidence.observe(Batch(["w", "x", "y", "z"], file="f"), gold, Predictions(answers))
    found = evidence.to_dict()
    assert found["curves"] == {} and found["reliability"] == [] and len(found["worst"]) == 2
    _, page = page_of("evaluate", {"n": 4, "accuracy": 0.5}, evidence)
    assert not page.has("figure", **{"data-chart": "roc"})


def test_unknown_kind():
    with pytest.raises(ValueError, match="not a kind of report"):
        make_document("novel", {})


def test_path_is_checked(tmp_path):
    assert check_path(tmp_path / "r.HTML") == ".html"
    for path, why in (
        (tmp_path / "r.pdf", "does not end in .html or .json"),
        (tmp_path / "none" / "r.html", "there is no directory"),
        (tmp_path, "does not end in"),
    ):
        with pytest.raises(PlanError, match=why):
            check_path(path)
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(PlanError, match="is a directory"):
        check_path(tmp_path / "folder.html")
