"""``onlearn predict MODEL -``: a row is answered as soon as its line is complete."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from time import perf_counter

import numpy as np
import pytest

from onlearn.data.blocks import blocks
from onlearn.data.sources import Source, Stream

PATIENCE = 120  # seconds, on a busy machine that has to compile


def talk(model, head, rows, *options):
    """Send a row, wait for its answer, send the next; what was answered."""
    command = [sys.executable, "-m", "onlearn", "predict", model, "-", "--format-out", "jsonl", *options]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        late = threading.Timer(PATIENCE, process.kill)
        late.start()
        answers = []
        try:
            process.stdin.write(head.encode())
            for row in rows:
                process.stdin.write(row.encode() + b"\n")
                process.stdin.flush()
                answers.append(process.stdout.readline().decode())
            process.stdin.close()
            assert process.wait() == 0, process.stderr.read()
        finally:
            late.cancel()
        return answers


@pytest.mark.parametrize(
    ("model", "head", "rows", "options"),
    [
        ("text.onl", "", ['{"text": "cheap pills"}', '{"text": "see you at lunch"}'], []),
        ("table.onl", "size,place,key\n", ["0.1,low,a", '0.9,high,"b,\nc"', "0.5,low,d"], []),
        ("sparse.onl", "", ["0 1:1 3:1", "0 2:1"], []),
        ("named.onl", "", ["|a sun day", "|a rain |b x:2"], []),
        ("text.onl", "", ["__label__ham see you at lunch", "__label__ham cheap pills"], ["--format", "fasttext"]),
    ],
    ids=["jsonl", "csv", "svmlight", "vw", "fasttext"],
)
def test_each_row_is_answered_before_the_next_is_sent(kit, tmp_path, run, model, head, rows, options):
    answers = talk(kit(model), head, rows, *options)
    whole = tmp_path / "rows"
    whole.write_text(head + "".join(f"{row}\n" for row in rows))
    forms = {"text.onl": "jsonl", "table.onl": "csv", "sparse.onl": "svmlight", "named.onl": "vw"}
    form = options or ["--format", forms[model]]
    assert "".join(answers) == run("predict", kit(model), whole, "--format-out", "jsonl", *form)
    assert len(answers) == len(rows)


def test_a_line_may_come_in_parts(kit):
    command = [sys.executable, "-m", "onlearn", "predict", kit("text.onl"), "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        for part in ('{"text": "cheap', ' pills"}\n{"te', 'xt": "see you at lunch"}'):
            process.stdin.write(part.encode())
            process.stdin.flush()
        process.stdin.close()
        assert process.stdout.read() == b"id,prediction\n1,spam\n2,ham\n"


def live_blocks(monkeypatch, write, size=1 << 20):
    source, sink = os.pipe()
    with os.fdopen(source, "rb") as file:
        monkeypatch.setattr(sys, "stdin", type("Stdin", (), {"buffer": file}))
        writer = threading.Thread(target=write, args=(sink,), daemon=True)
        writer.start()
        stream = Stream(Source("standard input", None, None), live=True)
        for block in blocks(stream, size):
            yield bytes(block.text[: block.stop])
        writer.join()


def test_rows_that_wait_are_read_together(monkeypatch):
    lines = [b"%d some words\n" % n for n in range(200_000)]

    def write(sink):
        with os.fdopen(sink, "wb") as file:
            file.writelines(lines)

    found = []
    for block in live_blocks(monkeypatch, write):
        found.append(block)
        if len(found) == 1:
            threading.Event().wait(0.5)  # the taker is slow, and meanwhile more is written
    assert b"".join(found) == b"".join(lines)
    assert all(block.endswith(b"\n") for block in found)
    assert len(found) < 60  # not one for each of the pipe's 64 kB, let alone for each line


@pytest.mark.parametrize("size", [1, 7, 64, 1 << 20])
@pytest.mark.parametrize("end", [b"", b"no end of line"])
def test_nothing_is_lost_whatever_the_size_of_parts(monkeypatch, size, end):
    rng = np.random.default_rng(0)
    content = b"\n".join(b"x" * int(n) for n in rng.integers(0, 50, 40)) + b"\n" + end

    def write(sink):
        done = 0
        while done < len(content):
            step = int(rng.integers(1, 90))
            done += os.write(sink, content[done : done + step])
        os.close(sink)

    found = b"".join(live_blocks(monkeypatch, write, size))
    assert found == content + (b"\n" if end else b"")


@pytest.mark.slow
def test_a_large_pipe_is_about_as_fast_as_a_file(kit, tmp_path):
    path = tmp_path / "large.svm"
    path.write_text("1 1:1 2:1 3:1 5:1 7:1\n" * 1_000_000)

    def seconds(source, **stdin):
        command = [sys.executable, "-m", "onlearn", "predict", kit("sparse.onl"), source, "--format", "svmlight"]
        began = perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True, **stdin)
        return perf_counter() - began

    def piped():
        with subprocess.Popen(["cat", str(path)], stdout=subprocess.PIPE) as cat:
            return seconds("-", stdin=cat.stdout)

    assert min(piped() for _ in range(3)) < 2 * min(seconds(str(path)) for _ in range(3))
