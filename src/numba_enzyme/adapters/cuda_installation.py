"""The CUDA parts that numba-cuda-mlir uses in this process: whether they fit one another, the driver and the device that is asked for.

Every part is found by itself, so that an environment with packages of CUDA 12 and of CUDA 13 may have some of each. What one makes the
other does not read, and what is said then is about neither.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Any, TypeAlias

from numba_enzyme.adapters import numba_cuda_mlir
from numba_enzyme.errors import ToolchainError, UnsupportedError

Version: TypeAlias = tuple[int, ...]

# The oldest devices that a toolkit has a compiler for.
_OLDEST: dict[int, numba_cuda_mlir.CC] = {12: (7, 0), 13: (7, 5)}


@dataclass(frozen=True)
class Part:
    """A library, and the version of CUDA that it belongs to."""

    name: str
    version: Version
    detail: str = ""

    def __str__(self) -> str:
        said = ".".join(map(str, self.version))
        return f"{self.name} {said}{f' ({self.detail})' if self.detail else ''}"


def check(cc: numba_cuda_mlir.CC) -> None:
    """Raises `ToolchainError` for parts that do not fit, and `UnsupportedError` for a device that they do not serve."""
    complaint = unfit()
    if complaint:
        raise ToolchainError(complaint)
    _check_device(cc)


@functools.cache
def unfit() -> str:
    """What is wrong with the installation; empty if nothing is."""
    parts = found()
    if len({part.version[0] for part in parts}) > 1:
        return (
            f"Parts of different versions of CUDA are mixed here: {', '.join(map(str, parts))}. What one makes the other cannot read. "
            "Install one set in a new environment: pip install 'numba-enzyme-cuda[cuda13]', or [cuda12]"
        )
    toolkit = max((part.version for part in parts), default=(0,))
    driver = driver_version()
    if driver is not None and driver[0] < toolkit[0]:
        return (
            f"The driver serves CUDA {driver[0]}.{driver[1]}, which is older than the installed CUDA {toolkit[0]}: it does not load what "
            f"that makes. Update the driver, or take the older parts: pip install 'numba-enzyme-cuda[cuda{driver[0]}]'"
        )
    return ""


def _check_device(cc: numba_cuda_mlir.CC) -> None:
    toolkit = max((part.version[0] for part in found()), default=min(_OLDEST))
    oldest = _OLDEST.get(toolkit, _OLDEST[max(_OLDEST)])
    if cc >= oldest:
        return
    said = f"compute capability {cc[0]}.{cc[1]}"
    first = min(_OLDEST.values())
    if cc < first:
        raise UnsupportedError(f"Derivatives are made for devices from compute capability {first[0]}.{first[1]} on, not for {said}")
    served = max(major for major, since in _OLDEST.items() if cc >= since)
    raise UnsupportedError(
        f"CUDA {toolkit} has no compiler for {said}, CUDA {served} has: pip install 'numba-enzyme-cuda[cuda{served}]' in a new environment"
    )


@functools.cache
def found() -> tuple[Part, ...]:
    """The parts whose version of CUDA can be told."""
    return tuple(part for part in (_bindings(), _nvjitlink(), _libnvvm()) if part is not None)


def driver_version() -> Version | None:
    """The newest CUDA that the driver serves; None where there is none."""
    from numba_cuda_mlir import cuda  # noqa: PLC0415
    from numba_cuda_mlir.numba_cuda.cudadrv import driver  # noqa: PLC0415

    return tuple(driver.get_version()) if cuda.is_available() else None


def _bindings() -> Part:
    from importlib.metadata import version  # noqa: PLC0415

    return Part("cuda-bindings", tuple(int(part) for part in version("cuda-bindings").split(".")[:2]))


def _nvjitlink() -> Part | None:
    from cuda.bindings import nvjitlink  # noqa: PLC0415

    try:
        return Part("nvJitLink", tuple(nvjitlink.version()))
    except Exception as error:
        raise ToolchainError(
            f"{_bindings()} does not find the nvJitLink of its version of CUDA, without which nothing is linked: {_first_line(error)}. "
            "Install one set in a new environment: pip install 'numba-enzyme-cuda[cuda13]', or [cuda12]"
        ) from error


def _libnvvm() -> Part | None:
    path = str(numba_cuda_mlir.libnvvm_identity()[0])
    major = libnvvm_major(path)
    return None if major is None else Part("libNVVM", (major,), path)


def libnvvm_major(path: str) -> int | None:
    """The CUDA that a libNVVM belongs to, by where it lies: its own version is 2.0 in all of them."""
    if "/nvidia/cuda_nvcc/" in path:  # nvidia-cuda-nvcc-cu12; the packages of CUDA 13 have a folder for all
        return 12
    match = re.search(r"/cu(?:da-)?(\d\d)(?=[./])", path)
    return int(match[1]) if match is not None else None


def _first_line(error: Any) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".")
