"""The only place that starts a process."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from numba_enzyme.errors import ToolchainError

if TYPE_CHECKING:
    from numba_enzyme.enzyme.toolchain import Toolchain

_TIME_LIMIT = 60.0


def opt_version(toolchain: Toolchain) -> str:
    """What `opt --version` says of LLVM."""
    command = [str(toolchain.opt), "--version"]
    try:
        run = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env={}, timeout=_TIME_LIMIT, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolchainError(f"{toolchain.opt} does not run: {error}") from error
    if run.returncode != 0:
        raise ToolchainError(f"{toolchain.opt} ended with {run.returncode}: {run.stderr.strip()}")
    return next((line.strip() for line in run.stdout.splitlines() if "version" in line), run.stdout.strip())
