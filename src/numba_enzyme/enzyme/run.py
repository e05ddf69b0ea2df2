"""The one place that starts a process: the vendored `opt` with the Enzyme plugin.

Enzyme asserts or aborts on some input. In a process of its own that is an error message; in the user's it would be the end of it.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from typing import TYPE_CHECKING

from numba_enzyme.enzyme.passes import PASSES
from numba_enzyme.errors import ArgumentError, DifferentiationError, ToolchainError

if TYPE_CHECKING:
    from numba_enzyme.enzyme.toolchain import Toolchain

DEFAULT_TIMEOUT = 600.0

_OPTIONS = (
    # A guarded expression must not be computed where its guard is false: its derivative there may be 0 * inf.
    "-two-entry-phi-node-folding-threshold=0",
    "-phi-node-folding-threshold=0",
    "-speculate-one-expensive-inst=0",
    # What memory holds is said as TBAA for Enzyme alone (llvm/memory_types.py).
    "-enable-tbaa=false",
    "-enable-scoped-noalias=false",
    # With it, a reverse sweep of nested loops that are left early took a value of the trip after: wrong numbers, in silence.
    "-enzyme-mincut-cache=0",
    # With it, an array that lives on into the next turn of a loop gets a new shadow in each turn.
    "-enzyme-rematerialize=0",
)


def timeout() -> float:
    """Seconds that one run may take."""
    text = os.environ.get("NUMBA_ENZYME_TIMEOUT", "")
    try:
        seconds = float(text) if text else DEFAULT_TIMEOUT
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise ArgumentError(f"NUMBA_ENZYME_TIMEOUT={text!r} is not a number of seconds")
    return seconds


def differentiate(toolchain: Toolchain, ir: str, keep: str, *, fastmath: bool) -> bytes:
    """LLVM 15 bitcode of `ir` with its markers replaced by sweeps and only the symbol `keep` visible.

    Raises `DifferentiationError` with what Enzyme said, and `ToolchainError` if `opt` does not run at all.
    """
    command = [
        str(toolchain.opt),
        f"-load-pass-plugin={toolchain.plugin}",
        "-opaque-pointers",
        f"-passes={PASSES}",
        f"-internalize-public-api-list={keep}",
        f"-enzyme-fast-math={int(fastmath)}",
        *_OPTIONS,
        "-",
        "-o",
        "-",
    ]
    done = _run(command, ir.encode())
    if done.returncode != 0:
        raise DifferentiationError(done.stderr.decode(errors="replace"))
    return done.stdout


def differentiate_typed(toolchain: Toolchain, ir: str, keep: Sequence[str], *, fastmath: bool) -> str:
    """The same in text with typed pointers, the only kind that CUDA's compiler reads for all devices; every value has a name."""
    command = [
        str(toolchain.opt),
        f"-load-pass-plugin={toolchain.plugin}",
        "-opaque-pointers=0",
        f"-passes={PASSES},instnamer",
        f"-internalize-public-api-list={','.join(keep)}",
        f"-enzyme-fast-math={int(fastmath)}",
        *_OPTIONS,
        # A loop that is unrolled for a number of turns known at run time keeps its tape on the heap.
        "-unroll-runtime=false",
        "-S",
        "-",
        "-o",
        "-",
    ]
    done = _run(command, ir.encode())
    if done.returncode != 0:
        raise DifferentiationError(done.stderr.decode(errors="replace"))
    return done.stdout.decode()


def inlined_typed(toolchain: Toolchain, ir: str) -> str:
    """`ir`, in text with typed pointers, with what is to be inlined inlined and memory that nobody else sees in values."""
    passes = "always-inline,function(sroa,early-cse<memssa>,adce),globaldce,instnamer"
    done = _run([str(toolchain.opt), "-opaque-pointers=0", f"-passes={passes}", "-S", "-", "-o", "-"], ir.encode())
    if done.returncode != 0:
        raise ToolchainError(f"opt refuses what Enzyme left: {done.stderr.decode(errors='replace')}")
    return done.stdout.decode()


def opt_version(toolchain: Toolchain) -> str:
    """What `opt --version` prints."""
    return _run([str(toolchain.opt), "--version"], b"").stdout.decode(errors="replace")


def _run(command: list[str], stdin: bytes) -> subprocess.CompletedProcess[bytes]:
    limit = timeout()
    try:
        # A closed environment: nothing that the user's shell sets may change what comes out.
        return subprocess.run(command, input=stdin, capture_output=True, env={"LC_ALL": "C"}, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        raise DifferentiationError(f"opt was stopped after {limit:g} seconds; NUMBA_ENZYME_TIMEOUT sets the limit") from None
    except OSError as error:
        raise ToolchainError(f"{command[0]} does not run here: {error}. `python -m numba_enzyme doctor` says more") from error
