"""The runtime's search for the toolchain: what it takes, what it refuses and what it says."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from numba_enzyme.enzyme import toolchain as toolchains
from numba_enzyme.errors import ToolchainError

OPT, PLUGIN, LIBRARY = "bin/opt", "enzyme/plugin.so", "lib/library.so"
CONTENTS = {OPT: b"opt", PLUGIN: b"plugin", LIBRARY: b"library" * 100}


def stage(folder: Path, contents: dict[str, bytes] = CONTENTS) -> Path:
    files = {}
    for name, content in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o755)
        files[name] = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
    (folder / "MANIFEST.json").write_text(json.dumps({"opt": OPT, "plugin": PLUGIN, "files": files}))
    return folder


def find_anew() -> toolchains.Toolchain:
    """As a new process would."""
    toolchains._find.cache_clear()
    return toolchains.find()


@pytest.fixture(autouse=True)
def package(tmp_path, monkeypatch):
    """An installed package without a toolchain, and a cache folder of its own."""
    folder = tmp_path / "site-packages" / "numba_enzyme"
    folder.mkdir(parents=True)
    monkeypatch.setattr(toolchains, "_PACKAGE", folder)
    monkeypatch.setenv("NUMBA_ENZYME_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("NUMBA_ENZYME_PLUGIN_PATH", raising=False)
    yield folder
    toolchains._find.cache_clear()


@pytest.fixture
def vendor(package):
    return stage(package / "_vendor")


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A source checkout that the package runs from."""
    root = tmp_path / "checkout"
    (root / "packaging").mkdir(parents=True)
    (root / "packaging" / "bootstrap_dev_toolchain.py").touch()
    (root / "src" / "numba_enzyme").mkdir(parents=True)
    monkeypatch.setattr(toolchains, "_PACKAGE", root / "src" / "numba_enzyme")
    return root


def test_finds_the_vendored_set(vendor):
    found = find_anew()
    assert (found.opt, found.plugin, found.origin, found.folder) == (vendor / OPT, vendor / PLUGIN, "vendored", vendor)
    toolchains.verify(found)


def test_finds_once_per_process(vendor):
    assert find_anew() is toolchains.find()


def test_fingerprint_tells_contents_not_places(package, vendor, checkout):
    stage(checkout / ".dev-toolchain")
    elsewhere = find_anew()
    stage(checkout / ".dev-toolchain", {**CONTENTS, LIBRARY: b"another"})
    other_library = find_anew()
    toolchains._PACKAGE = package  # restored by the fixture
    assert find_anew().fingerprint == elsewhere.fingerprint != other_library.fingerprint


def alter(path: Path) -> None:
    """Another content of the same size and modification time."""
    status = path.stat()
    path.write_bytes(bytes(path.stat().st_size))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize("name", CONTENTS)
def test_refuses_a_file_altered_before_first_use(vendor, name):
    alter(vendor / name)
    with pytest.raises(ToolchainError, match=rf"{name} was altered: its sha256 is [0-9a-f]{{64}}, not [0-9a-f]{{64}}\. Run `pip install"):
        find_anew()


@pytest.mark.parametrize("name", CONTENTS)
def test_refuses_a_file_altered_after_it_passed(vendor, name):
    find_anew()
    alter(vendor / name)
    with pytest.raises(ToolchainError, match=f"{name} was altered"):
        find_anew()


def test_refuses_a_truncated_file(vendor):
    os.truncate(vendor / LIBRARY, 5)
    with pytest.raises(ToolchainError, match=f"{LIBRARY} was altered: it has 5 bytes, not 700"):
        find_anew()


def test_refuses_a_missing_file(vendor):
    (vendor / PLUGIN).unlink()
    with pytest.raises(ToolchainError, match=f"{PLUGIN} is missing"):
        find_anew()


def test_names_every_wrong_file(vendor):
    (vendor / PLUGIN).unlink()
    os.truncate(vendor / LIBRARY, 5)
    with pytest.raises(ToolchainError, match=rf"{PLUGIN} is missing; \S+{LIBRARY} was altered"):
        find_anew()


def test_refuses_an_opt_that_is_not_executable(vendor):
    (vendor / OPT).chmod(0o644)
    with pytest.raises(ToolchainError, match=f"{OPT} is not executable"):
        find_anew()


def test_refuses_a_missing_manifest(vendor):
    (vendor / "MANIFEST.json").unlink()
    with pytest.raises(ToolchainError, match=r"MANIFEST\.json is missing"):
        find_anew()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"opt": "o", "plugin": "p", "files": {}}', '{"opt": "o", "plugin": "o", "files": {"o": 1}}']
)
def test_refuses_a_manifest_that_is_none(vendor, text):
    (vendor / "MANIFEST.json").write_text(text)
    with pytest.raises(ToolchainError, match=r"MANIFEST\.json (cannot be read|does not describe)"):
        find_anew()


def test_hashes_once_and_then_compares_times(vendor, monkeypatch):
    find_anew()
    monkeypatch.setattr(toolchains, "_sha256", lambda path: pytest.fail(f"{path} was hashed again"))
    find_anew()


def test_hashes_again_when_times_moved(vendor):
    find_anew()
    os.utime(vendor / OPT)
    assert find_anew().opt == vendor / OPT


def test_verify_hashes_whatever_is_remembered(vendor):
    found = find_anew()
    alter(vendor / LIBRARY)
    toolchains._remember(vendor, toolchains._times(vendor, found.manifest))
    find_anew()
    with pytest.raises(ToolchainError, match=f"{LIBRARY} was altered"):
        toolchains.verify(found)


def test_a_cache_that_cannot_be_written_is_no_error(vendor, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_ENZYME_CACHE_DIR", str(tmp_path / "file" / "cache"))
    find_anew()
    os.truncate(vendor / LIBRARY, 5)
    with pytest.raises(ToolchainError, match="it has 5 bytes"):
        find_anew()


def test_a_broken_record_is_made_anew(vendor):
    find_anew()
    toolchains._record(vendor).write_text("{")
    find_anew()
    assert json.loads(toolchains._record(vendor).read_text()).keys() == CONTENTS.keys()


def test_the_cache_folder_is_its_owners(vendor, tmp_path):
    find_anew()
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700


def test_vendored_before_development(checkout):
    stage(checkout / ".dev-toolchain")
    assert find_anew().origin == "development"
    stage(checkout / "src" / "numba_enzyme" / "_vendor")
    assert find_anew().origin == "vendored"


def test_an_installed_package_has_no_development_set(package):
    stage(package.parents[1] / ".dev-toolchain")
    with pytest.raises(ToolchainError):
        find_anew()


def test_never_from_path(package, tmp_path, monkeypatch):
    stage(tmp_path / "elsewhere")
    monkeypatch.setenv("PATH", f"{tmp_path / 'elsewhere' / 'bin'}:{os.environ['PATH']}")
    with pytest.raises(ToolchainError):
        find_anew()


def test_a_named_plugin_comes_first(vendor, tmp_path, monkeypatch):
    staged = find_anew()
    plugin = tmp_path / "mine.so"
    plugin.write_bytes(b"mine")
    monkeypatch.setenv("NUMBA_ENZYME_PLUGIN_PATH", str(plugin))
    named = find_anew()
    assert (named.opt, named.plugin, named.origin) == (staged.opt, plugin, "plugin-path")
    plugin.write_bytes(b"MINE")
    assert len({staged.fingerprint, named.fingerprint, find_anew().fingerprint}) == 3
    with pytest.raises(ToolchainError, match="has changed since"):
        toolchains.verify(named)


def test_the_environment_is_read_at_each_call(vendor, tmp_path, monkeypatch):
    find_anew()
    (tmp_path / "mine.so").write_bytes(b"mine")
    monkeypatch.setenv("NUMBA_ENZYME_PLUGIN_PATH", str(tmp_path / "mine.so"))
    assert toolchains.find().origin == "plugin-path"


def test_refuses_a_named_plugin_that_is_not_there(vendor, tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_ENZYME_PLUGIN_PATH", str(tmp_path / "none.so"))
    with pytest.raises(ToolchainError, match=r"NUMBA_ENZYME_PLUGIN_PATH=\S+none\.so is not a file"):
        find_anew()


def test_says_how_to_mend_an_installation(package):
    with pytest.raises(ToolchainError) as caught:
        find_anew()
    assert "pip install --force-reinstall --no-deps numba-enzyme-cuda" in str(caught.value)
    assert "uv sync --reinstall-package numba-enzyme-cuda" in str(caught.value)


def test_says_how_to_mend_a_checkout(checkout):
    with pytest.raises(ToolchainError, match=r"run `python packaging/bootstrap_dev_toolchain\.py`"):
        find_anew()
    os.truncate(stage(checkout / "src" / "numba_enzyme" / "_vendor") / OPT, 1)
    with pytest.raises(ToolchainError, match=r"run `pip install -e \.`, or `uv sync"):
        find_anew()
