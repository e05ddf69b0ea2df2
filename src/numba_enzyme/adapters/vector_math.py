"""Which vector forms of libm's functions this machine has, and Numba's target can call.

They are in a library of glibc's for x86-64. Only those are taken that are there since glibc 2.22, since callers keep what they inlined in
caches of Numba's, which know the processor but not the C library.

Checked on Numba 0.62 to 0.68.
"""

from __future__ import annotations

import functools
import os

import llvmlite.binding as ll
from numba.core import codegen, config

from numba_enzyme.errors import ArgumentError

SWITCH = "NUMBA_ENZYME_VECTOR_MATH"

_LIBRARY = "libmvec.so.1"
_FUNCTIONS = {"exp": "v", "log": "v", "sin": "v", "cos": "v", "pow": "vv"}

# The instruction sets of the vector function ABI: their letters, what LLVM calls them, and the bytes of a vector. Every x86-64 has the
# first; where the target lacks one, LLVM would pass its vectors in halves, and the function would read rubbish.
_INSTRUCTION_SETS = (("b", None, 16), ("d", "+avx2", 32), ("e", "+avx512f", 64))


def _load() -> bool:
    """Whether the library is there; its functions are found by name afterwards, also by code that comes from a cache of Numba's."""
    try:
        ll.load_library_permanently(_LIBRARY)
    except RuntimeError:
        return False
    return True


_LOADED = _load()


def symbols() -> tuple[str, ...]:
    """The functions that derivatives may call: none if the environment says so, or if there are none."""
    asked = os.environ.get(SWITCH, "") or "1"
    if asked not in {"0", "1"}:
        raise ArgumentError(f"{SWITCH}={asked!r} is neither 0 nor 1")
    return _symbols(_features()) if asked == "1" and _LOADED else ()


@functools.cache
def _symbols(features: str) -> tuple[str, ...]:
    has = set(features.split(","))
    named = (
        f"_ZGV{letter}N{size // width}{arguments}_{function}{suffix}"
        for letter, feature, size in _INSTRUCTION_SETS
        if feature is None or feature in has
        for suffix, width in (("", 8), ("f", 4))
        for function, arguments in _FUNCTIONS.items()
    )
    # Code that calls what is not there crashes.
    return tuple(name for name in named if ll.address_of_symbol(name) is not None)


@functools.cache
def _host_features() -> str:
    features: str = codegen.get_host_cpu_features()
    return features


def _features() -> str:
    """What Numba's target is told of the processor."""
    return _host_features() if config.CPU_FEATURES is None else str(config.CPU_FEATURES)
