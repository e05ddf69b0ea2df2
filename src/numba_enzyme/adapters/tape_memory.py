"""How much memory tapes may take, in variables that compiled code reads and writes (`rules/region.ll`)."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import llvmlite.binding as ll

from numba_enzyme.errors import ArgumentError, TapeMemoryError

VARIABLE = "NUMBA_ENZYME_TAPE_LIMIT"

# Limits of the container this process is in, as version 2 and version 1 of Linux's control groups tell them.
_CONTAINER = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")

_limit = ctypes.c_uint64()
_needed = ctypes.c_uint64()


def define() -> None:
    """Sets the limit, and gives the variables the names that compiled code knows them by: to be done before any is loaded."""
    _limit.value = _chosen()
    ll.add_symbol("numba_enzyme_tape_limit", ctypes.addressof(_limit))
    ll.add_symbol("numba_enzyme_tape_needed", ctypes.addressof(_needed))
    TapeMemoryError.left_by_code = lambda: (_needed.value, _limit.value)


def _chosen() -> int:
    text = os.environ.get(VARIABLE, "")
    if not text:
        return _physical() * 9 // 10
    if not text.isdecimal() or int(text) == 0:
        raise ArgumentError(f"{VARIABLE}={text!r} is not a number of bytes")
    return int(text)


def _physical() -> int:
    """Bytes of memory that this process may use at all."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([machine, *(_bytes_in(path) or machine for path in _CONTAINER)])


def _bytes_in(path: str) -> int | None:
    try:
        text = Path(path).read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None
