"""Where this package keeps what it may lose: `NUMBA_ENZYME_CACHE_DIR`, else `numba-enzyme` in the user's cache folder (XDG)."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

CACHE_DIR = "NUMBA_ENZYME_CACHE_DIR"
# All that is ever written there, so that clearing a folder the user named touches nothing else in it.
BUILDS, TOOLCHAINS = "builds", "toolchains"


def cache_dir() -> Path:
    """The folder, whether or not it exists."""
    named = os.environ.get(CACHE_DIR)
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME", "")
    # XDG asks that a relative path be taken as unset.
    return (Path(base) if base.startswith("/") else Path("~/.cache").expanduser()) / "numba-enzyme"


def writable_cache_dir() -> Path | None:
    """The folder, made if need be, for its owner alone: code from it is run. None where it cannot be written."""
    try:
        folder = cache_dir()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # RuntimeError: this user has no home folder
        return None
    return folder if os.access(folder, os.W_OK | os.X_OK) else None


def usage() -> tuple[int, int]:
    """How many files the cache holds, and their bytes."""
    files = [path for name in (BUILDS, TOOLCHAINS) for path in (cache_dir() / name).rglob("*") if path.is_file()]
    return len(files), sum(path.stat().st_size for path in files)


def clear() -> None:
    for name in (BUILDS, TOOLCHAINS):
        shutil.rmtree(cache_dir() / name, ignore_errors=True)
