"""From the symbol versions that a set of ELF files needs to the oldest systems it runs on, and which machines can build it."""

from __future__ import annotations

import os
import platform
import re
import struct
import sys
from typing import TYPE_CHECKING

from vendoring.errors import StagingError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from vendoring.elf import Elf

SERVED = "Linux on x86-64 with glibc"
_VERSION = re.compile(r"(GLIBC|GLIBCXX|CXXABI|GCC|ZLIB)_(\d+(?:\.\d+)+)")
# The newest version of each family that a system of that glibc offers, as the manylinux policies have it.
_POLICIES: tuple[tuple[str, Mapping[str, str]], ...] = (
    ("manylinux_2_28", {"GLIBC": "2.28", "GLIBCXX": "3.4.24", "CXXABI": "1.3.11", "GCC": "7.0.0", "ZLIB": "1.2.9"}),
    ("manylinux_2_31", {"GLIBC": "2.31", "GLIBCXX": "3.4.28", "CXXABI": "1.3.12", "GCC": "7.0.0", "ZLIB": "1.2.9"}),
    ("manylinux_2_34", {"GLIBC": "2.34", "GLIBCXX": "3.4.29", "CXXABI": "1.3.13", "GCC": "7.0.0", "ZLIB": "1.2.9"}),
)
# Libraries that every such system has.
_SYSTEM = frozenset(
    {
        "ld-linux-x86-64.so.2",
        "libc.so.6",
        "libdl.so.2",
        "libgcc_s.so.1",
        "libm.so.6",
        "libpthread.so.0",
        "librt.so.1",
        "libstdc++.so.6",
        "libz.so.1",
    }
)


def release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def floors(files: Iterable[Elf]) -> dict[str, str]:
    """The newest version needed of each family; a library or a version that no system is sure to have is an error."""
    files = list(files)
    own = {soname for elf in files if (soname := elf.soname())}
    newest: dict[str, str] = {}
    for elf in files:
        foreign = sorted(set(elf.needed()) - own - _SYSTEM)
        if foreign:
            raise StagingError(f"{elf.name} needs {', '.join(foreign)}: neither vendored nor part of every system")
        for version in (v for need in elf.version_needs() if need.library not in own for v in need.versions):
            match = _VERSION.fullmatch(version.name)
            if match is None:
                raise StagingError(f"{elf.name} needs {version.name} of {version.library}: no manylinux policy offers it")
            family, number = match.groups()
            newest[family] = max(newest.get(family, number), number, key=release)
    return dict(sorted(newest.items()))


def platform_tag(needed: Mapping[str, str]) -> str:
    """The oldest platform that offers all of `needed`."""
    for name, offered in _POLICIES:
        if all(release(version) <= release(offered[family]) for family, version in needed.items()):
            return f"{name}_x86_64"
    raise StagingError(f"newer than {_POLICIES[-1][0]}: needs {', '.join(f'{k} {v}' for k, v in needed.items())}")


def refuse_other_hosts() -> None:
    """The wheel holds binaries; on a machine that cannot run them no build of it makes sense."""
    here = f"{sys.platform} on {platform.machine() or 'an unknown machine'}"
    if sys.platform != "linux" or platform.machine() != "x86_64" or struct.calcsize("P") != 8:
        raise StagingError(f"numba-enzyme-cuda serves {SERVED}; this is {here}, {8 * struct.calcsize('P')} bit. Nothing was built.")
    if not _glibc():
        raise StagingError(f"numba-enzyme-cuda serves {SERVED}; this Python uses another C library, such as musl. Nothing was built.")


def _glibc() -> str:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (AttributeError, ValueError, OSError):
        return ""
