"""Environments to install into, and an index on the loopback."""

from __future__ import annotations

import hashlib
import http.server
import os
import re
import shutil
import subprocess

import pytest

from vendoring import fetch, sources

NAME = "numba-enzyme-cuda"
OURS = (fetch.FETCH, fetch.WHEEL, sources.BUILT_TOOLCHAIN, "NUMBA_ENZYME_PLUGIN_PATH", "PYTHONPATH", "VIRTUAL_ENV", "UV")
DERIVATIVE = "from numba_enzyme import grad\nassert grad(lambda x, y: x * y)(2.0, 3.0) == (3.0, 2.0)"


def run(*command, fails=False, cwd=None, **environment):
    """Its output. A variable that is None is left out of the environment."""
    merged = {**os.environ, **dict.fromkeys(OURS), **environment}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={name: str(value) for name, value in merged.items() if value is not None},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert (done.returncode != 0) == fails, f"{command}: status {done.returncode}\n{done.stdout}"
    return done.stdout


class Environment:
    """A virtual environment that holds Numba, and between tests nothing of ours."""

    def __init__(self, folder):
        self.folder, self.python = folder, folder / "bin" / "python"

    def __call__(self, *arguments, **options):
        return run(self.python, *arguments, **{"cwd": self.folder, **options})

    def pip(self, *arguments, **options):
        return self("-m", "pip", "--disable-pip-version-check", *arguments, **options)

    def uv(self, *arguments, **options):
        return run(uv(), *arguments, **{"cwd": self.folder, "VIRTUAL_ENV": self.folder, **options})

    def takes_a_derivative(self, **options):
        script = self.folder / "derivative.py"
        script.write_text(DERIVATIVE)
        self("-W", "error", script, **options)

    def doctor(self, **options):
        return self("-W", "ignore", "-m", "numba_enzyme", "doctor", **options)

    @property
    def packages(self):
        return next(self.folder.glob("lib/python*/site-packages"))


def uv():
    found = shutil.which("uv")
    if found is None:
        pytest.skip("uv is not installed")
    return found


class Index(http.server.BaseHTTPRequestHandler):
    """The simple repository API, for the files of one folder."""

    def do_GET(self):
        self.server.asked.append(self.path)
        *_, project, name = self.path.split("/")
        files = {path.name: path for path in self.server.files}
        if name in files:
            self._answer(files[name].read_bytes(), "application/octet-stream")
        elif found := [file for file in files if re.sub("[-_.]+", "-", file.split("-")[0]).lower() == project]:
            links = (f'<a href="{file}#sha256={hashlib.sha256(files[file].read_bytes()).hexdigest()}">{file}</a>' for file in found)
            self._answer(f"<!DOCTYPE html><html><body>{''.join(links)}</body></html>".encode(), "text/html")
        else:
            self.send_error(404)

    def _answer(self, content, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def do_HEAD(self):
        self.do_GET()

    def log_message(self, *_):
        pass
