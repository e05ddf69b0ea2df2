"""Builds for CUDA that were asked for and not made yet.

Code is wanted when a kernel is linked, and then by all of its call sites at once: what was asked for by then goes through one opt run.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from numba_enzyme.device_pipeline import build_devices
from numba_enzyme.errors import NumbaEnzymeError

if TYPE_CHECKING:
    from numba_enzyme.adapters.numba_cuda_mlir import CC
    from numba_enzyme.device_pipeline import DeviceEmitted

_pending: dict[int, Request] = {}
_lock = threading.RLock()


class Request:
    """A derivative for a compute capability. Called, it gives the code, or raises what stood in the way."""

    def __init__(self, emitted: DeviceEmitted, cc: CC) -> None:
        self.emitted = emitted
        self.cc = cc
        self.outcome: bytes | NumbaEnzymeError | None = None
        with _lock:
            _pending[id(self)] = self

    def __call__(self) -> bytes:
        with _lock:
            outcome = self.outcome or self._build()
        if isinstance(outcome, NumbaEnzymeError):
            raise outcome
        return outcome

    def _build(self) -> bytes | NumbaEnzymeError:
        asked = [self, *(other for other in _pending.values() if other is not self)]
        _pending.clear()
        outcomes = build_devices([(request.emitted, request.cc) for request in asked])
        for request, outcome in zip(asked, outcomes, strict=True):
            request.outcome = outcome
        return outcomes[0]
