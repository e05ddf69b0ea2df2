#!/usr/bin/env bash
# packaging/ci/audited.sh WHEEL...: fails unless auditwheel finds that each runs wherever its tag says.
set -euo pipefail
for wheel in "$@"; do
  found=$(auditwheel show "$wheel")
  echo "$found"
  tag=$(basename "$wheel" .whl | sed 's/.*-//')
  # Its lines are wrapped.
  if ! tr "\n" " " <<<"$found" | grep -F "consistent with the following platform tag: \"$tag\"" >/dev/null; then
    echo "$wheel: not $tag" >&2
    exit 1
  fi
done
