#!/usr/bin/env bash
# packaging/ci/wheel.sh DIST: builds the sdist and the wheel into DIST, and looks at them from all sides.
# Needs git and the dependency group `lint`. The time of the files is that of the commit.
set -euo pipefail
dist=$(realpath -m "$1")
cd "$(dirname "$0")/../.."
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
again=$(mktemp -d)
trap 'rm -rf "$again"' EXIT

python -m build --quiet --outdir "$dist" # an sdist, and a wheel from it
python -m build --quiet --outdir "$again" --wheel
sha256sum "$dist"/*
for wheel in "$again"/*.whl; do
  cmp "$dist/$(basename "$wheel")" "$wheel"
done

python packaging/verify_wheel.py "$dist"/*.whl
python packaging/ci/validate_sbom.py "$dist"/*.whl
packaging/ci/audited.sh "$dist"/*.whl
twine check --strict "$dist"/*
check-wheel-contents "$dist"/*.whl
