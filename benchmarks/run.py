"""Measure onlearn against its peers: ``python benchmarks/run.py [NAME ...] [--quick] [--repeat N]``."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import warnings
from pathlib import Path
from typing import Any

import timing
from rich.console import Console

NOTE = (
    "Best of interleaved turns after a warm-up turn each (so compiled ahead). 'x': times what onlearn takes; "
    "above 1 is slower than onlearn. '%': accuracy on test rows, mean and deviation over the turns. "
    "'~': measured on a part, and scaled."
)


def discover() -> dict[str, Any]:
    """The benchmarks are the files beside this one that define ``bench``."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    modules = {f.stem: importlib.import_module(f.stem) for f in files if f.stem != Path(__file__).stem}
    return {name: module for name, module in modules.items() if hasattr(module, "bench")}


def main() -> None:
    found = discover()
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which ones (all): {', '.join(found)}")
    parser.add_argument("--quick", action="store_true", help="small sizes: whether it runs, not how fast")
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="turns that count (5)")
    parser.add_argument("--cpu-time", action="store_true", help="processor time, for a machine that is busy")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers here as well")
    args = parser.parse_args()
    if unknown := [name for name in args.names if name not in found]:
        parser.error(f"no benchmark named {', '.join(unknown)}; there are {', '.join(found)}")
    if args.repeat < 1:
        parser.error("--repeat must be at least 1")
    if args.cpu_time:
        timing.clock = timing.processor_time
    warnings.simplefilter("ignore")

    console = Console(width=None if os.isatty(1) else 150, highlight=False)
    machine = timing.machine()
    console.print(", ".join(f"{name} {value}" for name, value in machine.items()))
    console.print(NOTE)
    results = []
    for name in args.names or found:
        module = found[name]
        title, _, explanation = module.__doc__.partition("\n")
        rows = []
        with console.status(f"{name} ..."):
            for row in module.bench(args.quick, args.repeat):
                rows.append(row)
                results.append({"benchmark": name, **row._asdict(), "estimated": sorted(row.estimated)})
        console.print()
        if not rows:
            console.print(f"{title} (skipped)")
            continue
        console.print(timing.table(title, rows))
        console.print(explanation.strip())
    if args.json:
        args.json.write_text(json.dumps({"machine": machine, "rows": results}, indent=1))


if __name__ == "__main__":
    main()
