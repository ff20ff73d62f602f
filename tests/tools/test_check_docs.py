"""The check of the documents, on made-up ones."""

from __future__ import annotations

import pytest

from check_docs import check


@pytest.fixture
def problems(tmp_path):
    def run(text: str) -> list[str]:
        path = tmp_path / "page.md"
        path.write_text(text)
        return check(path)

    return run


def test_examples_run_and_share_names(problems):
    assert not problems("```python\n>>> a = 2\n```\nthen\n```pycon\n>>> a + 1\n3\n```\n")


def test_wrong_output_is_reported_with_its_line(problems):
    (report,) = problems("# Title\n\n```python\n>>> 1 + 1\n3\n```\n")
    assert "page.md" in report
    assert "line 4" in report
    assert "Expected:\n    3\nGot:\n    2" in report


def test_plain_block_is_compiled_only(problems):
    assert not problems("```python\nraise SystemExit\n```\n")
    (report,) = problems("text\n```python\na = 1\na =\n```\n")
    assert ":4: " in report


def test_links(problems, tmp_path):
    (tmp_path / "other.md").write_text("")
    assert not problems("[a](other.md#part) [b](https://example.org/x) [c](#here)\n```\n[d](no.md)\n```\n")
    (report,) = problems("\n[a](missing.md)\n")
    assert report.endswith("page.md:2: missing.md does not exist")
