"""Every private or version-dependent name of Numba and numba-cuda-mlir, with the versions it was checked on."""
