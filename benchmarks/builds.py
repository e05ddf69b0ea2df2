"""What a first call costs: the build of a derivative, the import, and a new process with a warm cache on disk."""

from __future__ import annotations

import linecache
import math
import os
import subprocess
import sys
import tempfile
import textwrap
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numba import njit

from benchmarks.timing import Row, pairs, ratio
from numba_enzyme import grad

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REPEATS = 12


def one_line(k: int) -> str:
    return f"""
        def fresh(x, y):
            return math.sin(x) * y + x * y * {k}.0
    """


def loop(k: int) -> str:
    return f"""
        def fresh(x, y):
            total = 0.0
            for n in range(10):
                total += math.exp(-x * n) * y + math.sin(y) * {k}.0
            return total
    """


def fresh(text: str) -> Callable[..., float]:
    """The function that `text` defines, from a file of its own, as user code comes from one."""
    text = textwrap.dedent(text)
    filename = f"<fresh {hash(text)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    namespace: dict[str, Any] = {"math": math}
    exec(compile(text, filename, "exec"), namespace)
    return namespace["fresh"]


def first_call(function: Callable[..., Any]) -> float:
    start = time.perf_counter()
    function(1.0, 2.0)
    return time.perf_counter() - start


def first_call_of(wrap: Callable[..., Any], functions: Iterator[Callable[..., float]]) -> float:
    return first_call(wrap(next(functions)))


@contextmanager
def cache_folder() -> Iterator[Path]:
    """An empty cache on disk, for this process and its children."""
    name = "NUMBA_ENZYME_CACHE_DIR"
    usual = os.environ.get(name)
    with tempfile.TemporaryDirectory() as folder:
        os.environ[name] = folder
        try:
            yield Path(folder)
        finally:
            if usual is None:
                del os.environ[name]
            else:
                os.environ[name] = usual


def first_derivatives() -> Iterator[Row]:
    """Fresh functions in a process that has built derivatives before, with nothing on disk."""
    for name, text in (("one line", one_line), ("a loop", loop)):
        functions = [fresh(text(k)) for k in range(REPEATS + 2)]
        with cache_folder():
            for function in functions[REPEATS:]:
                first_call(grad(function))
                first_call(njit(function))
            derived, compiled = iter(functions[:REPEATS]), iter(functions[:REPEATS])
            measured = list(pairs(partial(first_call_of, grad, derived), partial(first_call_of, njit, compiled), REPEATS))
        yield ratio(f"first derivative of a fresh function against njit of its primal, {name}", measured, 3.0)


def child(code: str, folder: Path) -> float:
    """The number that `code` prints, run by a new process in `folder`."""
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    path = os.pathsep.join(str(Path(entry).resolve()) for entry in given if entry)
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=folder, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True)
    return float(done.stdout)


IMPORT = """
import time
import numba
start = time.perf_counter()
import numba_enzyme
print((time.perf_counter() - start) * 1e3)
"""


def imports() -> Row:
    """Milliseconds of `import numba_enzyme` after `import numba`, each in a new process."""
    with cache_folder() as folder:
        taken = sorted(child(IMPORT, folder) for _ in range(REPEATS))
    return Row("import numba_enzyme beyond import numba", taken[REPEATS // 2], taken[0], 20.0, "ms")


MODULE = """
import math
from numba import njit

def primal(x, y):
    return math.sin(x) * y + x * y * y

@njit(cache=True)
def hand(x, y):
    return math.cos(x) * y + y * y, math.sin(x) + 2.0 * x * y

@njit(cache=True)
def other(x):
    return x + 1.0
"""

# `other` warms Numba up: what the first call of any function costs in a new process is in neither time then.
FIRST_CALL = """
import sys, time
sys.path.insert(0, "")
from module import primal, hand, other
from numba_enzyme import grad
if {warm}:
    other(1.0)
function = {function}
start = time.perf_counter()
function(1.0, 2.0)
print(time.perf_counter() - start)
"""


def new_processes() -> Iterator[Row]:
    """First calls in new processes, with both caches warm on disk."""
    with cache_folder() as folder:
        (folder / "module.py").write_text(MODULE)
        for name, warm in (("first use of Numba", False), ("Numba warm", True)):
            derived, compiled = (FIRST_CALL.format(warm=warm, function=function) for function in ("grad(primal)", "hand"))
            for code in (derived, compiled):
                child(code, folder)
            measured = list(pairs(partial(child, derived, folder), partial(child, compiled, folder), REPEATS))
            what = f"first call in a new process, cache on disk, against njit(cache=True), {name}"
            yield ratio(what, measured, None if warm else 1.2)
            if warm:
                taken = sorted(first * 1e3 for first, _ in measured)
                yield Row("first call in a new process, cache on disk, Numba warm", taken[REPEATS // 2], taken[0], 10.0, "ms")


def rows() -> Iterator[Row]:
    yield from first_derivatives()
    yield imports()
    yield from new_processes()
