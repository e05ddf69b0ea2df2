#!/usr/bin/env bash
# Every way to install, each to its first derivative. Needs git.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${PYTHON:-python3}" -m venv "$work/venv"
# shellcheck disable=SC1091
source "$work/venv/bin/activate"
python -m pip install --quiet --disable-pip-version-check -e '.[test]' uv
python -m pytest -m routes -p no:randomly tests/routes
