#!/usr/bin/env bash
# Runs in cibuildwheel's image before any wheel is built: compiles the toolchain that the wheel will hold.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=/opt/python/cp312-cp312/bin/python
"$python" -m venv /tmp/tools
/tmp/tools/bin/python -m pip install --quiet 'cmake>=3.20,<4' 'ninja>=1.11'
PATH=/tmp/tools/bin:$PATH "$python" packaging/build_toolchain.py --into "$NUMBA_ENZYME_BUILT_TOOLCHAIN"
