"""Files and pipes of sentences that taggers get: which format they are taken for, and what comes out."""

from __future__ import annotations

import array
import fcntl
import io
import json
import subprocess
import sys
import termios
import time

import pytest

import onlearn

COLUMNS = "the DET\ndog NOUN\nsees VERB\na DET\ncat NOUN\n. PUNCT\n\na DET\ncat NOUN\nlikes VERB\nthe DET\ndog NOUN\n\n"
SPANS = "He PRP B-NP\nsaw VBD B-VP\nthe DT B-NP\ndog NN I-NP\n\n"
UNIVERSAL = """# newdoc id = a
# text = the dogsee a cat
1\tthe\t_\tX\t_\t_\t0\t_\t_\t_
2-3\tdogsee\t_\t_\t_\t_\t_\t_\t_\t_
2\tdog\t_\tX\t_\t_\t0\t_\t_\t_
3\tsees\t_\tX\t_\t_\t0\t_\t_\tSpaceAfter=No
3.1\tnothing\t_\t_\t_\t_\t_\t_\t_\t_

# text = a cat
1\ta\t_\tX\t_\t_\t0\t_\t_\t_
2\tcat\t_\tX\t_\t_\t0\t_\t_\t_

"""
TAGGED = UNIVERSAL
for _word, _tag in {"the": "DET", "dog": "NOUN", "sees": "VERB", "a": "DET", "cat": "NOUN"}.items():
    TAGGED = TAGGED.replace(f"\t{_word}\t_\tX", f"\t{_word}\t_\t{_tag}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("tagfiles")
    (made / "train.conll").write_text(COLUMNS * 5)
    (made / "train.conllu").write_text(TAGGED * 5)
    (made / "spans.conll").write_text(SPANS * 5)
    onlearn.train(made / "train.conll", made / "pos.onl", passes=5)
    onlearn.train(made / "train.conllu", made / "upos.onl", passes=5)
    onlearn.train(made / "spans.conll", made / "spans.onl", passes=5)
    return made


def piped(monkeypatch, text):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(text.encode()))))


@pytest.mark.parametrize(
    "text",
    [
        COLUMNS.replace("\n\n", "\n", 1) * 6 + COLUMNS,  # 77 tokens in the first sentence
        "the DET\ndog NOUN\nsees VERB\n",  # no empty line
        "# sent_id = 1\nthe DET\ndog NOUN\n\n# sent_id = 2\na DET\ncat NOUN\n\n",
    ],
    ids=["long", "one", "comments"],
)
def test_columns_in_a_file_whose_name_does_not_say_so(run, folder, tmp_path, text):
    path = tmp_path / "real.txt"
    path.write_text(text)
    tokens = sum(" " in line and line[0] != "#" for line in text.splitlines())
    report = json.loads(run("train", path, "-o", tmp_path / "m.onl", "--task", "tag", "--column", "c1", "--json"))
    assert report["tokens"] == tokens and set(report["labels"]) <= {"DET", "NOUN", "VERB", "PUNCT"}
    assert json.loads(run("evaluate", folder / "pos.onl", path, "--json"))["tokens"] == tokens
    assert (
        json.loads(run("evaluate", folder / "upos.onl", path, "--column", "c1", "--json", err=None))["tokens"] == tokens
    )
    rows = [line.split("\t") for line in run("predict", folder / "pos.onl", path).splitlines() if line]
    assert len(rows) == tokens and all(len(row) == 3 and row[1] == row[2] for row in rows)


def test_the_task_follows_from_a_long_sentence(run, tmp_path):
    (tmp_path / "real.txt").write_text(COLUMNS.replace("\n\n", "\n") * 6 + "\n" + COLUMNS)
    assert json.loads(run("train", tmp_path / "real.txt", "-o", tmp_path / "m.onl", "--json"))["task"] == "tag"


def test_columns_that_a_tagger_of_several_must_get(run, folder, tmp_path):
    (tmp_path / "new.txt").write_text("He PRP\nsaw VBD\n")
    assert run("predict", folder / "spans.onl", tmp_path / "new.txt") == "He\tPRP\tB-NP\nsaw\tVBD\tB-VP\n\n"


def test_files_of_comments_only(refused, tmp_path):
    for name in ("a.conll", "a.txt"):
        (tmp_path / name).write_text("# c only\n")
        found = refused("train", tmp_path / name, "-o", tmp_path / "m.onl", "--task", "tag")
        assert "there are no rows" in found or "has no columns" in found


def test_raw_sentences_are_nothing_to_learn(refused, tmp_path):
    (tmp_path / "a.txt").write_text("the dog sees a cat\nGo !\n")
    found = refused("train", tmp_path / "a.txt", "-o", tmp_path / "m.onl", "--format", "sentences", "--task", "tag")
    assert "have no columns" in found


@pytest.mark.parametrize("blank", ["10\xa0000 NOUN\ndogs NOUN\n\n", "10 000\tNOUN\ndogs\tNOUN\n\n"])
def test_words_with_blanks_inside(run, folder, tmp_path, blank):
    word = blank[:6]
    for name in ("a.conll", "a.txt"):
        (tmp_path / name).write_text(blank, encoding="utf-8")
        assert run("predict", folder / "pos.onl", tmp_path / name).startswith(f"{word}\tNOUN\t")
        report = json.loads(run("train", tmp_path / name, "-o", tmp_path / "m.onl", "--task", "tag", "--json"))
        assert report["tokens"] == 2 and report["labels"] == ["NOUN"]


def test_conllu_in_is_conllu_out(run, folder, tmp_path, monkeypatch):
    (tmp_path / "a.conllu").write_text(UNIVERSAL)
    assert run("predict", folder / "upos.onl", tmp_path / "a.conllu") == TAGGED
    piped(monkeypatch, UNIVERSAL)
    assert run("predict", folder / "upos.onl", "-") == TAGGED
    rows = run("predict", folder / "upos.onl", tmp_path / "a.conllu", "--format-out", "jsonl").splitlines()
    assert [json.loads(row)["tokens"] for row in rows] == [["the", "dog", "sees"], ["a", "cat"]]


def test_conllu_whose_label_has_no_column_there(run, folder, tmp_path):
    (tmp_path / "a.conllu").write_text(UNIVERSAL)
    lines = run("predict", folder / "pos.onl", tmp_path / "a.conllu").splitlines()
    assert len(lines) == 7 and all(line.count("\t") == 10 for line in lines if line)


@pytest.mark.parametrize("long", ["# text = " + "x" * 9000 + "\n", "# a\n" * 3000])
def test_long_comments_do_not_hide_the_columns(run, folder, monkeypatch, long):
    piped(monkeypatch, long + UNIVERSAL)
    assert run("predict", folder / "upos.onl", "-") == long + TAGGED


@pytest.mark.parametrize(
    ("model", "parts", "answer"),
    [
        ("pos", ["the DET\n", "dog NOUN\n\n"], "the\tDET\tDET\ndog\tNOUN\tNOUN\n\n"),
        ("spans", ["He PRP\n", "saw VBD\n\n"], "He\tPRP\tB-NP\nsaw\tVBD\tB-VP\n\n"),
        ("upos", UNIVERSAL.splitlines(keepends=True)[:4], "".join(TAGGED.splitlines(keepends=True)[:4]) + "\n"),
    ],
)
def test_pauses_of_a_pipe_do_not_change_the_format(folder, model, parts, answer):
    command = [sys.executable, "-m", "onlearn.cli", "predict", str(folder / f"{model}.onl"), "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        for part in parts:
            process.stdin.write(part.encode())
            wait_until_read(process.stdin)
        process.stdin.close()
        assert process.stdout.read().decode() == answer


def wait_until_read(pipe):
    left = array.array("i", [1])
    for _ in range(500):
        fcntl.ioctl(pipe, termios.FIONREAD, left)
        if not left[0]:
            break
        time.sleep(0.02)
    time.sleep(0.1)  # for the reader to make up its mind


def test_the_column_to_compare_with(run, refused, kit, folder):
    asked = ("evaluate", folder / "upos.onl", folder / "train.conllu")
    assert run(*asked, "--column", "upos") == run(*asked, "--target", "upos") == run(*asked)
    assert "the same" in refused(*asked, "--column", "upos", "--target", "upos")
    assert "no column of labels" in refused(*asked, "--column", "c7")
    assert "no tagger" in refused("evaluate", kit.text_onl, kit.text_jsonl, "--column", "upos")
