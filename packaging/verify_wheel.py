"""Says of each wheel what is wrong with it, against the checkout and the pins: python packaging/verify_wheel.py dist/*.whl

All that can be said of a wheel without installing it. Exit status 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import base64
import csv
import hashlib
import json
import posixpath
import re
import stat
import subprocess
import sys
import zipfile
from email.parser import BytesParser
from email.policy import compat32
from pathlib import Path
from typing import TYPE_CHECKING, Any

# This file's folder is first on sys.path when it runs as a script, which is where `vendoring` is.
from vendoring import policy, sbom, sources
from vendoring.elf import Elf
from vendoring.errors import StagingError
from vendoring.stage import MANIFEST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from email.message import Message

CHECKOUT = Path(__file__).resolve().parents[1]
NAME, IMPORT = "numba-enzyme-cuda", "numba_enzyme"
LARGEST = 60_000_000
_VENDOR = f"{IMPORT}/_vendor"


class Wheel:
    """A wheel beside the checkout that it should be a picture of."""

    def __init__(self, path: Path, checkout: Path) -> None:
        self.path, self.checkout = path, checkout
        with zipfile.ZipFile(path) as archive:
            self.modes = {entry.filename: entry.external_attr >> 16 for entry in archive.infolist() if not entry.is_dir()}
            self.files = {name: archive.read(name) for name in self.modes}
        self.name, self.version, *tags = path.stem.split("-")
        self.tag = "-".join(tags)
        self.info = f"{self.name}-{self.version}.dist-info"
        # Read leniently: what is absent here is missed by name in `_contents`.
        self.metadata, self.wheel = (self._headers(name) for name in ("METADATA", "WHEEL"))
        self.manifest: dict[str, Any] = json.loads(self.files.get(f"{_VENDOR}/{MANIFEST}", b"{}"))
        self.binaries = {f"{_VENDOR}/{name}": entry["sha256"] for name, entry in self.manifest.get("files", {}).items()}

    def _headers(self, name: str) -> Message:
        return BytesParser(policy=compat32).parsebytes(self.files.get(f"{self.info}/{name}", b""))

    def licences(self) -> dict[str, bytes]:
        """The licence texts of the checkout, by their place in the wheel."""
        paths = [self.checkout / "LICENSE", self.checkout / "NOTICE", *sorted((self.checkout / "licenses").iterdir())]
        return {f"{self.info}/licenses/{path.relative_to(self.checkout)}": path.read_bytes() for path in paths}

    def modules(self) -> dict[str, bytes]:
        """The package as the checkout's index has it: what was never added is not to be shipped."""
        command = ["git", "-C", str(self.checkout / "src"), "ls-files", "-z", IMPORT]
        listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return {name: (self.checkout / "src" / name).read_bytes() for name in listed.split("\0") if name}


def faults(path: Path, checkout: Path = CHECKOUT) -> list[str]:
    wheel = Wheel(path, checkout)
    return [fault for check in _CHECKS for fault in check(wheel)]


def _size(wheel: Wheel) -> Iterator[str]:
    size = wheel.path.stat().st_size
    if size > LARGEST:
        yield f"too large: {size} bytes, of {LARGEST} at most"


def _version(wheel: Wheel) -> Iterator[str]:
    found = re.search(r'^version = "(.+)"$', (wheel.checkout / "pyproject.toml").read_text(encoding="utf-8"), flags=re.MULTILINE)
    expected = found.group(1) if found else "none"
    for where, got in (("file name", wheel.version), ("METADATA", wheel.metadata["Version"])):
        if got != expected:
            yield f"version: {got} in the {where}, {expected} in pyproject.toml"
    for where, name in (("file name", wheel.name), ("METADATA", wheel.metadata["Name"])):
        if (name or "").replace("_", "-") != NAME:
            yield f"name: {name} in the {where}, not {NAME}"


def _tag(wheel: Wheel) -> Iterator[str]:
    try:
        floors = policy.floors(Elf(name, wheel.files[name]) for name in wheel.binaries if name in wheel.files)
        expected = f"py3-none-{policy.platform_tag(floors)}"
    except StagingError as error:
        yield f"tag: {error}"
        return
    for where, got in (("file name", wheel.tag), ("WHEEL", " ".join(wheel.wheel.get_all("Tag", [])))):
        if got != expected:
            yield f"tag: {got} in the {where}, but the binaries make it {expected}"
    if wheel.wheel["Root-Is-Purelib"] != "false":
        yield "tag: Root-Is-Purelib is not false"


def _licences(wheel: Wheel) -> Iterator[str]:
    expected = wheel.licences()
    for name, text in expected.items():
        if wheel.files.get(name) != text:
            yield f"licence: {name} is {'missing' if name not in wheel.files else 'not the text of the checkout'}"
    listed = {f"{wheel.info}/licenses/{name}" for name in wheel.metadata.get_all("License-File", [])}
    for name in sorted(listed ^ expected.keys()):
        yield f"licence: {name} is {'not ' if name in expected else ''}listed in METADATA"
    if not wheel.metadata["License-Expression"]:
        yield "licence: METADATA has no License-Expression"


def _modes(wheel: Wheel) -> Iterator[str]:
    for name, mode in wheel.modes.items():
        expected = 0o755 if name in wheel.binaries else 0o644
        if stat.S_IMODE(mode) != expected:
            yield f"mode: {name} has {stat.S_IMODE(mode):o}, not {expected:o}"


def _binaries(wheel: Wheel) -> Iterator[str]:
    if not wheel.manifest:
        yield f"binaries: {_VENDOR}/{MANIFEST} is missing"
        return
    recipe = sources.RECIPES[wheel.manifest["origin"]["kind"]]
    if wheel.manifest["origin"] != sources.origin(recipe):
        yield "binaries: the manifest tells another origin than the pins"
    pins = {f"{_VENDOR}/{file.target}": file.sha256 for file in recipe.files}
    if pins.keys() != wheel.binaries.keys():
        yield f"binaries: the manifest lists {sorted(wheel.binaries)}, the pins {sorted(pins)}"
    for name, listed in wheel.binaries.items():
        got = hashlib.sha256(wheel.files.get(name, b"")).hexdigest()
        for where, expected in (("manifest says", listed), ("pins say", pins.get(name))):
            if expected not in {None, got}:
                yield f"binaries: {name} has sha256 {got}, not {expected} as the {where}"


def _search_paths(wheel: Wheel) -> Iterator[str]:
    """A folder that is not in the wheel is someone else's, and what lies there would be loaded."""
    folders = {posixpath.dirname(name) for name in wheel.binaries}
    for name in wheel.binaries.keys() & wheel.files.keys():
        origin = posixpath.dirname(name)
        for entry in Elf(name, wheel.files[name]).search_path():
            if posixpath.normpath(entry.replace("$ORIGIN", origin)) not in folders:
                yield f"search path: {name} looks for libraries in {entry}, which is not in the wheel"


def _contents(wheel: Wheel) -> Iterator[str]:
    modules = wheel.modules()
    own = [f"{wheel.info}/{name}" for name in ("METADATA", "WHEEL", "RECORD", f"sboms/{sbom.FILENAME}")]
    expected = {*modules, *wheel.binaries, f"{_VENDOR}/{MANIFEST}", *wheel.licences(), *own}
    tops = {name.partition("/")[0] for name in wheel.files} - {IMPORT, wheel.info}
    for name in sorted(tops):
        yield f"contents: {name} is importable or installed beside {IMPORT}"
    for name in sorted(wheel.files.keys() - expected):
        if name.partition("/")[0] not in tops:
            yield f"contents: {name} does not belong here"
    for name in sorted(expected - wheel.files.keys()):
        yield f"contents: {name} is missing"
    for name in sorted(modules.keys() & wheel.files.keys()):
        if wheel.files[name] != modules[name]:
            yield f"contents: {name} is not as in the checkout"


def _record(wheel: Wheel) -> Iterator[str]:
    record = f"{wheel.info}/RECORD"
    rows = {name: (digest, size) for name, digest, size in csv.reader(wheel.files.get(record, b"").decode().splitlines())}
    for name in sorted(rows.keys() ^ wheel.files.keys()):
        yield f"record: {name} is {'missing from the wheel' if name in rows else 'not listed'}"
    for name in sorted(rows.keys() & wheel.files.keys() - {record}):
        content = wheel.files[name]
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        if rows[name] != (f"sha256={digest}", str(len(content))):
            yield f"record: {name} is listed with another hash or size"


def _bill(wheel: Wheel) -> Iterator[str]:
    """It is made from the pins and the manifest alone, so there is one right text."""
    name = f"{wheel.info}/sboms/{sbom.FILENAME}"
    if name not in wheel.files or not wheel.manifest:
        yield "bill of materials: missing"
        return
    listed = {
        file["name"]: file["hashes"][0]["content"]
        for component in json.loads(wheel.files[name])["components"]
        for file in component["components"]
    }
    for binary in wheel.manifest["files"].keys() - listed.keys():
        yield f"bill of materials: {binary} is not in it"
    if wheel.files[name].decode() != sbom.document(NAME, wheel.version, wheel.manifest):
        yield "bill of materials: not what pins and manifest make"


_CHECKS: tuple[Callable[[Wheel], Iterator[str]], ...] = (
    *(_size, _version, _tag, _licences, _modes, _binaries, _search_paths, _contents, _record, _bill),
)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheels", type=Path, nargs="+", metavar="wheel")
    wrong = False
    for path in parser.parse_args(arguments).wheels:
        found = faults(path)
        wrong |= bool(found)
        print(f"{path.name}: {'nothing is wrong' if not found else ''}", *found, sep="\n  " if found else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
