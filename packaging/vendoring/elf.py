"""Reads x86-64 ELF files and edits their dynamic linking in place.

An edit never moves a byte: entries are overwritten with others of the same size and lists are relinked around the ones left out. The
file keeps its length and layout, so everything that an edit does not mention stays as its builder made it.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from vendoring.errors import StagingError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

MAGIC = b"\x7fELF"
_IDENT = MAGIC + b"\x02\x01"  # 64 bit, little endian
_MACHINE_X86_64 = 62
_PT_LOAD, _PT_DYNAMIC = 1, 2
_SHT_DYNSYM, _SHT_VERNEED = 11, 0x6FFFFFFE
_DT_NULL, _DT_NEEDED, _DT_STRTAB, _DT_SYMTAB, _DT_STRSZ, _DT_SONAME = 0, 1, 5, 6, 10, 14
_DT_RPATH, _DT_RUNPATH = 15, 29
_DT_VERSYM, _DT_VERNEED, _DT_VERNEEDNUM = 0x6FFFFFF0, 0x6FFFFFFE, 0x6FFFFFFF
_STB_WEAK = 2
_UNVERSIONED = 1  # VER_NDX_GLOBAL
_HIDDEN = 0x8000  # top bit of a version index, not part of the number

_PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")
_SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
_DYNAMIC = struct.Struct("<QQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_VERNEED = struct.Struct("<HHIII")  # version, count, file, first aux, next
_VERNAUX = struct.Struct("<IHHII")  # hash, flags, index, name, next


class Symbol(NamedTuple):
    number: int
    offset: int
    name: str
    info: int
    defined: bool


class Version(NamedTuple):
    """One version that a file needs of a library, such as GLIBC_2.34 of libc.so.6."""

    library: str
    name: str
    number: int
    offset: int


class Need(NamedTuple):
    """All versions needed of one library."""

    library: str
    offset: int
    versions: tuple[Version, ...]


class Target(NamedTuple):
    """What a symbol is turned into: another name, another version, or both."""

    symbol: str
    library: str
    version: str


class Elf:
    def __init__(self, name: str, content: bytes) -> None:
        self.name = name
        self._data = bytearray(content)
        if not content.startswith(_IDENT) or self._unpack("<H", 18) != (_MACHINE_X86_64,):
            raise StagingError(f"{name} is not an x86-64 ELF file")
        self._segments, (self._dynamic_at, self._dynamic_size) = self._read_segments()
        self._sections = self._read_sections()
        tags = dict(reversed([(tag, value) for _, tag, value in self._dynamic()]))
        self._strings, self._strings_size = self._file_offset(tags[_DT_STRTAB]), tags[_DT_STRSZ]
        self._symbols = self._file_offset(tags[_DT_SYMTAB])
        self._symbol_versions = self._file_offset(tags[_DT_VERSYM]) if _DT_VERSYM in tags else None
        self._needs = self._file_offset(tags[_DT_VERNEED]) if _DT_VERNEED in tags else None
        self._symbol_count = self._section(_SHT_DYNSYM)[5] // _SYMBOL.size

    @property
    def content(self) -> bytes:
        return bytes(self._data)

    # -- reading

    def needed(self) -> list[str]:
        """The libraries this file is linked against (DT_NEEDED)."""
        return [self._string(value) for _, tag, value in self._dynamic() if tag == _DT_NEEDED]

    def soname(self) -> str | None:
        return next((self._string(value) for _, tag, value in self._dynamic() if tag == _DT_SONAME), None)

    def search_path(self) -> list[str]:
        """The folders in which this file has the loader look first (DT_RPATH or DT_RUNPATH)."""
        return [folder for offset in self._search_paths() for folder in self._string(offset).split(":")]

    def symbols(self) -> Iterator[Symbol]:
        for index in range(1, self._symbol_count):  # entry 0 is reserved
            offset = self._symbols + index * _SYMBOL.size
            name, info, _, section, _, _ = _SYMBOL.unpack_from(self._data, offset)
            yield Symbol(index, offset, self._string(name), info, section != 0)

    def version_needs(self) -> list[Need]:
        needs: list[Need] = []
        offset, step = self._needs, 1
        while offset is not None and step:
            _, count, file, first, step = _VERNEED.unpack_from(self._data, offset)
            library = self._string(file)
            needs.append(Need(library, offset, tuple(self._versions(library, offset + first, count))))
            offset += step
        return needs

    # -- editing; each edit says how many entries it changed

    def drop_needed(self, libraries: Collection[str]) -> int:
        entries = [(tag, value) for _, tag, value in self._dynamic()]
        kept = [(tag, value) for tag, value in entries if tag != _DT_NEEDED or self._string(value) not in libraries]
        dropped = len(entries) - len(kept)
        for position, entry in enumerate(kept + [(_DT_NULL, 0)] * dropped):
            _DYNAMIC.pack_into(self._data, self._dynamic_at + position * _DYNAMIC.size, *entry)
        return dropped

    def cut_search_path(self, kept: Collection[str]) -> int:
        """Blank the folders at the end of the search path, after those in `kept`."""
        cut = 0
        for offset in self._search_paths():
            folders = self._string(offset).split(":")
            if folders[: len(kept)] != list(kept):
                raise StagingError(f"{self.name} looks in {folders}, which does not begin with {list(kept)}")
            end = self._strings + offset + len(":".join(kept))
            tail = len(self._string(offset)) - len(":".join(kept))
            self._data[end : end + tail] = bytes(tail)
            cut += len(folders) - len(kept)
        return cut

    def weaken(self, names: Collection[str]) -> int:
        """Make undefined symbols weak and unversioned: where no library offers one, its address is 0 and loading goes on."""
        undefined = [symbol for symbol in self.symbols() if not symbol.defined and symbol.name in names]
        for symbol in undefined:
            self._data[symbol.offset + 4] = (_STB_WEAK << 4) | (symbol.info & 0xF)
            self._set_version(symbol.number, _UNVERSIONED)
        return len(undefined)

    def retarget(self, targets: Mapping[str, Target]) -> int:
        """Bind undefined symbols to other ones. Their names and versions must be in this file already: nothing can be added."""
        numbers = {(version.library, version.name): version.number for need in self.version_needs() for version in need.versions}
        undefined = [symbol for symbol in self.symbols() if not symbol.defined and symbol.name in targets]
        for symbol in undefined:
            target = targets[symbol.name]
            if (target.library, target.version) not in numbers:
                raise StagingError(f"{self.name} needs no {target.version} of {target.library}, so {symbol.name} cannot be bound to it")
            if target.symbol != symbol.name:
                struct.pack_into("<I", self._data, symbol.offset, self._find_string(target.symbol))
            self._set_version(symbol.number, numbers[target.library, target.version])
        return len(undefined)

    def drop_unused_versions(self) -> set[tuple[str, str]]:
        """Unlink each needed version that no symbol refers to: the loader asks for it all the same, and refuses to start without."""
        used = {self._version(symbol.number) for symbol in self.symbols()}
        needs = self.version_needs()
        kept = [need._replace(versions=tuple(v for v in need.versions if v.number in used)) for need in needs]
        live = [need for need in kept if need.versions]
        if not live or live[0].offset != needs[0].offset:
            raise StagingError(f"{self.name}: the first library of its version needs cannot be unlinked")
        for need, following in zip(live, [*live[1:], None]):
            self._relink(need, following)
        self._set_need_count(len(live))
        return {(version.library, version.name) for need in needs for version in need.versions if version.number not in used}

    # -- layout

    def _unpack(self, layout: str, offset: int) -> tuple[int, ...]:
        return struct.unpack_from(layout, self._data, offset)

    def _read_segments(self) -> tuple[list[tuple[int, int, int]], tuple[int, int]]:
        (start,), (size, count) = self._unpack("<Q", 32), self._unpack("<HH", 54)
        headers = [_PROGRAM_HEADER.unpack_from(self._data, start + i * size) for i in range(count)]
        loads = [(address, offset, length) for kind, _, offset, address, _, length, _, _ in headers if kind == _PT_LOAD]
        dynamic = [(offset, length) for kind, _, offset, _, _, length, _, _ in headers if kind == _PT_DYNAMIC]
        if len(dynamic) != 1:
            raise StagingError(f"{self.name} is not dynamically linked")
        return loads, dynamic[0]

    def _read_sections(self) -> dict[int, int]:
        """Where the header of a section stands, by type; the types asked for here occur once in a file."""
        (start,), (size, count) = self._unpack("<Q", 40), self._unpack("<HH", 58)
        return {self._unpack("<I", start + i * size + 4)[0]: start + i * size for i in range(count)}

    def _section(self, kind: int) -> tuple[int, ...]:
        return _SECTION_HEADER.unpack_from(self._data, self._sections[kind])

    def _file_offset(self, address: int) -> int:
        for start, offset, length in self._segments:
            if start <= address < start + length:
                return address - start + offset
        raise StagingError(f"{self.name}: address {address:#x} lies in no loaded segment")

    def _dynamic(self) -> Iterator[tuple[int, int, int]]:
        for offset in range(self._dynamic_at, self._dynamic_at + self._dynamic_size, _DYNAMIC.size):
            tag, value = _DYNAMIC.unpack_from(self._data, offset)
            if tag == _DT_NULL:
                return
            yield offset, tag, value

    def _search_paths(self) -> list[int]:
        return [value for _, tag, value in self._dynamic() if tag in {_DT_RPATH, _DT_RUNPATH}]

    def _string(self, offset: int) -> str:
        start = self._strings + offset
        return self._data[start : self._data.index(0, start)].decode()

    def _find_string(self, text: str) -> int:
        """Any place will do, the end of a longer name included: `random` is there as the tail of `arc4random`."""
        found = self._data.find(text.encode() + b"\0", self._strings, self._strings + self._strings_size)
        if found < 0:
            raise StagingError(f"{self.name} has no string {text!r}")
        return found - self._strings

    def _versions(self, library: str, offset: int, count: int) -> Iterator[Version]:
        for _ in range(count):
            _, _, index, name, step = _VERNAUX.unpack_from(self._data, offset)
            yield Version(library, self._string(name), index & ~_HIDDEN, offset)
            offset += step

    def _version_offset(self, symbol: int) -> int:
        if self._symbol_versions is None:
            raise StagingError(f"{self.name} has no symbol versions")
        return self._symbol_versions + 2 * symbol

    def _version(self, symbol: int) -> int:
        return self._unpack("<H", self._version_offset(symbol))[0] & ~_HIDDEN

    def _set_version(self, symbol: int, index: int) -> None:
        struct.pack_into("<H", self._data, self._version_offset(symbol), index)

    def _relink(self, need: Need, following: Need | None) -> None:
        version, _, file, _, _ = _VERNEED.unpack_from(self._data, need.offset)
        first, step = need.versions[0].offset - need.offset, following.offset - need.offset if following else 0
        _VERNEED.pack_into(self._data, need.offset, version, len(need.versions), file, first, step)
        for entry, after in zip(need.versions, [*need.versions[1:], None]):
            struct.pack_into("<I", self._data, entry.offset + 12, after.offset - entry.offset if after else 0)

    def _set_need_count(self, count: int) -> None:
        for offset, tag, _ in self._dynamic():
            if tag == _DT_VERNEEDNUM:
                _DYNAMIC.pack_into(self._data, offset, tag, count)
        struct.pack_into("<I", self._data, self._sections[_SHT_VERNEED] + 44, count)  # sh_info
