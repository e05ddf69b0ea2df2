#!/usr/bin/env bash
# packaging/ci/cubins.sh [REQUIREMENT]: device code up to linked cubins, without a GPU, with that numba-cuda-mlir (the newest).
set -euo pipefail
cd "$(dirname "$0")/../.."
python -m pip install --quiet -e '.[test,cuda]' "${1:-numba-cuda-mlir}" nvidia-cuda-nvdisasm nvidia-cuda-cuobjdump
python -m pip list --format=freeze | grep -iE '^(numba|numba-cuda-mlir)=='
python -m pytest -p no:randomly -n 2 tests/cuda
