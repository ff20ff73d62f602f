"""Taggers through the commands: train, predict, evaluate, inspect, explain; what is refused, and how."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys

import pytest

import onlearn
from onlearn.cli import tagging

WORDS = {"the": "DET", "a": "DET", "dog": "NOUN", "cat": "NOUN", "sees": "VERB", "likes": "VERB", ".": "PUNCT"}
SENTENCES = [
    "the dog sees a cat .", "a cat likes the dog .", "the cat sees .", "a dog likes a cat", "the dog likes the cat .",
]  # fmt: skip
SPANS = "He PRP B-NP\nsaw VBD B-VP\nthe DT B-NP\nbig JJ I-NP\ndog NN I-NP\n. . O\n\n"


def conllu(sentences, labels=True):
    lines = []
    for n, one in enumerate(sentences):
        lines.append(f"# sent_id = {n}")
        for k, word in enumerate(one.split(), 1):
            tag = WORDS.get(word, "X") if labels else "_"
            lines.append("\t".join([str(k), word, "_", tag, "_", "_", "0", "_", "_", "_"]))
        lines.append("")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("taggers")
    (made / "train.conllu").write_text(conllu(SENTENCES * 4))
    (made / "test.conllu").write_text(conllu(["the cat likes a dog .", "the zebra sees a cat ."]))
    (made / "spans.conll").write_text(SPANS * 5)
    (made / "raw.txt").write_text("the cat likes a dog .\n\na dog sees the cat\n")
    onlearn.train(made / "train.conllu", made / "pos.onl", passes=5)
    onlearn.train(made / "train.conllu", made / "crf.onl", learner="crf")
    onlearn.train(made / "spans.conll", made / "spans.onl", passes=5)
    return made


def test_the_task_follows_from_the_file(run, folder, tmp_path):
    out = tmp_path / "m.onl"
    text = run("train", folder / "train.conllu", "-o", out, "--passes", 5, "--test", folder / "test.conllu", err=None)
    assert "the label is upos" in text and "accuracy" in text and " kB" in text
    assert isinstance(onlearn.load(out), onlearn.Tagger)


def test_the_report_is_one_object(run, folder, tmp_path):
    options = ("--task", "tag", "--column", "upos", "--holdout", "20%", "--json", "--passes", 3, "--seed", 7)
    report = json.loads(run("train", folder / "train.conllu", "-o", tmp_path / "m.onl", *options))
    assert report["task"] == "tag" and report["passes"] == 3 and report["bytes"] > 0
    assert report["sentences"] + report["holdout"]["sentences"] == 20
    assert report["labels"] == ["DET", "NOUN", "PUNCT", "VERB"]


@pytest.mark.parametrize("learner", ["crf", "structured-perceptron", "hmm", "StructuredPerceptron(rule='pa1')"])
def test_every_learner_goes_through_all_commands(run, folder, tmp_path, learner):
    out = tmp_path / "m.onl"
    run("train", folder / "train.conllu", "-o", out, "--learner", learner, "--quiet")
    report = json.loads(run("evaluate", out, folder / "train.conllu", "--json"))
    assert report["accuracy"] == 1.0 and report["unknown_words"]["tokens"] == 0
    assert "NOUN" in run("inspect", out)
    explained = json.loads(run("explain", out, "the dog sees a cat .", "--token", 2, "--json"))
    assert explained["word"] == "dog" and explained["prediction"] == "NOUN"
    assert "dog\t_\tNOUN" in run("predict", out, folder / "test.conllu")


def test_predicting_gives_conllu_for_conllu(run, folder):
    lines = run("predict", folder / "pos.onl", folder / "test.conllu").splitlines()
    assert lines[:2] == ["# sent_id = 0", "1\tthe\t_\tDET\t_\t_\t0\t_\t_\t_"]
    assert lines[7] == "" and len(lines) == 16


def test_predicting_raw_sentences(run, folder):
    text = run("predict", folder / "pos.onl", folder / "raw.txt")
    assert text.startswith("the\tDET\ncat\tNOUN\nlikes\tVERB\na\tDET\ndog\tNOUN\n.\tPUNCT\n\na\tDET\n")
    rows = [json.loads(line) for line in run(
        "predict", folder / "pos.onl", folder / "raw.txt", "--format-out", "jsonl").splitlines()]  # fmt: skip
    assert rows[1] == {"tokens": ["a", "dog", "sees", "the", "cat"], "labels": ["DET", "NOUN", "VERB", "DET", "NOUN"]}


def test_predicting_with_probabilities(run, refused, folder):
    lines = run("predict", folder / "crf.onl", folder / "raw.txt", "--proba").splitlines()
    word, label, chance = lines[0].split("\t")
    assert (word, label) == ("the", "DET") and 0.25 < float(chance) <= 1
    assert "Prob=" in run("predict", folder / "crf.onl", folder / "test.conllu", "--proba")
    text = run("predict", folder / "crf.onl", folder / "raw.txt", "--proba", "--format-out", "jsonl")
    first = json.loads(text.splitlines()[0])
    assert sum(first["proba"][0].values()) == pytest.approx(1)
    assert "has no probabilities" in refused("predict", folder / "pos.onl", folder / "raw.txt", "--proba")


@pytest.mark.parametrize("text", ["the dog sees a cat\n", "the\ndog\nsees\na\ncat\n\n", conllu(["the dog sees a cat"])])
def test_predicting_from_standard_input(run, folder, monkeypatch, text):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(text.encode()))))
    assert run("predict", folder / "pos.onl", "-").count("NOUN") == 2


def test_answers_come_while_a_pipe_is_written(folder):
    command = [sys.executable, "-m", "onlearn.cli", "predict", str(folder / "pos.onl"), "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        process.stdin.write("the dog sees .\n")
        process.stdin.flush()
        answer = "".join(process.stdout.readline() for _ in range(5))
        assert answer == "the\tDET\ndog\tNOUN\nsees\tVERB\n.\tPUNCT\n\n"
        process.stdin.write("a cat\n")
        process.stdin.close()
        assert process.stdout.read() == "a\tDET\ncat\tNOUN\n\n"


def test_evaluating(run, folder):
    report = json.loads(run("evaluate", folder / "pos.onl", folder / "test.conllu", "--json", err=None))
    assert report["tokens"] == 12 and report["unknown_words"]["tokens"] == 1
    assert report["unknown_labels"] == {"X": 1}
    text = run("evaluate", folder / "pos.onl", folder / "test.conllu", err="labels the model does not know")
    assert "unknown words" in text and "precision" in text
    spans = run("evaluate", folder / "spans.onl", folder / "spans.conll")
    assert "F1 of spans" in spans and "1.0000" in spans


def test_spans_are_valid_unless_asked_otherwise(run, folder, tmp_path):
    (tmp_path / "new.conll").write_text("saw VBD\nbig JJ\ndog NN\nNN NN\nthe JJ\n\n")
    before = "O"
    for line in filter(None, run("predict", folder / "spans.onl", tmp_path / "new.conll").splitlines()):
        label = line.split("\t")[-1]
        assert not label.startswith("I-") or before[2:] == label[2:]
        before = label
    assert run("predict", folder / "spans.onl", tmp_path / "new.conll", "--unconstrained").count("\n") == 6


def test_inspecting(run, folder):
    report = json.loads(run("inspect", folder / "pos.onl", "--json", "--top", 3, "--class", "NOUN"))
    assert report["task"] == "tag" and list(report["top"]) == ["NOUN"] and 0 < len(report["top"]["NOUN"]) <= 3
    assert report["transitions"] and all(one["to"] == "NOUN" for one in report["transitions"])
    assert "NOUN" in run("inspect", folder / "spans.onl").replace("B-NP", "NOUN")


def test_explaining_the_token_of_a_line(run, refused, folder):
    found = json.loads(run("explain", folder / "pos.onl", "--at", f"{folder / 'test.conllu'}:3", "--json"))
    assert (found["word"], found["token"], found["prediction"]) == ("cat", 2, "NOUN")
    assert found["total"] > 0
    assert "sees, token 3" in run("explain", folder / "pos.onl", "the dog sees .", "--token", 3)
    assert "no token on line 9" in refused("explain", folder / "pos.onl", "--at", f"{folder / 'test.conllu'}:9")
    assert "there is no token 9" in refused("explain", folder / "pos.onl", "the dog", "--token", 9)


def test_going_on(run, refused, folder, tmp_path):
    out = tmp_path / "m.onl"
    (tmp_path / "more.conllu").write_text(conllu(["the zebra sees a dog ."] * 3))
    run("train", tmp_path / "more.conllu", "-o", out, "--resume", folder / "pos.onl", "--quiet")
    assert "X" in onlearn.load(out).labels
    assert "has decided it" in refused(
        "train", tmp_path / "more.conllu", "-o", out, "--resume", folder / "pos.onl", "--min-count", 2
    )


def test_templates_of_files(run, refused, folder, tmp_path):
    (tmp_path / "t.txt").write_text("U00:%x[0,0]\nU01:%x[-1,0]/%x[0,0]\nB\n")
    run("train", folder / "train.conllu", "-o", tmp_path / "m.onl", "--template", tmp_path / "t.txt", "--quiet")
    assert json.loads(run("evaluate", tmp_path / "m.onl", folder / "train.conllu", "--json"))["accuracy"] == 1.0
    assert "cannot be read" in refused(
        "train", folder / "train.conllu", "-o", tmp_path / "m.onl", "--template", tmp_path / "none.txt"
    )
    (tmp_path / "bad.txt").write_text("U00:%x[0,\n")
    refused("train", folder / "train.conllu", "-o", tmp_path / "m.onl", "--template", tmp_path / "bad.txt")


@pytest.mark.parametrize("option", [("--kernel", "linear"), ("--ngrams", "1-2"), ("--numeric", "a"), ("--bits", "20"),
                                    ("--checkpoint-every", "5"), ("--class-weight", "balanced")])  # fmt: skip
def test_options_without_use_are_refused(refused, folder, tmp_path, option):
    assert "has no use here" in refused("train", folder / "train.conllu", "-o", tmp_path / "m.onl", *option)


def test_what_is_refused(run, refused, folder, tmp_path):
    out = tmp_path / "m.onl"
    train = folder / "train.conllu"
    assert "does not exist" in refused("train", tmp_path / "none.conllu", "-o", out)
    (tmp_path / "empty.conllu").write_text("")
    assert "is empty" in refused("train", tmp_path / "empty.conllu", "-o", out)
    assert "no columns" in refused("train", folder / "raw.txt", "-o", out, "--task", "tag")
    (tmp_path / "words.conll").write_text("the\ndog\n\n")
    assert "words only" in refused("train", tmp_path / "words.conll", "-o", out)
    assert "no column 'tag'" in refused("train", train, "-o", out, "--column", "tag")
    assert "the same" in refused("train", train, "-o", out, "--column", "upos", "--target", "xpos")
    assert "does not learn sequences" in refused("train", train, "-o", out, "--task", "tag", "--learner", "AROW")
    assert "not for --task regress" in refused("train", train, "-o", out, "--task", "regress", "--learner", "crf")
    (tmp_path / "ragged.conll").write_text("the DT B\ndog NN\n\n" + "a DT B\n\n" * 5)
    assert "line 2" in refused("train", tmp_path / "ragged.conll", "-o", out, "--strict")
    assert "no column of labels" in refused("evaluate", folder / "pos.onl", folder / "raw.txt")
    (tmp_path / "t.csv").write_text("label,n\na,1\nb,2\n")
    assert "takes sentences" in refused("predict", folder / "pos.onl", tmp_path / "t.csv")
    assert "takes sentences" in refused("stream", train, "-o", out, "--resume", folder / "pos.onl")
    assert "learned from the columns c0, c1" in refused("predict", folder / "spans.onl", folder / "raw.txt")
    assert "has no use here" in refused("predict", folder / "pos.onl", folder / "raw.txt", "--scores")
    assert not out.exists()


def test_rows_go_to_no_tagger_and_sentences_to_no_other_model(refused, kit, folder):
    assert "only a tagger takes" in refused("predict", kit.text_onl, folder / "train.conllu")
    assert "no tagger" in refused("predict", kit.text_onl, kit.text_jsonl, "--unconstrained")


def test_ctrl_c_leaves_no_model(folder, tmp_path, monkeypatch, capsys):
    from onlearn import cli
    from onlearn.models.tag_training import TagRun

    def pressed(self, watch=None):
        raise KeyboardInterrupt

    monkeypatch.setattr(TagRun, "learn", pressed)
    assert cli.run(["train", str(folder / "train.conllu"), "-o", str(tmp_path / "m.onl")]) == 130
    assert "no model was written" in capsys.readouterr().err
    assert not (tmp_path / "m.onl").exists()


def cut(path, sentences):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return "\n\n".join(file.read().split("\n\n")[:sentences]) + "\n\n"


def test_english_parts_of_speech(run, data, tmp_path):
    (tmp_path / "train.conllu").write_text(cut(data("ud_english_ewt") / "train.conllu.gz", 1500))
    test = tmp_path / "test.conllu"
    test.write_text(cut(data("ud_english_ewt") / "test.conllu.gz", 400))
    run("train", tmp_path / "train.conllu", "-o", tmp_path / "m.onl", "--column", "upos", "--passes", 5, "--quiet")
    report = json.loads(run("evaluate", tmp_path / "m.onl", test, "--json", err=None))
    assert report["accuracy"] > 0.87
    assert report["known_words"]["accuracy"] > report["unknown_words"]["accuracy"] > 0.5


def test_english_chunks(run, data, tmp_path):
    (tmp_path / "train.txt").write_text(cut(data("conll2000") / "train.txt.gz", 1000))
    (tmp_path / "test.txt").write_text(cut(data("conll2000") / "test.txt.gz", 300))
    text = run("train", tmp_path / "train.txt", "-o", tmp_path / "m.onl", "--passes", 5, err=None)
    assert "the labels are spans (BIO)" in text
    report = json.loads(run("evaluate", tmp_path / "m.onl", tmp_path / "test.txt", "--json", err=None))
    assert report["spans"]["f1"] > 0.87


def test_sizes_are_told_with_a_unit():
    assert tagging.size(2_500_000) == "2.5 MB"


def test_what_is_learned_is_shown_in_one_line(run, tmp_path):
    train, template = tmp_path / "train.conll", tmp_path / "template"
    train.write_text("the DET\ndog NOUN\n\n" * 5)
    template.write_text("U00:%x[0,0]\nU01:%x[-1,0]\nB\n")
    shown = run("train", train, "-o", tmp_path / "m.onl", "--template", template, "--rule", "pa1", err=None)
    assert "learning: StructuredPerceptron(random_state=0, rule='pa1', template=<3 lines>)\n" in shown


def test_another_column_of_labels_is_refused_by_resume(run, refused, folder, tmp_path):
    files = [folder / "train.conllu", "-o", tmp_path / "m.onl", "--resume", folder / "pos.onl"]
    told = refused("train", *files, "--column", "xpos")
    assert "learned the labels of the column upos, and this is xpos" in told
    text = run("train", *files, err=None)
    assert "new to the model" not in text
    (tmp_path / "more.conllu").write_text(conllu(["the zebra sees a cat ."]))
    text = run("train", tmp_path / "more.conllu", "-o", tmp_path / "m.onl", "--resume", folder / "pos.onl", err=None)
    assert "labels that are new to the model: X" in text


def test_hidden_markov_models_see_words_only(run, refused, folder, tmp_path):
    out = tmp_path / "hmm.onl"
    text = run("train", folder / "spans.conll", "-o", out, "--learner", "hmm", err=None)
    assert "what is seen of a token is the column c0" in text and "4: B-NP, B-VP, I-NP, O" in text
    assert run("predict", out, folder / "raw.txt").startswith("the\t")
    told = refused("train", folder / "spans.conll", "-o", out, "--resume", out, "--passes", 3)
    assert "--passes has no use with a HMM" in told
    onlearn.HMM(n_states=2, random_state=0).fit([["the", "cat"]] * 3).save(tmp_path / "words.onl")
    assert "s0, s1" in run("inspect", tmp_path / "words.onl")
    onlearn.HMM(emissions="gaussian", random_state=0).fit([[[0.0], [1.0]]]).save(tmp_path / "rows.onl")
    assert "rows of numbers" in refused("inspect", tmp_path / "rows.onl")


def test_passes_are_those_that_were_made(run, folder, tmp_path):
    told = json.loads(run("train", folder / "train.conllu", "-o", tmp_path / "m.onl", "--learner", "crf", "--json"))
    assert told["passes"] == told["described"]["iterations"] < 300
