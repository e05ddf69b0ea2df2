"""Parts of CUDA that do not fit are refused by name, before anything is compiled."""

import pytest

import numba_enzyme as ne
from numba_enzyme import ToolchainError, UnsupportedError

pytest.importorskip("numba_cuda_mlir", reason="numba-cuda-mlir is not installed")

from numba_cuda_mlir import compiler, cuda, types

from numba_enzyme.adapters import cuda_installation
from numba_enzyme.adapters.cuda_installation import Part

f8 = types.float64


@pytest.fixture
def installed(monkeypatch):
    """Sets what the process finds; what was found before is forgotten, here and afterwards."""

    def set_parts(*parts, driver=None):
        monkeypatch.setattr(cuda_installation, "found", lambda: parts)
        monkeypatch.setattr(cuda_installation, "driver_version", lambda: driver)
        cuda_installation.unfit.cache_clear()

    yield set_parts
    cuda_installation.unfit.cache_clear()


def gradient(cc=None):
    return ne.grad(cuda.jit(device=True)(lambda x: x * x), cc=cc)


def test_what_is_here_fits():
    assert cuda_installation.unfit() == ""
    majors = {part.version[0] for part in cuda_installation.found()}
    assert len(cuda_installation.found()) == 3
    assert len(majors) == 1


def test_parts_of_two_versions_of_cuda(installed):
    installed(Part("cuda-bindings", (13, 5)), Part("nvJitLink", (13, 5)), Part("libNVVM", (12,), "/somewhere/libnvvm.so"))
    expected = (
        r"Parts of different versions of CUDA are mixed here: cuda-bindings 13\.5, nvJitLink 13\.5, "
        r"libNVVM 12 \(/somewhere/libnvvm\.so\)\. .* pip install 'numba-enzyme-cuda\[cuda13\]', or \[cuda12\]"
    )
    with pytest.raises(ToolchainError, match=expected):
        gradient().resolve((f8,), {})


def test_a_linker_that_is_not_there(monkeypatch):
    from cuda.bindings import nvjitlink

    def missing():
        raise RuntimeError("libnvJitLink.so.13 cannot be found\nand more")

    monkeypatch.setattr(nvjitlink, "version", missing)
    with pytest.raises(
        ToolchainError, match=r"cuda-bindings \d+\.\d+ does not find the nvJitLink of .*: libnvJitLink.so.13 cannot be found\. In"
    ):
        cuda_installation._nvjitlink()


def test_a_driver_older_than_the_toolkit(installed):
    installed(Part("nvJitLink", (13, 5)), driver=(12, 4))
    with pytest.raises(ToolchainError, match=r"The driver serves CUDA 12\.4, which is older than the installed CUDA 13: .*\[cuda12\]"):
        gradient().resolve((f8,), {})
    # Drivers load what any release of their own major version makes.
    installed(Part("nvJitLink", (12, 9)), driver=(12, 4))
    assert cuda_installation.unfit() == ""


@pytest.mark.parametrize("cc", [(7, 0), (7, 2)])
def test_devices_that_cuda_13_does_not_serve(installed, cc):
    installed(Part("nvJitLink", (13, 0)))
    with pytest.raises(UnsupportedError, match=rf"CUDA 13 has no compiler for compute capability 7\.{cc[1]}, CUDA 12 has: .*\[cuda12\]"):
        gradient(cc).resolve((f8,), {})
    installed(Part("nvJitLink", (12, 9)))
    assert gradient(cc).resolve((f8,), {})


def test_a_refusal_while_a_kernel_is_compiled_reaches_its_user(installed):
    installed(Part("nvJitLink", (13, 0)))
    derivative = gradient()

    def kernel(out, x):
        out[0] = derivative(x)[0]

    with pytest.raises(UnsupportedError, match=r"CUDA 13 has no compiler for compute capability 7\.0"):
        compiler.compile_cubin(kernel, types.void(f8[::1], f8), cc=(7, 0))


def test_devices_that_are_too_old():
    with pytest.raises(UnsupportedError, match=r"from compute capability 7\.0 on, not for compute capability 6\.1"):
        gradient((6, 1)).resolve((f8,), {})


@pytest.mark.parametrize(
    ("path", "major"),
    [
        ("/env/site-packages/nvidia/cu13/lib/libnvvm.so.4", 13),
        ("/env/site-packages/nvidia/cuda_nvcc/nvvm/lib64/libnvvm.so", 12),
        ("/usr/local/cuda-12.9/nvvm/lib64/libnvvm.so.4.0.0", 12),
        ("/usr/local/cuda-13.0/nvvm/lib64/libnvvm.so.4.0.0", 13),
        ("/opt/conda/nvvm/lib64/libnvvm.so", None),
    ],
)
def test_the_version_of_libnvvm(path, major):
    assert cuda_installation.libnvvm_major(path) == major
