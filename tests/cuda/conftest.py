import os

import pytest

# Compiles without a GPU, for this capability.
os.environ.setdefault("NUMBA_ENZYME_CUDA_CC", "9.0")


@pytest.fixture
def evaluate():
    """Runs a derivative of a device function on the CPU."""
    from on_host import evaluate

    return evaluate
