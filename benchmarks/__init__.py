"""Benchmarks of numba_enzyme against hand-written Numba code: `python -m benchmarks`."""
