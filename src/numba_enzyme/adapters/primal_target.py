"""A Numba target that stops before optimisation.

Enzyme wants the whole call tree of a function in one module, as the front end left it. Numba's CPU target optimises every function by
itself as soon as it is compiled, and no option stops it. This target is the CPU's with a code library that neither optimises nor runs
anything. Every function that is called, implementations of Numba's own overloads included, is compiled again for it.

Checked on Numba 0.62 to 0.68.
"""

from __future__ import annotations

import functools
import re
import weakref
from contextlib import contextmanager
from types import FunctionType
from typing import TYPE_CHECKING, Any

from llvmlite import ir
from numba.core import callconv, codegen, cpu, fastmathpass, types, typing
from numba.core.compiler_lock import global_compiler_lock
from numba.core.cpu import CPUTargetOptions
from numba.core.cpu_options import FastMathOptions
from numba.core.descriptors import TargetDescriptor
from numba.core.dispatcher import Dispatcher
from numba.core.errors import TypingError
from numba.core.registry import CPUDispatcher
from numba.core.target_extension import CPU, dispatcher_registry, jit_registry, target_override, target_registry
from numba.core.typing import signature
from numba.experimental.jitclass.base import JitClassType
from numba.np.ufunc.dufunc import DUFunc
from numba.stencils.stencil import StencilFunc

from numba_enzyme.adapters.fingerprint import meaning_of
from numba_enzyme.adapters.transforms import check_no_transform
from numba_enzyme.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import llvmlite.binding as ll
    from numba.core.compiler import CompileResult

NAME = "numba_enzyme_primal"
TWIN = "__numba_enzyme_twin__"

# What of a dispatcher's options is about its meaning, and so must hold for its primal too; the others are about how it is run.
_MEANING = ("boundscheck", "error_model", "fastmath", "inline", "forceinline", "no_cfunc_wrapper", "no_cpython_wrapper")
_UNRESOLVED = ".numba.unresolved$"

_definitions: weakref.WeakValueDictionary[str, PrimalLibrary] = weakref.WeakValueDictionary()


def fastmath_flags(dispatcher: Dispatcher) -> tuple[str, ...]:
    """LLVM's names of the liberties that a function may take with floats, `fast` for all of them."""
    return tuple(sorted(FastMathOptions(dispatcher.targetoptions.get("fastmath", False)).flags))


class PrimalTarget(CPU):  # type: ignore[misc]
    """The name of the target in Numba's hierarchy: everything registered for the CPU holds for it."""


class PrimalLibrary(codegen.JITCodeLibrary):  # type: ignore[misc]
    """Collects modules and links them; optimises nothing, runs nothing."""

    reached: frozenset[PrimalLibrary] = frozenset()
    """What else was compiled for it."""

    def add_llvm_module(self, module: ll.ModuleRef) -> None:
        module.data_layout = self._codegen._data_layout
        for function in module.functions:
            if not function.is_declaration:
                _definitions[function.name] = self
        self._final_module.link_in(module)

    def _optimize_final_module(self) -> None:
        pass

    def _verify_declare_only_symbols(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        return 0


class PrimalCodegen(codegen.JITCPUCodegen):  # type: ignore[misc]
    _library_class = PrimalLibrary


class PrimalTyping(typing.Context):  # type: ignore[misc]
    def resolve_value_type(self, val: Any) -> Any:
        check_no_transform(val, "it")
        if isinstance(val, JitClassType):
            raise UnsupportedError(
                f"the jitclass {val.__name__} cannot be differentiated through: its objects live in memory of Numba's own"
            )
        if isinstance(val, DUFunc):
            # By numbers it is its function, and by arrays too where that is made of what works on arrays.
            return types.Dispatcher(_vectorized_twin(val))
        if isinstance(val, StencilFunc):
            raise UnsupportedError("it calls a stencil, which Numba compiles apart: write its loop")
        try:
            found = super().resolve_value_type(val)
        except ValueError:
            # Numba has no type for a plain function. Here it means what it would if it were compiled with njit: itself, say.
            if not isinstance(val, FunctionType):
                raise
            return types.Dispatcher(_plain_twin(val))
        if isinstance(found, types.FunctionType):
            raise UnsupportedError(f"it calls {val!r} through a pointer, and there is no telling what code that is: call an njit function")
        # What has attributes keeps them until it is called.
        return _twin_type(found) if type(found) is types.Dispatcher else found

    range_takes_floats = True

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
        if not self.range_takes_floats and isinstance(func, types.Function) and func.typing_key is range:
            floats = [arg for arg in args if isinstance(arg, types.Float)]
            if floats:
                raise TypingError(f"range() was given {floats[0]}")
        return super().resolve_function_type(_twin_type(func), args, kws)


class PrimalCallConv(callconv.CPUCallConv):  # type: ignore[misc]
    def set_dynamic_user_exc(
        self, builder: Any, exc: Any, exc_args: tuple[Any, ...], nb_types: Any, loc: Any = None, func_name: Any = None
    ) -> None:
        # Of values that are known at run time only Numba makes Python objects, with an environment of the compiled primal, which there is
        # none of. The derivative raises the same exception and says of such a value what it is.
        said = tuple(f"<{numba_type}>" if isinstance(arg, ir.Value) else arg for arg, numba_type in zip(exc_args, nb_types, strict=True))
        self.set_static_user_exc(builder, exc, said, loc=loc, func_name=func_name)


class PrimalContext(cpu.CPUContext):  # type: ignore[misc]
    @property
    def call_conv(self) -> PrimalCallConv:
        return PrimalCallConv(self)

    def init(self) -> None:
        super().init()
        self._internal_codegen = PrimalCodegen(NAME)

    def get_function(self, fn: Any, sig: Any, _firstcall: bool = True) -> Any:
        from numba_enzyme.adapters import primal_arrays  # noqa: PLC0415 - not needed to import the package

        fn = _twin_type(fn)
        key = fn.get_impl_key(sig.as_function()) if isinstance(fn, types.Callable) else fn
        return primal_arrays.lowered(self, key, sig.as_function()) or super().get_function(fn, sig, _firstcall)

    def get_ufunc_info(self, ufunc_key: Any) -> Any:
        from numba_enzyme.adapters import primal_ufuncs  # noqa: PLC0415 - not needed to import the package

        return {**super().get_ufunc_info(ufunc_key), **primal_ufuncs.REPLACED.get(ufunc_key, {})}

    def get_executable(self, library: Any, fndesc: Any, env: Any) -> Callable[..., Any]:
        # Numba keys what it knows of a function by its entry point. Nothing is run here, but the key must be the function's own.
        return [].append

    def create_cpython_wrapper(self, library: Any, fndesc: Any, env: Any, call_helper: Any, release_gil: bool = False) -> None:
        pass

    def create_cfunc_wrapper(self, library: Any, fndesc: Any, env: Any, call_helper: Any) -> None:
        pass

    def post_lowering(self, mod: Any, library: Any) -> None:
        # The CPU target links Numba's memory runtime here. It stays declared: Enzyme is given a runtime that it understands.
        if self.fastmath:
            fastmathpass.rewrite_module(mod, self.fastmath)


class PrimalDescriptor(TargetDescriptor):  # type: ignore[misc]
    options = CPUTargetOptions

    @functools.cached_property
    def typing_context(self) -> PrimalTyping:
        return PrimalTyping()

    @functools.cached_property
    def target_context(self) -> PrimalContext:
        return PrimalContext(self.typing_context, NAME)


descriptor = PrimalDescriptor(NAME)


class PrimalDispatcher(Dispatcher):  # type: ignore[misc]
    """Compiles a Python function for the primal target."""

    targetdescr = descriptor

    def add_overload(self, cres: CompileResult) -> None:
        # Numba's finalizer of a dispatcher holds its results. Their annotation holds the function, and that what was derived of it: they
        # would keep one another alive.
        super().add_overload(cres._replace(type_annotation=None))


def _primal_jit(*args: Any, **options: Any) -> Any:
    """What Numba uses as `jit` for the functions that implement its overloads."""

    def wrap(function: Any) -> PrimalDispatcher:
        return PrimalDispatcher(function, targetoptions=_meaning(options))

    return wrap(args[0]) if args and callable(args[0]) else wrap


def _meaning(options: dict[str, Any]) -> dict[str, Any]:
    # `debug` is about how a function is run, but for this: with it Numba checks indices.
    implied = {"boundscheck": True} if options.get("debug") and options.get("boundscheck") is None else {}
    return {"nopython": True, **{name: options[name] for name in _MEANING if name in options}, **implied}


target_registry[NAME] = PrimalTarget
dispatcher_registry[PrimalTarget] = PrimalDispatcher
jit_registry[PrimalTarget] = _primal_jit


def twin(dispatcher: Dispatcher) -> PrimalDispatcher:
    """The same function for the primal target, with what its options say about its meaning.

    A twin is kept with its dispatcher for as long as the function means the same: a global that is bound anew makes a new twin. Within one
    compilation a function has one twin, whatever happens to its globals meanwhile.
    """
    if isinstance(dispatcher, PrimalDispatcher):
        return dispatcher
    key = id(dispatcher)
    if key not in _twins:
        _twins[key] = _kept_twin(dispatcher)
    return _twins[key]


def _plain_twin(function: FunctionType) -> PrimalDispatcher:
    return _twins.setdefault(id(function), PrimalDispatcher(function, targetoptions={"nopython": True}))


def _vectorized_twin(function: DUFunc) -> PrimalDispatcher:
    made = PrimalDispatcher(function._dispatcher.py_func, targetoptions=_meaning(function._dispatcher.targetoptions))
    return _twins.setdefault(id(function), made)


_twins: dict[int, PrimalDispatcher] = {}


def _kept_twin(dispatcher: Dispatcher) -> PrimalDispatcher:
    meaning = meaning_of(dispatcher)
    kept = getattr(dispatcher, TWIN, None)
    # functools.wraps copies attributes from one function to another, so a twin is believed only if it says whose it is.
    if kept is not None and kept[0]() is dispatcher and kept[1] == meaning:
        return kept[2]  # type: ignore[no-any-return]
    made = _new_twin(dispatcher)
    setattr(dispatcher, TWIN, (weakref.ref(dispatcher), meaning, made))
    return made


def _new_twin(dispatcher: Dispatcher) -> PrimalDispatcher:
    if hasattr(dispatcher, "primal_twin"):
        return dispatcher.primal_twin()  # type: ignore[no-any-return]
    return PrimalDispatcher(dispatcher.py_func, locals=dispatcher.locals, targetoptions=_meaning(dispatcher.targetoptions))


def _twin_type(fn: Any) -> Any:
    if isinstance(fn, types.Dispatcher) and isinstance(fn.dispatcher, CPUDispatcher):
        return types.Dispatcher(twin(fn.dispatcher))
    return fn


def compile_primal(dispatcher: Dispatcher, argtypes: tuple[Any, ...], restype: Any = None) -> CompileResult:
    """Compiles `dispatcher` and all it calls, unoptimised; the result's library holds the whole call tree in one module."""
    from numba_enzyme.adapters import primal_arrays  # noqa: F401, PLC0415 - what it defines has to be there

    with global_compiler_lock, _one_twins(), target_override(NAME):
        primal = twin(dispatcher)
        _twins.setdefault(id(primal.py_func), primal)
        primal.compile(argtypes if restype is None else signature(restype, *argtypes))
        result = primal.overloads[argtypes]
        # Functions that call each other know each other by name alone, and nothing else keeps what a plain function was compiled to.
        result.library.reached |= {c.library for twin in _twins.values() for c in twin.overloads.values()} - {result.library}
        return result


def compile_promoted(dispatcher: Dispatcher, argtypes: tuple[Any, ...], restype: Any = None) -> CompileResult:
    """The same where integers have become floats: then `range` of a float, which Numba would cut off in silence, is refused."""
    typing_context = descriptor.typing_context
    with global_compiler_lock:
        typing_context.range_takes_floats = False
        try:
            return compile_primal(_new_twin(dispatcher), argtypes, restype)
        finally:
            typing_context.range_takes_floats = True


@contextmanager
def _one_twins() -> Iterator[None]:
    """Compilations nest: an emitted entry point of an inner derivative compiles its own primal."""
    outermost = not _twins
    try:
        yield
    finally:
        if outermost:
            _twins.clear()


def linked_module(library: PrimalLibrary) -> ll.ModuleRef:
    """The module of `library` with everything that it calls."""
    with global_compiler_lock:
        library._ensure_finalized()
        module = library._final_module
        seen: set[str] = set()
        while missing := _unresolved(module).keys() - seen:
            for name in missing:
                seen.add(name)
                seen.add(_link_definition(module, name))
        return module


def _unresolved(module: ll.ModuleRef) -> dict[str, ll.ValueRef]:
    """Functions that call each other reach one another through pointers, which Numba fills in when code is loaded."""
    return {g.name[len(_UNRESOLVED) :]: g for g in module.global_variables if g.name.startswith(_UNRESOLVED)}


def _link_definition(module: ll.ModuleRef, name: str) -> str:
    """Links the function behind a pointer; its symbol."""
    symbol = name if name in _definitions else _same_function(name)
    if symbol != name:
        _unresolved(module)[name].name = _UNRESOLVED + symbol
    if not any(f.name == symbol and not f.is_declaration for f in module.functions):
        owner = _definitions[symbol]
        owner._ensure_finalized()
        module.link_in(owner._final_module, preserve=True)
    return symbol


def _same_function(name: str) -> str:
    """Numba names a function of a module that cannot be imported in two ways, which differ before the number that is the function's own."""
    own = _from_number(name)
    return next(symbol for symbol in list(_definitions) if _from_number(symbol) == own)


def _from_number(symbol: str) -> str:
    return symbol[match.start() :] if (match := re.search(r"B\d+v\d+B", symbol)) else symbol
