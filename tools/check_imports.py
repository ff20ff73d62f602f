"""Checks that imports inside the package point downward only.

Every module has a layer in ``LAYERS``; it may import from its own layer and from those below, wherever the
import stands: at the top, inside a function, or for type checking only. A module without a layer is an
error. The packages in ``FACES`` are exempt: they give public names that live higher up, and import those lazily.

    python tools/check_imports.py [folder of the package]
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

# From low to high. A name stands for the module or the whole package; a longer name beats a shorter one.
LAYERS = {
    "compiler": "compiler",
    "foundation": "errors threads model_file inert_text byte_sizes",
    # theory is mathematics on plain arrays: it knows nothing of learners
    "theory": "theory",
    "engine": "engine",
    # what is concluded from theory by running learners
    "guarantees": "theory.comparison theory.pac theory.recommendation",
    "kernels": "kernels",
    "dual": "dual",
    "other learners": "svm neighbors bayes mlp",
    # the pictures of the theory run learners, of both kinds
    "pictures": "theory.plots",
    # from files to rows: readers make batches, features make matrices of them
    "data": "data",
    "features": "features",
    # search spaces and races know learners by what they can do, and nothing of files
    "tuning": "tune",
    # labels for the tokens of sequences: features of tokens are hashed as those of rows
    "sequences": "sequence",
    "estimators": "estimators rules stabilizers geometry calibrate",
    # "onlearn" is the package itself: whoever imports its public names may reach any estimator.
    "public": "onlearn",
    # searches that are estimators, or of any estimator
    "searches": "tune.candidates tune.tuner tune.optuna_search",
    "models": "models",
    "streams": "drift streaming",
    "programs": "warm reproduce",
    # pages of what others found: plain numbers, and evidence that an evaluation shows them
    "report": "report",
    # the same learners, runs and races on the workers of a Dask cluster
    "cluster": "cluster",
    "commands": "cli __main__",
}


FACES = ("onlearn", "features", "theory", "tune")


def check(package: Path, layers: Mapping[str, str] = LAYERS) -> list[str]:
    """One line for each import that points upward and each module without a layer."""
    root = package.name
    files = {
        module_name(path, package): path for path in sorted(package.rglob("*.py")) if "__pycache__" not in path.parts
    }
    order = list(layers)
    layer_of = {entry: layer for layer, entries in layers.items() for entry in entries.split()}

    def layer(module: str) -> str | None:
        parts = module.split(".")
        prefixes = (".".join(parts[:n]) for n in range(len(parts), 0, -1))
        return next((layer_of[prefix] for prefix in prefixes if prefix in layer_of), None)

    problems = []
    for module, path in files.items():
        if module in FACES:
            continue
        own = layer(module)
        if own is None:
            problems.append(f"{path}:1: {module} is in no layer: say where it belongs in LAYERS")
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        for line, target in imports(tree, module, path.name == "__init__.py", root, files):
            other = layer(target)  # a target without a layer is reported where it is defined
            if other is not None and order.index(other) > order.index(own):
                problems.append(f"{path}:{line}: {module} ({own}) may not import {target} ({other})")
    return problems


def module_name(path: Path, package: Path) -> str:
    """``geometry/winnow.py`` is ``geometry.winnow``; the package itself goes by its own name."""
    parts = path.relative_to(package).with_suffix("").parts
    if parts[-1] == "__init__":
        parts = parts[:-1]
    return ".".join(parts) or package.name


def imports(
    tree: ast.Module, module: str, is_package: bool, root: str, files: Mapping[str, Path]
) -> Iterator[tuple[int, str]]:
    """Line and module of each import from inside the package."""
    here = [root, *module.split(".")]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == root:
                    yield node.lineno, alias.name.removeprefix(f"{root}.")
        elif isinstance(node, ast.ImportFrom):
            base = node.module.split(".") if node.module else []
            if node.level:
                # One dot is the package the module is in; a package's own file is already that package.
                base = here[: len(here) - node.level + is_package] + base
            if not base or base[0] != root:
                continue
            for alias in node.names:
                inside = ".".join([*base[1:], alias.name])
                if inside in files:
                    yield node.lineno, inside
                elif not (base == [root] and alias.name.startswith("__")):  # __version__ reaches nothing
                    yield node.lineno, ".".join(base[1:]) or root


def main(arguments: list[str]) -> int:
    package = Path(arguments[0]) if arguments else Path("src/onlearn")
    if not package.is_dir():
        print(f"{package} is not a folder", file=sys.stderr)
        return 2
    problems = check(package)
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
