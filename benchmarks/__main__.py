"""Runs every benchmark and prints one table."""

from __future__ import annotations

import argparse
import dataclasses
import json
import platform
from importlib import import_module
from importlib.metadata import distributions
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.timing import Row

MODULES = ("calls", "loops", "builds", "widths", "memory", "arrays")


def machine() -> dict[str, str]:
    models = [line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    found = {"processor": models[0] if models else platform.machine(), "cores": str(len(models)), "python": platform.python_version()}
    installed = {distribution.name: distribution.version for distribution in distributions()}
    for name in ("numba", "llvmlite", "numpy", "numba-enzyme-cuda"):
        found[name] = installed.get(name, "not installed")
    return found


def line(row: Row) -> str:
    bound = "" if row.bound is None else f"{row.bound:g} {row.unit}"
    missed = "missed" if row.bound is not None and row.median > row.bound else ""
    figure, least = (f"{value:.2f} {row.unit}" for value in (row.median, row.least))
    return f"{row.what:<88} {figure:>11} {least:>11} {bound:>8} {missed:<7} {row.note}".rstrip()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("modules", nargs="*", metavar="module", help=f"some of {', '.join(MODULES)}; all by default")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE as well")
    options = parser.parse_args()
    if unknown := set(options.modules) - set(MODULES):
        parser.error(f"no such module: {', '.join(sorted(unknown))}")
    found = machine()
    print(", ".join(f"{name} {value}" for name, value in found.items()))
    print(f"{'what':<88} {'median':>11} {'least':>11} {'bound':>8}")
    rows = []
    for module in options.modules or MODULES:
        for row in import_module(f"benchmarks.{module}").rows():
            rows.append(row)
            print(line(row), flush=True)
    if options.json:
        options.json.write_text(json.dumps({"machine": found, "rows": [dataclasses.asdict(row) for row in rows]}, indent=2) + "\n")


if __name__ == "__main__":
    main()
