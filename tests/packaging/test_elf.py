"""The editor, on a real ELF file: it changes what it says, keeps the rest, and the system's loader takes the result."""

from __future__ import annotations

import subprocess
import sys

import pytest

from numba_enzyme.enzyme.toolchain import find
from vendoring.elf import Elf, Target
from vendoring.errors import StagingError


@pytest.fixture
def elf(elf_bytes):
    return Elf("helper.so", elf_bytes)


def versions(elf):
    return {(v.library, v.name) for need in elf.version_needs() for v in need.versions}


def users(elf, version):
    return {symbol.name for symbol in elf.symbols() if not symbol.defined and elf._version(symbol.number) == version.number}


def loads(path):
    """Lazy binding, as opt does: a weak symbol that nothing defines is no obstacle."""
    script = f"import ctypes, os; ctypes.CDLL({str(path)!r}, os.RTLD_LAZY)"
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)


def test_reads_what_the_file_is_linked_against(elf):
    assert "libc.so.6" in elf.needed()
    assert ("libc.so.6", "GLIBC_2.2.5") in versions(elf)
    names = {symbol.name: symbol.defined for symbol in elf.symbols()}
    assert names["PyInit__helperlib"] is True
    assert names["PyErr_SetString"] is False


@pytest.mark.parametrize("content", [b"", b"#!/bin/sh", b"\x7fELF\x01\x01" + bytes(64), b"\x7fELF\x02\x01" + bytes(64)])
def test_refuses_what_is_no_elf_file_of_ours(content):
    with pytest.raises(StagingError, match="not an x86-64 ELF file"):
        Elf("other", content + bytes(64))


def test_drops_libraries(elf, elf_bytes):
    before = elf.needed()
    assert elf.drop_needed({"libc.so.6", "libnone.so"}) == 1
    assert Elf("again", elf.content).needed() == [name for name in before if name != "libc.so.6"]
    assert len(elf.content) == len(elf_bytes)


def test_weakened_symbols_may_be_absent(elf, tmp_path):
    memcpy = next(symbol for symbol in elf.symbols() if symbol.name == "memcpy")
    assert elf.weaken({"memcpy", "no_such_symbol"}) == 1
    again = Elf("again", elf.content)
    edited = next(symbol for symbol in again.symbols() if symbol.name == "memcpy")
    assert edited.info == 2 << 4 | memcpy.info & 0xF  # STB_WEAK
    assert again._version(edited.number) == 1  # none


def test_unlinks_versions_that_nothing_uses_and_no_other(elf, elf_bytes, tmp_path):
    # Each version in turn: the first of its library's list, one within it, its last, or all there is.
    first, *others = elf.version_needs()
    candidates = [version for need in [first, *others] for version in need.versions if need is not first or len(first.versions) > 1]
    assert len(candidates) > 3
    for version in candidates:
        edited = Elf("edited", elf_bytes)
        edited.weaken(users(edited, version))
        assert edited.drop_unused_versions() == {(version.library, version.name)}
        again = Elf("again", edited.content)
        assert versions(again) == versions(elf) - {(version.library, version.name)}
        assert again.drop_unused_versions() == set()
        # Two counts that this reader and today's loader do without, but other tools believe.
        counts = {value for _, tag, value in again._dynamic() if tag == 0x6FFFFFFF} | {again._section(0x6FFFFFFE)[7]}
        assert counts == {len(again.version_needs())}
        path = tmp_path / "edited.so"
        path.write_bytes(edited.content)
        run = loads(path)
        assert run.returncode == 0, run.stderr


def test_the_loader_refuses_a_version_left_behind(elf, tmp_path):
    """Without this the test above would prove nothing."""
    version = next(version for need in elf.version_needs() for version in need.versions if version.name != "GLIBC_2.2.5")
    path = tmp_path / "edited.so"
    name = version.name.encode() + b"\0"
    path.write_bytes(elf.content.replace(name, name.replace(b"2.", b"9."), 1))
    assert loads(path).returncode != 0


def test_cannot_unlink_the_first_library(elf):
    first = elf.version_needs()[0]
    for version in first.versions:
        elf.weaken(users(elf, version))
    with pytest.raises(StagingError, match="first library"):
        elf.drop_unused_versions()


def test_retargets_to_another_symbol_and_version(elf):
    undefined = [symbol for symbol in elf.symbols() if not symbol.defined]
    memcpy, memset = (next(symbol for symbol in undefined if symbol.name == name) for name in ("memcpy", "memset"))
    assert elf.retarget({"memcpy": Target("memset", "libc.so.6", "GLIBC_2.2.5")}) == 1
    again = Elf("again", elf.content)
    edited = next(symbol for symbol in again.symbols() if symbol.number == memcpy.number)
    assert edited.name == "memset"
    assert again._version(edited.number) == again._version(memset.number)


def test_cannot_retarget_to_what_the_file_does_not_have(elf):
    with pytest.raises(StagingError, match=r"needs no GLIBC_9\.9 of libc"):
        elf.retarget({"memcpy": Target("memcpy", "libc.so.6", "GLIBC_9.9")})
    with pytest.raises(StagingError, match="no string 'no_such_symbol'"):
        elf.retarget({"memcpy": Target("no_such_symbol", "libc.so.6", "GLIBC_2.2.5")})


# -- the search path for libraries


@pytest.fixture
def opt():
    return (find().folder / "bin" / "opt").read_bytes()


def test_cuts_folders_from_the_end_of_the_search_path(opt):
    own, foreign = b"$ORIGIN/../lib", b":/elsewhere"
    longer = Elf("opt", opt.replace(own + bytes(len(foreign)), own + foreign, 1))
    assert longer.search_path() == ["$ORIGIN/../lib", "/elsewhere"]
    assert longer.cut_search_path(["$ORIGIN/../lib"]) == 1
    assert longer.content == opt


def test_cuts_no_search_path_that_begins_otherwise(opt):
    with pytest.raises(StagingError, match=r"does not begin with \['/elsewhere'\]"):
        Elf("opt", opt).cut_search_path(["/elsewhere"])


def test_a_file_without_search_path(elf):
    assert elf.search_path() == []
    assert elf.cut_search_path(["$ORIGIN"]) == 0
