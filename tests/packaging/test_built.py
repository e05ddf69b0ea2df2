"""The source build, with archives of a few lines and tools that stand in for CMake; where CMake is there, with CMake itself."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import subprocess
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

import build_toolchain
from vendoring import built, sbom, sources, stage
from vendoring.elf import Elf
from vendoring.errors import StagingError
from vendoring.pins import BUILT, Archive

SOURCE = "int answer(void) { return 42; }\n"
# What the names of the real recipe stand for: a library, a program that needs it, a plugin that needs it.
LLVM = """
cmake_minimum_required(VERSION 3.13)
project(small C)
add_library(LLVM SHARED answer.c)
set_target_properties(LLVM PROPERTIES OUTPUT_NAME LLVM-15 LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
add_executable(opt opt.c)
target_link_libraries(opt LLVM)
set_target_properties(opt PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
foreach(target LLVMTableGen llvm-tblgen llvm-headers cmake-exports)
  add_custom_target(${target})
endforeach()
file(WRITE ${CMAKE_BINARY_DIR}/lib/cmake/llvm/LLVMConfig.cmake "set(LLVM_BUILT ${CMAKE_BINARY_DIR}/lib/libLLVM-15.so)")
"""
ENZYME = """
cmake_minimum_required(VERSION 3.13)
project(small C)
find_package(LLVM REQUIRED CONFIG)
add_library(LLVMEnzyme-15 MODULE answer.c)
target_link_libraries(LLVMEnzyme-15 -Wl,--no-as-needed ${LLVM_BUILT})
set_target_properties(LLVMEnzyme-15 PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/Enzyme)
"""
CONTENTS = {
    "llvm": {
        "llvm/CMakeLists.txt": LLVM,
        "llvm/answer.c": SOURCE,
        "llvm/opt.c": "int answer(void); int main(void) { return answer() - 42; }\n",
    },
    "enzyme": {"enzyme/CMakeLists.txt": ENZYME, "enzyme/answer.c": SOURCE.replace("answer", "plugged")},
}


def pack(folder: Path, name: str, files: dict[str, str], top: str) -> Archive:
    path = folder / f"{name}.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for place, text in files.items():
            entry = tarfile.TarInfo(f"{top}/{place}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return Archive(name, f"https://nowhere.invalid/{path.name}", top, hashlib.sha256(path.read_bytes()).hexdigest())


@pytest.fixture
def downloads(tmp_path):
    (tmp_path / "downloads").mkdir()
    return tmp_path / "downloads"


@pytest.fixture
def recipe(downloads):
    """The real recipe, on small archives that lie in `downloads` already."""
    return replace(BUILT, archives=tuple(pack(downloads, name, files, f"{name}-1") for name, files in CONTENTS.items()))


@pytest.fixture
def compiled(tmp_path, recipe, downloads, elf_bytes, monkeypatch):
    """A build whose commands only note themselves and copy an ELF file to where the compiler would put it."""
    ran = []
    run = subprocess.run

    def note(command, **options):
        ran.append(command)
        for file in recipe.files:
            place = tmp_path / "work" / "builds" / file.source
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(elf_bytes)
        return run(["true"], **options)

    monkeypatch.setattr(built.subprocess, "run", note)

    def build(given=recipe):
        ran.clear()
        return built.build(given, tmp_path / "built", downloads=downloads, work=tmp_path / "work", jobs=3), list(ran)

    return build


def test_runs_the_commands_of_the_recipe(compiled, recipe, tmp_path):
    new, ran = compiled()
    assert new
    cmake = [command for command in ran if command[0] == "cmake"]
    assert len(cmake) == len(recipe.commands)
    assert cmake[0][1:5] == ["-S", f"{tmp_path}/work/sources/llvm/llvm", "-B", f"{tmp_path}/work/builds/llvm"]
    assert all("{" not in part for command in cmake for part in command)
    assert [command[4] for command in cmake if "--parallel" in command] == ["3", "3", "3"]
    assert [command for command in ran if command[0] != "cmake"] == [
        ["strip", "--strip-unneeded", str(tmp_path / "built" / file.target)] for file in recipe.files
    ]


@pytest.mark.parametrize(
    "flag",
    [
        *(
            "-DLLVM_TARGETS_TO_BUILD=X86;NVPTX",
            "-DLLVM_LINK_LLVM_DYLIB=ON",
            "-DCMAKE_INSTALL_RPATH=$ORIGIN/../lib",
            "-DCMAKE_BUILD_TYPE=Release",
        ),
        *(f"-DLLVM_ENABLE_{what}=OFF" for what in ("Z3_SOLVER", "TERMINFO", "LIBXML2", "LIBEDIT", "FFI", "ZLIB", "ZSTD", "ASSERTIONS")),
    ],
)
def test_the_recipe_leaves_out_what_opt_does_not_need(flag):
    assert flag in BUILT.commands[0]


def test_every_archive_of_the_recipe_is_pinned():
    for archive in BUILT.archives:
        assert archive.url.startswith("https://")
        assert len(bytes.fromhex(archive.sha256)) == 32


def test_does_nothing_twice(compiled):
    compiled()
    assert compiled() == (False, [])


def test_builds_anew_with_other_flags(compiled, recipe):
    compiled()
    new, ran = compiled(replace(recipe, commands=(*recipe.commands, ("cmake", "--version"))))
    assert new
    assert ["cmake", "--version"] in ran


def test_an_altered_file_is_refused_not_built_over(compiled, tmp_path, recipe):
    compiled()
    (tmp_path / "built" / "bin" / "opt").write_bytes(b"altered")
    with pytest.raises(StagingError, match=r"sha256 of \S+/built/bin/opt differs"):
        compiled()


def test_a_build_that_ended_early_is_no_toolchain(compiled, tmp_path, recipe):
    compiled()
    (tmp_path / "built" / built.RECORD).unlink()
    with pytest.raises(StagingError, match=r"Run packaging/build_toolchain\.py --into"):
        built.read(recipe, tmp_path / "built")


def test_a_folder_of_another_recipe_is_refused(compiled, tmp_path, recipe):
    compiled()
    other = replace(recipe, archives=(replace(recipe.archives[0], sha256="0" * 64), recipe.archives[1]))
    with pytest.raises(StagingError, match=r"recipe of \S+/built differs"):
        built.read(other, tmp_path / "built")


def test_a_pinned_output_is_checked(compiled, recipe):
    pinned = replace(recipe, files=(replace(recipe.files[0], sha256="0" * 64), *recipe.files[1:]))
    with pytest.raises(StagingError, match=r"sha256 of bin/opt differs from the pin\n  expected 0000"):
        compiled(pinned)


# -- archives


def test_an_archive_with_another_hash_is_refused_before_it_is_opened(compiled, downloads, recipe):
    path = downloads / "llvm.tar.gz"
    path.write_bytes(path.read_bytes() + b"\0")
    got = hashlib.sha256(path.read_bytes()).hexdigest()
    with pytest.raises(
        StagingError, match=rf"llvm\.tar\.gz differs from the pin\n  expected {recipe.archives[0].sha256}\n  got      {got}"
    ):
        compiled()


@pytest.mark.parametrize("url", ["http://nowhere.invalid/x.tar.gz", "file:///etc/passwd"])
def test_fetches_by_https_alone(downloads, recipe, url):
    with pytest.raises(StagingError, match="not an https address"):
        built.obtain(replace(recipe.archives[0], url=url), downloads)


def test_a_failed_download_says_where_a_copy_may_lie(downloads, recipe, monkeypatch):
    def refuse(*_, **__):
        raise OSError("no route")

    monkeypatch.setattr(built.urllib.request, "urlopen", refuse)
    (downloads / "llvm.tar.gz").unlink()
    with pytest.raises(StagingError, match=rf"no route\. A copy at {downloads}/llvm\.tar\.gz will do"):
        built.obtain(recipe.archives[0], downloads)
    assert not list(downloads.glob("*.part*"))


def test_a_download_is_kept(downloads, recipe, monkeypatch):
    content = (downloads / "llvm.tar.gz").read_bytes()
    (downloads / "llvm.tar.gz").unlink()
    monkeypatch.setattr(built.urllib.request, "urlopen", lambda *_, **__: io.BytesIO(content))
    assert built.obtain(recipe.archives[0], downloads).read_bytes() == content


def test_an_archive_of_another_shape_is_refused(compiled, downloads, recipe):
    archive = pack(downloads, "llvm", CONTENTS["llvm"], "unexpected")
    with pytest.raises(StagingError, match=r"folders at the top of llvm\.tar\.gz differs"):
        compiled(replace(recipe, archives=(replace(archive, folder="llvm-1"), recipe.archives[1])))


def test_unpacks_what_is_named(compiled, downloads, recipe, tmp_path):
    archive = pack(downloads, "llvm", {**CONTENTS["llvm"], "clang/large.c": "", "llvm.txt": ""}, "llvm-1")
    compiled(replace(recipe, archives=(replace(archive, parts=("llvm",)), recipe.archives[1])))
    assert [path.name for path in (tmp_path / "work" / "sources" / "llvm").iterdir()] == ["llvm"]


def test_an_archive_cannot_write_elsewhere(compiled, downloads, recipe):
    archive = pack(downloads, "llvm", {"../../escaped": "x"}, "llvm-1")
    with pytest.raises(tarfile.OutsideDestinationError):
        compiled(replace(recipe, archives=(archive, recipe.archives[1])))


# -- tools


def test_a_tool_that_fails_or_is_missing_is_named(tmp_path, recipe, downloads):
    for command, message in ((("false",), "status 1 from: false"), (("no-such-tool",), "no-such-tool is not installed")):
        with pytest.raises(StagingError, match=message):
            built.build(replace(recipe, commands=(command,)), tmp_path / "built", downloads=downloads, work=tmp_path / "work", jobs=1)
    assert not (tmp_path / "built" / built.RECORD).exists()


def test_an_output_that_is_missing_is_named(tmp_path, recipe, downloads):
    with pytest.raises(StagingError, match=r"the build made no llvm/bin/opt"):
        built.build(replace(recipe, commands=()), tmp_path / "built", downloads=downloads, work=tmp_path / "work", jobs=1)


def test_the_command(tmp_path, monkeypatch, capsys, recipe, downloads):
    arguments = ["--into", str(tmp_path / "built"), "--downloads", str(downloads), "--jobs", "1"]
    monkeypatch.setattr(build_toolchain, "BUILT", replace(recipe, commands=()))
    assert build_toolchain.main(arguments) == 1
    assert "the build made no" in capsys.readouterr().err


# -- staging what was built


@pytest.fixture
def chosen(compiled, recipe, tmp_path, monkeypatch):
    compiled()
    monkeypatch.setitem(sources.RECIPES, "built", recipe)
    monkeypatch.setenv(sources.BUILT_TOOLCHAIN, str(tmp_path / "built"))
    return recipe


def test_both_sources_fill_the_same_manifest(chosen, small_recipe, tmp_path, monkeypatch):
    restaged = stage.ensure(tmp_path / "staged")  # small_recipe has taken the environment's choice back
    monkeypatch.setenv(sources.BUILT_TOOLCHAIN, str(tmp_path / "built"))
    assert stage.staged_manifest(tmp_path / "staged") is None
    manifest = stage.ensure(tmp_path / "staged")
    assert manifest.keys() == restaged.keys()
    assert manifest["origin"]["archives"] == {archive.name: archive.sha256 for archive in chosen.archives}
    assert manifest["platform"] == "manylinux_2_28_x86_64"
    assert manifest["files"].keys() == {file.target for file in chosen.files}
    assert stage.staged_manifest(tmp_path / "staged") == manifest


def test_a_build_before_the_wheel_needs_no_package_client(chosen):
    assert not sources.needs_client()


def test_the_bill_of_materials_names_the_archives(chosen, tmp_path):
    bill = json.loads(sbom.document("numba-enzyme-cuda", "1.2.3", stage.ensure(tmp_path / "staged")))
    given = {component["name"]: component["externalReferences"][0]["hashes"][0]["content"] for component in bill["components"]}
    assert given == {archive.name: archive.sha256 for archive in chosen.archives}


# -- with real tools


@pytest.mark.skipif(not all(map(shutil.which, ("cmake", "ninja", "cc", "strip"))), reason="no CMake, Ninja, compiler or strip")
def test_a_real_build(recipe, downloads, tmp_path):
    folder = tmp_path / "built"
    assert built.build(recipe, folder, downloads=downloads, work=tmp_path / "work", jobs=1)
    elves = {file.target: Elf(file.target, (folder / file.target).read_bytes()) for file in recipe.files}
    assert [elf.search_path() for elf in elves.values()] == [["$ORIGIN/../lib"]] * 3
    assert "libLLVM-15.so" in elves["bin/opt"].needed()
    moved = tmp_path / "moved"
    folder.rename(moved)
    shutil.rmtree(tmp_path / "work")
    assert subprocess.run([str(moved / "bin" / "opt")], check=False).returncode == 0
    assert not any(str(tmp_path).encode() in path.read_bytes() for path in moved.rglob("*") if path.is_file())
