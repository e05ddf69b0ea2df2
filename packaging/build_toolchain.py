"""Compiles LLVM's opt and the Enzyme plugin from pinned source archives, for wheels that run on older systems.

    python packaging/build_toolchain.py --into FOLDER
    NUMBA_ENZYME_BUILT_TOOLCHAIN=FOLDER python -m build --wheel

`packaging/README.md` tells where to run it: what comes out needs the C library of the machine it is compiled on, or a newer one.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

# This file's folder is first on sys.path when it runs as a script, which is where `vendoring` is.
from vendoring import built
from vendoring.errors import StagingError
from vendoring.pins import BUILT


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=Path, required=True, help="the folder for the finished files")
    parser.add_argument("--downloads", type=Path, help="where archives are kept, or already lie (default: FOLDER.downloads)")
    parser.add_argument("--work", type=Path, help="sources and builds, 10 GB (default: FOLDER.work)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="compilers at once (default: %(default)s)")
    options = parser.parse_args(arguments)
    folder = options.into.absolute()
    downloads, work = (
        (given or folder.with_name(f"{folder.name}.{kind}")).absolute()
        for given, kind in ((options.downloads, "downloads"), (options.work, "work"))
    )
    try:
        new = built.build(BUILT, folder, downloads=downloads, work=work, jobs=options.jobs)
    except StagingError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{folder}: {'built' if new else 'up to date'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
