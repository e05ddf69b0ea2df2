"""The README's CUDA example compiles to a linked kernel."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("numba_cuda_mlir", reason="numba-cuda-mlir is not installed")

from numba_cuda_mlir import compiler, types


def test_the_example_links(tmp_path):
    (block,) = re.findall(r"^```py\n(.*?)^```$", (Path(__file__).parents[2] / "README.md").read_text(), flags=re.DOTALL | re.MULTILINE)
    script = tmp_path / "example.py"
    script.write_text(block)
    namespace = {"__name__": "example"}
    exec(compile(block, str(script), "exec"), namespace)
    vector, matrix = types.float64[::1], types.float64[:, ::1]
    cubin = compiler.compile_cubin(namespace["forces"].py_func, types.void(vector, vector, matrix), cc=(9, 0))
    assert len(cubin) > 1000
