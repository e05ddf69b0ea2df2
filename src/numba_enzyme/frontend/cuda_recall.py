"""Primals of device functions on the disk, found by what a function means, without asking the compiler.

A primal may call derivatives, which are text of this process: it is kept together with theirs.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numba_enzyme import cache
from numba_enzyme.adapters import cuda_types, numba_cuda_mlir
from numba_enzyme.adapters.fingerprint import meaning_of
from numba_enzyme.frontend.cuda import DevicePrimal
from numba_enzyme.llvm.typed import Parts
from numba_enzyme.model import serial
from numba_enzyme.recipe import recipe

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numba_enzyme.adapters.numba_cuda_mlir import CC


@dataclass(frozen=True)
class Recalled:
    """A primal, and the modules of the derivatives that it calls, by their symbols."""

    primal: DevicePrimal
    callees: Mapping[str, Parts]


def key(dispatcher: Any, argtypes: tuple[Any, ...], cc: CC) -> str | None:
    """The hash of all that decides the primal; None if what the function means, or a type, cannot be said."""
    meaning = meaning_of(dispatcher)
    # Scalars and tuples of them: their names say all of them.
    if meaning is None or any(cuda_types.flat_scalars(t) is None or cuda_types.is_named(t) for t in argtypes):
        return None
    settings = sorted((name, value) for name, value in os.environ.items() if name.startswith("NUMBA") and "ENZYME" not in name)
    decisive = (recipe(), numba_cuda_mlir.version(), sys.version, settings, meaning, [str(t) for t in argtypes], cc)
    return hashlib.sha256(f"device primal {decisive!r}".encode()).hexdigest()


def load(primal_key: str) -> Recalled | None:
    """What was stored under the key; None if there is nothing."""
    entry = cache.load(primal_key)
    if entry is None:
        return None
    read = json.loads(entry)
    primal = DevicePrimal(
        Parts(*read["module"]),
        read["symbol"],
        tuple(read["arguments"]),
        tuple(read["results"]),
        cuda_types.from_tree(serial.tree_from_json(read["returned"], ())),
    )
    return Recalled(primal, {name: Parts(*parts) for name, parts in read["callees"].items()})


def store(primal_key: str, primal: DevicePrimal, callees: Mapping[str, Parts]) -> None:
    """Keeps a primal whose result is floats; the class of a named tuple is no text."""
    returned = cuda_types.to_tree(cuda_types.promoted(primal.return_type))
    if returned is None or cuda_types.is_named(primal.return_type):
        return
    entry = {
        "module": _json(primal.module),
        "symbol": primal.symbol,
        "arguments": primal.arguments,
        "results": primal.results,
        "returned": serial.tree_to_json(returned, ()),
        "callees": {name: _json(parts) for name, parts in callees.items()},
    }
    cache.store(primal_key, json.dumps(entry).encode())


def _json(parts: Parts) -> list[dict[str, str]]:
    return [parts.definitions, parts.declarations, parts.globals]
