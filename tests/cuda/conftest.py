import os

import pytest

pytest.importorskip("numba_cuda_mlir", reason="numba-cuda-mlir is not installed")
os.environ.setdefault("NUMBA_ENZYME_CUDA_CC", "9.0")


@pytest.fixture
def evaluate():
    """Runs a derivative of a device function on the CPU."""
    from on_host import evaluate

    return evaluate
