#!/usr/bin/env bash
# Everything that can be said of the sources without running them. Needs the dependency group `lint`.
set -euo pipefail
cd "$(dirname "$0")/../.."

ruff check .
ruff format --check .
mypy
PYTHONPATH=src lint-imports
git ls-files -z '*.sh' .ci/run | xargs -0 shellcheck
check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
zizmor --offline --no-progress --persona=auditor .github
