"""Compiles the toolchain from source archives into a folder, and reads it from there.

The folder is filled by `build`, in an image whose C library is old enough; `read` takes the files when a wheel is built, and needs
neither the archives nor a compiler.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tarfile
import urllib.request
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from vendoring.errors import StagingError
from vendoring.restage import expect

if TYPE_CHECKING:
    from pathlib import Path

    from vendoring.pins import Archive, Built

RECORD = "BUILD.json"
_CHUNK = 1 << 20


def build_hash(recipe: Built) -> str:
    """Of all that decides what a compiler is given."""
    return hashlib.sha256(json.dumps(asdict(recipe), sort_keys=True, default=sorted).encode()).hexdigest()


def read(recipe: Built, folder: Path) -> dict[str, bytes]:
    """The compiled files, by their place in the staged folder; refuses what another recipe made, or what was altered since."""
    record = _record(folder)
    if record is None:
        raise StagingError(
            f"{folder} has no {RECORD}: no build into it has come to its end. Run packaging/build_toolchain.py --into {folder}"
        )
    expect(f"recipe of {folder}", build_hash(recipe), record.get("build"))
    files = {file.target: (folder / file.target).read_bytes() for file in recipe.files}
    for file in recipe.files:
        got = hashlib.sha256(files[file.target]).hexdigest()
        expect(f"sha256 of {folder / file.target}", record["files"][file.target], got)
        expect(f"sha256 of {file.target}", file.sha256 or got, got)
    return files


def build(recipe: Built, folder: Path, *, downloads: Path, work: Path, jobs: int) -> bool:
    """Fill `folder`; False if it holds this build already. `work` is emptied first: nothing is left from a build with other flags."""
    record = _record(folder)
    if record is not None and record.get("build") == build_hash(recipe):
        read(recipe, folder)
        return False
    sources, builds = work / "sources", work / "builds"
    for aside in (sources, builds):
        shutil.rmtree(aside, ignore_errors=True)
    for archive in recipe.archives:
        _unpack(archive, obtain(archive, downloads), sources)
    for command in recipe.commands:
        _run([part.format(sources=sources, builds=builds, jobs=jobs) for part in command])
    _collect(recipe, builds, folder)
    return True


def obtain(archive: Archive, downloads: Path) -> Path:
    """The archive in `downloads`, fetched if it is not there; its sha256 has been checked."""
    path = downloads / archive.url.rpartition("/")[2]
    if not path.is_file():
        downloads.mkdir(parents=True, exist_ok=True)
        _download(archive.url, path)
    expect(f"sha256 of {path}", archive.sha256, sha256(path))
    return path


def sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _download(url: str, path: Path) -> None:
    if not url.startswith("https://"):
        raise StagingError(f"{url} is not an https address")
    aside = path.with_name(f"{path.name}.part-{os.getpid()}")
    try:
        with urllib.request.urlopen(url, timeout=60) as response, aside.open("wb") as stream:  # noqa: S310 - https, as was just checked
            shutil.copyfileobj(response, stream, _CHUNK)
        aside.replace(path)
    except OSError as error:
        raise StagingError(f"could not get {url}: {error}. A copy at {path} will do.") from error
    finally:
        aside.unlink(missing_ok=True)


def _unpack(archive: Archive, path: Path, sources: Path) -> None:
    aside = sources / f"{archive.name}.tmp"
    with tarfile.open(path) as opened:
        wanted = [entry for entry in opened if not archive.parts or entry.name.split("/")[1:2] in ([], *([part] for part in archive.parts))]
        opened.extractall(aside, members=wanted, filter="data")
    expect(f"folders at the top of {path.name}", [archive.folder], sorted(entry.name for entry in aside.iterdir()))
    (aside / archive.folder).rename(sources / archive.name)
    aside.rmdir()


def _run(command: list[str]) -> None:
    print("$", *command, flush=True)
    try:
        status = subprocess.run(command, check=False).returncode
    except FileNotFoundError as error:
        raise StagingError(f"{command[0]} is not installed; it takes CMake, Ninja and a C++ compiler to build the toolchain") from error
    if status != 0:
        raise StagingError(f"status {status} from: {' '.join(command)}")


def _collect(recipe: Built, builds: Path, folder: Path) -> None:
    """The record is written last: a folder without it is no toolchain."""
    (folder / RECORD).unlink(missing_ok=True)
    hashes = {}
    for file in recipe.files:
        source, target = builds / file.source, folder / file.target
        if not source.is_file():
            raise StagingError(f"the build made no {file.source}")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        target.chmod(0o755)
        _run(["strip", "--strip-unneeded", str(target)])
        hashes[file.target] = sha256(target)
        expect(f"sha256 of {file.target}", file.sha256 or hashes[file.target], hashes[file.target])
    record = {"build": build_hash(recipe), "files": hashes}
    (folder / RECORD).write_text(json.dumps(record, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def _record(folder: Path) -> dict[str, Any] | None:
    try:
        record: dict[str, Any] = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return record
