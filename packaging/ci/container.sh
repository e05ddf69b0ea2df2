#!/usr/bin/env bash
# packaging/ci/container.sh IMAGE WHEEL: what installed.sh does, on another system. Needs docker or podman.
# Images are named by tag, not digest: what is asked is whether the wheel runs where users are today.
set -euo pipefail
image=$1 wheel=$(realpath "$2")
checkout=$(realpath "$(dirname "$0")/../..")

# Only Python is added, the newest that the system has and Numba serves.
case $image in
  *manylinux*) prepare='export PYTHON=/opt/python/cp312-cp312/bin/python' ;;
  *debian* | *ubuntu*) prepare='apt-get -qq update && apt-get -qq install -y python3-venv >/dev/null' ;;
  *rocky*) prepare='dnf -q -y install python3.12 && export PYTHON=python3.12' ;;
  *fedora*) prepare='dnf -q -y install python3' ;;
  *)
    echo "no way known to get Python in $image" >&2
    exit 2
    ;;
esac

"${DOCKER:-docker}" run --rm --volume "$checkout:/checkout:ro" --volume "$(dirname "$wheel"):/dist:ro" "$image" \
  bash -euc "$prepare; /checkout/packaging/ci/installed.sh /dist/$(basename "$wheel")"
