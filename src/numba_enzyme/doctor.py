"""`python -m numba_enzyme doctor`: can a derivative be taken here, and if not, what mends it?"""

from __future__ import annotations

import csv
import ctypes
import importlib
import os
import platform
import re
import sys
from importlib.metadata import Distribution, PackageNotFoundError
from importlib.metadata import version as installed_version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from numba_enzyme import _distribution, cachedir
from numba_enzyme.adapters import cuda_installation
from numba_enzyme.enzyme import toolchain as toolchains
from numba_enzyme.enzyme.run import opt_version
from numba_enzyme.errors import NumbaEnzymeError, ToolchainError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numba_enzyme.enzyme.toolchain import Toolchain

_PACKAGE = Path(__file__).parent
_LIBRARIES = {"GLIBCXX": "libstdc++.so.6", "CXXABI": "libstdc++.so.6", "GCC": "libgcc_s.so.1", "ZLIB": "libz.so.1"}
_COMPUTE_CAPABILITY = (75, 76)  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR


class Finding(NamedTuple):
    subject: str
    text: str
    state: str = "ok"  # or "warning", or "failed": no derivative can be taken


def main() -> int:
    """Print what was found; 0 if a derivative can be taken."""
    failed = False
    for finding in findings():
        mark = "" if finding.state == "ok" else f"{finding.state}: "
        print(f"{finding.subject:<12} {mark}{finding.text}", flush=True)
        failed |= finding.state == "failed"
    return 1 if failed else 0


def findings() -> Iterator[Finding]:
    yield Finding("package", f"{_distribution.NAME} {_distribution.version()} in {_PACKAGE}")
    yield from _installation()
    yield Finding("python", f"{platform.python_implementation()} {platform.python_version()}, {sys.executable}")
    yield Finding("requires", ", ".join(f"{name} {_version(name)}" for name in ("numba", "llvmlite", "numpy", "numba-cuda-mlir")))
    yield from _toolchain()
    yield _cache()
    yield _cuda()
    yield from _cuda_parts()
    yield _derivative()


def _version(name: str) -> str:
    try:
        return installed_version(name)
    except PackageNotFoundError:
        return "not installed"


def _installation() -> Iterator[Finding]:
    for folder in dict.fromkeys([str(_PACKAGE.parent), *sys.path]):
        for found in _distribution.rivals(Path(folder or ".")):
            text = f"numba-enzyme {found} in {folder} provides the package numba_enzyme too; run {_distribution.MEND}"
            yield Finding("package", text, "warning")
    if _PACKAGE.is_symlink():
        text = f"{_PACKAGE} is a symbolic link, which no installer knows of; install {_PACKAGE.resolve()} by its source path instead"
        yield Finding("package", text, "warning")
    overwritten = _overwritten()
    if overwritten:
        text = f"not as installed: {', '.join(overwritten)}; run {_distribution.MEND}"
        yield Finding("package", text, "failed")


def _overwritten() -> list[str]:
    """Modules of ours that another distribution replaced or removed. Binaries have a check of their own."""
    try:
        distribution = Distribution.from_name(_distribution.NAME)
    except PackageNotFoundError:
        return []
    # Read here because `Distribution.files` leaves out what is missing.
    rows = csv.reader((distribution.read_text("RECORD") or "").splitlines())
    modules = ((name, int(size)) for name, _, size in rows if name.endswith(".py") and size)
    return [name for name, size in modules if _size(Path(str(distribution.locate_file(name)))) != size]


def _size(path: Path) -> int | None:
    return path.stat().st_size if path.is_file() else None


def _toolchain() -> Iterator[Finding]:
    try:
        toolchain = toolchains.find()
        toolchains.verify(toolchain)
    except ToolchainError as error:
        yield Finding("toolchain", str(error), "failed")
        return
    made = ", ".join(f"{name} {number}" for name, number in sorted(toolchain.manifest.get("versions", {}).items()))
    yield Finding("toolchain", f"{toolchain.origin}, {made}, in {toolchain.folder}; every sha256 is as its manifest says")
    if toolchain.origin == "plugin-path":
        yield Finding("plugin", f"{toolchain.plugin}, named by {toolchains.PLUGIN_PATH}")
    yield from _floors(toolchain)
    yield _opt(toolchain)


def _opt(toolchain: Toolchain) -> Finding:
    try:
        said = opt_version(toolchain)
    except NumbaEnzymeError as error:
        return Finding("opt", str(error), "failed")
    line = next((line.strip() for line in said.splitlines() if "LLVM version" in line), None)
    # The dynamic loader's complaints go elsewhere; the findings on the system above say what it lacks.
    return (
        Finding("opt", line) if line else Finding("opt", f"{toolchain.opt} starts, but does not get as far as to say its version", "failed")
    )


def _floors(toolchain: Toolchain) -> Iterator[Finding]:
    for family, needed in sorted(toolchain.manifest.get("floors", {}).items()):
        offered = _offered(family)
        if offered is None:
            yield Finding("system", f"needs {family} {needed}, but {_LIBRARIES.get(family, 'glibc')} was not found", "failed")
        else:
            state = "ok" if _number(offered) >= _number(needed) else "failed"
            yield Finding("system", f"has {family} {offered}, needs {needed}", state)


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _offered(family: str) -> str | None:
    """The newest version of a family of symbols that this machine's library exports; glibc says its own."""
    if family == "GLIBC":
        return (os.confstr("CS_GNU_LIBC_VERSION") or "").removeprefix("glibc ") or None
    path = _loaded(_LIBRARIES.get(family, ""))
    if path is None:
        return None
    found = re.findall(rf"\0{family}_(\d+(?:\.\d+)+)(?=\0)".encode(), path.read_bytes())
    return max((match.decode() for match in found), key=_number, default=None)


def _loaded(library: str) -> Path | None:
    """Where the dynamic loader finds a library."""
    try:
        ctypes.CDLL(library)
        maps = Path("/proc/self/maps").read_text(encoding="utf-8")
    except OSError:
        return None
    stem = library.partition(".so")[0]
    mapped = (Path(line.split(maxsplit=5)[-1]) for line in maps.splitlines())  # the file's name may carry more of the version
    return next((path for path in mapped if path.name.startswith(f"{stem}.so") or path.name.startswith(f"{stem}-")), None)


def _cache() -> Finding:
    entries, size = cachedir.usage()
    folder = cachedir.cache_dir()
    if cachedir.writable_cache_dir() is None:
        return Finding("cache", f"{folder} cannot be written: every process builds its derivatives anew", "warning")
    return Finding("cache", f"{folder}, {entries} files, {size / 1e6:.1f} MB")


def _cuda() -> Finding:
    """Asks the driver alone: without a GPU, a driver or numba-cuda-mlir this is news, not a failure."""
    binding = _version("numba-cuda-mlir")
    if binding == "not installed":
        return Finding("cuda", f"numba-cuda-mlir is not installed: for device code, `pip install '{_distribution.NAME}[cuda]'`")
    try:
        return Finding("cuda", f"numba-cuda-mlir {binding}; {_devices(ctypes.CDLL('libcuda.so.1'))}")
    except OSError:
        return Finding("cuda", f"numba-cuda-mlir {binding}; no driver (libcuda.so.1) on this machine")


def _cuda_parts() -> Iterator[Finding]:
    if find_spec("numba_cuda_mlir") is None:
        return
    try:
        complaint = cuda_installation.unfit()
    except Exception as error:  # noqa: BLE001 - whatever went wrong is what the user needs to read
        complaint = str(error)
    if complaint:
        yield Finding("cuda", complaint, "warning")
    else:
        yield Finding("cuda", ", ".join(map(str, cuda_installation.found())))


def _devices(driver: Any) -> str:
    if driver.cuInit(0) != 0:
        return "the driver finds no usable GPU"
    version, count = ctypes.c_int(), ctypes.c_int()
    driver.cuDriverGetVersion(ctypes.byref(version))
    driver.cuDeviceGetCount(ctypes.byref(count))
    names = [_device(driver, index) for index in range(count.value)]
    return f"driver for CUDA {version.value // 1000}.{version.value % 1000 // 10}; {', '.join(names) or 'no GPU'}"


def _device(driver: Any, index: int) -> str:
    name, number = ctypes.create_string_buffer(128), ctypes.c_int()
    driver.cuDeviceGetName(name, len(name), index)
    capability = []
    for attribute in _COMPUTE_CAPABILITY:
        driver.cuDeviceGetAttribute(ctypes.byref(number), attribute, index)
        capability.append(str(number.value))
    return f"{name.value.decode(errors='replace')} ({'.'.join(capability)})"


def _derivative() -> Finding:
    """The proof: whatever stands above, this is what the user came for."""
    try:
        got = importlib.import_module("numba_enzyme").grad(_square)(3.0)
    except Exception as error:  # noqa: BLE001 - whatever went wrong is what the user needs to read
        return Finding("derivative", f"of x*x at 3: {type(error).__name__}: {error}", "failed")
    return Finding("derivative", f"of x*x at 3 is {got}", "ok" if got == (6.0,) else "failed")


def _square(x: float) -> float:
    return x * x
