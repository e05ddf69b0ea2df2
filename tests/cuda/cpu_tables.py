"""Tables of the CPU's tests, which hold for CUDA too: conventions row by row, and field cases."""

import importlib.util
import json
import math
from pathlib import Path

import numba_cuda_mlir

CPU = Path(__file__).parents[1] / "cpu"


def conventions():
    """Name: function, point, first partials, second partials or None."""
    spec = importlib.util.spec_from_file_location("cpu_conventions", CPU / "test_conventions.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {name: (getattr(row[0], "py_func", row[0]), *row[1:]) for name, row in module.ROWS.items() if name not in NOT_COMPILED}


# What numba-cuda-mlir does not compile.
NOT_COMPILED = {
    "cbrt at 0",
    "np.sign at 0",
    "np.maximum of equals",
    "np.minimum of equals",
    "np.fmax of equals",
    "np.fmin of equals",
    "np.fmax with NaN",
    "np.logaddexp of equals",
    "trunc at an integer",
    "np.where at the edge",
}


# numba-cuda-mlir 0.5 does not compile the first, and takes another way to the remainder of the second: (1, -3), the slopes to its right.
BEFORE_0_6 = {"round at a half", "x % y at a multiple"}
if tuple(map(int, numba_cuda_mlir.__version__.split(".")[:2])) < (0, 6):
    NOT_COMPILED |= BEFORE_0_6


# Recursion; a loop over a tuple of tuples, which numba-cuda-mlir does not compile.
NOT_FOR_DEVICES = {"F34", "F68"}


def field_cases():
    """Those with numbers, as (name, function, point, gradient or None)."""
    for case in json.loads((CPU / "field_cases.json").read_text()):
        if case["check"] in ("exact", "fd", "fdfill") and case["id"] not in NOT_FOR_DEVICES:
            namespace = {"math": math}
            exec(case["src"], namespace)
            want = case["want"] if isinstance(case["want"], list) else None
            yield case["id"], namespace["f"], tuple(case["args"]), want
