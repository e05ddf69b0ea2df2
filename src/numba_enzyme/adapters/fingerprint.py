"""What a function means, as a hash: its bytecode and the values it reads from defaults, closures, globals and callees, recursively.

Two functions with one fingerprint compile to the same code. Values that cannot be put into bytes raise `Unfingerprintable`: a hash that
leaves something out would one day give one function another's derivative.
"""

from __future__ import annotations

import builtins
import enum
import functools
import hashlib
import struct
import sys
from dataclasses import dataclass
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from numba.core import config, types
from numba.core.dispatcher import Dispatcher

if TYPE_CHECKING:
    from collections.abc import Callable

# Functions of these packages are known to Numba by name; their code is pinned by the versions.
_NAMED_PACKAGES = frozenset({"numpy", "math", "cmath", "operator", "builtins", "numba", "_operator", "random", "numba_cuda_mlir"})

# numba-cuda-mlir's classes are told by name, so that nothing of CUDA is imported.
_CUDA = "numba_cuda_mlir"

# What of the options of a device function is filled in when it is compiled, or about where its code goes.
_NOT_MEANING = frozenset({"chip", "cc", "lto", "_lto_explicit", "abi", "abi_info", "device", "cache"})


@functools.cache
def _versions() -> str:
    return f"{numba.__version__} {np.__version__}"  # Numba works its own out when it is first asked, which takes a while


class Unfingerprintable(Exception):  # noqa: N818 - not an error: the caller takes another way
    """A value that has no faithful form in bytes."""


def fingerprint(function: Any) -> str:
    """The hash of `function`, a Python function or a Numba dispatcher."""
    walk = _Walk()
    walk.value(function)
    return walk.hash.hexdigest()


def meaning_of(function: Any) -> str | None:
    """The fingerprint of `function`; None if it has none, and then it is taken to mean the same for as long as it lives."""
    try:
        return fingerprint(function)
    except Unfingerprintable:
        return None


def call_fingerprint(parts: tuple[Any, ...], argtypes: tuple[Any, ...]) -> str:
    """The hash of a call: of the function that is called, taken apart, and of its argument types."""
    walk = _Walk()
    walk.items("parts", parts)
    # Whatever else decides what Numba makes of the bytecode.
    walk.put("settings", f"{sys.version} {config.BOUNDSCHECK} {config.DEBUGINFO_DEFAULT} {config.DISABLE_PERFORMANCE_WARNINGS}")
    walk.items("argument types", tuple(_Argument(ty) for ty in argtypes))
    return walk.hash.hexdigest()


@dataclass(frozen=True)
class _Argument:
    """An argument's type, if its name says all of it."""

    numba_type: Any

    def fingerprint_parts(self) -> tuple[Any, ...]:
        ty = self.numba_type
        if isinstance(ty, types.Omitted):
            return ("omitted", ty.value)
        if isinstance(ty, types.BaseTuple):
            return ("tuple", getattr(ty, "instance_class", None), *(_Argument(element) for element in ty.types))
        if isinstance(ty, _SAID_BY_NAME):
            return ("type", str(ty))
        raise Unfingerprintable(f"an argument of type {ty}")


_SAID_BY_NAME = (types.Number, types.Boolean, types.Literal, types.Array, types.UnicodeType, types.NoneType)


_CUDA_TYPES_SAID_BY_NAME = frozenset(
    {"Float", "Integer", "IntegerLiteral", "Boolean", "BooleanLiteral", "Complex", "NoneType", "UniTuple", "Tuple", "Array"}
)


class _Walk:
    """Puts values into a hash, each with what tells it from others."""

    def __init__(self) -> None:
        self.hash = hashlib.sha256(_versions().encode())
        self.of_device = False
        self.seen: dict[int, int] = {}
        self.kept: list[Any] = []

    def put(self, tag: str, data: bytes | str = b"") -> None:
        raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
        self.hash.update(f"{tag}:{len(raw)}:".encode() + raw)

    def value(self, value: Any) -> None:
        for kind, method in _METHODS:
            if isinstance(value, kind):
                method(self, value)
                return
        if hasattr(value, "fingerprint_parts"):
            self.once(value, lambda: self.items("parts", value.fingerprint_parts()))
            return
        if type(value).__module__.partition(".")[0] == _CUDA:
            self._of_cuda(value)
            return
        raise Unfingerprintable(f"a value of {type(value)}")

    def _of_cuda(self, value: Any) -> None:
        if hasattr(value, "py_func") and hasattr(value, "targetoptions"):
            self.once(value, lambda: self._device_function(value))
        elif type(value).__name__ in _CUDA_TYPES_SAID_BY_NAME:
            self.put("CUDA type", f"{type(value).__qualname__} {value}")
        elif type(value).__name__ == "_Intrinsic" and str(value.__module__).partition(".")[0] == _CUDA:
            self.put("intrinsic", f"{value.__module__} {value!r}")
        else:
            raise Unfingerprintable(f"a value of {type(value)}")

    def _device_function(self, value: Any) -> None:
        self.of_device = True
        for name in sorted(name for name, option in value.targetoptions.items() if option and name not in _NOT_MEANING):
            option = value.targetoptions[name]
            self.put("option", name)
            self.value(tuple(option) if isinstance(option, list) else option)
        self.once(value.py_func, lambda: self._function(value.py_func))

    def once(self, value: Any, walk: Callable[[], None]) -> None:
        """Functions may reach themselves; the second time a reference to the first stands for it."""
        if id(value) in self.seen:
            self.put("again", str(self.seen[id(value)]))
            return
        self.seen[id(value)] = len(self.seen)
        self.kept.append(value)  # an id is only good as long as its object lives
        walk()

    def items(self, tag: str, values: Any) -> None:
        self.put(tag, str(len(values)))
        for value in values:
            self.value(value)

    def simple(self, value: Any) -> None:
        self.put(type(value).__name__, value if isinstance(value, (bytes, str)) else repr(value))

    def float(self, value: float) -> None:
        self.put("float", struct.pack("<d", value))

    def complex(self, value: complex) -> None:
        self.put("complex", struct.pack("<dd", value.real, value.imag))

    def tuple(self, value: tuple[Any, ...]) -> None:
        if type(value) is not tuple:
            self.type(type(value))
            self.items("fields", tuple(getattr(type(value), "_fields", ())))
        self.items("tuple", value)

    def set(self, value: frozenset[Any]) -> None:
        self.items("frozenset", sorted(value, key=repr))

    def enum(self, value: enum.Enum) -> None:
        self.type(type(value))
        self.put("member", value.name)
        self.value(value.value)

    def array(self, value: np.ndarray[Any, Any]) -> None:
        if value.dtype.hasobject:
            raise Unfingerprintable("an array of Python objects")
        # Numba embeds a global array and lays it out as it finds it.
        self.put("array", f"{value.dtype.descr} {value.shape} {value.strides} {value.flags.writeable}")
        self.put("data", value.tobytes())

    def scalar(self, value: np.generic) -> None:
        self.put("scalar", f"{value.dtype.str}")
        self.put("data", value.tobytes())

    def type(self, value: type) -> None:
        if hasattr(value, "class_type"):
            raise Unfingerprintable("a jitclass")
        self.put("type", f"{value.__module__}.{value.__qualname__}")

    def module(self, value: ModuleType) -> None:
        self.put("module", value.__name__)

    def named(self, value: Any) -> None:
        self.put("named", f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', getattr(value, '__name__', ''))}")

    def numba_type(self, value: types.Type) -> None:
        self.put("numba type", f"{type(value).__qualname__} {value}")

    def external(self, value: types.ExternalFunction) -> None:
        self.put("external", f"{value.symbol} {value.sig}")

    def dispatcher(self, value: Dispatcher) -> None:
        if hasattr(value, "fingerprint_parts"):
            self.once(value, lambda: self.items("parts", value.fingerprint_parts()))
            return

        def walk() -> None:
            self.put("options", repr(sorted((k, repr(v)) for k, v in value.targetoptions.items())))
            self.put("locals", repr(sorted((k, str(v)) for k, v in value.locals.items())))
            self.value(value.py_func)

        self.once(value, walk)

    def function(self, value: FunctionType) -> None:
        package = (value.__module__ or "").partition(".")[0]
        if package in _NAMED_PACKAGES:
            self.named(value)
            return
        if self.of_device and not getattr(value, "__numba_cuda_mlir_jitable__", False):
            # Device code can call it only by an implementation that somebody registered for it, which stands elsewhere.
            raise Unfingerprintable(f"a function that is not compiled, {value.__qualname__}")
        self.once(value, lambda: self._function(value))

    def _function(self, value: FunctionType) -> None:
        self.put("function", f"{value.__module__} {value.__qualname__}")
        self.items("defaults", (value.__defaults__ or (), tuple(sorted((value.__kwdefaults__ or {}).items()))))
        self.code(value.__code__)
        names = _names(value.__code__)
        for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
            self.put("cell", name)
            try:
                content = cell.cell_contents
            except ValueError:
                self.put("empty cell")
            else:
                self._read(content, names)
        self._globals(value, names)

    def _globals(self, value: FunctionType, names: frozenset[str]) -> None:
        for name in sorted(names & value.__globals__.keys()):
            self.put("global", name)
            self._read(value.__globals__[name], names)
        for name in sorted(names - value.__globals__.keys()):
            if hasattr(builtins, name):
                self.put("builtin", name)

    def _read(self, content: Any, names: frozenset[str]) -> None:
        self.value(content)
        if isinstance(content, ModuleType):
            self._attributes(content, names)

    def _attributes(self, module: ModuleType, names: frozenset[str]) -> None:
        """What the function may read of `module`: every name it mentions that the module has."""
        if module.__name__.partition(".")[0] in _NAMED_PACKAGES:
            return
        for name in sorted(names):
            if name in module.__dict__:
                self.put("attribute", name)
                content = module.__dict__[name]
                self.value(content)
                if isinstance(content, ModuleType) and content is not module:
                    self.once(content, functools.partial(self._attributes, content, names))

    def code(self, value: CodeType) -> None:
        counts = (value.co_argcount, value.co_posonlyargcount, value.co_kwonlyargcount, value.co_nlocals, value.co_flags)
        # Where it stands is part of it: the exceptions that it raises say so.
        self.put("code", f"{counts} {value.co_filename} {value.co_firstlineno} {value.co_name}")
        self.put("bytecode", value.co_code)
        self.put("lines", value.co_linetable)
        for names in (value.co_names, value.co_varnames, value.co_freevars, value.co_cellvars):
            self.items("names", names)
        self.items("constants", value.co_consts)


def _names(code: CodeType) -> frozenset[str]:
    """Every name that `code` and the functions defined in it look up."""
    nested = (_names(constant) for constant in code.co_consts if isinstance(constant, CodeType))
    return frozenset(code.co_names).union(*nested)


# In this order: a bool is an int, a named tuple a tuple, a NumPy float a float.
_METHODS: tuple[tuple[Any, Callable[[_Walk, Any], None]], ...] = (
    (Dispatcher, _Walk.dispatcher),
    (FunctionType, _Walk.function),
    (np.generic, _Walk.scalar),
    (enum.Enum, _Walk.enum),
    ((type(None), bool, int, str, bytes, type(Ellipsis), slice, range), _Walk.simple),
    (float, _Walk.float),
    (complex, _Walk.complex),
    (tuple, _Walk.tuple),
    (frozenset, _Walk.set),
    (CodeType, _Walk.code),
    (np.ndarray, _Walk.array),
    (np.dtype, _Walk.simple),
    (type, _Walk.type),
    (ModuleType, _Walk.module),
    ((BuiltinFunctionType, np.ufunc), _Walk.named),
    (types.ExternalFunction, _Walk.external),
    (types.Type, _Walk.numba_type),
)
