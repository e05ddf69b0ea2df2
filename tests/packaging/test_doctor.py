"""`python -m numba_enzyme`, and the warning about upstream's distribution."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import numba_enzyme
from numba_enzyme import __main__ as command
from numba_enzyme import _distribution, cachedir, doctor
from numba_enzyme.enzyme import toolchain as toolchains
from numba_enzyme.errors import ToolchainError


@pytest.fixture(autouse=True)
def cache_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_ENZYME_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def texts(findings, state):
    return [finding.text for finding in findings if finding.state == state]


def test_a_machine_that_takes_derivatives():
    run = subprocess.run([sys.executable, "-m", "numba_enzyme", "doctor"], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    for expected in ("every sha256 is as its manifest says", "has GLIBC", "LLVM version 15", "numba-cuda-mlir", "at 3 is (6.0,)"):
        assert expected in run.stdout
    assert "failed" not in run.stdout


def test_a_machine_without_toolchain(monkeypatch, capsys):
    def refuse():
        raise ToolchainError("The toolchain is gone.")

    monkeypatch.setattr(toolchains, "find", refuse)
    monkeypatch.setattr(doctor, "_derivative", lambda: doctor.Finding("derivative", "none"))
    assert doctor.main() == 1
    assert "failed: The toolchain is gone." in capsys.readouterr().out


def test_an_altered_toolchain_fails(monkeypatch):
    def refuse(_):
        raise ToolchainError("bin/opt was altered")

    monkeypatch.setattr(toolchains, "verify", refuse)
    assert texts(doctor._toolchain(), "failed") == ["bin/opt was altered"]


def test_an_opt_that_says_nothing_fails(monkeypatch):
    monkeypatch.setattr(doctor, "opt_version", lambda _: "")
    assert doctor._opt(toolchains.find()).state == "failed"


def test_a_derivative_that_is_wrong_or_raises_fails(monkeypatch):
    monkeypatch.setattr(numba_enzyme, "grad", lambda f: lambda x: (5.0,))
    assert doctor._derivative().state == "failed"
    monkeypatch.setattr(numba_enzyme, "grad", lambda f: 1 / 0)
    assert doctor._derivative() == doctor.Finding("derivative", "of x*x at 3: ZeroDivisionError: division by zero", "failed")


@pytest.mark.parametrize("family", ["GLIBC", "GLIBCXX", "CXXABI", "GCC", "ZLIB"])
def test_floors_against_this_machine(family):
    offered = doctor._offered(family)
    assert offered is not None
    above = f"{offered}.1"

    class NeedsTooMuch:
        manifest = {"floors": {family: above}}

    assert texts(doctor._floors(NeedsTooMuch), "failed") == [f"has {family} {offered}, needs {above}"]


def test_a_missing_system_library_is_named(monkeypatch):
    monkeypatch.setitem(doctor._LIBRARIES, "ZLIB", "libnone.so.1")

    class NeedsZlib:
        manifest = {"floors": {"ZLIB": "1.2"}}

    assert texts(doctor._floors(NeedsZlib), "failed") == ["needs ZLIB 1.2, but libnone.so.1 was not found"]


def test_a_symbolic_link_is_reported(tmp_path, monkeypatch):
    (tmp_path / "numba_enzyme").symlink_to(Path(numba_enzyme.__file__).parent)
    monkeypatch.setattr(doctor, "_PACKAGE", tmp_path / "numba_enzyme")
    assert any("is a symbolic link" in text for text in texts(doctor._installation(), "warning"))


def test_upstream_anywhere_on_the_path_is_reported(tmp_path, monkeypatch):
    (tmp_path / "numba_enzyme-0.1.3.dist-info").mkdir()
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    (text,) = texts(doctor._installation(), "warning")
    assert text.startswith(f"numba-enzyme 0.1.3 in {tmp_path}")
    assert "pip uninstall -y numba-enzyme`" in text


def test_overwritten_modules_are_reported(tmp_path, monkeypatch):
    folder = tmp_path / "numba_enzyme_cuda-9.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: numba-enzyme-cuda\nVersion: 9\n")
    (folder / "RECORD").write_text("numba_enzyme/a.py,sha256=x,3\nnumba_enzyme/b.py,sha256=x,3\nnumba_enzyme/c.py,sha256=x,3\n")
    (tmp_path / "numba_enzyme").mkdir()
    (tmp_path / "numba_enzyme" / "a.py").write_text("abc")
    (tmp_path / "numba_enzyme" / "b.py").write_text("another size")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    (text,) = texts(doctor._installation(), "failed")
    assert text.startswith("not as installed: numba_enzyme/b.py, numba_enzyme/c.py; run `pip uninstall")


def test_import_warns_of_upstream(tmp_path, monkeypatch):
    monkeypatch.setattr(_distribution, "__file__", str(tmp_path / "numba_enzyme" / "_distribution.py"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (tmp_path / "numba_enzyme_cuda-0.3.0.dist-info").mkdir()  # ours
        _distribution.warn_of_rivals()
    (tmp_path / "numba_enzyme-0.1.3.dist-info").mkdir()
    with pytest.warns(UserWarning, match=r"numba-enzyme 0\.1\.3 is installed beside numba-enzyme-cuda"):
        _distribution.warn_of_rivals()


def test_no_folder_no_rivals(tmp_path):
    assert _distribution.rivals(tmp_path / "none") == []


def test_cuda_is_never_a_failure():
    assert doctor._cuda().state == "ok"


class Driver:
    """The calls of libcuda that the doctor makes, for one device."""

    def __init__(self, status):
        self.cuInit = lambda _: status

    def cuDriverGetVersion(self, at):
        at._obj.value = 12080

    def cuDeviceGetCount(self, at):
        at._obj.value = 1

    def cuDeviceGetName(self, name, size, index):
        name.value = b"Some GPU"

    def cuDeviceGetAttribute(self, at, attribute, index):
        at._obj.value = {75: 9, 76: 0}[attribute]


def test_devices_are_listed():
    assert doctor._devices(Driver(0)) == "driver for CUDA 12.8; Some GPU (9.0)"
    assert doctor._devices(Driver(100)) == "the driver finds no usable GPU"


def test_clearing_removes_what_we_wrote_and_nothing_else(cache_folder, capsys):
    for name in (cachedir.BUILDS, cachedir.TOOLCHAINS, "somebody's"):
        (cache_folder / name / "deeper").mkdir(parents=True)
        (cache_folder / name / "deeper" / "file").write_bytes(bytes(500_000))
    assert command.main(["cache"]) == 0
    assert f"{cache_folder}: 2 files, 1.0 MB" in capsys.readouterr().out
    assert command.main(["cache", "--clear"]) == 0
    assert [path.name for path in cache_folder.iterdir()] == ["somebody's"]


def test_the_cache_folder_follows_the_environment(monkeypatch, tmp_path):
    assert cachedir.cache_dir() == tmp_path / "cache"
    monkeypatch.delenv("NUMBA_ENZYME_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cachedir.cache_dir() == tmp_path / "numba-enzyme"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cachedir.cache_dir() == Path.home() / ".cache" / "numba-enzyme"


def test_a_cache_that_cannot_be_written_is_a_warning(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_ENZYME_CACHE_DIR", str(tmp_path / "file" / "cache"))
    assert doctor._cache().state == "warning"
