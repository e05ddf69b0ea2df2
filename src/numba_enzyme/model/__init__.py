"""Pure values that describe a derivative: no llvmlite, no Numba, no processes."""
