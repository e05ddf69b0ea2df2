"""Takes a derivative through every public name of an installed numba-enzyme-cuda; needs nothing but it: python packaging/smoke.py

Says where the package was found. With `--upstream VERSION`, asks as well that upstream's distribution beside it is reported.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import warnings
from pathlib import Path

with warnings.catch_warnings(record=True) as _warnings:
    warnings.simplefilter("always")
    import numba_enzyme as ne

from numba import njit, prange


def product(x: float, y: float) -> float:
    return x * x * y


def pair(x: float, y: float) -> tuple[float, float]:
    return x * y, x + y


@ne.differentiable
def area(x: float, y: float) -> float:
    return x * y


slope = ne.grad(product, 0)


@njit(parallel=True)  # type: ignore[untyped-decorator]
def total(n: int) -> float:
    result = 0.0
    for i in prange(n):
        result += slope(float(i), 1.0)
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--upstream", metavar="VERSION")
    upstream = parser.parse_args().upstream
    cases = {
        "grad": (ne.grad(product)(3.0, 2.0), (12.0, 9.0)),
        "value_and_grad": (ne.value_and_grad(product)(3.0, 2.0), (18.0, (12.0, 9.0))),
        "jvp": (ne.jvp(pair)((3.0, 2.0), (1.0, 0.0)), (2.0, 1.0)),
        "vjp": (ne.vjp(pair)((3.0, 2.0), (1.0, 0.0)), (2.0, 3.0)),
        "jacfwd": (ne.jacfwd(pair)(3.0, 2.0), ((2.0, 3.0), (1.0, 1.0))),
        "jacrev": (ne.jacrev(pair)(3.0, 2.0), ((2.0, 3.0), (1.0, 1.0))),
        "hessian": (ne.hessian(product)(3.0, 2.0), ((4.0, 6.0), (6.0, 0.0))),
        "hvp": (ne.hvp(product)((3.0, 2.0), (1.0, 0.0)), (4.0, 6.0)),
        "differentiable": (area.grad(3.0, 2.0), (2.0, 3.0)),
        "inside njit": (total(4), 12.0),
    }
    missed = {name for name in ne.__all__ if name[0].islower()} - cases.keys()
    wrong = [f"{name}: {got}, not {expected}" for name, (got, expected) in cases.items() if got != expected]
    wrong += [f"{name}: no case here" for name in sorted(missed)]
    wrong += _doctor(upstream)
    print(f"{Path(ne.__file__).parent}: {len(cases)} derivatives{', upstream reported' if upstream else ''}", *wrong, sep="\n  ")
    return 1 if wrong else 0


def _doctor(upstream: str | None) -> list[str]:
    """What is wrong with the report, which runs the vendored opt too."""
    command = [sys.executable, "-W", "ignore", "-m", "numba_enzyme", "doctor"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    wrong = [] if run.returncode == 0 and "LLVM version 15" in run.stdout else [f"doctor: {run.stdout}{run.stderr}"]
    imported = [str(warning.message) for warning in _warnings if "is installed beside" in str(warning.message)]
    if bool(imported) != bool(upstream) or (upstream and f"numba-enzyme {upstream} in " not in run.stdout):
        wrong.append(f"upstream {upstream}, but import said {imported} and doctor said: {run.stdout}")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
