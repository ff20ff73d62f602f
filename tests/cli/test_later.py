"""Modules that run when something is first asked of them."""

import importlib
import sys
import threading

import pytest

from onlearn.cli import later


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with a module in it; both run later, and note that they ran."""
    folder = tmp_path / "slowpoke"
    folder.mkdir()
    (folder / "__init__.py").write_text("import builtins\nbuiltins.ran.append('slowpoke')\nvalue = 1\n")
    (folder / "inner.py").write_text(
        "import builtins, time\nbuiltins.ran.append('inner')\nif builtins.fails: raise OSError('not now')\n"
        "time.sleep(0.05)\nfrom slowpoke import value\n\n\ndef double(x):\n    return 2 * x * value\n"
    )
    ran = []
    monkeypatch.setattr("builtins.ran", ran, raising=False)
    monkeypatch.setattr("builtins.fails", False, raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(later, "LATER", {"slowpoke", "slowpoke.inner"})
    monkeypatch.setattr(later, "TAKEN", {("slowpoke.inner", "double")})
    monkeypatch.setattr(sys, "meta_path", [later.Postponing(), *sys.meta_path])
    yield ran
    for name in ("slowpoke", "slowpoke.inner"):
        sys.modules.pop(name, None)


def test_a_module_runs_when_it_is_asked_for_something(package):
    inner = importlib.import_module("slowpoke.inner")
    assert package == [] and inner.__file__.endswith("inner.py")
    assert inner.value == 1
    assert package == ["inner", "slowpoke"]
    assert type(inner) is type(sys) and inner.double(4) == 8
    with pytest.raises(AttributeError, match="has no attribute 'missing'"):
        inner.missing  # noqa: B018


def test_a_function_that_is_taken_runs_its_module_when_it_is_called(package):
    from slowpoke.inner import double

    assert package == []
    assert double(3) == 6
    assert double(4) == 8  # the module is an ordinary one by now
    assert package == ["inner", "slowpoke"]


def test_other_threads_wait_until_it_has_run(package):
    inner, found = importlib.import_module("slowpoke.inner"), []
    threads = [threading.Thread(target=lambda: found.append(inner.value)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [1] * 4 and package == ["inner", "slowpoke"]


def test_one_that_fails_is_tried_again(package, monkeypatch):
    inner = importlib.import_module("slowpoke.inner")
    monkeypatch.setattr("builtins.fails", True)
    with pytest.raises(OSError, match="not now"):
        inner.value  # noqa: B018
    monkeypatch.setattr("builtins.fails", False)
    assert inner.value == 1


def test_modules_that_are_kept_out(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    finder = later.Postponing()
    for name in ("pandas", "yaml"):
        with pytest.raises(ModuleNotFoundError, match=f"do without {name}"):
            finder.find_spec(name)
    (tmp_path / later.SETTINGS).write_text("")  # which Numba needs YAML to read
    assert finder.find_spec("yaml") is None
    assert finder.find_spec("json") is None


def test_types_for_annotations_are_not_worth_running_a_module(package, monkeypatch):
    monkeypatch.setattr(later, "HINTS", {("slowpoke.inner", "Hint")})
    from slowpoke.inner import Hint

    assert package == []
    assert Hint[int] and (Hint | None)


def test_arrow_is_asked_as_its_own_module_asks():
    """What stands in for a part of ``pyarrow.compute`` gives the same."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from onlearn.cli import arrow

    texts, numbers = pa.array(["a", None, "NA", "b"]), pa.array([1, None, 3])
    found = [arrow.is_in(texts, value_set=pa.array(["NA"])), pc.is_in(texts, value_set=pa.array(["NA"]))]
    assert found[0].equals(found[1])
    for mask in (found[0], pa.array([False]), pa.array([], pa.bool_())):
        assert arrow.any(mask).equals(pc.any(mask))
    for values in (texts, numbers, pa.chunked_array([numbers, numbers])):
        assert arrow.drop_null(values).equals(pc.drop_null(values))
    assert arrow.fill_null(numbers, -1).equals(pc.fill_null(numbers, -1))
    assert arrow.fill_null(texts, "").equals(pc.fill_null(texts, ""))
    for kind in (pa.float32(), pa.string(), "int8"):
        assert arrow.cast(numbers, kind).equals(pc.cast(numbers, kind))
    assert arrow.cast(pa.array([1.5]), pa.int64(), safe=False).equals(pc.cast(pa.array([1.5]), pa.int64(), safe=False))
    with pytest.raises(pa.ArrowInvalid):
        arrow.cast(pa.array([1.5]), pa.int64())
    assert set(arrow.__all__) <= set(dir(pc))


def test_only_what_is_meant_is_had_without_running_a_module(package, monkeypatch):
    monkeypatch.setattr(later, "EASY", {"slowpoke.inner": "onlearn.cli.arrow"})
    inner = importlib.import_module("slowpoke.inner")
    assert inner.drop_null and package == []
    with pytest.raises(AttributeError):
        inner.SetLookupOptions  # noqa: B018  (the stand-in imports it for itself)
    assert package == ["inner", "slowpoke"]
