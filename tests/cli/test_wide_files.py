"""Files of very many columns, through the commands: what took the square of their number never ended."""

import json
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from onlearn.data.formats.csv_layout import column_names


def run(folder, *commands):
    """Run commands in one process; more than a minute is too long."""
    program = f"import onlearn.cli\nfor command in {[*map(list, commands)]!r}:\n    assert not onlearn.cli.run(command)"
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def write(folder, kind, columns, rows=4):
    """A file with numbers in many columns, and a label."""
    cells = {f"col{n}": [(n * 7 + row * row) % 11 / 2 for row in range(rows)] for n in range(columns)}
    labels = ["ab"[row % 2] for row in range(rows)]
    table = [{name: values[row] for name, values in cells.items()} for row in range(rows)]
    path = folder / f"wide.{kind}"
    if kind == "parquet":
        pq.write_table(pa.table({**cells, "label": labels}), path)
    elif kind == "arrow":
        whole = pa.table({**cells, "label": labels})
        with pa.ipc.new_file(path, whole.schema) as writer:
            writer.write(whole)
    elif kind == "csv":
        lines = [[*cells, "label"], *([*map(str, row.values()), label] for row, label in zip(table, labels))]
        path.write_text("".join(",".join(line) + "\n" for line in lines))
    elif kind == "vw":
        spaces = ["".join(f" |s{n} a:{value}" for n, value in enumerate(row.values())) for row in table]
        path.write_text("".join(f"{row % 2}{line}\n" for row, line in enumerate(spaces)))
    else:
        nested = kind == "nested.jsonl"
        rows = [{"label": label, **({"inner": row} if nested else row)} for row, label in zip(table, labels)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path.name


def commands(name):
    yield "train", name, "-o", "m.onl", "--quiet", "--passes", "2"
    yield "predict", "m.onl", name, "-o", "out.csv", "--quiet"
    yield "evaluate", "m.onl", name, "--json", "--quiet"
    yield "inspect", "m.onl", "--json"
    yield "data", "describe", name, "--json"


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_ten_thousand_columns(tmp_path, kind):
    run(tmp_path, *commands(write(tmp_path, kind, 10_000)))
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 5


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "jsonl", "nested.jsonl", "parquet", "arrow", "vw"])
def test_a_hundred_thousand_columns(tmp_path, kind):
    for command in commands(write(tmp_path, kind, 100_000)):
        run(tmp_path, command)
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 5


def test_a_header_of_equal_names():
    names = column_names(["a", *["a"] * 100_000, "a_3", "a_3", None, ""])
    assert names[:4] == ["a", "a_2", "a_4", "a_5"] and names[-4:] == ["a_3", "a_3_2", "c100003", "c100004"]
    assert len(set(names)) == len(names) and max(map(len, names)) < 10
