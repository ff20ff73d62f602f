"""The published tables, reproduced on small substitutes of the data, and on the real data where they are available."""

from __future__ import annotations

import gzip
import json
import struct
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from onlearn import KernelClassifier, reproduce
from onlearn.cli import run
from onlearn.reproduce.table import MissingDataError


def write_idx(path: Path, array: np.ndarray) -> None:
    head = struct.pack(f">i{array.ndim}i", 0x0800 + array.ndim, *array.shape)
    path.write_bytes(gzip.compress(head + array.astype(np.uint8).tobytes()))


@pytest.fixture
def mnist(tmp_path: Path) -> Path:
    """Small digits in the format of the large ones."""
    images, labels = load_digits(return_X_y=True)
    images = (images.reshape(-1, 8, 8) * 15).astype(np.uint8)
    for part, rows in (("train", slice(0, 1200)), ("t10k", slice(1200, None))):
        write_idx(tmp_path / f"{part}-images-idx3-ubyte.gz", images[rows])
        write_idx(tmp_path / f"{part}-labels-idx1-ubyte.gz", labels[rows])
    return tmp_path


def test_ocr_prints_ours_beside_the_published(mnist: Path) -> None:
    done: list[str] = []
    table = reproduce.ocr(mnist, report=done.append, seeds=1)
    assert done == [row.name for row in table.rows]
    assert table.columns == ["0.1", "1", "2", "3", "4", "10"]
    by_name = {row.name: row for row in table.rows}
    assert by_name["degree 4"].published[-1] == 0.006 and by_name["degree 4"].goal[-1] == pytest.approx(0.007)
    for row in table.rows:
        assert len(row.ours) == 6 and min(row.ours) >= 0 and row.ours[-1] < 0.12
    assert by_name["degree 2"].ours[-1] < by_name["linear"].ours[-1]
    assert "published" in str(table) and ".0060" in str(table)
    json.dumps(table.to_dict())


def test_ocr_is_the_same_each_time_and_for_each_seed_another(mnist: Path) -> None:
    table = reproduce.ocr(mnist, ["degree 2"], rows=600)
    assert "learned from the first 600 of" in str(table).splitlines()[0]
    first = table.rows[0].ours
    again = reproduce.ocr(mnist, ["degree 2"], rows=600, seeds=1)
    assert first == again.rows[0].ours and again.rows[0].mean is None and "seeds" not in str(again)
    assert first != reproduce.ocr(mnist, ["degree 2"], rows=600, seed=5, seeds=1).rows[0].ours


def test_ocr_shows_the_mean_over_seeds(mnist: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ones = [reproduce.ocr(mnist, ["degree 2"], rows=400, seed=seed, seeds=1).rows[0].ours for seed in (4, 5)]
    table = reproduce.ocr(mnist, ["degree 2"], rows=400, seed=4, seeds=2)
    assert table.rows[0].ours == ones[0] and table.rows[0].seeds == 2
    np.testing.assert_allclose(table.rows[0].mean, np.mean(ones, axis=0))
    line = ["reproduce", "ocr", "--data", str(mnist), "--line", "degree 2", "--rows", "400", "--seed", "4"]
    assert run([*line, "--seeds", "2"]) == 0
    assert "  mean of 2 seeds" in capsys.readouterr().out
    with pytest.raises(ValueError, match="seeds must be at least 1"):
        reproduce.ocr(mnist, seeds=0)


def test_commands_and_their_errors(
    mnist: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["reproduce", "ocr", "--data", str(mnist), "--line", "linear", "--rows", "300", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"][0]["name"] == "linear"
    assert run(["reproduce", "ocr", "--data", str(mnist), "--line", "degree 3"]) == 2
    assert "there is no line 'degree 3'" in capsys.readouterr().err
    assert run(["reproduce", "ocr", "--data", str(mnist / "nowhere")]) == 2
    assert "does not hold train-images-idx3-ubyte.gz" in capsys.readouterr().err
    monkeypatch.delenv("ONLEARN_DATA", raising=False)
    assert run(["reproduce", "spam"]) == 2
    assert "say --data where spambase.data, traintest.txt are" in capsys.readouterr().err
    (mnist / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(b"\0\0\x08\x01\0\0\1\0short"))
    assert run(["reproduce", "ocr", "--data", str(mnist)]) == 2
    assert "is not a file of images or labels" in capsys.readouterr().err


def test_half_a_table_is_none(mnist: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(KernelClassifier, "stopped_", "interrupted")
    assert run(["reproduce", "ocr", "--data", str(mnist), "--line", "degree 2", "--rows", "300"]) == 130
    told = capsys.readouterr()
    assert "published" not in told.out and "stopped" in told.err


def test_spam_reaches_the_published_errors(data) -> None:  # type: ignore[no-untyped-def]
    table = reproduce.spam(data("spambase"))
    assert table.reached, str(table)
    assert [row.name for row in table.rows][-1] == "decision tree, scikit-learn's"
    assert 0.05 < table.rows[-1].ours[0] < 0.12 and table.rows[-1].published == [0.093]
    assert "decision tree" not in table.title


def test_spam_checks_the_split(tmp_path: Path) -> None:
    (tmp_path / "spambase.data").write_text("1,2,0\n3,4,1\n")
    (tmp_path / "traintest.txt").write_text("0\n")
    with pytest.raises(MissingDataError, match="has 1 lines, but there are 2 e-mails"):
        reproduce.spam(tmp_path)


@pytest.mark.parametrize(
    ("content", "says"),
    [("", "is empty"), ("1,nan,0\n2,3,1\n", "holds NaN"), ("1,x,0\n", "is not a file of numbers")],
)
def test_a_damaged_file_is_told_in_one_sentence(
    content: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "spambase.data").write_text(content)
    (tmp_path / "traintest.txt").write_text("0\n1\n")
    assert run(["reproduce", "spam", "--data", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert says in told and told.count("\n") == 1


def test_a_truncated_image_file_is_told(mnist: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = mnist / "train-images-idx3-ubyte.gz"
    file.write_bytes(file.read_bytes()[:1000])
    assert run(["reproduce", "ocr", "--data", str(mnist)]) == 2
    assert "is not a complete gzip file" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    "line", ["linear", "degree 2", "degree 4", "gaussian, images blurred", "ten classes, degree 4"]
)
def test_ocr_reaches_the_published_errors(line: str, data) -> None:  # type: ignore[no-untyped-def]
    table = reproduce.ocr(data("mnist"), [line], seeds=1)
    assert table.reached, str(table)
