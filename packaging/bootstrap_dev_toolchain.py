"""Stages the toolchain into `.dev-toolchain/` of this checkout, for work without an install: python packaging/bootstrap_dev_toolchain.py"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

# This file's folder is first on sys.path when it runs as a script, which is where `vendoring` is.
from vendoring.errors import StagingError
from vendoring.stage import ensure

FOLDER = Path(__file__).resolve().parents[1] / ".dev-toolchain"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--force", action="store_true", help="stage again even if what is there is up to date")
    try:
        manifest = ensure(FOLDER, force=parser.parse_args().force)
    except StagingError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{FOLDER}: LLVM {manifest['versions']['llvm']}, Enzyme {manifest['versions']['enzyme']}, {manifest['platform']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
