"""Builds that are on the disk, found without compiling anything.

A build has two keys. The quick one stands for what a call means; its entry says where the code is. The other stands for the IR that the
code was made from, so that calls that come to the same IR share one build.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from numba_enzyme import cache
from numba_enzyme.adapters import host_target
from numba_enzyme.adapters.host_codegen import machine
from numba_enzyme.adapters.numba_types import from_tree, named_classes
from numba_enzyme.enzyme import toolchain
from numba_enzyme.model import serial
from numba_enzyme.recipe import recipe

if TYPE_CHECKING:
    from numba_enzyme.model.specialization import Request, Specialization


def quick_key(request: Request) -> str | None:
    """The key of a call; None if what it means cannot be said."""
    return None if request.fingerprint is None else key("call", request.fingerprint)


def key(kind: str, what: str) -> str:
    """The hash of `what` and of all else that decides a build: this package, the toolchain and the machine."""
    return hashlib.sha256(f"{kind} {recipe()} {toolchain.find().fingerprint} {machine()} {what}".encode()).hexdigest()


def tag(build_key: str) -> str:
    """As much of a build's key as its symbols carry."""
    return build_key[:24]


def recalled(quick: str, request: Request) -> Any:
    """The build that `quick` leads to, as a compiled function of Numba's CPU target; None if there is none."""
    entry = cache.load(quick)
    if entry is None:
        return None
    build = serial.loads(entry, named_classes(request.argtypes))
    code = cache.load(build.key)
    if code is None:
        return None
    return host_target.loaded(
        code, host_target.describe(request.name, tag(build.key), request.argnames, request.argtypes, from_tree(build.returned))
    )


def remember(quick: str, build_key: str, specialization: Specialization) -> None:
    """Lets `quick` lead to a build that is on the disk."""
    if specialization.layout.transform.has_aux:  # what is handed through may be of types that the entry has no words for
        return
    entry = serial.dumps(serial.Build(build_key, specialization.layout.returned()), named_classes(specialization.argtypes))
    if entry is not None:
        cache.store(quick, entry)
