"""Builds on disk, each under a key that is a hash of every byte that decides it.

An entry is written aside and renamed into place, so that a reader sees all of it or nothing, and carries a checksum: what does not check
is built again. Nothing that another user could have written is loaded, since it is run. Beyond a size the entries that were not used for
longest go. Where no folder can be written, builds are kept in memory alone, and one warning says so.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import stat
import warnings
from typing import TYPE_CHECKING

from numba_enzyme.cachedir import BUILDS, cache_dir, writable_cache_dir

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_BYTES = 512 * 1024 * 1024
_MAGIC = b"numba-enzyme 1\n"
_DIGEST_BYTES = hashlib.sha256().digest_size


def load(key: str) -> bytes | None:
    """What was stored under `key`; None if there is nothing to be trusted."""
    path = _path(key)
    if path is None:
        return None
    try:
        with path.open("rb") as stream:
            if not _is_mine(os.fstat(stream.fileno())) or not _is_mine(path.parent.stat()):
                return None
            content = stream.read()
        with contextlib.suppress(OSError):
            os.utime(path)
    except OSError:
        return None
    head = len(_MAGIC) + _DIGEST_BYTES
    payload = content[head:]
    if content[:head] != _MAGIC + _checksum(key, payload):
        return None
    return payload


def store(key: str, payload: bytes) -> None:
    """Keeps `payload`, unless the disk says no: a cache is never in the way of a result."""
    folder = _writable()
    if folder is None:
        return
    path = folder / key[:2] / key
    aside = path.with_name(f"{key}.{os.getpid()}.{os.urandom(4).hex()}")
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        aside.write_bytes(_MAGIC + _checksum(key, payload) + payload)
        aside.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            aside.unlink()
        return
    # A look at every entry for one write in 256, picked by the key: it takes long, and the cap is a bound on what piles up, not a promise.
    if key.endswith("00"):
        _shrink(folder)


@contextlib.contextmanager
def lock(*keys: str) -> Iterator[None]:
    """Held by the one process that builds `keys`; others wait and then find them. Without locks each builds, and all get the same."""
    import fcntl  # noqa: PLC0415 - POSIX, and not needed to import the package

    folder = _writable()
    if folder is None:
        yield
        return
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):
            for name in sorted({key[:2] for key in keys}):  # in one order everywhere, so that no two processes wait for each other
                stream = held.enter_context((folder / f"{name}.lock").open("wb"))
                fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _checksum(key: str, payload: bytes) -> bytes:
    return hashlib.sha256(key.encode() + payload).digest()


def _is_mine(status: os.stat_result) -> bool:
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _path(key: str) -> Path | None:
    try:
        return cache_dir() / BUILDS / key[:2] / key
    except RuntimeError:  # this user has no home folder
        return None


def _writable() -> Path | None:
    root = writable_cache_dir()
    if root is None:
        _warn_once()
        return None
    folder = root / BUILDS
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder if _is_mine(folder.stat()) else None
    except OSError:
        return None


@functools.cache
def _warn_once() -> None:
    warnings.warn(
        "there is no folder to keep derivatives in, so every process builds its own; NUMBA_ENZYME_CACHE_DIR names one",
        stacklevel=2,
    )


def _shrink(folder: Path) -> None:
    """Removes what was not used for longest until the rest fits."""
    entries = []
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):
            status = path.stat()
            if stat.S_ISREG(status.st_mode) and path.suffix != ".lock":
                entries.append((status.st_mtime, status.st_size, path))
    entries.sort()
    excess = sum(size for _, size, _ in entries) - MAX_BYTES
    for _, size, path in entries:
        if excess <= 0:
            break
        with contextlib.suppress(OSError):
            path.unlink()
        excess -= size
