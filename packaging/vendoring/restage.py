"""From the wheel's binaries to the vendored ones: a pure function of bytes that checks each step against the pins."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from vendoring.elf import Elf
from vendoring.errors import StagingError

if TYPE_CHECKING:
    from collections.abc import Callable

    from vendoring.pins import Edits, Restaged

    Read = Callable[[str], bytes]


def restage(recipe: Restaged, read: Read) -> dict[str, bytes]:
    """The staged files by their place in the folder; `read` gives the bytes of a member of the wheel."""
    staged: dict[str, bytes] = {}
    for file in recipe.files:
        content = read(file.source)
        if file.edits is not None:
            content = _edited(file.target, content, file.edits, read)
        expect(f"sha256 of {file.target}", file.sha256, hashlib.sha256(content).hexdigest())
        staged[file.target] = content
    return staged


def expect(what: str, expected: object, got: object) -> None:
    if expected != got:
        raise StagingError(f"{what} differs from the pin\n  expected {expected}\n  got      {got}")


def _edited(name: str, content: bytes, edits: Edits, read: Read) -> bytes:
    elf = Elf(name, content)
    dropped = {member.rpartition("/")[2]: Elf(member, read(member)) for member in edits.drop_needed}
    supplied = {symbol.name for library in dropped.values() for symbol in library.symbols() if symbol.defined}
    expect(f"number of libraries unlinked from {name}", len(dropped), elf.drop_needed(dropped))
    expect(f"number of symbols rebound in {name}", len(edits.retarget), elf.retarget(edits.retarget))
    expect(f"number of symbols weakened in {name}", edits.weakened, elf.weaken(supplied))
    expect(f"versions no longer needed by {name}", sorted(edits.dropped_versions), sorted(elf.drop_unused_versions()))
    if edits.search_path is not None:
        expect(f"number of folders cut from the search path of {name}", 1, elf.cut_search_path(edits.search_path))
    expect(f"size of {name}", len(content), len(elf.content))
    return elf.content
