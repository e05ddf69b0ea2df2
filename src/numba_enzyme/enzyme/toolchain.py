"""Finds the vendored `opt` and Enzyme plugin, and refuses a set that is not the one its manifest describes.

Hashing 137 MB takes a third of a second, so a set is hashed once, when it is first used on a machine. What passed is remembered in the
cache folder as size and times of each file; a later process compares those, in well under a millisecond, and hashes again if they moved.
Where the cache folder cannot be written, sizes alone are compared. `verify` always hashes.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numba_enzyme.cachedir import TOOLCHAINS, cache_dir, writable_cache_dir
from numba_enzyme.errors import ToolchainError

if TYPE_CHECKING:
    from collections.abc import Mapping

    Manifest = Mapping[str, Any]
    Times = dict[str, list[int]]  # by file: size, time of content, time of any change

PLUGIN_PATH = "NUMBA_ENZYME_PLUGIN_PATH"
MANIFEST = "MANIFEST.json"
_PACKAGE = Path(__file__).resolve().parents[1]
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Toolchain:
    opt: Path
    plugin: Path
    origin: str  # "vendored", "development", or "plugin-path": a staged opt with the plugin that the environment names
    folder: Path  # the staged set
    manifest: Manifest = field(compare=False, repr=False)
    fingerprint: str  # sha256 over the identity of every file that decides what opt does


def find() -> Toolchain:
    """The toolchain of this process: checked, and remembered per value of `NUMBA_ENZYME_PLUGIN_PATH`. Never one from `PATH`."""
    return _find(os.environ.get(PLUGIN_PATH, ""))


def verify(toolchain: Toolchain) -> None:
    """Hash every file in full; a `ToolchainError` names those that differ."""
    altered = _altered(toolchain.folder, toolchain.manifest)
    if altered:
        raise _refusal(toolchain.folder, altered)
    if _fingerprint(toolchain.manifest, _given_plugin(toolchain)) != toolchain.fingerprint:
        raise ToolchainError(f"{toolchain.plugin} has changed since this process began to use it; start a new process.")


@cache
def _find(plugin_path: str) -> Toolchain:
    folder, origin = _staged_folder()
    manifest = _read_manifest(folder)
    _check(folder, manifest)
    opt, plugin = folder / manifest["opt"], folder / manifest["plugin"]
    if not os.access(opt, os.X_OK):
        raise ToolchainError(f"{opt} is not executable. {_mend(folder)}")
    if plugin_path:
        plugin, origin = _named_plugin(plugin_path), "plugin-path"
    given = plugin if plugin_path else None
    return Toolchain(opt, plugin, origin, folder, manifest, _fingerprint(manifest, given))


def _staged_folder() -> tuple[Path, str]:
    vendored, development = _PACKAGE / "_vendor", _development_folder()
    if vendored.exists():
        return vendored, "vendored"
    if development is not None and development.exists():
        return development, "development"
    raise ToolchainError(f"The toolchain that takes derivatives is not at {vendored}. {_mend(development or vendored)}")


def _development_folder() -> Path | None:
    """Only a package that runs from a source checkout has one."""
    checkout = _PACKAGE.parents[1]
    is_checkout = (checkout / "packaging" / "bootstrap_dev_toolchain.py").is_file() and (checkout / "src" / "numba_enzyme") == _PACKAGE
    return checkout / ".dev-toolchain" if is_checkout else None


def _named_plugin(path: str) -> Path:
    plugin = Path(path).absolute()
    if not plugin.is_file():
        raise ToolchainError(f"{PLUGIN_PATH}={path} is not a file. Name an Enzyme plugin built for LLVM 15, or unset {PLUGIN_PATH}.")
    return plugin


def _given_plugin(toolchain: Toolchain) -> Path | None:
    return toolchain.plugin if toolchain.origin == "plugin-path" else None


def _read_manifest(folder: Path) -> Manifest:
    path = folder / MANIFEST
    try:
        manifest: Manifest = json.loads(path.read_bytes())
        # Whatever is read from it later is there, or the file is not one of ours.
        complete = {manifest["opt"], manifest["plugin"]} <= manifest["files"].keys()
        complete = complete and all(entry["size"] >= 0 and len(entry["sha256"]) == 64 for entry in manifest["files"].values())
    except FileNotFoundError:
        raise ToolchainError(f"{path} is missing, so nothing says which files belong there. {_mend(folder)}") from None
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise ToolchainError(f"{path} cannot be read ({error}). {_mend(folder)}") from error
    if not complete:
        raise ToolchainError(f"{path} does not describe a toolchain. {_mend(folder)}")
    return manifest


def _check(folder: Path, manifest: Manifest) -> None:
    times = _times(folder, manifest)
    remembered = _remembered(folder)
    if remembered == times:
        return
    writable = writable_cache_dir()
    if remembered is None and writable is None:
        return
    altered = _altered(folder, manifest)
    if altered:
        raise _refusal(folder, altered)
    if writable is not None:
        _remember(folder, times)


def _times(folder: Path, manifest: Manifest) -> Times:
    times, wrong = {}, []
    for name, entry in manifest["files"].items():
        try:
            status = (folder / name).stat()
        except OSError:
            wrong.append(f"{folder / name} is missing")
            continue
        if status.st_size != entry["size"]:
            wrong.append(f"{folder / name} was altered: it has {status.st_size} bytes, not {entry['size']}")
        times[name] = [status.st_size, status.st_mtime_ns, status.st_ctime_ns]
    if wrong:
        raise _refusal(folder, wrong)
    return times


def _altered(folder: Path, manifest: Manifest) -> list[str]:
    wrong = []
    for name, entry in manifest["files"].items():
        try:
            got = _sha256(folder / name)
        except OSError as error:
            wrong.append(f"{folder / name} cannot be read ({error.strerror})")
            continue
        if got != entry["sha256"]:
            wrong.append(f"{folder / name} was altered: its sha256 is {got}, not {entry['sha256']}")
    return wrong


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _fingerprint(manifest: Manifest, given_plugin: Path | None) -> str:
    identities = {name: entry["sha256"] for name, entry in manifest["files"].items()}
    if given_plugin is not None:
        identities[manifest["plugin"]] = _sha256(given_plugin)
    return hashlib.sha256(json.dumps(identities, sort_keys=True).encode()).hexdigest()


def _record(folder: Path) -> Path:
    return cache_dir() / TOOLCHAINS / f"{hashlib.sha256(str(folder).encode()).hexdigest()[:16]}.json"


def _remembered(folder: Path) -> Times | None:
    try:
        times: Times = json.loads(_record(folder).read_bytes())
    except (OSError, ValueError, RuntimeError):
        return None
    return times


def _remember(folder: Path, times: Times) -> None:
    record = _record(folder)
    aside = record.with_suffix(f".{os.getpid()}")
    try:
        record.parent.mkdir(mode=0o700, exist_ok=True)
        aside.write_text(json.dumps(times), encoding="utf-8")
        aside.replace(record)
    except OSError:
        return  # the next process hashes again


def _refusal(folder: Path, wrong: list[str]) -> ToolchainError:
    return ToolchainError(f"{'; '.join(wrong)}. {_mend(folder)}")


def _mend(folder: Path) -> str:
    """The command that puts `folder` right."""
    with_uv = "`uv sync --reinstall-package numba-enzyme-cuda`"
    development = _development_folder()
    if development is None:
        return f"Run `pip install --force-reinstall --no-deps numba-enzyme-cuda`, or {with_uv}."
    if folder == development:
        return f"In {development.parent}, run `python packaging/bootstrap_dev_toolchain.py`."
    return f"In {development.parent}, run `pip install -e .`, or {with_uv}."
