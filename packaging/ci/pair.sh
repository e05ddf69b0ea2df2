#!/usr/bin/env bash
# packaging/ci/pair.sh REQUIREMENT: the CPU suite on the running Python with that Numba, such as 'numba==0.62.*'.
set -euo pipefail
cd "$(dirname "$0")/../.."
python -m pip install --quiet -e '.[test]' "$1"
python -m pip list --format=freeze | grep -iE '^(numba|llvmlite|numpy)=='
python -m pytest
