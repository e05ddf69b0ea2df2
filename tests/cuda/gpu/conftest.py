import pytest


@pytest.fixture(autouse=True)
def _device():
    from numba_cuda_mlir import cuda

    if not cuda.is_available():
        pytest.skip("no CUDA device")
