"""Keeps the IR of builds for people who want to read it, in the folder that `NUMBA_ENZYME_KEEP_IR` names and nowhere else."""

from __future__ import annotations

import os
import re
from pathlib import Path


def keep(name: str, stage: str, ir: str) -> None:
    """Writes `ir` as `<name>.<stage>.ll` if the environment asks for it."""
    folder = os.environ.get("NUMBA_ENZYME_KEEP_IR")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        (Path(folder) / f"{re.sub(r'[^A-Za-z0-9_.]+', '_', name)}.{stage}.ll").write_text(ir)
