"""What the package offers, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys

import numba_enzyme

NAMES = {
    "ArgumentError",
    "DifferentiationError",
    "NumbaEnzymeError",
    "SignatureError",
    "TapeMemoryError",
    "ToolchainError",
    "UnsupportedError",
    "differentiable",
    "grad",
    "hessian",
    "hvp",
    "jacfwd",
    "jacrev",
    "jvp",
    "value_and_grad",
    "vjp",
}

# What is loaded when something has to be built, and not before.
HEAVY = {"numba_cuda_mlir", "numba_enzyme.pipeline", "numba_enzyme.enzyme.run", "subprocess", "numba_enzyme.rules.application"}


def loaded_after(code):
    script = f"{code}\nimport sys\nprint(*sorted(sys.modules))"
    return set(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split())


def test_the_public_names():
    assert set(numba_enzyme.__all__) == NAMES
    assert all(hasattr(numba_enzyme, name) for name in NAMES)


def test_the_version_is_the_distributions():
    from importlib.metadata import version

    assert numba_enzyme.__version__ == version("numba-enzyme-cuda")


def test_errors_are_one_tree_and_none_of_numbas():
    from numba.core.errors import NumbaError

    for name in NAMES:
        if name.endswith("Error"):
            error = getattr(numba_enzyme, name)
            assert issubclass(error, numba_enzyme.NumbaEnzymeError)
            assert not issubclass(error, NumbaError)
    assert issubclass(numba_enzyme.SignatureError, TypeError)
    assert issubclass(numba_enzyme.ArgumentError, ValueError)
    assert issubclass(numba_enzyme.UnsupportedError, NotImplementedError)
    assert issubclass(numba_enzyme.DifferentiationError, RuntimeError)
    assert issubclass(numba_enzyme.ToolchainError, RuntimeError)


def test_import_is_light():
    assert not loaded_after("import numba_enzyme") & (HEAVY - loaded_after("import numba"))


def test_the_test_of_lightness_can_fail():
    heavy = loaded_after("import numba_enzyme; numba_enzyme.grad(lambda x: x * 1.25)(1.0)")
    assert "numba_enzyme.enzyme.toolchain" in heavy
    assert loaded_after("import numba_enzyme.pipeline") & (HEAVY - loaded_after("import numba"))


def test_import_reads_no_toolchain(tmp_path):
    environment = {"NUMBA_ENZYME_PLUGIN_PATH": str(tmp_path / "nowhere"), "PATH": ""}
    done = subprocess.run([sys.executable, "-c", "import numba_enzyme"], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
